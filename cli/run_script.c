// tfc-run --run SCRIPT.json --out DIR: several steps in one session, in order.
//
//   {"runs": [{"feeds": {"x:0": "x.npy"}, "fetches": ["loss:0"], "targets": ["train_op"]}, ...]}
#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/program.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "runtime/io/npy.h"

struct one_run { // of the script; arrays are malloc'd
  struct tfc_output *feeds, *fetches;
  struct tfc_tensor *values, *results;
  const char **fetch_names;
  uint32_t *targets;
  uint32_t feed_count, fetch_count, target_count;
};

static void one_run_deinit(struct one_run *r) {
  for (uint32_t i = 0; r->values && i < r->feed_count; i++) tfc_tensor_release(&r->values[i]);
  for (uint32_t i = 0; r->results && i < r->fetch_count; i++) tfc_tensor_release(&r->results[i]);
  free(r->feeds), free(r->fetches), free(r->values), free(r->results), free(r->fetch_names), free(r->targets);
}

static tfc_status expect(const char *path, size_t index, const char *what) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: run %zu: %s", path, index, what);
}

static tfc_status read_run(const struct tfc_graph *g, const char *path, const char *folder, size_t index,
                           const json_t *run, struct one_run *out) {
  const json_t *feeds = json_object_get(run, "feeds"), *fetches = json_object_get(run, "fetches"),
               *targets = json_object_get(run, "targets");
  if (!json_is_object(run)) return expect(path, index, "not an object");
  if (feeds && !json_is_object(feeds)) return expect(path, index, "'feeds' is not an object");
  if (fetches && !json_is_array(fetches)) return expect(path, index, "'fetches' is not a list");
  if (targets && !json_is_array(targets)) return expect(path, index, "'targets' is not a list");
  size_t feed_count = json_object_size(feeds), fetch_count = json_array_size(fetches),
         target_count = json_array_size(targets);
  out->feeds = calloc(feed_count + 1, sizeof *out->feeds);
  out->values = calloc(feed_count + 1, sizeof *out->values);
  out->fetches = calloc(fetch_count + 1, sizeof *out->fetches);
  out->results = calloc(fetch_count + 1, sizeof *out->results);
  out->fetch_names = calloc(fetch_count + 1, sizeof *out->fetch_names);
  out->targets = calloc(target_count + 1, sizeof *out->targets);
  if (!out->feeds || !out->values || !out->fetches || !out->results || !out->fetch_names || !out->targets)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  const char *name;
  const json_t *value;
  size_t i;
  json_object_foreach((json_t *)(uintptr_t)feeds, name, value) {
    if (!json_is_string(value)) return expect(path, index, "a feed is not the name of a file");
    tfc_status s = tfc_graph_parse_output(g, tfc_str_from(name), &out->feeds[out->feed_count]);
    if (s) return tfc_status_annotate(s, "%s: run %zu", path, index);
    const char *file = json_string_value(value);
    char *whole = file[0] == '/' ? strdup(file) : tfc_format("%s/%s", folder, file);
    s = whole ? tfc_npy_read(whole, &out->values[out->feed_count])
              : tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
    free(whole);
    if (s) return tfc_status_annotate(s, "%s: run %zu: feed '%s'", path, index, name);
    out->feed_count++;
  }
  json_array_foreach(fetches, i, value) {
    if (!json_is_string(value)) return expect(path, index, "a fetch is not a name");
    tfc_status s = tfc_graph_parse_output(g, tfc_str_from(json_string_value(value)), &out->fetches[i]);
    if (!s && out->fetches[i].index < 0)
      s = tfc_status_make(TFC_INVALID_ARGUMENT, "fetch '%s' is not a tensor", json_string_value(value));
    if (s) return tfc_status_annotate(s, "%s: run %zu", path, index);
    out->fetch_names[i] = json_string_value(value);
    out->fetch_count++;
  }
  json_array_foreach(targets, i, value) {
    if (!json_is_string(value)) return expect(path, index, "a target is not a name");
    tfc_str target = tfc_str_from(json_string_value(value));
    if (tfc_str_starts(target, "^")) target = tfc_str_sub(target, 1, target.size);
    struct tfc_output o = {tfc_graph_find(g, target), 0};
    tfc_status s = o.node == TFC_NO_NODE ? tfc_graph_parse_output(g, target, &o) : NULL;
    if (s) return tfc_status_annotate(s, "%s: run %zu", path, index);
    out->targets[out->target_count++] = o.node;
  }
  return NULL;
}

static tfc_status make_folder(const char *path) {
  if (mkdir(path, 0777) == 0 || errno == EEXIST) return NULL;
  return tfc_status_make(TFC_DATA_LOSS, "%s: cannot be made: %s", path, strerror(errno));
}

static tfc_status write_results(const char *out, size_t index, const struct one_run *r) {
  tfc_status s = NULL;
  char *folder = tfc_format("%s/%zu", out, index);
  if (!folder) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, make_folder(folder));
  for (uint32_t i = 0; i < r->fetch_count; i++) {
    char *path = tfc_format("%s/%s.npy", folder, r->fetch_names[i]);
    if (!path) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    for (char *c = path + strlen(folder) + 1; *c; c++)
      if (*c == '/' || *c == ':') *c = '_';
    s = tfc_npy_write(path, &r->results[i]);
    free(path);
    if (s) goto out;
  }
out:
  free(folder);
  return s;
}

tfc_status run_script(struct run_setup *setup) {
  tfc_status s = NULL;
  const struct run_options *o = setup->options;
  json_error_t error;
  char *copy = strdup(o->script);
  json_t *script = json_load_file(o->script, JSON_REJECT_DUPLICATES, &error);
  struct one_run run = {0};
  if (!copy) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  if (!script) {
    tfc_code code = json_error_code(&error) == json_error_cannot_open_file ? TFC_NOT_FOUND : TFC_INVALID_ARGUMENT;
    TFC_FAIL(s, code, "%s: line %d: %s", o->script, error.line, error.text);
  }
  const json_t *runs = json_object_get(script, "runs");
  if (!json_is_array(runs)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: 'runs' is not a list", o->script);
  const char *folder = dirname(copy);
  TFC_TRY(s, make_folder(o->out));
  tfc_progress_begin("run");
  for (size_t i = 0; i < json_array_size(runs); i++) {
    if (atomic_load(tfc_program_cancel())) TFC_FAIL(s, TFC_CANCELLED, "stopped after %zu runs", i);
    tfc_progress_update((double)i / (double)json_array_size(runs), -1, "run %zu of %zu", i + 1, json_array_size(runs));
    TFC_TRY(s, read_run(setup->graph, o->script, folder, i, json_array_get(runs, i), &run));
    struct tfc_run_spec spec = {.feeds = run.feeds,
                                .feed_count = run.feed_count,
                                .fetches = run.fetches,
                                .fetch_count = run.fetch_count,
                                .targets = run.targets,
                                .target_count = run.target_count,
                                .placement = setup->placement,
                                .order = setup->order};
    struct tfc_run_options options = {.cancel = tfc_program_cancel()};
    s = tfc_session_run(setup->session, &spec, run.values, run.results, &options);
    if (s) {
      run.fetch_count = 0; // nothing was fetched
      s = tfc_status_annotate(s, "%s: run %zu", o->script, i);
      goto out;
    }
    TFC_TRY(s, write_results(o->out, i, &run));
    one_run_deinit(&run);
    run = (struct one_run){0};
  }
  tfc_progress_end("%zu runs, results in %s", json_array_size(runs), o->out);
out:
  one_run_deinit(&run);
  json_decref(script);
  free(copy);
  return s;
}
