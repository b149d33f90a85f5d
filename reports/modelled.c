// The page of a placement on a described machine. Nothing was run and no database has it, so everything comes from the
// answer itself. The page is one file without references to others.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "placer/place.h"
#include "reports/reports.h"
#include "runtime/base/file.h"
#include "runtime/base/units.h"

#define MOST_PATH 400 // most items of the critical path that are shown

static void add_escaped(struct tfc_text *t, tfc_str text) {
  for (size_t i = 0; i < text.size; i++) {
    const char c = text.data[i];
    const char *entity = c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : NULL;
    tfc_text_add(t, entity ? tfc_str_from(entity) : (tfc_str){&text.data[i], 1});
  }
}

static void add_cell(struct tfc_text *t, tfc_str text) {
  tfc_text_printf(t, "<td>");
  add_escaped(t, text);
  tfc_text_printf(t, "</td>");
}

static void add_time(struct tfc_text *t, double us) {
  char a[32];
  tfc_text_printf(t, "<td>%s</td>", us != us ? "–" : tfc_show_us(a, us));
}

static void begin_table(struct tfc_text *t, const char *title, const char *heads) {
  tfc_text_printf(t, "<h2>%s</h2>\n<table><tr>%s</tr>\n", title, heads);
}

static void add_results(struct tfc_text *t, const struct tfc_place_outcome *o) {
  const struct tfc_placement *p = o->placement;
  if (o->search.entry_count) {
    begin_table(t, "Algorithms", "<th>algorithm</th><th>value</th><th>evaluations</th><th>seconds</th><th></th>");
    for (uint32_t i = 0; i < o->search.entry_count; i++) {
      const struct tfc_search_entry *e = &o->search.entries[i];
      tfc_text_printf(t, "<tr>");
      add_cell(t, tfc_str_from(e->algorithm));
      add_time(t, e->value == TFC_TIME_MAX ? (double)NAN : (double)e->value * 1e-6);
      tfc_text_printf(t, "<td>%llu</td><td>%.2f</td>", (unsigned long long)e->evaluations, e->seconds);
      add_cell(t, tfc_str_from(e->note                    ? e->note
                               : e->value == TFC_TIME_MAX ? "nothing legal"
                               : e->excess                ? "does not fit in memory"
                                                          : ""));
      tfc_text_printf(t, "</tr>\n");
    }
    tfc_text_printf(t, "</table>\n");
  }
  if (p->baseline_count) begin_table(t, "Rivals", "<th>rival</th><th>value</th><th></th>");
  for (uint32_t i = 0; i < p->baseline_count; i++) {
    tfc_text_printf(t, "<tr>");
    add_cell(t, p->baselines[i].name);
    add_time(t, p->baselines[i].median_us);
    add_cell(t, p->baselines[i].note);
    tfc_text_printf(t, "</tr>\n");
  }
  if (p->baseline_count) tfc_text_printf(t, "</table>\n");
}

static void add_devices(struct tfc_text *t, const struct tfc_placement *p) {
  begin_table(t, "Devices", "<th>device</th><th>nodes</th><th>busy</th><th>share</th><th>memory</th>");
  for (uint32_t i = 0; i < p->device_count; i++) {
    const struct tfc_placement_device *d = &p->devices[i];
    const double share = p->value_us > 0 ? 100 * d->busy_us / p->value_us : 0;
    uint32_t nodes = 0;
    char a[32];
    for (uint32_t n = 0; n < p->node_count; n++) nodes += tfc_str_equal(p->nodes[n].device, d->name);
    tfc_text_printf(t, "<tr>");
    add_cell(t, d->name);
    tfc_text_printf(t, "<td>%u</td>", nodes);
    add_time(t, d->busy_us);
    tfc_text_printf(t, "<td><meter max=\"100\" value=\"%.1f\"></meter> %.1f %%</td><td>%s</td></tr>\n", share, share,
                    tfc_show_bytes(a, (double)d->memory));
  }
  tfc_text_printf(t, "</table>\n");
}

static void add_path(struct tfc_text *t, const struct tfc_placement *p) {
  const uint32_t count = p->path_count < MOST_PATH ? p->path_count : MOST_PATH;
  if (!count) return;
  begin_table(t, "What the step waits for",
              "<th>node, or the tensor of</th><th>transfer</th><th>starts</th><th>ends</th>");
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_placement_path_item *x = &p->path[i];
    tfc_text_printf(t, "<tr>");
    add_cell(t, x->node);
    tfc_text_printf(t, "<td>");
    add_escaped(t, x->from);
    if (x->from.size) tfc_text_printf(t, " → ");
    add_escaped(t, x->to);
    tfc_text_printf(t, "</td>");
    add_time(t, x->start_us), add_time(t, x->end_us);
    tfc_text_printf(t, "</tr>\n");
  }
  tfc_text_printf(t, "</table>\n");
  if (count < p->path_count) tfc_text_printf(t, "<p>%u more.</p>\n", p->path_count - count);
}

tfc_status tfc_report_modelled(const struct tfc_place_outcome *o, const char *dir) {
  const struct tfc_placement *p = o->placement;
  struct tfc_text t = {0};
  tfc_status s = NULL;
  char *path = tfc_format("%s/index.html", dir);
  if (!path) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a report");
  tfc_text_printf(&t, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
  add_escaped(&t, p->graph_file);
  tfc_text_printf(&t, ": where each node runs</title>\n<style>\n%s</style></head>\n<body><main>\n<h1>",
                  tfc_embedded_find("page.css"));
  add_escaped(&t, p->graph_file);
  tfc_text_printf(&t, "</h1>\n<p>%s of %llu nodes on %u devices, modelled: nothing was run.%s</p>\n<pre>",
                  p->objective == TFC_OBJECTIVE_STEP ? "A step" : "The largest load",
                  (unsigned long long)p->graph_nodes, p->device_count,
                  p->feasible ? "" : " It does not fit in memory.");
  if (o->summary) add_escaped(&t, tfc_str_from(o->summary));
  char a[32], b[32];
  tfc_text_printf(&t, "</pre>\n<p>%s; %llu transfers, %s.</p>\n", tfc_show_us(a, p->value_us),
                  (unsigned long long)p->transfers, tfc_show_bytes(b, (double)p->transfer_bytes));
  add_results(&t, o);
  add_devices(&t, p);
  add_path(&t, p);
  tfc_text_printf(&t, "</main></body></html>\n");
  if (t.failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a report");
  if (mkdir(dir, 0777) != 0 && errno != EEXIST)
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: the report's directory cannot be made: %s", dir, strerror(errno));
  TFC_TRY(s, tfc_file_write(path, (tfc_str){t.data, t.size}));
out:
  tfc_text_deinit(&t);
  free(path);
  return s;
}
