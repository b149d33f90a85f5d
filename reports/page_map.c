// The placement as a map: name scopes are nested boxes (a squarified treemap; Bruls, Huizing, van Wijk 2000) with an
// area in proportion to their operations' time, opened until a screen is full, and coloured by device. Lines show
// tensors that cross from one box to another device in another box. An expert's placement, if there is one, is drawn
// beside it with the same boxes, and differences are outlined.
#include <stdio.h>
#include <stdlib.h>

#include "reports/html.h"
#include "reports/page.h"
#include "reports/palette.h"
#include "runtime/base/units.h"

enum { BOXES = 160, LEAVES = 44, DEPTH = 4, STRIP = 17, HEIGHT = 480, NOMINAL_WIDTH = 540, LINES = 18, LISTED = 5 };

struct member { // an operation of the step
  uint32_t node, box;
  int32_t device[2]; // rows of page.devices: its device under the answer and under the rival; -1: the node is not in it
  tfc_str name;
  double us;
};
struct box {
  uint32_t begin, end, prefix, depth; // its range of members, and the length of the scope's name
  uint32_t parent, child_count;
  bool gathered; // the box stands for several small scopes
  double us, x, y, w, h;
};
struct map {
  struct tfc_page *p;
  struct tfc_arena arena;
  struct member *members;    // sorted by name; behind them those that take no time (variables), which no box contains
  uint32_t count, all_count; // without these, and with them
  uint32_t box_count, leaf_count;
  struct box boxes[BOXES];
  double us;
  bool has_rival;
  const char *alone; // why it has none
  double *device_us; // [devices + 1] scratch
};

// '/' sorts before all other characters, so that the members of a scope are neighbours. Members without time are last.
static int by_name(const void *a, const void *b) {
  const bool p_timed = ((const struct member *)a)->us > 0, q_timed = ((const struct member *)b)->us > 0;
  if (p_timed != q_timed) return p_timed ? -1 : 1;
  tfc_str x = ((const struct member *)a)->name, y = ((const struct member *)b)->name;
  for (size_t i = 0; i < x.size && i < y.size; i++) {
    int p = x.data[i] == '/' ? 0 : (unsigned char)x.data[i], q = y.data[i] == '/' ? 0 : (unsigned char)y.data[i];
    if (p != q) return p - q;
  }
  return (x.size > y.size) - (x.size < y.size);
}
static int by_node(const void *a, const void *b) {
  const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;
  return (x->node > y->node) - (x->node < y->node);
}

// --- Operations and their devices -----------------------------------------------------------------------------------

// What did not run in the step by itself (variables, what is fused into another operation) takes no time. Without any
// times of operations, the estimates of the search say how large boxes are.
static const char sql_placed[] = TFC_SQL_TOOK
    "SELECT p.node_id, p.node, p.device_id, CASE WHEN EXISTS (SELECT 1 FROM took) THEN COALESCE(t.us, 0) ELSE"
    " COALESCE(n.time_us, (SELECT MIN(c.median_us) FROM v_cost c WHERE c.run_id = :run AND c.node_id = p.node_id), 0)"
    " END AS us FROM v_placement p JOIN v_node n ON n.run_id = :run AND n.node_id = p.node_id LEFT JOIN (SELECT "
    "node_id,"
    " SUM(us) AS us FROM took GROUP BY node_id) t ON t.node_id = p.node_id WHERE p.run_id = :run AND p.placement_id ="
    " :placement";
static const char sql_ran[] = // for nodes that no placement has: the devices on which they ran
    TFC_SQL_TOOK "SELECT node_id, node, device_id, us FROM took";
static const char sql_rival[] =
    "SELECT node_id, device_id FROM v_placement WHERE run_id = :run AND placement_id = :other";
static const char sql_edges[] =
    "SELECT producer_id, output, consumer_id, bytes FROM v_edge WHERE run_id = :run AND output"
    " >= 0 AND bytes > 0 ORDER BY producer_id, output, consumer_id";
