// Searches over the graph find which values depend on variables or feeds, which updates are real ones, and which nodes
// only saving needs. From these follow the nodes without consumers that make up the step, and the assignments that
// initialise variables.
#include "runtime/pass/step_internal.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/graph/wire.h"
#include "runtime/pass/queue_runners.h"

struct work {
  const struct tfc_graph *g;
  const struct tfc_step_request *request;
  struct tfc_step_spec *step;
  struct tfc_arena scratch;
  uint32_t *stack;
  uint8_t *effect; // [node] a tfc_op_effect
  bool *outside;   // [node] its value depends on a placeholder, a queue or an iterator
  bool *stateful;  // [node] its value depends on a variable's value
  bool *restored;  // [node] its value comes from a checkpoint
  bool *real;      // [node] an update that is neither initial nor restored, or depends on one
  bool *saves;     // [node] writes files, or depends on a node that does
  bool *initial;   // [node] an assignment of a variable's initial value
  bool *needed;    // [node] the step runs it
  bool *beside;    // [node] only queue runners run it
  struct tfc_queue_runners runners;
  struct tfc_text queues;  // names of the queues that the queue runners fill for this step
  struct tfc_shapes unfed; // shapes that follow from the graph alone, for queues that nothing fills
  tfc_str source, init_source;
  int64_t batch; // size of unknown leading dimensions
  uint32_t *targets, target_count, target_capacity;
};
static void work_deinit(struct work *w) {
  tfc_arena_deinit(&w->scratch);
  tfc_queue_runners_deinit(&w->runners);
  tfc_text_deinit(&w->queues);
  tfc_shapes_deinit(&w->unfed);
}

// Marks every node that is reachable from the marked ones, by data edges and, if `control`, by control edges.
static void flood(struct work *w, bool *mark, bool control) {
  const struct tfc_graph *g = w->g;
  uint32_t depth = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    if (mark[i]) w->stack[depth++] = i;
  while (depth > 0) {
    uint32_t n = w->stack[--depth];
    for (uint32_t c = g->consumer_begin[n]; c < g->consumer_begin[n + 1]; c++) {
      uint32_t next = g->consumers[c].node;
      if (mark[next] || (!control && g->consumers[c].input == TFC_CONTROL)) continue;
      mark[next] = true;
      w->stack[depth++] = next;
    }
  }
}

// Returns the variable that an update writes: the first input, followed back through nodes that only pass it on.
// TFC_NONE: there is no variable.
static uint32_t updated_variable(const struct tfc_graph *g, const struct tfc_node *n) {
  for (int hop = 0; hop < 8 && n->input_count > 0; hop++) {
    struct tfc_output from = tfc_node_inputs(g, n)[0];
    n = &g->nodes[from.node];
    if (tfc_node_is_variable(n)) return from.node;
    tfc_op_role role = tfc_node_role(n);
    bool passes = role == TFC_ROLE_IDENTITY || role == TFC_ROLE_REF_IDENTITY || role == TFC_ROLE_ASSIGN;
    if (!passes && !(n->def && n->def->flags & TFC_OP_ENTER)) return TFC_NONE;
  }
  return TFC_NONE;
}

static bool is_assign(const struct tfc_node *n) {
  return tfc_node_role(n) == TFC_ROLE_ASSIGN && n->input_count >= 2;
}

// Whether this assignment gives a variable its initial value: the value comes neither from feeds nor from a checkpoint,
// and it reads no variable, unless it is the assignment that TensorFlow made with the variable ("v/Assign").
static bool is_initial(const struct work *w, uint32_t id) {
  const struct tfc_node *n = &w->g->nodes[id];
  if (!is_assign(n)) return false;
  uint32_t value = tfc_node_inputs(w->g, n)[1].node;
  if (w->outside[value] || w->restored[value]) return false;
  if (!w->stateful[value]) return true;
  uint32_t variable = updated_variable(w->g, n);
  if (variable == TFC_NONE) return false;
  tfc_str name = w->g->nodes[variable].name;
  return n->name.size == name.size + 7 && tfc_str_equal(tfc_str_sub(n->name, 0, name.size), name) &&
         tfc_str_is(tfc_str_sub(n->name, name.size, SIZE_MAX), "/Assign");
}

