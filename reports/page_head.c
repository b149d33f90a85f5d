// The head of the page: the answer, by how much it is better, and how sure that is.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reports/html.h"
#include "reports/page.h"
#include "reports/palette.h"
#include "reports/reports.h"
#include "runtime/base/units.h"

static void add_card(struct tfc_page *p, const char *class, const char *value, const char *text) {
  tfc_page_add(p, "<div class=\"card%s\"><b>%s</b><span>%s</span></div>\n", class, value, text);
}

// --- The head ------------------------------------------------------------------------------------------------------

// Returns how many times as large the load of the best single device is as that of the answer; NaN: not known. A run of
// an older version has only the ratio.
static double load_ratio(const struct tfc_page *p) {
  const double single = tfc_page_number(p, "best_single_load_us"), load = tfc_page_number(p, "load_us");
  return single == single && load > 0 ? single / load : tfc_page_number(p, "speedup");
}

// With the throughput objective, what counts is the load of the busiest device; the steps shown on the page ran one at
// a time, so that another device may win them.
static void add_load_verdict(struct tfc_page *p, double answer) {
  const double id = tfc_page_number(p, "placement_id"), ratio = load_ratio(p), low = tfc_page_number(p, "speedup_low"),
               single = tfc_page_number(p, "best_single_us");
  const bool modelled = tfc_page_modelled(p);
  char a[32];
  tfc_page_add(p, "<p class=\"verdict\">Searched for the smallest load of the busiest device. ");
  const double load = tfc_page_number(p, "load_us"), samples = tfc_page_number(p, "load_samples");
  if (load == load && !(samples > 0)) // what was measured follows below
    tfc_page_add(p, "It is <strong>%s</strong>, %s. ", tfc_html_us(a, load),
                 modelled ? "as simulated" : "computed from measured operations");
  for (uint32_t r = 0; r < p->in_flight.row_count; r++) {
    if (tfc_table_number(&p->in_flight, r, "placement_id") != id) continue;
    tfc_page_add(p, "With steps %.*s one ends every <strong>%s</strong>. ",
                 TFC_STR_ARG(tfc_table_text(&p->in_flight, r, "phase")),
                 tfc_html_us(a, tfc_table_number(&p->in_flight, r, "apart_us")));
    break; // rows are ordered: the fastest mode comes first
  }
  if (ratio == ratio) tfc_page_add(p, "The load of the best single device is %.2f times as large", ratio);
  if (ratio == ratio && low == low)
    tfc_page_add(p, " (95&nbsp;%% interval %.2f to %.2f)", low, tfc_page_number(p, "speedup_high"));
  tfc_page_add(p,
               modelled ? "%s One step by itself, which is shown below, would take %s"
                        : "%s The steps below ran one at a time, which was not searched for: %s each",
               ratio == ratio ? "." : "", tfc_html_us(a, answer));
  if (single == single) tfc_page_add(p, ", on the best single device %s", tfc_html_us(a, single));
  tfc_page_add(p, ".</p>\n");
}

static void add_load_cards(struct tfc_page *p) {
  const double load = tfc_page_number(p, "load_us"), single = tfc_page_number(p, "best_single_load_us"),
               samples = tfc_page_number(p, "load_samples");
  char a[32], times[32], text[160];
  if (load != load) return;
  if (samples > 0)
    snprintf(text, sizeof text, "from the end of one step to that of the next, %.0f at once",
             tfc_page_number(p, "load_at_once"));
  else
    snprintf(text, sizeof text, "load of the busiest device, %s", tfc_report_load_how(samples, tfc_page_modelled(p)));
  add_card(p, " main", tfc_html_us(a, load), text);
  if (single != single) return;
  snprintf(times, sizeof times, "%.2f×", load_ratio(p));
  snprintf(text, sizeof text, "%s against the best single device (%s)", samples > 0 ? "rate" : "load",
           tfc_html_us(a, single));
  add_card(p, " main", times, text);
}