// What moved in a traced step: each tensor once for each device to which it went, and the operation that read it first.
#define MOVED(placement, step)                                                                                         \
  "WITH o AS MATERIALIZED (SELECT node_id, device_id, MIN(start_us) AS s FROM v_op WHERE run_id = :run AND"            \
  " placement_id = " placement " AND step = " step " GROUP BY 1, 2), x AS MATERIALIZED (SELECT node_id, output,"       \
  " target_id, SUM(bytes) AS bytes FROM v_transfer WHERE run_id = :run AND placement_id = " placement                  \
  " AND step = " step " GROUP BY 1, 2, 3), r AS MATERIALIZED (SELECT e.producer_id, e.output, o.device_id, o.node_id," \
  " MIN(o.s) FROM v_edge e JOIN o ON o.node_id = e.consumer_id WHERE e.run_id = :run GROUP BY 1, 2, 3) SELECT"         \
  " x.node_id, x.output, x.target_id, r.node_id AS reader, x.bytes FROM x LEFT JOIN r ON r.producer_id = x.node_id "   \
  "AND r.output = x.output"                                                                                            \
  " AND r.device_id = x.target_id WHERE x.bytes > 0 ORDER BY x.node_id, x.output, x.target_id"
static const char sql_moved[] = MOVED(":placement", ":step");
#define TRACED_LAST "(SELECT MAX(step) FROM v_op WHERE run_id = :run AND placement_id = :other)"
static const char sql_rival_moved[] = MOVED(":other", TRACED_LAST);
static const char sql_rival_step[] = "SELECT " TRACED_LAST;

static int32_t row_of(const struct tfc_page *p, const struct tfc_cell *device) {
  for (uint32_t r = 0; r < p->devices.row_count; r++)
    if (device->kind == TFC_CELL_INTEGER && tfc_table_find(&p->devices, r, "device_id")->integer == device->integer)
      return (int32_t)r;
  return -1;
}

static struct member *member_of(struct member **sorted, uint32_t count, int64_t node) {
  struct member key = {.node = (uint32_t)node}, *at = &key, **found;
  if (node < 0 || node >= UINT32_MAX) return NULL;
  found = bsearch(&at, sorted, count, sizeof(struct member *), by_node);
  return found ? *found : NULL;
}

static tfc_status load(struct map *m, struct tfc_table *rows, struct member ***out_sorted) {
  struct tfc_page *p = m->p;
  struct tfc_table rival = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(p->store, sql_placed, &p->args, rows));
  if (!rows->row_count) {
    tfc_table_deinit(rows);
    TFC_TRY(s, tfc_table_query(p->store, sql_ran, &p->args, rows));
  }
  struct member **sorted = TFC_ARENA_ARRAY(&m->arena, struct member *, (size_t)rows->row_count + 1);
  m->members = TFC_ARENA_ARRAY(&m->arena, struct member, (size_t)rows->row_count + 1);
  m->device_us = TFC_ARENA_ARRAY(&m->arena, double, (size_t)p->devices.row_count + 1);
  if (!m->members || !sorted || !m->device_us) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t r = 0; r < rows->row_count; r++) {
    const struct tfc_cell *node = tfc_table_cell(rows, r, 0);
    double us = tfc_table_cell(rows, r, 3)->real;
    if (node->kind != TFC_CELL_INTEGER || node->integer < 0 || node->integer >= TFC_TRACED_NODES) continue;
    m->members[m->all_count++] = (struct member){.node = (uint32_t)node->integer,
                                                 .box = TFC_NONE,
                                                 .device = {row_of(p, tfc_table_cell(rows, r, 2)), -1},
                                                 .name = tfc_table_cell(rows, r, 1)->text,
                                                 .us = us > 0 ? us : 0};
    if (us > 0) m->count++, m->us += us;
  }
  if (m->all_count) qsort(m->members, m->all_count, sizeof *m->members, by_name);
  for (uint32_t i = 0; i < m->all_count; i++) sorted[i] = &m->members[i];
  if (m->all_count) qsort(sorted, m->all_count, sizeof(struct member *), by_node);
  if (p->args.other >= 0) {
    TFC_TRY(s, tfc_table_query(p->store, sql_rival, &p->args, &rival));
    for (uint32_t r = 0; r < rival.row_count; r++) {
      struct member *at = member_of(sorted, m->all_count, tfc_table_cell(&rival, r, 0)->integer);
      if (!at) continue;
      at->device[1] = row_of(p, tfc_table_cell(&rival, r, 1));
      m->has_rival |= at->us > 0;
    }
  }
  *out_sorted = sorted;
out:
  tfc_table_deinit(&rival);
  return s;
}

// --- Boxes -----------------------------------------------------------------------------------------------------------