// Finds the nodes that only the threads of queue runners run: these are not part of the step.
static tfc_status find_beside(struct work *w) {
  const struct tfc_graph *g = w->g;
  TFC_RETURN_IF_ERROR(tfc_queue_runners_read(g, &w->runners));
  w->beside = TFC_ARENA_ARRAY(&w->scratch, bool, g->node_count + 1);
  bool *wanted = TFC_ARENA_ARRAY(&w->scratch, bool, w->runners.count + 1);
  if (!w->beside || !wanted) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < w->runners.count; i++)
    if (w->runners.list[i].queue != TFC_NONE) w->beside[w->runners.list[i].queue] = true;
  tfc_queue_runners_need(&w->runners, g, w->beside, wanted, w->stack);
  return NULL;
}

// Adds the nodes that the runners of the step's queues need: variables among them are initialised with the step's own.
static tfc_status need_runners(struct work *w, bool *needed) {
  const struct tfc_graph *g = w->g;
  bool *wanted = TFC_ARENA_ARRAY(&w->scratch, bool, w->runners.count + 1);
  if (!wanted) return tfc_status_no_memory(NULL);
  memcpy(needed, w->needed, g->node_count * sizeof *needed);
  tfc_queue_runners_need(&w->runners, g, needed, wanted, w->stack);
  return NULL;
}

static tfc_status classify(struct work *w) {
  const struct tfc_graph *g = w->g;
  tfc_status s = NULL;
  size_t n = g->node_count;
  w->stack = TFC_ARENA_ARRAY(&w->scratch, uint32_t, n + 1);
  w->effect = TFC_ARENA_ARRAY(&w->scratch, uint8_t, n + 1);
  bool **marks[] = {&w->outside, &w->stateful, &w->restored, &w->real, &w->saves, &w->initial};
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    if (!(*marks[i] = TFC_ARENA_ARRAY(&w->scratch, bool, n + 1))) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (!w->stack || !w->effect) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_node_effects(g, w->effect));
  for (uint32_t i = 0; i < n; i++) {
    const struct tfc_node *node = &g->nodes[i];
    w->outside[i] = tfc_node_is_outside(node);
    w->stateful[i] = tfc_node_is_variable(node);
    w->restored[i] = w->effect[i] == TFC_EFFECT_RESTORE;
    w->saves[i] = w->effect[i] == TFC_EFFECT_SAVE;
  }
  flood(w, w->outside, false);
  flood(w, w->stateful, false);
  flood(w, w->restored, false);
  flood(w, w->saves, true);
  for (uint32_t i = 0; i < n; i++) {
    if (w->effect[i] != TFC_EFFECT_UPDATE) continue;
    const struct tfc_node *node = &g->nodes[i];
    w->initial[i] = is_initial(w, i);
    bool from_checkpoint = node->input_count > 1 && w->restored[tfc_node_inputs(g, node)[1].node];
    w->real[i] = !w->initial[i] && !from_checkpoint;
  }
  flood(w, w->real, true);
  TFC_TRY(s, find_beside(w));
out:
  return s;
}

static tfc_status add_target(struct work *w, uint32_t node) {
  for (uint32_t i = 0; i < w->target_count; i++)
    if (w->targets[i] == node) return NULL;
  if (w->target_count == w->target_capacity) {
    uint32_t capacity = w->target_capacity ? 2 * w->target_capacity : 16;
    uint32_t *grown = TFC_ARENA_ARRAY(&w->step->arena, uint32_t, capacity);
    if (!grown) return tfc_status_no_memory(NULL);
    for (uint32_t i = 0; i < w->target_count; i++) grown[i] = w->targets[i];
    w->targets = grown, w->target_capacity = capacity;
  }
  w->targets[w->target_count++] = node;
  return NULL;
}

static tfc_status find_node(const struct tfc_graph *g, tfc_str name, const char *what, uint32_t *out) {
  return tfc_status_annotate(tfc_graph_parse_node(g, name, out), "%s '%.*s'", what, TFC_STR_ARG(name));
}

static const struct tfc_collection *collection(const struct tfc_graph *g, const char *name) {
  for (uint32_t i = 0; i < g->collection_count; i++)
    if (tfc_str_is(g->collections[i].name, name) && g->collections[i].count > 0) return &g->collections[i];
  return NULL;
}

// Field 1 of a VariableDef is the name of the variable's first output.
bool tfc_step_is_local_variable(const struct tfc_graph *g, tfc_str name) {
  const struct tfc_collection *c = collection(g, "local_variables");
  for (uint32_t k = 0; c && k < c->count; k++) {
    struct tfc_wire def = tfc_wire_of(c->values[k]);
    struct tfc_field f;
    while (tfc_wire_next(&def, &f))
      if (f.number == 1 && f.type == TFC_WIRE_BYTES && f.bytes.size == name.size + 2 &&
          !memcmp(f.bytes.data, name.data, name.size) && !memcmp(f.bytes.data + name.size, ":0", 2))
        return true;
  }
  return false;
}

