// The variables of a session: finds them by name, moves them between devices, saves and restores them.
#include <stdlib.h>

#include "runtime/exec/session_internal.h"
#include "runtime/exec/variables.h"
#include "runtime/ops/data_iterator.h"

struct declaration {
  tfc_str name;
  tfc_dtype dtype;
  struct tfc_shape shape;
};

static tfc_status make(void *arg, struct tfc_object **out) {
  const struct declaration *d = arg;
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_variable_create(d->name, d->dtype, &d->shape, &v));
  *out = &v->object;
  return NULL;
}

tfc_status tfc_session_variable(struct tfc_session *session, const struct tfc_graph *graph, uint32_t node,
                                struct tfc_variable **out) {
  const struct tfc_node *n = &graph->nodes[node];
  struct declaration d = {.name = tfc_node_attr_string(graph, n, "shared_name", "")};
  if (!d.name.size) d.name = n->name;
  d.dtype = tfc_node_attr_type(graph, n, "dtype", TFC_DTYPE_NONE);
  const struct tfc_attr *shape = tfc_node_attr(graph, n, "shape");
  d.shape = shape && shape->kind == TFC_ATTR_SHAPE ? *shape->shape : TFC_SHAPE_UNKNOWN;
  if (tfc_node_role(n) == TFC_ROLE_OLD_VARIABLE && d.shape.rank == 0) d.shape = TFC_SHAPE_UNKNOWN;
  if (d.dtype == TFC_DTYPE_NONE)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s' (%.*s) has no dtype", TFC_STR_ARG(n->name),
                           TFC_STR_ARG(n->op));
  struct tfc_object *object = NULL;
  TFC_RETURN_IF_ERROR(tfc_resources_find_or_create(session->resources, tfc_node_attr_string(graph, n, "container", ""),
                                                   d.name, &tfc_variable_type, make, &d, &object));
  struct tfc_variable *v = (struct tfc_variable *)(void *)object;
  if (v->dtype != d.dtype) {
    tfc_object_release(object);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "variable '%.*s' has type %s, node '%.*s' wants %s",
                           TFC_STR_ARG(v->name), tfc_dtype_name(v->dtype), TFC_STR_ARG(n->name),
                           tfc_dtype_name(d.dtype));
  }
  bool known = false, kept = true;
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->variables.count && !known; i++) known = session->variables.data[i] == v;
  if (!known) kept = tfc_array_push(&session->variables, v);
  pthread_mutex_unlock(&session->lock);
  if (known || !kept) tfc_object_release(object);
  if (!kept) return tfc_status_no_memory("variables");
  *out = v;
  return NULL;
}

// Returns the device whose memory holds a variable's value; NULL: the host's memory does.
static struct tfc_device *memory_of(const struct tfc_session *session, tfc_dtype dtype, uint32_t device) {
  struct tfc_device *d = session->devices[device];
  return tfc_dtype_is_plain(dtype) && !tfc_variable_beside(d, dtype) ? d : NULL;
}

static tfc_status copy_value(const struct tfc_tensor *source, struct tfc_device *from, struct tfc_device *to,
                             struct tfc_tensor *out) {
  struct tfc_tensor made = {0};
  struct tfc_copy copy = {.source_device = from, .target_device = to, .source = source, .target = &made};
  struct tfc_step step = {0};
  struct tfc_device *d = to ? to : from;
  if (!d) return tfc_tensor_clone(source, out);
  TFC_RETURN_IF_ERROR(d->driver->copy(d, &copy, &step, NULL, 0, NULL, 0));
  TFC_RETURN_IF_ERROR(d->driver->synchronize(d));
  if (step.failed) return step.status;
  *out = made;
  return NULL;
}

tfc_status tfc_session_move_variable(struct tfc_session *session, struct tfc_variable *v, uint16_t device) {
  if (!v->initialized || !tfc_dtype_is_plain(v->dtype)) {
    v->device = device;
    return NULL;
  }
  struct tfc_tensor moved = {0};
  tfc_status s =
      copy_value(&v->value, memory_of(session, v->dtype, v->device), memory_of(session, v->dtype, device), &moved);
  if (s)
    return tfc_status_annotate(s, "moving variable '%.*s' to %s", TFC_STR_ARG(v->name),
                               session->devices[device]->info.name);
  tfc_tensor_release(&v->value);
  v->value = moved;
  v->device = device;
  return NULL;
}