// Returns the end of the component that begins at `prefix`: the next '/', or the name's end.
static uint32_t component(tfc_str name, uint32_t prefix) {
  uint32_t at = prefix < name.size ? prefix : (uint32_t)name.size;
  while (at < name.size && name.data[at] != '/') at++;
  return at;
}
// Returns the end of the members from `from` on that have the same component after `prefix`.
static uint32_t group_end(const struct map *m, const struct box *b, uint32_t from) {
  tfc_str first = m->members[from].name;
  uint32_t size = component(first, b->prefix), i = from + 1;
  for (; i < b->end; i++) {
    tfc_str name = m->members[i].name;
    if (component(name, b->prefix) != size || memcmp(name.data, first.data, size) != 0) break;
  }
  return i;
}

// A scope whose only content is one scope is shown as that scope: "a" with only "a/b" in it becomes "a/b".
static void join_chain(const struct map *m, struct box *b) {
  while (b->end - b->begin > 1) {
    tfc_str first = m->members[b->begin].name;
    uint32_t size = component(first, b->prefix);
    if (size >= first.size || group_end(m, b, b->begin) != b->end) return;
    b->prefix = size + 1;
  }
  if (b->end - b->begin == 1) b->prefix = (uint32_t)m->members[b->begin].name.size;
}

static struct box *add_box(struct map *m, uint32_t parent, uint32_t begin, uint32_t end, uint32_t prefix) {
  struct box *b = &m->boxes[m->box_count++];
  *b = (struct box){.begin = begin, .end = end, .prefix = prefix, .parent = parent};
  if (parent != TFC_NONE) b->depth = m->boxes[parent].depth + 1, m->boxes[parent].child_count++;
  for (uint32_t i = begin; i < end; i++) b->us += m->members[i].us, m->members[i].box = m->box_count - 1;
  return b;
}

// Opens a box: its large children become boxes, the small ones are gathered in one. A box that would mostly be such a
// rest, as a scope of twenty equal steps, stays closed: its own name says more.
static bool open_box(struct map *m, uint32_t index) {
  const struct box b = m->boxes[index];
  uint32_t large = 0, small = 0;
  double gathered = 0;
  for (uint32_t i = b.begin, end; i < b.end; i = end) {
    double us = 0;
    end = group_end(m, &b, i);
    for (uint32_t k = i; k < end; k++) us += m->members[k].us;
    if (us >= 0.006 * m->us)
      large++;
    else
      small++, gathered += us;
  }
  uint32_t more = large + (small > 0);
  if (index > 0 && 2 * gathered > b.us) return false;
  if (large == 0 || more < 2 || m->leaf_count + more - 1 > LEAVES || m->box_count + more > BOXES) return false;
  struct box *rest = NULL;
  if (small) {
    rest = add_box(m, index, b.begin, b.begin, b.prefix);
    rest->gathered = true;
  }
  const uint32_t rest_index = m->box_count - 1;
  for (uint32_t i = b.begin, end; i < b.end; i = end) {
    double us = 0;
    end = group_end(m, &b, i);
    for (uint32_t k = i; k < end; k++) us += m->members[k].us;
    if (us >= 0.006 * m->us) {
      uint32_t size = component(m->members[i].name, b.prefix);
      join_chain(m, add_box(m, index, i, end, size < m->members[i].name.size || end - i > 1 ? size + 1 : size));
    } else {
      rest->us += us;
      for (uint32_t k = i; k < end; k++) m->members[k].box = rest_index;
    }
  }
  m->leaf_count += more - 1;
  return true;
}

static void make_boxes(struct map *m) {
  bool closed[BOXES] = {false};
  join_chain(m, add_box(m, TFC_NONE, 0, m->count, 0));
  m->leaf_count = 1;
  for (;;) {
    uint32_t best = TFC_NONE;
    for (uint32_t i = 0; i < m->box_count; i++) {
      const struct box *b = &m->boxes[i];
      if (closed[i] || b->child_count || b->gathered || b->depth >= DEPTH || b->end - b->begin < 2) continue;
      if (best == TFC_NONE || b->us > m->boxes[best].us) best = i;
    }
    if (best == TFC_NONE || (best && m->boxes[best].us < 0.02 * m->us)) return;
    if (!open_box(m, best)) closed[best] = true;
  }
}