static void add_verdict(struct tfc_page *p) {
  double answer = tfc_page_number(p, "step_median_us"), single = tfc_page_number(p, "best_single_us"),
         whole = tfc_page_number(p, "whole_us"), low = tfc_page_number(p, "speedup_low"),
         high = tfc_page_number(p, "speedup_high");
  char a[32];
  if (answer != answer) {
    tfc_page_add(p, "<p class=\"verdict\">This run has no answer (%.*s).</p>\n",
                 TFC_STR_ARG(tfc_page_text(p, "state")));
    return;
  }
  if (tfc_report_is_too_large(&p->run, 0)) {
    tfc_page_add(p,
                 "<p class=\"verdict\">The answer does not fit in memory. %s of it takes <strong>%s</strong>.%s</p>\n",
                 tfc_page_modelled(p) ? "In the simulation a step" : "A step", tfc_html_us(a, answer),
                 tfc_page_modelled(p) ? " Nothing was run." : "");
    return;
  }
  if (tfc_str_is(tfc_page_text(p, "objective"), "throughput")) {
    add_load_verdict(p, answer);
    return;
  }
  tfc_page_add(p, "<p class=\"verdict\">");
  if (single == single && tfc_page_modelled(p) && single > answer)
    tfc_page_add(p,
                 "In the simulation a step takes <strong>%s</strong> under the placement that was found, %.2f times "
                 "faster than on the best single device. Nothing was run.",
                 tfc_html_us(a, answer), single / answer);
  else if (single == single && tfc_page_modelled(p))
    tfc_page_add(
        p,
        "In the simulation nothing beats the best single device: a step takes <strong>%s</strong>. Nothing was "
        "run.",
        tfc_html_us(a, answer));
  else if (single == single && low == low && low > 1)
    tfc_page_add(
        p,
        "A step takes <strong>%s</strong> under the placement that was found: %.2f times faster than on the best "
        "single "
        "device, by more than the noise (95&nbsp;%% interval %.2f to %.2f).",
        tfc_html_us(a, answer), single / answer, low, high);
  else if (single == single && low != low && tfc_page_number(p, "exit_code") == 0 && single > answer)
    tfc_page_add(p,
                 "A step takes <strong>%s</strong> under the placement that was found: %.2f times faster than on the "
                 "best single device. It was timed in too few steps for an interval.",
                 tfc_html_us(a, answer), single / answer);
  else if (single == single)
    tfc_page_add(p,
                 "Nothing was found that beats the best single device by more than the noise: a step takes "
                 "<strong>%s</strong>%s.",
                 tfc_html_us(a, answer), low == low ? "" : ", and no interval was measured");
  else
    tfc_page_add(p, "%s takes <strong>%s</strong>.", tfc_page_modelled(p) ? "In the simulation a step" : "A step",
                 tfc_html_us(a, answer));
  if (whole == whole && whole < answer)
    tfc_page_add(p, " The undivided machine, as one device, is faster still: %s.", tfc_html_us(a, whole));
  tfc_page_add(p, "</p>\n");
}

