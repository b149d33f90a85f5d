// tfc-run --run SCRIPT.json --out DIR: several steps in one session, in order.
//
//   {"runs": [{"feeds": {"x:0": "x.npy"}, "fetches": ["loss:0"], "targets": ["train_op"]}, ...]}
//
// A run may also have "deadline_ms". If it has "error": "text", it must fail with that text, and the session continues.
// {"together": [run, ...]} in the place of a run begins several runs at the same time, each on a thread of its own; the
// fetches of the k-th go to DIR/<index>/<k>. {"barrier": "name"} waits, with --cluster, until every task with a script
// has come to it. Runs with the same "partial": "name" are pieces of one step: each feed is given once, each fetch
// taken once, and computed values stay for the pieces that follow. "comment" and "expected" are ignored here; any other
// key is an error before the first run begins.
#include <jansson.h>
#include <libgen.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/feed_cast.h"
#include "cli/json.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "cli/run_kinds.h"
#include "cli/untrusted.h"
#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/io/npy.h"
#include "runtime/pass/step.h"

struct one_run { // one run of the script; its arrays are malloc'd
  struct tfc_output *feeds, *fetches;
  struct tfc_tensor *values, *results;
  const char **fetch_names;
  uint32_t *targets;
  uint32_t feed_count, fetch_count, target_count;
  int64_t deadline_ns;
  const char *error; // expected, or NULL
  char name[96];     // "run 3", or "run 3, together 2"
  bool beside;       // other runs run at the same time
  // Results.
  struct run_setup *setup;
  tfc_status status;
  double wall_us;
  char *folder;
  bool ran;
};

static void one_run_deinit(struct one_run *r) {
  for (uint32_t i = 0; r->values && i < r->feed_count; i++) tfc_tensor_release(&r->values[i]);
  for (uint32_t i = 0; r->ran && r->results && i < r->fetch_count; i++) tfc_tensor_release(&r->results[i]);
  free(r->feeds), free(r->fetches), free(r->values), free(r->results), free(r->fetch_names), free(r->targets);
  free(r->folder);
  tfc_status_free(r->status);
  *r = (struct one_run){0};
}

struct piecewise {  // a step that is run in pieces
  const char *name; // "partial" in the document
  struct tfc_partial *partial;
  struct tfc_output *feeds, *fetches; // of all pieces
  uint32_t *targets;
  uint32_t feed_count, fetch_count, target_count;
};
static void piecewise_deinit(struct piecewise *p) {
  tfc_partial_end(p->partial);
  free(p->feeds), free(p->fetches), free(p->targets);
}

struct script {
  TFC_ARRAY(struct piecewise) pieces;
  struct run_setup *setup;
  const char *path;
  char *folder; // paths in the script are relative to it
  json_t *document;
};
struct place { // where a run is in the script, for messages
  const struct script *script;
  size_t index;
  const char *inside; // "", or ", together 2" for a run inside "together"
};

static tfc_status expect(const struct place *at, const char *what) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: run %zu%s: %s", at->script->path, at->index, at->inside, what);
}
static tfc_status located(const struct place *at, tfc_status s) {
  return tfc_status_annotate(s, "%s: run %zu%s", at->script->path, at->index, at->inside);
}

// --- Reading the script --------------------------------------------------------------------------------------------
// Checks a fed tensor against the shape that its placeholder declares.
static tfc_status as_declared(const struct tfc_graph *g, struct tfc_output o, const struct tfc_tensor *t) {
  const struct tfc_node *n = &g->nodes[o.node];
  if (!(n->def && n->def->flags & TFC_OP_PLACEHOLDER) && tfc_node_role(n) != TFC_ROLE_DEFAULT) return NULL;
  struct tfc_shape known = tfc_step_placeholder_shape(g, n);
  if (tfc_shape_compatible(&known, &t->shape)) return NULL;
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  return tfc_status_make(TFC_INVALID_ARGUMENT, "the graph wants shape %s, not %s", tfc_shape_show(&known, a),
                         tfc_shape_show(&t->shape, b));
}

