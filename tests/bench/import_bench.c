// Measures how long reading and planning large graphs takes.
//
//   import_bench [NODES]      default 50,000
//
// read, cold:  a GraphDef of NODES nodes with 10 attributes each (23 MB for 50,000) from a file that the system's cache
//              has released, names and edges resolved; warm: again, the best of five. All nodes have the same
//              attributes, as those of a layer have; or no two nodes have
// train:       an unrolled training graph of NODES nodes or some more, with its gradients: read, shapes inferred,
//              planned; then planned for other placements on two devices, the first and the best of five
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/export.h"
#include "runtime/pass/pass.h"

enum { ATTRIBUTES = 9, WIDTH = 8, AGAIN = 5 };

static double since_ms(int64_t begin) {
  return (double)(tfc_now_ns() - begin) / 1e6;
}

static void forget(const char *path) { // drops the file from the page cache
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fdatasync(fd);
  (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

static tfc_status write_wide(long nodes, bool own, const char *path) {
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  char names[ATTRIBUTES][32], text[64];
  struct tfc_attr attrs[ATTRIBUTES];
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  struct tfc_output y = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE_SCALAR), x = y;
  for (int k = 0; k < ATTRIBUTES; k++) {
    snprintf(names[k], sizeof names[k], "_attribute_%d", k);
    attrs[k] = tfc_attr_string(names[k], TFC_STR("a value of an attribute"));
  }
  for (long i = 0; i < nodes; i++) { // with the attribute T these are ten attributes
    char name[64];
    snprintf(name, sizeof name, "model/layer_%ld/cell/addition_%ld", i / 100, i);
    snprintf(text, sizeof text, "its own value: %08ld", i);
    if (own) attrs[0] = tfc_attr_string(names[0], tfc_str_from(text));
    y = tfc_add(b, "AddV2", name, (struct tfc_output[]){y, x}, 2, attrs, ATTRIBUTES);
  }
  TFC_TRY(s, tfc_builder_finish(b, &g));
  TFC_TRY(s, tfc_graph_save(g, TFC_FORMAT_GRAPHDEF, NULL, NULL, path));
out:
  tfc_builder_free(b);
  tfc_graph_release(g);
  return s;
}

// Writes the graph: h = tanh(h W + x), over and over; the loss is the sum of h; every weight is trained.
static tfc_status write_training(long nodes, const char *path, uint32_t *out_nodes) {
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  enum { WEIGHTS = 16 };
  struct tfc_output weights[WEIGHTS], reads[WEIGHTS], grads[WEIGHTS];
  struct tfc_shape square = TFC_SHAPE(WIDTH, WIDTH);
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(4, WIDTH)), h = x;
  for (int k = 0; k < WEIGHTS; k++) {
    char name[32];
    snprintf(name, sizeof name, "weights_%d", k);
    struct tfc_attr attrs[] = {tfc_attr_shape("shape", &square), tfc_attr_type("dtype", TFC_FLOAT)};
    weights[k] = tfc_add(b, "VariableV2", name, NULL, 0, attrs, 2);
    reads[k] = tfc_add1(b, "Identity", weights[k]);
  }
  for (long i = 0; i < nodes / 6; i++)
    h = tfc_add1(b, "Tanh", tfc_add2(b, "AddV2", tfc_add2(b, "MatMul", h, reads[i % WEIGHTS]), x));
  struct tfc_output loss = tfc_add2(b, "Sum", h, tfc_add_i32_vector(b, (int32_t[]){0, 1}, 2));
  TFC_TRY(s, tfc_builder_gradients(b, &loss, 1, reads, WEIGHTS, NULL, grads));
  uint32_t updates[WEIGHTS];
  for (int k = 0; k < WEIGHTS; k++)
    updates[k] = tfc_add3(b, "ApplyGradientDescent", weights[k], tfc_add_scalar(b, TFC_FLOAT, 0.1), grads[k]).node;
  tfc_builder_add(
      b, &(struct tfc_node_spec){.op = "NoOp", .name = "train_op", .controls = updates, .control_count = WEIGHTS});
  TFC_TRY(s, tfc_builder_finish(b, &g));
  *out_nodes = g->node_count;
  TFC_TRY(s, tfc_graph_save(g, TFC_FORMAT_GRAPHDEF, NULL, NULL, path));
out:
  tfc_builder_free(b);
  tfc_graph_release(g);
  return s;
}