void tfc_page_head(struct tfc_page *p) {
  char a[32], text[160], when[64] = "";
  double answer = tfc_page_number(p, "step_median_us"), started = tfc_page_number(p, "started_unix_s"),
         bound = tfc_page_number(p, "bound_us"), wall = tfc_page_number(p, "wall_s");
  time_t seconds = started == started ? (time_t)started : 0;
  struct tm local;
  if (localtime_r(&seconds, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
  tfc_page_add(p, "<header><h1>");
  tfc_page_escaped(p, tfc_page_base_name(tfc_page_text(p, "graph")));
  tfc_page_add(p, " on %u device%s</h1>\n<p>", p->devices.row_count, p->devices.row_count == 1 ? "" : "s");
  if (p->kept) {
    tfc_page_add(p, "Run %lld of ", (long long)p->args.run);
    tfc_page_escaped(p, tfc_page_base_name(tfc_str_from(tfc_store_path(p->store))));
    tfc_page_add(p, ", ");
  }
  tfc_page_add(p, "%s%s", when, wall == wall ? "" : ", not ended");
  if (wall == wall && p->kept) tfc_page_add(p, ", took %s", tfc_html_us(a, wall * 1e6));
  tfc_page_add(p, ". Times are <span class=\"tag%s\">",
               tfc_str_is(tfc_page_text(p, "label"), "measured") ? "" : " odd");
  tfc_page_escaped(p, tfc_page_text(p, "label"));
  tfc_page_add(p, "</span></p></header>\n");
  add_verdict(p);
  tfc_page_add(p, "<div class=\"cards\">\n");
  const bool loads = tfc_str_is(tfc_page_text(p, "objective"), "throughput");
  const char *step = loads ? "one step alone" : "a step";
  if (tfc_page_modelled(p)) {
    snprintf(text, sizeof text, "%s, simulated", step);
  } else {
    snprintf(text, sizeof text, "%s, median of %.0f; quartiles %s", step, tfc_page_number(p, "step_count"),
             tfc_html_us(a, tfc_page_number(p, "step_q1_us")));
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, " to %s", tfc_html_us(a, tfc_page_number(p, "step_q3_us")));
  }
  const char *too_large = tfc_report_is_too_large(&p->run, 0) ? "; the answer does not fit in memory" : "";
  const size_t said = strlen(text);
  snprintf(text + said, sizeof text - said, "%s", too_large);
  if (loads) add_load_cards(p);
  if (answer == answer) add_card(p, loads ? " aside" : " main", tfc_html_us(a, answer), text);
  static const struct {
    const char *column, *text;
  } rivals[] = {{"best_single_us", "against the best single device"},
                {"expert_us", "against the expert's hand placement"},
                {"whole_us", "against the undivided machine"}};
  for (size_t i = 0; i < 3; i++) {
    double rival = tfc_page_number(p, rivals[i].column);
    if (rival != rival || !(answer > 0)) continue;
    char ratio[32];
    snprintf(ratio, sizeof ratio, "%.2f×", rival / answer);
    snprintf(text, sizeof text, "%s%s (%s)%s", loads ? "one step alone, " : "", rivals[i].text, tfc_html_us(a, rival),
             too_large);
    add_card(p, loads ? " aside" : "", ratio, text);
  }
  const double searched = loads ? tfc_page_number(p, "load_us") : answer; // what the bound is about
  // Of an answer that does not fit it would say nothing: one that fits may be nearer or farther.
  if (bound > 0 && searched == searched && !*too_large) {
    char gap[32];
    snprintf(gap, sizeof gap, "%.0f %%", 100 * (searched / bound - 1));
    snprintf(text, sizeof text, "above the lower bound%s of %s (%.*s)", loads ? " of the load" : "",
             tfc_html_us(a, bound), TFC_STR_ARG(tfc_page_text(p, "bound_name")));
    add_card(p, "", gap, text);
  }
  if (p->tau.tau == p->tau.tau) {
    char value[32];
    snprintf(value, sizeof value, "%.2f", p->tau.tau);
    char stored[48] = "";
    if (tfc_report_tau_differs(&p->tau, &p->run))
      snprintf(stored, sizeof stored, "; v_run.tau is %.2f, by an older rule", tfc_page_number(p, "tau"));
    snprintf(text, sizeof text, "Kendall's τ of simulated against measured, %.0f placements%s%s", p->tau.placements,
             p->tau.without_answer ? " (not the answer, which was stopped early at first)" : "", stored);
    add_card(p, "", value, text);
  }
  tfc_page_add(p, "</div>\n");
}

void tfc_page_basis(struct tfc_page *p) {
  char a[32];
  tfc_page_add(p, "<p class=\"note\" id=\"basis\">");
  if (p->args.step < 0)
    tfc_page_add(
        p, "No step of the answer is kept operation by operation: what is said of operations are medians over steps.");
  else if (*tfc_report_simulated(p->store, &p->args))
    tfc_page_add(p, "What is said of operations, devices and transfers is of one step, the simulated one, so that all "
                    "figures add up.");
  else
    tfc_page_add(p,
                 "What is said of operations, devices and transfers is of one step, so that all figures add up: step "
                 "%lld, which took %s, the traced one nearest to the median. What is of more steps says so.",
                 (long long)p->args.step, tfc_html_us(a, (double)p->traced.end * 1e-3));
  tfc_page_add(p, "</p>\n");
}
