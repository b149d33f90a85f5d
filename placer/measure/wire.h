// Wire: messages between a program and its measuring worker: a type, a size, data. Both ends are the same executable,
// so numbers are sent as they are in memory. A malformed message is an error, never a crash.
#ifndef TFC_PLACER_MEASURE_WIRE_H
#define TFC_PLACER_MEASURE_WIRE_H

#include <stdatomic.h>

#include "runtime/base/array.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"

// The types of messages, and what each carries.
#define TFC_WIRE_TYPES(X)                                                                                              \
  X(SETUP)  /* to the worker: graph, step, devices; its answer, also a SETUP, says what is there */                    \
  X(BATCH)  /* to the worker: placements to measure */                                                                 \
  X(LINKS)  /* to the worker: time the links; its answer, also a LINKS, has the times */                               \
  X(BEAT)   /* from the worker: it begins something that may take long, for the entry named here */                    \
  X(RESULT) /* from the worker: one entry of the batch */                                                              \
  X(ACK)    /* to the worker: the result is stored, go on: nothing is written while a step is timed */                 \
  X(DONE)   /* from the worker: the batch is over */                                                                   \
  X(FAILED) /* from the worker: a status */                                                                            \
  X(WHERE)  /* from a worker that was silent, when it is asked: where its step is */
enum tfc_wire_type {
#define TFC_WIRE_ENUM(name) TFC_WIRE_##name,
  TFC_WIRE_TYPES(TFC_WIRE_ENUM)
#undef TFC_WIRE_ENUM
};

typedef TFC_ARRAY(char) tfc_wire_buffer; // counted in the host's account
void tfc_wire_free(tfc_wire_buffer *buffer);
struct tfc_pack { // a message that is being written; when zeroed, it is empty
  tfc_wire_buffer bytes;
  size_t failed; // bytes that there was no memory for; 0: none
};
void tfc_pack_bytes(struct tfc_pack *p, const void *data, size_t size); // copies the bytes as they are
void tfc_pack_u32(struct tfc_pack *p, uint32_t x);
void tfc_pack_u64(struct tfc_pack *p, uint64_t x);
void tfc_pack_f64(struct tfc_pack *p, double x);
void tfc_pack_str(struct tfc_pack *p, tfc_str text); // its size and its bytes
void tfc_pack_array(struct tfc_pack *p, const void *data, size_t count, size_t size);

struct tfc_unpack { // a message that is being read
  const char *at, *end;
  bool failed; // it was too short, or contained a wrong size: everything read after that is zero
};
uint32_t tfc_unpack_u32(struct tfc_unpack *u);
uint64_t tfc_unpack_u64(struct tfc_unpack *u);
double tfc_unpack_f64(struct tfc_unpack *u);
tfc_str tfc_unpack_str(struct tfc_unpack *u); // points into the message
// Returns an array of items of `size` bytes. It points into the message and may be unaligned, so copy the items out of
// it.
const void *tfc_unpack_array(struct tfc_unpack *u, size_t size, size_t *out_count);

TFC_MUST_USE tfc_status tfc_wire_send(int fd, enum tfc_wire_type type, const struct tfc_pack *body);
// Waits up to timeout_ns (< 0: without limit) for a whole message; its body goes to `buffer`. DEADLINE_EXCEEDED: no
// message came; UNAVAILABLE: the other end is closed; CANCELLED: `cancel` (may be NULL) was set; RESOURCE_EXHAUSTED:
// the message was read, but there was no memory to keep it.
TFC_MUST_USE tfc_status tfc_wire_receive(int fd, int64_t timeout_ns, const atomic_bool *cancel, uint32_t *out_type,
                                         tfc_wire_buffer *buffer);

#endif
