// The traced step by device: operations coloured by the family of their type, gaps by what the device waited for,
// arriving tensors, and the critical path. It is one picture without text, which can be stretched to any width; labels
// and the axis are above it. This file draws it, and not gnuplot, so that the page's script can find what is under the
// pointer.
#include <math.h>
#include <stdio.h>

#include "reports/html.h"
#include "reports/page.h"
#include "reports/palette.h"
#include "runtime/base/units.h"

enum { LANE = 66, BARS = 20, BAR_HEIGHT = 24, PATH = 46, ARRIVING = 53, ARRIVING_HEIGHT = 7, WIDTH = 100000 };
enum { WAITS_DEPENDENCY, WAITS_TRANSFER, WAITS_OTHER, WAITS_END, CAUSES };
static const char *const causes[CAUSES] = {"waits for another device", "waits for a transfer", "about to begin",
                                           "done before the step"};

static int64_t x_of(const struct tfc_page *p, int64_t ns) {
  return p->traced.end > 0 ? (int64_t)llround((double)ns * WIDTH / (double)p->traced.end) : 0;
}
static int32_t lane_of(const struct tfc_page *p, int32_t device) {
  for (uint32_t r = 0; r < p->devices.row_count; r++)
    if (tfc_table_find(&p->devices, r, "device_id")->integer == device) return (int32_t)r;
  return -1;
}
static void add_box(struct tfc_page *p, int64_t from, int64_t to, int y, int height) {
  int64_t x = x_of(p, from), width = x_of(p, to) - x;
  tfc_page_add(p, "M%lld %dh%lldv%dh-%lldz", (long long)x, y, (long long)(width > 8 ? width : 8), height,
               (long long)(width > 8 ? width : 8));
}

static void parts_of(const struct tfc_traced_gap *g, int64_t out[CAUSES]) {
  out[WAITS_DEPENDENCY] = g->dependency, out[WAITS_TRANSFER] = g->transfer;
  out[WAITS_OTHER] = g->op == TFC_NONE ? 0 : g->other, out[WAITS_END] = g->op == TFC_NONE ? g->other : 0;
}

static void add_gaps(struct tfc_page *p, int32_t lane) {
  const struct tfc_traced *t = &p->traced;
  const int y = lane * LANE + BARS;
  for (int cause = 0; cause < CAUSES; cause++) {
    bool any = false;
    for (uint32_t i = 0; i < t->gap_count; i++) {
      const struct tfc_traced_gap *g = &t->gaps[i];
      if (lane_of(p, g->device) != lane) continue;
      int64_t from = g->start, parts[CAUSES];
      parts_of(g, parts);
      for (int k = 0; k < cause; k++) from += parts[k];
      if (parts[cause] <= 0) continue;
      if (!any) tfc_page_add(p, "<path class=\"gap g%d\" d=\"", cause);
      any = true;
      add_box(p, from, from + parts[cause], y, BAR_HEIGHT);
    }
    if (any) tfc_page_add(p, "\"/>\n");
  }
}

static void add_operations(struct tfc_page *p, int32_t lane, uint32_t family) {
  const struct tfc_traced *t = &p->traced;
  bool any = false;
  for (uint32_t i = 0; i < t->op_count; i++) {
    if (lane_of(p, t->ops[i].device) != lane || tfc_palette_family(tfc_table_text(&t->op_rows, i, "op")) != family)
      continue;
    if (!any) tfc_page_add(p, "<path class=\"f%u\" d=\"", family);
    any = true;
    add_box(p, t->ops[i].start, t->ops[i].end, lane * LANE + BARS, BAR_HEIGHT);
  }
  if (any) tfc_page_add(p, "\"/>\n");
}

static void add_arriving(struct tfc_page *p, int32_t lane) {
  const struct tfc_traced *t = &p->traced;
  bool any = false;
  for (uint32_t i = 0; i < t->transfer_count; i++) {
    if (lane_of(p, t->transfers[i].target) != lane) continue;
    if (!any) tfc_page_add(p, "<path class=\"arriving\" d=\"");
    any = true;
    add_box(p, t->transfers[i].start, t->transfers[i].end, lane * LANE + ARRIVING, ARRIVING_HEIGHT);
  }
  if (any) tfc_page_add(p, "\"/>\n");
}

// Draws a line below the items of the path; it changes to another lane where the path does.
static void add_path(struct tfc_page *p) {
  const struct tfc_traced *t = &p->traced;
  tfc_page_add(p, "<path class=\"critical\" d=\"");
  for (uint32_t i = 0; i < t->path_count; i++) {
    const struct tfc_traced_item *item = &t->path[i];
    int32_t lane = lane_of(p, item->op != TFC_NONE ? t->ops[item->op].device : t->transfers[item->transfer].target);
    int y = lane * LANE + (item->op != TFC_NONE ? PATH : ARRIVING + ARRIVING_HEIGHT / 2);
    tfc_page_add(p, "%c%lld %dH%lld", i ? 'L' : 'M', (long long)x_of(p, item->start), y, (long long)x_of(p, item->end));
  }
  tfc_page_add(p, "\"/>\n");
}