// Returns the box of the innermost scope that is shown and has this name in it.
static uint32_t scope_of(const struct map *m, tfc_str name) {
  uint32_t best = 0;
  size_t best_size = 0;
  for (uint32_t i = 0; i < m->box_count; i++) {
    const struct box *b = &m->boxes[i];
    if (b->gathered) continue;
    tfc_str first = m->members[b->begin].name;
    size_t size = 0;
    for (size_t k = 0; k < b->prefix && k < name.size && first.data[k] == name.data[k]; k++)
      if (name.data[k] == '/') size = k + 1;
    if (size > best_size || (size == best_size && b->depth < m->boxes[best].depth)) best = i, best_size = size;
  }
  return best;
}

static double worst(double sum, double most, double least, double side) {
  double a = side * side * most / (sum * sum), b = sum * sum / (side * side * least);
  return a > b ? a : b;
}

// Fills the parent's rectangle with its children, in rows along the shorter side.
static void lay_out(struct map *m, uint32_t parent) {
  uint32_t order[BOXES], n = 0;
  const struct box *b = &m->boxes[parent];
  double x = b->x, y = b->y, w = b->w, h = b->h, all = 0;
  if (parent) x += 2, w -= 4, y += STRIP, h -= STRIP + 2;
  for (uint32_t i = 0; i < m->box_count; i++)
    if (m->boxes[i].parent == parent) order[n++] = i, all += m->boxes[i].us;
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = i; k > 0 && m->boxes[order[k]].us > m->boxes[order[k - 1]].us; k--) {
      uint32_t swap = order[k];
      order[k] = order[k - 1], order[k - 1] = swap;
    }
  if (w < 1) w = 1;
  if (h < 1) h = 1;
  const double scale = all > 0 ? w * h / all : 0;
  for (uint32_t from = 0; from < n;) {
    double side = w < h ? w : h, sum = 0;
    uint32_t to = from;
    while (to < n) {
      double area = m->boxes[order[to]].us * scale, first = m->boxes[order[from]].us * scale;
      if (to > from &&
          worst(sum + area, first, area, side) > worst(sum, first, m->boxes[order[to - 1]].us * scale, side))
        break;
      sum += area, to++;
    }
    const double thick = side > 0 ? sum / side : 0;
    double at = 0;
    for (uint32_t i = from; i < to; i++) {
      struct box *c = &m->boxes[order[i]];
      double length = thick > 0 ? c->us * scale / thick : 0;
      if (w < h)
        c->x = x + at, c->y = y, c->w = length, c->h = thick;
      else
        c->x = x, c->y = y + at, c->w = thick, c->h = length;
      at += length;
    }
    if (w < h)
      y += thick, h -= thick;
    else
      x += thick, w -= thick;
    from = to;
  }
  for (uint32_t i = 0; i < n; i++)
    if (m->boxes[order[i]].child_count) lay_out(m, order[i]);
}

// --- Drawing ---------------------------------------------------------------------------------------------------------

static void add_title(struct map *m, const struct box *b) {
  tfc_str name = b->begin < m->count ? m->members[b->begin].name : (tfc_str){"", 0};
  uint32_t from = b->parent == TFC_NONE ? 0 : m->boxes[b->parent].prefix;
  if (b->gathered) {
    uint32_t count = 0, index = (uint32_t)(b - m->boxes);
    for (uint32_t i = 0; i < m->count; i++) count += m->members[i].box == index;
    tfc_page_add(m->p, "%u small", count);
    return;
  }
  uint32_t to = b->prefix > from ? b->prefix : (uint32_t)name.size;
  if (to > name.size) to = (uint32_t)name.size;
  while (to > from && name.data[to - 1] == '/') to--;
  if (b->parent == TFC_NONE && to == 0)
    tfc_page_add(m->p, "all operations");
  else if (to > from)
    tfc_page_escaped(m->p, tfc_str_sub(name, from, to));
  else
    tfc_page_add(m->p, "(itself)");
}

