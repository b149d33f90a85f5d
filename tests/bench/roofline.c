#include "tests/bench/roofline.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/pass/pass.h"

enum { STREAM_FLOATS = 8 << 20, STREAM_ROUNDS = 6, MOST_THREADS = 256 };

// --- Peak --------------------------------------------------------------------------------------------------------
// There are 24 independent chains of multiply-adds, more than latency times ports. They start from 0, because old
// contents of registers could be subnormal and slow.
#if defined(__x86_64__)
#define LOW_REGISTERS                                                                                                  \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",  \
      "xmm14", "xmm15"
#define ZERO(n) "vpxord %%zmm" #n ", %%zmm" #n ", %%zmm" #n "\n"
#define CHAIN(r, n) "vfmadd231ps %%" r "30, %%" r "31, %%" r #n "\n"
static double spin_avx512(int64_t rounds) {
  __asm__ volatile("vzeroall\n" ZERO(16) ZERO(17) ZERO(18) ZERO(19) ZERO(20) ZERO(21) ZERO(22) ZERO(23) ZERO(30)
                       ZERO(31)::
                           : LOW_REGISTERS);
  for (int64_t i = 0; i < rounds; i++)
    __asm__ volatile(CHAIN("zmm", 0) CHAIN("zmm", 1) CHAIN("zmm", 2) CHAIN("zmm", 3) CHAIN("zmm", 4) CHAIN("zmm", 5)
                         CHAIN("zmm", 6) CHAIN("zmm", 7) CHAIN("zmm", 8) CHAIN("zmm", 9) CHAIN("zmm", 10)
                             CHAIN("zmm", 11) CHAIN("zmm", 12) CHAIN("zmm", 13) CHAIN("zmm", 14) CHAIN("zmm", 15)
                                 CHAIN("zmm", 16) CHAIN("zmm", 17) CHAIN("zmm", 18) CHAIN("zmm", 19) CHAIN("zmm", 20)
                                     CHAIN("zmm", 21) CHAIN("zmm", 22) CHAIN("zmm", 23)::
                                         : "memory", LOW_REGISTERS);
  return (double)rounds * 24 * 32;
}
#undef CHAIN
#define CHAIN(n) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #n "\n"
static double spin_avx2(int64_t rounds) {
  __asm__ volatile("vzeroall\n" ::: LOW_REGISTERS);
  for (int64_t i = 0; i < rounds; i++)
    __asm__ volatile(CHAIN(0) CHAIN(1) CHAIN(2) CHAIN(3) CHAIN(4) CHAIN(5) CHAIN(6) CHAIN(7) CHAIN(8) CHAIN(9) CHAIN(10)
                         CHAIN(11)::
                             : "memory", LOW_REGISTERS);
  return (double)rounds * 12 * 16;
}
#endif
static double spin_generic(int64_t rounds) {
  volatile float sink;
  float acc[16] = {0};
  for (int64_t i = 0; i < rounds; i++)
    for (int j = 0; j < 16; j++) acc[j] = acc[j] * 0.5f + 1.0f;
  for (int j = 0; j < 16; j++) sink = acc[j];
  (void)sink;
  return (double)rounds * 32;
}
static double spin(int64_t rounds) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return spin_avx512(rounds);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return spin_avx2(rounds);
#endif
  return spin_generic(rounds);
}

