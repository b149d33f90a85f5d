// The operations as a table that is readable without a script, and a JSON document with all that the script needs to
// search and sort it and to describe what is under the pointer.
#include <math.h>
#include <stdio.h>

#include "reports/html.h"
#include "reports/nodes.h"
#include "reports/page.h"
#include "reports/palette.h"
#include "runtime/base/units.h"

enum { SHOWN = 40 }; // so many rows of the table are shown if the page's script does not run

static void add_number(struct tfc_page *p, double value) {
  if (isfinite(value))
    tfc_page_add(p, "%.6g", value);
  else
    tfc_page_add(p, "null");
}
static void add_string(struct tfc_page *p, tfc_str text) {
  tfc_page_add(p, "\"");
  tfc_json_escape(p->out, text);
  tfc_page_add(p, "\"");
}
static uint32_t lane_of(const struct tfc_page *p, int64_t device) {
  uint32_t r = 0;
  while (r < p->devices.row_count && tfc_table_find(&p->devices, r, "device_id")->integer != device) r++;
  return r;
}

static void add_step(struct tfc_page *p) {
  const struct tfc_traced *t = &p->traced;
  tfc_page_add(p, "\"end\":%lld,\n\"ops\":[", (long long)t->end);
  for (uint32_t i = 0; i < t->op_count; i++)
    tfc_page_add(p, "%s[%u,%u,%lld,%lld]", i ? "," : "", t->ops[i].node, lane_of(p, t->ops[i].device),
                 (long long)t->ops[i].start, (long long)(t->ops[i].end - t->ops[i].start));
  tfc_page_add(p, "],\n\"transfers\":[");
  for (uint32_t i = 0; i < t->transfer_count; i++) {
    const struct tfc_traced_transfer *x = &t->transfers[i];
    tfc_page_add(p, "%s[%u,%d,%u,%u,%lld,%lld,%lld]", i ? "," : "", x->node, x->output, lane_of(p, x->source),
                 lane_of(p, x->target), (long long)x->start, (long long)(x->end - x->start), (long long)x->bytes);
  }
  // Each gap has these fields: its lane, start and duration; how long the device waited for the producer, for the
  // transfer, and for unknown reasons; the node that ended the gap; and the producer for which that node waited (-1:
  // none).
  tfc_page_add(p, "],\n\"gaps\":[");
  for (uint32_t i = 0; i < t->gap_count; i++) {
    const struct tfc_traced_gap *g = &t->gaps[i];
    const struct tfc_traced_op *o = g->op != TFC_NONE ? &t->ops[g->op] : NULL;
    int64_t producer = !o                        ? -1
                       : o->transfer != TFC_NONE ? (int64_t)t->transfers[o->transfer].node
                       : o->producer != TFC_NONE ? (int64_t)t->ops[o->producer].node
                                                 : -1;
    tfc_page_add(p, "%s[%u,%lld,%lld,%lld,%lld,%lld,%lld,%lld]", i ? "," : "", lane_of(p, g->device),
                 (long long)g->start, (long long)(g->end - g->start), (long long)g->dependency, (long long)g->transfer,
                 (long long)g->other, o ? (long long)o->node : -1LL, (long long)producer);
  }
  tfc_page_add(p, "]");
}

// Half of the distance between the quartiles; NaN for an operation that ran once, of which nobody knows how it varies.
static double half_range(const struct tfc_table *t, uint32_t r) {
  if (!(tfc_table_number(t, r, "samples") > 1)) return (double)NAN;
  return (tfc_table_number(t, r, "q3_us") - tfc_table_number(t, r, "q1_us")) / 2;
}

// In loops an operation runs several times; elsewhere, what runs several times runs in pieces.
static bool has_loops(const struct tfc_page *p) {
  static const char sql[] = "SELECT 1 WHERE " TFC_SQL_HAS_LOOPS;
  struct tfc_table t = {0};
  tfc_status s = tfc_table_query(p->store, sql, &p->args, &t);
  const bool found = !s && t.row_count > 0;
  tfc_status_free(s);
  tfc_table_deinit(&t);
  return found;
}

static void add_data(struct tfc_page *p) {
  const struct tfc_table *t = &p->nodes.tables[0];
  tfc_page_add(
      p, "<script type=\"application/json\" id=\"data\">{\"loops\":%s,\"factor\":%.9g,\"unit\":\"%s\",\"devices\":[",
      has_loops(p) ? "true" : "false", p->scale.factor, p->scale.unit);
  for (uint32_t r = 0; r < p->devices.row_count; r++) {
    tfc_str name = tfc_table_text(&p->devices, r, "name");
    tfc_page_add(p, "%s[", r ? "," : "");
    add_string(p, name);
    tfc_page_add(p, ",%u]", tfc_palette_device(name));
  }
  // Each node has these fields: id, name, type, device, time in the step, half the interquartile range, bytes of its
  // outputs, FLOP, slack, box on the map, family of the type.
  tfc_page_add(p, "],\n\"nodes\":[");
  for (uint32_t r = 0; r < t->row_count; r++) {
    int64_t id = tfc_table_find(t, r, "node_id")->integer;
    tfc_str op = tfc_table_text(t, r, "op");
    tfc_page_add(p, "%s[%lld,", r ? ",\n" : "", (long long)id);
    add_string(p, tfc_table_text(t, r, "node"));
    tfc_page_add(p, ",");
    add_string(p, op);
    tfc_page_add(p, ",");
    add_string(p, tfc_table_text(t, r, "device"));
    tfc_page_add(p, ",");
    add_number(p, tfc_table_number(t, r, "step_us"));
    tfc_page_add(p, ",");
    add_number(p, half_range(t, r));
    tfc_page_add(p, ",");
    add_number(p, tfc_table_number(t, r, "output_bytes"));
    tfc_page_add(p, ",");
    add_number(p, tfc_table_number(t, r, "flops"));
    tfc_page_add(p, ",");
    add_number(p, tfc_table_number(t, r, "slack_us"));
    uint32_t box = id >= 0 && id < (int64_t)p->box_node_count ? p->box_of[id] : TFC_NONE;
    tfc_page_add(p, ",%d,%u]", box == TFC_NONE ? -1 : (int)box, tfc_palette_family(op));
  }
  tfc_page_add(p, "],\n");
  if (p->args.step >= 0)
    add_step(p);
  else
    tfc_page_add(p, "\"end\":0,\"ops\":[],\"transfers\":[],\"gaps\":[]");
  tfc_page_add(p, "}</script>\n");
}

