#include "rl/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/search/archive.h"
#include "runtime/base/parallel.h"

enum { FEW = 4 };
#define WIDTH 0.3 // of the draws around `centre`, in spreads of the weights

tfc_status tfc_tuner_create(const struct tfc_problem *p, const struct tfc_policy *policy, uint64_t seed,
                            uint32_t threads, struct tfc_tuner **out) {
  tfc_status s = NULL;
  struct tfc_tuner *t = calloc(1, sizeof *t);
  if (!t) return tfc_status_no_memory("a policy");
  t->problem = p, t->policy = policy;
  t->threads = threads < 1 ? 1 : threads > TFC_TUNER_TRIALS ? TFC_TUNER_TRIALS : threads;
  tfc_random_init(&t->random, seed ^ 0x706f6c696379u);
  t->rollout = calloc(t->threads, sizeof(struct tfc_rollout *));
  t->simulator = calloc(t->threads, sizeof(struct tfc_simulator *));
  t->chosen = calloc((size_t)p->unit_count * p->device_count + 1, sizeof *t->chosen);
  if (!t->rollout || !t->simulator || !t->chosen) TFC_TRY(s, tfc_status_no_memory("a policy"));
  TFC_TRY(s, tfc_scene_create(p, &t->scene));
  for (int i = 0; i < TFC_TUNER_TRIALS; i++)
    if (!(t->trial[i].device = calloc((size_t)p->unit_count + 1, sizeof(tfc_device_id))))
      TFC_TRY(s, tfc_status_no_memory("a policy"));
  for (int i = 0; i <= TFC_TUNER_ELITE; i++)
    if (!(t->elite[i].device = calloc((size_t)p->unit_count + 1, sizeof(tfc_device_id))))
      TFC_TRY(s, tfc_status_no_memory("a policy"));
  *out = t, t = NULL;
out:
  tfc_tuner_free(t);
  return s;
}

void tfc_tuner_free(struct tfc_tuner *t) {
  if (!t) return;
  for (uint32_t i = 0; i < t->threads; i++) {
    if (t->rollout) tfc_rollout_free(t->rollout[i]);
    if (t->simulator) tfc_simulator_free(t->simulator[i]);
  }
  for (int i = 0; i < TFC_TUNER_TRIALS; i++) free(t->trial[i].device);
  for (int i = 0; i <= TFC_TUNER_ELITE; i++) free(t->elite[i].device);
  free(t->rollout), free(t->simulator), free(t->chosen);
  tfc_scene_free(t->scene);
  free(t);
}

// Mean and standard deviation of each weight over the first `count` of the elite. They change only when scores are
// told, so all draws of a round share them.
struct spread {
  uint32_t count; // of the best; 0: not computed yet
  double mean[TFC_WEIGHTS], wide[TFC_WEIGHTS];
};
static void find_spread(const struct tfc_tuner *t, uint32_t count, struct spread *out) {
  out->count = count;
  for (int i = 0; i < TFC_WEIGHTS; i++) {
    double mean = 0, square = 0;
    for (uint32_t k = 0; k < count; k++) mean += (double)t->elite[k].weights[i] / count;
    for (uint32_t k = 0; k < count; k++)
      square += ((double)t->elite[k].weights[i] - mean) * ((double)t->elite[k].weights[i] - mean) / count;
    out->mean[i] = mean, out->wide[i] = sqrt(square);
  }
}