// Draws the share of each device in the time of a box's operations, from left to right.
static void add_colours(struct map *m, uint32_t index, int which, double *out_moved) {
  struct tfc_page *p = m->p;
  double all = 0, at = 0, *us = m->device_us;
  *out_moved = 0;
  memset(us, 0, (p->devices.row_count + 1u) * sizeof *us);
  for (uint32_t i = 0; i < m->count; i++) {
    const struct member *x = &m->members[i];
    if (x->box != index || x->device[which] < 0) continue;
    us[x->device[which]] += x->us, all += x->us;
    if (x->device[1] >= 0 && x->device[0] != x->device[1]) *out_moved += x->us;
  }
  tfc_page_add(p, "background:linear-gradient(90deg");
  for (uint32_t d = 0; d < p->devices.row_count && all > 0; d++) {
    if (!(us[d] > 0)) continue;
    uint32_t colour = tfc_palette_device(tfc_table_text(&p->devices, d, "name"));
    tfc_page_add(p, ",var(--d%u) %.1f%% %.1f%%", colour, 100 * at / all, 100 * (at + us[d]) / all);
    at += us[d];
  }
  tfc_page_add(p, all > 0 ? ")" : ",var(--line),var(--line))");
}

// Adds the full scope of a box, or the scope of which it has the small parts.
static void add_scope(struct map *m, const struct box *b) {
  const struct box *named = b->gathered ? &m->boxes[b->parent] : b;
  if (b->gathered) tfc_page_add(m->p, "small parts of ");
  tfc_str name = tfc_str_sub(m->members[named->begin].name, 0, named->prefix);
  while (name.size && name.data[name.size - 1] == '/') name.size--;
  if (name.size)
    tfc_page_escaped(m->p, name);
  else
    tfc_page_add(m->p, "the graph");
}

static void add_boxes(struct map *m, int which) {
  struct tfc_page *p = m->p;
  char a[32];
  for (uint32_t i = 1; i < m->box_count || (i == 1 && m->box_count == 1); i++) {
    const uint32_t index = m->box_count == 1 ? 0 : i;
    const struct box *b = &m->boxes[index];
    double moved = 0;
    tfc_page_add(p, "<div class=\"%s\" id=\"%c%u\" style=\"left:%.2f%%;top:%.1fpx;width:%.2f%%;height:%.1fpx;",
                 b->child_count ? "scope" : "leaf", which ? 'r' : 'a', index, 100 * b->x / NOMINAL_WIDTH, b->y,
                 100 * b->w / NOMINAL_WIDTH, b->h);
    if (!b->child_count) add_colours(m, index, which, &moved);
    tfc_page_add(p, "\"");
    if (moved > 0.001 * b->us && b->w >= 4 && b->h >= 4) tfc_page_add(p, " data-moved=\"%.0f\"", 100 * moved / b->us);
    tfc_page_add(p, " title=\"");
    if (b->gathered)
      add_scope(m, b);
    else
      tfc_page_escaped(p, tfc_str_sub(m->members[b->begin].name, 0, b->prefix));
    tfc_page_add(p, " %s\">", tfc_show_us(a, b->us));
    if (b->h >= 15 && b->w >= 24) {
      tfc_page_add(p, "<span>");
      add_title(m, b);
      tfc_page_add(p, "</span>");
    }
    tfc_page_add(p, "</div>\n");
    if (m->box_count == 1) break;
  }
}

enum { UNKNOWN = BOXES }; // in place of a box: the readers of a tensor were not recorded
struct cut {
  uint32_t from, to;
  uint32_t tensors, largest; // `largest`: the node of one of them
  double bytes, largest_bytes;
};
static int most_first(const void *a, const void *b) {
  const struct cut *x = a, *y = b;
  if (x->bytes > y->bytes || x->bytes < y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x->to > y->to) - (x->to < y->to);
}
static void add_tensor(struct cut *cuts, const struct member *from, const struct member *to, double bytes) {
  const uint32_t target = to ? to->box : UNKNOWN, source = from ? from->box : 0;
  struct cut *c = &cuts[source * (BOXES + 1) + target];
  c->from = source, c->to = target;
  c->tensors++, c->bytes += bytes;
  if (bytes > c->largest_bytes) c->largest = from ? from->node : TFC_NONE, c->largest_bytes = bytes;
}

// Returns whether row `r` of the edges comes before those of this output.
static bool before(const struct tfc_table *edges, uint32_t r, int64_t node, int64_t output) {
  const int64_t producer = tfc_table_cell(edges, r, 0)->integer;
  return producer < node || (producer == node && tfc_table_cell(edges, r, 1)->integer < output);
}

