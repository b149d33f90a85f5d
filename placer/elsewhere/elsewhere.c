// Runs all phases: measures the rivals, runs rounds of search that propose and measure, measures the best placements in
// turns, and writes the answer.
#include "placer/elsewhere/elsewhere.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/answer.h"
#include "placer/elsewhere/final.h"
#include "placer/elsewhere/readings.h"
#include "placer/elsewhere/record.h"
#include "placer/elsewhere/resume.h"
#include "placer/elsewhere/rounds.h"
#include "placer/elsewhere/tried.h"
#include "runtime/base/clock.h"
#include "runtime/base/units.h"

static const double usual_seconds = 600; // used if --time is not given

static void on_program(void *user, const char *text) {
  tfc_elsewhere_say(user, true, "%s", text);
}

// Describes a placement that is tried next. Over tasks it can end the whole job, this process too; another program that
// it ends is started again, and the placement has failed.
static tfc_status describe(void *user, const struct tfc_solution *solution, struct tfc_placement **out) {
  struct tfc_elsewhere *r = user;
  if (r->o->settings->ask) TFC_RETURN_IF_ERROR(tfc_elsewhere_try(r, solution));
  return r->o->describe(r->o->user, solution, out);
}

static tfc_status set_up(struct tfc_elsewhere *r) {
  tfc_status s = NULL;
  const struct tfc_elsewhere_options *o = r->o;
  const struct tfc_elsewhere_settings *t = o->settings;
  const struct tfc_problem *p = r->problem;
  tfc_str *devices = calloc(p->device_count, sizeof *devices);
  if (!devices) return tfc_status_no_memory("placing for another program");
  for (uint32_t d = 0; d < p->device_count; d++) {
    devices[d] = p->machine->devices[d].name;
    if (!tfc_strmap_put(&r->device_of, devices[d], d, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  for (uint32_t n = 0; n < p->node_count; n++)
    if (!tfc_strmap_put(&r->node_of, p->graph->names[n], n, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_simulator_create(p, &r->simulator));
  if (!t->prior) TFC_TRY(s, tfc_learned_create(p, false, &r->learned));
  TFC_TRY(s, tfc_command_start(&(struct tfc_command_options){.command = t->measure_with,
                                                             .ask = t->ask,
                                                             .ask_user = t->ask_user,
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
  if (t->resume) TFC_TRY(s, tfc_elsewhere_resume(r));
  TFC_TRY(s, tfc_evaluator_command(r->program, p, describe, r, tfc_elsewhere_observe, r, &r->evaluator));
  tfc_elsewhere_say(r, false, t->ask ? "steps run on %s (%s%s)" : "steps run in '%s' (%s%s)", t->measure_with,
                    tfc_label_name(tfc_command_label(r->program)),
                    tfc_command_has_operations(r->program) ? ", with times of operations" : "");
out:
  free(devices);
  return s;
}

// Measures single devices and the given rivals.
static tfc_status read_rivals(struct tfc_elsewhere *r) {
  tfc_status s = NULL;
  const uint32_t count = r->o->rival_count;
  uint32_t *list = calloc(count + 1u, sizeof *list), some = 0;
  if (!list) return tfc_status_no_memory("placing for another program");
  for (uint32_t i = 0; i < count && tfc_elsewhere_left(r); i++) {
    uint32_t index;
    bool is_new;
    const struct tfc_elsewhere_rival *rival = &r->o->rivals[i];
    TFC_TRY(s, tfc_elsewhere_add(r, rival->name, NULL, "baseline", rival->solution, &index, &is_new));
    if (is_new) r->known.data[index].single = rival->single, list[some++] = index;
  }
  r->phase = "profile";
  if (some) TFC_TRY(s, tfc_elsewhere_read(r, list, some)); // a resumed run has measured them already
out:
  free(list);
  return s;
}

tfc_status tfc_elsewhere_run(const struct tfc_elsewhere_options *o, struct tfc_elsewhere_outcome *out) {
  tfc_status s = NULL;
  struct tfc_elsewhere r = {.o = o, .out = out, .problem = o->problem, .best = TFC_NONE, .reference = TFC_NONE};
  struct tfc_elsewhere_verdict verdict = {TFC_NONE, TFC_NONE, (double)NAN, (double)NAN, (double)NAN};
  bool cancelled = false, in_final = false;
  r.begin_s = tfc_now_s();
  r.seconds = o->search.seconds > 0 || o->search.evaluations ? o->search.seconds : usual_seconds;
  TFC_TRY(s, set_up(&r));
  tfc_random_init(&r.random,
                  o->search.seed + 4099 + 65537 * r.known.count); // a resumed run draws other numbers than before
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
    if (cancelled) { // the best placement measured so far is the answer
      tfc_status_free(s);
      s = tfc_elsewhere_keep(&r);
    }
    if (s) goto out;
    r.phase = "final";
    TFC_TRY(s, tfc_elsewhere_final(&r, &verdict, &in_final));
    if (in_final && !cancelled) TFC_TRY(s, tfc_elsewhere_keep(&r));
    cancelled |= in_final;
  }
  if (verdict.answer == TFC_NONE && cancelled) TFC_FAIL(s, TFC_CANCELLED, "interrupted before a step was measured");
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
  tfc_elsewhere_forget(&r);
  tfc_strmap_deinit(&r.node_of);
  tfc_strmap_deinit(&r.device_of);
  return s;
}

void tfc_elsewhere_outcome_deinit(struct tfc_elsewhere_outcome *o) {
  tfc_placement_free(o->placement);
  free(o->summary);
  *o = (struct tfc_elsewhere_outcome){0};
}
