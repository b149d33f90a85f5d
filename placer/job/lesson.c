#include "placer/job/lesson.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_PROFILES = 8 };

struct lesson {
  const struct tfc_job_model *model;
  const struct tfc_fusion *fusion;
  double *us;                               // [graph node] its time; a node may run as several operations
  struct tfc_learned_operation *operations; // [cost_count]
  uint32_t count;
};

static double prior_us(const struct lesson *l, uint32_t node, uint32_t device) {
  const struct tfc_job_model *m = l->model;
  const uint32_t c = node < m->o->graph->node_count ? m->subject->cost_of[node] : TFC_NONE;
  const struct tfc_problem *p = m->prior_problem;
  if (c == TFC_NONE || tfc_problem_time(p, c, device) <= 0) return 0;
  return fmax(0, 1e-6 * (double)tfc_problem_time(p, c, device) - p->machine->devices[device].dispatch_us);
}

static void add_one(struct lesson *l, const struct tfc_profile_op *o, uint32_t node, double factor) {
  const double us = prior_us(l, node, o->device);
  if (!(us > 0) || l->count == l->model->subject->cost_count) return;
  l->operations[l->count++] = (struct tfc_learned_operation){l->model->subject->cost_of[node], o->device,
                                                             1e-3 * (double)o->start_ns, us * factor};
}

// Adds the time of an operation. If rewrites fused several nodes into it, each node gets its share of the time.
static void add_operation(struct lesson *l, const struct tfc_profile_op *o) {
  const struct tfc_fusion *f = l->fusion;
  const bool fused = f->first && o->node < f->node_count;
  const uint32_t begin = fused ? f->first[o->node] : 0, end = fused ? f->first[o->node + 1] : 0;
  double expected = prior_us(l, o->node, o->device);
  for (uint32_t i = begin; i < end; i++) expected += prior_us(l, f->member[i], o->device);
  if (!(expected > 0)) return;
  const double factor = l->us[o->node] / expected;
  add_one(l, o, o->node, factor);
  for (uint32_t i = begin; i < end; i++) add_one(l, o, f->member[i], factor);
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Finds the time of each operation: the median over the steps. All these steps are one sample, because they were
// measured within a minute, and the model must learn what differs between minutes.
static tfc_status find_times(struct lesson *l, const struct tfc_measured *m) {
  const uint32_t count = m->profile_count < MOST_PROFILES ? m->profile_count : MOST_PROFILES;
  const size_t nodes = l->model->o->graph->node_count;
  double *all = calloc(nodes * count + 1, sizeof *all);
  if (!all) return tfc_status_no_memory("learning from a step");
  for (uint32_t i = 0; i < count; i++)
    for (size_t k = 0; k < m->profiles[i].ops.count; k++) {
      const struct tfc_profile_op *o = &m->profiles[i].ops.data[k];
      if (o->node < nodes) all[o->node * count + i] += 1e-3 * (double)o->duration_ns;
    }
  for (size_t n = 0; n < nodes; n++) {
    qsort(all + n * count, count, sizeof *all, ascending);
    l->us[n] = all[n * count + count / 2];
  }
  free(all);
  return NULL;
}

tfc_status tfc_job_lesson(struct tfc_job_model *m, const struct tfc_solution *solution, double step_us,
                          const struct tfc_measured *measured) {
  tfc_status s = NULL;
  struct tfc_fusion fusion = {0};
  struct lesson l = {.model = m, .fusion = &fusion};
  if (!m->learned) return NULL;
  if (!measured->profile_count) return tfc_job_model_learn_step(m, solution, step_us, NULL);
  l.us = calloc(m->o->graph->node_count + 1u, sizeof *l.us);
  l.operations = calloc(m->subject->cost_count + 1u, sizeof *l.operations);
  if (!l.us || !l.operations) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_fusion_init(&fusion, measured->done_by, measured->done_by_count, m->plain, m->kept));
  TFC_TRY(s, find_times(&l, measured));
  // the start times are taken from this step
  const struct tfc_step_profile *p = &measured->profiles[measured->profile_count / 2];
  for (size_t i = 0; i < p->ops.count; i++) {
    const struct tfc_profile_op *o = &p->ops.data[i];
    if (o->node < m->o->graph->node_count && l.us[o->node] > 0) add_operation(&l, o), l.us[o->node] = 0;
  }
  const struct tfc_learned_trace trace = {.operations = l.operations, .operation_count = l.count};
  TFC_TRY(s, tfc_job_model_learn_step(m, solution, step_us, &trace));
out:
  tfc_fusion_deinit(&fusion);
  free(l.us);
  free(l.operations);
  return s;
}