// Sums the bytes of tensors that go to another device, by pair of boxes: those of the traced step, and without a trace
// those of the graph's edges. A tensor counts once for each device to which it goes, in the box of its first reader
// there.
static tfc_status find_cuts(struct map *m, struct member **sorted, const struct tfc_table *moved,
                            const struct tfc_table *edges, int which, struct cut **out, uint32_t *out_count) {
  const uint32_t devices = m->p->devices.row_count, pairs = BOXES * (BOXES + 1);
  struct cut *cuts = TFC_ARENA_ARRAY(&m->arena, struct cut, pairs);
  uint32_t *seen = TFC_ARENA_ARRAY(&m->arena, uint32_t, (size_t)devices + 1), tensor = 0, count = 0;
  if (!cuts || !seen) return tfc_status_no_memory(NULL);
  memset(cuts, 0, pairs * sizeof *cuts);
  memset(seen, 0, ((size_t)devices + 1) * sizeof *seen);
  for (uint32_t r = 0, e = 0; moved && r < moved->row_count; r++) {
    const int64_t node = tfc_table_cell(moved, r, 0)->integer, output = tfc_table_cell(moved, r, 1)->integer;
    const struct tfc_cell *reader = tfc_table_cell(moved, r, 3);
    const struct member *to =
        reader->kind == TFC_CELL_INTEGER ? member_of(sorted, m->all_count, reader->integer) : NULL;
    // None of its readers ran as an operation of its own: one that the placement puts there. Both tables are sorted.
    while (e < edges->row_count && before(edges, e, node, output)) e++;
    for (uint32_t k = e; !to && k < edges->row_count && before(edges, k, node, output + 1); k++) {
      to = member_of(sorted, m->all_count, tfc_table_cell(edges, k, 2)->integer);
      if (to && (to->device[which] < 0 || to->device[which] != row_of(m->p, tfc_table_cell(moved, r, 2)))) to = NULL;
    }
    add_tensor(cuts, member_of(sorted, m->all_count, node), to, tfc_table_cell(moved, r, 4)->real);
  }
  for (uint32_t r = 0; !moved && r < edges->row_count; r++) {
    int64_t node = tfc_table_cell(edges, r, 0)->integer, output = tfc_table_cell(edges, r, 1)->integer;
    if (r == 0 || node != tfc_table_cell(edges, r - 1, 0)->integer ||
        output != tfc_table_cell(edges, r - 1, 1)->integer)
      tensor++;
    const struct member *a = member_of(sorted, m->all_count, node),
                        *b = member_of(sorted, m->all_count, tfc_table_cell(edges, r, 2)->integer);
    if (!a || !b || a->device[which] < 0 || b->device[which] < 0) continue;
    if (a->device[which] == b->device[which] || seen[b->device[which]] == tensor) continue;
    seen[b->device[which]] = tensor;
    add_tensor(cuts, a, b, tfc_table_cell(edges, r, 3)->real);
  }
  for (uint32_t i = 0; i < pairs; i++)
    if (cuts[i].bytes > 0) cuts[count++] = cuts[i];
  if (count) qsort(cuts, count, sizeof *cuts, most_first);
  *out = cuts, *out_count = count;
  return NULL;
}

static void add_cuts(struct map *m, const struct cut *cuts, uint32_t count) {
  tfc_page_add(m->p, "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" aria-hidden=\"true\">", NOMINAL_WIDTH,
               HEIGHT);
  for (uint32_t i = count < LINES ? count : LINES; i-- > 0;) { // the largest last, on top
    if (cuts[i].to == UNKNOWN || cuts[i].from == cuts[i].to) continue;
    const struct box *a = &m->boxes[cuts[i].from], *b = &m->boxes[cuts[i].to];
    tfc_page_add(m->p, "<path d=\"M%.0f %.0fL%.0f %.0f\" stroke-width=\"%.1f\"/>", a->x + a->w / 2, a->y + a->h / 2,
                 b->x + b->w / 2, b->y + b->h / 2, 0.8 + 6 * cuts[i].bytes / cuts[0].bytes);
  }
  tfc_page_add(m->p, "</svg>");
}

