// Writes the sentences at the top of a report: why the run ended, how the best measured candidate did in the final
// turns, why a faster rival is not the answer, and what learning contributed.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/statistics.h"
#include "reports/ending.h"
#include "reports/lists.h"
#include "reports/reports.h"
#include "runtime/base/units.h"

// The best candidate: its time when it was proposed, and its time in the final turns that measure the answer.
static const char best_seen_sql[] =
    "SELECT r.placement AS name, e.algorithm, e.placement_id, v.placement_id AS answer_id, e.step_median_us AS seen_us,"
    " r.step_median_us AS final_us, e.placement_id = v.placement_id AS is_answer, EXISTS (SELECT 1 FROM v_step s WHERE "
    "s.run_id = e.run_id AND s.placement_id ="
    " e.placement_id AND s.phase = 'final') AS in_final, v.step_median_us AS answer_us FROM v_episode e JOIN v_run v"
    " USING (run_id) JOIN v_result r ON r.run_id = e.run_id AND r.placement_id = e.placement_id WHERE e.run_id = :run "
    "AND"
    " e.state = 'ok' AND e.step_median_us IS NOT NULL ORDER BY e.step_median_us, e.episode LIMIT 1";

// The same where loads were searched: the candidate with the smallest load.
static const char best_load_sql[] =
    "SELECT r.placement AS name, e.algorithm, r.load_us, e.placement_id = v.placement_id AS is_answer, v.load_us AS "
    "answer_us "
    "FROM"
    " v_episode e JOIN v_run v USING (run_id) JOIN v_result r ON r.run_id = e.run_id AND r.placement_id ="
    " e.placement_id WHERE e.run_id = :run AND e.state = 'ok' AND r.load_us IS NOT NULL AND (v.load_samples = 0 OR"
    " r.load_samples > 0) ORDER BY r.load_us, e.episode LIMIT 1";

// What the answer is, if it is a rival: the expert's placement, a single device, or one that was given.
static const char answer_sql[] =
    "SELECT r.role, r.placement, r.message, (SELECT COUNT(DISTINCT device_id) FROM v_placement WHERE run_id = :run AND"
    " placement_id = :placement) AS used, (SELECT MIN(device) FROM v_placement WHERE run_id = :run AND placement_id ="
    " :placement) AS device, (SELECT COUNT(*) FROM v_device WHERE run_id = :run AND name <> 'whole') AS devices, "
    "(SELECT"
    " COUNT(*) > 0 AND SUM(x.device_id <> y.device_id) = 0 FROM v_placement x JOIN v_placement y USING (run_id, "
    "node_id)"
    " WHERE run_id = :run AND x.placement = 'expert' AND x.role = 'baseline' AND y.placement_id = :placement) AS expert"
    " FROM v_result r WHERE r.run_id = :run AND r.placement_id = :placement";
// Rivals that took less than the answer. A load counts where loads were searched.
static const char faster_sql[] =
    "SELECT r.placement_id, r.placement, r.state, r.message, x.loads, CASE WHEN x.loads AND r.placement <> 'whole' THEN"
    " r.load_us ELSE r.step_median_us END AS us, CASE WHEN x.loads THEN v.load_us ELSE v.step_median_us END AS "
    "answer_us"
    " FROM v_result r JOIN v_run v USING (run_id) JOIN (SELECT run_id, objective = 'throughput' AS loads FROM v_run) x"
    " USING (run_id) WHERE r.run_id = :run AND r.role = 'baseline' AND r.placement_id <> :placement AND us < answer_us"
    " AND (r.placement = 'whole' OR NOT x.loads OR v.load_samples = 0 OR r.load_samples > 0) ORDER BY us, r.placement";

// The steps of a placement in the final turns that choose the answer.
static const char choice_sql[] =
    "SELECT s.block, s.step_us FROM v_step s WHERE s.run_id = :run AND s.placement_id = :placement AND s.phase ="
    " 'choose' ORDER BY s.block, s.step";

