// The run: rivals are read, rounds of search propose and read, the best are read in turns, the answer is written down.
#include "placer/elsewhere/elsewhere.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/private.h"
#include "runtime/base/clock.h"
#include "runtime/base/units.h"

static const double usual_seconds = 600; // without --time

static tfc_status no_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}

double tfc_elsewhere_seconds(const struct tfc_elsewhere *r) {
  return 1e-9 * (double)tfc_now_ns() - r->begin_s;
}
bool tfc_elsewhere_cancelled(const struct tfc_elsewhere *r) {
  return r->o->search.cancel && atomic_load(r->o->search.cancel);
}
uint32_t tfc_elsewhere_left(const struct tfc_elsewhere *r) {
  const uint32_t all = r->o->settings->measurements;
  return r->known.count < all ? all - (uint32_t)r->known.count : 0;
}

void tfc_elsewhere_say(struct tfc_elsewhere *r, bool warning, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (r->o->settings->say) r->o->settings->say(warning, text);
}

// Ranks count only where they are not the problem's own.
static uint64_t digest_of(const struct tfc_problem *p, const struct tfc_solution *s) {
  uint64_t hash = tfc_hash_bytes(s->device, p->unit_count * sizeof *s->device);
  if (s->rank && memcmp(s->rank, p->rank, p->node_count * sizeof *s->rank) != 0)
    hash ^= tfc_hash_bytes(s->rank, p->node_count * sizeof *s->rank) * 0x9e3779b97f4a7c15u;
  return hash;
}

tfc_status tfc_elsewhere_add(struct tfc_elsewhere *r, const char *name, const char *algorithm, const char *role,
                             const struct tfc_solution *solution, uint32_t *out_index, bool *out_new) {
  tfc_status s = NULL;
  struct tfc_verdict v = {0};
  const uint64_t digest = digest_of(r->problem, solution);
  *out_new = false;
  for (uint32_t i = 0; i < r->known.count; i++)
    if (r->known.data[i].digest == digest) return *out_index = i, NULL;
  struct tfc_elsewhere_known k = {.algorithm = algorithm,
                                  .role = role,
                                  .baseline = strcmp(role, "baseline") == 0,
                                  .digest = digest,
                                  .state = TFC_RESULT_CUT,
                                  .median_us = (double)NAN,
                                  .q1_us = (double)NAN,
                                  .q3_us = (double)NAN,
                                  .ratio = (double)NAN,
                                  .log_us = (double)NAN,
                                  .predicted_us = (double)NAN};
  k.name = name ? tfc_str_dup(tfc_str_from(name)) : tfc_format("#%zu", r->known.count + 1);
  if (!k.name) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_solution_copy(&k.solution, solution, r->problem));
  tfc_simulate(r->simulator, solution->device, solution->rank, TFC_TIME_MAX, &v);
  k.simulated_us = v.legal ? 1e-6 * (double)v.value : (double)NAN;
  if (!tfc_array_push(&r->known, k)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  *out_index = (uint32_t)r->known.count - 1, *out_new = true;
out:
  if (s) free(k.name), tfc_solution_deinit(&k.solution);
  return s;
}

static void forget(struct tfc_elsewhere_known *k) {
  free(k->name), free(k->note);
  tfc_solution_deinit(&k->solution);
  tfc_array_free(&k->final_us);
  tfc_array_free(&k->choose_us);
}

static void on_program(void *user, const char *text) {
  tfc_elsewhere_say(user, true, "%s", text);
}