void tfc_page_nodes(struct tfc_page *p) {
  const struct tfc_table *t = &p->nodes.tables[0];
  char a[32], b[32];
  const char *simulated = tfc_report_simulated(p->store, &p->args); // of one step, which has no spread
  tfc_page_add(p, "<section id=\"nodes\"><h2>Operations</h2>\n");
  if (!p->nodes.count || !t->row_count) {
    tfc_page_add(p, "<p class=\"note\">There is no table of operations: none of the answer was timed.</p></section>\n");
    add_data(p);
    return;
  }
  tfc_page_add(
      p,
      "<p class=\"caption\">The operations of %s%s, those that take most of the step first. Half range: half "
      "of the distance between the quartiles of all its traced runs. Slack is how much later "
      "one could have ended in a step that takes no longer: what has none is on the critical path. A click "
      "shows an operation on the map and in the timeline.</p>\n"
      "<div class=\"tools\" hidden><input type=\"search\" id=\"find\" placeholder=\"name, type or device\" "
      "aria-label=\"find operations\"> <span id=\"found\"></span></div>\n<div class=\"scroll\"><table "
      "class=\"stack%s\" "
      "id=\"operations\"><thead><tr><th>operation</th><th>type</th><th>device</th><th class=\"n\">in the step</th>"
      "<th class=\"n\">half range</th><th class=\"n\">output</th><th class=\"n\">FLOP</th><th class=\"n\">slack"
      "</th></tr></thead><tbody>\n",
      tfc_page_profiled(p) ? "this run" : "the answer", simulated, *simulated ? " exact" : "");
  for (uint32_t r = 0; r < t->row_count && r < SHOWN; r++) {
    double flops = tfc_table_number(t, r, "flops"), half = half_range(t, r);
    tfc_page_add(p, "<tr data-id=\"%lld\"><td class=\"name\">", (long long)tfc_table_find(t, r, "node_id")->integer);
    tfc_page_escaped(p, tfc_table_text(t, r, "node"));
    tfc_page_add(p, "</td><td data-l=\"\"><i class=\"key f%u\"></i>", tfc_palette_family(tfc_table_text(t, r, "op")));
    tfc_page_escaped(p, tfc_table_text(t, r, "op"));
    tfc_page_add(p, "</td><td data-l=\"\"><i class=\"key d%u\"></i>",
                 tfc_palette_device(tfc_table_text(t, r, "device")));
    tfc_page_escaped(p, tfc_table_text(t, r, "device"));
    tfc_page_add(p, "</td><td class=\"n\" data-l=\"in the step\">%s</td><td class=\"n\" data-l=\"half range\">%s</td>",
                 tfc_html_us(a, tfc_table_number(t, r, "step_us")), tfc_html_us(b, half));
    tfc_page_add(p, "<td class=\"n\" data-l=\"output\">%s</td><td class=\"n\" data-l=\"FLOP\">",
                 tfc_html_bytes(a, tfc_table_number(t, r, "output_bytes")));
    if (flops >= 1e3)
      tfc_page_add(p, "%.3g %c",
                   flops / (flops >= 1e9   ? 1e9
                            : flops >= 1e6 ? 1e6
                                           : 1e3),
                   flops >= 1e9   ? 'G'
                   : flops >= 1e6 ? 'M'
                                  : 'k');
    else if (flops == flops)
      tfc_page_add(p, "%.3g", flops);
    else
      tfc_page_add(p, "–");
    tfc_page_add(p, "</td><td class=\"n\" data-l=\"slack\">%s</td></tr>\n",
                 tfc_html_us(b, tfc_table_number(t, r, "slack_us")));
  }
  tfc_page_add(p, "</tbody></table></div>\n<p class=\"note\" id=\"more\">%u operations%s", t->row_count,
               t->row_count > SHOWN ? ", the first 40 of them here" : "");
  if (p->kept) tfc_page_add(p, "; all with tfc-report nodes %lld --csv", (long long)p->args.run);
  tfc_page_add(p, ".</p>\n");
  tfc_page_query(p, "The query behind this table", tfc_report_sql_nodes);
  tfc_page_add(p, "</section>\n");
  add_data(p);
}