// --- Bandwidth ---------------------------------------------------------------------------------------------------
static void add(const float *restrict a, const float *restrict b, float *restrict c, int64_t n) {
  for (int64_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}

struct runner {
  pthread_t thread;
  pthread_barrier_t *barrier;
  int cpu;
  double flops, bytes; // per second
};

static void *run(void *arg) {
  struct runner *r = arg;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(r->cpu, &set);
  (void)sched_setaffinity(0, sizeof set, &set);
  float *a = calloc(STREAM_FLOATS, sizeof *a), *b = calloc(STREAM_FLOATS, sizeof *b);
  float *c = calloc(STREAM_FLOATS, sizeof *c);
  if (!a || !b || !c) abort();
  for (int64_t i = 0; i < STREAM_FLOATS; i++) a[i] = b[i] = c[i] = (float)i;
  spin(1 << 20);
  for (int round = 0; round < STREAM_ROUNDS; round++) {
    pthread_barrier_wait(r->barrier);
    int64_t begin = tfc_now_ns();
    double flop = spin(1 << 20), rate = flop / (double)(tfc_now_ns() - begin) * 1e9;
    if (rate > r->flops) r->flops = rate;
    pthread_barrier_wait(r->barrier);
    begin = tfc_now_ns();
    add(a, b, c, STREAM_FLOATS);
    rate = 3.0 * STREAM_FLOATS * sizeof(float) / (double)(tfc_now_ns() - begin) * 1e9;
    if (rate > r->bytes) r->bytes = rate;
  }
  free(a);
  free(b);
  free(c);
  return NULL;
}

struct roofline roofline_measure(int threads) {
  static struct runner runners[MOST_THREADS];
  struct roofline sum = {0};
  cpu_set_t allowed;
  pthread_barrier_t barrier;
  int cpu = 0, count = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) abort();
  memset(runners, 0, sizeof runners);
  for (; cpu < CPU_SETSIZE && count < threads && count < MOST_THREADS; cpu++)
    if (CPU_ISSET(cpu, &allowed)) runners[count++].cpu = cpu;
  pthread_barrier_init(&barrier, NULL, (unsigned)count);
  for (int i = 0; i < count; i++) {
    runners[i].barrier = &barrier;
    if (pthread_create(&runners[i].thread, NULL, run, &runners[i])) abort();
  }
  for (int i = 0; i < count; i++) {
    pthread_join(runners[i].thread, NULL);
    sum.flops += runners[i].flops;
    sum.bytes += runners[i].bytes;
  }
  pthread_barrier_destroy(&barrier);
  return sum;
}

// --- The floor of a plan -------------------------------------------------------------------------------------------

static double bytes_of(const struct tfc_graph *g, const struct tfc_shapes *shapes, uint32_t output) {
  int64_t n = tfc_shape_is_static(&shapes->shapes[output]) ? tfc_shape_elements(&shapes->shapes[output]) : 0;
  return (double)n * (double)tfc_dtype_size(g->output_dtypes[output]);
}

static void cost_of(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shapes *shapes,
                    struct tfc_op_cost *out) {
  enum { MOST = 512 };
  struct tfc_shape in[MOST];
  const struct tfc_output *inputs = tfc_node_inputs(g, n);
  *out = (struct tfc_op_cost){0};
  bool known = n->input_count <= MOST;
  for (uint32_t i = 0; i < n->input_count && known; i++) {
    uint32_t o = g->nodes[inputs[i].node].output_begin + (uint32_t)inputs[i].index;
    in[i] = shapes->shapes[o];
    known = tfc_shape_is_static(&in[i]);
    out->bytes += bytes_of(g, shapes, o);
  }
  for (uint32_t i = 0; i < n->output_count; i++) {
    known = known && tfc_shape_is_static(&shapes->shapes[n->output_begin + i]);
    out->bytes += bytes_of(g, shapes, n->output_begin + i);
  }
  if (known && n->def && n->def->cost) n->def->cost(g, n, in, &shapes->shapes[n->output_begin], out);
}