static void add_axis(struct tfc_page *p) {
  double end = (double)p->traced.end * 1e-3 * p->scale.factor, step = pow(10, floor(log10(end / 4)));
  if (end / step > 10)
    step *= 5;
  else if (end / step > 5)
    step *= 2;
  tfc_page_add(p, "<div class=\"axis\" aria-hidden=\"true\">");
  for (double at = 0; at < end * 0.94; at += step)
    tfc_page_add(p, "<i style=\"left:%.3f%%\">%.4g%s%s</i>", 100 * at / end, at, at > 0 ? "" : " ",
                 at > 0 ? "" : p->scale.unit);
  tfc_page_add(p, "</div>\n");
}

static void add_legend(struct tfc_page *p) {
  const struct tfc_traced *t = &p->traced;
  double us[TFC_OP_FAMILIES] = {0};
  char a[32];
  for (uint32_t i = 0; i < t->op_count; i++)
    us[tfc_palette_family(tfc_table_text(&t->op_rows, i, "op"))] += (double)(t->ops[i].end - t->ops[i].start) * 1e-3;
  tfc_page_add(p, "<p class=\"legend\">");
  for (uint32_t f = 0; f < TFC_OP_FAMILIES; f++)
    if (us[f] > 0)
      tfc_page_add(p, "<span><i class=\"key f%u\"></i>%s %s</span> ", f, tfc_palette_family_name(f),
                   tfc_show_us(a, us[f]));
  bool waited[CAUSES] = {false};
  for (uint32_t i = 0; i < t->gap_count; i++) {
    int64_t parts[CAUSES];
    parts_of(&t->gaps[i], parts);
    for (int c = 0; c < CAUSES; c++) waited[c] |= parts[c] > 0;
  }
  for (int c = 0; c < CAUSES; c++)
    if (waited[c]) tfc_page_add(p, "<span><i class=\"key gapkey g%d\"></i>%s</span> ", c, causes[c]);
  if (t->transfer_count) tfc_page_add(p, "<span><i class=\"key arriving\"></i>tensor arrives</span> ");
  tfc_page_add(p, "<span><i class=\"key line\"></i>critical "
                  "path</span></p>\n");
}

void tfc_page_timeline(struct tfc_page *p) {
  static const char queries[] =
      "SELECT node, op, device, start_us, duration_us FROM v_op\n  WHERE run_id = :run AND placement_id = :placement "
      "AND "
      "step = :step ORDER BY start_us;\nSELECT node, output, source, target, bytes, start_us, duration_us FROM "
      "v_transfer\n  WHERE run_id = :run AND placement_id = :placement AND step = :step;\n-- gaps and the critical "
      "path: "
      "tfc-report gaps RUN --csv, tfc-report critical RUN --csv (computed as docs/database.md says)\n";
  tfc_page_add(p, "<section id=\"timeline\"><h2>One step, device by device</h2>\n");
  if (p->args.step < 0) {
    tfc_page_add(p, "<p class=\"note\">There is no timeline: no step of the answer is kept operation by "
                    "operation.</p></section>\n");
    return;
  }
  const int height = (int)p->devices.row_count * LANE;
  tfc_page_add(p,
               "<p class=\"caption\">Time since the step began [%s], of %s (step "
               "%lld). Each bar is an operation, pale ones are gaps by what the device waited for, thin ones below "
               "are tensors on their way. The line is the critical path: what lies on it sets the length of the "
               "step.</p>\n<div class=\"tools\" hidden><button type=\"button\" data-zoom=\"in\">+</button> <button "
               "type=\"button\" data-zoom=\"out\">−</button> <button type=\"button\" data-zoom=\"all\">whole "
               "step</button> <span>drag to move, wheel or pinch to zoom, click an operation</span></div>\n"
               "<div class=\"timeline\" style=\"height:%dpx\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
               "role=\"img\" aria-label=\"operations by device over time\">\n",
               p->scale.unit,
               *tfc_report_simulated(p->store, &p->args) ? "the simulated step"
                                                         : "the traced step nearest to the median",
               (long long)p->args.step, height + 22, WIDTH, height);
  for (int32_t lane = 0; lane < (int32_t)p->devices.row_count; lane++) {
    tfc_page_add(p, "<path class=\"rule\" d=\"M0 %dH%d\"/>\n", lane * LANE + BARS + BAR_HEIGHT, WIDTH);
    add_gaps(p, lane);
    for (uint32_t f = 0; f < TFC_OP_FAMILIES; f++) add_operations(p, lane, f);
    add_arriving(p, lane);
  }
  add_path(p);
  tfc_page_add(p, "</svg>\n");
  for (uint32_t r = 0; r < p->devices.row_count; r++) {
    double busy = tfc_table_number(&p->devices, r, "busy_percent");
    tfc_page_add(p, "<b class=\"lane\" style=\"top:%upx\"><i class=\"key d%u\"></i>", r * LANE + 1,
                 tfc_palette_device(tfc_table_text(&p->devices, r, "name")));
    tfc_page_escaped(p, tfc_table_text(&p->devices, r, "name"));
    if (busy == busy) tfc_page_add(p, " <span>busy %.0f %%</span>", busy);
    tfc_page_add(p, "</b>\n");
  }
  add_axis(p);
  tfc_page_add(p, "</div>\n");
  add_legend(p);
  char summary[160];
  snprintf(summary, sizeof summary, "The queries behind this plot (:run = %lld, :placement = %lld, :step = %lld)",
           (long long)p->args.run, (long long)p->args.placement, (long long)p->args.step);
  tfc_page_query(p, summary, queries);
  tfc_page_add(p, "</section>\n");
}
