// Nodes are known by their names and those of the functions that they are in; a name with a tab or an end of line in it
// cannot be written, and is reported as not saved.
#include "runtime/exec/saved_state.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/base/units.h"
#include "runtime/exec/plan/plan_internal.h"
#include "runtime/ops/data_dataset.h"
#include "runtime/ops/held.h"

bool tfc_state_line(tfc_str *text, tfc_str *out_line) {
  if (!text->size) return false;
  const size_t end = tfc_str_find(*text, '\n');
  *out_line = tfc_str_sub(*text, 0, end);
  *text = end == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(*text, end + 1, SIZE_MAX);
  return true;
}

tfc_str tfc_state_word(tfc_str *line) {
  const size_t end = tfc_str_find(*line, '\t');
  const tfc_str word = tfc_str_sub(*line, 0, end);
  *line = end == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(*line, end + 1, SIZE_MAX);
  return word;
}

static bool can_be_written(tfc_str name) {
  return tfc_str_find(name, '\t') == SIZE_MAX && tfc_str_find(name, '\n') == SIZE_MAX;
}

static tfc_status wrong(tfc_str line) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not the state of an operation", TFC_STR_ARG(line));
}

static tfc_status text_status(const struct tfc_text *t) {
  return t->failed ? tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: the state of operations") : NULL;
}

// --- Functions that datasets call ------------------------------------------------------------------------------------
struct marks { // of a graph's functions
  const struct tfc_graph *graph;
  bool *called; // [function_count]
};

static void mark(const struct marks *m, tfc_str name) {
  const struct tfc_function *f = tfc_graph_function(m->graph, name);
  if (!f || m->called[f - m->graph->functions]) return;
  m->called[f - m->graph->functions] = true;
  const struct tfc_graph *g = f->body;
  for (uint32_t i = 0; g && i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (n->function != TFC_NO_NODE) mark(m, n->op);
    for (uint32_t k = 0; k < n->attr_count; k++) {
      const struct tfc_attr *a = &g->attrs[n->attr_begin + k];
      if (a->kind == TFC_ATTR_FUNC) mark(m, a->func->name);
      for (uint32_t j = 0; a->kind == TFC_ATTR_LIST_FUNC && j < a->count; j++) mark(m, a->funcs[j].name);
    }
  }
}

static void mark_dataset(const struct marks *m, const struct tfc_dataset *d) {
  if (!d) return;
  if (d->function.name.size) mark(m, d->function.name);
  for (uint32_t i = 0; i < d->input_count; i++) mark_dataset(m, d->inputs[i]);
}

static void mark_iterator(void *arg, const struct tfc_iterator_place *place) {
  mark_dataset(arg, place->dataset);
}

// --- Operations ------------------------------------------------------------------------------------------------------
static void write_node(const struct tfc_session_graph *g, tfc_str function, uint32_t node, struct tfc_text *out) {
  const struct tfc_node *n = &g->graph->nodes[node];
  if (!g->node_states[node] || n->def->node_state != sizeof(uint64_t)) return; // all states but counters are markers
  // A step of another client may draw now.
  const uint64_t count = atomic_load((_Atomic uint64_t *)g->node_states[node]);
  if (!count) return; // as at the beginning
  if (!can_be_written(n->name) || !can_be_written(function)) {
    tfc_text_printf(out, "unsaved\tthe state of an operation (%.*s) whose name has a tab or an end of line\n",
                    TFC_STR_ARG(n->op));
    return;
  }
  tfc_text_printf(out, "node\t%llu\t%.*s\t%.*s\n", (unsigned long long)count, TFC_STR_ARG(function),
                  TFC_STR_ARG(n->name));
}