static tfc_str shared_name(const struct tfc_graph *g, uint32_t variable) {
  const struct tfc_node *n = &g->nodes[variable];
  const tfc_str shared = tfc_node_attr_string(g, n, "shared_name", "");
  return shared.size ? shared : n->name;
}

static const struct tfc_signature *serving_signature(const struct tfc_graph *g) {
  const struct tfc_signature *found = NULL;
  for (uint32_t i = 0; i < g->signature_count; i++) {
    const struct tfc_signature *sig = &g->signatures[i];
    if (tfc_str_is(sig->name, "serving_default") && sig->output_count > 0) return sig;
    if (!found && sig->output_count > 0 && !tfc_str_starts(sig->name, "__saved_model")) found = sig;
  }
  return found;
}

static bool has_consumers(const struct tfc_graph *g, uint32_t n) {
  return g->consumer_begin[n] != g->consumer_begin[n + 1];
}

// Optimizers add reads of the variables that they update; the updates themselves are the targets.
static bool only_reads(const struct tfc_node *n) {
  return tfc_node_role(n) == TFC_ROLE_READ || tfc_node_role(n) == TFC_ROLE_IDENTITY;
}

static tfc_status sinks(struct work *w) {
  const struct tfc_graph *g = w->g;
  tfc_status s = NULL;
  bool *reached = TFC_ARENA_ARRAY(&w->scratch, bool, g->node_count + 1);
  if (!reached) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < g->node_count; i++)
    if (w->real[i] && !w->saves[i] && !w->beside[i] && !has_consumers(g, i) && !only_reads(&g->nodes[i]) &&
        !tfc_step_enqueues_what_is_fed(g, i, w->outside))
      TFC_TRY(s, add_target(w, i));
  // An update is part of the step even if only a save, or a read, depends on it.
  TFC_TRY(s, tfc_prune(g, NULL, 0, NULL, 0, w->targets, w->target_count, reached));
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (w->effect[i] != TFC_EFFECT_UPDATE || !w->real[i] || w->initial[i] || reached[i] || w->saves[i] || w->beside[i])
      continue;
    if (w->restored[i] && is_assign(&g->nodes[i])) continue;
    if (tfc_step_enqueues_what_is_fed(g, i, w->outside)) continue;
    TFC_TRY(s, add_target(w, i));
  }
  w->source = TFC_STR("the nodes without consumers that update variables or queues");
  if (w->target_count > 0) goto out;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (has_consumers(g, i) || w->saves[i] || w->effect[i] != TFC_EFFECT_NONE || tfc_node_is_variable(n)) continue;
    if (w->beside[i] || tfc_node_role(n) == TFC_ROLE_QUEUE_CLOSE) continue;
    bool initialises = tfc_node_role(n) == TFC_ROLE_NOTHING;
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; initialises && k < n->input_count + n->control_count; k++)
      initialises =
          w->effect[in[k].node] != TFC_EFFECT_NONE || tfc_node_role(&g->nodes[in[k].node]) == TFC_ROLE_NOTHING;
    if (initialises) continue; // this node only groups assignments of initial or restored values
    TFC_TRY(s, add_target(w, i));
  }
  w->source = TFC_STR("the nodes without consumers");
  if (w->target_count == 0)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT,
             "the graph has no step: nothing but initialisers and operations that save; name "
             "it with --target or --fetch");
out:
  return s;
}

static tfc_status infer_targets(struct work *w) {
  const struct tfc_graph *g = w->g;
  const struct tfc_step_request *r = w->request;
  struct tfc_step_spec *step = w->step;
  const struct tfc_collection *train = collection(g, "train_op");
  const struct tfc_signature *signature = serving_signature(g);
  tfc_status s = NULL;
  if (r->fetch_count + r->target_count > 0) {
    w->source = TFC_STR("as given");
    step->fetches = TFC_ARENA_ARRAY(&step->arena, struct tfc_output, r->fetch_count + 1);
    if (!step->fetches) TFC_TRY(s, tfc_status_no_memory(NULL));
    for (uint32_t i = 0; i < r->fetch_count; i++) step->fetches[step->fetch_count++] = r->fetches[i];
    for (uint32_t i = 0; i < r->target_count; i++) TFC_TRY(s, add_target(w, r->targets[i]));
  } else if (train) {
    w->source = TFC_STR("the collection 'train_op'");
    for (uint32_t i = 0; i < train->count; i++) {
      uint32_t node;
      TFC_TRY(s, find_node(g, train->values[i], "the collection 'train_op'", &node));
      TFC_TRY(s, add_target(w, node));
    }
  } else if (signature) {
    w->source = tfc_arena_printf(&step->arena, "the signature '%.*s'", TFC_STR_ARG(signature->name));
    step->fetches = TFC_ARENA_ARRAY(&step->arena, struct tfc_output, signature->output_count);
    if (!step->fetches) TFC_TRY(s, tfc_status_no_memory(NULL));
    for (uint32_t i = 0; i < signature->output_count; i++) {
      s = tfc_graph_parse_output(g, signature->output_tensors[i], &step->fetches[step->fetch_count]);
      if (s) {
        s = tfc_status_annotate(s, "output '%.*s' of the signature '%.*s'", TFC_STR_ARG(signature->output_keys[i]),
                                TFC_STR_ARG(signature->name));
        goto out;
      }
      step->fetch_count++;
    }
  } else {
    TFC_TRY(s, sinks(w));
  }
out:
  step->targets = w->targets, step->target_count = w->target_count;
  return s;
}

