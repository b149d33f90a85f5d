#include "reports/moves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/lists.h"
#include "runtime/base/units.h"

const char tfc_report_sql_links[] =
    "SELECT s.device_id AS source_id, d.device_id AS target_id, l.bytes, l.time_us FROM v_link l JOIN v_device s ON"
    " s.run_id = l.run_id AND s.name = l.source JOIN v_device d ON d.run_id = l.run_id AND d.name = l.target WHERE"
    " l.run_id = :run ORDER BY 1, 2, 3";
const char tfc_report_sql_units[] =
    "SELECT node_id, unit_id, output_bytes FROM v_node WHERE run_id = :run ORDER BY node_id";

static const char sql_checked[] =
    "SELECT unit_id, node, operations, source, target, won_us, 1 AS checked, value_us FROM v_move WHERE run_id = :run "
    "AND placement_id = :placement ORDER BY won_us DESC, unit_id";
// Only the answer's moves were tried.
static const char sql_tried[] = "SELECT objective, moves_tried, step_median_us, exit_code FROM v_run WHERE run_id = "
                                ":run AND (placement_id = :placement OR moves_tried IS NULL)";

enum { MOST_DEVICES = 64 };

struct moving {
  const struct tfc_traced *t;
  struct tfc_table devices;
  bool ran[MOST_DEVICES];        // by row of `devices`: something ran there in the step
  struct tfc_table links, nodes; // source_id, target_id, bytes, time_us; node_id, unit_id, output_bytes
  struct move *moves;
  uint32_t count, capacity;
  uint32_t *first_link; // [op_count + 1] links are ordered by their operation
};
struct move {
  int64_t unit;
  int32_t from, to;
  uint32_t op, operations; // op: the one that gains most
  int64_t won, most;
};

static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static tfc_str device_text(const struct moving *m, int32_t device, const char *column) {
  for (uint32_t r = 0; r < m->devices.row_count; r++)
    if (tfc_table_find(&m->devices, r, "device_id")->integer == device) return tfc_table_text(&m->devices, r, column);
  return (tfc_str){0};
}

// Returns the first row of `links`, which are ordered, for these devices.
static uint32_t first_row(const struct moving *m, int32_t from, int32_t to) {
  uint32_t low = 0, high = m->links.row_count;
  while (low < high) {
    const uint32_t at = low + (high - low) / 2;
    const struct tfc_cell *row = tfc_table_cell(&m->links, at, 0);
    if (row[0].integer < from || (row[0].integer == from && row[1].integer < to))
      low = at + 1;
    else
      high = at;
  }
  return low;
}

// Returns how long a tensor takes from one device to another, in ns: linear between the sizes that were timed, and
// beyond the largest at its rate. 0: no link is known.
static int64_t transfer_ns(const struct moving *m, int32_t from, int32_t to, double bytes) {
  double below = -1, below_us = 0, above = -1, above_us = 0;
  if (from == to) return 0;
  for (uint32_t r = first_row(m, from, to); r < m->links.row_count && above < 0; r++) { // by size
    const struct tfc_cell *row = tfc_table_cell(&m->links, r, 0);
    if (row[0].integer != from || row[1].integer != to) break;
    const double size = row[2].real, us = row[3].real;
    if (size <= bytes || below < 0)
      below = size, below_us = us;
    else
      above = size, above_us = us;
  }
  if (below < 0) return 0;
  double us = below_us;
  if (above > below && bytes > below)
    us += (above_us - below_us) * (bytes - below) / (above - below);
  else if (bytes > below && below > 0)
    us *= bytes / below;
  return (int64_t)fmin(fmax(1e3 * us, 0), (double)TFC_TRACED_LONGEST);
}

// Returns the row of a node; NULL: it is not known.
static const struct tfc_cell *row_of(const struct moving *m, uint32_t node) {
  uint32_t low = 0, high = m->nodes.row_count; // rows are ordered by their node
  while (low < high) {
    const uint32_t at = low + (high - low) / 2;
    const int64_t id = tfc_table_cell(&m->nodes, at, 0)->integer;
    if (id == node) return tfc_table_cell(&m->nodes, at, 0);
    if (id < node)
      low = at + 1;
    else
      high = at;
  }
  return NULL;
}