tfc_status tfc_session_write_state(struct tfc_session *session, struct tfc_text *out) {
  const struct tfc_graph *g = session->graph;
  const struct marks m = {g, calloc(g->function_count + 1u, sizeof(bool))};
  if (!m.called) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: the state of operations");
  tfc_iterators_each(session->resources, mark_iterator, (void *)(uintptr_t)&m);
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->graphs.count; i++) {
    const struct tfc_session_graph *one = &session->graphs.data[i];
    tfc_str function = {0};
    bool replayed = false;
    for (uint32_t f = 0; f < g->function_count; f++)
      if (g->functions[f].body == one->graph) function = g->functions[f].name, replayed = m.called[f];
    for (uint32_t n = 0; n < one->graph->node_count && !replayed; n++) write_node(one, function, n, out);
  }
  pthread_mutex_unlock(&session->lock);
  free(m.called);
  return text_status(out);
}

static tfc_status read_node(struct tfc_session *session, tfc_str line) {
  tfc_str rest = line;
  tfc_state_word(&rest);
  const tfc_str number = tfc_state_word(&rest), function = tfc_state_word(&rest), name = rest;
  const struct tfc_function *f = function.size ? tfc_graph_function(session->graph, function) : NULL;
  const struct tfc_graph *g = function.size ? (f ? f->body : NULL) : session->graph;
  const uint32_t node = g ? tfc_graph_find(g, name) : TFC_NO_NODE;
  void *state = NULL;
  int64_t count = 0;
  if (node == TFC_NO_NODE) return NULL;
  TFC_RETURN_IF_ERROR(tfc_session_node_state(session, g, node, &state));
  tfc_status s = tfc_parse_i64(number, &count);
  if (s || count < 0 || !state || g->nodes[node].def->node_state != sizeof(uint64_t)) {
    tfc_status_free(s);
    return wrong(line);
  }
  atomic_store((_Atomic uint64_t *)state, (uint64_t)count);
  return NULL;
}

tfc_status tfc_session_read_state(struct tfc_session *session, tfc_str text) {
  for (tfc_str line; tfc_state_line(&text, &line);)
    if (tfc_str_starts(line, "node\t")) TFC_RETURN_IF_ERROR(read_node(session, line));
  return NULL;
}

// --- Iterators and what cannot be saved ------------------------------------------------------------------------------
static void write_iterator(void *arg, const struct tfc_iterator_place *place) {
  struct tfc_text *out = arg;
  if (!place->given) return;
  if (place->begun > 1)
    tfc_text_printf(
        out,
        "unsaved\titerator '%.*s' was initialised %u times: what its dataset drew at random before the last "
        "time\n",
        TFC_STR_ARG(place->name), place->begun);
  if (!can_be_written(place->container) || !can_be_written(place->name))
    tfc_text_printf(out, "unsaved\tan iterator whose name has a tab or an end of line\n");
  else
    tfc_text_printf(out, "iterator\t%llu\t%.*s\t%.*s\n", (unsigned long long)place->given,
                    TFC_STR_ARG(place->container), TFC_STR_ARG(place->name));
}

static void write_unsaved(void *arg, tfc_str container, tfc_str name, struct tfc_object *object) {
  (void)container;
  struct tfc_text *out = arg;
  if (tfc_object_holds(object) && can_be_written(name))
    tfc_text_printf(out, "unsaved\twhat the %s '%.*s' holds\n", object->type->name, TFC_STR_ARG(name));
}

tfc_status tfc_resources_write_state(struct tfc_resources *resources, struct tfc_text *out) {
  tfc_iterators_each(resources, write_iterator, out);
  tfc_resources_each(resources, write_unsaved, out);
  return text_status(out);
}

tfc_status tfc_resources_read_state(struct tfc_resources *resources, tfc_str text) {
  for (tfc_str line; tfc_state_line(&text, &line);) {
    if (!tfc_str_starts(line, "iterator\t")) continue;
    tfc_str rest = line;
    int64_t given = 0;
    tfc_state_word(&rest);
    tfc_status s = tfc_parse_i64(tfc_state_word(&rest), &given);
    const tfc_str container = tfc_state_word(&rest);
    if (s || given < 0 || !rest.size) {
      tfc_status_free(s);
      return wrong(line);
    }
    TFC_RETURN_IF_ERROR(tfc_iterators_go_to(resources, container, rest, (uint64_t)given));
  }
  return NULL;
}
