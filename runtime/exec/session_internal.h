// The inside of a session, for the files that make and run its plans. Private to runtime/exec.
#ifndef TFC_RUNTIME_EXEC_SESSION_INTERNAL_H
#define TFC_RUNTIME_EXEC_SESSION_INTERNAL_H

#include <pthread.h>

#include "runtime/base/array.h"
#include "runtime/exec/gate.h"
#include "runtime/exec/groundwork.h"
#include "runtime/exec/session.h"

struct tfc_session_arena { // shared by the static plans of a session, one per device and one for the host
  struct tfc_buffer *buffer;
  uint64_t size;
  uint64_t generation; // increases when the address changes
};
// State of the nodes of a graph: the session's own graph, or a function's body, which has one for the session and one
// for each iterator that calls it.
struct tfc_session_graph {
  const struct tfc_graph *graph;
  uint64_t states;    // the iterator's number; 0: the session's own
  void **node_states; // [node_count], made when a plan needs one
};
struct tfc_cached_plan {
  uint64_t hash;
  void *key;
  size_t key_size;
  struct tfc_plan *plan;
};
struct tfc_timeline { // counts the copies to a device, in steps in ready order
  struct tfc_semaphore *semaphore;
  uint64_t last; // the semaphore's value after the last submitted copy; guarded by tfc_submit_begin's lock
};
// Functions of the session, for code at a lower level than session.c that needs further plans: for functions' bodies,
// for another way to run the same graph, for steps of its own.
struct tfc_planner {
  tfc_status (*create)(struct tfc_session *session, const struct tfc_graph *graph, const struct tfc_run_spec *spec,
                       struct tfc_plan **out); // of the session's graph or a function's body
  void (*free)(struct tfc_plan *plan);
  tfc_status (*run)(struct tfc_session *session, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                    struct tfc_tensor *fetches, const struct tfc_run_options *options);
};
struct tfc_session {
  const struct tfc_graph *graph; // retained
  bool makes_step_resources;     // a node of the graph, or of a function, makes resources that live for one step
  const struct tfc_planner *planner;
  struct tfc_session_options options;
  struct tfc_device *const *devices;
  uint32_t device_count;
  struct tfc_resources *resources;
  struct tfc_timeline *timelines;   // [device_count]; semaphore NULL: the device has no memory of its own
  struct tfc_session_arena *arenas; // [device_count + 1]
  pthread_mutex_t run_lock;         // a static step holds it while it runs; guards the arenas
  uint32_t dynamic_steps;           // steps in ready order since the last static one; guarded by run_lock
  pthread_mutex_t lock;             // guards the members below
  TFC_ARRAY(struct tfc_session_graph) graphs;
  // The variables that plans of this session use; the session has one reference to each.
  TFC_ARRAY(struct tfc_variable *) variables;
  TFC_ARRAY(struct tfc_cached_plan) cache;
  TFC_ARRAY(struct tfc_plan *) function_plans;
  struct tfc_groundwork *ground; // of the last plan, or NULL
  _Atomic int64_t next_step;
  _Atomic uint32_t next_stream;
  struct tfc_gate gate;
  struct tfc_queue_threads *queue_threads; // or NULL
};
// Whether one of the devices has a limit of memory. If so, loops do not run faster by holding more memory.
static inline bool tfc_session_is_limited(const struct tfc_session *session) {
  for (uint32_t d = 0; d < session->device_count; d++)
    if (session->devices[d]->info.memory != UINT64_MAX) return true;
  return false;
}

#endif
