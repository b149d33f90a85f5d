// tfc's side of `scripts/bench peers`: trains an example when asked to, line by line on stdin.
//
//   peer_bench EXAMPLE exact|all                on one CPU device of the cores that this process may use
//   peer_bench EXAMPLE exact|all one-by-one     the same, never two operations at once
//   peer_bench EXAMPLE exact|all PLACEMENT.json on the devices of a placement, as it says
//
// "run N" answers with N wall times of the run call in microseconds on one line; "info" with one line of JSON: the
// loss of the first step, peak bytes of tensors beyond variables, and the floor (tests/bench/roofline.h); of a
// placement the loss alone.
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/model/placement.h"
#include "placer/model/placement_json.h"
#include "runtime/base/clock.h"
#include "tests/bench/roofline.h"
#include "tests/common/example.h"

struct peer {
  struct example example;
  struct tfc_device_set devices;
  struct tfc_session *session;
  struct tfc_plan *plan;
  struct tfc_run_spec spec;
  uint16_t *places; // NULL: one device
  double *order;
  uint32_t step;
  double first_loss;
};

static tfc_status train(struct peer *p, double *out_us) {
  struct tfc_tensor loss = {0};
  int64_t begin = tfc_now_ns();
  TFC_RETURN_IF_ERROR(tfc_plan_run(p->plan, p->example.values[p->step % p->example.set_count], &loss, NULL));
  *out_us = (double)(tfc_now_ns() - begin) / 1e3;
  if (p->step++ == 0) p->first_loss = (double)*(float *)loss.data;
  tfc_tensor_release(&loss);
  return NULL;
}

// For plans without an arena: the largest number of bytes that the device holds during a step, sampled every 20 us.
struct watch {
  struct tfc_device *device;
  _Atomic bool stop;
  uint64_t peak;
};
static void *watch(void *arg) {
  struct watch *w = arg;
  while (!w->stop) {
    uint64_t held = w->device->driver->in_use(w->device);
    if (held > w->peak) w->peak = held;
    usleep(20);
  }
  return NULL;
}

// Reads the devices, and each node's place on them, from the placement file `path`.
static tfc_status place(struct peer *p, const char *path) {
  tfc_status s = NULL;
  struct tfc_placement *placement = NULL;
  struct tfc_text names = {0};
  const uint32_t count = p->example.graph->node_count;
  TFC_TRY(s, tfc_placement_read(path, &placement));
  for (uint32_t d = 0; d < placement->device_count; d++)
    tfc_text_printf(&names, "%s%.*s", d ? "," : "", TFC_STR_ARG(placement->devices[d].name));
  if (!names.data || names.failed) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s names no devices", path);
  TFC_TRY(s, tfc_devices_open(names.data, NULL, 0, &p->devices));
  p->places = calloc(count, sizeof *p->places);
  p->order = calloc(count, sizeof *p->order);
  if (!p->places || !p->order) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < count; i++) p->order[i] = NAN;
  for (uint32_t i = 0; i < placement->node_count; i++) {
    const struct tfc_placement_node *n = &placement->nodes[i];
    uint32_t node = tfc_graph_find(p->example.graph, n->name);
    if (node == TFC_NONE) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s is of another graph", path);
    p->order[node] = n->order;
    for (uint32_t d = 0; d < p->devices.count; d++)
      if (tfc_str_is(n->device, p->devices.devices[d]->info.name)) p->places[node] = (uint16_t)d;
  }
out:
  tfc_text_deinit(&names);
  tfc_placement_free(placement);
  return s;
}

static tfc_status print_info(struct peer *p) {
  if (p->places) {
    printf("{\"loss\": %.9g}\n", p->first_loss);
    return NULL;
  }
  const struct tfc_plan_info *info = tfc_plan_info(p->plan);
  uint64_t variables = tfc_session_variable_bytes(p->session, 0), peak = info->peak_bytes[0];
  int cores = (int)p->devices.devices[0]->info.cores;
  struct roofline machine = roofline_measure(cores);
  double floor_us = 0, flop = 0, bytes = 0, us;
  if (info->is_static) {
    TFC_RETURN_IF_ERROR(roofline_of_plan(p->example.graph, &p->spec, p->plan, &machine, &floor_us, &flop, &bytes));
  } else {
    pthread_t thread;
    struct watch w = {.device = p->devices.devices[0]};
    if (pthread_create(&thread, NULL, watch, &w)) abort();
    tfc_status s = NULL;
    for (int i = 0; i < 3 && !s; i++) s = train(p, &us);
    w.stop = true;
    pthread_join(thread, NULL);
    TFC_RETURN_IF_ERROR(s);
    peak = w.peak;
  }
  printf("{\"loss\": %.9g, \"cores\": %d, \"peak_bytes\": %llu, \"floor_us\": %.6g, \"flop\": %.6g, \"bytes\": %.6g, "
         "\"peak_flops\": %.6g, \"bandwidth\": %.6g, \"operations\": %u}\n",
         p->first_loss, cores, (unsigned long long)(peak > variables ? peak - variables : 0), floor_us, flop, bytes,
         machine.flops, machine.bytes, info->op_count);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) {
    fprintf(stderr, "peer_bench EXAMPLE exact|all [one-by-one|PLACEMENT.json]\n");
    return 2;
  }
  static struct peer p;
  tfc_status s = NULL;
  char line[256];
  TFC_TRY(s, example_load(argv[1], &p.example));
  const bool one_by_one = argc > 3 && strcmp(argv[3], "one-by-one") == 0;
  if (argc > 3 && !one_by_one)
    TFC_TRY(s, place(&p, argv[3]));
  else
    TFC_TRY(s, tfc_devices_open("1", NULL, 0, &p.devices));
  struct tfc_session_options options = {.devices = &p.devices};
  options.execution.rewrites = strcmp(argv[2], "all") == 0 ? TFC_REWRITES_ALL : TFC_REWRITES_EXACT;
  TFC_TRY(s, tfc_session_create(p.example.graph, &options, &p.session));
  struct tfc_run_spec init = {.targets = &p.example.init, .target_count = 1, .placement = p.places};
  TFC_TRY(s, tfc_session_run(p.session, &init, NULL, NULL, NULL));
  example_spec(&p.example, &p.spec);
  p.spec.placement = p.places, p.spec.order = p.order;
  p.spec.adapt = one_by_one ? TFC_ADAPT_OFF : TFC_ADAPT_WHERE_FASTER;
  TFC_TRY(s, tfc_plan_create(p.session, &p.spec, &p.plan));
  while (fgets(line, sizeof line, stdin)) {
    if (strncmp(line, "run ", 4) == 0) {
      for (long n = strtol(line + 4, NULL, 10); n > 0; n--) {
        double us;
        TFC_TRY(s, train(&p, &us));
        printf("%.3f ", us);
      }
      printf("\n");
    } else if (strcmp(line, "info\n") == 0) {
      TFC_TRY(s, print_info(&p));
    }
    fflush(stdout);
  }
out:
  if (s) fprintf(stderr, "peer_bench: %s\n", tfc_status_message(s));
  tfc_plan_free(p.plan);
  tfc_session_free(p.session);
  tfc_devices_close(&p.devices);
  free(p.places);
  free(p.order);
  example_deinit(&p.example);
  return s ? 1 : 0;
}
