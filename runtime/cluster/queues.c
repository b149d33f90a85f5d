// Runs queue runners. Each enqueue operation has a thread that runs it as a step of its own, again and again, until it
// fails. If the queue runner expects this failure (the end of the input), its last thread closes the queue. Any other
// failure closes the queues of all runners, so that steps which wait for them fail, too.
#include "runtime/cluster/queues.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/pass/queue_runners.h"

struct thread {
  struct tfc_cluster_queues *queues;
  uint32_t runner, enqueue;
  pthread_t thread;
};
struct tfc_cluster_queues {
  const struct tfc_graph *graph;
  struct tfc_cluster_filler filler;
  struct tfc_queue_runners runners;
  _Atomic bool stop;
  pthread_mutex_t lock;   // guards the fields below
  pthread_cond_t changed; // a pause has ended, or all end
  uint32_t pauses;        // pauses that have not ended
  bool *started;          // [runner]
  uint32_t *running;      // [runner] number of threads that run
  TFC_ARRAY(struct thread *) threads;
  tfc_status failure;
};

tfc_status tfc_cluster_queues_create(const struct tfc_graph *graph, const struct tfc_cluster_filler *filler,
                                     struct tfc_cluster_queues **out) {
  tfc_status s = NULL;
  struct tfc_cluster_queues *q = calloc(1, sizeof *q);
  *out = NULL;
  if (!q) return tfc_status_no_memory("queue runners");
  q->graph = graph;
  q->filler = *filler;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->changed, NULL);
  TFC_TRY(s, tfc_queue_runners_read(graph, &q->runners));
  q->started = calloc(q->runners.count + 1u, sizeof *q->started);
  q->running = calloc(q->runners.count + 1u, sizeof *q->running);
  if (!q->started || !q->running) TFC_TRY(s, tfc_status_no_memory("queue runners"));
  if (q->runners.count) *out = q, q = NULL;
out:
  tfc_cluster_queues_free(q);
  return s;
}

void tfc_cluster_queues_free(struct tfc_cluster_queues *q) {
  if (!q) return;
  pthread_mutex_lock(&q->lock);
  atomic_store(&q->stop, true);
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  for (size_t i = 0; i < q->threads.count; i++) {
    pthread_join(q->threads.data[i]->thread, NULL);
    free(q->threads.data[i]);
  }
  tfc_array_free(&q->threads);
  tfc_queue_runners_deinit(&q->runners);
  tfc_status_free(q->failure);
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  free(q->started);
  free(q->running);
  free(q);
}

bool *tfc_cluster_queues_wanted(const struct tfc_cluster_queues *q, const bool *needed) {
  const uint32_t nodes = q->graph->node_count;
  bool *all = calloc(nodes + 1u, sizeof *all), *wanted = calloc(q->runners.count + 1u, sizeof *wanted), any = false;
  uint32_t *stack = calloc(nodes + 1u, sizeof *stack);
  if (all && wanted && stack) {
    memcpy(all, needed, nodes * sizeof *all);
    tfc_queue_runners_need(&q->runners, q->graph, all, wanted, stack);
    for (uint32_t i = 0; i < q->runners.count; i++) any |= wanted[i];
  }
  free(all);
  free(stack);
  if (any) return wanted;
  free(wanted);
  return NULL;
}

// Runs a node of the graph as a step, when there is no pause.
static tfc_status run(struct tfc_cluster_queues *q, uint32_t node) {
  pthread_mutex_lock(&q->lock);
  while (q->pauses && !atomic_load(&q->stop)) pthread_cond_wait(&q->changed, &q->lock);
  atomic_fetch_add(q->filler.active, 1);
  pthread_mutex_unlock(&q->lock);
  tfc_status s = q->filler.run(q->filler.arg, node, &q->stop);
  atomic_fetch_sub(q->filler.active, 1);
  return s;
}

static void fail(struct tfc_cluster_queues *q, uint32_t runner, tfc_status s) {
  pthread_mutex_lock(&q->lock);
  const bool first = !q->failure && !atomic_load(&q->stop);
  if (first)
    q->failure = tfc_status_annotate(s, "the queue runner of '%.*s'",
                                     TFC_STR_ARG(q->graph->nodes[q->runners.list[runner].queue].name));
  else
    tfc_status_free(s);
  pthread_mutex_unlock(&q->lock);
  for (uint32_t i = 0; first && i < q->runners.count; i++)
    if (q->started[i] && q->runners.list[i].cancel != TFC_NONE) tfc_status_free(run(q, q->runners.list[i].cancel));
}

static void *fill(void *arg) {
  const struct thread *t = arg;
  struct tfc_cluster_queues *q = t->queues;
  const struct tfc_queue_runner *runner = &q->runners.list[t->runner];
  tfc_status s = NULL;
  while (!s && !atomic_load(&q->stop)) s = run(q, t->enqueue);
  const bool proper = s && (runner->ending >> tfc_status_code(s) & 1);
  pthread_mutex_lock(&q->lock);
  const bool last = --q->running[t->runner] == 0;
  pthread_mutex_unlock(&q->lock);
  if (proper && last && runner->close != TFC_NONE && !atomic_load(&q->stop))
    // An error is ignored: the queue may already be closed.
    tfc_status_free(run(q, runner->close));
  if (s && !proper)
    fail(q, t->runner, s);
  else
    tfc_status_free(s);
  return NULL;
}

void tfc_cluster_queues_start(struct tfc_cluster_queues *q, const bool *wanted) {
  pthread_mutex_lock(&q->lock);
  for (uint32_t i = 0; i < q->runners.count && !atomic_load(&q->stop); i++) {
    const struct tfc_queue_runner *runner = &q->runners.list[i];
    if (!wanted[i] || q->started[i]) continue;
    q->started[i] = true;
    for (uint32_t k = 0; k < runner->enqueue_count; k++) {
      struct thread *t = calloc(1, sizeof *t);
      if (!t) continue;
      *t = (struct thread){.queues = q, .runner = i, .enqueue = runner->enqueues[k]};
      q->running[i]++;
      if (tfc_array_reserve(&q->threads, q->threads.count + 1) && pthread_create(&t->thread, NULL, fill, t) == 0) {
        (void)tfc_array_push(&q->threads, t);
        continue;
      }
      q->running[i]--;
      free(t);
    }
  }
  pthread_mutex_unlock(&q->lock);
}

void tfc_cluster_queues_pause(struct tfc_cluster_queues *q) {
  pthread_mutex_lock(&q->lock);
  q->pauses++;
  pthread_mutex_unlock(&q->lock);
}
void tfc_cluster_queues_go_on(struct tfc_cluster_queues *q) {
  pthread_mutex_lock(&q->lock);
  q->pauses--;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
}

tfc_status tfc_cluster_queues_explain(struct tfc_cluster_queues *q, tfc_status status) {
  if (!q || !status) return status;
  pthread_mutex_lock(&q->lock);
  tfc_status told = q->failure ? tfc_status_caused_by(status, q->failure) : status;
  pthread_mutex_unlock(&q->lock);
  return told;
}
