// Threads that fill a session's queues, as the graph's queue runners say (runtime/pass/queue_runners.h).
//
// They start when a step would otherwise wait without end: first the threads that fill the queues for which it waits,
// then those that fill the queues that the first ones read. A session whose graph has no queue runners, or whose steps
// are fed, has no threads. They end with the session.
#ifndef TFC_RUNTIME_EXEC_QUEUE_THREADS_H
#define TFC_RUNTIME_EXEC_QUEUE_THREADS_H

#include "runtime/exec/session.h"

// Makes such threads for a session that knows how many threads call it (`callers`). `placement`: that of the steps, or
// NULL; it must exist as long as the session. INVALID_ARGUMENT: the graph's collection names a node that the graph does
// not have.
TFC_MUST_USE tfc_status tfc_session_fill_queues(struct tfc_session *session, const uint16_t *placement);

// --- For the executor --------------------------------------------------------------------------------------------
struct tfc_queue_threads;
void tfc_queue_threads_free(struct tfc_queue_threads *t); // ends the threads; NULL is fine
// Starts the threads that fill the queues that these nodes of the session's graph wait for; false: there are no more to
// start.
bool tfc_queue_threads_start(struct tfc_queue_threads *t, const uint32_t *nodes, uint32_t count);
// Returns the status with which a step ends. If the step failed because a queue's thread failed, the message begins
// with the thread's error.
TFC_MUST_USE tfc_status tfc_queue_threads_explain(struct tfc_queue_threads *t, tfc_status status);

#endif