static tfc_status read_ms(const char *path, double *out_ms, struct tfc_graph **out) {
  int64_t begin = tfc_now_ns();
  TFC_RETURN_IF_ERROR(tfc_graph_load(path, NULL, out));
  *out_ms = since_ms(begin);
  return NULL;
}

static tfc_status bench_reading(long nodes, bool own, const char *path) {
  struct tfc_graph *g = NULL;
  double cold = 0, warm = 1e30, ms;
  TFC_RETURN_IF_ERROR(write_wide(nodes, own, path));
  forget(path);
  TFC_RETURN_IF_ERROR(read_ms(path, &cold, &g));
  for (int i = 0; i < AGAIN; i++) {
    tfc_graph_release(g), g = NULL;
    TFC_RETURN_IF_ERROR(read_ms(path, &ms, &g));
    if (ms < warm) warm = ms;
  }
  printf("read %u nodes with 10 attributes each, %s: cold %.1f ms, warm %.1f ms (wanted: 80, 40)\n", g->node_count,
         own ? "no two the same" : "all the same", cold, warm);
  tfc_graph_release(g);
  return NULL;
}

// Places all nodes after the first third on the other device, except `i` nodes and variables.
static void place(const struct tfc_graph *g, uint32_t i, uint16_t *placement) {
  for (uint32_t n = 0; n < g->node_count; n++)
    placement[n] = n > g->node_count / 3 + i && g->nodes[n].def && !(g->nodes[n].def->flags & TFC_OP_UPDATE);
}

int main(int argc, char **argv) {
  long nodes = argc > 1 ? strtol(argv[1], NULL, 10) : 50000;
  if (nodes < 100 || nodes > 10000000) {
    fprintf(stderr, "import_bench [NODES]\n");
    return 2;
  }
  tfc_status s = NULL;
  char folder[] = "/tmp/tfc-import-XXXXXX", wide[64], training[64];
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL, *other = NULL;
  uint16_t *placement = NULL;
  double first, infer, planned, again = 0, best = 1e30;
  uint32_t made = 0;
  if (!mkdtemp(folder)) return 1;
  snprintf(wide, sizeof wide, "%s/wide.pb", folder);
  snprintf(training, sizeof training, "%s/train.pb", folder);
  TFC_TRY(s, bench_reading(nodes, false, wide));
  TFC_TRY(s, bench_reading(nodes, true, wide));
  TFC_TRY(s, write_training(nodes, training, &made));
  TFC_TRY(s, tfc_devices_open("2", NULL, 0, &set));
  forget(training);
  TFC_TRY(s, read_ms(training, &first, &g));
  struct tfc_output x;
  TFC_TRY(s, tfc_graph_parse_output(g, TFC_STR("x:0"), &x));
  struct tfc_shape shape = TFC_SHAPE(4, WIDTH);
  uint32_t target = tfc_graph_find(g, TFC_STR("train_op"));
  struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .feed_shapes = &shape, .targets = &target, .target_count = 1};
  TFC_TRY(s, tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_shapes shapes = {0};
  int64_t begin = tfc_now_ns();
  TFC_TRY(s, tfc_infer_shapes(g, NULL, 0, &shapes));
  infer = since_ms(begin);
  tfc_shapes_deinit(&shapes);
  begin = tfc_now_ns();
  TFC_TRY(s, tfc_plan_create(session, &spec, &plan)); // infers shapes, too
  planned = since_ms(begin);
  placement = calloc(g->node_count, sizeof *placement);
  if (!placement) TFC_TRY(s, tfc_status_no_memory(NULL));
  spec.placement = placement;
  for (uint32_t i = 0; i < AGAIN; i++) {
    tfc_plan_free(other), other = NULL;
    place(g, i, placement);
    begin = tfc_now_ns();
    TFC_TRY(s, tfc_plan_create(session, &spec, &other));
    double ms = since_ms(begin);
    if (i == 0) again = ms;
    if (ms < best) best = ms;
  }
  printf("training graph of %u nodes, %u operations: read %.1f ms, shapes and plan %.1f ms (shapes alone %.1f ms), "
         "together %.1f ms (wanted: 400); planned for another placement: %.1f ms, the best of %d %.1f ms (wanted: "
         "80)\n",
         made, tfc_plan_info(plan)->op_count, first, planned, infer, first + planned, again, AGAIN, best);
out:
  if (s) fprintf(stderr, "import_bench: %s\n", tfc_status_message(s));
  free(placement);
  tfc_plan_free(plan);
  tfc_plan_free(other);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  unlink(wide);
  unlink(training);
  rmdir(folder);
  return s ? 1 : 0;
}
