// A played machine for jobs: two devices "cpu:0" and "cpu:1" and a device "acc:0" of another kind, a graph of seven
// operations, and a clock that advances only when something is played. A suite includes this header, then the sources
// of placer/job: their calls of the measurer, of the clock and of searches come here. So a whole job takes
// milliseconds, each step time is known, and `log_text` has every batch, every search and every message with the second
// at which it came.
#ifndef TFC_TESTS_PLACER_PLAYED_JOB_H
#define TFC_TESTS_PLACER_PLAYED_JOB_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/job.h"
#include "placer/job/turns.h"
#include "runtime/base/clock.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/op_def.h"

enum { OPS = 7, DEVICES = 3, MOST_STEPS = 128, MOST_LINKS = 9 };
// a1 -> a2 -> a3 and b1 -> b2 -> b3, which "j" adds. The times in us on a CPU and on the other device; each operation
// takes a microsecond more to dispatch, and a tensor between two devices takes 10 us.
static const char *const op_names[OPS] = {"a1", "a2", "a3", "b1", "b2", "b3", "j"};
static const double op_us[2][OPS] = {{100, 200, 100, 150, 150, 100, 20}, {40, 60, 40, 300, 300, 200, 20}};
static const double dispatch_us = 1, transfer_us = 10;

static struct played {
  struct tfc_graph *graph;
  struct tfc_step_spec step;
  struct tfc_output feed, fetch;
  struct tfc_step_feed step_feed;
  struct tfc_device_info devices[DEVICES];
  struct tfc_measure_info info;
  uint32_t op[OPS]; // nodes
  struct tfc_measure_options asked;
  char fetch_name[32], feed_name[32], target_name[32];
  int64_t now_ns;
  double batch_s; // what a batch takes
  uint32_t batches, searches, restarts;
  uint64_t simulated;        // evaluations of all searches
  double whole_us, overhead; // of the undivided machine; what a trace costs, as a share of a step
  double waited_s, load;
  double hurry;            // if > 0: steps on several devices take this share of what they should
  uint64_t peak_of_op;     // bytes of each operation's output
  bool fails[DEVICES];     // a device that cannot run the step alone
  bool experts;            // the graph has device strings
  uint32_t search_units;   // units of the problem of the last round of search
  const char *cut;         // a placement for which there is no time
  const char *plain_fails; // message with which steps without rewrites fail
  uint32_t cancel_at;      // the batch during which the job is interrupted; 0: none
  atomic_bool cancel;
  const char *const *found; // [round] what each round of search finds, then nothing new: see played_search
  struct tfc_text log;
} play;

static void note(const char *format, ...) {
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tfc_text_printf(&play.log, "%.2f %s\n", 1e-9 * (double)play.now_ns - 1000, text);
}

// --- Times -----------------------------------------------------------------------------------------------------------
struct played_step {
  double us, load_us, start[OPS], busy[DEVICES]; // load: of the busiest device
  uint32_t transfers;
};
// The truth: each device runs its operations in the order in which their inputs arrive.
static struct played_step step_of(const uint8_t *at) {
  static const int inputs[OPS][2] = {{-1, -1}, {0, -1}, {1, -1}, {-1, -1}, {3, -1}, {4, -1}, {2, 5}};
  struct played_step s = {0};
  double end[OPS], idle_from[DEVICES] = {0};
  bool done[OPS] = {false};
  for (int n = 0; n < OPS; n++) {
    int next = -1;
    double begin = INFINITY;
    for (int i = 0; i < OPS; i++) {
      double ready = 0;
      bool can = !done[i];
      for (int k = 0; k < 2 && can; k++) {
        const int from = inputs[i][k];
        if (from < 0) continue;
        can = done[from];
        if (can) ready = fmax(ready, end[from] + (at[from] != at[i] ? transfer_us : 0));
      }
      ready = fmax(ready, idle_from[at[i]]);
      if (can && ready < begin) begin = ready, next = i;
    }
    const double us = op_us[at[next] == 2][next];
    s.start[next] = begin + dispatch_us, end[next] = begin + dispatch_us + us;
    idle_from[at[next]] = end[next], s.busy[at[next]] += us;
    for (int k = 0; k < 2; k++) s.transfers += inputs[next][k] >= 0 && at[inputs[next][k]] != at[next];
    s.us = fmax(s.us, end[next]);
    done[next] = true;
  }
  for (int d = 0; d < DEVICES; d++) s.load_us = fmax(s.load_us, s.busy[d]);
  return s;
}