// Computes what the choice of the answer compares: the geometric mean of the medians of the blocks of steps. NaN: the
// placement was not measured then.
static tfc_status choice_us(struct tfc_store *store, struct tfc_query_args args, double placement, double *out_us) {
  struct tfc_table steps = {0};
  double *us = NULL, sum = 0;
  uint32_t blocks = 0;
  tfc_status s = NULL;
  *out_us = (double)NAN;
  if (placement != placement) return NULL;
  args.placement = (int64_t)placement;
  TFC_TRY(s, tfc_table_query(store, choice_sql, &args, &steps));
  if (!(us = malloc((steps.row_count + 1u) * sizeof *us))) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t at = 0; at < steps.row_count; blocks++) {
    const double block = tfc_table_number(&steps, at, "block");
    size_t count = 0;
    for (; at < steps.row_count && tfc_table_number(&steps, at, "block") == block; at++)
      us[count++] = tfc_table_number(&steps, at, "step_us");
    sum += log(tfc_quartiles_of(us, count).median);
  }
  if (blocks) *out_us = exp(sum / blocks);
out:
  free(us);
  tfc_table_deinit(&steps);
  return s;
}

// Returns the value of a flag in a saved command line; empty: the flag is not there.
static tfc_str flag_of(tfc_str command, const char *flag) {
  const size_t size = strlen(flag);
  for (size_t at = 0; at + size < command.size; at++) {
    tfc_str rest = tfc_str_sub(command, at + size, SIZE_MAX);
    if (memcmp(command.data + at, flag, size) != 0 || (rest.data[0] != ' ' && rest.data[0] != '=')) continue;
    rest = tfc_str_sub(rest, 1, SIZE_MAX);
    return tfc_str_sub(rest, 0, tfc_str_find(rest, ' '));
  }
  return (tfc_str){0};
}

static void add_reason(const struct tfc_table *run, struct tfc_text *out) {
  const tfc_str state = tfc_table_text(run, 0, "state"), command = tfc_table_text(run, 0, "command");
  const double episodes = tfc_table_number(run, 0, "episodes"), wall = tfc_table_number(run, 0, "wall_s");
  char a[32], b[32];
  if (tfc_str_is(state, "running")) {
    tfc_text_printf(out, "It has not ended, or was killed.");
    return;
  }
  if (tfc_str_is(state, "interrupted") && tfc_str_is(tfc_table_text(run, 0, "program"), "tfc-place")) {
    tfc_text_printf(out, "It was interrupted: tfc-place --resume goes on with it.");
    return;
  }
  if (tfc_str_is(state, "failed")) {
    tfc_text_printf(out, "It failed.");
    return;
  }
  if (!tfc_str_is(tfc_table_text(run, 0, "program"), "tfc-place")) {
    const tfc_str ending = tfc_table_text(run, 0, "ending");
    tfc_text_add(out, ending);
    if (ending.size && wall == wall)
      tfc_text_printf(out, " It took %s in all, from loading the graph on.", tfc_show_us(a, wall * 1e6));
    return;
  }
  if (wall != wall) return;
  if (tfc_report_is_modelled(run, 0)) {
    const tfc_str ending = tfc_table_text(run, 0, "ending"); // runs of older versions have none
    if (ending.size)
      tfc_text_add(out, ending);
    else
      tfc_text_printf(out, "It simulated for %s and measured nothing.", tfc_show_us(a, wall * 1e6));
    return;
  }
  double most = 200, time = 600e6, value; // tfc-place's defaults
  tfc_str measurements = flag_of(command, "--measurements"), budget = flag_of(command, "--time"),
          settings = flag_of(command, "--config");
  const tfc_str why = tfc_table_text(run, 0, "ending"); // runs of older versions have none
  tfc_status s = NULL;
  if (!settings.size) settings = flag_of(command, "--step");
  if (measurements.size && !(s = tfc_parse_double(measurements, &value))) most = value;
  tfc_status_free(s), s = NULL;
  if (budget.size && !(s = tfc_parse_time_us(budget, &value))) time = value;
  tfc_status_free(s);
  if (flag_of(command, "--evaluate").size) tfc_text_printf(out, "It measured what it was given, without a search.");
  // Limits that a file of settings gives are not known here.
  else if (settings.size && (!measurements.size || !budget.size))
    tfc_text_printf(out, "It ended after %s with %.0f candidates measured (its limits are those of %.*s)%s%.*s.",
                    tfc_show_us(a, wall * 1e6), episodes, TFC_STR_ARG(settings), why.size ? ": " : "",
                    TFC_STR_ARG(why));
  else if (episodes >= most)
    tfc_text_printf(out, "It ended with the %.0f measurements that it had.", most);
  else
    tfc_text_printf(out, "It ended after %s of its %s with %.0f candidates measured, of at most %.0f%s%.*s.",
                    tfc_show_us(a, wall * 1e6), tfc_show_us(b, time), episodes, most, why.size ? ": " : "",
                    TFC_STR_ARG(why));
}