static double bytes_of(const struct moving *m, uint32_t node) {
  const struct tfc_cell *row = row_of(m, node);
  return row && row[2].real == row[2].real ? row[2].real : 0;
}

// Returns when the inputs of an operation of the path would have come to `to`.
static int64_t ready_at(const struct moving *m, uint32_t op, int32_t to) {
  const struct tfc_traced *t = m->t;
  int64_t ready = 0;
  for (uint32_t l = m->first_link[op]; l < m->first_link[op + 1]; l++) {
    const struct tfc_traced_link *link = &t->links[l];
    if (link->transfer != TFC_NONE) {
      const struct tfc_traced_transfer *x = &t->transfers[link->transfer];
      const int64_t sent = link->producer != TFC_NONE ? t->ops[link->producer].end : x->start;
      ready =
          most(ready, x->source == to ? sent : most(sent, x->start) + transfer_ns(m, x->source, to, (double)x->bytes));
    } else {
      const struct tfc_traced_op *p = &t->ops[link->producer];
      ready = most(ready, p->end + transfer_ns(m, p->device, to, bytes_of(m, p->node)));
    }
  }
  return ready;
}

// Returns when the device of row `d` was idle for long enough and could have begun; -1: it never was.
static int64_t begins_at(const struct moving *m, uint32_t d, int32_t device, int64_t ready, int64_t time) {
  const struct tfc_traced *t = m->t;
  int64_t found = -1;
  if (!m->ran[d]) return ready; // such a device has no gaps
  for (uint32_t g = 0; g < t->gap_count && t->gaps[g].end - t->gaps[g].start >= time; g++) { // longest first
    const int64_t at = most(ready, t->gaps[g].start);
    if (t->gaps[g].device == device && at + time <= t->gaps[g].end && (found < 0 || at < found)) found = at;
  }
  return found;
}

// Returns how much earlier the path goes on behind item `at` if that operation runs on `to`, the device of row `d`.
static int64_t sooner_by(const struct moving *m, uint32_t at, uint32_t d, int32_t to) {
  const struct tfc_traced *t = m->t;
  const struct tfc_traced_item *item = &t->path[at], *next = at + 1 < t->path_count ? item + 1 : NULL;
  const struct tfc_traced_op *o = &t->ops[item->op];
  const int64_t time = o->end - o->start, begin = begins_at(m, d, to, ready_at(m, item->op, to), time);
  if (begin < 0) return 0;
  const int64_t end = begin + time, back = transfer_ns(m, to, o->device, bytes_of(m, o->node));
  if (!next) return o->end - end;
  if (next->transfer != TFC_NONE) return (t->transfers[next->transfer].target == to ? next->end : o->end) - end;
  const struct tfc_traced_op *n = &t->ops[next->op];
  for (uint32_t l = m->first_link[next->op]; l < m->first_link[next->op + 1]; l++)
    if (t->links[l].producer == item->op)
      return (n->device == to ? n->start : o->end) - end - (n->device == to ? 0 : back);
  // The next operation only waited for the device, and could begin as soon as its own inputs were there.
  const int64_t sooner = n->start - most(o->start, most(n->arrival, 0)), late = end + back - o->latest;
  return least(sooner, time) - most(late, 0);
}

// Returns what the step wins by that: at most the part of the path that the operation takes, for without it the path
// still comes to where the item before it ends.
static int64_t won_by(const struct moving *m, uint32_t at, uint32_t d, int32_t to) {
  const struct tfc_traced_item *item = &m->t->path[at];
  return least(sooner_by(m, at, d, to), item->end - (at > 0 ? item[-1].end : 0));
}