static void devices_of(const struct tfc_measure_entry *e, uint8_t *at) {
  for (uint32_t i = 0; i < OPS; i++) at[i] = e->placement ? (uint8_t)e->placement[play.op[i]] : 0;
}
static void show_entry(const struct tfc_measure_entry *e, struct tfc_text *to) {
  uint8_t at[OPS];
  devices_of(e, at);
  for (uint32_t i = 0; i < OPS && !e->whole; i++) tfc_text_printf(to, "%u", at[i]);
  tfc_text_printf(to, "%s%s%s%s%s", e->whole ? "whole" : "", e->plain ? " plain" : "", e->in_parts ? " parts" : "",
                  e->answers ? " answers" : "", e->stays ? " stays" : "");
  if (e->in_flight) tfc_text_printf(to, " x%u", e->in_flight);
}

static double us_of(const struct tfc_measure_entry *e) {
  uint8_t at[OPS];
  if (e->whole) return play.whole_us;
  devices_of(e, at);
  const struct played_step s = step_of(at);
  bool several = false;
  for (uint32_t i = 1; i < OPS; i++) several |= at[i] != at[0];
  return e->in_flight > 1 ? s.load_us + 7 : several && play.hurry > 0 ? play.hurry * s.us : s.us;
}

// --- The measurer ----------------------------------------------------------------------------------------------------
static int64_t played_now(void) {
  return play.now_ns;
}

static void fill_profile(struct tfc_step_profile *p, const struct tfc_measure_entry *e, double us) {
  uint8_t at[OPS];
  devices_of(e, at);
  const struct played_step s = step_of(at);
  p->start_ns = 5, p->duration_ns = (int64_t)(1e3 * us);
  for (uint32_t i = 0; i < OPS; i++) {
    struct tfc_profile_op op = {.start_ns = (int64_t)(1e3 * s.start[i]),
                                .duration_ns = (int64_t)(1e3 * op_us[at[i] == 2][i]),
                                .node = play.op[i],
                                .device = at[i],
                                .dispatch_ns = -1,
                                .launched_ns = -1};
    assert_true(tfc_array_push(&p->ops, op));
  }
  for (uint32_t d = 0; d < DEVICES; d++) {
    struct tfc_profile_busy busy = {.operations_ns = (int64_t)(1e3 * s.busy[d]), .busy_ns = (int64_t)(1e3 * s.busy[d])};
    for (uint32_t i = 0; i < OPS; i++) busy.operations += at[i] == d;
    assert_true(tfc_array_push(&p->busy, busy));
  }
}

