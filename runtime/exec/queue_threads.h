// Threads that fill a session's queues, as the graph's queue runners say (runtime/pass/queue_runners.h).
//
// They start when a step would otherwise wait for ever: first the threads that fill the queues it waits for, and those
// that fill the queues these need. A session whose graph has no queue runners, or whose steps are fed, has no threads.
// They end with the session.
#ifndef TFC_RUNTIME_EXEC_QUEUE_THREADS_H
#define TFC_RUNTIME_EXEC_QUEUE_THREADS_H

#include "runtime/exec/session.h"

// From now on, of a session that knows its callers. `placement` is that of steps (or NULL), and lives as long as the
// session. INVALID_ARGUMENT: the collection names what the graph does not have.
TFC_MUST_USE tfc_status tfc_session_fill_queues(struct tfc_session *session, const uint16_t *placement);

// --- For the executor --------------------------------------------------------------------------------------------
struct tfc_queue_threads;
void tfc_queue_threads_free(struct tfc_queue_threads *t); // ends them; NULL is fine
// Starts what fills the queues that these nodes of the session's graph wait for; false: nothing more to start.
bool tfc_queue_threads_start(struct tfc_queue_threads *t, const uint32_t *nodes, uint32_t count);
// What became of a step: with the error of a thread that failed, which is why the step did.
TFC_MUST_USE tfc_status tfc_queue_threads_explain(struct tfc_queue_threads *t, tfc_status status);

#endif
