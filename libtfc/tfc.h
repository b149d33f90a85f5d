/* tfc.h: run TensorFlow graphs inside your own program.
 *
 * One header, C11 and C++. Link with `pkg-config --cflags --libs tfc`, or in CMake with `find_package(tfc)` and
 * `target_link_libraries(your_program tfc::tfc)`.
 *
 *   tfc_model *model = NULL;
 *   tfc_call *call = NULL;
 *   const char *feeds[] = {"x:0"}, *fetches[] = {"probabilities:0"};
 *   float image[784] = {0}, probabilities[10];
 *   tfc_array in = {.dtype = TFC_ARRAY_FLOAT32, .rank = 2, .dims = {1, 784}, .data = image, .bytes = sizeof image};
 *   tfc_array out = {.data = probabilities, .bytes = sizeof probabilities};
 *   tfc_call_spec spec = {.feeds = feeds, .feed_count = 1, .fetches = fetches, .fetch_count = 1};
 *   tfc_error *error = tfc_model_open("model.pb", NULL, &model);
 *   if (!error) error = tfc_call_prepare(model, &spec, &call);
 *   if (!error) error = tfc_call_run(call, &in, &out);
 *   if (error) fprintf(stderr, "%s\n", tfc_error_text(error));
 *   tfc_error_free(error), tfc_call_free(call), tfc_model_close(model);
 *
 * Errors. A function that can fail returns NULL, or an error that the caller owns and frees. An error has a code and a
 * text that names the file, node or value involved. Outputs are written only on success. NULL instead of an object that
 * a function needs is TFC_ERROR_INVALID_ARGUMENT.
 *
 * Threads. A model and its calls may be used by several threads at once: its variables are shared, and no operation
 * sees another one's update half done. Opening, closing, restoring, saving and freeing want the object for themselves.
 * An array or an error belongs to one thread at a time.
 *
 * Stability. Within a major version functions and constants are only added, and structs that end with a `reserved`
 * field keep their size. A zeroed struct asks for the defaults.
 */
#ifndef TFC_H
#define TFC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TFC_API __attribute__((visibility("default")))
#else
#define TFC_API
#endif

/* "1.2.3". The library's own version, which may be newer than this header's. */
TFC_API const char *tfc_library_version(void);

/* --- Errors ------------------------------------------------------------------------------------------------------- */
typedef struct tfc_error tfc_error;

typedef enum tfc_error_kind { /* 0 is no error */
                              TFC_ERROR_CANCELLED = 1,
                              TFC_ERROR_INVALID_ARGUMENT = 2,    /* a bad graph, feed or name */
                              TFC_ERROR_UNIMPLEMENTED = 3,       /* an operation or type that tfc does not run */
                              TFC_ERROR_NOT_FOUND = 4,           /* a file, node or device that was named */
                              TFC_ERROR_OUT_OF_RANGE = 5,        /* the end of a queue or data set */
                              TFC_ERROR_FAILED_PRECONDITION = 6, /* an uninitialised variable, say */
                              TFC_ERROR_RESOURCE_EXHAUSTED = 7,  /* out of memory */
                              TFC_ERROR_DEADLINE_EXCEEDED = 8,
                              TFC_ERROR_UNAVAILABLE = 9, /* a device is not there or stopped working */
                              TFC_ERROR_DATA_LOSS = 10,  /* a file could not be written */
                              TFC_ERROR_ABORTED = 11,
                              TFC_ERROR_INTERNAL = 12
} tfc_error_kind;

TFC_API int tfc_error_code(const tfc_error *error);         /* a tfc_error_kind; 0 for NULL */
TFC_API const char *tfc_error_text(const tfc_error *error); /* "" for NULL; lives as long as the error */
TFC_API void tfc_error_free(tfc_error *error);              /* NULL is fine */

/* --- Arrays ------------------------------------------------------------------------------------------------------- */
typedef enum tfc_array_type { /* TensorFlow's numbers */
                              TFC_ARRAY_FLOAT32 = 1,
                              TFC_ARRAY_FLOAT64 = 2,
                              TFC_ARRAY_INT32 = 3,
                              TFC_ARRAY_UINT8 = 4,
                              TFC_ARRAY_INT16 = 5,
                              TFC_ARRAY_INT8 = 6,
                              TFC_ARRAY_STRING = 7,
                              TFC_ARRAY_COMPLEX64 = 8,
                              TFC_ARRAY_INT64 = 9,
                              TFC_ARRAY_BOOL = 10,
                              TFC_ARRAY_BFLOAT16 = 14,
                              TFC_ARRAY_UINT16 = 17,
                              TFC_ARRAY_COMPLEX128 = 18,
                              TFC_ARRAY_FLOAT16 = 19,
                              TFC_ARRAY_UINT32 = 22,
                              TFC_ARRAY_UINT64 = 23
} tfc_array_type;

enum { TFC_ARRAY_MAX_RANK = 8 };

/* An element of an array of strings. */
typedef struct tfc_text_element {
  const char *data; /* not ended by 0 */
  size_t size;
} tfc_text_element;