// Returns the session's iterator that a node restarts, or TFC_NONE.
static uint32_t made_iterator(const struct work *w, uint32_t id) {
  const struct tfc_node *n = &w->g->nodes[id];
  if (tfc_node_role(n) != TFC_ROLE_MAKE_ITERATOR || n->input_count < 2) return TFC_NONE;
  return tfc_node_inputs(w->g, n)[1].node;
}

// --- The initialiser -------------------------------------------------------------------------------------------------

static tfc_status infer_init(struct work *w) {
  const struct tfc_graph *g = w->g;
  const struct tfc_step_request *r = w->request;
  struct tfc_step_spec *step = w->step;
  tfc_status s = NULL;
  uint32_t *inits = TFC_ARENA_ARRAY(&step->arena, uint32_t, (size_t)g->node_count + r->init_count + 1), count = 0;
  bool *covered = TFC_ARENA_ARRAY(&w->scratch, bool, g->node_count + 1);
  bool *done = TFC_ARENA_ARRAY(&w->scratch, bool, g->node_count + 1);
  bool *needed = TFC_ARENA_ARRAY(&w->scratch, bool, g->node_count + 1);
  if (!inits || !covered || !done || !needed) TFC_TRY(s, tfc_status_no_memory(NULL));
  step->inits = inits;
  for (uint32_t i = 0; i < r->init_count && !r->only_local; i++) inits[count++] = r->inits[i];
  w->init_source = TFC_STR("as given");
  if (count > 0 || r->no_init || g->variables_prefix.size > 0) goto out;
  w->init_source = (tfc_str){0};
  static const char *const names[] = {"init_op", "init"};
  for (size_t k = 0; k < 2 && count == 0 && !r->only_local; k++) {
    const struct tfc_collection *c = collection(g, names[k]);
    for (uint32_t i = 0; c && i < c->count; i++)
      TFC_TRY(s, find_node(g, c->values[i], "the initialiser's collection", &inits[count++]));
    if (count > 0) w->init_source = tfc_arena_printf(&step->arena, "the collection '%s'", names[k]);
  }
  for (size_t k = 0; k < 2 && count == 0 && !r->only_local; k++) {
    uint32_t node = tfc_graph_find(g, tfc_str_from(names[k]));
    if (node == TFC_NONE || w->real[node]) continue;
    inits[count++] = node;
    w->init_source = tfc_arena_printf(&step->arena, "the node '%s'", names[k]);
  }
  if (count > 0) TFC_TRY(s, tfc_prune(g, NULL, 0, NULL, 0, inits, count, covered));
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (!covered[i] || !is_assign(&g->nodes[i])) continue;
    uint32_t variable = updated_variable(g, &g->nodes[i]);
    if (variable != TFC_NONE) done[variable] = true;
  }
  uint32_t own = 0;
  TFC_TRY(s, need_runners(w, needed));
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (made_iterator(w, i) != TFC_NONE && (covered[i] || w->needed[i])) done[made_iterator(w, i)] = true;
  }
  for (uint32_t i = 0; i < g->node_count; i++) {
    const uint32_t iterator = made_iterator(w, i);
    bool table =
        w->effect[i] == TFC_EFFECT_TABLE && !covered[i] && g->nodes[i].input_count > 0 &&
        (iterator != TFC_NONE ? needed[iterator] && !done[iterator] : needed[tfc_node_inputs(g, &g->nodes[i])[0].node]);
    // If several datasets are for one iterator, the first one is used.
    if (table && iterator != TFC_NONE) done[iterator] = true;
    if (!table) {
      if (!w->initial[i] || covered[i]) continue;
      uint32_t variable = updated_variable(g, &g->nodes[i]);
      if (variable == TFC_NONE || done[variable] || !needed[variable]) continue;
      if (r->only_local && !tfc_step_is_local_variable(g, shared_name(g, variable))) continue;
      done[variable] = true;
    }
    inits[count++] = i;
    own++;
  }
  if (own > 0)
    w->init_source = w->init_source.size ? tfc_arena_printf(&step->arena, "%.*s, and %u variables' own initial values",
                                                            TFC_STR_ARG(w->init_source), own)
                     : r->only_local     ? TFC_STR("what belongs to this session alone")
                                         : TFC_STR("every variable's own initial value");
