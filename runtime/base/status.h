// Status: the result of every call that can fail because of data.
//
// NULL is success. Anything else is a heap-allocated record with a code and a message that names the node, device, file
// or value involved. The receiver of a status owns it: pass it on, or release it with tfc_status_free (NULL is fine). A
// status may move between threads but is not shared between them.
//
//   tfc_status open_it(const char *path, struct thing **out) {
//     struct thing *t = NULL;
//     tfc_status s = NULL;
//     TFC_TRY(s, tfc_file_map(path, &file));
//     if (file.size == 0) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: the file is empty", path);
//     *out = t, t = NULL;
//   out:
//     thing_free(t);
//     return s;
//   }
#ifndef TFC_RUNTIME_BASE_STATUS_H
#define TFC_RUNTIME_BASE_STATUS_H

#include <stdbool.h>

// code, the name that messages print
#define TFC_CODES(X)                                                                                                   \
  X(OK, "ok")                                                                                                          \
  X(CANCELLED, "cancelled")                                                                                            \
  X(INVALID_ARGUMENT, "invalid argument")       /* bad or unsupported input */                                         \
  X(UNIMPLEMENTED, "not supported")             /* an op, dtype or format that tfc does not run */                     \
  X(NOT_FOUND, "not found")                     /* a file, node, device that was named */                              \
  X(OUT_OF_RANGE, "out of range")               /* end of a queue, index beyond a bound */                             \
  X(FAILED_PRECONDITION, "failed precondition") /* uninitialised variable, closed queue */                             \
  X(RESOURCE_EXHAUSTED, "out of memory")                                                                               \
  X(DEADLINE_EXCEEDED, "deadline exceeded")                                                                            \
  X(UNAVAILABLE, "unavailable") /* a device does not exist or stopped working */                                       \
  X(DATA_LOSS, "data loss")     /* output could not be written */                                                      \
  X(ABORTED, "aborted")                                                                                                \
  X(INTERNAL, "internal error")

typedef enum tfc_code {
#define TFC_CODE_ENUM(code, text) TFC_##code,
  TFC_CODES(TFC_CODE_ENUM)
#undef TFC_CODE_ENUM
} tfc_code;

struct tfc_status_record;
typedef struct tfc_status_record *tfc_status;

#define TFC_MUST_USE __attribute__((warn_unused_result))
#define TFC_PRINTF(text, first) __attribute__((format(printf, text, first)))

// Makes a new error. `format` is printf's. Never NULL: if memory is out, a static record is returned.
TFC_MUST_USE tfc_status tfc_status_make(tfc_code code, const char *format, ...) TFC_PRINTF(2, 3);

// Makes the error of a failed allocation (TFC_RESOURCE_EXHAUSTED): "out of memory: <what>". `what` says what the memory
// was for, such as "reading a graph"; NULL if the caller's own message says it. (A text that names sizes or a node is
// made by tfc_status_make.) Never NULL.
TFC_MUST_USE tfc_status tfc_status_no_memory(const char *what) __attribute__((returns_nonnull));

// Makes an error with the code and message of `why`, followed by those of `status`, which it caused; `status` is
// consumed, `why` is not.
TFC_MUST_USE tfc_status tfc_status_caused_by(tfc_status status, tfc_status why);

// Puts "<context>: " before the message of an error and returns it; OK stays OK.
TFC_MUST_USE tfc_status tfc_status_annotate(tfc_status status, const char *format, ...) TFC_PRINTF(2, 3);

tfc_code tfc_status_code(tfc_status status);
int tfc_status_exit_code(tfc_status status);       // of a program that ends with this error
const char *tfc_status_message(tfc_status status); // "" for success; the text exists as long as the status
const char *tfc_code_name(tfc_code code);
void tfc_status_free(tfc_status status);
TFC_MUST_USE tfc_status tfc_status_clone(tfc_status status);

// Keeps the first of two errors and frees the second.
TFC_MUST_USE tfc_status tfc_status_join(tfc_status first, tfc_status second);

// Assigns `call` to `status`; goes to `out:` if it failed.
#define TFC_TRY(status, call)                                                                                          \
  do {                                                                                                                 \
    (status) = (call);                                                                                                 \
    if (__builtin_expect((status) != NULL, 0)) goto out;                                                               \
  } while (0)

#define TFC_FAIL(status, code, ...)                                                                                    \
  do {                                                                                                                 \
    (status) = tfc_status_make((code), __VA_ARGS__);                                                                   \
    goto out;                                                                                                          \
  } while (0)

// Returns from the function if `call` failed; for functions that have nothing to release.
#define TFC_RETURN_IF_ERROR(call)                                                                                      \
  do {                                                                                                                 \
    tfc_status tfc_status_ = (call);                                                                                   \
    if (__builtin_expect(tfc_status_ != NULL, 0)) return tfc_status_;                                                  \
  } while (0)

#endif
