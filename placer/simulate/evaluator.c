// The simulated evaluator: each thread has a simulator, and takes one candidate after another.
#include "placer/simulate/evaluator.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/base/parallel.h"

void tfc_result_deinit(struct tfc_result *result) {
  free(result->busy), free(result->memory), free(result->path), free(result->message);
  *result = (struct tfc_result){0};
}

struct simulated {
  struct tfc_evaluator base;
  uint32_t threads;
  struct tfc_simulator **simulator; // [threads], each made at its first use
};

struct batch {
  struct simulated *self;
  const struct tfc_solution *candidates;
  const struct tfc_rules *rules;
  struct tfc_result *results;
  uint32_t count, pieces;
  int64_t reference; // ps; TFC_TIME_MAX: there is none
  bool *failed;      // [pieces]
};

static bool evaluate_one(struct tfc_simulator *simulator, const struct batch *b, uint32_t i) {
  const struct tfc_problem *p = b->self->base.problem;
  const struct tfc_solution *c = &b->candidates[i];
  struct tfc_result *r = &b->results[i];
  struct tfc_verdict v = {0};
  const int64_t begin = tfc_now_ns();
  if (b->rules->detail) {
    if (!r->busy) r->busy = calloc(p->device_count, sizeof *r->busy);
    if (!r->memory) r->memory = calloc(p->device_count, sizeof *r->memory);
    if (!r->busy || !r->memory) return false;
    v.busy = r->busy, v.memory = r->memory;
  }
  free(r->message), free(r->path);
  r->message = NULL, r->path = NULL, r->path_count = 0;
  tfc_simulate(simulator, c->device, c->rank, b->rules->cutoff, &v);
  r->label = TFC_LABEL_MODELLED;
  r->value = r->q1 = r->q3 = v.value;
  r->steps = 0, r->excess = v.excess, r->transfers = v.transfers, r->transfer_bytes = v.transfer_bytes;
  r->state = !v.legal ? TFC_RESULT_ILLEGAL : v.cut ? TFC_RESULT_CUT : v.feasible ? TFC_RESULT_OK : TFC_RESULT_NO_FIT;
  r->ratio = b->reference == TFC_TIME_MAX || v.value == TFC_TIME_MAX ? NAN : (double)v.value / (double)b->reference;
  if (b->rules->detail && v.legal && !v.cut) {
    struct tfc_timeline t = {0};
    tfc_status s = tfc_simulate_timeline(simulator, c->device, c->rank, &t);
    if (s) {
      tfc_status_free(s);
      return false;
    }
    r->path = malloc(sizeof *r->path * (t.path_count + 1u));
    for (uint32_t k = 0; r->path && k < t.path_count; k++)
      if (t.path[k] < t.node_count) r->path[r->path_count++] = t.path[k];
    bool ok = r->path != NULL;
    tfc_timeline_deinit(&t);
    if (!ok) return false;
  }
  r->cost_seconds = (double)(tfc_now_ns() - begin) * 1e-9;
  return true;
}

static void evaluate_piece(void *user, uint32_t piece) {
  struct batch *b = user;
  for (uint32_t i = piece; i < b->count && !b->failed[piece]; i += b->pieces)
    if (!evaluate_one(b->self->simulator[piece], b, i)) b->failed[piece] = true;
}

static tfc_status evaluate(struct tfc_evaluator *evaluator, const struct tfc_solution *candidates, uint32_t count,
                           const struct tfc_rules *rules, struct tfc_result *results) {
  struct simulated *self = (struct simulated *)evaluator;
  struct batch b = {.self = self, .candidates = candidates, .rules = rules, .results = results, .count = count};
  tfc_status s = NULL;
  b.pieces = count < self->threads ? count : self->threads;
  b.reference = TFC_TIME_MAX;
  b.failed = calloc(self->threads, sizeof *b.failed);
  if (!b.failed) return tfc_status_no_memory("evaluating");
  for (uint32_t i = 0; i < (b.pieces ? b.pieces : 1); i++)
    if (!self->simulator[i]) TFC_TRY(s, tfc_simulator_create(evaluator->problem, &self->simulator[i]));
  if (rules->reference) {
    struct tfc_verdict v = {0};
    tfc_simulate(self->simulator[0], rules->reference->device, rules->reference->rank, TFC_TIME_MAX, &v);
    b.reference = v.value;
  }
  tfc_parallel(b.pieces, self->threads, evaluate_piece, &b);
  for (uint32_t i = 0; i < b.pieces; i++)
    if (b.failed[i]) TFC_TRY(s, tfc_status_no_memory("evaluating"));
out:
  free(b.failed);
  return s;
}

static void free_simulated(struct tfc_evaluator *evaluator) {
  struct simulated *self = (struct simulated *)evaluator;
  for (uint32_t i = 0; self->simulator && i < self->threads; i++) tfc_simulator_free(self->simulator[i]);
  free(self->simulator);
  free(self);
}

static const struct tfc_evaluator_vtable vtable = {.name = "simulated", .evaluate = evaluate, .free = free_simulated};

tfc_status tfc_evaluator_simulated(const struct tfc_problem *problem, uint32_t threads, struct tfc_evaluator **out) {
  struct simulated *self = calloc(1, sizeof *self);
  if (self) {
    self->base = (struct tfc_evaluator){&vtable, problem};
    self->threads = threads ? threads : tfc_parallel_cores();
    self->simulator = calloc(self->threads, sizeof(struct tfc_simulator *));
  }
  if (!self || !self->simulator) {
    free(self);
    return tfc_status_no_memory("an evaluator");
  }
  *out = &self->base;
  return NULL;
}