// Makes the weights of a trial: those of a head; later drawn around the mean of the elite, or one of the elite plus the
// difference of two others, or one of the elite changed at random.
static void draw(struct tfc_tuner *t, uint64_t index, struct spread *around, struct tfc_trial *x) {
  struct tfc_random *r = &t->random;
  x->temperature = 0, x->ignored = x->central = false;
  if (index < t->policy->head_count || !t->elite_count) {
    memcpy(x->weights, t->policy->head[index % t->policy->head_count], sizeof x->weights);
    for (int i = 0; index >= t->policy->head_count && i < TFC_WEIGHTS; i++)
      x->weights[i] += t->policy->spread[i] * (float)tfc_random_normal(r);
    return;
  }
  const uint64_t turn = index - t->policy->head_count;
  uint32_t best = 4 + (uint32_t)(turn / 24);
  if (t->centre && tfc_random_below(r, 2)) {
    for (int i = 0; i < TFC_WEIGHTS; i++)
      x->weights[i] = (float)(t->centre[i] + WIDTH * (double)t->policy->spread[i] * tfc_random_normal(r));
    x->central = true;
    return;
  }
  if (best > t->elite_count) best = t->elite_count;
  if (tfc_random_below(r, 2)) { // around the mean
    if (around->count != best) find_spread(t, best, around);
    const double step = 0.5 * pow(3, 2 * tfc_random_unit(r) - 1);
    for (int i = 0; i < TFC_WEIGHTS; i++) {
      const double wide = around->wide[i] + step * (double)t->policy->spread[i];
      x->weights[i] = (float)(around->mean[i] + wide * tfc_random_normal(r));
    }
    return;
  }
  if (best >= 4 && tfc_random_below(r, 2)) { // one of the elite plus the difference of two others
    const uint32_t a = (uint32_t)tfc_random_below(r, best), b = (uint32_t)tfc_random_below(r, t->elite_count),
                   c = (uint32_t)tfc_random_below(r, t->elite_count);
    const double part = 0.3 + 0.6 * tfc_random_unit(r), crossed = 0.3 + 0.7 * tfc_random_unit(r);
    memcpy(x->weights, t->elite[a].weights, sizeof x->weights);
    for (int i = 0; i < TFC_WEIGHTS; i++)
      if (tfc_random_unit(r) < crossed)
        x->weights[i] += (float)(part * (double)(t->elite[b].weights[i] - t->elite[c].weights[i]) +
                                 0.03 * (double)t->policy->spread[i] * tfc_random_normal(r));
    return;
  }
  // One of the elite with some weights changed, a little or a lot.
  const uint32_t rank = (uint32_t)((double)best * tfc_random_unit(r) * tfc_random_unit(r));
  const double step = pow(0.1, 1.5 * tfc_random_unit(r)), share = tfc_random_unit(r);
  memcpy(x->weights, t->elite[rank].weights, sizeof x->weights);
  for (int i = 0; i < TFC_WEIGHTS; i++)
    if (tfc_random_unit(r) < share)
      x->weights[i] += (float)(4 * step * (double)t->policy->spread[i] * tfc_random_normal(r));
}

struct asked {
  struct tfc_tuner *t;
  uint32_t pieces;
  uint64_t seed;
  int64_t cutoff; // simulations stop there
};
static void work(void *user, uint32_t piece) {
  struct asked *a = user;
  struct tfc_tuner *t = a->t;
  for (uint32_t i = piece; i < t->trial_count; i += a->pieces) {
    struct tfc_random random;
    struct tfc_verdict v = {0};
    struct tfc_trial *x = &t->trial[i];
    tfc_random_init(&random, a->seed + i);
    const struct tfc_rollout_options o = {.temperature = x->temperature, .random = &random};
    tfc_rollout_run(t->rollout[piece], x->weights, &o, x->device);
    tfc_simulate(t->simulator[piece], x->device, NULL, a->cutoff, &v);
    x->score = tfc_score_of(&v), x->cut = v.cut;
  }
}

static tfc_status ask(struct tfc_tuner *t, uint32_t count, int64_t cutoff) {
  struct asked a = {t, count < t->threads ? count : t->threads, tfc_random_u64(&t->random), cutoff};
  struct spread around = {0};
  if (count > TFC_TUNER_TRIALS) count = TFC_TUNER_TRIALS;
  for (uint32_t i = 0; i < a.pieces; i++) {
    if (!t->rollout[i]) TFC_RETURN_IF_ERROR(tfc_rollout_create(t->scene, &t->rollout[i]));
    if (!t->simulator[i]) TFC_RETURN_IF_ERROR(tfc_simulator_create(t->problem, &t->simulator[i]));
  }
  t->trial_count = count;
  for (uint32_t i = 0; i < count; i++) draw(t, t->asked++, &around, &t->trial[i]);
  tfc_parallel(a.pieces, t->threads, work, &a);
  return NULL;
}

tfc_status tfc_tuner_ask(struct tfc_tuner *t, uint32_t count) {
  return ask(t, count, TFC_TIME_MAX);
}

// Returns a time such that a placement that takes as long, or longer, teaches the tuner nothing: that of the last of a
// full elite. TFC_TIME_MAX: there is none, also where a stopped simulation would not tell whether the placement is
// valid (which is counted), because a link may be missing or tensors may not fit.
static int64_t cutoff_of(const struct tfc_tuner *t) {
  const struct tfc_score last = t->elite[TFC_TUNER_ELITE - 1].score;
  const bool full = t->elite_count == TFC_TUNER_ELITE && !last.excess;
  return full && !t->problem->has_missing_links && !t->problem->live_matters ? last.value : TFC_TIME_MAX;
}

