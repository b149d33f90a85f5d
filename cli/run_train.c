// Implements tfc-run --cluster SPEC without --run: each task that has a graph takes --steps steps of it, inferred or
// given. The chief initialises the variables, and then restores the last checkpoint of --supervise, or, if there is
// none yet, that of --checkpoint. The other tasks wait until it has done so. The chief saves the variables during
// training (--supervise) and at its end.
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "cli/run_backup_runs.h"
#include "cli/run_backups.h"
#include "cli/run_profile.h"
#include "cli/run_replicas.h"
#include "cli/run_saves.h"
#include "cli/run_status.h"
#include "cli/run_together.h"
#include "cli/run_traces.h"
#include "cli/run_variables.h"
#include "profiler/statistics.h"
#include "profiler/store.h"
#include "runtime/base/clock.h"
#include "runtime/base/units.h"

struct training {
  struct run_setup *setup;
  struct tfc_step_spec step;
  struct tfc_output *feeds, *fetches, *init_feeds;
  struct tfc_tensor *values, *init_values, *results;
  struct run_saves saves;
  double *times_us;
  uint32_t taken;
  int64_t done;                 // steps that were taken before this start
  bool stopped;                 // by a signal, before the last step
  bool chief;                   // initialises the variables, restores and saves
  bool together;                // all tasks with a graph take each step together (run_together.h)
  struct run_traces traces;     // with --profile
  struct run_backup_runs *runs; // with --backup
  struct run_status *status;    // of the chief, with --supervise
  struct run_backups *backups;  // with --backup
};

static tfc_status read_node(const struct run_setup *setup, const char *flag, const char *name, uint32_t *out) {
  tfc_status s = tfc_graph_parse_node(setup->graph, tfc_str_from(name), out);
  return s ? tfc_status_annotate(s, "--%s %s", flag, name) : NULL;
}

// Makes a value for each of these feeds: the given one, or a synthetic one.
static tfc_status feed_values(const struct training *t, const struct run_feed *given, const struct tfc_step_feed *feeds,
                              const bool *split, uint32_t count, struct tfc_output *outputs,
                              struct tfc_tensor *values) {
  const struct run_options *o = t->setup->options;
  for (uint32_t i = 0; i < count; i++) {
    outputs[i] = feeds[i].output;
    for (uint32_t k = 0; k < o->feeds.count; k++)
      if (given[k].has_value && given[k].output.node == outputs[i].node && given[k].output.index == outputs[i].index)
        tfc_tensor_share(&given[k].value, &values[i]);
    struct tfc_step_feed whole = feeds[i];
    if (split && split[i]) whole.shape.dims[0] *= o->replicas;
    if (!values[i].dtype) TFC_RETURN_IF_ERROR(tfc_step_synthetic(&whole, (uint64_t)o->execution.seed, &values[i]));
  }
  return NULL;
}

// Finds which feeds are split between the replicas: those whose given value is for all replicas, and synthetic ones.
static void find_split(const struct training *t, const struct run_feed *given, bool *split) {
  const struct run_options *o = t->setup->options;
  for (uint32_t i = 0; i < t->step.feed_count; i++) {
    const struct tfc_step_feed *feed = &t->step.feeds[i];
    split[i] = o->replicas && feed->shape.rank > 0;
    for (uint32_t k = 0; k < o->feeds.count; k++)
      if (given[k].output.node == feed->output.node && given[k].output.index == feed->output.index)
        split[i] = split[i] && given[k].shape.dims[0] != feed->shape.dims[0];
  }
}

static tfc_status spread(struct training *t, const bool *split) {
  struct run_replicas_feeds feeds = {t->feeds, t->values, t->step.feed_count};
  tfc_status s = run_replicas_make(t->setup, split, &t->step, &feeds, t->init_feeds);
  t->feeds = feeds.outputs, t->values = feeds.values, t->step.feed_count = feeds.count;
  return s;
}