// Plays so many blocks of an entry.
static tfc_status play_entry(const struct tfc_measure_batch *b, uint32_t index, uint32_t blocks, double reference_us,
                             tfc_measured_fn fn, void *user) {
  static struct tfc_measured_step steps[MOST_STEPS];
  static struct tfc_step_profile profiles[MOST_STEPS];
  static uint32_t profile_step[MOST_STEPS];
  const struct tfc_measure_entry *e = &b->entries[index];
  const double us = us_of(e);
  uint8_t at[OPS];
  struct tfc_plan_transfer_row sent[OPS];
  uint64_t peak[DEVICES] = {0};
  struct tfc_measured m = {.entry = index,
                           .steps = steps,
                           .profiles = profiles,
                           .profile_step = profile_step,
                           .peak = peak,
                           .peak_count = e->whole ? 1 : DEVICES,
                           .transfers = sent,
                           .seconds = 0.25,
                           .ratio = isnan(reference_us) ? (double)NAN : us / reference_us};
  devices_of(e, at);
  for (uint32_t i = 0; i < OPS; i++) peak[at[i]] += play.peak_of_op;
  for (uint32_t i = 0; i < OPS && !e->whole; i++) {
    const uint32_t to = i == 2 || i == 5 ? 6 : i + 1;
    if (to < OPS && at[i] != at[to])
      sent[m.transfer_count++] = (struct tfc_plan_transfer_row){play.op[i], 0, at[i], at[to], 64};
  }
  bool fails = false, cut = play.cut != NULL;
  for (uint32_t i = 0; i < OPS && cut; i++) cut = !e->whole && play.cut[i] == '0' + at[i];
  if (cut) {
    m.state = TFC_RESULT_CUT, m.message = "no time was left";
    return fn(user, &m);
  }
  for (uint32_t d = 0; d < DEVICES; d++) {
    bool alone = !e->whole;
    for (uint32_t i = 0; i < OPS; i++) alone &= at[i] == d;
    fails |= alone && play.fails[d];
  }
  if (fails || (e->plain && play.plain_fails)) {
    m.state = TFC_RESULT_FAILED, m.code = TFC_UNIMPLEMENTED;
    m.message = e->plain && play.plain_fails ? play.plain_fails : "no kernel";
    return fn(user, &m);
  }
  for (uint32_t d = 0; d < DEVICES && !e->whole && !b->ignore_limits; d++)
    if (peak[d] > play.devices[d].memory) m.state = TFC_RESULT_NO_FIT, m.message = "too much";
  if (m.state == TFC_RESULT_NO_FIT) return fn(user, &m);
  for (uint32_t block = 0; block < blocks; block++) {
    const bool traced = b->trace == TFC_TRACE_MODE_ALL || (b->trace == TFC_TRACE_MODE_ALTERNATE && block % 2 == 0);
    const uint32_t before = block || e->in_flight > 1 ? 0 : b->warmup;
    for (uint32_t k = 0; k < b->block + before; k++) {
      const bool warmup = k < before;
      const double took = us * (traced ? 1 + play.overhead : 1);
      if (traced && !warmup && !e->whole) {
        fill_profile(&profiles[m.profile_count], e, us);
        profile_step[m.profile_count++] = m.step_count;
      }
      assert_true(m.step_count < MOST_STEPS);
      steps[m.step_count] = (struct tfc_measured_step){.block = block,
                                                       .traced = traced,
                                                       .warmup = warmup,
                                                       .start_ns = play.now_ns + m.step_count,
                                                       .duration_ns = (int64_t)(1e3 * (warmup ? 3 * us : us) + 0.5),
                                                       .host_ns = (int64_t)(1e3 * took + 0.5)};
      m.step_count++;
    }
  }
  tfc_status s = fn(user, &m);
  for (uint32_t i = 0; i < m.profile_count; i++) tfc_step_profile_deinit(&profiles[i]);
  memset(profiles, 0, sizeof profiles);
  return s;
}

