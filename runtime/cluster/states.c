// Lines say by name what they are about; where that is now, the cut of the client's graph says.
#include "runtime/cluster/states.h"

#include "runtime/base/state_text.h"

// Returns the rank of the task with this name; UINT32_MAX: there is none.
static uint32_t rank_of(const struct tfc_cluster_spec *spec, tfc_str name) {
  char own[TFC_TASK_TEXT];
  for (uint32_t r = 0; r < spec->tasks.count; r++)
    if (tfc_str_is(name, tfc_cluster_task_name(spec, r, own))) return r;
  return UINT32_MAX;
}

// Whether the graph's node with this written name, or one that makes an object of this name, is in another task and
// none in this one.
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

uint32_t tfc_states_list_lost(const struct tfc_cut *cut, uint32_t client, tfc_str task, tfc_str text,
                              struct tfc_text *out) {
  enum { SHOWN = 8 };
  const uint32_t rank = rank_of(cut->spec, task);
  uint32_t count = 0;
  bool own = false, known_client = true;
  for (tfc_str line; tfc_state_line(&text, &line);) {
    const tfc_str kind = tfc_state_word(&line);
    tfc_str name = {0};
    const char *what = NULL;
    if (tfc_str_is(kind, "session")) {
      const uint32_t of = rank_of(cut->spec, tfc_state_word(&line));
      own = of == client, known_client = of != UINT32_MAX;
    } else if (tfc_str_is(kind, "node")) {
      tfc_state_word(&line);
      const bool in_function = tfc_state_word(&line).size > 0;
      name = line, what = "operation";
      if (known_client && rank != UINT32_MAX && (!own || in_function || !has_moved(cut, name, rank))) continue;
    } else if (tfc_str_is(kind, "iterator") || tfc_str_is(kind, "object")) {
      const bool object = tfc_str_is(kind, "object");
      tfc_state_word(&line); // elements, or the container
      name = object ? tfc_state_word(&line) : (tfc_state_word(&line), line);
      what = object ? "object" : "iterator";
      if (rank != UINT32_MAX && !has_moved(cut, name, rank)) continue;
    }
    if (!what) continue;
    if (!count)
      tfc_text_printf(out, "%.*s %s; what it had before begins anew: ", TFC_STR_ARG(task),
                      rank == UINT32_MAX ? "is not in this job" : "has other nodes or clients now");
    if (count < SHOWN) tfc_text_printf(out, "%s%s '%.*s'", count ? ", " : "", what, TFC_STR_ARG(name));
    count++;
  }
  if (count > SHOWN) tfc_text_printf(out, " and %u more", count - SHOWN);
  if (count) tfc_text_printf(out, "\n");
  return rank;
}