static tfc_status add_map(struct map *m, struct member **sorted, const struct tfc_table *moved,
                          const struct tfc_table *edges, int which, const char *title) {
  struct tfc_page *p = m->p;
  struct cut *cuts = NULL;
  uint32_t count = 0;
  char a[32];
  double all = 0;
  TFC_RETURN_IF_ERROR(find_cuts(m, sorted, moved, edges, which, &cuts, &count));
  for (uint32_t i = 0; i < count; i++) all += cuts[i].bytes;
  tfc_page_add(p, "<div class=\"half\"><h3>%s</h3>\n<div class=\"map\" style=\"height:%dpx\">\n", title, HEIGHT);
  add_boxes(m, which);
  if (count) add_cuts(m, cuts, count);
  tfc_page_add(p, "</div>\n<p class=\"note\">");
  if (!count)
    tfc_page_add(p, moved || edges->row_count ? "Nothing goes to another device."
                                              : "Which tensors cross is not known: the run has no edges.");
  else
    tfc_page_add(p, "%s go to another device%s, most of it:", tfc_show_bytes(a, all),
                 moved ? "" : " by the edges of the graph (no step was traced)");
  tfc_page_add(p, "</p>\n");
  if (count) tfc_page_add(p, "<ol class=\"cuts\">");
  for (uint32_t i = 0; i < count && i < LISTED; i++) {
    const struct cut *c = &cuts[i];
    const struct member *only = c->tensors == 1 ? member_of(sorted, m->all_count, c->largest) : NULL;
    tfc_page_add(p, "<li>%s %s ", tfc_show_bytes(a, c->bytes),
                 only                                   ? "of"
                 : c->from == c->to && c->to != UNKNOWN ? "within"
                                                        : "from");
    if (only)
      tfc_page_escaped(p, only->name);
    else
      add_scope(m, &m->boxes[c->from]);
    if (c->to == UNKNOWN)
      tfc_page_add(p, " to operations that were not recorded");
    else if (c->from != c->to || only)
      tfc_page_add(p, " to "), add_scope(m, &m->boxes[c->to]);
    tfc_page_add(p, "</li>\n");
  }
  if (count) tfc_page_add(p, "</ol>");
  tfc_page_add(p, "</div>\n");
  return NULL;
}

static void add_legend(struct map *m) {
  struct tfc_page *p = m->p;
  char a[32];
  tfc_page_add(p, "<p class=\"legend\">");
  for (uint32_t d = 0; d < p->devices.row_count; d++) {
    double us[2] = {0, 0};
    tfc_str name = tfc_table_text(&p->devices, d, "name");
    for (uint32_t i = 0; i < m->count; i++)
      for (int k = 0; k < 2; k++)
        if (m->members[i].device[k] == (int32_t)d) us[k] += m->members[i].us;
    if (!(us[0] > 0) && !(us[1] > 0)) continue;
    tfc_page_add(p, "<span><i class=\"key d%u\"></i>", tfc_palette_device(name));
    tfc_page_escaped(p, name);
    tfc_page_add(p, " %s", tfc_show_us(a, us[0]));
    if (m->has_rival) tfc_page_add(p, ", expert %s", tfc_show_us(a, us[1]));
    tfc_page_add(p, "</span> ");
  }
  if (m->has_rival) tfc_page_add(p, "<span><i class=\"key moved\"></i>not where the expert has it</span>");
  tfc_page_add(p, "</p>\n");
}

// Returns whether two devices have the same colour.
static bool colours_repeat(const struct tfc_table *devices) {
  bool seen[TFC_DEVICE_COLOURS] = {false};
  for (uint32_t d = 0; d < devices->row_count; d++) {
    bool *colour = &seen[tfc_palette_device(tfc_table_text(devices, d, "name"))];
    if (*colour) return true;
    *colour = true;
  }
  return false;
}