static tfc_status played_run(struct tfc_measurer *measurer, const struct tfc_measure_batch *b, tfc_measured_fn fn,
                             void *user) {
  (void)measurer;
  struct tfc_text line = {0};
  double reference_us = (double)NAN;
  tfc_text_printf(&line, "batch");
  for (uint32_t i = 0; i < b->count; i++) {
    tfc_text_printf(&line, "%s ", i ? "," : "");
    show_entry(&b->entries[i], &line);
    if (i == b->reference) tfc_text_printf(&line, " reference");
  }
  tfc_text_printf(&line, "; %u + %u x %u", b->warmup, b->blocks, b->block);
  if (b->choose) tfc_text_printf(&line, ", %u choose until %.2f", b->choose, b->choose_until_s - 1000);
  if (b->settle) tfc_text_printf(&line, ", settle");
  if (b->ignore_limits) tfc_text_printf(&line, ", no limits");
  if (b->again) tfc_text_printf(&line, ", again");
  if (b->stop_ratio > 0) tfc_text_printf(&line, ", stop %.4g", b->stop_ratio);
  if (!isnan(b->best_us)) tfc_text_printf(&line, ", best %.6g", b->best_us);
  static const char *const traces[] = {"all", "alternate", "none"};
  tfc_text_printf(&line, ", trace %s", traces[b->trace]);
  if (b->deadline_s > 0) tfc_text_printf(&line, ", until %.2f", b->deadline_s - 1000);
  note("%s", line.data);
  tfc_text_deinit(&line);
  play.now_ns += (int64_t)(1e9 * play.batch_s);
  if (++play.batches == play.cancel_at) {
    atomic_store(&play.cancel, true);
    return tfc_status_make(TFC_CANCELLED, "interrupted");
  }
  uint32_t leader = TFC_NONE;
  for (uint32_t i = 0; i < b->count; i++)
    if (b->entries[i].answers && (leader == TFC_NONE || us_of(&b->entries[i]) < us_of(&b->entries[leader]))) leader = i;
  if (b->reference != TFC_NONE) reference_us = us_of(&b->entries[b->reference]);
  for (uint32_t i = 0; i < b->count; i++) {
    const bool stays = !b->choose || i == leader || b->entries[i].stays;
    TFC_RETURN_IF_ERROR(play_entry(b, i, b->choose + (stays ? b->blocks : 0), reference_us, fn, user));
  }
  return NULL;
}

static tfc_status played_links(struct tfc_measurer *m, double end_s, struct tfc_link_time **out, uint32_t *out_count) {
  (void)m;
  note("links until %.2f", end_s - 1000);
  struct tfc_link_time *list = malloc(MOST_LINKS * sizeof *list);
  *out_count = 0;
  assert_non_null(list);
  static const uint32_t pairs[][2] = {{0, 1}, {0, 2}, {2, 0}}; // one pair of each two kinds
  static const uint64_t sizes[] = {1024, 262144, 1048576};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++)
      list[(*out_count)++] = (struct tfc_link_time){pairs[i][0], pairs[i][1], sizes[k], transfer_us * (k + 1), 7};
  *out = list;
  return NULL;
}

static tfc_status played_create(const struct tfc_measure_options *o, struct tfc_measurer **out) {
  play.asked = *o;
  snprintf(play.fetch_name, sizeof play.fetch_name, "%.*s", TFC_STR_ARG(o->fetches[0]));
  snprintf(play.feed_name, sizeof play.feed_name, "%.*s", TFC_STR_ARG(o->feeds[0].name));
  *out = (struct tfc_measurer *)(uintptr_t)1;
  play.now_ns += (int64_t)(1e9 * play.waited_s);
  return NULL;
}
static void played_free(struct tfc_measurer *m) {
  (void)m;
}
static const struct tfc_measure_info *played_info(const struct tfc_measurer *m) {
  (void)m;
  return &play.info;
}
static uint32_t played_restarts(const struct tfc_measurer *m) {
  (void)m;
  return play.restarts;
}
static double played_waited(const struct tfc_measurer *m) {
  (void)m;
  return play.waited_s;
}
static void played_set_end(struct tfc_measurer *m, double end_s) {
  (void)m;
  play.asked.end_s = end_s;
}
static int played_load(double *out, int count) {
  *out = play.load;
  return count;
}

// --- Searches --------------------------------------------------------------------------------------------------------
// Sets the devices of a solution: a digit for each operation, "2220000".
static void place(const struct tfc_problem *p, const char *at, struct tfc_solution *out) {
  assert_ok(tfc_solution_init(out, p));
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t i = 0; i < OPS; i++)
      if (tfc_str_is(tfc_problem_unit_name(p, u), op_names[i])) out->device[u] = (tfc_device_id)(at[i] - '0');
}
static void show_solution(const struct tfc_problem *p, const struct tfc_solution *s, char *out) {
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t i = 0; i < OPS; i++)
      if (tfc_str_is(tfc_problem_unit_name(p, u), op_names[i])) out[i] = (char)('0' + s->device[u]);
  out[OPS] = 0;
}
static int64_t simulated(const struct tfc_problem *p, const struct tfc_solution *s) {
  struct tfc_simulator *simulator = NULL;
  struct tfc_verdict v = {0};
  assert_ok(tfc_simulator_create(p, &simulator));
  tfc_simulate(simulator, s->device, s->rank, TFC_TIME_MAX, &v);
  tfc_simulator_free(simulator);
  return v.legal ? v.value : TFC_TIME_MAX;
}