uint64_t tfc_session_variable_bytes(const struct tfc_session *session, uint16_t device) {
  uint64_t total = 0;
  for (size_t i = 0; i < session->variables.count; i++)
    if (session->variables.data[i]->device == device &&
        !tfc_variable_beside(session->devices[device], session->variables.data[i]->dtype))
      total += session->variables.data[i]->value.size;
  return total;
}

// --- By name -----------------------------------------------------------------------------------------------------
static tfc_status find(struct tfc_session *session, tfc_str name, struct tfc_variable **out) {
  for (size_t i = 0; i < session->variables.count; i++)
    if (tfc_str_equal(session->variables.data[i]->name, name)) {
      *out = session->variables.data[i];
      return NULL;
    }
  // it was not used so far: finds the node and creates the variable
  for (uint32_t i = 0; i < session->graph->node_count; i++) {
    const struct tfc_node *n = &session->graph->nodes[i];
    if (!n->def || !(n->def->flags & TFC_OP_VARIABLE)) continue;
    tfc_str shared = tfc_node_attr_string(session->graph, n, "shared_name", "");
    if (tfc_str_equal(shared.size ? shared : n->name, name))
      return tfc_session_variable(session, session->graph, i, out);
  }
  return tfc_status_make(TFC_NOT_FOUND, "there is no variable '%.*s'", TFC_STR_ARG(name));
}

static tfc_status read_value(struct tfc_session *session, const struct tfc_variable *v, struct tfc_tensor *out) {
  struct tfc_device *d = memory_of(session, v->dtype, v->device);
  if (!d || d->info.address_space == 0) return tfc_tensor_clone(&v->value, out);
  struct tfc_tensor t = {0};
  TFC_RETURN_IF_ERROR(tfc_tensor_create(v->dtype, &v->value.shape, &t));
  tfc_status s = d->driver->read(d, &v->value, t.data);
  if (s) {
    tfc_tensor_release(&t);
    return s;
  }
  *out = t;
  return NULL;
}

static tfc_status write_value(struct tfc_session *session, struct tfc_variable *v, const struct tfc_tensor *value) {
  struct tfc_device *d = memory_of(session, v->dtype, v->device);
  struct tfc_tensor made = {0};
  const bool lent = v->value.buffer && atomic_load_explicit(&v->value.buffer->lent, memory_order_acquire);
  if (d && v->value.data && v->value.size == value->size && !lent) {
    v->value.shape = value->shape;
    v->initialized = true;
    tfc_buffer_written(v->value.buffer);
    return d->driver->write(d, value->data, &v->value);
  } else {
    TFC_RETURN_IF_ERROR(copy_value(value, NULL, d, &made));
  }
  tfc_tensor_release(&v->value);
  v->value = made;
  v->initialized = true;
  return NULL;
}

tfc_status tfc_session_get_variable(struct tfc_session *session, tfc_str name, struct tfc_tensor *out) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(find(session, name, &v));
  pthread_mutex_lock(&session->run_lock);
  tfc_status s = tfc_variable_check(v);
  if (!s) s = read_value(session, v, out);
  pthread_mutex_unlock(&session->run_lock);
  return s;
}

tfc_status tfc_session_set_variable(struct tfc_session *session, tfc_str name, const struct tfc_tensor *value) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(find(session, name, &v));
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  if (v->dtype != value->dtype)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "variable '%.*s' has type %s, the value %s", TFC_STR_ARG(v->name),
                           tfc_dtype_name(v->dtype), tfc_dtype_name(value->dtype));
  if (!tfc_shape_compatible(&v->shape, &value->shape))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "variable '%.*s' has shape %s, the value %s", TFC_STR_ARG(v->name),
                           tfc_shape_show(&v->shape, a), tfc_shape_show(&value->shape, b));
  pthread_mutex_lock(&session->run_lock);
  tfc_status s = write_value(session, v, value);
  pthread_mutex_unlock(&session->run_lock);
  return s;
}