static tfc_status add_content(struct map *m, struct member **sorted) {
  struct tfc_page *p = m->p;
  struct tfc_table edges = {0}, step = {0}, moved_by[2];
  bool traced[2] = {p->args.step >= 0, false};
  uint32_t moved = 0;
  tfc_status s = NULL;
  memset(moved_by, 0, sizeof moved_by);
  TFC_TRY(s, tfc_table_query(p->store, sql_edges, &p->args, &edges));
  if (traced[0]) TFC_TRY(s, tfc_table_query(p->store, sql_moved, &p->args, &moved_by[0]));
  if (m->has_rival) {
    TFC_TRY(s, tfc_table_query(p->store, sql_rival_step, &p->args, &step));
    traced[1] = step.row_count && step.cells[0].kind == TFC_CELL_INTEGER;
    if (traced[1]) TFC_TRY(s, tfc_table_query(p->store, sql_rival_moved, &p->args, &moved_by[1]));
  }
  make_boxes(m);
  for (uint32_t i = m->count; i < m->all_count; i++) m->members[i].box = scope_of(m, m->members[i].name);
  m->boxes[0].w = NOMINAL_WIDTH, m->boxes[0].h = HEIGHT;
  lay_out(m, 0);
  for (uint32_t i = 0; i < m->count; i++)
    moved += m->members[i].device[1] >= 0 && m->members[i].device[0] != m->members[i].device[1];
  tfc_page_add(p,
               "<p class=\"caption\">Name scopes of the graph, as large as their operations take long, coloured by "
               "device (a box of several colours is split between them; \"12 small\" are that many operations of small "
               "scopes). Lines are tensors that cross to another "
               "device, as wide as their bytes: each counts once for each device to which it goes, with the first that "
               "reads it there.");
  if (colours_repeat(&p->devices)) tfc_page_add(p, " Some devices have the same colour: names tell them apart.");
  if (m->has_rival)
    tfc_page_add(p, " %u operations are not where the expert has them; their boxes are outlined.", moved);
  tfc_page_add(p, "</p>\n");
  add_legend(m);
  tfc_page_add(p, "<div class=\"maps\">\n");
  TFC_TRY(s, add_map(m, sorted, traced[0] ? &moved_by[0] : NULL, &edges, 0,
                     tfc_page_profiled(p) ? "This run" : "The answer"));
  if (m->has_rival) TFC_TRY(s, add_map(m, sorted, traced[1] ? &moved_by[1] : NULL, &edges, 1, "The expert"));
  tfc_page_add(p, "</div>\n");
  if (!m->has_rival && !tfc_page_profiled(p))
    tfc_page_add(p, "<p class=\"note\">No other placement stands beside it: %s.</p>\n", m->alone);
  uint32_t last = sorted[m->all_count - 1]->node;
  p->box_of = calloc((size_t)last + 1, sizeof *p->box_of);
  if (!p->box_of) TFC_TRY(s, tfc_status_no_memory(NULL));
  p->box_node_count = last + 1;
  for (uint32_t i = 0; i <= last; i++) p->box_of[i] = TFC_NONE;
  for (uint32_t i = 0; i < m->count; i++) p->box_of[m->members[i].node] = m->members[i].box;
out:
  tfc_table_deinit(&edges);
  tfc_table_deinit(&moved_by[0]);
  tfc_table_deinit(&moved_by[1]);
  tfc_table_deinit(&step);
  return s;
}

tfc_status tfc_page_map(struct tfc_page *p) {
  struct map *m = calloc(1, sizeof *m);
  struct tfc_table rows = {0}, rival = {0};
  struct member **sorted = NULL;
  tfc_status s = NULL;
  if (!m) return tfc_status_no_memory(NULL);
  m->p = p;
  p->args.other = -1;
  TFC_TRY(s, tfc_table_query(p->store,
                             "SELECT placement_id, placement_id = :placement FROM v_result WHERE run_id = :run AND"
                             " placement = 'expert'",
                             &p->args, &rival));
  const bool expert = rival.row_count && rival.cells[0].kind == TFC_CELL_INTEGER;
  const bool answers = expert && rival.cells[1].integer == 1;
  if (expert && !answers) p->args.other = rival.cells[0].integer;
  m->alone = answers  ? "the answer is the expert's placement"
             : expert ? "where the expert has each operation was not kept"
                      : "this run has no expert's placement, as the graph has no device strings";
  tfc_page_add(p, "<section id=\"map\"><h2>Where each operation runs</h2>\n");
  TFC_TRY(s, load(m, &rows, &sorted));
  if (m->count)
    TFC_TRY(s, add_content(m, sorted));
  else
    tfc_page_add(p, "<p class=\"note\">There is no map: this run has no placement whose operations have times.</p>\n");
  char summary[160];
  snprintf(summary, sizeof summary,
           "The queries behind this map (:run = %lld, :placement = %lld, :other = %lld, "
           ":step = %lld)",
           (long long)p->args.run, (long long)p->args.placement, (long long)p->args.other, (long long)p->args.step);
  struct tfc_text queries = {0};
  tfc_text_printf(&queries, "%s;\n%s;\n%s;\n%s;\n", sql_placed, sql_rival, sql_moved, sql_edges);
  if (queries.data) tfc_page_query(p, summary, queries.data);
  tfc_text_deinit(&queries);
  tfc_page_add(p, "</section>\n");
out:
  tfc_table_deinit(&rows);
  tfc_table_deinit(&rival);
  tfc_arena_deinit(&m->arena);
  free(m);
  return s;
}