// Plays tfc_search. Of heuristics, those in the table find a placement each. A round of search finds what the next line
// of play.found says: "BEST ALGORITHM:PLACEMENT ...".
static tfc_status played_search(const struct tfc_problem *p, const struct tfc_search_options *o,
                                struct tfc_search_outcome *out) {
  static const char *const heuristics[][2] = {
      {"heft", "1110000"}, {"metis", "1111110"}, {"dls", "1110000"}, {"peft", "2222220"}, {"m-topo", "0002220"}};
  // Heuristics take three evaluations, a round of search all that it gets.
  const bool is_round = o->settings.extra || o->start || !tfc_algo_find(tfc_str_from(o->settings.algorithms));
  *out = (struct tfc_search_outcome){.value = TFC_TIME_MAX, .evaluations = is_round ? o->evaluations : 3};
  if (o->evaluations && out->evaluations > o->evaluations) out->evaluations = o->evaluations;
  play.simulated += out->evaluations;
  for (size_t i = 0; i < sizeof heuristics / sizeof *heuristics; i++) {
    if (strcmp(o->settings.algorithms, heuristics[i][0]) != 0) continue;
    place(p, heuristics[i][1], &out->best);
    out->value = simulated(p, &out->best), out->algorithm = heuristics[i][0];
    return NULL;
  }
  if (!is_round) return NULL; // another heuristic
  char start[OPS + 1] = "none";
  if (o->start) show_solution(p, o->start, start);
  note("search %s for %.4f s, seed %llu, start %s", o->settings.algorithms, o->seconds, (unsigned long long)o->seed,
       start);
  play.now_ns += (int64_t)(1e9 * o->seconds);
  play.search_units = p->unit_count;
  const char *line = play.found ? play.found[play.searches] : NULL;
  if (!line) return NULL;
  if (play.found[play.searches + 1]) play.searches++;
  out->entries = calloc(8, sizeof *out->entries);
  assert_non_null(out->entries);
  place(p, line, &out->best);
  out->value = simulated(p, &out->best), out->algorithm = "lns";
  for (const char *at = strchr(line, ' '); at; at = strchr(at + 1, ' ')) {
    struct tfc_search_entry *e = &out->entries[out->entry_count++];
    e->algorithm = strncmp(at + 1, "policy", 6) == 0 ? "auto: policy"
                   : strncmp(at + 1, "heft", 4) == 0 ? "heft"
                                                     : "lns";
    place(p, strchr(at, ':') + 1, &e->solution);
    e->value = simulated(p, &e->solution);
  }
  return NULL;
}

// --- The graph and the devices ---------------------------------------------------------------------------------------
static void build_graph(void) {
  struct tfc_builder *b = NULL;
  struct tfc_shape shape = TFC_SHAPE(4, 4);
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &shape), last[2], y;
  for (int chain = 0; chain < 2; chain++) {
    y = x;
    if (play.experts) tfc_builder_set_device(b, chain ? TFC_STR("/device:CPU:0") : TFC_STR("/device:GPU:0"));
    for (int i = 0; i < 3; i++) y = tfc_add(b, i == 1 ? "Exp" : "Neg", op_names[3 * chain + i], &y, 1, NULL, 0);
    last[chain] = y;
  }
  play.fetch = tfc_add(b, "AddV2", "j", last, 2, NULL, 0);
  struct tfc_attr four = tfc_attr_int("num", 4);
  tfc_add(b, "Unpack", "outside", &x, 1, &four, 1); // not part of the step
  assert_ok(tfc_builder_finish(b, &play.graph));
  tfc_builder_free(b);
  play.feed = (struct tfc_output){tfc_graph_find(play.graph, TFC_STR("x")), 0};
  for (uint32_t i = 0; i < OPS; i++) play.op[i] = tfc_graph_find(play.graph, tfc_str_from(op_names[i]));
}