static tfc_status read_feeds(const struct place *at, const json_t *feeds, struct one_run *out) {
  const struct tfc_graph *g = at->script->setup->graph;
  const char *name;
  const json_t *value;
  json_object_foreach((json_t *)(uintptr_t)feeds, name, value) {
    struct tfc_output *o = &out->feeds[out->feed_count];
    struct tfc_tensor *t = &out->values[out->feed_count];
    if (!json_is_string(value)) return expect(at, "a feed is not the name of a file");
    tfc_status s = tfc_graph_parse_output(g, tfc_str_from(name), o);
    if (s) return located(at, s);
    const char *file = json_string_value(value);
    char *whole = file[0] == '/' ? strdup(file) : tfc_format("%s/%s", at->script->folder, file);
    s = whole ? tfc_npy_read(whole, t) : tfc_status_no_memory(NULL);
    free(whole);
    if (!s) {
      out->feed_count++;
      s = tfc_feed_cast(tfc_dtype_base(tfc_output_dtype(g, *o)), t);
      if (!s) s = as_declared(g, *o, t);
    }
    if (s) return located(at, tfc_status_annotate(s, "feed '%s'", name));
  }
  return NULL;
}

static tfc_status read_names(const struct place *at, const json_t *fetches, const json_t *targets,
                             struct one_run *out) {
  const struct tfc_graph *g = at->script->setup->graph;
  const json_t *value;
  size_t i;
  json_array_foreach(fetches, i, value) {
    if (!json_is_string(value)) return expect(at, "a fetch is not a name");
    tfc_status s = tfc_graph_parse_output(g, tfc_str_from(json_string_value(value)), &out->fetches[i]);
    if (s) return located(at, s);
    out->fetch_names[i] = json_string_value(value);
    out->fetch_count++;
  }
  json_array_foreach(targets, i, value) {
    if (!json_is_string(value)) return expect(at, "a target is not a name");
    tfc_status s = tfc_graph_parse_node(g, tfc_str_from(json_string_value(value)), &out->targets[out->target_count]);
    if (s) return located(at, s);
    out->target_count++;
  }
  return NULL;
}

static tfc_status read_run(const struct place *at, const json_t *run, struct one_run *out) {
  const json_t *feeds = json_object_get(run, "feeds"), *fetches = json_object_get(run, "fetches"),
               *targets = json_object_get(run, "targets"), *deadline = json_object_get(run, "deadline_ms"),
               *error = json_object_get(run, "error");
  if (!json_is_object(run)) return expect(at, "not an object");
  if (feeds && !json_is_object(feeds)) return expect(at, "'feeds' is not an object");
  if (fetches && !json_is_array(fetches)) return expect(at, "'fetches' is not a list");
  if (targets && !json_is_array(targets)) return expect(at, "'targets' is not a list");
  if (deadline && !(json_number_value(deadline) > 0 && json_number_value(deadline) < 1e12))
    return expect(at, "'deadline_ms' is not a number above 0");
  if (error && !json_is_string(error)) return expect(at, "'error' is not a text");
  out->setup = at->script->setup;
  out->deadline_ns = (int64_t)(json_number_value(deadline) * 1e6);
  out->error = json_string_value(error);
  out->feeds = calloc(json_object_size(feeds) + 1, sizeof *out->feeds);
  out->values = calloc(json_object_size(feeds) + 1, sizeof *out->values);
  out->fetches = calloc(json_array_size(fetches) + 1, sizeof *out->fetches);
  out->results = calloc(json_array_size(fetches) + 1, sizeof *out->results);
  out->fetch_names = calloc(json_array_size(fetches) + 1, sizeof *out->fetch_names);
  out->targets = calloc(json_array_size(targets) + 1, sizeof *out->targets);
  if (!out->feeds || !out->values || !out->fetches || !out->results || !out->fetch_names || !out->targets)
    return tfc_status_no_memory(NULL);
  TFC_RETURN_IF_ERROR(read_feeds(at, feeds, out));
  return read_names(at, fetches, targets, out);
}