static tfc_status add_move(struct moving *m, struct move move) {
  for (uint32_t i = 0; i < m->count; i++) {
    struct move *x = &m->moves[i];
    if (x->unit != move.unit || x->to != move.to || x->from != move.from) continue;
    x->operations++, x->won += move.won;
    if (move.won > x->most) x->most = move.won, x->op = move.op;
    return NULL;
  }
  if (m->count == m->capacity) {
    const uint32_t grown = m->capacity ? 2 * m->capacity : 64;
    struct move *moves = realloc(m->moves, grown * sizeof *moves);
    if (!moves) return tfc_status_no_memory("a report");
    m->moves = moves, m->capacity = grown;
  }
  m->moves[m->count++] = move;
  return NULL;
}

static int most_won(const void *a, const void *b) {
  const struct move *x = a, *y = b;
  if (x->won != y->won) return x->won < y->won ? 1 : -1;
  return x->unit != y->unit ? (x->unit > y->unit) - (x->unit < y->unit) : x->to - y->to;
}

static int64_t unit_of(const struct moving *m, uint32_t node) {
  const struct tfc_cell *row = row_of(m, node);
  return row && row[1].kind == TFC_CELL_INTEGER ? row[1].integer : -1;
}

static tfc_status try_moves(struct moving *m) {
  const struct tfc_traced *t = m->t;
  for (uint32_t i = 0; i < t->op_count; i++)
    for (uint32_t d = 0; d < m->devices.row_count; d++)
      m->ran[d] |= tfc_table_cell(&m->devices, d, 0)->integer == t->ops[i].device;
  for (uint32_t i = 0; i < t->path_count; i++) {
    if (t->path[i].op == TFC_NONE) continue;
    const struct tfc_traced_op *o = &t->ops[t->path[i].op];
    const int64_t unit = unit_of(m, o->node);
    if (unit < 0) continue;
    for (uint32_t d = 0; d < m->devices.row_count; d++) {
      const int32_t to = (int32_t)tfc_table_cell(&m->devices, d, 0)->integer;
      if (to == o->device || !tfc_str_equal(tfc_table_text(&m->devices, d, "kind"), device_text(m, o->device, "kind")))
        continue;
      const int64_t won = won_by(m, i, d, to);
      if (won > 0) TFC_RETURN_IF_ERROR(add_move(m, (struct move){unit, o->device, to, t->path[i].op, 1, won, won}));
    }
  }
  return NULL;
}

static tfc_status estimate_moves(struct tfc_store *store, const struct tfc_query_args *args, const struct tfc_traced *t,
                                 struct tfc_arena *arena, struct tfc_table *out) {
  static const char *const columns[] = {"unit_id", "node",    "operations", "source", "target",
                                        "won_us",  "checked", "value_us",   NULL};
  struct moving m = {.t = t};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_init(out, columns));
  TFC_TRY(s,
          tfc_table_query(store, "SELECT device_id, name, kind FROM v_device WHERE run_id = :run AND name <> 'whole'",
                          args, &m.devices));
  if (!t->edge_count || m.devices.row_count < 2 || m.devices.row_count > MOST_DEVICES) goto out;
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_links, args, &m.links));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_units, args, &m.nodes));
  m.first_link = calloc(t->op_count + 2u, sizeof *m.first_link);
  if (!m.first_link) TFC_TRY(s, tfc_status_no_memory("a report"));
  for (uint32_t l = 0; l < t->link_count; l++) m.first_link[t->links[l].op + 1]++;
  for (uint32_t i = 0; i < t->op_count; i++) m.first_link[i + 1] += m.first_link[i];
  TFC_TRY(s, try_moves(&m));
  if (m.count) qsort(m.moves, m.count, sizeof *m.moves, most_won);
  for (uint32_t i = 0; i < m.count; i++) {
    const struct move *x = &m.moves[i];
    struct tfc_cell *row;
    bool listed = false; // to another device, to which it wins at least as much
    for (uint32_t r = 0; r < out->row_count && !listed; r++) listed = tfc_table_cell(out, r, 0)->integer == x->unit;
    if (listed) continue;
    TFC_TRY(s, tfc_table_add(out, &row));
    row[0] = tfc_cell_integer(x->unit);
    row[1] = tfc_cell_text(tfc_arena_str(arena, tfc_table_text(&t->op_rows, (uint32_t)x->op, "node")));
    row[2] = tfc_cell_integer(x->operations);
    row[3] = tfc_cell_text(tfc_arena_str(arena, device_text(&m, x->from, "name")));
    row[4] = tfc_cell_text(tfc_arena_str(arena, device_text(&m, x->to, "name")));
    row[5] = tfc_cell_real((double)x->won * 1e-3);
    row[6] = tfc_cell_integer(0);
    row[7] = tfc_cell_real((double)t->end * 1e-3);
  }