static tfc_status infer(struct training *t) {
  tfc_status s = NULL;
  const struct run_options *o = t->setup->options;
  const uint32_t n = o->feeds.count;
  struct run_feed *given = calloc(n + 1u, sizeof *given);
  struct tfc_step_feed_request *requests = calloc(n + 1u, sizeof *requests);
  struct tfc_output *fetches = calloc(o->fetches.count + 1u, sizeof *fetches);
  uint32_t *targets = calloc(o->targets.count + 1u, sizeof *targets),
           *inits = calloc(o->inits.count + 1u, sizeof *inits);
  bool *split = NULL;
  if (!given || !requests || !fetches || !targets || !inits) {
    s = tfc_status_no_memory("training");
    goto out;
  }
  for (uint32_t i = 0; i < n; i++) {
    TFC_TRY(s, run_parse_feed(t->setup->graph, o->feeds.items[i], &given[i]));
    requests[i] = (struct tfc_step_feed_request){
        .output = given[i].output, .has_shape = true, .dtype = given[i].dtype, .shape = given[i].shape};
    TFC_TRY(s, run_replicas_part(t->setup, given[i].output, &requests[i].shape));
  }
  for (uint32_t i = 0; i < o->fetches.count; i++)
    TFC_TRY(s,
            tfc_status_annotate(tfc_graph_parse_output(t->setup->graph, tfc_str_from(o->fetches.items[i]), &fetches[i]),
                                "--fetch %s", o->fetches.items[i]));
  for (uint32_t i = 0; i < o->targets.count; i++)
    TFC_TRY(s, read_node(t->setup, "target", o->targets.items[i], &targets[i]));
  for (uint32_t i = 0; i < o->inits.count; i++) TFC_TRY(s, read_node(t->setup, "init", o->inits.items[i], &inits[i]));
  const struct tfc_step_request request = {.fetches = fetches,
                                           .fetch_count = o->fetches.count,
                                           .targets = targets,
                                           .target_count = o->targets.count,
                                           .inits = inits,
                                           .init_count = o->inits.count,
                                           .only_local = !t->chief && !o->replicas,
                                           .feeds = requests,
                                           .feed_count = n,
                                           .batch = o->batch};
  TFC_TRY(s, tfc_step_infer(t->setup->file, &request, &t->step));
  for (uint32_t i = 0; i < t->step.note_count; i++) tfc_say("%.*s", TFC_STR_ARG(t->step.notes[i]));
  t->feeds = calloc(t->step.feed_count + 1u, sizeof *t->feeds);
  t->values = calloc(t->step.feed_count + 1u, sizeof *t->values);
  t->init_feeds = calloc(t->step.init_feed_count + 1u, sizeof *t->init_feeds);
  t->init_values = calloc(t->step.init_feed_count + 1u, sizeof *t->init_values);
  t->results = calloc(t->step.fetch_count + 1u, sizeof *t->results);
  t->times_us = calloc((size_t)o->steps + 1, sizeof *t->times_us);
  if (!t->feeds || !t->values || !t->init_feeds || !t->init_values || !t->results || !t->times_us) {
    s = tfc_status_no_memory("training");
    goto out;
  }
  split = calloc(t->step.feed_count + 1u, sizeof *split);
  if (!split) {
    s = tfc_status_no_memory("training");
    goto out;
  }
  find_split(t, given, split);
  TFC_TRY(s, feed_values(t, given, t->step.feeds, split, t->step.feed_count, t->feeds, t->values));
  TFC_TRY(s, feed_values(t, given, t->step.init_feeds, NULL, t->step.init_feed_count, t->init_feeds, t->init_values));
  if (o->replicas) s = spread(t, split);
out:
  for (uint32_t i = 0; given && i < n; i++) run_feed_deinit(&given[i]);
  free(given), free(requests), free(fetches), free(targets), free(inits), free(split);
  return s;
}

// Who is not the chief initialises only its local variables, and tables and iterators of its own task; a replica
// nothing. The chief runs its initialisers in other tasks, too.
static void keep_own_inits(struct training *t) {
  const uint32_t own = tfc_member_rank(t->setup->member), all = t->step.init_count;
  if (t->chief) return;
  t->step.init_count = 0;
  for (uint32_t i = 0; i < all && !t->setup->options->replicas; i++)
    if (tfc_cluster_session_task_of(t->setup->cluster, t->step.inits[i]) == own)
      t->step.inits[t->step.init_count++] = t->step.inits[i];
}

static tfc_status initialise(struct training *t) {
  keep_own_inits(t);
  if (!t->step.init_count) return NULL;
  const struct tfc_run_spec spec = {.feeds = t->init_feeds,
                                    .feed_count = t->step.init_feed_count,
                                    .targets = t->step.inits,
                                    .target_count = t->step.init_count};
  tfc_status s =
      run_step(t->setup, &spec, t->init_values, NULL, &(struct tfc_run_options){.cancel = tfc_program_cancel()});
  return s ? tfc_status_annotate(s, "initialising variables") : NULL;
}