static void play_begin(void) {
  memset(&play, 0, sizeof play);
  build_graph();
  const uint32_t nodes = play.graph->node_count;
  play.step_feed = (struct tfc_step_feed){
      .output = play.feed, .name = TFC_STR("x:0"), .dtype = TFC_FLOAT, .shape = TFC_SHAPE(4, 4), .high = 1};
  play.step =
      (struct tfc_step_spec){.fetches = &play.fetch, .fetch_count = 1, .feeds = &play.step_feed, .feed_count = 1};
  static const char *const names[] = {"cpu:0", "cpu:1", "acc:0"};
  for (uint32_t d = 0; d < DEVICES; d++) {
    struct tfc_device_info *i = &play.devices[d];
    snprintf(i->name, sizeof i->name, "%s", names[d]);
    snprintf(i->kind, sizeof i->kind, "%.3s", names[d]);
    snprintf(i->tensorflow, sizeof i->tensorflow, "/device:%s:%u", d == 2 ? "GPU" : "CPU", d == 2 ? 0 : d);
    snprintf(i->label, sizeof i->label, "measured");
    snprintf(i->model, sizeof i->model, "played %u", d);
    i->memory = TFC_NO_LIMIT, i->cores = d + 1, i->address_space = d;
  }
  play.info = (struct tfc_measure_info){.devices = play.devices,
                                        .device_count = DEVICES,
                                        .node_count = nodes,
                                        .ops = play.op,
                                        .op_count = OPS,
                                        .is_static = true,
                                        .output_count = play.graph->output_total - 2, // not all of "outside"
                                        .kind_count = 2};
  play.info.whole = (struct tfc_device_info){.cores = 8, .memory = TFC_NO_LIMIT};
  snprintf(play.info.whole.name, sizeof play.info.whole.name, "whole");
  snprintf(play.info.whole.kind, sizeof play.info.whole.kind, "cpu");
  snprintf(play.info.whole.label, sizeof play.info.whole.label, "measured");
  play.info.output_bytes = calloc(play.graph->output_total + 1u, sizeof *play.info.output_bytes);
  play.info.work = calloc(nodes + 1u, sizeof *play.info.work);
  play.info.supported = malloc(2 * nodes * sizeof *play.info.supported);
  assert_true(play.info.output_bytes && play.info.work && play.info.supported);
  for (uint32_t o = 0; o < play.graph->output_total; o++) play.info.output_bytes[o] = 64;
  for (uint32_t n = 0; n < nodes; n++) play.info.work[n] = (struct tfc_op_cost){16 + n, 128 + n};
  for (uint32_t n = 0; n < 2 * nodes; n++) play.info.supported[n] = true;
  play.now_ns = INT64_C(1000000000000); // 1000 s
  note("begins");
  play.batch_s = 0.5, play.whole_us = 600, play.overhead = 0.01, play.peak_of_op = 1000;
}

static void play_end(void) {
  tfc_graph_release(play.graph);
  free(play.info.output_bytes);
  free(play.info.work);
  free(play.info.supported);
  tfc_text_deinit(&play.log);
}

static void heard(void *user, const struct tfc_job_event *e) {
  (void)user;
  if (e->text) note("%s: %s", e->warning ? "warning" : "says", e->text);
}

#define tfc_now_ns played_now
#define tfc_measurer_run played_run
#define tfc_measurer_links played_links
#define tfc_measurer_create played_create
#define tfc_measurer_free played_free
#define tfc_measurer_info played_info
#define tfc_measurer_restarts played_restarts
#define tfc_measurer_waited_s played_waited
#define tfc_measurer_set_end played_set_end
#define tfc_search played_search
#define getloadavg played_load

#endif
