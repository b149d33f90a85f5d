// Measures how near the kernels come to the peak of the processor, on one core (bind the process to one): the products
// of nmt's cells with packed weights, element-wise passes as plans run them, and a whole training step of nmt. It
// prints a line for each, with the peak and the bandwidth, which are measured before and after it.
//
//   kernels_bench [EXAMPLE]      default nmt; times are the fastest of 30, a step's the median of 15
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/graph/builder.h"
#include "runtime/host/gemm/gemm.h"
#include "tests/bench/roofline.h"
#include "tests/common/example.h"

enum { ROUNDS = 30, STEPS = 15 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static float *floats(int64_t count) {
  float *p = aligned_alloc(64, ((size_t)count * sizeof *p + 127) / 64 * 64);
  if (!p) abort();
  for (int64_t i = 0; i < count; i++) p[i] = (float)(i % 17) * 0.125f - 1.0f;
  return p;
}

// Computes C [m, n] = A [m, k] B [k, n], where B was packed before. Returns the seconds of one product. Several weights
// are used in turn, as in a step.
static double product(int64_t m, int64_t k, int64_t n, bool transposed) {
  enum { WEIGHTS = 4 };
  float *a = floats(m * k), *b = floats(k * n), *c = floats(m * n), *packed[WEIGHTS];
  float *scratch = aligned_alloc(64, (tfc_gemm_scratch_bytes(m, k) + 127) / 64 * 64);
  struct tfc_matrix matrix = {b, transposed ? 1 : n, transposed ? k : 1};
  double best = 1e30;
  if (!scratch) abort();
  for (int w = 0; w < WEIGHTS; w++) {
    packed[w] = aligned_alloc(64, (tfc_gemm_packed_bytes(k, n) + 63) / 64 * 64);
    if (!packed[w]) abort();
    tfc_gemm_pack(matrix, k, n, 0, tfc_gemm_panels(n), packed[w]);
  }
  for (int round = 0; round < ROUNDS; round++) {
    int64_t begin = tfc_now_ns();
    for (int i = 0; i < 5; i++) { // multiplies five times in a row by the same weight, as five cells do
      struct tfc_gemm_product p = {.a = {a, k, 1}, .packed_b = packed[round % WEIGHTS], .k = k};
      tfc_gemm_run(&p, 1, n, c, n, false, 0, m, 0, tfc_gemm_panels(n), scratch);
    }
    double s = (double)(tfc_now_ns() - begin) / 5e9;
    if (s < best) best = s;
  }
  for (int w = 0; w < WEIGHTS; w++) free(packed[w]);
  free(a), free(b), free(c), free(scratch);
  return best;
}

// Runs a plan of fused element-wise operations over 64 MB each. `out_rate`: bytes to and from memory per second.
static tfc_status pass(const char *name, double *out_rate) {
  enum { N = 1 << 24 };
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_output in[3], y;
  struct tfc_tensor values[3] = {0}, got = {0};
  struct tfc_shape shapes[3] = {TFC_SHAPE(N), TFC_SHAPE(N), TFC_SHAPE(N)};
  uint32_t inputs = strcmp(name, "x * y + z") == 0 ? 3 : 2;
  double best = 1e30;
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  for (uint32_t i = 0; i < inputs; i++) {
    in[i] = tfc_add_placeholder(b, (const char *const[]){"x", "y", "z"}[i], TFC_FLOAT, &shapes[i]);
    TFC_TRY(s, tfc_tensor_create(TFC_FLOAT, &shapes[i], &values[i]));
    for (int64_t k = 0; k < N; k++) ((float *)values[i].data)[k] = (float)(k % 17) * 0.125f - 1.0f;
  }
  if (inputs == 3)
    y = tfc_add2(b, "AddV2", tfc_add2(b, "Mul", in[0], in[1]), in[2]);
  else
    y = tfc_add2(b, "Mul", tfc_add1(b, "Sigmoid", in[0]), tfc_add1(b, "Tanh", in[1]));
  TFC_TRY(s, tfc_builder_finish(b, &g));
  TFC_TRY(s, tfc_devices_open("1", NULL, 0, &set));
  TFC_TRY(s, tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {
      .feeds = in, .feed_count = inputs, .feed_shapes = shapes, .targets = &y.node, .target_count = 1};
  TFC_TRY(s, tfc_plan_create(session, &spec, &plan));
  for (int i = 0; i < ROUNDS; i++) {
    int64_t begin = tfc_now_ns();
    TFC_TRY(s, tfc_plan_run(plan, values, &got, NULL));
    double t = (double)(tfc_now_ns() - begin) / 1e9;
    if (t < best) best = t;
  }
  *out_rate = (double)(inputs + 1) * N * sizeof(float) / best;
out:
  for (int i = 0; i < 3; i++) tfc_tensor_release(&values[i]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
  return s;
}

static tfc_status step(const char *name, const struct roofline *machine, double *out_us, double *out_floor_us) {
  static struct example e;
  tfc_status s = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec spec;
  double times[STEPS], flop, bytes;
  TFC_TRY(s, example_load(name, &e));
  TFC_TRY(s, tfc_devices_open("1", NULL, 0, &set));
  TFC_TRY(s, tfc_session_create(e.graph, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec init = {.targets = &e.init, .target_count = 1};
  TFC_TRY(s, tfc_session_run(session, &init, NULL, NULL, NULL));
  example_spec(&e, &spec);
  TFC_TRY(s, tfc_plan_create(session, &spec, &plan));
  for (int i = -2; i < STEPS; i++) {
    struct tfc_tensor loss = {0};
    int64_t begin = tfc_now_ns();
    TFC_TRY(s, tfc_plan_run(plan, e.values[0], &loss, NULL));
    if (i >= 0) times[i] = (double)(tfc_now_ns() - begin) / 1e3;
    tfc_tensor_release(&loss);
  }
  qsort(times, STEPS, sizeof *times, ascending);
  *out_us = times[STEPS / 2];
  TFC_TRY(s, roofline_of_plan(e.graph, &spec, plan, machine, out_floor_us, &flop, &bytes));
out:
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  example_deinit(&e);
  return s;
}

int main(int argc, char **argv) {
  static const struct {
    const char *what;
    int64_t m, k, n;
    bool transposed;
  } products[] = {{"cell of layer 1, forward", 32, 768, 2048, false},
                  {"cell of layer 2, forward", 32, 1024, 2048, false},
                  {"cell of layer 1, input's gradient", 32, 2048, 768, true},
                  {"cell of layer 2, input's gradient", 32, 2048, 1024, true},
                  {"softmax shard, forward", 32, 512, 2000, false}};
  static const char *const passes[] = {"x * y + z", "sigmoid(x) * tanh(y)"};
  const char *name = argc > 1 ? argv[1] : "nmt";
  tfc_status s = NULL;
  double rate, us, floor_us;
  struct roofline machine = roofline_measure(1);
  printf("peak of multiply-adds %.1f GFLOP/s, bandwidth %.1f GB/s\n", machine.flops / 1e9, machine.bytes / 1e9);
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    double flops = 2.0 * (double)(products[i].m * products[i].k * products[i].n) /
                   product(products[i].m, products[i].k, products[i].n, products[i].transposed);
    printf("product [%lld,%lld] [%lld,%lld]: %.1f GFLOP/s, %.0f %% of the peak (%s)\n", (long long)products[i].m,
           (long long)products[i].k, (long long)products[i].k, (long long)products[i].n, flops / 1e9,
           100 * flops / machine.flops, products[i].what);
  }
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    TFC_TRY(s, pass(passes[i], &rate));
    printf("pass %s: %.1f GB/s, %.0f %% of the bandwidth\n", passes[i], rate / 1e9, 100 * rate / machine.bytes);
  }
  TFC_TRY(s, step(name, &machine, &us, &floor_us));
  printf("step of %s, exact rewrites: %.1f ms, its roofline %.1f ms: %.0f %%\n", name, us / 1e3, floor_us / 1e3,
         100 * floor_us / us);
  machine = roofline_measure(1);
  printf("peak of multiply-adds %.1f GFLOP/s, bandwidth %.1f GB/s\n", machine.flops / 1e9, machine.bytes / 1e9);
out:
  if (s) fprintf(stderr, "kernels_bench: %s\n", tfc_status_message(s));
  return s ? 1 : 0;
}