static void release_results(struct training *t) {
  for (uint32_t i = 0; t->results && i < t->step.fetch_count; i++) tfc_tensor_release(&t->results[i]);
}

// Whether steps end here (t->stopped), because of a signal, and whether the variables are saved after a step: the chief
// decides it. If all train together, they stop and save after the same step.
static tfc_status is_saved_now(struct training *t, int64_t saved, int64_t now, bool last, bool *out) {
  enum { SAVE = 1, STOP = 2 };
  const struct run_options *o = t->setup->options;
  uint32_t votes = atomic_load(tfc_program_cancel()) ? STOP : 0;
  if (t->chief && o->supervise && (last || votes || (double)(now - saved) * 1e-9 >= o->save_every)) votes |= SAVE;
  if (t->together) TFC_RETURN_IF_ERROR(tfc_member_vote(t->setup->member, "step", votes, run_cut_off(o), &votes));
  t->stopped = votes & STOP;
  *out = votes & SAVE || (t->together && votes & STOP);
  return NULL;
}

static tfc_status step_with_backups(struct training *t) {
  tfc_program_step(true);
  tfc_status s = run_backups_step(t->backups);
  tfc_program_step(false);
  return s;
}

// `profiled`: the step is recorded, and its time is without what reading the tasks' records takes. `kept`: not only to
// find out how many records a step has.
static tfc_status take_step(struct training *t, const struct tfc_run_spec *spec, bool profiled, bool kept,
                            double *out_us) {
  const struct tfc_run_options options = {.cancel = run_cut_off(t->setup->options)};
  struct tfc_cluster_trace trace = {0};
  if (!profiled) {
    const int64_t begin = tfc_now_ns();
    TFC_RETURN_IF_ERROR(t->backups ? step_with_backups(t) : run_step(t->setup, spec, t->values, t->results, &options));
    *out_us = (double)(tfc_now_ns() - begin) * 1e-3;
    return NULL;
  }
  tfc_program_step(true);
  tfc_status s = tfc_cluster_session_run_traced(t->setup->cluster, spec, t->values, t->results, &options, &trace);
  tfc_program_step(false);
  if (s) return s;
  *out_us = (double)(trace.end_ns - trace.begin_ns) * 1e-3;
  if (kept) return run_traces_add(&t->traces, &trace);
  tfc_cluster_trace_deinit(&trace);
  return NULL;
}

// Tasks write to the database one after the other. One that cannot does not keep the others from it.
static tfc_status store_profiles(const struct training *t) {
  const struct run_setup *setup = t->setup;
  tfc_status own = NULL;
  for (uint32_t r = 0; setup->options->profile && r < setup->tasks->tasks.count; r++) {
    if (r == tfc_member_rank(setup->member) && t->taken)
      own = run_traces_store(&t->traces, setup, NULL, tfc_quartiles_of(t->times_us, t->taken), t->stopped);
    tfc_status s = tfc_member_barrier(setup->member, "a profile is stored", run_cut_off(setup->options));
    if (!s) continue;
    tfc_status_free(own);
    return s;
  }
  return own;
}

static tfc_status take_steps(struct training *t) {
  const struct run_options *o = t->setup->options;
  const struct tfc_run_spec spec = {.feeds = t->feeds,
                                    .feed_count = t->step.feed_count,
                                    .fetches = t->step.fetches,
                                    .fetch_count = t->step.fetch_count,
                                    .targets = t->step.targets,
                                    .target_count = t->step.target_count};
  const int64_t warmup = o->supervise ? 0 : o->warmup, total = o->steps + warmup;
  int64_t saved = tfc_now_ns(), i = t->done;
  run_finish_steps(o);
  tfc_progress_begin("run");
  t->stopped = !t->together && atomic_load(tfc_program_cancel());
  for (; i < total && !t->stopped; i++) {
    const char *rates = t->status ? run_status_text(t->status) : "";
    tfc_progress_update((double)i / (double)total, -1, "step %lld of %lld%s%s", (long long)(i + 1), (long long)total,
                        *rates ? "; " : "", rates);
    release_results(t);
    double us;
    TFC_RETURN_IF_ERROR(take_step(t, &spec, o->profile && i + 1 >= warmup, i >= warmup, &us));
    if (i >= warmup) t->times_us[t->taken++] = us;
    tfc_member_took_steps(t->setup->member, (uint64_t)(i + 1 - t->done));
    bool saves;
    TFC_RETURN_IF_ERROR(is_saved_now(t, saved, tfc_now_ns(), i + 1 == total, &saves));
    if (t->status) TFC_RETURN_IF_ERROR(run_status_write(t->status, i + 1, t->results, saves));
    if (!saves) continue;
    if (t->backups) TFC_RETURN_IF_ERROR(run_backups_rest(t->backups)); // nothing of them is saved
    TFC_RETURN_IF_ERROR(run_saves_write(&t->saves, i + 1));
    saved = tfc_now_ns();
  }
  t->stopped = t->stopped && i < total;
  tfc_progress_end("%lld steps", (long long)(i - t->done));
  if (t->status) run_status_say(t->status);
  return t->backups ? run_backups_rest(t->backups) : NULL;
}