out:
  tfc_table_deinit(&m.devices);
  tfc_table_deinit(&m.links);
  tfc_table_deinit(&m.nodes);
  free(m.moves);
  free(m.first_link);
  return s;
}

struct tried {    // what the run stored about its answer and the moves of its units
  double units;   // how many units tfc-place tried elsewhere; NaN: it tried none
  bool load;      // the search was for the smallest load
  bool too_large; // the answer does not fit in memory
  double step_us; // of the answer; NaN: it was not measured
};

static tfc_status find_tried(struct tfc_store *store, const struct tfc_query_args *args, struct tried *out) {
  struct tfc_table run = {0};
  tfc_status s = tfc_table_query(store, sql_tried, args, &run);
  *out =
      (struct tried){tfc_table_number(&run, 0, "moves_tried"),
                     tfc_str_is(tfc_table_text(&run, 0, "objective"), "throughput"), tfc_report_is_too_large(&run, 0),
                     *tfc_report_simulated(store, args) ? (double)NAN : tfc_table_number(&run, 0, "step_median_us")};
  tfc_table_deinit(&run);
  return s;
}

tfc_status tfc_report_moves(struct tfc_store *store, const struct tfc_query_args *args, const struct tfc_traced *t,
                            struct tfc_arena *arena, struct tfc_table *out) {
  struct tried tried;
  TFC_RETURN_IF_ERROR(find_tried(store, args, &tried));
  return tried.units >= 0 ? tfc_table_query(store, sql_checked, args, out) : estimate_moves(store, args, t, arena, out);
}

tfc_status tfc_report_moves_explain(struct tfc_store *store, const struct tfc_query_args *args,
                                    const struct tfc_table *moves, struct tfc_text *out) {
  struct tried tried;
  char base[32], measured[32];
  TFC_RETURN_IF_ERROR(find_tried(store, args, &tried));
  if (moves->row_count) tfc_show_us(base, tfc_table_number(moves, 0, "value_us"));
  if (moves->row_count && tried.too_large)
    tfc_text_printf(out, "the answer does not fit in memory, and it may not after any\n  of these either; ");
  if (moves->row_count && tried.units >= 0 && tried.load)
    tfc_text_printf(out, "each by itself would lower\n  the simulated largest load of %s by", base);
  else if (moves->row_count && tried.units >= 0) {
    const double off = 100 * (tfc_table_number(moves, 0, "value_us") / tried.step_us - 1);
    tfc_text_printf(out, "each by itself would shorten the simulated step of %s", base);
    if (fabs(off) >= 0.5)
      tfc_text_printf(out, "\n  (measured: %s; the simulation is %.0f %% too %s)", tfc_show_us(measured, tried.step_us),
                      fabs(off), off > 0 ? "long" : "short");
    tfc_text_printf(out, " by");
  } else if (moves->row_count)
    tfc_text_printf(out, "estimated and not checked; each would shorten\n  the step of %s by", base);
  else if (tried.units > 0)
    tfc_text_printf(out,
                    "nothing. %.0f units of the critical path were tried on other\n  devices, each by itself: in"
                    " simulation none %s.%s",
                    tried.units, tried.load ? "lowers the largest load" : "shortens the step",
                    tried.too_large ? "\n  Nor does the answer fit in memory." : "");
  return NULL;
}