// --- Running one run -----------------------------------------------------------------------------------------------
static void run_one(struct one_run *r) {
  struct tfc_run_spec spec = {.feeds = r->feeds,
                              .feed_count = r->feed_count,
                              .fetches = r->fetches,
                              .fetch_count = r->fetch_count,
                              .targets = r->targets,
                              .target_count = r->target_count,
                              .placement = r->setup->placement,
                              .order = r->setup->order};
  struct tfc_run_options options = {.cancel = run_cut_off(r->setup->options),
                                    .deadline_ns = cli_untrusted_left(r->deadline_ns)};
  int64_t begin = tfc_now_ns();
  r->status = r->setup->kinds ? run_kinds_step(r->setup->kinds, r->setup, r->name, r->beside, &spec, r->values,
                                               r->results, &options)
                              : run_step(r->setup, &spec, r->values, r->results, &options);
  r->wall_us = (double)(tfc_now_ns() - begin) * 1e-3;
  r->ran = !r->status;
}

// --- Steps in pieces -----------------------------------------------------------------------------------------------
static uint32_t find_output(const struct tfc_output *list, uint32_t count, struct tfc_output o) {
  uint32_t i = 0;
  while (i < count && (list[i].node != o.node || list[i].index != o.index)) i++;
  return i;
}

// Adds the feeds, fetches and targets of one piece to those of the step.
static tfc_status add_piece(struct piecewise *p, const struct one_run *r) {
  struct tfc_output *feeds = realloc(p->feeds, (p->feed_count + r->feed_count + 1u) * sizeof *feeds);
  if (feeds) p->feeds = feeds;
  struct tfc_output *fetches = realloc(p->fetches, (p->fetch_count + r->fetch_count + 1u) * sizeof *fetches);
  if (fetches) p->fetches = fetches;
  uint32_t *targets = realloc(p->targets, (p->target_count + r->target_count + 1u) * sizeof *targets);
  if (targets) p->targets = targets;
  if (!feeds || !fetches || !targets) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < r->feed_count; i++)
    if (find_output(p->feeds, p->feed_count, r->feeds[i]) == p->feed_count) p->feeds[p->feed_count++] = r->feeds[i];
  for (uint32_t i = 0; i < r->fetch_count; i++)
    if (find_output(p->fetches, p->fetch_count, r->fetches[i]) == p->fetch_count)
      p->fetches[p->fetch_count++] = r->fetches[i];
  for (uint32_t i = 0; i < r->target_count; i++) p->targets[p->target_count++] = r->targets[i];
  return NULL;
}

// Finds the step of this name, which several runs of the script make up. The first of these runs begins the step.
static tfc_status step_of(struct script *script, size_t index, const char *name, struct piecewise **out) {
  tfc_status s = NULL;
  const json_t *runs = json_object_get(script->document, "runs");
  struct piecewise made = {.name = name};
  for (size_t i = 0; i < script->pieces.count; i++)
    if (strcmp(script->pieces.data[i].name, name) == 0) {
      *out = &script->pieces.data[i];
      return NULL;
    }
  for (size_t i = index; i < json_array_size(runs); i++) {
    const json_t *run = json_array_get(runs, i);
    const char *its = json_string_value(json_object_get(run, "partial"));
    struct one_run r = {0};
    if (!its || strcmp(its, name) != 0) continue;
    s = read_run(&(struct place){script, i, ""}, run, &r);
    if (!s) s = add_piece(&made, &r);
    one_run_deinit(&r);
    if (s) goto out;
  }
  struct tfc_run_spec spec = {.feeds = made.feeds,
                              .feed_count = made.feed_count,
                              .fetches = made.fetches,
                              .fetch_count = made.fetch_count,
                              .targets = made.targets,
                              .target_count = made.target_count,
                              .placement = script->setup->placement};
  TFC_TRY(s, tfc_partial_begin(script->setup->session, &spec, &made.partial));
  if (!tfc_array_push(&script->pieces, made)) TFC_TRY(s, tfc_status_no_memory(NULL));
  *out = &script->pieces.data[script->pieces.count - 1];
  return NULL;
out:
  piecewise_deinit(&made);
  return s;
}

