// Runs several steps in flight, each on a thread of its own: a thread starts its next step when its last one has ended.
// It measures the time between ends while all steps are under way: the first ends only fill the pipeline, and the steps
// that end after the last window only keep it full.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "placer/measure/pipeline.h"
#include "runtime/base/clock.h"

struct pipeline {
  struct tfc_worker *w;
  struct tfc_plan *plan, **copies;
  atomic_uint threads; // threads that have started
  uint32_t wanted;     // ends that are needed, including those that fill the pipeline
  pthread_mutex_t lock;
  uint32_t ended;   // guarded by `lock`
  int64_t *end_ns;  // [wanted] guarded by `lock`
  tfc_status error; // of the first step that failed, guarded by `lock`
  sem_t sign;       // posted at each end
  atomic_bool stop; // threads begin no more steps
};

static void end_of_step(struct pipeline *p, tfc_status s) {
  pthread_mutex_lock(&p->lock);
  if (s && !p->error) p->error = s, s = NULL;
  if (!p->error && p->ended < p->wanted) p->end_ns[p->ended++] = tfc_now_ns();
  bool over = p->error || p->ended == p->wanted;
  pthread_mutex_unlock(&p->lock);
  if (over) atomic_store(&p->stop, true);
  tfc_status_free(s);
  sem_post(&p->sign);
}

static void *run_steps(void *argument) {
  struct pipeline *p = argument;
  uint32_t fetches = p->w->step.fetch_count, number = atomic_fetch_add(&p->threads, 1);
  struct tfc_plan *plan = p->copies && number ? p->copies[number - 1] : p->plan;
  struct tfc_tensor *results = calloc(fetches + 1u, sizeof *results);
  if (!results) {
    end_of_step(p, tfc_status_no_memory(NULL));
    return NULL;
  }
  while (!atomic_load(&p->stop)) {
    tfc_status s = tfc_plan_run(plan, p->w->values, results, NULL);
    for (uint32_t i = 0; i < fetches; i++) tfc_tensor_release(&results[i]);
    end_of_step(p, s);
  }
  free(results);
  return NULL;
}

tfc_status tfc_worker_pipeline(struct tfc_worker *w, struct tfc_plan *plan, struct tfc_plan **copies, uint32_t entry,
                               uint32_t in_flight, uint32_t windows, int64_t *out_ns) {
  tfc_status s = NULL;
  struct pipeline p = {.w = w, .plan = plan, .copies = copies, .wanted = in_flight * (windows + 1)};
  uint32_t started = 0;
  pthread_t *threads = calloc(in_flight + 1u, sizeof *threads);
  pthread_mutex_init(&p.lock, NULL);
  sem_init(&p.sign, 0, 0);
  p.end_ns = calloc(p.wanted + 1u, sizeof *p.end_ns);
  if (!threads || !p.end_ns) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (; started < in_flight; started++)
    if (pthread_create(&threads[started], NULL, run_steps, &p))
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "no thread for another step");
  while (!s && !atomic_load(&p.stop)) {
    while (sem_wait(&p.sign)) {
    }
    s = tfc_worker_beat(w, entry);
  }
out:
  atomic_store(&p.stop, true);
  for (uint32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
  if (!s && p.error) s = p.error, p.error = NULL;
  for (uint32_t i = 0; !s && i < windows; i++)
    out_ns[i] = (p.end_ns[in_flight * (i + 2) - 1] - p.end_ns[in_flight * (i + 1) - 1]) / in_flight;
  tfc_status_free(p.error);
  sem_destroy(&p.sign);
  pthread_mutex_destroy(&p.lock);
  free(p.end_ns);
  free(threads);
  return s;
}
