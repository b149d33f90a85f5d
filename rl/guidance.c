#include "rl/guidance.h"

#include <stdlib.h>
#include <string.h>

#include "rl/tuner.h"

#define VERSION 1u // of what the policy keeps of a search; a change of what is written, or of what it means, raises it

struct tfc_guidance {
  const struct tfc_policy *policy;
  const struct tfc_problem *problem;
  struct tfc_tuner *tuner;       // made by the first `propose`, with the seed and the threads of its budget
  struct tfc_tuner *before;      // the best of the tuners that were used before `propose` began anew; NULL: none
  uint32_t begun;                // how often `propose` began anew
  struct tfc_guide_samples gone; // samples of the tuners that were freed
};

// The tuner that found the best placement; NULL: there is none yet.
static struct tfc_tuner *best_of(const struct tfc_guidance *g) {
  if (!g->tuner || !g->before) return g->tuner ? g->tuner : g->before;
  return g->tuner->elite_count && tfc_score_better(g->tuner->elite[0].score, g->before->elite[0].score) ? g->tuner
                                                                                                        : g->before;
}

static tfc_status open_guidance(const struct tfc_guide *guide, const struct tfc_problem *p, struct tfc_guidance **out) {
  struct tfc_guidance *g = calloc(1, sizeof *g);
  if (!g) return tfc_status_no_memory("a policy");
  *g = (struct tfc_guidance){.policy = tfc_policy_of(guide), .problem = p};
  *out = g;
  return NULL;
}

static void close_guidance(struct tfc_guidance *g) {
  if (!g) return;
  if (best_of(g))
    tfc_status_free(
        tfc_policy_learn(g->policy, best_of(g))); // if memory runs out, what was learned is lost, which is no error
  tfc_tuner_free(g->tuner);
  tfc_tuner_free(g->before);
  free(g);
}

static tfc_status propose(struct tfc_guidance *g, const struct tfc_budget *budget, uint32_t count,
                          tfc_status (*found)(void *user, const struct tfc_solution *solution, struct tfc_score score),
                          void *user, uint64_t *out_evaluations) {
  if (!g->tuner)
    TFC_RETURN_IF_ERROR(tfc_tuner_create(g->problem, g->policy, budget->seed + g->begun * 0x9e3779b97f4a7c15u,
                                         budget->threads, &g->tuner));
  const uint64_t before = g->tuner->told;
  TFC_RETURN_IF_ERROR(tfc_tuner_run(g->tuner, budget));
  *out_evaluations += g->tuner->told - before;
  for (uint32_t i = 0; i < g->tuner->elite_count && i < count; i++) {
    const struct tfc_solution solution = {.device = g->tuner->elite[i].device};
    if (g->tuner->elite[i].score.value == TFC_TIME_MAX) break;
    TFC_RETURN_IF_ERROR(found(user, &solution, g->tuner->elite[i].score));
  }
  return NULL;
}

static void begin_anew(struct tfc_guidance *g) {
  if (!g->tuner || !g->tuner->elite_count) return;
  struct tfc_tuner *best = best_of(g), *other = best == g->tuner ? g->before : g->tuner;
  if (other) tfc_tuner_add_samples(other, &g->gone);
  tfc_tuner_free(other);
  g->before = best, g->tuner = NULL, g->begun++;
}

static tfc_status improve(const struct tfc_guidance *g, const struct tfc_budget *budget, struct tfc_solution *solution,
                          struct tfc_score *score, uint64_t *out_evaluations) {
  if (!best_of(g)) return NULL; // nothing was learned of the problem yet
  return tfc_improve(best_of(g), budget, solution, score, out_evaluations);
}

static void samples(const struct tfc_guidance *g, struct tfc_guide_samples *out) {
  *out = g->gone;
  if (g->before) tfc_tuner_add_samples(g->before, out);
  if (g->tuner) tfc_tuner_add_samples(g->tuner, out);
}

static tfc_status archive(const struct tfc_guide *guide, const struct tfc_problem *p, uint32_t threads,
                          struct tfc_guidance **guidance, struct tfc_archive *a) {
  uint32_t parts = *guidance ? 1 + (best_of(*guidance) != NULL) : 0;
  const uint32_t now[] = {VERSION, TFC_WEIGHTS};
  uint32_t then[] = {VERSION, TFC_WEIGHTS};
  tfc_archive_bytes(a, then, sizeof then);
  if (!a->broken && memcmp(then, now, sizeof now) != 0)
    return tfc_status_make(
        TFC_INVALID_ARGUMENT,
        "its learned policy was kept by another version of tfc, in format %u with %u weights instead "
        "of format %u with %u; the search has to begin anew",
        then[0], then[1], now[0], now[1]);
  tfc_policy_archive_notes(tfc_policy_of(guide), a);
  if (!tfc_archive_count(a, &parts, 2) || !parts) return NULL;
  if (!*guidance) TFC_RETURN_IF_ERROR(open_guidance(guide, p, guidance));
  struct tfc_guidance *g = *guidance;
  if (parts < 2) return NULL;
  if (!best_of(g)) TFC_RETURN_IF_ERROR(tfc_tuner_create(p, g->policy, 0, threads, &g->tuner)); // its seed is read below
  // Of the other tuners only their samples are used, which the search itself keeps.
  tfc_tuner_archive(best_of(g), a);
  return NULL;
}

const struct tfc_guide tfc_guidance_guide = {.open = open_guidance,
                                             .propose = propose,
                                             .improve = improve,
                                             .samples = samples,
                                             .close = close_guidance,
                                             .archive = archive,
                                             .begin_anew = begin_anew};