/* A dense array in row-major order.
 *
 * As a feed: dtype, rank, dims, data and bytes are the caller's; the memory is read where it is, until the call
 * returns, and never written. `data` must be aligned to its elements.
 *
 * As a result: with `data` given, the value is written there, `bytes` says how much room there is, and too little is
 * TFC_ERROR_OUT_OF_RANGE with `bytes` set to what it takes; with `data` NULL the library allocates, and the caller
 * frees with tfc_array_clear. dtype, rank, dims and bytes are set either way. Strings are always allocated: `data`
 * points to tfc_text_element, one per element. */
typedef struct tfc_array {
  int32_t dtype; /* tfc_array_type */
  int32_t rank;
  int64_t dims[TFC_ARRAY_MAX_RANK];
  void *data;
  size_t bytes;
  void *owner; /* of what the library allocated; NULL: the memory is the caller's */
} tfc_array;

TFC_API void tfc_array_clear(tfc_array *array); /* frees what the library allocated, zeroes the record */

/* --- Models ------------------------------------------------------------------------------------------------------- */
typedef struct tfc_model tfc_model;

typedef struct tfc_model_options {
  const char *devices;    /* as --devices: "cpu:0-3", "4", "gpu:0"; NULL: the placement's, else one CPU device of all
                             cores that this process may use */
  const char *placement;  /* a placement file made by tfc-place; NULL: everything on the first device */
  const char *checkpoint; /* prefix of a TensorFlow V2 checkpoint that variables are restored from; NULL: none */
  const char *execution;  /* how steps compute, as tfc-run's flags: "--rewrites all --seed 1"; NULL: the defaults, and
                             what the placement was measured with */
  int32_t uninitialised;  /* variables stay as they are until the caller runs an initialiser or restores them; else the
                             initialiser is found and run (not with a checkpoint) */
  uintptr_t reserved[8];
} tfc_model_options;

/* Reads a graph (.pb, .pbtxt, .meta, SavedModel directory; told apart by content) and makes its state. A SavedModel
 * restores its own variables. options: NULL for the defaults. */
TFC_API tfc_error *tfc_model_open(const char *path, const tfc_model_options *options, tfc_model **out);
TFC_API void tfc_model_close(tfc_model *model); /* after its calls were freed; NULL is fine */

TFC_API tfc_error *tfc_model_restore(tfc_model *model, const char *prefix); /* variables from a V2 checkpoint */
TFC_API tfc_error *tfc_model_save(tfc_model *model, const char *prefix);    /* variables to a V2 checkpoint */
TFC_API int32_t tfc_model_device_count(const tfc_model *model);
TFC_API const char *tfc_model_device_name(const tfc_model *model, int32_t index); /* "cpu:0"; NULL: no such device */

/* The element type of a tensor ("x:0"): a tfc_array_type, or TensorFlow's number of one that arrays cannot have. */
TFC_API tfc_error *tfc_model_tensor_type(const tfc_model *model, const char *tensor, int32_t *out_dtype);

/* --- Calls -------------------------------------------------------------------------------------------------------- */
typedef struct tfc_call tfc_call;

/* What a step is given, gives and does. Tensors by name ("x:0", "x" is the first output), operations by name. */
typedef struct tfc_call_spec {
  const char *const *feeds;
  int32_t feed_count;
  const char *const *fetches;
  int32_t fetch_count;
  const char *const *targets; /* operations that run for what they do ("train_op") */
  int32_t target_count;
  uintptr_t reserved[4];
} tfc_call_spec;

/* What is asked for, checked. Plans are made when a call first runs with feeds of given shapes, and kept for the last
 * few shapes; running with the same shapes again looks nothing up by name. The names are copied. */
TFC_API tfc_error *tfc_call_prepare(tfc_model *model, const tfc_call_spec *spec, tfc_call **out);
/* feeds[feed_count], fetches[fetch_count] in the spec's order; either may be NULL where there are none. After an
 * error the fetches are as they were, and the model can be used on. */
TFC_API tfc_error *tfc_call_run(tfc_call *call, const tfc_array *feeds, tfc_array *fetches);
/* Time of the last finished step of this call, from its first operation's start to its last one's end; NaN: none. */
TFC_API double tfc_call_step_us(const tfc_call *call);
TFC_API void tfc_call_free(tfc_call *call); /* NULL is fine */

/* --- Profiles ----------------------------------------------------------------------------------------------------- */
/* One operation of a profiled step, or one transfer (`to_device` not NULL). Times in microseconds from the step's
 * first start. Everything pointed to lives as long as the profile. */
typedef struct tfc_profile_event {
  const char *node, *op;
  const char *device, *to_device;
  double start_us, duration_us;
  uint64_t bytes; /* of a transfer */
} tfc_profile_event;
typedef struct tfc_profile tfc_profile;

/* Runs one step as tfc_call_run does and times every operation of it. */
TFC_API tfc_error *tfc_call_profile(tfc_call *call, const tfc_array *feeds, tfc_array *fetches, tfc_profile **out);
TFC_API size_t tfc_profile_count(const tfc_profile *profile);
TFC_API const tfc_profile_event *tfc_profile_events(const tfc_profile *profile); /* in order of start */
TFC_API void tfc_profile_free(tfc_profile *profile);                             /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
