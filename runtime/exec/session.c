// A session's state: variables, generators, arenas.
#include <stdlib.h>

#include "runtime/exec/plan_internal.h"

tfc_status tfc_session_create(const struct tfc_graph *graph, const struct tfc_session_options *options,
                              struct tfc_session **out) {
  tfc_status s = NULL;
  struct tfc_session *session = calloc(1, sizeof *session);
  if (!session) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  pthread_mutex_init(&session->run_lock, NULL);
  pthread_mutex_init(&session->lock, NULL);
  tfc_graph_retain(graph);
  session->graph = graph;
  session->options = *options;
  session->devices = options->devices->devices;
  session->device_count = options->devices->count;
  if (session->device_count == 0) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "a session needs at least one device");
  for (uint32_t i = 0; i < session->device_count; i++) session->devices[i]->index = (uint16_t)i;
  session->arenas = calloc(session->device_count + 1u, sizeof *session->arenas);
  if (!session->arenas) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_resources_create(&session->resources));
  *out = session, session = NULL;
out:
  tfc_session_free(session);
  return s;
}

void tfc_session_free(struct tfc_session *session) {
  if (!session) return;
  for (size_t i = 0; i < session->cache.count; i++) {
    tfc_plan_free(session->cache.data[i].plan);
    free(session->cache.data[i].key);
  }
  tfc_array_free(&session->cache);
  for (size_t i = 0; i < session->function_plans.count; i++) tfc_plan_free(session->function_plans.data[i]);
  tfc_array_free(&session->function_plans);
  for (size_t i = 0; i < session->variables.count; i++) tfc_object_release(&session->variables.data[i]->object);
  tfc_array_free(&session->variables);
  tfc_resources_free(session->resources);
  for (size_t i = 0; i < session->graphs.count; i++) {
    struct tfc_session_graph *g = &session->graphs.data[i];
    for (uint32_t n = 0; g->node_states && n < g->graph->node_count; n++) free(g->node_states[n]);
    free(g->node_states);
  }
  tfc_array_free(&session->graphs);
  for (uint32_t i = 0; session->arenas && i <= session->device_count; i++)
    tfc_buffer_release(session->arenas[i].buffer);
  free(session->arenas);
  tfc_graph_release(session->graph);
  pthread_mutex_destroy(&session->run_lock);
  pthread_mutex_destroy(&session->lock);
  free(session);
}

// --- Arenas --------------------------------------------------------------------------------------------------------
tfc_status tfc_session_fit_arena(struct tfc_session *session, uint32_t location, uint64_t size, bool exact) {
  struct tfc_session_arena *a = &session->arenas[location];
  if (a->size >= size && (!exact || a->size == size)) return NULL;
  tfc_buffer_release(a->buffer);
  a->buffer = NULL;
  a->size = 0;
  a->generation++;
  if (size == 0) return NULL;
  struct tfc_device *device = location < session->device_count ? session->devices[location] : NULL;
  tfc_status s = device ? device->driver->allocate(device, size, &a->buffer) : tfc_buffer_create_host(size, &a->buffer);
  if (s) return tfc_status_annotate(s, "tensors of a step on %s", device ? device->info.name : "the host");
  a->size = size;
  return NULL;
}

// --- Variables -----------------------------------------------------------------------------------------------------
struct wanted {
  tfc_str name;
  tfc_dtype dtype;
  struct tfc_shape shape;
};

static tfc_status make_variable(void *arg, struct tfc_object **out) {
  const struct wanted *w = arg;
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_variable_create(w->name, w->dtype, &w->shape, &v));
  *out = &v->object;
  return NULL;
}

tfc_status tfc_session_variable(struct tfc_session *session, const struct tfc_graph *graph, uint32_t node,
                                struct tfc_variable **out) {
  tfc_status s = NULL;
  const struct tfc_node *n = &graph->nodes[node];
  tfc_str container = tfc_node_attr_string(graph, n, "container", "");
  tfc_str name = tfc_node_attr_string(graph, n, "shared_name", "");
  if (name.size == 0) name = tfc_node_attr_string(graph, n, "var_name", "");
  if (name.size == 0) name = n->name;
  const struct tfc_attr *shape = tfc_node_attr(graph, n, "shape");
  struct wanted wanted = {name, tfc_node_attr_type(graph, n, "dtype", TFC_FLOAT), TFC_SHAPE_UNKNOWN};
  if (shape && shape->kind == TFC_ATTR_SHAPE) wanted.shape = *shape->shape;
  struct tfc_object *object = NULL;
  TFC_TRY(s, tfc_resources_find_or_create(session->resources, container, name, &tfc_variable_type, make_variable,
                                          &wanted, &object));
  struct tfc_variable *v = (struct tfc_variable *)object;
  pthread_mutex_lock(&session->lock);
  bool listed = false;
  for (size_t i = 0; i < session->variables.count && !listed; i++) listed = session->variables.data[i] == v;
  if (!listed && tfc_array_push(&session->variables, v))
    object = NULL; // the list takes the reference
  else if (!listed)
    s = tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  pthread_mutex_unlock(&session->lock);
  *out = v;
out:
  tfc_object_release(object);
  return s;
}