static tfc_status open_backups(struct training *t) {
  const struct run_options *o = t->setup->options;
  const struct run_backup_step step = {&t->step, t->feeds, t->values, t->results};
  TFC_RETURN_IF_ERROR(run_backup_runs_create(t->setup, &step, &t->runs));
  const struct run_backups_calls calls = run_backup_runs_calls(t->runs);
  return run_backups_start(&calls, (uint32_t)o->replicas, (uint32_t)o->backup, &t->backups);
}

// --save-checkpoint: the chief writes the variables when no task takes steps any more.
static tfc_status save_at_end(const struct training *t) {
  const struct run_setup *setup = t->setup;
  const char *prefix = setup->options->save_checkpoint;
  if (!prefix) return NULL;
  TFC_RETURN_IF_ERROR(tfc_member_barrier(setup->member, "all steps are taken", run_cut_off(setup->options)));
  if (t->chief) TFC_RETURN_IF_ERROR(run_save_tasks(setup, prefix, false));
  return tfc_member_barrier(setup->member, "variables are saved", run_cut_off(setup->options));
}

// The error of training that a signal ended, after what is kept was kept.
static tfc_status stopped(const struct training *t) {
  const char *folder = t->setup->options->supervise, *prefix = t->setup->options->save_checkpoint;
  const long long steps = t->done + t->taken; // --supervise takes no steps of warm-up
  if (!folder && prefix && t->chief)
    return tfc_status_make(TFC_CANCELLED, "stopped after %lld steps; %s has the variables", steps, prefix);
  if (!folder || !t->chief) return tfc_status_make(TFC_CANCELLED, "stopped after %lld steps", steps);
  if (!t->saves.steps) return tfc_status_make(TFC_CANCELLED, "stopped before the first step; nothing is saved");
  return tfc_status_make(TFC_CANCELLED, "stopped after %lld steps; %s/model.ckpt-%lld has the variables", steps, folder,
                         (long long)t->saves.steps);
}

static tfc_status print(const struct training *t) {
  const struct run_options *o = t->setup->options;
  const struct tfc_quartiles q = t->taken ? tfc_quartiles_of(t->times_us, t->taken) : (struct tfc_quartiles){0};
  char name[TFC_TASK_TEXT], a[32], b[32], c[32];
  tfc_member_name(t->setup->member, name);
  json_t *fetched = json_object();
  for (uint32_t i = 0; i < t->step.fetch_count && i < o->fetches.count; i++) {
    const struct tfc_tensor *r = &t->results[i];
    if (r->dtype != TFC_FLOAT || tfc_tensor_elements(r) != 1) continue;
    json_object_set_new(fetched, o->fetches.items[i], cli_json_number((double)*(const float *)r->data));
    if (!o->common.json) printf("%s: %s = %.9g\n", name, o->fetches.items[i], (double)*(const float *)r->data);
  }
  tfc_status s = NULL;
  struct run_backups_counts counts = {0};
  if (t->backups) counts = run_backups_counts(t->backups);
  if (o->common.json) {
    json_t *document = json_pack("{s:s, s:o, s:{s:o, s:o, s:o, s:i}, s:I, s:O}", "task", name, "graph",
                                 cli_json_string(o->graph), "step", "median_us", cli_json_number(q.median), "q1_us",
                                 cli_json_number(q.q1), "q3_us", cli_json_number(q.q3), "steps", (int)t->taken,
                                 "steps_before", (json_int_t)t->done, "fetched", fetched);
    if (t->backups)
      json_object_set_new(
          document, "backup",
          json_pack("{s:I, s:I}", "applied", (json_int_t)counts.applied, "dropped", (json_int_t)counts.dropped));
    s = cli_json_print(document);
    json_decref(document);
  } else if (t->taken) {
    printf("%s: step: median %s, quartiles %s to %s, %u steps\n", name, tfc_show_us(a, q.median), tfc_show_us(b, q.q1),
           tfc_show_us(c, q.q3), t->taken);
    if (t->backups)
      printf("%s: %lld gradients applied, %lld late ones dropped\n", name, (long long)counts.applied,
             (long long)counts.dropped);
  } else {
    printf("%s: all %lld steps had been taken\n", name, (long long)o->steps);
  }
  json_decref(fetched);
  return s;
}

