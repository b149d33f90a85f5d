#include "placer/tasks/links.h"

#include <math.h>
#include <string.h>

#include "profiler/statistics.h"
#include "runtime/base/clock.h"
#include "runtime/graph/builder.h"

enum { HOPS = 8, STEPS = 9, WARM = 3, FEWEST = 3, PAUSE_NS = 3000000 };
static const int64_t floats[TFC_TASK_LINK_SIZES] = {1, 4096, 65536, 1048576};

// Builds a chain of operations. Operation i is on task a, or on b if i is odd and `away`. One more operation is on b in
// any case, so that both chains begin and end with both tasks.
static tfc_status chain(const struct tfc_cluster_spec *spec, uint32_t a, uint32_t b_rank, int64_t size, bool away,
                        struct tfc_graph **out, uint32_t out_targets[2]) {
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  char here[TFC_TASK_TEXT], there[TFC_TASK_TEXT];
  tfc_cluster_task_name(spec, a, here);
  tfc_cluster_task_name(spec, b_rank, there);
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  tfc_builder_set_device(b, tfc_str_from(here));
  struct tfc_output x =
      tfc_add2(b, "Fill", tfc_add_i32_vector(b, &(int32_t){(int32_t)size}, 1), tfc_add_scalar(b, TFC_FLOAT, 1));
  for (int i = 1; i <= HOPS; i++) {
    tfc_builder_set_device(b, tfc_str_from(away && i % 2 ? there : here));
    x = tfc_add1(b, "Neg", x);
  }
  tfc_builder_set_device(b, tfc_str_from(there));
  const struct tfc_output other = tfc_add1(b, "Neg", tfc_add_scalar(b, TFC_FLOAT, 1));
  out_targets[0] = x.node, out_targets[1] = other.node;
  TFC_TRY(s, tfc_builder_finish(b, out));
out:
  tfc_builder_free(b);
  return s;
}

static bool late(double end_s) {
  return end_s > 0 && tfc_now_s() > end_s;
}

static tfc_status time_pair(struct tfc_member *member, const struct tfc_cluster_spec *spec, uint32_t a, uint32_t b,
                            int64_t size, double end_s, double *out_us) {
  tfc_status s = NULL;
  struct tfc_graph *graph[2] = {0};
  struct tfc_cluster_session *session[2] = {0};
  uint32_t targets[2][2];
  double us[2][STEPS];
  size_t n = 0;
  for (int k = 0; k < 2; k++) {
    TFC_TRY(s, chain(spec, a, b, size, k == 1, &graph[k], targets[k]));
    TFC_TRY(s, tfc_cluster_session_create(member, graph[k], &(struct tfc_execution){0}, &session[k]));
  }
  for (int i = 0; i < WARM + STEPS && (i < WARM + FEWEST || !late(end_s)); i++) {
    for (int k = 0; k < 2; k++) { // in turns, since machines drift
      const struct tfc_run_spec run = {.targets = targets[k], .target_count = 2};
      const int64_t begin = tfc_now_ns();
      TFC_TRY(s, tfc_cluster_session_run(session[k], &run, NULL, NULL, NULL));
      if (i >= WARM) us[k][n] = 1e-3 * (double)(tfc_now_ns() - begin);
    }
    n += i >= WARM;
  }
  *out_us = fmax(0, tfc_quartiles_of(us[1], n).median - tfc_quartiles_of(us[0], n).median) / HOPS;
out:
  for (int k = 0; k < 2; k++) {
    tfc_cluster_session_free(session[k]);
    tfc_graph_release(graph[k]);
  }
  return s;
}

// A step that comes at once finds a task that looks for messages, one that comes after a pause a task that sleeps. The
// pause is longer than any task looks for messages.
static tfc_status time_wake(struct tfc_member *member, const struct tfc_cluster_spec *spec, uint32_t a, uint32_t b,
                            double end_s, double *out_us) {
  tfc_status s = NULL;
  struct tfc_graph *graph = NULL;
  struct tfc_cluster_session *session = NULL;
  uint32_t targets[2];
  double us[2][STEPS];
  size_t n = 0;
  TFC_TRY(s, chain(spec, a, b, 1, false, &graph, targets));
  TFC_TRY(s, tfc_cluster_session_create(member, graph, &(struct tfc_execution){0}, &session));
  // The step with task b alone: where task a is not this one, it would be woken, too.
  const struct tfc_run_spec run = {.targets = &targets[1], .target_count = 1};
  for (int i = 0; i < WARM + STEPS && (i < WARM + FEWEST || !late(end_s)); i++) {
    for (int k = 0; k < 2; k++) {
      if (k == 0) tfc_sleep_ns(PAUSE_NS);
      const int64_t begin = tfc_now_ns();
      TFC_TRY(s, tfc_cluster_session_run(session, &run, NULL, NULL, NULL));
      if (i >= WARM) us[k][n] = 1e-3 * (double)(tfc_now_ns() - begin);
    }
    n += i >= WARM;
  }
  *out_us = fmax(0, tfc_quartiles_of(us[0], n).median - tfc_quartiles_of(us[1], n).median);
out:
  tfc_cluster_session_free(session);
  tfc_graph_release(graph);
  return s;
}

tfc_status tfc_task_links(struct tfc_member *member, const struct tfc_cluster_spec *spec, double end_s,
                          struct tfc_task_link *out, uint32_t *out_count) {
  const uint32_t tasks = (uint32_t)spec->tasks.count;
  uint32_t count = 0;
  for (uint32_t a = 0; a < tasks; a++)
    for (uint32_t b = a + 1; b < tasks; b++) {
      if (tasks > TFC_TASK_LINKS_ALL && a != 0 && b != a + 1) continue;
      struct tfc_task_link *l = &out[count++];
      *l = (struct tfc_task_link){.a = a, .b = b};
      for (int i = 0; i < TFC_TASK_LINK_SIZES; i++) {
        double us = 0;
        TFC_RETURN_IF_ERROR(time_pair(member, spec, a, b, floats[i], end_s, &us));
        l->point[i].bytes = 4.0 * (double)floats[i];
        l->point[i].time_us = i ? fmax(us, l->point[i - 1].time_us) : us;
      }
      TFC_RETURN_IF_ERROR(time_wake(member, spec, a, b, end_s, &l->wake_us));
    }
  *out_count = count;
  return NULL;
}