void tfc_report_learning(const struct tfc_table *run, struct tfc_text *out) {
  tfc_str text = tfc_table_text(run, 0, "learning");
  while (text.size) {
    const tfc_str line = tfc_str_take(&text, '\n');
    if (line.size) tfc_text_printf(out, "%s%.*s", out->size ? " " : "", TFC_STR_ARG(line));
  }
}

// Tells of a run in which memory was the limit: no candidate fits in it.
static tfc_status tell_no_fit(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_text *out) {
  struct tfc_table t = {0};
  tfc_status s = tfc_table_query(
      store, "SELECT COUNT(*) > 0 AND SUM(state <> 'no fit') = 0 AS none FROM v_episode WHERE run_id = :run", args, &t);
  if (!s && tfc_table_number(&t, 0, "none") == 1)
    tfc_text_printf(out, "%sNone of the candidates fits in memory.", out->size ? " " : "");
  tfc_table_deinit(&t);
  return s;
}

static tfc_status tell_load(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_text *out) {
  struct tfc_table best = {0};
  char a[32], b[32];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(store, best_load_sql, args, &best));
  if (!best.row_count) goto out;
  tfc_text_printf(out, "%sThe candidate with the smallest load is %.*s by %.*s, %s", out->size ? " " : "",
                  TFC_STR_ARG(tfc_table_text(&best, 0, "name")), TFC_STR_ARG(tfc_table_text(&best, 0, "algorithm")),
                  tfc_show_us(a, tfc_table_number(&best, 0, "load_us")));
  if (tfc_table_number(&best, 0, "is_answer") == 1)
    tfc_text_printf(out, ": the answer.");
  else
    tfc_text_printf(out, "; the load of the answer is %s.", tfc_show_us(b, tfc_table_number(&best, 0, "answer_us")));
out:
  tfc_table_deinit(&best);
  return s;
}

// Tells of a rival that took less than the answer why it is not the answer.
static tfc_status tell_faster(struct tfc_store *store, const struct tfc_query_args *args, const struct tfc_table *t,
                              uint32_t r, struct tfc_text *out) {
  const tfc_str name = tfc_table_text(t, r, "placement"), state = tfc_table_text(t, r, "state"),
                message = tfc_table_text(t, r, "message");
  const bool loads = tfc_table_number(t, r, "loads") == 1;
  double there = (double)NAN, answer = (double)NAN;
  char a[32], b[32];
  tfc_status s = NULL;
  tfc_show_us(a, tfc_table_number(t, r, "us")), tfc_show_us(b, tfc_table_number(t, r, "answer_us"));
  tfc_text_printf(out, "%s", out->size ? " " : "");
  if (tfc_str_is(name, "whole")) {
    tfc_text_printf(out, "The undivided machine is faster%s (%s, the answer %s), but is no placement.",
                    loads ? ", one step after another" : "", a, b);
    return NULL;
  }
  tfc_text_printf(out, "%.*s %s (%s, the answer %s), but ", TFC_STR_ARG(name),
                  loads ? "has a smaller load" : "took less", a, b);
  if (tfc_str_is(state, "no fit")) {
    tfc_text_printf(out, "does not fit in memory.");
    return NULL;
  }
  if (!tfc_str_is(state, "ok")) {
    tfc_text_printf(out, "%s%s%.*s.", tfc_str_is(state, "illegal") ? "is not allowed" : "was not measured to the end",
                    message.size ? ": " : "", TFC_STR_ARG(message));
    return NULL;
  }
  if (loads) {
    tfc_text_printf(out, "could not be run to the end.");
    return NULL;
  }
  TFC_TRY(s, choice_us(store, *args, tfc_table_number(t, r, "placement_id"), &there));
  TFC_TRY(s, choice_us(store, *args, (double)args->placement, &answer));
  if (there == there && answer == answer && there > answer)
    tfc_text_printf(out, "lost in the turns that chose the answer (%s, the answer %s).", tfc_show_us(a, there),
                    tfc_show_us(b, answer));
  else if (there == there && answer == answer)
    tfc_text_printf(out, "was not in all turns that chose the answer.");
  else
    tfc_text_printf(out, "was not in the turns that chose the answer%s%.*s.", message.size ? ": " : "",
                    TFC_STR_ARG(message));
out:
  return s;
}

