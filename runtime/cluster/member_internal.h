// Private to the files of the member. Received messages are handled in order, by one thread at a time: the one that
// holds the lock `helm`. It is either the progress thread, or a thread that waits for other tasks and polls for
// messages itself, because that is faster than being woken. Steps run on threads of their own, because they may wait
// for a long time.
#ifndef TFC_RUNTIME_CLUSTER_MEMBER_INTERNAL_H
#define TFC_RUNTIME_CLUSTER_MEMBER_INTERNAL_H

#include <pthread.h>

#include "runtime/base/array.h"
#include "runtime/cluster/member.h"
#include "runtime/cluster/messages.h"
#include "runtime/cluster/rendezvous.h"
#include "runtime/cluster/traces.h"
#include "runtime/exec/gate.h"
#include "runtime/ops/collective.h"

struct tfc_peer { // another task, by rank
  struct tfc_head_hello hello;
  struct tfc_device_info *devices; // [hello.device_count]
  bool joined, ended, leaves;
  _Atomic bool serves;      // its script has ended and no session is open: it runs no steps of its own any more
  _Atomic bool talks;       // it has sent this task a message, or this task has sent it one
  bool watched;             // it is asked for signs of life; guarded by `helm`
  int64_t heard;            // when the last message from this task came, or it was first watched; guarded by `helm`
  char last[TFC_LAST_TEXT]; // what the task did last; guarded by `helm`
  // Steps or parts of steps, as the task told last, or task 0 for it; and when that came.
  _Atomic uint64_t steps;
  _Atomic int64_t told_ns;
};
struct tfc_gathering { // a barrier: task 0 counts the tasks that have come
  char name[TFC_NAME_TEXT];
  uint32_t came, votes;
  bool *who; // [tasks] true: the task has arrived
};
struct tfc_release { // of a barrier that all tasks have come to
  char *name;
  uint32_t votes;
};
struct tfc_part_answer { // what another task says of its part of a traced step
  struct tfc_round_trip trip;
  bool traced; // its trace has come
  struct tfc_buffer *trace;
  uint64_t trace_size;
};
struct tfc_client_step { // a step that this task started as a client; on the stack of the thread that runs it
  struct tfc_client_step *next;
  int64_t number;
  uint32_t remaining;       // tasks that have not answered yet
  _Atomic uint32_t changes; // how often `remaining` or `status` has changed
  tfc_status status;        // the first error
  _Atomic bool cancel;
  const _Atomic bool *asked; // the flag by which the user cancels the step
  int64_t begin;
  // The queue runners to start if the step waits long; NULL: there are none, or they already run.
  struct tfc_cluster_queues *queues;
  const bool *wanted;
  const uint32_t *ranks; // the tasks that run parts of the step
  uint32_t rank_count;
  struct tfc_part_answer *answers; // of these tasks; NULL: the step is not traced
  uint32_t untraced;               // tasks that have answered, and whose trace has not come yet
};
struct tfc_running { // a step of another client, part of which runs here
  struct tfc_running *next;
  int64_t number, came_ns; // came_ns: when the message came; only of traced steps
  _Atomic bool cancel;
  struct tfc_head_run head;
  uint32_t client;
};
struct tfc_served;
struct tfc_cluster_queues;
struct tfc_member_wire { // lets collective operations send messages to other tasks
  struct tfc_collective_wire base;
  struct tfc_member *member;
};
struct tfc_member {
  const struct tfc_cluster_spec *spec;
  struct tfc_transport *transport;
  const struct tfc_device_set *devices;
  struct tfc_member_options options;
  uint32_t rank, count;
  struct tfc_resources *resources;
  struct tfc_meeting *meeting;
  struct tfc_collectives *collectives;
  struct tfc_member_wire wire;
  pthread_t progress;
  bool progress_started;
  bool stop_told; // all tasks know that they are to stop; guarded by `helm`
  _Atomic bool stop;
  pthread_mutex_t helm;      // is held while messages are handled
  int64_t attend_ns;         // how long a waiting thread polls for messages
  _Atomic uint32_t arrivals; // steps that other tasks have started here
  _Atomic uint32_t releases; // of barriers
  // Which steps run here at the same time, in a task that is a client: a static plan has the task to itself.
  struct tfc_gate gate;
  _Atomic uint64_t static_parts;
  _Atomic uint64_t taken, parts; // steps that this task took; parts of other tasks' steps
  _Atomic uint32_t sessions;     // open ones, of which this task is the client
  _Atomic uint32_t fillers;      // threads of queue runners that begin, run or end a step of this task's sessions
  pthread_mutex_t lock;
  pthread_cond_t changed, work; // `work`: signalled when a step waits for a thread
  // Guarded by the lock:
  struct tfc_peer *peers; // [count]
  uint32_t joined_count;
  bool all_joined;
  TFC_ARRAY(struct tfc_gathering) gatherings;
  TFC_ARRAY(struct tfc_release) released; // one entry for each time that a barrier was released
  tfc_status failure;                     // why the job failed; NULL: it has not failed
  bool told;
  struct tfc_client_step *steps;
  int64_t next_step;
  uint32_t next_session;
  TFC_ARRAY(struct tfc_served *) served;
  // Lists of steps: `running` on threads, `queue` waiting for a thread.
  struct tfc_running *running, *queue, **queue_last;
  uint32_t idle_threads, attending; // attending: how many of the idle threads poll for messages
  TFC_ARRAY(pthread_t) threads;
  char last[TFC_LAST_TEXT];
  char *restored; // the state of operations that was restored, for sessions that are opened later; NULL: none was
  // Lines about what belongs to this task as a client, its local variables: those that the next save takes, and those
  // that the last restore brought. NULL: there are none.
  char *own_lines, *restored_lines;
  tfc_arrival_list came_in; // tensors of traced steps that have come from other tasks
};

TFC_MUST_USE tfc_status tfc_member_send(struct tfc_member *t, uint32_t to, struct tfc_message *m);
// Stores what this task did last. Pings carry it to task 0, which reports it if the task falls silent.
void tfc_member_note(struct tfc_member *t, const char *format, ...) TFC_PRINTF(2, 3);
// Marks the job as failed: everything that waits in this task returns with an error. Any thread may call it, without
// the lock.
void tfc_member_give_up(struct tfc_member *t, tfc_status why);
// Polls for messages until *word is not `seen`, for a short time. Any thread may call it, without the lock.
void tfc_member_attend(struct tfc_member *t, const _Atomic uint32_t *word, uint32_t seen);
const char *tfc_member_name_of(const struct tfc_member *t, uint32_t rank, char out[TFC_TASK_TEXT]);

#endif
