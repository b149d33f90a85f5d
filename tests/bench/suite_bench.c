// tfc's side of `scripts/bench peers --suite`: runs a model that tests/bench/models.py made, line by line on stdin.
//
//   suite_bench FOLDER exact|all    on one CPU device of the cores that this process may use
//
// "first N DIR" runs N steps and writes each fetch of step k to DIR/<k>_<fetch>.npy; "run N" answers with N wall times
// of the run call in microseconds and the CPU time of them all on one line; "info" with one line of JSON: the process's
// peak resident memory and the plan's operations.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/io/npy.h"
#include "runtime/pass/pass.h"

enum { MOST = 64 }; // feeds, fetches, targets
struct suite_model {
  struct tfc_graph *graph;
  struct tfc_device_set devices;
  struct tfc_session *session;
  struct tfc_plan *plan;
  struct tfc_output feeds[MOST], fetches[MOST];
  struct tfc_shape shapes[MOST];
  struct tfc_tensor values[MOST], fetched[MOST];
  uint32_t targets[MOST], inits[MOST], feed_count, fetch_count, target_count, init_count;
};

static tfc_status read_nodes(const struct tfc_graph *g, const json_t *names, uint32_t *out, uint32_t *out_count) {
  for (size_t i = 0; i < json_array_size(names) && i < MOST; i++)
    TFC_RETURN_IF_ERROR(
        tfc_graph_parse_node(g, tfc_str_from(json_string_value(json_array_get(names, i))), &out[(*out_count)++]));
  return NULL;
}

static tfc_status load(struct suite_model *m, const char *folder) {
  tfc_status s = NULL;
  json_error_t error;
  char *path = tfc_format("%s/model.pb", folder), *about = tfc_format("%s/model.json", folder), *file = NULL;
  json_t *root = about ? json_load_file(about, 0, &error) : NULL, *value;
  const char *key;
  if (!path || !root) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: %s", about ? about : folder, error.text);
  TFC_TRY(s, tfc_graph_load(path, NULL, &m->graph));
  TFC_TRY(s, tfc_lower_loaded(&m->graph));
  TFC_TRY(s, read_nodes(m->graph, json_object_get(root, "targets"), m->targets, &m->target_count));
  TFC_TRY(s, read_nodes(m->graph, json_object_get(root, "init"), m->inits, &m->init_count));
  const json_t *fetches = json_object_get(root, "fetches");
  for (size_t i = 0; i < json_array_size(fetches) && i < MOST; i++)
    TFC_TRY(s, tfc_graph_parse_output(m->graph, tfc_str_from(json_string_value(json_array_get(fetches, i))),
                                      &m->fetches[m->fetch_count++]));
  json_object_foreach(json_object_get(root, "feeds"), key, value) {
    uint32_t i = m->feed_count;
    if (i == MOST) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: more than %d feeds", about, MOST);
    free(file);
    file = tfc_format("%s/%s", folder, json_string_value(value));
    TFC_TRY(s, tfc_graph_parse_output(m->graph, tfc_str_from(key), &m->feeds[i]));
    TFC_TRY(s, tfc_npy_read(file, &m->values[i]));
    m->shapes[i] = m->values[i].shape;
    m->feed_count++;
  }
out:
  json_decref(root);
  free(file);
  free(path);
  free(about);
  return s;
}

static tfc_status plan(struct suite_model *m, const char *rewrites) {
  TFC_RETURN_IF_ERROR(tfc_devices_open("1", NULL, 0, &m->devices));
  struct tfc_session_options options = {.devices = &m->devices, .callers = 1};
  options.execution.rewrites = strcmp(rewrites, "all") == 0 ? TFC_REWRITES_ALL : TFC_REWRITES_EXACT;
  TFC_RETURN_IF_ERROR(tfc_session_create(m->graph, &options, &m->session));
  struct tfc_run_spec init = {.targets = m->inits, .target_count = m->init_count};
  if (m->init_count) TFC_RETURN_IF_ERROR(tfc_session_run(m->session, &init, NULL, NULL, NULL));
  struct tfc_run_spec spec = {.feeds = m->feeds,
                              .feed_count = m->feed_count,
                              .feed_shapes = m->shapes,
                              .fetches = m->fetches,
                              .fetch_count = m->fetch_count,
                              .targets = m->targets,
                              .target_count = m->target_count,
                              .adapt = TFC_ADAPT_WHERE_FASTER};
  return tfc_plan_create(m->session, &spec, &m->plan);
}

// folder: where the fetches go, NULL: nowhere.
static tfc_status step(struct suite_model *m, long k, const char *folder, double *out_us) {
  int64_t begin = tfc_now_ns();
  TFC_RETURN_IF_ERROR(tfc_plan_run(m->plan, m->values, m->fetched, NULL));
  *out_us = (double)(tfc_now_ns() - begin) / 1e3;
  tfc_status s = NULL;
  for (uint32_t i = 0; i < m->fetch_count; i++) {
    char *file = folder ? tfc_format("%s/%ld_%u.npy", folder, k, i) : NULL;
    if (file && !s) s = tfc_npy_write(file, &m->fetched[i]);
    free(file);
    tfc_tensor_release(&m->fetched[i]);
  }
  return s;
}

static long long peak_resident(void) {
  char line[256];
  long long kilobytes = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmHWM: %lld kB", &kilobytes) == 1) break;
  if (f) fclose(f);
  return kilobytes * 1024;
}

static double cpu_us(void) { // of all threads
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "suite_bench FOLDER exact|all\n");
    return 2;
  }
  static struct suite_model m;
  tfc_status s = NULL;
  char line[4096];
  TFC_TRY(s, load(&m, argv[1]));
  TFC_TRY(s, plan(&m, argv[2]));
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    char *end = line;
    double us;
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "run ", 4) == 0) {
      const double cpu = cpu_us();
      for (long n = strtol(line + 4, NULL, 10); n > 0; n--) {
        TFC_TRY(s, step(&m, 0, NULL, &us));
        printf("%.3f ", us);
      }
      printf("%.3f\n", cpu_us() - cpu);
    } else if (strncmp(line, "first ", 6) == 0) {
      long n = strtol(line + 6, &end, 10);
      for (long k = 0; k < n; k++) TFC_TRY(s, step(&m, k, end + strspn(end, " "), &us));
      printf("ready\n");
    } else if (strcmp(line, "info") == 0) {
      printf("{\"peak_resident\": %lld, \"operations\": %u, \"static\": %s}\n", peak_resident(),
             tfc_plan_info(m.plan)->op_count, tfc_plan_info(m.plan)->is_static ? "true" : "false");
    }
    fflush(stdout);
  }
out:
  if (s) {
    printf("error %s\n", tfc_status_message(s));
    fprintf(stderr, "suite_bench: %s\n", tfc_status_message(s));
  }
  tfc_plan_free(m.plan);
  tfc_session_free(m.session);
  tfc_devices_close(&m.devices);
  for (uint32_t i = 0; i < m.feed_count; i++) tfc_tensor_release(&m.values[i]);
  tfc_graph_release(m.graph);
  int code = s ? 1 : 0;
  tfc_status_free(s);
  return code;
}