out:
  step->init_count = count;
  return s;
}

// --- Feeds -----------------------------------------------------------------------------------------------------------

struct tfc_shape tfc_step_placeholder_shape(const struct tfc_graph *g, const struct tfc_node *n) {
  const struct tfc_attr *shape = tfc_node_attr(g, n, "shape");
  struct tfc_shape known = shape && shape->kind == TFC_ATTR_SHAPE ? *shape->shape : TFC_SHAPE_UNKNOWN;
  // Old versions of TensorFlow wrote the shape of a scalar if they did not know the shape.
  if (known.rank == 0 && g->producer_version > 0 && g->producer_version < 24) known = TFC_SHAPE_UNKNOWN;
  for (int32_t d = 0; d < known.rank; d++)
    if (!tfc_dim_known(known.dims[d])) known.dims[d] = TFC_DIM_UNKNOWN;
  return known;
}

static tfc_status make_feed(struct work *w, struct tfc_output output, const struct tfc_step_feed_request *given,
                            struct tfc_step_feed *out) {
  const struct tfc_graph *g = w->g;
  const struct tfc_node *n = &g->nodes[output.node];
  struct tfc_step_feed feed = {.output = output, .low = 0, .high = 1, .given = given && given->has_shape};
  tfc_status s = NULL;
  struct tfc_shape known = TFC_SHAPE_UNKNOWN;
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  feed.dtype = tfc_dtype_base(tfc_output_dtype(g, output));
  feed.name = tfc_arena_printf(&w->step->arena, "%.*s:%d", TFC_STR_ARG(n->name), output.index);
  const bool taken = !feed.given && tfc_step_dequeues(n);
  const char *what = taken ? "what nothing in the graph puts into a queue," : "placeholder";
  const tfc_str name = taken ? feed.name : n->name;
  if (tfc_node_is_placeholder(n)) known = tfc_step_placeholder_shape(g, n);
  if (taken) known = tfc_step_dequeued_shape(g, &w->unfed, output);
  if (feed.given) {
    feed.shape = given->shape;
    if (given->dtype != feed.dtype)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "feed '%.*s': the graph wants %s, not %s", TFC_STR_ARG(feed.name),
               tfc_dtype_name(feed.dtype), tfc_dtype_name(given->dtype));
    if (!tfc_shape_compatible(&known, &feed.shape))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "feed '%.*s': the graph wants shape %s, not %s", TFC_STR_ARG(feed.name),
               tfc_shape_show(&known, a), tfc_shape_show(&feed.shape, b));
    if (!tfc_shape_is_static(&feed.shape))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "feed '%.*s' needs a whole shape, not %s", TFC_STR_ARG(feed.name),
               tfc_shape_show(&feed.shape, a));
  } else {
    feed.shape = known;
    if (known.rank < 0)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s '%.*s' has no shape; give one: --feed '%.*s=%s[DIMENSIONS]' or a file",
               what, TFC_STR_ARG(name), TFC_STR_ARG(name), tfc_dtype_name(feed.dtype));
    for (int32_t d = 0; d < feed.shape.rank; d++)
      if (!tfc_dim_known(feed.shape.dims[d])) feed.shape.dims[d] = d == 0 ? w->batch : 16;
    if (!tfc_dtype_is_floating(feed.dtype) && !tfc_dtype_is_integer(feed.dtype) && !tfc_dtype_is_complex(feed.dtype) &&
        feed.dtype != TFC_BOOL)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT,
               "%s '%.*s' is of type %s, for which values cannot be made up; give a file: --feed '%.*s=FILE.npy'", what,
               TFC_STR_ARG(name), tfc_dtype_name(feed.dtype), TFC_STR_ARG(name));
  }
  *out = feed;
out:
  return s;
}