static tfc_status tell_rivals(struct tfc_store *store, const struct tfc_query_args *args, const struct tfc_table *run,
                              struct tfc_text *out) {
  struct tfc_table answer = {0}, faster = {0};
  tfc_status s = NULL;
  if (args->placement < 0 || !tfc_str_is(tfc_table_text(run, 0, "program"), "tfc-place") ||
      flag_of(tfc_table_text(run, 0, "command"), "--evaluate").size ||
      tfc_table_find(run, 0, "placement_id")->kind == TFC_CELL_NULL)
    return NULL;
  TFC_TRY(s, tfc_table_query(store, answer_sql, args, &answer));
  TFC_TRY(s, tfc_table_query(store, faster_sql, args, &faster));
  if (!answer.row_count) goto out;
  const tfc_str name = tfc_table_text(&answer, 0, "placement"), device = tfc_table_text(&answer, 0, "device");
  const bool rival = tfc_str_is(tfc_table_text(&answer, 0, "role"), "baseline");
  const char *space = out->size ? " " : "";
  if (rival && tfc_str_is(name, "expert"))
    tfc_text_printf(out, "%sThe answer is the expert's placement: no other was faster.", space);
  else if (tfc_table_number(&answer, 0, "expert") == 1)
    tfc_text_printf(out, "%sThe answer is the expert's placement, found again.", space);
  else if (tfc_table_number(&answer, 0, "used") == 1 && tfc_table_number(&answer, 0, "devices") > 1)
    tfc_text_printf(out, "%sThe answer is one device: all of it is on %.*s.", space, TFC_STR_ARG(device));
  else if (rival)
    tfc_text_printf(out, "%sThe answer is the rival %.*s.", space, TFC_STR_ARG(name));
  for (uint32_t r = 0; r < faster.row_count && r < 3; r++) TFC_TRY(s, tell_faster(store, args, &faster, r, out));
out:
  tfc_table_deinit(&answer);
  tfc_table_deinit(&faster);
  return s;
}

static tfc_status tell_best(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_text *out) {
  struct tfc_table best = {0};
  char a[32], b[32], c[32];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(store, best_seen_sql, args, &best));
  if (!best.row_count) goto out;
  const double answer = tfc_table_number(&best, 0, "answer_us");
  tfc_str by = tfc_table_text(&best, 0, "algorithm");
  tfc_text_printf(out, "%sThe best candidate seen is %.*s by %.*s, %s when it was measured", out->size ? " " : "",
                  TFC_STR_ARG(tfc_table_text(&best, 0, "name")), TFC_STR_ARG(by),
                  tfc_show_us(a, tfc_table_number(&best, 0, "seen_us")));
  const bool in_final = tfc_table_number(&best, 0, "in_final") == 1;
  double chosen = (double)NAN, there = (double)NAN;
  if (!in_final) TFC_TRY(s, choice_us(store, *args, tfc_table_number(&best, 0, "placement_id"), &chosen));
  if (chosen == chosen) TFC_TRY(s, choice_us(store, *args, tfc_table_number(&best, 0, "answer_id"), &there));
  if (in_final) tfc_text_printf(out, ", %s in the final turns", tfc_show_us(a, tfc_table_number(&best, 0, "final_us")));
  if (tfc_table_number(&best, 0, "is_answer") == 1)
    tfc_text_printf(out, ": the answer.");
  else if (there == there && answer == answer)
    tfc_text_printf(out,
                    ": it lost in the turns that chose the answer, %s there and the answer %s; in the turns after"
                    " them the answer took %s.",
                    tfc_show_us(a, chosen), tfc_show_us(b, there), tfc_show_us(c, answer));
  else if (answer == answer)
    tfc_text_printf(out, ": %s, the answer took %s.", in_final ? "it lost there" : "it was not in the final turns",
                    tfc_show_us(b, answer));
  else
    tfc_text_printf(out, ".");
out:
  tfc_table_deinit(&best);
  return s;
}

tfc_status tfc_report_ending(struct tfc_store *store, const struct tfc_query_args *args, const struct tfc_table *run,
                             struct tfc_text *out) {
  tfc_status s = NULL;
  add_reason(run, out);
  TFC_TRY(s, tell_no_fit(store, args, out));
  TFC_TRY(s, tfc_str_is(tfc_table_text(run, 0, "objective"), "throughput") ? tell_load(store, args, out)
                                                                           : tell_best(store, args, out));
  TFC_TRY(s, tell_rivals(store, args, run, out));
out:
  return s;
}
