// Runs queue runners: a thread for each enqueue operation runs it again and again, as a step of its own, until it
// fails. If the failure is one that its queue runner expects (the end of the input), the last thread of that runner
// closes the queue. Any other failure ends all threads and closes their queues, so that steps that wait for these fail
// too.
#include "runtime/exec/queue_threads.h"

#include <stdlib.h>

#include "runtime/exec/session_internal.h"
#include "runtime/pass/queue_runners.h"

struct filler { // the threads of one queue runner
  struct tfc_queue_threads *all;
  const struct tfc_queue_runner *runner;
  uint32_t running; // running threads; guarded by the lock
  bool started;
};
struct worker {
  struct filler *filler;
  uint32_t enqueue;
  pthread_t thread;
};
struct tfc_queue_threads {
  struct tfc_session *session;
  const uint16_t *placement;
  struct tfc_queue_runners runners;
  struct filler *fillers; // [runners.count]
  _Atomic bool stop;
  pthread_mutex_t lock; // guards the members below
  TFC_ARRAY(struct worker *) workers;
  tfc_status failure;
};

static tfc_status run_node(struct tfc_queue_threads *t, uint32_t node, const _Atomic bool *cancel) {
  struct tfc_run_spec spec = {.targets = &node, .target_count = 1, .placement = t->placement};
  return t->session->planner->run(t->session, &spec, NULL, NULL, &(struct tfc_run_options){.cancel = cancel});
}

static void fail(struct tfc_queue_threads *t, const struct filler *f, tfc_status s) {
  const struct tfc_graph *g = t->session->graph;
  pthread_mutex_lock(&t->lock);
  bool first = !t->failure && !atomic_load(&t->stop);
  if (first)
    t->failure = tfc_status_annotate(s, "the queue runner of '%.*s'", TFC_STR_ARG(g->nodes[f->runner->queue].name));
  else
    tfc_status_free(s);
  pthread_mutex_unlock(&t->lock);
  if (!first) return;
  atomic_store(&t->stop, true);
  tfc_resources_wake(t->session->resources);
  for (uint32_t i = 0; i < t->runners.count; i++)
    if (t->fillers[i].started && t->runners.list[i].cancel != TFC_NONE)
      tfc_status_free(run_node(t, t->runners.list[i].cancel, NULL));
}

static void *fill(void *arg) {
  struct worker *w = arg;
  struct filler *f = w->filler;
  struct tfc_queue_threads *t = f->all;
  tfc_status s = NULL;
  while (!s && !atomic_load(&t->stop)) s = run_node(t, w->enqueue, &t->stop);
  bool proper = s && (f->runner->ending >> tfc_status_code(s) & 1);
  pthread_mutex_lock(&t->lock);
  bool last = --f->running == 0;
  pthread_mutex_unlock(&t->lock);
  if (proper && last && f->runner->close != TFC_NONE && !atomic_load(&t->stop))
    // an error is ignored, because the queue may already be closed
    tfc_status_free(run_node(t, f->runner->close, &t->stop));
  if (s && !proper)
    fail(t, f, s);
  else
    tfc_status_free(s);
  tfc_gate_helpers(&t->session->gate, -1);
  return NULL;
}

static bool start_worker(struct tfc_queue_threads *t, struct filler *f, uint32_t enqueue) {
  struct worker *w = calloc(1, sizeof *w);
  if (!w) return false;
  *w = (struct worker){.filler = f, .enqueue = enqueue};
  tfc_gate_helpers(&t->session->gate, 1);
  f->running++;
  if (tfc_array_push(&t->workers, w) && pthread_create(&w->thread, NULL, fill, w) == 0) return true;
  if (t->workers.count && t->workers.data[t->workers.count - 1] == w) t->workers.count--;
  f->running--;
  tfc_gate_helpers(&t->session->gate, -1);
  free(w);
  return false;
}

bool tfc_queue_threads_start(struct tfc_queue_threads *t, const uint32_t *nodes, uint32_t count) {
  const struct tfc_graph *g = t->session->graph;
  bool *needed = calloc(g->node_count + 1u, sizeof *needed), *wanted = calloc(t->runners.count + 1u, sizeof *wanted);
  uint32_t *stack = calloc(g->node_count + 1u, sizeof *stack);
  bool any = false;
  if (!needed || !wanted || !stack) goto out;
  for (uint32_t i = 0; i < count; i++) { // marks all inputs, of which one is the queue
    const struct tfc_node *n = &g->nodes[nodes[i]];
    for (uint32_t k = 0; k < n->input_count; k++) needed[tfc_node_inputs(g, n)[k].node] = true;
  }
  tfc_queue_runners_need(&t->runners, g, needed, wanted, stack);
  pthread_mutex_lock(&t->lock);
  for (uint32_t i = 0; i < t->runners.count && !atomic_load(&t->stop); i++) {
    struct filler *f = &t->fillers[i];
    if (!wanted[i] || f->started) continue;
    f->started = true;
    f->running++; // counts this function as a thread, so that no thread takes itself for the last one while others are
                  // being started
    for (uint32_t k = 0; k < f->runner->enqueue_count; k++) any |= start_worker(t, f, f->runner->enqueues[k]);
    f->running--;
  }
  pthread_mutex_unlock(&t->lock);
out:
  free(needed), free(wanted), free(stack);
  return any;
}

tfc_status tfc_queue_threads_explain(struct tfc_queue_threads *t, tfc_status status) {
  if (!t || !status) return status;
  pthread_mutex_lock(&t->lock);
  tfc_status told = t->failure ? tfc_status_caused_by(status, t->failure) : status;
  pthread_mutex_unlock(&t->lock);
  return told;
}

tfc_status tfc_session_fill_queues(struct tfc_session *session, const uint16_t *placement) {
  tfc_status s = NULL;
  struct tfc_queue_threads *t = calloc(1, sizeof *t);
  if (!t) return tfc_status_no_memory(NULL);
  t->session = session;
  t->placement = placement;
  pthread_mutex_init(&t->lock, NULL);
  TFC_TRY(s, tfc_queue_runners_read(session->graph, &t->runners));
  t->fillers = calloc(t->runners.count + 1u, sizeof *t->fillers);
  if (!t->fillers) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < t->runners.count; i++)
    t->fillers[i] = (struct filler){.all = t, .runner = &t->runners.list[i]};
  if (t->runners.count) session->queue_threads = t, t = NULL;
out:
  tfc_queue_threads_free(t);
  return s;
}

void tfc_queue_threads_free(struct tfc_queue_threads *t) {
  if (!t) return;
  atomic_store(&t->stop, true);
  tfc_resources_wake(t->session->resources);
  for (size_t i = 0; i < t->workers.count; i++) {
    pthread_join(t->workers.data[i]->thread, NULL);
    free(t->workers.data[i]);
  }
  tfc_array_free(&t->workers);
  tfc_queue_runners_deinit(&t->runners);
  tfc_status_free(t->failure);
  pthread_mutex_destroy(&t->lock);
  free(t->fillers);
  free(t);
}