static tfc_status run_piece(struct script *script, size_t index, const char *name, struct one_run *r) {
  struct piecewise *p = NULL;
  TFC_RETURN_IF_ERROR(step_of(script, index, name, &p));
  uint32_t *at = calloc(r->feed_count + r->fetch_count + 1u, sizeof *at);
  if (!at) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < r->feed_count; i++) at[i] = find_output(p->feeds, p->feed_count, r->feeds[i]);
  for (uint32_t i = 0; i < r->fetch_count; i++)
    at[r->feed_count + i] = find_output(p->fetches, p->fetch_count, r->fetches[i]);
  struct tfc_partial_call call = {.feeds = at,
                                  .fetches = at + r->feed_count,
                                  .values = r->values,
                                  .feed_count = r->feed_count,
                                  .fetch_count = r->fetch_count};
  struct tfc_run_options options = {.cancel = run_cut_off(r->setup->options),
                                    .deadline_ns = cli_untrusted_left(r->deadline_ns)};
  int64_t begin = tfc_now_ns();
  r->status = tfc_partial_run(p->partial, &call, r->results, &options);
  r->wall_us = (double)(tfc_now_ns() - begin) * 1e-3;
  r->ran = !r->status;
  free(at);
  return NULL;
}

struct group {
  struct tfc_session *session;
  pthread_mutex_t lock;
  uint32_t running; // under the lock
};
struct member {
  struct one_run *run;
  struct group *group;
};
static void *run_member(void *arg) {
  struct member *m = arg;
  run_one(m->run);
  // One caller less is running. If all others now wait for each other, the session must detect that.
  pthread_mutex_lock(&m->group->lock);
  if (--m->group->running && m->group->session) tfc_session_set_callers(m->group->session, m->group->running);
  pthread_mutex_unlock(&m->group->lock);
  return NULL;
}

static tfc_status run_together(struct one_run *runs, uint32_t count) {
  pthread_t *threads = calloc(count + 1u, sizeof *threads);
  struct member *members = calloc(count + 1u, sizeof *members);
  struct group group = {.session = runs[0].setup->session, .lock = PTHREAD_MUTEX_INITIALIZER, .running = count};
  uint32_t begun = 0;
  if (!threads || !members) {
    free(threads), free(members);
    return tfc_status_no_memory(NULL);
  }
  if (group.session) tfc_session_set_callers(group.session, count);
  for (; begun < count; begun++) {
    members[begun] = (struct member){&runs[begun], &group};
    if (pthread_create(&threads[begun], NULL, run_member, &members[begun]) != 0) break;
  }
  // There are no more threads, so this thread runs it.
  for (uint32_t i = begun; i < count; i++) run_member(&(struct member){&runs[i], &group});
  for (uint32_t i = 0; i < begun; i++) pthread_join(threads[i], NULL);
  if (group.session) tfc_session_set_callers(group.session, 1);
  free(threads);
  free(members);
  return NULL;
}

// --- Results of runs -----------------------------------------------------------------------------------------------
static tfc_status write_results(struct one_run *r) {
  tfc_status s = NULL;
  for (uint32_t i = 0; r->ran && !s && i < r->fetch_count; i++) {
    char *path = tfc_format("%s/%s.npy", r->folder, r->fetch_names[i]);
    if (!path) return tfc_status_no_memory(NULL);
    for (char *c = path + strlen(r->folder) + 1; *c; c++)
      if (*c == '/' || *c == ':') *c = '_';
    s = tfc_npy_write(path, &r->results[i]);
    free(path);
  }
  return s;
}

// Compares a run's status with the error that the script expects: the expected one counts as success.
static tfc_status judge(const struct place *at, struct one_run *r) {
  if (!r->error) {
    tfc_status s = r->status ? tfc_status_clone(r->status) : NULL;
    return located(at, s);
  }
  if (!r->status)
    return located(at, tfc_status_make(TFC_ABORTED, "it succeeded, where an error with '%s' is expected", r->error));
  if (tfc_status_code(r->status) == TFC_CANCELLED && atomic_load(tfc_program_cancel()))
    return tfc_status_clone(r->status);
  if (strstr(tfc_status_message(r->status), r->error)) return NULL;
  return located(at, tfc_status_make(TFC_ABORTED, "an error with '%s' is expected, this one came: %s", r->error,
                                     tfc_status_message(r->status)));
}

