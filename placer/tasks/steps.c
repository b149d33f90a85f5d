#include "placer/tasks/steps.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/graph/export.h"
#include "runtime/pass/pass.h"

enum { KEPT = 4 }; // so many sessions are kept open: the reference and those that are compared with it
static const int64_t step_ns = INT64_C(120000000000); // a step that takes longer counts as hung

struct kept {       // a placement's session
  uint16_t *device; // [node], NULL: none
  struct tfc_graph *graph;
  struct tfc_cluster_session *session;
  uint64_t used;
};
struct tfc_task_steps {
  struct tfc_task_steps_options o;
  struct kept kept[KEPT];
  uint64_t asked;
  struct tfc_output *feeds, *init_feeds;
  struct tfc_tensor *results;
};

static void drop(struct kept *k) {
  tfc_cluster_session_free(k->session);
  tfc_graph_release(k->graph);
  free(k->device);
  *k = (struct kept){0};
}

tfc_status tfc_task_steps_create(const struct tfc_task_steps_options *options, struct tfc_task_steps **out) {
  struct tfc_task_steps *t = calloc(1, sizeof *t);
  if (!t) return tfc_status_no_memory("steps of several tasks");
  const struct tfc_step_spec *step = options->step;
  t->o = *options;
  t->feeds = calloc(step->feed_count + 1u, sizeof *t->feeds);
  t->init_feeds = calloc(step->init_feed_count + 1u, sizeof *t->init_feeds);
  t->results = calloc(step->fetch_count + 1u, sizeof *t->results);
  if (!t->feeds || !t->init_feeds || !t->results) {
    tfc_task_steps_free(t);
    return tfc_status_no_memory("steps of several tasks");
  }
  for (uint32_t i = 0; i < step->feed_count; i++) t->feeds[i] = step->feeds[i].output;
  for (uint32_t i = 0; i < step->init_feed_count; i++) t->init_feeds[i] = step->init_feeds[i].output;
  *out = t;
  return NULL;
}

void tfc_task_steps_free(struct tfc_task_steps *t) {
  if (!t) return;
  for (int i = 0; i < KEPT; i++) drop(&t->kept[i]);
  free(t->feeds), free(t->init_feeds), free(t->results);
  free(t);
}

// Opens a session of the graph as its file has it, with the placement as device strings.
static tfc_status open_session(struct tfc_task_steps *t, struct kept *k) {
  tfc_status s = NULL;
  const uint32_t nodes = t->o.subject->graph->node_count;
  tfc_str *device = calloc(nodes + 1u, sizeof *device);
  if (!device) return tfc_status_no_memory("steps of several tasks");
  TFC_TRY(s, tfc_graph_load(t->o.graph, NULL, &k->graph));
  TFC_TRY(s, tfc_lower_loaded(&k->graph));
  if (k->graph->node_count != nodes)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s has changed since the run began", t->o.graph);
  for (uint32_t i = 0; i < nodes; i++) device[i] = t->o.machine->devices[k->device[i]].name;
  TFC_TRY(s, tfc_graph_set_devices(k->graph, device));
  TFC_TRY(s, tfc_cluster_session_create(t->o.member, k->graph, t->o.execution, &k->session));
out:
  free(device);
  return s;
}

static tfc_status find_session(struct tfc_task_steps *t, const struct tfc_placement *placement, struct kept **out) {
  tfc_status s = NULL;
  const uint32_t nodes = t->o.subject->graph->node_count;
  struct tfc_solution solution = {0};
  struct kept *k = &t->kept[0];
  uint16_t *device = malloc((nodes + 1u) * sizeof *device);
  if (!device) return tfc_status_no_memory("steps of several tasks");
  TFC_TRY(s, tfc_solution_init(&solution, t->o.problem));
  TFC_TRY(s, tfc_subject_resolve(t->o.subject, t->o.problem, placement, &solution));
  TFC_TRY(s, tfc_subject_assign(t->o.subject, t->o.problem, &solution, device, NULL, NULL));
  t->asked++;
  for (int i = 0; i < KEPT; i++) {
    struct kept *x = &t->kept[i];
    if (x->device && !memcmp(x->device, device, nodes * sizeof *device)) {
      *out = x, x->used = t->asked;
      goto out;
    }
    if (x->used < k->used) k = x; // the least recently used one
  }
  drop(k);
  k->device = device, device = NULL, k->used = t->asked;
  s = open_session(t, k);
  if (s) drop(k);
  *out = k;
out:
  tfc_solution_deinit(&solution);
  free(device);
  return s;
}

static tfc_status initialise(const struct tfc_task_steps *t, const struct kept *k) {
  const struct tfc_step_spec *step = t->o.step;
  const struct tfc_run_spec run = {.feeds = t->init_feeds,
                                   .feed_count = step->init_feed_count,
                                   .targets = step->inits,
                                   .target_count = step->init_count};
  if (!step->init_count) return NULL;
  tfc_status s = tfc_cluster_session_run(k->session, &run, t->o.init_feeds, NULL,
                                         &(struct tfc_run_options){.cancel = t->o.cancel, .deadline_ns = step_ns});
  return s ? tfc_status_annotate(s, "initialising variables") : NULL;
}

static tfc_status take_steps(struct tfc_task_steps *t, const struct kept *k, uint32_t warmup, uint32_t count,
                             struct tfc_command_answer *answer) {
  const struct tfc_step_spec *step = t->o.step;
  const struct tfc_run_spec run = {.feeds = t->feeds,
                                   .feed_count = step->feed_count,
                                   .fetches = step->fetches,
                                   .fetch_count = step->fetch_count,
                                   .targets = step->targets,
                                   .target_count = step->target_count};
  for (uint32_t i = 0; i < warmup + count; i++) {
    const int64_t begin = tfc_now_ns();
    TFC_RETURN_IF_ERROR(
        tfc_cluster_session_run(k->session, &run, t->o.feeds, t->results,
                                &(struct tfc_run_options){.cancel = t->o.cancel, .deadline_ns = step_ns}));
    const double us = 1e-3 * (double)(tfc_now_ns() - begin);
    for (uint32_t f = 0; f < step->fetch_count; f++) tfc_tensor_release(&t->results[f]);
    if (i >= warmup && !tfc_array_push(&answer->step_us, us)) return tfc_status_no_memory("steps of several tasks");
  }
  return NULL;
}

tfc_status tfc_task_steps_ask(void *steps, const struct tfc_placement *placement, uint32_t warmup, uint32_t count,
                              struct tfc_command_answer *answer) {
  struct tfc_task_steps *t = steps;
  struct kept *k = NULL;
  tfc_status s = find_session(t, placement, &k);
  if (!s) s = initialise(t, k);
  if (!s) s = take_steps(t, k, warmup, count, answer);
  const tfc_code code = tfc_status_code(s);
  if (!s) {
    answer->state = TFC_RESULT_OK;
    return NULL;
  }
  if (code == TFC_CANCELLED || tfc_member_has_failed(t->o.member)) return s;
  answer->step_us.count = 0;
  answer->state = code == TFC_RESOURCE_EXHAUSTED ? TFC_RESULT_NO_FIT : TFC_RESULT_FAILED;
  answer->message = tfc_str_dup(tfc_str_from(tfc_status_message(s)));
  tfc_status_free(s);
  return NULL;
}