tfc_status tfc_session_node_state(struct tfc_session *session, const struct tfc_graph *graph, uint32_t node,
                                  void **out) {
  tfc_status s = NULL;
  const struct tfc_op_def *def = graph->nodes[node].def;
  *out = NULL;
  if (!def || !def->node_state) return NULL;
  pthread_mutex_lock(&session->lock);
  struct tfc_session_graph *g = NULL;
  for (size_t i = 0; i < session->graphs.count && !g; i++)
    if (session->graphs.data[i].graph == graph) g = &session->graphs.data[i];
  if (!g) {
    struct tfc_session_graph made = {graph, calloc(graph->node_count + 1u, sizeof *made.node_states)};
    if (!made.node_states || !tfc_array_push(&session->graphs, made)) {
      free(made.node_states);
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    }
    g = &session->graphs.data[session->graphs.count - 1];
  }
  if (!g->node_states[node]) g->node_states[node] = calloc(1, def->node_state);
  if (!g->node_states[node]) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  *out = g->node_states[node];
out:
  pthread_mutex_unlock(&session->lock);
  return s;
}

// The variable's value as a host tensor of its own.
static tfc_status read_value(struct tfc_session *session, const struct tfc_variable *v, struct tfc_tensor *out) {
  struct tfc_device *device = session->devices[v->device];
  if (!tfc_dtype_is_plain(v->dtype) || device->info.address_space == 0) return tfc_tensor_clone(&v->value, out);
  struct tfc_tensor copy = {0};
  TFC_RETURN_IF_ERROR(tfc_tensor_create(v->value.dtype, &v->value.shape, &copy));
  tfc_status s = device->driver->read(device, &v->value, copy.data);
  if (s)
    tfc_tensor_release(&copy);
  else
    *out = copy;
  return s;
}

// Puts a host tensor into the variable on its device, into the memory that it has where that fits.
static tfc_status write_value(struct tfc_session *session, struct tfc_variable *v, const struct tfc_tensor *value) {
  struct tfc_device *device = session->devices[v->device];
  if (!tfc_dtype_is_plain(v->dtype)) {
    struct tfc_tensor copy = {0};
    TFC_RETURN_IF_ERROR(tfc_tensor_clone(value, &copy));
    tfc_tensor_release(&v->value);
    v->value = copy;
    v->initialized = true;
    return NULL;
  }
  bool fits = v->value.buffer && v->value.size == value->size && v->value.dtype == value->dtype &&
              atomic_load(&v->value.buffer->references) == 1;
  if (!fits) {
    struct tfc_buffer *buffer = NULL;
    tfc_tensor_release(&v->value);
    v->initialized = false;
    tfc_status s = device->driver->allocate(device, value->size, &buffer);
    if (s) return tfc_status_annotate(s, "variable '%.*s'", TFC_STR_ARG(v->name));
    v->value = (struct tfc_tensor){value->dtype, value->shape, buffer->data, value->size, buffer};
  }
  v->value.shape = value->shape;
  if (device->info.address_space == 0)
    memcpy(v->value.data, value->data, value->size);
  else
    TFC_RETURN_IF_ERROR(device->driver->write(device, value->data, &v->value));
  v->initialized = true;
  return NULL;
}

tfc_status tfc_session_move_variable(struct tfc_session *session, struct tfc_variable *v, uint16_t device) {
  if (v->device == device) return NULL;
  if (!v->initialized || !tfc_dtype_is_plain(v->dtype)) {
    v->device = device;
    return NULL;
  }
  struct tfc_tensor value = {0};
  TFC_RETURN_IF_ERROR(read_value(session, v, &value));
  tfc_tensor_release(&v->value);
  v->device = device;
  tfc_status s = write_value(session, v, &value);
  tfc_tensor_release(&value);
  return s;
}

static struct tfc_variable *find_variable(struct tfc_session *session, tfc_str name) {
  struct tfc_variable *found = NULL;
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->variables.count && !found; i++)
    if (tfc_str_equal(session->variables.data[i]->name, name)) found = session->variables.data[i];
  pthread_mutex_unlock(&session->lock);
  return found;
}