static json_t *run_json(const struct one_run *r) {
  json_t *fetches = json_object();
  for (uint32_t i = 0; r->ran && i < r->fetch_count; i++) {
    json_t *dims = json_array();
    for (int d = 0; d < r->results[i].shape.rank; d++)
      json_array_append_new(dims, json_integer(r->results[i].shape.dims[d]));
    json_object_set_new(fetches, r->fetch_names[i],
                        json_pack("{s:s, s:o}", "dtype", tfc_dtype_name(r->results[i].dtype), "shape", dims));
  }
  json_t *made = json_pack("{s:s, s:f, s:o}", "folder", r->folder, "wall_us", r->wall_us, "fetches", fetches);
  if (r->status) json_object_set_new(made, "error", cli_json_error(r->status));
  return made;
}

// Runs entry `index` of the script: one run, or several together.
static tfc_status run_entry(struct script *script, size_t index, const json_t *entry, json_t *report) {
  tfc_status s = NULL;
  const json_t *together = json_object_get(entry, "together");
  struct place at = {script, index, ""};
  char inside[48] = "";
  if (together && (!json_is_array(together) || json_array_size(together) == 0))
    return expect(&at, "'together' is not a list of runs");
  const json_t *partial = json_object_get(entry, "partial"), *barrier = json_object_get(entry, "barrier");
  if (barrier) {
    if (!json_is_string(barrier)) return expect(&at, "'barrier' is not a name");
    if (!script->setup->member) return NULL; // there are no other tasks to wait for
    s = tfc_member_barrier(script->setup->member, json_string_value(barrier), tfc_program_cancel());
    return s ? located(&at, s) : NULL;
  }
  if (partial && script->setup->cluster) return expect(&at, "'partial' is not to be had with --cluster");
  if (partial && (together || !json_is_string(partial))) return expect(&at, "'partial' is not the name of a step");
  uint32_t count = together ? (uint32_t)json_array_size(together) : 1;
  struct one_run *runs = calloc(count, sizeof *runs);
  if (!runs) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < count; i++) {
    struct one_run *r = &runs[i];
    if (together) snprintf(inside, sizeof inside, ", together %u", i), at.inside = inside;
    snprintf(r->name, sizeof r->name, "run %zu%s", index, at.inside);
    r->beside = together;
    TFC_TRY(s, read_run(&at, together ? json_array_get(together, i) : entry, r));
    r->folder = together ? tfc_format("%s/%zu/%u", script->setup->options->out, index, i)
                         : tfc_format("%s/%zu", script->setup->options->out, index);
    char *below = r->folder ? tfc_format("%s/", r->folder) : NULL;
    s = below ? tfc_file_make_parents(below) : tfc_status_no_memory(NULL);
    free(below);
    if (s) goto out;
  }
  if (together)
    TFC_TRY(s, run_together(runs, count));
  else if (partial)
    TFC_TRY(s, run_piece(script, index, json_string_value(partial), &runs[0]));
  else
    run_one(&runs[0]);
  for (uint32_t i = 0; i < count; i++) {
    if (together) snprintf(inside, sizeof inside, ", together %u", i);
    json_array_append_new(report, run_json(&runs[i]));
    s = tfc_status_join(s, judge(&at, &runs[i]));
    s = tfc_status_join(s, write_results(&runs[i]));
  }
out:
  for (uint32_t i = 0; i < count; i++) one_run_deinit(&runs[i]);
  free(runs);
  return s;
}

