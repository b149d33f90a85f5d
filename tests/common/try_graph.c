// Runs a graph that a fuzzer made, within limits of time and memory.
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/interrupt.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "tests/common/made_graph.h"

enum { MOST = 64 };
static const int64_t second_ns = 1000000000;

static struct tfc_device_set *devices(void) {
  static struct tfc_device_set set;
  static const struct tfc_memory_limit limit = {"*", 64 << 20};
  if (set.count) return &set;
  tfc_file_forbid_writing();
  if (tfc_devices_open("cpu:0", &limit, 1, &set)) abort();
  return &set;
}

// Whether a program can fetch this output.
static bool is_fetchable(tfc_dtype t) {
  t = tfc_dtype_base(t);
  return t != TFC_RESOURCE && t != TFC_VARIANT && t != TFC_DTYPE_NONE;
}

struct trial {
  const struct tfc_graph *graph;
  struct tfc_session *session;
  bool dynamic;
  tfc_status failure; // the first failure
};
static void note(struct trial *t, tfc_status s) {
  if (t->failure)
    tfc_status_free(s);
  else
    t->failure = s;
}

static void run(struct trial *t, const struct tfc_output *fetches, uint32_t fetch_count, const uint32_t *targets,
                uint32_t target_count) {
  struct tfc_tensor got[MOST] = {{0}};
  struct tfc_run_spec spec = {.fetches = fetches,
                              .fetch_count = fetch_count,
                              .targets = targets,
                              .target_count = target_count,
                              .dynamic = t->dynamic};
  if (!fetch_count && !target_count) return;
  tfc_status s = tfc_session_run(t->session, &spec, NULL, got, &(struct tfc_run_options){.deadline_ns = second_ns});
  note(t, s);
  for (uint32_t i = 0; i < fetch_count; i++) tfc_tensor_release(&got[i]);
}

static void run_nodes(struct trial *t, uint32_t begin, uint32_t end) {
  const struct tfc_graph *g = t->graph;
  struct tfc_output fetches[MOST];
  uint32_t targets[MOST], fetch_count = 0, target_count = 0;
  for (uint32_t i = begin; i < end && i < g->node_count; i++) {
    if (target_count < MOST) targets[target_count++] = i;
    for (uint32_t o = 0; o < g->nodes[i].output_count && fetch_count < MOST; o++)
      if (is_fetchable(tfc_output_dtype(g, (struct tfc_output){i, (int32_t)o})))
        fetches[fetch_count++] = (struct tfc_output){i, (int32_t)o};
  }
  run(t, fetches, fetch_count, targets, target_count);
}

// Adds to the graph the gradients of its last floating-point output by every floating-point constant.
static tfc_status with_gradients(struct tfc_graph **graph) {
  const struct tfc_graph *g = *graph;
  struct tfc_output y = TFC_NO_OUTPUT, xs[MOST], grads[MOST];
  struct tfc_graph *more = NULL;
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    for (uint32_t o = 0; o < g->nodes[i].output_count; o++) {
      struct tfc_output out = {i, (int32_t)o};
      if (!tfc_dtype_is_floating(tfc_output_dtype(g, out))) continue;
      if (g->nodes[i].input_count)
        y = out;
      else if (count < MOST)
        xs[count++] = out;
    }
  if (!tfc_output_valid(y) || !count) return NULL;
  TFC_RETURN_IF_ERROR(tfc_gradients(g, &y, 1, xs, count, NULL, &more, grads));
  tfc_graph_release(*graph);
  *graph = more;
  return NULL;
}

tfc_status try_graph(tfc_str bytes, const char *path, const struct try_options *options) {
  struct tfc_graph *g = NULL;
  struct tfc_shapes shapes = {0};
  struct trial t = {.dynamic = options->dynamic};
  const struct tfc_device_set *set = devices();
  tfc_interrupt_at(tfc_now_ns() + 5 * second_ns, "the limit of a test");
  tfc_status s = NULL;
  TFC_TRY(s, tfc_graph_parse(bytes, path, NULL, &g));
  s = tfc_infer_shapes(g, NULL, 0, &shapes);
  tfc_shapes_deinit(&shapes);
  note(&t, s); // a session reports it too, and can still run other parts of the graph
  s = NULL;
  TFC_TRY(s, tfc_lower_loaded(&g));
  if (options->gradient) TFC_TRY(s, with_gradients(&g));
  struct tfc_session_options how = {.devices = set, .no_rewrites = options->no_rewrites, .callers = 1};
  TFC_TRY(s, tfc_session_create(g, &how, &t.session));
  t.graph = g;
  uint32_t inits[MOST], init_count = 0;
  for (uint32_t i = 0; i < g->node_count && init_count < MOST; i++)
    if (tfc_str_starts(g->nodes[i].name, "init")) inits[init_count++] = i;
  run(&t, NULL, 0, inits, init_count);
  for (int k = 0; k < 2; k++) {
    if (!options->one_by_one) run_nodes(&t, 0, g->node_count);
    for (uint32_t i = 0; options->one_by_one && i < g->node_count; i++)
      if (g->nodes[i].input_count || g->nodes[i].control_count) run_nodes(&t, i, i + 1);
  }
out:
  tfc_interrupt_at(0, NULL);
  tfc_session_free(t.session);
  tfc_graph_release(g);
  note(&t, s);
  return t.failure;
}
