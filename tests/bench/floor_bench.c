// For `scripts/bench floor`: measures, by type of operation, how long a step's operations take, how long they would
// take at the processor's measured peak and bandwidth, and the difference; and which nodes lose most.
//
//   floor_bench FOLDER [STEPS [CPU]]    a model that tests/bench/models.py made
//   floor_bench EXAMPLE [STEPS [CPU]]   examples/EXAMPLE.pb
//
// CPU: native, avx2 or avx512, as the flag --cpu of programs. The peak is always that of all the processor's
// instructions. It runs on one CPU device with all cores that this process may use, one operation at a time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"
#include "profiler/collector.h"
#include "tests/bench/roofline.h"
#include "tests/bench/suite_model.h"
#include "tests/common/example.h"

struct floor_bench {
  struct suite_model model; // loaded from a folder; for an example, only the fields that a step needs are filled in
  struct example example;
  const struct tfc_graph *graph;
  const struct tfc_tensor *values;
  struct tfc_tensor fetched[SUITE_MODEL_MOST];
  uint32_t fetch_count;
};

static tfc_status open_example(const char *name, struct floor_bench *f) {
  struct suite_model *m = &f->model;
  TFC_RETURN_IF_ERROR(example_load(name, &f->example));
  TFC_RETURN_IF_ERROR(tfc_devices_open("1", NULL, 0, &m->devices));
  f->graph = f->example.graph, f->values = f->example.values[0], f->fetch_count = 1;
  struct tfc_session_options options = {.devices = &m->devices, .callers = 1, .execution = m->execution};
  TFC_RETURN_IF_ERROR(tfc_session_create(f->example.graph, &options, &m->session));
  struct tfc_run_spec init = {.targets = &f->example.init, .target_count = 1};
  TFC_RETURN_IF_ERROR(tfc_session_run(m->session, &init, NULL, NULL, NULL));
  example_spec(&f->example, &m->spec);
  return tfc_plan_create(m->session, &m->spec, &m->plan);
}

struct type_row {
  tfc_str op;
  uint32_t count;
  double us, floor_us;
};
static int by_loss(const void *a, const void *b) {
  const struct type_row *x = a, *y = b;
  const double lost_x = x->us - x->floor_us, lost_y = y->us - y->floor_us;
  return (lost_x < lost_y) - (lost_x > lost_y);
}
static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Measures the median time of each node's operation over some steps, in microseconds.
static tfc_status time_nodes(struct floor_bench *f, uint32_t steps, double *out_us) {
  tfc_status s = NULL;
  struct tfc_collector *c = NULL;
  const uint32_t n = f->graph->node_count;
  const struct tfc_collector_names names = {f->graph, tfc_plan_info(f->model.plan)};
  double *all = calloc((size_t)n * steps + 1, sizeof *all);
  if (!all) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_collector_create(f->model.devices.count, 4096 + 2 * (size_t)n, &c));
  for (uint32_t k = 0; k < steps + 3; k++) { // the first three steps warm up
    struct tfc_step_profile profile = {0};
    tfc_collector_reset(c);
    TFC_TRY(s, tfc_plan_run(f->model.plan, f->values, f->fetched,
                            &(struct tfc_run_options){.trace = tfc_collector_sink(c)}));
    for (uint32_t i = 0; i < f->fetch_count; i++) tfc_tensor_release(&f->fetched[i]);
    TFC_TRY(s, tfc_collector_drain(c, &names, NULL, &profile));
    for (size_t i = 0; i < profile.ops.count && k >= 3; i++) // a node in a loop runs several times
      all[(size_t)profile.ops.data[i].node * steps + k - 3] += 1e-3 * (double)profile.ops.data[i].duration_ns;
    tfc_step_profile_deinit(&profile);
  }
  for (uint32_t i = 0; i < n; i++) {
    qsort(all + (size_t)i * steps, steps, sizeof *all, by_value);
    out_us[i] = all[(size_t)i * steps + steps / 2];
  }
out:
  tfc_collector_free(c);
  free(all);
  return s;
}