// Every key must be one of `allowed`; `where` names the object in the message.
static tfc_status only_keys(const char *path, const char *where, const json_t *object, const char *const *allowed) {
  const char *key;
  const json_t *value;
  if (!json_is_object(object)) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: %s: not an object", path, where);
  json_object_foreach((json_t *)(uintptr_t)object, key, value) {
    (void)value;
    size_t i = 0;
    while (allowed[i] && strcmp(allowed[i], key) != 0) i++;
    if (allowed[i]) continue;
    struct tfc_text list = {0};
    for (i = 0; allowed[i]; i++) tfc_text_printf(&list, "%s%s", i ? ", " : "", allowed[i]);
    tfc_status s = tfc_status_make(TFC_INVALID_ARGUMENT, "%s: %s: unknown key '%s' (there are %s)", path, where, key,
                                   list.data ? list.data : "others");
    tfc_text_deinit(&list);
    return s;
  }
  return NULL;
}
static tfc_status check_keys(const char *path, const json_t *document) {
  static const char *const top[] = {"runs", "comment", NULL};
  static const char *const run[] = {"feeds",   "fetches",  "targets", "deadline_ms", "error",
                                    "partial", "expected", "comment", NULL};
  static const char *const alone[] = {"feeds", "fetches",  "targets", "deadline_ms",
                                      "error", "expected", "comment", NULL};
  static const char *const group[] = {"together", "comment", NULL};
  static const char *const barrier[] = {"barrier", "comment", NULL};
  TFC_RETURN_IF_ERROR(only_keys(path, "the script", document, top));
  const json_t *runs = json_object_get(document, "runs"), *entry, *member;
  size_t i, k;
  json_array_foreach(runs, i, entry) {
    const json_t *together = json_object_get(entry, "together");
    char where[64];
    snprintf(where, sizeof where, "run %zu", i);
    TFC_RETURN_IF_ERROR(only_keys(path, where, entry,
                                  together                            ? group
                                  : json_object_get(entry, "barrier") ? barrier
                                                                      : run));
    json_array_foreach(together, k, member) {
      snprintf(where, sizeof where, "run %zu, together %zu", i, k);
      TFC_RETURN_IF_ERROR(only_keys(path, where, member, alone));
    }
  }
  return NULL;
}

static tfc_status load(const char *path, json_t **out) {
  json_error_t error;
  struct tfc_file file = {0};
  TFC_RETURN_IF_ERROR(tfc_file_map_document(path, &file)); // opening a pipe would wait for its writer
  json_t *document = json_loadb(file.data ? (const char *)file.data : "", file.size, JSON_REJECT_DUPLICATES, &error);
  tfc_file_unmap(&file);
  if (!document) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: line %d: %s", path, error.line, error.text);
  if (!json_is_array(json_object_get(document, "runs"))) {
    json_decref(document);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: 'runs' is not a list", path);
  }
  tfc_status s = check_keys(path, document);
  if (s)
    json_decref(document);
  else
    *out = document;
  return s;
}

tfc_status run_script(struct run_setup *setup) {
  tfc_status s = NULL;
  const struct run_options *o = setup->options;
  struct script script = {.setup = setup, .path = o->script};
  json_t *report = json_array();
  char *copy = strdup(o->script);
  if (!copy || !report) TFC_TRY(s, tfc_status_no_memory(NULL));
  script.folder = dirname(copy);
  TFC_TRY(s, load(o->script, &script.document));
  const json_t *runs = json_object_get(script.document, "runs");
  run_finish_steps(o);
  tfc_progress_begin("run");
  for (size_t i = 0; i < json_array_size(runs); i++) {
    if (atomic_load(tfc_program_cancel())) TFC_FAIL(s, TFC_CANCELLED, "stopped after %zu runs", i);
    tfc_progress_update((double)i / (double)json_array_size(runs), -1, "run %zu of %zu", i + 1, json_array_size(runs));
    TFC_TRY(s, run_entry(&script, i, json_array_get(runs, i), report));
    setup->steps++;
  }
  tfc_progress_end("%zu runs, results in %s", json_array_size(runs), o->out);
out:
  if (o->common.json && report) {
    json_t *document = json_pack("{s:s, s:s, s:O}", "graph", o->graph, "out", o->out, "runs", report);
    s = tfc_status_join(s, cli_json_print(document));
    json_decref(document);
  }
  for (size_t i = 0; i < script.pieces.count; i++) piecewise_deinit(&script.pieces.data[i]);
  tfc_array_free(&script.pieces);
  json_decref(script.document);
  json_decref(report);
  free(copy);
  return s;
}