static void join(struct tfc_tuner *t, const struct tfc_trial *x) {
  uint32_t at = t->elite_count;
  while (at > 0 && tfc_score_better(x->score, t->elite[at - 1].score)) at--;
  if (at == TFC_TUNER_ELITE) return;
  if (at > 0 && t->elite[at - 1].score.value == x->score.value && t->elite[at - 1].score.excess == x->score.excess)
    return; // an equal score is most likely the same placement
  const struct tfc_trial room = t->elite[t->elite_count];
  memmove(&t->elite[at + 1], &t->elite[at], (t->elite_count - at) * sizeof *t->elite);
  t->elite[at] = room;
  tfc_device_id *device = room.device;
  memcpy(device, x->device, sizeof *device * t->problem->unit_count);
  t->elite[at] = *x;
  t->elite[at].device = device;
  if (t->elite_count < TFC_TUNER_ELITE) t->elite_count++;
}

static void count(struct tfc_tuner *t, const struct tfc_trial *x) {
  const struct tfc_problem *p = t->problem;
  t->invalid += (x->score.value == TFC_TIME_MAX && !x->cut) || x->score.excess > 0;
  for (uint32_t u = 0; u < p->unit_count; u++) t->chosen[(size_t)u * p->device_count + x->device[u]]++;
}

void tfc_tuner_tell(struct tfc_tuner *t) {
  for (uint32_t i = 0; i < t->trial_count; i++) {
    if (t->trial[i].ignored) continue;
    if (!t->trial[i].cut) join(t, &t->trial[i]);
    count(t, &t->trial[i]), t->told++;
  }
  t->trial_count = 0;
}

double tfc_tuner_entropy(const struct tfc_tuner *t) {
  const uint32_t units = t->problem->unit_count, devices = t->problem->device_count;
  double sum = 0;
  if (!t->told || !units || devices < 2) return 0;
  for (size_t i = 0; i < (size_t)units * devices; i++) {
    const double share = (double)t->chosen[i] / (double)t->told;
    if (share > 0) sum -= share * log(share);
  }
  return sum / (units * log(devices));
}

void tfc_tuner_add_samples(const struct tfc_tuner *t, struct tfc_guide_samples *s) {
  if (!t->told) return;
  const double before = (double)s->count, own = (double)t->told, all = before + own;
  s->invalid_share = (before * s->invalid_share + (double)t->invalid) / all;
  s->entropy = (before * s->entropy + own * tfc_tuner_entropy(t)) / all;
  s->count += t->told;
}

tfc_status tfc_tuner_run(struct tfc_tuner *t, const struct tfc_budget *budget) {
  const uint64_t begin = t->told;
  do {
    uint64_t count = TFC_TUNER_TRIALS;
    if (budget->evaluations && budget->evaluations - (t->told - begin) < count)
      count = budget->evaluations - (t->told - begin);
    // If a rollout takes long, the clock and cancelling are checked after a few of them. (Their number must not depend
    // on the number of threads, because what is drawn next depends on what was told.)
    if (t->problem->node_count > 20000 && count > FEW) count = FEW;
    TFC_RETURN_IF_ERROR(ask(t, (uint32_t)count, cutoff_of(t)));
    tfc_tuner_tell(t);
    if (t->elite_count) tfc_budget_found(budget, t->elite[0].score);
  } while (!(budget->evaluations && t->told - begin >= budget->evaluations) && !tfc_budget_over(budget));
  return NULL;
}

void tfc_tuner_archive(struct tfc_tuner *t, struct tfc_archive *a) {
  const struct tfc_problem *p = t->problem;
  tfc_archive_bytes(a, t->random.state, sizeof t->random.state);
  tfc_archive_bytes(a, &t->asked, sizeof t->asked);
  tfc_archive_bytes(a, &t->told, sizeof t->told);
  tfc_archive_bytes(a, &t->invalid, sizeof t->invalid);
  tfc_archive_bytes(a, t->chosen, sizeof *t->chosen * p->unit_count * p->device_count);
  if (!tfc_archive_count(a, &t->elite_count, TFC_TUNER_ELITE)) return;
  for (uint32_t i = 0; i < t->elite_count; i++) {
    struct tfc_trial *x = &t->elite[i];
    tfc_archive_bytes(a, x->weights, sizeof x->weights);
    tfc_archive_bytes(a, &x->temperature, sizeof x->temperature);
    tfc_archive_bytes(a, &x->score.excess, sizeof x->score.excess);
    tfc_archive_bytes(a, &x->score.value, sizeof x->score.value);
    tfc_archive_devices(a, p, x->device);
  }
}
