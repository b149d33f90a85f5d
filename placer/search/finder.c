#include "placer/search/finder.h"

#include <math.h>

#include "placer/search/search_job.h"
#include "runtime/base/parallel.h"

// From so many evaluations for each unit and device a problem is small (docs/measurements/learning.md#small-problems).
#define SMALL_FROM 6

uint64_t tfc_finder_spent(const struct tfc_finder *f) {
  return f->out->evaluations;
}

void tfc_finder_tick(void *user) {
  struct tfc_finder *f = user;
  if (f->o->cancel && atomic_load(f->o->cancel)) atomic_store(&f->stop, true);
  if (!f->o->progress) return;
  pthread_mutex_lock(&f->lock);
  struct tfc_search_progress progress = {
      .algorithm = f->at_work,
      .seconds = tfc_now_s() - f->begin,
      .seconds_total = f->o->seconds,
      .evaluations = f->out->evaluations,
      .evaluations_total = f->limit,
      .best = f->shown.value,
      .feasible = f->shown.value != TFC_TIME_MAX && f->shown.excess == 0,
      .bound = f->out->bound.value,
  };
  pthread_mutex_unlock(&f->lock);
  f->o->progress(f->o->user, &progress);
}

tfc_status tfc_finder_keep(struct tfc_finder *f, const struct tfc_solution *solution, struct tfc_score score,
                           const char *name) {
  if (f->out->best.device && !tfc_score_better(score, f->course.best)) return NULL;
  TFC_RETURN_IF_ERROR(tfc_solution_copy(&f->out->best, solution, f->p));
  pthread_mutex_lock(&f->lock);
  f->course.best = score;
  if (tfc_score_better(score, f->shown)) f->shown = score;
  pthread_mutex_unlock(&f->lock);
  f->out->value = score.value, f->out->excess = score.excess, f->out->algorithm = name;
  if (score.value <= f->out->bound.value && score.excess == 0) {
    f->out->optimal = true;
    atomic_store(&f->stop, true);
  }
  return NULL;
}

void tfc_finder_found(void *user, uint64_t excess, int64_t value) {
  struct tfc_finder *f = user;
  const struct tfc_score score = {excess, value};
  pthread_mutex_lock(&f->lock);
  if (tfc_score_better(score, f->shown)) f->shown = score;
  pthread_mutex_unlock(&f->lock);
}

double tfc_finder_moment(const struct tfc_finder *f, double seconds) {
  return fmax(f->begin + seconds, 1e-9);
}

bool tfc_finder_is_cancelled(const struct tfc_finder *f) {
  return f->o->cancel && atomic_load(f->o->cancel);
}

bool tfc_finder_is_short(const struct tfc_finder *f) {
  return f->deadline <= 0 && f->limit && f->limit < TFC_SEARCH_ENOUGH;
}

bool tfc_finder_is_small(const struct tfc_finder *f, uint64_t evaluations) {
  return evaluations >= (uint64_t)SMALL_FROM * f->p->unit_count * f->p->device_count;
}

bool tfc_finder_is_over(const struct tfc_finder *f) {
  return atomic_load(&f->stop) || tfc_finder_is_cancelled(f) || (f->deadline > 0 && tfc_now_s() >= f->deadline) ||
         (f->limit && tfc_finder_spent(f) >= f->limit);
}

// --- Saving and resuming the state of a search ---------------------------------------------------------------------
const struct tfc_algo *tfc_finder_algo(const struct tfc_search_options *o, tfc_str name) {
  for (size_t i = 0; o->settings.extra && o->settings.extra[i]; i++)
    if (tfc_str_is(name, o->settings.extra[i]->name)) return o->settings.extra[i];
  return tfc_algo_find(name);
}

static const char *known_name(void *user, tfc_str name) {
  static const char *const others[] = {"start", "exhaustive", "ilp", "auto: policy", "auto: order"};
  const struct tfc_finder *f = user;
  const struct tfc_algo *algo = tfc_finder_algo(f->o, name);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (tfc_str_is(name, others[i])) return others[i];
  for (int i = 0; i < TFC_METHOD_COUNT; i++)
    if (tfc_str_is(name, tfc_search_method_names[i])) return tfc_search_method_names[i];
  return algo ? algo->name : NULL;
}

static tfc_status archive(struct tfc_finder *f, struct tfc_archive *a) {
  const struct tfc_course_names names = {known_name, f};
  const struct tfc_guide *guide = f->o->settings.guide;
  TFC_RETURN_IF_ERROR(tfc_course_archive(a, f->p, f->o, &names, &f->course, f->out));
  return guide && guide->archive ? guide->archive(guide, f->p, f->threads, &f->guidance, a) : NULL;
}

tfc_status tfc_finder_first_checkpoint(struct tfc_finder *f) {
  if (!f->o->kept) return NULL;
  struct tfc_text text = {0};
  struct tfc_archive a = {.out = &text};
  f->course.seconds = tfc_now_s() - f->begin;
  tfc_status s = archive(f, &a);
  if (!s && a.broken) s = tfc_status_no_memory("the state of a search");
  if (!s) s = f->o->kept(f->o->kept_user, (tfc_str){text.data, text.size});
  tfc_text_deinit(&text);
  return s;
}

tfc_status tfc_finder_checkpoint(struct tfc_finder *f) {
  return f->deadline <= 0 && tfc_finder_is_cancelled(f) ? NULL : tfc_finder_first_checkpoint(f);
}

tfc_status tfc_finder_checkpoint_phase(struct tfc_finder *f, enum tfc_search_stage stage) {
  if (tfc_finder_is_cancelled(f)) return NULL;
  f->course.stage = stage;
  return tfc_finder_checkpoint(f);
}

tfc_status tfc_finder_resume(struct tfc_finder *f) {
  struct tfc_archive a = {.rest = f->o->state};
  tfc_status s = archive(f, &a);
  if (!s && (a.broken || a.rest.size)) s = tfc_status_make(TFC_INVALID_ARGUMENT, "it is damaged");
  if (s) return tfc_status_annotate(s, "the state of the interrupted search cannot be used");
  f->shown = f->course.best;
  f->begin -= f->course.seconds;
  if (f->out->optimal) atomic_store(&f->stop, true);
  return NULL;
}
