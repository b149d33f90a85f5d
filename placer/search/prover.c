#include "placer/search/prover.h"

#include <time.h>

#include "placer/exact/border.h"

// A search that is limited by evaluations waits for so many arcs of networks, about a second.
#define MOST_ARCS UINT64_C(40000000)

// The largest load of the best placement so far, in ps; TFC_TIME_MAX: there is none.
static int64_t best_so_far(struct tfc_finder *f) {
  pthread_mutex_lock(&f->lock);
  const struct tfc_score best = f->shown;
  pthread_mutex_unlock(&f->lock);
  return best.excess ? TFC_TIME_MAX : best.value;
}

static bool proves(const struct tfc_finder *f) {
  return f->o->prove && f->p->objective == TFC_OBJECTIVE_THROUGHPUT;
}

static void *prove(void *argument) {
  struct tfc_prover *t = argument;
  struct tfc_finder *f = t->finder;
  const double begin = f->begin + 0.35 * (f->deadline - f->begin);
  while (tfc_now_s() < begin && !atomic_load(&f->stop)) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  if (atomic_load(&f->stop)) return NULL;
  const struct tfc_border_limits limits = {.deadline = f->deadline, .stop = &f->stop};
  t->bound = tfc_border_bound(f->p, best_so_far(f), &limits);
  if (best_so_far(f) <= t->bound) atomic_store(&f->stop, true); // proven to be the best
  return NULL;
}

void tfc_prover_begin(struct tfc_finder *f, struct tfc_prover *t) {
  *t = (struct tfc_prover){.finder = f};
  if (!proves(f) || f->deadline <= 0 || f->deadline - tfc_now_s() < 2) return;
  t->started = pthread_create(&t->thread, NULL, prove, t) == 0;
}

void tfc_prover_end(struct tfc_finder *f, bool fine, struct tfc_prover *t) {
  if (t->started) pthread_join(t->thread, NULL);
  t->started = false;
  if (fine && proves(f) && f->deadline <= 0 && !tfc_finder_is_cancelled(f) && !f->out->optimal)
    t->bound = tfc_border_bound(f->p, best_so_far(f), &(struct tfc_border_limits){.arcs = MOST_ARCS});
  tfc_bound_raise(&f->out->bound, TFC_BOUND_BORDER, t->bound);
}