// Checks that tfc knows all operations of the step. This is done before missing feeds are looked for, so an unknown
// operation is reported first.
static tfc_status check_known(const struct work *w) {
  const struct tfc_graph *g = w->g;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    bool fed = false;
    if (!w->needed[i] || n->def || n->function != TFC_NONE || tfc_graph_function(g, n->op)) continue;
    for (uint32_t k = 0; k < w->request->feed_count; k++) fed |= w->request->feeds[k].output.node == i;
    if (!fed)
      return tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s': op %.*s is not known", TFC_STR_ARG(n->name),
                             TFC_STR_ARG(n->op));
  }
  return NULL;
}

// Adds every placeholder that `needed` has and the request does not feed.
static tfc_status placeholders(struct work *w, const bool *needed, struct tfc_step_feed *feeds, uint32_t *count) {
  tfc_status s = NULL;
  for (uint32_t i = 0; i < w->g->node_count; i++) {
    if (!tfc_node_is_placeholder(&w->g->nodes[i]) || !needed[i]) continue;
    bool given = false;
    for (uint32_t k = 0; k < w->request->feed_count; k++) given |= w->request->feeds[k].output.node == i;
    if (given) continue;
    TFC_TRY(s, make_feed(w, (struct tfc_output){i, 0}, NULL, &feeds[*count]));
    ++*count;
  }
out:
  return s;
}

static tfc_status ranges(struct work *w, const bool *needed, struct tfc_step_feed *feeds, uint32_t count) {
  struct tfc_shapes shapes = {0};
  tfc_status s = NULL;
  struct tfc_shape_override *overrides = TFC_ARENA_ARRAY(&w->scratch, struct tfc_shape_override, (size_t)count + 1);
  if (!overrides) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < count; i++)
    overrides[i] = (struct tfc_shape_override){.output = feeds[i].output, .shape = feeds[i].shape};
  TFC_TRY(s, tfc_infer_fed_shapes(w->g, overrides, count, &shapes));
  for (uint32_t i = 0; i < count; i++) tfc_step_feed_range(w->g, &shapes, needed, &w->step->arena, &feeds[i]);
out:
  tfc_shapes_deinit(&shapes);
  return s;
}

// Lists the requested feeds, and then every output that the step takes from a queue that nothing fills.
static tfc_status find_taken(struct work *w, const struct tfc_output *given, const bool *initial,
                             struct tfc_output **out, uint32_t *out_count) {
  const struct tfc_graph *g = w->g;
  tfc_status s = NULL;
  uint32_t count = w->request->feed_count, most = count;
  bool *unfilled = TFC_ARENA_ARRAY(&w->scratch, bool, g->node_count + 1), any = false;
  if (!unfilled) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_step_unfilled_queues(g, &w->runners, w->needed, initial, &w->scratch, unfilled));
  for (uint32_t i = 0; i < g->node_count; i++) any |= unfilled[i], most += g->nodes[i].output_count;
  struct tfc_output *taken = TFC_ARENA_ARRAY(&w->scratch, struct tfc_output, (any ? most : count) + 1u);
  if (!taken) TFC_TRY(s, tfc_status_no_memory(NULL));
  memcpy(taken, given, count * sizeof *taken);
  for (uint32_t i = 0; any && i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (!w->needed[i] || !tfc_step_dequeues(n)) continue;
    if (!unfilled[tfc_node_inputs(g, n)[0].node]) continue;
    for (uint32_t k = 0; k < n->output_count; k++) {
      bool used = false;
      for (uint32_t c = g->consumer_begin[i]; c < g->consumer_begin[i + 1] && !used; c++) {
        const struct tfc_node *user = &g->nodes[g->consumers[c].node];
        const int32_t input = g->consumers[c].input;
        used = w->needed[g->consumers[c].node] && input >= 0 && tfc_node_inputs(g, user)[input].index == (int32_t)k;
      }
      for (uint32_t f = 0; f < w->step->fetch_count; f++)
        used |= w->step->fetches[f].node == i && w->step->fetches[f].index == (int32_t)k;
      for (uint32_t f = 0; f < w->request->feed_count; f++) used &= given[f].node != i || given[f].index != (int32_t)k;
      if (used) taken[count++] = (struct tfc_output){i, (int32_t)k};
    }
  }
  if (any) TFC_TRY(s, tfc_infer_fed_shapes(g, NULL, 0, &w->unfed));
  *out = taken, *out_count = count;
out:
  return s;
}

