// Nodes are known by their names and those of the functions that they are in, objects by container and name.
#include "runtime/exec/saved_state.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/base/units.h"
#include "runtime/exec/node_state.h"
#include "runtime/exec/session_internal.h"
#include "runtime/ops/data_iterator.h"
#include "runtime/ops/kernel.h"

static tfc_status wrong(tfc_str line) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not the state of an operation", TFC_STR_ARG(line));
}

static const char what[] = "the state of operations";
static tfc_status text_status(const struct tfc_text *t) {
  return t->failed ? tfc_status_no_memory(what) : NULL;
}

// Writes two words, which end a line.
static void end_line(struct tfc_text *out, tfc_str first, tfc_str second) {
  tfc_state_add(out, first);
  tfc_text_add(out, TFC_STR("\t"));
  tfc_state_add(out, second);
  tfc_text_add(out, TFC_STR("\n"));
}

// Reads such words. The caller frees both texts, also after an error.
static tfc_status read_end(tfc_str line, struct tfc_text *first, struct tfc_text *second) {
  tfc_state_read(tfc_state_word(&line), first);
  tfc_state_read(line, second);
  return first->failed || second->failed ? tfc_status_no_memory(what) : NULL;
}

// --- Operations ------------------------------------------------------------------------------------------------------
static void write_node(const struct tfc_session_graph *g, tfc_str function, uint32_t node, struct tfc_text *out) {
  const struct tfc_node *n = &g->graph->nodes[node];
  if (!g->node_states[node] || n->def->node_state != sizeof(uint64_t)) return; // all states but counters are markers
  // A step of another client may draw now.
  const uint64_t count = atomic_load((_Atomic uint64_t *)g->node_states[node]);
  if (!count) return; // as at the beginning
  tfc_text_printf(out, "node\t%llu\t", (unsigned long long)count);
  end_line(out, function, n->name);
}

tfc_status tfc_session_write_state(struct tfc_session *session, struct tfc_text *out) {
  const struct tfc_graph *g = session->graph;
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->graphs.count; i++) {
    const struct tfc_session_graph *one = &session->graphs.data[i];
    tfc_str function = {0};
    if (one->states) continue; // an iterator's: it lets the functions draw the same numbers again
    for (uint32_t f = 0; f < g->function_count; f++)
      if (g->functions[f].body == one->graph) function = g->functions[f].name;
    for (uint32_t n = 0; n < one->graph->node_count; n++) write_node(one, function, n, out);
  }
  pthread_mutex_unlock(&session->lock);
  return text_status(out);
}

static tfc_status set_node(struct tfc_session *session, tfc_str function, tfc_str name, uint64_t count,
                           bool *out_counts) {
  const struct tfc_function *f = function.size ? tfc_graph_function(session->graph, function) : NULL;
  const struct tfc_graph *g = function.size ? (f ? f->body : NULL) : session->graph;
  const uint32_t node = g ? tfc_graph_find(g, name) : TFC_NONE;
  void *state = NULL;
  *out_counts = true;
  if (node == TFC_NONE) return NULL;
  TFC_RETURN_IF_ERROR(tfc_session_node_state(session, g, 0, node, &state));
  *out_counts = state && g->nodes[node].def->node_state == sizeof(uint64_t);
  if (*out_counts) atomic_store((_Atomic uint64_t *)state, count);
  return NULL;
}

static tfc_status read_node(struct tfc_session *session, tfc_str line) {
  tfc_str rest = line;
  tfc_status s = NULL;
  struct tfc_text function = {0}, name = {0};
  int64_t count = 0;
  bool counts = false;
  tfc_state_word(&rest);
  tfc_status number = tfc_parse_i64(tfc_state_word(&rest), &count);
  TFC_TRY(s, read_end(rest, &function, &name));
  if (!number && count >= 0)
    TFC_TRY(s, set_node(session, (tfc_str){function.data, function.size}, (tfc_str){name.data, name.size},
                        (uint64_t)count, &counts));
  if (!counts) s = wrong(line);
out:
  tfc_status_free(number);
  tfc_text_deinit(&function);
  tfc_text_deinit(&name);
  return s;
}

tfc_status tfc_session_read_state(struct tfc_session *session, tfc_str text) {
  for (tfc_str line; tfc_line_next(&text, &line);)
    if (tfc_str_starts(line, "node\t")) TFC_RETURN_IF_ERROR(read_node(session, line));
  return NULL;
}

// --- Iterators and other objects -------------------------------------------------------------------------------------
static void write_iterator(void *arg, const struct tfc_iterator_place *place) {
  struct tfc_text *out = arg;
  if (!place->given) return;
  if (place->begun > 1) {
    tfc_text_printf(out, "unsaved\titerator '");
    tfc_state_add(out, place->name);
    tfc_text_printf(out, "' was initialised more than once: what its dataset drew at random before the last time\n");
  }
  tfc_text_printf(out, "iterator\t%llu\t", (unsigned long long)place->given);
  end_line(out, place->container, place->name);
}

