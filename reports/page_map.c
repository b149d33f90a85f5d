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
  struct member *members;
  uint32_t count, box_count, leaf_count;
  struct box boxes[BOXES];
  double us;
  bool has_rival;
  double *device_us; // [devices + 1] scratch
};

// '/' sorts before all other characters, so that the members of a scope are neighbours.
static int by_name(const void *a, const void *b) {
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

static const char sql_placed[] = TFC_SQL_TOOK
    "SELECT p.node_id, p.node, p.device_id, COALESCE(t.us, n.time_us, (SELECT MIN(c.median_us) FROM v_cost c"
    " WHERE c.run_id = :run AND c.node_id = p.node_id), 0) AS us FROM v_placement p JOIN v_node n ON n.run_id = :run "
    "AND"
    " n.node_id = p.node_id LEFT JOIN took t ON t.node_id = p.node_id"
    " WHERE p.run_id = :run AND p.placement_id = :placement";
static const char sql_ran[] = // for nodes that no placement has: the devices on which they ran
    TFC_SQL_TOOK "SELECT node_id, node, device_id, us FROM took";
static const char sql_rival[] =
    "SELECT node_id, device_id FROM v_placement WHERE run_id = :run AND placement_id = :other";
static const char sql_edges[] =
    "SELECT producer_id, output, consumer_id, bytes FROM v_edge WHERE run_id = :run AND output"
    " >= 0 AND bytes > 0 ORDER BY producer_id, output, consumer_id";

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
  if (!m->members || !sorted || !m->device_us) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t r = 0; r < rows->row_count; r++) {
    const struct tfc_cell *node = tfc_table_cell(rows, r, 0);
    double us = tfc_table_cell(rows, r, 3)->real;
    if (node->kind != TFC_CELL_INTEGER || node->integer < 0 || node->integer >= UINT32_MAX || !(us > 0)) continue;
    m->members[m->count++] = (struct member){.node = (uint32_t)node->integer,
                                             .box = TFC_NONE,
                                             .device = {row_of(p, tfc_table_cell(rows, r, 2)), -1},
                                             .name = tfc_table_cell(rows, r, 1)->text,
                                             .us = us};
    m->us += us;
  }
  if (m->count) qsort(m->members, m->count, sizeof *m->members, by_name);
  for (uint32_t i = 0; i < m->count; i++) sorted[i] = &m->members[i];
  if (m->count) qsort(sorted, m->count, sizeof(struct member *), by_node);
  if (p->args.other >= 0) {
    TFC_TRY(s, tfc_table_query(p->store, sql_rival, &p->args, &rival));
    for (uint32_t r = 0; r < rival.row_count; r++) {
      struct member *at = member_of(sorted, m->count, tfc_table_cell(&rival, r, 0)->integer);
      if (at) at->device[1] = row_of(p, tfc_table_cell(&rival, r, 1)), m->has_rival = true;
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

static bool open_box(struct map *m, uint32_t index) {
  const struct box b = m->boxes[index];
  uint32_t large = 0, small = 0;
  for (uint32_t i = b.begin, end; i < b.end; i = end) {
    double us = 0;
    end = group_end(m, &b, i);
    for (uint32_t k = i; k < end; k++) us += m->members[k].us;
    if (us >= 0.006 * m->us)
      large++;
    else
      small++;
  }
  uint32_t more = large + (small > 0);
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
    tfc_page_add(m->p, "%u more", count);
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

// Adds the full scope of a box, or the scope in which small ones were put together.
static void add_scope(struct map *m, const struct box *b) {
  const struct box *named = b->gathered ? &m->boxes[b->parent] : b;
  if (b->gathered) add_title(m, b), tfc_page_add(m->p, " in ");
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

struct cut {
  uint32_t from, to;
  double bytes;
};
static int most_first(const void *a, const void *b) {
  const struct cut *x = a, *y = b;
  if (x->bytes > y->bytes || x->bytes < y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x->to > y->to) - (x->to < y->to);
}

// Sums the bytes of tensors that cross to another device, by pair of boxes. A tensor with many readers in one box on
// one device counts once.
static tfc_status find_cuts(struct map *m, struct member **sorted, const struct tfc_table *edges, int which,
                            struct cut **out, uint32_t *out_count) {
  double *bytes = TFC_ARENA_ARRAY(&m->arena, double, (size_t)BOXES *BOXES);
  const uint32_t devices = m->p->devices.row_count;
  uint32_t *seen = TFC_ARENA_ARRAY(&m->arena, uint32_t, (size_t)BOXES * devices + 1), tensor = 0, count = 0;
  if (!bytes || !seen) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  memset(bytes, 0, (size_t)BOXES * BOXES * sizeof *bytes);
  memset(seen, 0, ((size_t)BOXES * devices + 1) * sizeof *seen);
  for (uint32_t r = 0; r < edges->row_count; r++) {
    int64_t node = tfc_table_cell(edges, r, 0)->integer, output = tfc_table_cell(edges, r, 1)->integer;
    if (r == 0 || node != tfc_table_cell(edges, r - 1, 0)->integer ||
        output != tfc_table_cell(edges, r - 1, 1)->integer)
      tensor++;
    const struct member *a = member_of(sorted, m->count, node),
                        *b = member_of(sorted, m->count, tfc_table_cell(edges, r, 2)->integer);
    if (!a || !b || a->device[which] < 0 || b->device[which] < 0) continue;
    if (a->device[which] == b->device[which]) continue;
    uint32_t *last = &seen[b->box * devices + (uint32_t)b->device[which]];
    if (*last == tensor) continue;
    *last = tensor;
    bytes[a->box * BOXES + b->box] += tfc_table_cell(edges, r, 3)->real;
  }
  for (uint32_t i = 0; i < BOXES * BOXES; i++) count += bytes[i] > 0;
  struct cut *cuts = TFC_ARENA_ARRAY(&m->arena, struct cut, (size_t)count + 1);
  if (!cuts) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  count = 0;
  for (uint32_t i = 0; i < BOXES * BOXES; i++)
    if (bytes[i] > 0) cuts[count++] = (struct cut){i / BOXES, i % BOXES, bytes[i]};
  if (count) qsort(cuts, count, sizeof *cuts, most_first);
  *out = cuts, *out_count = count;
  return NULL;
}

static void add_cuts(struct map *m, const struct cut *cuts, uint32_t count) {
  tfc_page_add(m->p, "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" aria-hidden=\"true\">", NOMINAL_WIDTH,
               HEIGHT);
  for (uint32_t i = count < LINES ? count : LINES; i-- > 0;) { // the largest last, on top
    const struct box *a = &m->boxes[cuts[i].from], *b = &m->boxes[cuts[i].to];
    if (a == b) continue;
    tfc_page_add(m->p, "<path d=\"M%.0f %.0fL%.0f %.0f\" stroke-width=\"%.1f\"/>", a->x + a->w / 2, a->y + a->h / 2,
                 b->x + b->w / 2, b->y + b->h / 2, 0.8 + 6 * cuts[i].bytes / cuts[0].bytes);
  }
  tfc_page_add(m->p, "</svg>");
}

static tfc_status add_map(struct map *m, struct member **sorted, const struct tfc_table *edges, int which,
                          const char *title) {
  struct tfc_page *p = m->p;
  struct cut *cuts = NULL;
  uint32_t count = 0;
  char a[32];
  double all = 0;
  TFC_RETURN_IF_ERROR(find_cuts(m, sorted, edges, which, &cuts, &count));
  for (uint32_t i = 0; i < count; i++) all += cuts[i].bytes;
  tfc_page_add(p, "<div class=\"half\"><h3>%s</h3>\n<div class=\"map\" style=\"height:%dpx\">\n", title, HEIGHT);
  add_boxes(m, which);
  if (count) add_cuts(m, cuts, count);
  tfc_page_add(p, "</div>\n<p class=\"note\">");
  if (!count)
    tfc_page_add(p, edges->row_count ? "Nothing goes to another device."
                                     : "Which tensors cross is not known: the run has no edges.");
  else
    tfc_page_add(p, "%s go to another device, most of it:", tfc_show_bytes(a, all));
  tfc_page_add(p, "</p>\n");
  if (count) tfc_page_add(p, "<ol class=\"cuts\">");
  for (uint32_t i = 0; i < count && i < LISTED; i++) {
    tfc_page_add(p, "<li>%s from ", tfc_show_bytes(a, cuts[i].bytes));
    add_scope(m, &m->boxes[cuts[i].from]);
    tfc_page_add(p, cuts[i].from == cuts[i].to ? " to other operations of it" : " to ");
    if (cuts[i].from != cuts[i].to) add_scope(m, &m->boxes[cuts[i].to]);
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
  struct tfc_table edges = {0};
  uint32_t moved = 0;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(p->store, sql_edges, &p->args, &edges));
  make_boxes(m);
  m->boxes[0].w = NOMINAL_WIDTH, m->boxes[0].h = HEIGHT;
  lay_out(m, 0);
  for (uint32_t i = 0; i < m->count; i++)
    moved += m->members[i].device[1] >= 0 && m->members[i].device[0] != m->members[i].device[1];
  tfc_page_add(p,
               "<p class=\"caption\">Name scopes of the graph, as large as their %u operations take long, coloured by "
               "device (a box of several colours is split between them). Lines are tensors that cross to another "
               "device, as wide as their bytes.",
               m->count);
  if (colours_repeat(&p->devices)) tfc_page_add(p, " Some devices have the same colour: names tell them apart.");
  if (m->has_rival)
    tfc_page_add(p, " %u operations are not where the expert has them; their boxes are outlined.", moved);
  tfc_page_add(p, "</p>\n");
  add_legend(m);
  tfc_page_add(p, "<div class=\"maps\">\n");
  TFC_TRY(s, add_map(m, sorted, &edges, 0, "The answer"));
  if (m->has_rival) TFC_TRY(s, add_map(m, sorted, &edges, 1, "The expert"));
  tfc_page_add(p, "</div>\n");
  if (!m->has_rival)
    tfc_page_add(p,
                 "<p class=\"note\">No placement stands beside it: the graph has no device strings and no --baseline "
                 "was given, or the answer is that placement.</p>\n");
  uint32_t last = sorted[m->count - 1]->node;
  p->box_of = calloc((size_t)last + 1, sizeof *p->box_of);
  if (!p->box_of) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  p->box_node_count = last + 1;
  for (uint32_t i = 0; i <= last; i++) p->box_of[i] = TFC_NONE;
  for (uint32_t i = 0; i < m->count; i++) p->box_of[m->members[i].node] = m->members[i].box;
out:
  tfc_table_deinit(&edges);
  return s;
}

tfc_status tfc_page_map(struct tfc_page *p) {
  struct map *m = calloc(1, sizeof *m);
  struct tfc_table rows = {0}, rival = {0};
  struct member **sorted = NULL;
  tfc_status s = NULL;
  if (!m) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  m->p = p;
  p->args.other = -1;
  TFC_TRY(s, tfc_table_query(p->store,
                             "SELECT placement_id FROM v_result WHERE run_id = :run AND placement = 'expert' AND"
                             " placement_id <> :placement",
                             &p->args, &rival));
  if (rival.row_count && rival.cells[0].kind == TFC_CELL_INTEGER) p->args.other = rival.cells[0].integer;
  tfc_page_add(p, "<section id=\"map\"><h2>Where each operation runs</h2>\n");
  TFC_TRY(s, load(m, &rows, &sorted));
  if (m->count)
    TFC_TRY(s, add_content(m, sorted));
  else
    tfc_page_add(p, "<p class=\"note\">There is no map: this run has no placement whose operations have times.</p>\n");
  char summary[160];
  snprintf(summary, sizeof summary, "The queries behind this map (:run = %lld, :placement = %lld, :other = %lld)",
           (long long)p->args.run, (long long)p->args.placement, (long long)p->args.other);
  struct tfc_text queries = {0};
  tfc_text_printf(&queries, "%s;\n%s;\n%s;\n", sql_placed, sql_rival, sql_edges);
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