static tfc_status set_up(struct tfc_elsewhere *r) {
  tfc_status s = NULL;
  const struct tfc_elsewhere_options *o = r->o;
  const struct tfc_elsewhere_settings *t = o->settings;
  const struct tfc_problem *p = r->problem;
  tfc_str *devices = calloc(p->device_count, sizeof *devices);
  if (!devices) return no_memory();
  for (uint32_t d = 0; d < p->device_count; d++) {
    devices[d] = p->machine->devices[d].name;
    if (!tfc_strmap_put(&r->device_of, devices[d], d, NULL)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  }
  for (uint32_t n = 0; n < p->node_count; n++)
    if (!tfc_strmap_put(&r->node_of, p->graph->names[n], n, NULL)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_simulator_create(p, &r->simulator));
  if (!t->prior) TFC_TRY(s, tfc_learned_create(p, &r->learned));
  TFC_TRY(s, tfc_command_start(&(struct tfc_command_options){.command = t->measure_with,
                                                             .graph = o->graph,
                                                             .machine = o->machine,
                                                             .devices = devices,
                                                             .device_count = p->device_count,
                                                             .timeout_s = t->timeout_s,
                                                             .stderr_to = t->stderr_to,
                                                             .temporary = t->temporary,
                                                             .cancel = o->search.cancel,
                                                             .say = on_program,
                                                             .user = r},
                               &r->program));
  TFC_TRY(s, tfc_elsewhere_open(r));
  TFC_TRY(s, tfc_evaluator_command(r->program, p, o->describe, o->user, tfc_elsewhere_observe, r, &r->evaluator));
  tfc_elsewhere_say(r, false, "steps run in '%s' (%s%s)", t->measure_with,
                    tfc_label_name(tfc_command_label(r->program)),
                    tfc_command_has_operations(r->program) ? ", with times of operations" : "");
out:
  free(devices);
  return s;
}

// Single devices and the rivals that were given.
static tfc_status read_rivals(struct tfc_elsewhere *r) {
  tfc_status s = NULL;
  const uint32_t count = r->o->rival_count;
  uint32_t *list = calloc(count + 1u, sizeof *list), some = 0;
  if (!list) return no_memory();
  for (uint32_t i = 0; i < count && tfc_elsewhere_left(r); i++) {
    uint32_t index;
    bool is_new;
    const struct tfc_elsewhere_rival *rival = &r->o->rivals[i];
    TFC_TRY(s, tfc_elsewhere_add(r, rival->name, NULL, "baseline", rival->solution, &index, &is_new));
    if (is_new) r->known.data[index].single = rival->single, list[some++] = index;
  }
  r->phase = "profile";
  TFC_TRY(s, tfc_elsewhere_read(r, list, some));
out:
  free(list);
  return s;
}

tfc_status tfc_elsewhere_run(const struct tfc_elsewhere_options *o, struct tfc_elsewhere_outcome *out) {
  tfc_status s = NULL;
  struct tfc_elsewhere r = {.o = o, .out = out, .problem = o->problem, .best = UINT32_MAX, .reference = UINT32_MAX};
  struct tfc_elsewhere_verdict verdict = {UINT32_MAX, UINT32_MAX, (double)NAN, (double)NAN, (double)NAN};
  bool cancelled = false;
  r.begin_s = 1e-9 * (double)tfc_now_ns();
  r.seconds = o->search.seconds > 0 || o->search.evaluations ? o->search.seconds : usual_seconds;
  tfc_random_init(&r.random, o->search.seed + 4099);
  TFC_TRY(s, set_up(&r));
  if (o->evaluate) {
    uint32_t index;
    bool is_new;
    TFC_TRY(s, tfc_elsewhere_add(&r, "given", "given", "candidate", o->evaluate, &index, &is_new));
    r.phase = "screen";
    TFC_TRY(s, tfc_elsewhere_read(&r, &index, 1));
    verdict.answer = index;
  } else {
    s = read_rivals(&r);
    if (!s) s = tfc_elsewhere_search(&r);
    cancelled = tfc_status_code(s) == TFC_CANCELLED;
    if (cancelled) { // what was read so far has an answer
      tfc_status_free(s);
      s = NULL;
    }
    if (s) goto out;
    r.phase = "final";
    TFC_TRY(s, tfc_elsewhere_final(&r, &verdict));
  }
  if (verdict.answer == UINT32_MAX && cancelled) TFC_FAIL(s, TFC_CANCELLED, "interrupted before a step was measured");
  TFC_TRY(s, tfc_elsewhere_answer(&r, &verdict));
  if (cancelled) out->exit_code = 130, out->cancelled = true;
out:
  if (s) out->exit_code = tfc_status_exit_code(s);
  if (r.store) s = tfc_status_join(s, tfc_elsewhere_close(&r, &verdict, s, cancelled));
  if (s && !out->exit_code) out->exit_code = tfc_status_exit_code(s);
  out->run = r.run;
  tfc_evaluator_free(r.evaluator);
  tfc_command_stop(r.program);
  tfc_learned_free(r.learned);
  tfc_simulator_free(r.simulator);
  for (size_t i = 0; i < r.known.count; i++) forget(&r.known.data[i]);
  tfc_array_free(&r.known);
  tfc_strmap_deinit(&r.node_of);
  tfc_strmap_deinit(&r.device_of);
  return s;
}

void tfc_elsewhere_outcome_deinit(struct tfc_elsewhere_outcome *o) {
  tfc_placement_free(o->placement);
  free(o->summary);
  *o = (struct tfc_elsewhere_outcome){0};
}