// Initialises, and restores what was saved. The chief goes first. All tasks with a graph meet several times: the
// others' initialisers may read variables; states are restored when all initialisers have run, since these may draw
// numbers; and steps begin when all is there.
static tfc_status prepare(struct training *t) {
  struct run_setup *setup = t->setup;
  const char *folder = setup->options->supervise;
  const uint32_t clients = tfc_member_clients(setup->member);
  const _Atomic bool *cancel = tfc_program_cancel();
  uint32_t votes;
  bool can = false;
  if (folder) TFC_RETURN_IF_ERROR(run_saves_open(setup, folder, t->chief, &t->saves));
  t->done = t->saves.steps;
  if (t->chief) TFC_RETURN_IF_ERROR(initialise(t)); // also before restoring: tables and iterators are in no checkpoint
  // If --supervise has saved a checkpoint, that one is newer than --checkpoint, and is restored below.
  if (t->chief && setup->options->checkpoint && !t->saves.steps)
    TFC_RETURN_IF_ERROR(run_restore_tasks(setup, setup->options->checkpoint));
  TFC_RETURN_IF_ERROR(tfc_member_barrier(setup->member, "variables are initialised", cancel));
  if (!t->chief) TFC_RETURN_IF_ERROR(initialise(t));
  if (folder && clients > 1 && !setup->options->replicas)
    TFC_RETURN_IF_ERROR(run_together_can(setup, &t->step, t->feeds, clients, &can));
  TFC_RETURN_IF_ERROR(tfc_member_vote(setup->member, "initialised", !can, cancel, &votes));
  t->saves.together = t->together = !(votes & 1);
  if (folder && t->chief) TFC_RETURN_IF_ERROR(run_saves_restore(&t->saves));
  TFC_RETURN_IF_ERROR(tfc_member_barrier(setup->member, "restored", cancel));
  return folder ? run_saves_restore_own(&t->saves) : NULL;
}

tfc_status run_train(struct run_setup *setup, bool chief, bool *out_stopped) {
  tfc_status s = NULL;
  struct training t = {.setup = setup, .chief = chief};
  if (chief && setup->options->profile) {
    struct tfc_store *store = NULL;
    TFC_TRY(s, run_profile_open(setup, &store));
    tfc_store_close(store);
  }
  TFC_TRY(s, infer(&t));
  if (!setup->cluster)
    TFC_TRY(s, tfc_cluster_session_create(setup->member, setup->graph, &setup->options->execution, &setup->cluster));
  TFC_TRY(s, prepare(&t));
  if (setup->options->backup) TFC_TRY(s, open_backups(&t));
  if (chief && setup->options->supervise) TFC_TRY(s, run_status_open(setup, setup->options->supervise, &t.status));
  TFC_TRY(s, take_steps(&t));
  TFC_TRY(s, save_at_end(&t));
  if (!t.stopped) TFC_TRY(s, print(&t)); // first: a database that cannot be written loses only the profile
  s = store_profiles(&t);
  if (!s && t.stopped) s = stopped(&t), *out_stopped = run_keeps(setup->options);
out:
  s = tfc_status_join(s, run_status_close(t.status));
  run_backups_end(t.backups);
  run_backup_runs_free(t.runs);
  release_results(&t);
  for (uint32_t i = 0; t.values && i < t.step.feed_count; i++) tfc_tensor_release(&t.values[i]);
  for (uint32_t i = 0; t.init_values && i < t.step.init_feed_count; i++) tfc_tensor_release(&t.init_values[i]);
  free(t.feeds), free(t.values), free(t.init_feeds), free(t.init_values), free(t.results), free(t.times_us);
  run_traces_deinit(&t.traces);
  run_saves_close(&t.saves);
  tfc_step_spec_deinit(&t.step);
  return s;
}