struct writing {
  struct tfc_text *out;
  tfc_status status;
};
static void begin_object(struct tfc_text *out, tfc_str container, tfc_str name) {
  tfc_text_printf(out, "object\t");
  tfc_state_add(out, container);
  tfc_text_add(out, TFC_STR("\t"));
  tfc_state_add(out, name);
  tfc_text_add(out, TFC_STR("\t"));
}
static void write_object(void *arg, tfc_str container, tfc_str name, struct tfc_object *object) {
  struct writing *w = arg;
  struct tfc_text *out = w->out;
  const size_t before = out->size;
  if (w->status || !object->type->save) return;
  begin_object(out, container, name);
  tfc_text_printf(out, "%s", object->type->name);
  const size_t head = out->size;
  tfc_status s = object->type->save(object, out);
  if (!s && out->size > head) {
    tfc_text_add(out, TFC_STR("\n"));
    return;
  }
  if (!out->failed) out->size = before, out->data[before] = 0;
  if (!s) return; // it holds nothing
  if (tfc_status_code(s) == TFC_UNIMPLEMENTED) {
    tfc_status_free(s);
    tfc_text_printf(out, "unsaved\twhat the %s '", object->type->name);
    tfc_state_add(out, name);
    tfc_text_printf(out, "' holds\n");
  } else {
    w->status = tfc_status_annotate(s, "saving the %s '%.*s'", object->type->name, TFC_STR_ARG(name));
  }
}

// Objects of the checkpoint before that no step has used since.
static void write_kept(void *arg, tfc_str container, tfc_str name, tfc_str kept) {
  struct tfc_text *out = ((struct writing *)arg)->out;
  begin_object(out, container, name);
  tfc_text_add(out, kept);
  tfc_text_add(out, TFC_STR("\n"));
}

static void write_wait(void *arg, int64_t step) {
  tfc_text_printf(((struct writing *)arg)->out, "waits\t%lld\n", (long long)step);
}
static void write_waits(void *arg, tfc_str container, tfc_str name, struct tfc_object *object) {
  (void)container, (void)name;
  if (object->type->waits) object->type->waits(object, write_wait, arg);
}

tfc_status tfc_resources_write_state(struct tfc_resources *resources, struct tfc_text *out) {
  struct writing w = {.out = out};
  tfc_iterators_each(resources, write_iterator, out);
  tfc_resources_each(resources, write_object, &w);
  tfc_resources_each_kept(resources, write_kept, &w);
  tfc_resources_each(resources, write_waits, &w);
  return w.status ? w.status : text_status(out);
}

static tfc_status read_iterator(struct tfc_resources *resources, tfc_str line) {
  tfc_str rest = line;
  tfc_status s = NULL;
  struct tfc_text container = {0}, name = {0};
  int64_t given = 0;
  tfc_state_word(&rest);
  tfc_status number = tfc_parse_i64(tfc_state_word(&rest), &given);
  TFC_TRY(s, read_end(rest, &container, &name));
  if (number || given < 0 || !name.size)
    s = wrong(line);
  else
    s = tfc_iterators_go_to(resources, (tfc_str){container.data, container.size}, (tfc_str){name.data, name.size},
                            (uint64_t)given);
out:
  tfc_status_free(number);
  tfc_text_deinit(&container);
  tfc_text_deinit(&name);
  return s;
}

static tfc_status read_object(struct tfc_resources *resources, tfc_str line) {
  tfc_str rest = line;
  tfc_status s = NULL;
  struct tfc_text container = {0}, name = {0};
  tfc_state_word(&rest);
  tfc_state_read(tfc_state_word(&rest), &container);
  tfc_state_read(tfc_state_word(&rest), &name);
  if (container.failed || name.failed)
    s = tfc_status_no_memory(what);
  else if (!name.size || !rest.size)
    s = wrong(line);
  else
    s = tfc_resources_load(resources, (tfc_str){container.data, container.size}, (tfc_str){name.data, name.size}, rest);
  tfc_text_deinit(&container);
  tfc_text_deinit(&name);
  return s;
}

tfc_status tfc_resources_read_state(struct tfc_resources *resources, tfc_str text) {
  for (tfc_str line; tfc_line_next(&text, &line);) {
    if (tfc_str_starts(line, "iterator\t")) TFC_RETURN_IF_ERROR(read_iterator(resources, line));
    if (tfc_str_starts(line, "object\t")) TFC_RETURN_IF_ERROR(read_object(resources, line));
  }
  return NULL;
}