// Lists the names of the queues that runners fill for the step, to be shown to the user.
static tfc_status tell_queues(struct work *w) {
  bool *needed = TFC_ARENA_ARRAY(&w->scratch, bool, w->g->node_count + 1);
  bool *wanted = TFC_ARENA_ARRAY(&w->scratch, bool, w->runners.count + 1);
  if (!needed || !wanted) return tfc_status_no_memory(NULL);
  memcpy(needed, w->needed, w->g->node_count * sizeof *needed);
  tfc_queue_runners_need(&w->runners, w->g, needed, wanted, w->stack);
  for (uint32_t i = 0; i < w->runners.count; i++)
    if (wanted[i])
      tfc_text_printf(&w->queues, "%s%.*s", w->queues.size ? ", " : "",
                      TFC_STR_ARG(w->g->nodes[w->runners.list[i].queue].name));
  return NULL;
}

static tfc_status infer_feeds(struct work *w) {
  const struct tfc_graph *g = w->g;
  const struct tfc_step_request *r = w->request;
  struct tfc_step_spec *step = w->step;
  tfc_status s = NULL;
  struct tfc_output *outputs = TFC_ARENA_ARRAY(&w->scratch, struct tfc_output, r->feed_count + 1);
  bool *initial = TFC_ARENA_ARRAY(&w->scratch, bool, g->node_count + 1);
  w->needed = TFC_ARENA_ARRAY(&w->scratch, bool, g->node_count + 1);
  if (!outputs || !initial || !w->needed) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < r->feed_count; i++) {
    outputs[i] = r->feeds[i].output;
    for (uint32_t k = 0; k < i; k++)
      if (outputs[k].node == outputs[i].node && outputs[k].index == outputs[i].index)
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "feed '%.*s:%d' is given twice", TFC_STR_ARG(g->nodes[outputs[i].node].name),
                 outputs[i].index);
  }
  TFC_TRY(s, tfc_prune(g, outputs, r->feed_count, step->fetches, step->fetch_count, step->targets, step->target_count,
                       w->needed));
  TFC_TRY(s, check_known(w));
  TFC_TRY(s, infer_init(w));
  TFC_TRY(s, tfc_prune(g, outputs, r->feed_count, NULL, 0, step->inits, step->init_count, initial));
  struct tfc_output *taken = NULL; // outputs taken from queues that nothing fills
  uint32_t taken_count = 0;
  TFC_TRY(s, find_taken(w, outputs, initial, &taken, &taken_count));
  TFC_TRY(s, tfc_prune(g, taken, taken_count, step->fetches, step->fetch_count, step->targets, step->target_count,
                       w->needed));
  TFC_TRY(s, tell_queues(w));
  size_t most = taken_count + 1;
  for (uint32_t i = 0; i < g->node_count; i++) most += tfc_node_is_placeholder(&g->nodes[i]);
  step->feeds = TFC_ARENA_ARRAY(&step->arena, struct tfc_step_feed, most);
  step->init_feeds = TFC_ARENA_ARRAY(&step->arena, struct tfc_step_feed, most);
  if (!step->feeds || !step->init_feeds) TFC_TRY(s, tfc_status_no_memory(NULL));
  w->batch = r->batch;
  for (uint32_t i = 0; i < r->feed_count; i++) {
    TFC_TRY(s, make_feed(w, outputs[i], &r->feeds[i], &step->feeds[step->feed_count]));
    step->feed_count++;
    const struct tfc_node *n = &g->nodes[outputs[i].node];
    const struct tfc_attr *shape = tfc_node_is_placeholder(n) ? tfc_node_attr(g, n, "shape") : NULL;
    if (w->batch <= 0 && shape && shape->kind == TFC_ATTR_SHAPE && shape->shape->rank > 0 &&
        !tfc_dim_known(shape->shape->dims[0]))
      w->batch = r->feeds[i].shape.dims[0]; // the batch size of one feed is used for the others
  }
  if (w->batch <= 0) w->batch = 32;
  for (uint32_t i = r->feed_count; i < taken_count; i++) {
    TFC_TRY(s, make_feed(w, taken[i], NULL, &step->feeds[step->feed_count]));
    step->feed_count++;
  }
  TFC_TRY(s, placeholders(w, w->needed, step->feeds, &step->feed_count));
  TFC_TRY(s, placeholders(w, initial, step->init_feeds, &step->init_feed_count));
  TFC_TRY(s, ranges(w, w->needed, step->feeds, step->feed_count));
  if (step->init_feed_count > 0) TFC_TRY(s, ranges(w, initial, step->init_feeds, step->init_feed_count));
out:
  return s;
}

// --- Notes for the user ----------------------------------------------------------------------------------------------