// Prints the nodes that lose most.
enum { WORST = 10 };
static void print_worst(const struct tfc_graph *graph, const double *us, const struct roofline_work *work) {
  uint32_t worst[WORST], count = 0;
  for (uint32_t i = 0; i < graph->node_count; i++) {
    uint32_t at = count;
    while (at > 0 && us[i] - work[i].floor_us > us[worst[at - 1]] - work[worst[at - 1]].floor_us) at--;
    if (at == WORST || us[i] <= work[i].floor_us) continue;
    count += count < WORST;
    memmove(worst + at + 1, worst + at, (count - 1 - at) * sizeof *worst);
    worst[at] = i;
  }
  printf("\n%-36s %11s %11s %11s %8s  %s\n", "these lose most", "measured us", "roofline us", "lost us", "GFLOP/s",
         "node");
  for (uint32_t k = 0; k < count; k++) {
    const struct tfc_node *node = &graph->nodes[worst[k]];
    const double took = us[worst[k]], floor = work[worst[k]].floor_us;
    printf("%-36.*s %11.1f %11.1f %11.1f %8.1f  %.*s\n", TFC_STR_ARG(node->op), took, floor, took - floor,
           work[worst[k]].flop / took / 1e3, TFC_STR_ARG(node->name));
  }
}

static tfc_status print_types(struct floor_bench *f, uint32_t steps) {
  tfc_status s = NULL;
  struct roofline_work *work = NULL;
  const uint32_t n = f->graph->node_count;
  double *us = calloc(n + 1u, sizeof *us), total = 0, floor_us = 0;
  struct type_row *rows = calloc(n + 1u, sizeof *rows);
  uint32_t count = 0;
  if (!us || !rows) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (!tfc_plan_info(f->model.plan)->is_static)
    TFC_FAIL(s, TFC_UNIMPLEMENTED, "the shapes of this step are known only when it runs, so there is no floor of it");
  const struct roofline machine = roofline_measure((int)f->model.devices.devices[0]->info.cores);
  TFC_TRY(s, roofline_of_nodes(f->graph, &f->model.spec, f->model.plan, &machine, &work));
  TFC_TRY(s, time_nodes(f, steps, us));
  for (uint32_t i = 0; i < n; i++) {
    if (us[i] == 0 && work[i].members == 0) continue;
    uint32_t r = 0;
    while (r < count && !tfc_str_equal(rows[r].op, f->graph->nodes[i].op)) r++;
    if (r == count) rows[count++].op = f->graph->nodes[i].op;
    rows[r].count++, rows[r].us += us[i], rows[r].floor_us += work[i].floor_us;
    total += us[i], floor_us += work[i].floor_us;
  }
  qsort(rows, count, sizeof *rows, by_loss);
  printf("%u cores: %.1f GFLOP/s of multiply-adds, %.1f GB/s; medians of %u steps with times of operations\n",
         f->model.devices.devices[0]->info.cores, machine.flops / 1e9, machine.bytes / 1e9, steps);
  printf("%-36s %6s %11s %11s %11s %6s\n", "operation", "count", "measured us", "roofline us", "lost us", "ratio");
  for (uint32_t r = 0; r < count; r++)
    printf("%-36.*s %6u %11.1f %11.1f %11.1f %6.2f\n", TFC_STR_ARG(rows[r].op), rows[r].count, rows[r].us,
           rows[r].floor_us, rows[r].us - rows[r].floor_us, rows[r].us > 0 ? rows[r].floor_us / rows[r].us : 0);
  printf("%-36s %6s %11.1f %11.1f %11.1f %6.2f\n", "all", "", total, floor_us, total - floor_us, floor_us / total);
  print_worst(f->graph, us, work);
out:
  free(us);
  free(rows);
  free(work);
  return s;
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "floor_bench FOLDER|EXAMPLE [STEPS [CPU]]\n");
    return 2;
  }
  static struct floor_bench f;
  tfc_program_choose_blas();
  tfc_status s = NULL;
  const long steps = argc > 2 ? strtol(argv[2], NULL, 10) : 10;
  if (argc > 3) {
    char flag[64];
    snprintf(flag, sizeof flag, "--cpu %s", argv[3]);
    TFC_TRY(s, tfc_execution_parse(tfc_str_from(flag), &f.model.execution));
  }
  if (strchr(argv[1], '/')) {
    TFC_TRY(s, suite_model_open(argv[1], "exact", TFC_ADAPT_OFF, &f.model));
    f.graph = f.model.graph, f.values = f.model.values, f.fetch_count = f.model.fetch_count;
  } else {
    TFC_TRY(s, open_example(argv[1], &f));
  }
  TFC_TRY(s, print_types(&f, steps > 0 && steps < 1000 ? (uint32_t)steps : 10));
out:
  if (s) fprintf(stderr, "floor_bench: %s\n", tfc_status_message(s));
  suite_model_close(&f.model);
  example_deinit(&f.example);
  int code = s ? 1 : 0;
  tfc_status_free(s);
  return code;
}
