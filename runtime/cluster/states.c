// A saved line names the operation, iterator or object whose state it is. The cut of the client's graph says in which
// task that is now.
#include "runtime/cluster/states.h"

#include "runtime/base/none.h"
#include "runtime/base/state_text.h"
#include "runtime/base/units.h"

tfc_str tfc_states_from(tfc_str text, const char *mark) {
  for (tfc_str before = text, line; tfc_line_next(&text, &line); before = text)
    if (tfc_str_starts(line, mark)) return before;
  return (tfc_str){0};
}

bool tfc_states_section(tfc_str *text, const char *mark, tfc_str *out_name, tfc_str *out_lines) {
  tfc_str line, rest = tfc_states_from(*text, mark);
  if (!tfc_line_next(&rest, &line)) return false;
  *text = tfc_states_from(rest, mark);
  *out_name = tfc_str_sub(line, strlen(mark), SIZE_MAX);
  *out_lines = tfc_str_sub(rest, 0, rest.size - text->size);
  return true;
}

// Returns the rank of the task with this name; TFC_NONE: there is none.
static uint32_t rank_of(const struct tfc_cluster_spec *spec, tfc_str name) {
  char own[TFC_TASK_TEXT];
  for (uint32_t r = 0; r < spec->tasks.count; r++)
    if (tfc_str_is(name, tfc_cluster_task_name(spec, r, own))) return r;
  return TFC_NONE;
}

// Whether what has this name has moved to another task: some node of the name, or whose shared_name it is, is in
// another task, and none is in task `rank`. `written`: the name as saved lines write it.
static bool has_moved(const struct tfc_cut *cut, tfc_str written, uint32_t rank) {
  const struct tfc_graph *g = cut->graph;
  bool elsewhere = false, here = false;
  struct tfc_text plain = {0};
  tfc_state_read(written, &plain);
  const tfc_str name = {plain.data, plain.size};
  for (uint32_t i = 0; i < g->node_count; i++) {
    const tfc_str shared = tfc_node_attr_string(g, &g->nodes[i], "shared_name", "");
    if (!tfc_str_equal(g->nodes[i].name, name) && !tfc_str_equal(shared, name)) continue;
    here |= cut->ranks[i] == rank;
    elsewhere |= cut->ranks[i] != rank;
  }
  tfc_text_deinit(&plain);
  return elsewhere && !here;
}

// Whether the task ran steps of its own. Then objects saved there may belong to its own graph, which this client does
// not know.
static bool was_client(tfc_str task, tfc_str text) {
  for (tfc_str line; tfc_line_next(&text, &line);)
    if (tfc_str_is(tfc_state_word(&line), "session") && tfc_str_equal(tfc_state_word(&line), task)) return true;
  return false;
}

uint32_t tfc_states_list_lost(const struct tfc_cut *cut, uint32_t client, const bool *clients, tfc_str task,
                              tfc_str text, struct tfc_text *out) {
  enum { SHOWN = 8 };
  const uint32_t rank = rank_of(cut->spec, task);
  uint32_t count = 0;
  const bool may_move = rank == client || !was_client(task, text);
  bool own = false, known_client = true;
  for (tfc_str line; tfc_line_next(&text, &line);) {
    const tfc_str kind = tfc_state_word(&line);
    tfc_str name = {0};
    const char *what = NULL;
    if (tfc_str_is(kind, "session")) {
      const uint32_t of = rank_of(cut->spec, tfc_state_word(&line));
      own = of == client, known_client = of != TFC_NONE;
    } else if (tfc_str_is(kind, "node")) {
      tfc_state_word(&line);
      const bool in_function = tfc_state_word(&line).size > 0;
      name = line, what = "operation";
      if (known_client && rank != TFC_NONE && (!own || in_function || !has_moved(cut, name, rank))) continue;
    } else if (tfc_str_is(kind, "iterator") || tfc_str_is(kind, "object")) {
      const bool object = tfc_str_is(kind, "object");
      tfc_state_word(&line); // elements, or the container
      name = object ? tfc_state_word(&line) : (tfc_state_word(&line), line);
      what = object ? "object" : "iterator";
      if (rank != TFC_NONE && !(may_move && has_moved(cut, name, rank))) continue;
    } else if (tfc_str_is(kind, "variable") && (rank == TFC_NONE || !clients[rank])) {
      name = tfc_state_word(&line), what = "local variable";
    }
    if (!what) continue;
    if (!count)
      tfc_text_printf(out, "%.*s %s; what it had before begins anew: ", TFC_STR_ARG(task),
                      rank == TFC_NONE ? "is not in this job" : "has other nodes or clients now");
    if (count < SHOWN) tfc_text_printf(out, "%s%s '%.*s'", count ? ", " : "", what, TFC_STR_ARG(name));
    count++;
  }
  if (count > SHOWN) tfc_text_printf(out, " and %u more", count - SHOWN);
  if (count) tfc_text_printf(out, "\n");
  return rank;
}

void tfc_moving_begin(struct tfc_moving *m) {
  m->waits.count = m->runs.count = 0;
  m->threads = m->threads_before = m->runs_before = 0;
  m->is_listed = true;
  m->failed = false;
}

bool tfc_moving_take(struct tfc_moving *m, bool matters, tfc_str line) {
  const tfc_str kind = tfc_state_word(&line);
  const bool waits = tfc_str_is(kind, "waits"), runs = tfc_str_is(kind, "runs");
  int64_t number = 0;
  if (!waits && !runs && !tfc_str_is(kind, "threads")) return false;
  tfc_status s = tfc_parse_i64(line, &number);
  if (s)
    m->failed = true;
  else if (waits)
    m->failed |= !tfc_array_push(&m->waits, number);
  else if (runs && matters)
    m->failed |= !tfc_array_push(&m->runs, number);
  else if (matters)
    m->threads += (uint32_t)number;
  tfc_status_free(s);
  return true;
}

void tfc_moving_next(struct tfc_moving *m) {
  m->is_listed &= m->runs.count - m->runs_before == m->threads - m->threads_before;
  m->runs_before = (uint32_t)m->runs.count;
  m->threads_before = m->threads;
}

bool tfc_moving_rests(const struct tfc_moving *m) {
  bool rests = m->is_listed;
  for (size_t i = 0; i < m->runs.count && rests; i++) {
    rests = false;
    for (size_t k = 0; k < m->waits.count && !rests; k++) rests = m->waits.data[k] == m->runs.data[i];
  }
  return rests;
}

void tfc_moving_deinit(struct tfc_moving *m) {
  tfc_array_free(&m->waits);
  tfc_array_free(&m->runs);
}