tfc_status roofline_of_nodes(const struct tfc_graph *g, const struct tfc_run_spec *spec, const struct tfc_plan *plan,
                             const struct roofline *machine, struct roofline_work **out) {
  tfc_status s = NULL;
  struct tfc_shapes shapes = {0};
  struct tfc_shape_override *fed = calloc(spec->feed_count + 1, sizeof *fed);
  struct roofline_work *groups = calloc(g->node_count + 1, sizeof *groups);
  uint32_t *last_reader = calloc(g->output_total + 1, sizeof *last_reader);
  bool *leaves = calloc(g->output_total + 1, sizeof *leaves), *runs = calloc(g->node_count + 1, sizeof *runs);
  bool *ops = calloc(g->node_count + 1, sizeof *ops);
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  if (!fed || !groups || !last_reader || !leaves || !runs || !ops) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < spec->feed_count; i++)
    fed[i] = (struct tfc_shape_override){.output = spec->feeds[i], .shape = spec->feed_shapes[i]};
  TFC_TRY(s, tfc_infer_shapes(g, fed, spec->feed_count, &shapes));
  TFC_TRY(s, tfc_prune(g, spec->feeds, spec->feed_count, spec->fetches, spec->fetch_count, spec->targets,
                       spec->target_count, runs));
  for (uint32_t i = 0; i < info->op_count; i++) ops[info->ops[i].node] = true;
  for (uint32_t i = 0; i < g->node_count; i++) { // elided nodes do no work
    uint32_t into = info->runs_in[i];
    runs[i] = runs[i] && into < g->node_count && ops[into];
  }
  for (uint32_t i = 0; i < g->node_count; i++)
    if (runs[i]) groups[info->runs_in[i]].members++;
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (!runs[i]) continue;
    const struct tfc_node *n = &g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    struct tfc_op_cost cost;
    cost_of(g, n, &shapes, &cost);
    struct roofline_work *group = &groups[info->runs_in[i]];
    group->flop += cost.flops;
    if (group->members == 1) {
      group->bytes += cost.bytes;
      continue;
    }
    for (uint32_t k = 0; k < n->input_count; k++) {
      uint32_t producer = in[k].node, o = g->nodes[producer].output_begin + (uint32_t)in[k].index;
      if (runs[producer] && info->runs_in[producer] == info->runs_in[i]) continue;
      // counts it once for each group that reads it (the readers of a group come in a row)
      if (last_reader[o] == info->runs_in[i] + 1) continue;
      last_reader[o] = info->runs_in[i] + 1;
      group->bytes += bytes_of(g, &shapes, o);
    }
  }
  for (uint32_t i = 0; i < g->node_count; i++) { // results that are read outside of the group are written to memory
    if (!runs[i]) continue;
    const struct tfc_node *n = &g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; k < n->input_count; k++)
      if (info->runs_in[in[k].node] != info->runs_in[i])
        leaves[g->nodes[in[k].node].output_begin + (uint32_t)in[k].index] = true;
  }
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (!runs[i] || groups[info->runs_in[i]].members == 1) continue;
    for (uint32_t k = 0; k < g->nodes[i].output_count; k++)
      if (leaves[g->nodes[i].output_begin + k])
        groups[info->runs_in[i]].bytes += bytes_of(g, &shapes, g->nodes[i].output_begin + k);
  }
  for (uint32_t i = 0; i < g->node_count; i++) {
    double compute = groups[i].flop / machine->flops, memory = groups[i].bytes / machine->bytes;
    groups[i].floor_us = 1e6 * (compute > memory ? compute : memory);
  }
  *out = groups, groups = NULL;
out:
  tfc_shapes_deinit(&shapes);
  free(fed);
  free(groups);
  free(last_reader);
  free(leaves);
  free(runs);
  free(ops);
  return s;
}

tfc_status roofline_of_plan(const struct tfc_graph *g, const struct tfc_run_spec *spec, const struct tfc_plan *plan,
                            const struct roofline *machine, double *out_floor_us, double *out_flop, double *out_bytes) {
  struct roofline_work *work = NULL, sum = {0};
  TFC_RETURN_IF_ERROR(roofline_of_nodes(g, spec, plan, machine, &work));
  for (uint32_t i = 0; i < g->node_count; i++)
    sum.floor_us += work[i].floor_us, sum.flop += work[i].flop, sum.bytes += work[i].bytes;
  free(work);
  *out_floor_us = sum.floor_us;
  *out_flop = sum.flop;
  *out_bytes = sum.bytes;
  return NULL;
}