// --- Snapshots ---------------------------------------------------------------------------------------------------
struct saved_variable {
  struct tfc_variable *variable; // one reference
  bool initialized;
  struct tfc_tensor value; // host
};
struct saved_state { // the state of random generators and similar nodes, by node
  const struct tfc_graph *graph;
  uint64_t states;
  uint32_t node;
  void *bytes;
};
struct tfc_snapshot {
  TFC_ARRAY(struct saved_variable) variables;
  TFC_ARRAY(struct saved_state) states;
};

void tfc_snapshot_free(struct tfc_snapshot *snapshot) {
  if (!snapshot) return;
  for (size_t i = 0; i < snapshot->variables.count; i++) {
    tfc_tensor_release(&snapshot->variables.data[i].value);
    tfc_object_release(&snapshot->variables.data[i].variable->object);
  }
  for (size_t i = 0; i < snapshot->states.count; i++) free(snapshot->states.data[i].bytes);
  tfc_array_free(&snapshot->variables);
  tfc_array_free(&snapshot->states);
  free(snapshot);
}

static tfc_status save_states(const struct tfc_session_graph *g, struct tfc_snapshot *out) {
  for (uint32_t n = 0; n < g->graph->node_count; n++) {
    if (!g->node_states[n]) continue;
    size_t size = g->graph->nodes[n].def->node_state;
    struct saved_state s = {g->graph, g->states, n, malloc(size)};
    if (!s.bytes || !tfc_array_push(&out->states, s)) {
      free(s.bytes);
      return tfc_status_no_memory("a snapshot");
    }
    memcpy(s.bytes, g->node_states[n], size);
  }
  return NULL;
}

tfc_status tfc_session_snapshot(struct tfc_session *session, struct tfc_snapshot **out) {
  tfc_status s = NULL;
  struct tfc_snapshot *snapshot = calloc(1, sizeof *snapshot);
  if (!snapshot) return tfc_status_no_memory("a snapshot");
  pthread_mutex_lock(&session->run_lock);
  for (size_t i = 0; i < session->variables.count; i++) {
    struct saved_variable saved = {session->variables.data[i], session->variables.data[i]->initialized, {0}};
    if (saved.initialized) TFC_TRY(s, read_value(session, saved.variable, &saved.value));
    if (!tfc_array_push(&snapshot->variables, saved)) {
      tfc_tensor_release(&saved.value);
      TFC_TRY(s, tfc_status_no_memory("a snapshot"));
    }
    tfc_object_retain(&saved.variable->object);
  }
  for (size_t i = 0; i < session->graphs.count; i++) TFC_TRY(s, save_states(&session->graphs.data[i], snapshot));
  *out = snapshot, snapshot = NULL;
out:
  pthread_mutex_unlock(&session->run_lock);
  tfc_snapshot_free(snapshot);
  return s;
}

// Restores a snapshot; also restarts iterators over datasets.
tfc_status tfc_session_restore(struct tfc_session *session, const struct tfc_snapshot *snapshot) {
  tfc_status s = NULL;
  pthread_mutex_lock(&session->run_lock);
  // Variables that were created after the snapshot lose their values.
  for (size_t i = 0; i < session->variables.count; i++) {
    bool known = false;
    for (size_t k = 0; k < snapshot->variables.count && !known; k++)
      known = snapshot->variables.data[k].variable == session->variables.data[i];
    if (!known) session->variables.data[i]->initialized = false;
  }
  for (size_t i = 0; i < snapshot->variables.count; i++) {
    const struct saved_variable *saved = &snapshot->variables.data[i];
    if (saved->initialized)
      TFC_TRY(s, write_value(session, saved->variable, &saved->value));
    else
      saved->variable->initialized = false;
  }
  tfc_iterators_restart(session->resources);
  for (size_t i = 0; i < session->graphs.count; i++) {
    struct tfc_session_graph *g = &session->graphs.data[i];
    for (uint32_t n = 0; n < g->graph->node_count; n++)
      if (g->node_states[n]) memset(g->node_states[n], 0, g->graph->nodes[n].def->node_state);
    for (size_t k = 0; k < snapshot->states.count; k++) {
      const struct saved_state *state = &snapshot->states.data[k];
      if (state->graph == g->graph && state->states == g->states)
        memcpy(g->node_states[state->node], state->bytes, g->graph->nodes[state->node].def->node_state);
    }
  }
out:
  pthread_mutex_unlock(&session->run_lock);
  return s;
}
