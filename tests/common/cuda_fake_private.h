// What the parts of the fake of the CUDA calls share (cuda_fake.c, cuda_fake_graph.c): streams, events, work, and the
// calls that CUDA refuses. Everything is guarded by tfc_fake.lock.
#ifndef TFC_TESTS_COMMON_CUDA_FAKE_PRIVATE_H
#define TFC_TESTS_COMMON_CUDA_FAKE_PRIVATE_H

#include <pthread.h>

#include "tests/common/cuda_fake.h"

enum { WORK, COPY, SET, RECORD, WAIT, FLAG };
enum { LANES = 8 }; // streams of one capture
struct work {
  int kind, value;
  void (*fn)(void *argument);
  void *argument; // a copy of the argument, which this work owns
  size_t size;
  void *to;
  const void *from;
  size_t bytes;
  struct record *record; // RECORD makes this record reached, WAIT waits for it
  uint32_t correlation;  // the launch's, see tfc_cuda_fake_watcher
  const char *name;      // of a kernel; NULL: it has none
  uint64_t node;         // of a captured graph
  // Of a captured graph: the stream of the capture, how many pieces of work of each stream come before this one, and
  // whether work of another stream comes directly after it.
  uint32_t lane, before[LANES];
  bool awaited;
  struct work *next;
};
// one recording of an event: a stream that waits for it continues to wait for this one even if the event is recorded
// again
struct record {
  uint32_t references;
  bool reached;
  int64_t when;
};
enum { LIVE = 0x11fe, DEAD = 0xdead };
struct CUevent_st {
  int device;
  uint64_t green;      // the green context that was current when it was made; 0: none
  uint64_t ends;       // how many contexts with that number had been destroyed by then
  struct record *last; // NULL: never recorded
  bool timing;
  uint64_t captured;      // the capture in which it was recorded last; 0: in none
  uint32_t before[LANES]; // as in struct work
  uint32_t life;
  struct CUevent_st *grave;
};
struct cudnnContext {
  uint64_t green; // id of the context that was current when the stream was made; 0: the primary context
};
struct CUgraph_st {
  int unused;
};
struct CUgraphExec_st {
  struct work *first, **end;
  size_t count, longest; // `longest`: how many pieces of work follow each other at least
  uint64_t first_node;
  bool invalid; // something was done that may not be captured
  uint32_t lanes, in_lane[LANES];
  const struct CUstream_st *origin; // where the capture began
};
struct CUstream_st {
  pthread_t thread;
  pthread_cond_t wake; // signalled when there is work, or when the stream ends
  struct work *first, **end;
  bool busy, stop;
  struct CUgraphExec_st *capture;       // which all its streams share
  uint32_t lane, before[LANES];         // in the capture: its number, and what comes before the stream's next work
  pthread_t capturer;                   // the thread that captures, if `capture` is set
  struct CUstream_st *sides[LANES - 1]; // run the branches of graphs that are launched into this stream
  uint64_t green;                       // the green context of the partition; 0: none
  uint32_t id, life;
  int device;
  bool orphan; // its green context was destroyed
  struct CUstream_st *next, *grave;
};

// Errors of calls that are refused (cudaError_t).
enum {
  INVALID_VALUE = 1,
  INVALID_HANDLE = 400, // the handle was destroyed, or belongs to another device
  PEER_ALREADY = 704,
  CONTEXT_DESTROYED = 709,
  CAPTURE_UNSUPPORTED = 900, // and the capture is lost
  CAPTURE_INVALIDATED = 901,
  CAPTURE_MERGE = 902,     // two captures would become one
  CAPTURE_UNMATCHED = 903, // it began on another stream
  CAPTURE_UNJOINED = 904,  // a stream of the capture has work after which the first one does not come
  CAPTURE_ISOLATION = 905, // a stream in capture waits for work that was not captured
  CAPTURED_EVENT = 907
};

extern struct tfc_fake {
  pthread_mutex_t lock;
  struct CUstream_st *streams; // all that exist
  const struct tfc_cuda_fake_watcher *watcher;
} tfc_fake;

// --- cuda_fake.c; the caller holds the lock ------------------------------------------------------------------------
int tfc_fake_count(enum tfc_cuda_fake_call call); // counts a call; returns the error that the call must return
int tfc_fake_violation(int error);                // counts a call that CUDA refuses, and returns `error`
int tfc_fake_use_stream(const struct CUstream_st *s);
// A kernel or a graph may only be launched into a stream of the thread's current device.
int tfc_fake_use_for_launch(const struct CUstream_st *s);
struct CUstream_st *tfc_fake_make_stream(uint64_t green, int device);
int tfc_fake_push(struct CUstream_st *s, const struct work *work); // into the stream's queue, or into its capture
void tfc_fake_release_record(struct record *r);
void tfc_fake_free_work(struct work *w);

// --- cuda_fake_graph.c; the caller holds the lock, except for the calls of the API ---------------------------------
// Makes the capture that the stream takes part in invalid, counts a call that CUDA refuses, and returns `error`.
int tfc_fake_refuse_capture(struct CUstream_st *s, int error);
// Makes what comes before the event come before the stream's next work, and the stream a part of the event's capture.
int tfc_fake_wait_in_capture(struct CUstream_st *s, const struct CUevent_st *e);
void tfc_fake_expect_no_capture(void);                       // no other thread may be capturing
void tfc_fake_wait_for_device(int device);                   // all captures on the device are lost
void tfc_fake_leave_capture(const struct CUgraphExec_st *g); // its streams leave it
int tfc_fake_capture_begin(tfc_cuda_stream s);
int tfc_fake_capture_count(tfc_cuda_stream s, size_t *out);
int tfc_fake_capture_nodes(tfc_cuda_stream s, struct tfc_cuda_graph_node *nodes, size_t wanted);
int tfc_fake_capture_end(tfc_cuda_stream s, struct tfc_cuda_graph_node *nodes, size_t capacity, size_t *out_count,
                         tfc_cuda_graph *out);
void tfc_fake_capture_abort(tfc_cuda_stream s);
int tfc_fake_graph_launch(tfc_cuda_graph g, tfc_cuda_stream s);
int tfc_fake_graph_destroy(tfc_cuda_graph g);

#endif