// The variable of that name; made when the graph has a node for it that no plan has used yet.
static tfc_status need_variable(struct tfc_session *session, tfc_str name, struct tfc_variable **out) {
  *out = find_variable(session, name);
  if (*out) return NULL;
  for (uint32_t i = 0; i < session->graph->node_count; i++) {
    const struct tfc_node *n = &session->graph->nodes[i];
    if (!n->def || !(n->def->flags & TFC_OP_VARIABLE)) continue;
    tfc_str shared = tfc_node_attr_string(session->graph, n, "shared_name", "");
    if (tfc_str_equal(shared.size ? shared : n->name, name) || tfc_str_equal(n->name, name))
      return tfc_session_variable(session, session->graph, i, out);
  }
  return tfc_status_make(TFC_NOT_FOUND, "the graph has no variable '%.*s'", TFC_STR_ARG(name));
}

tfc_status tfc_session_get_variable(struct tfc_session *session, tfc_str name, struct tfc_tensor *out) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(need_variable(session, name, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  return read_value(session, v, out);
}

tfc_status tfc_session_set_variable(struct tfc_session *session, tfc_str name, const struct tfc_tensor *value) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(need_variable(session, name, &v));
  if (v->dtype != value->dtype || !tfc_shape_compatible(&v->shape, &value->shape)) {
    char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
    return tfc_status_make(TFC_INVALID_ARGUMENT, "variable '%.*s' is %s%s, the value %s%s", TFC_STR_ARG(v->name),
                           tfc_dtype_name(v->dtype), tfc_shape_show(&v->shape, a), tfc_dtype_name(value->dtype),
                           tfc_shape_show(&value->shape, b));
  }
  return write_value(session, v, value);
}

uint64_t tfc_session_variable_bytes(const struct tfc_session *session, uint16_t device) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < session->variables.count; i++) {
    const struct tfc_variable *v = session->variables.data[i];
    if (v->device == device && v->initialized) bytes += v->value.size;
  }
  return bytes;
}

// --- Snapshots -----------------------------------------------------------------------------------------------------
struct saved_variable {
  struct tfc_variable *variable;
  struct tfc_tensor value;
  bool initialized;
};
struct saved_state {
  void *live, *copy;
  size_t size;
};
struct tfc_snapshot {
  TFC_ARRAY(struct saved_variable) variables;
  TFC_ARRAY(struct saved_state) states;
};

tfc_status tfc_session_snapshot(struct tfc_session *session, struct tfc_snapshot **out) {
  tfc_status s = NULL;
  struct tfc_snapshot *snapshot = calloc(1, sizeof *snapshot);
  if (!snapshot) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (size_t i = 0; i < session->variables.count; i++) {
    struct saved_variable saved = {.variable = session->variables.data[i]};
    saved.initialized = saved.variable->initialized;
    if (saved.initialized) TFC_TRY(s, read_value(session, saved.variable, &saved.value));
    if (!tfc_array_push(&snapshot->variables, saved)) {
      tfc_tensor_release(&saved.value);
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    }
    tfc_object_retain(&saved.variable->object);
  }
  for (size_t i = 0; i < session->graphs.count; i++) {
    const struct tfc_session_graph *g = &session->graphs.data[i];
    for (uint32_t n = 0; n < g->graph->node_count; n++) {
      if (!g->node_states[n]) continue;
      struct saved_state saved = {g->node_states[n], malloc(g->graph->nodes[n].def->node_state),
                                  g->graph->nodes[n].def->node_state};
      if (!saved.copy || !tfc_array_push(&snapshot->states, saved)) {
        free(saved.copy);
        TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
      }
      memcpy(saved.copy, saved.live, saved.size);
    }
  }
  *out = snapshot, snapshot = NULL;
out:
  tfc_snapshot_free(snapshot);
  return s;
}

tfc_status tfc_session_restore(struct tfc_session *session, const struct tfc_snapshot *snapshot) {
  for (size_t i = 0; i < snapshot->variables.count; i++) {
    const struct saved_variable *saved = &snapshot->variables.data[i];
    if (saved->initialized)
      TFC_RETURN_IF_ERROR(write_value(session, saved->variable, &saved->value));
    else
      saved->variable->initialized = false;
  }
  for (size_t i = 0; i < snapshot->states.count; i++)
    memcpy(snapshot->states.data[i].live, snapshot->states.data[i].copy, snapshot->states.data[i].size);
  return NULL;
}

void tfc_snapshot_free(struct tfc_snapshot *snapshot) {
  if (!snapshot) return;
  for (size_t i = 0; i < snapshot->variables.count; i++) {
    tfc_tensor_release(&snapshot->variables.data[i].value);
    tfc_object_release(&snapshot->variables.data[i].variable->object);
  }
  for (size_t i = 0; i < snapshot->states.count; i++) free(snapshot->states.data[i].copy);
  tfc_array_free(&snapshot->variables);
  tfc_array_free(&snapshot->states);
  free(snapshot);
}