static void list_names(const struct tfc_graph *g, const uint32_t *nodes, uint32_t count, struct tfc_text *out) {
  for (uint32_t i = 0; i < count && i < 4; i++)
    tfc_text_printf(out, "%s%.*s", i ? ", " : "", TFC_STR_ARG(g->nodes[nodes[i]].name));
  if (count > 4) tfc_text_printf(out, " and %u more", count - 4);
}

static void note(struct tfc_step_spec *step, struct tfc_text *text) {
  if (text->size && !text->failed)
    step->notes[step->note_count++] = tfc_arena_str(&step->arena, (tfc_str){text->data, text->size});
  tfc_text_deinit(text);
}

static void note_feed(struct tfc_step_spec *step, const char *what, const struct tfc_step_feed *f) {
  struct tfc_text text = {0};
  char shape[TFC_SHAPE_TEXT];
  tfc_text_printf(&text, "%s: %.*s %s%s", what, TFC_STR_ARG(f->name), tfc_dtype_name(f->dtype),
                  tfc_shape_show(&f->shape, shape));
  if (f->given)
    tfc_text_printf(&text, ", given");
  else if (f->why.size)
    tfc_text_printf(&text, ", synthetic, %.*s", TFC_STR_ARG(f->why));
  note(step, &text);
}

static tfc_status make_notes(struct work *w) {
  const struct tfc_graph *g = w->g;
  struct tfc_step_spec *step = w->step;
  struct tfc_text text = {0};
  uint32_t needed = 0;
  step->notes = TFC_ARENA_ARRAY(&step->arena, tfc_str, (size_t)step->feed_count + step->init_feed_count + 3);
  if (!step->notes) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < g->node_count; i++) needed += w->needed[i];
  tfc_text_printf(&text, "step: ");
  list_names(g, step->targets, step->target_count, &text);
  for (uint32_t i = 0; i < step->fetch_count && i < 4; i++)
    tfc_text_printf(&text, "%s%.*s:%d", i || step->target_count ? ", " : "",
                    TFC_STR_ARG(g->nodes[step->fetches[i].node].name), step->fetches[i].index);
  tfc_text_printf(&text, " (%.*s): %u of %u nodes", TFC_STR_ARG(w->source), needed, g->node_count);
  note(step, &text);
  if (step->init_count > 0) {
    tfc_text_printf(&text, "initialiser: ");
    list_names(g, step->inits, step->init_count, &text);
    tfc_text_printf(&text, " (%.*s)", TFC_STR_ARG(w->init_source));
    note(step, &text);
  }
  if (w->queues.size) {
    tfc_text_printf(&text, "queues filled by the graph's queue runners: %.*s", (int)w->queues.size, w->queues.data);
    note(step, &text);
  }
  for (uint32_t i = 0; i < step->feed_count; i++) note_feed(step, "feed", &step->feeds[i]);
  for (uint32_t i = 0; i < step->init_feed_count; i++) note_feed(step, "feed of the initialiser", &step->init_feeds[i]);
  return NULL;
}

tfc_status tfc_step_infer(const struct tfc_graph *g, const struct tfc_step_request *request,
                          struct tfc_step_spec *out) {
  struct tfc_step_spec step = {0};
  struct work w = {.g = g, .request = request, .step = &step};
  tfc_status s = NULL;
  TFC_TRY(s, classify(&w));
  TFC_TRY(s, infer_targets(&w));
  TFC_TRY(s, infer_feeds(&w));
  TFC_TRY(s, make_notes(&w));
  *out = step;
  step = (struct tfc_step_spec){0};
out:
  tfc_arena_deinit(&step.arena);
  work_deinit(&w);
  return s;
}

tfc_status tfc_step_infer_init(const struct tfc_graph *g, struct tfc_step_spec *out) {
  struct tfc_step_spec step = {0};
  struct work w = {.g = g, .request = &(struct tfc_step_request){0}, .step = &step};
  tfc_status s = NULL;
  TFC_TRY(s, classify(&w));
  w.needed = TFC_ARENA_ARRAY(&w.scratch, bool, g->node_count + 1);
  if (!w.needed) TFC_TRY(s, tfc_status_no_memory(NULL));
  memset(w.needed, true, g->node_count);
  TFC_TRY(s, infer_init(&w));
  *out = step;
  step = (struct tfc_step_spec){0};
out:
  tfc_arena_deinit(&step.arena);
  work_deinit(&w);
  return s;
}

void tfc_step_spec_deinit(struct tfc_step_spec *spec) {
  tfc_arena_deinit(&spec->arena);
  *spec = (struct tfc_step_spec){0};
}
