// Finds trees of element-wise operations, in which each result but the last is read by one operation of the tree only.
// The last operation of a tree runs all of it as one chain (runtime/host/chain), so that the values between are never
// written: the activations of a recurrent cell, say. If the tree reads a product or a convolution that nothing else
// reads, that one's kernel runs the chain on rows that it has just computed, as in plans in fixed order (finishes.c).
// The results are bit-identical, because the chain runs the same loops in the same order. All operations of a tree run
// or are dead together, and nothing outside of a tree reads what is between, so no order of other operations changes.
#include <stdlib.h>

#include "runtime/exec/dynamic/dynamic.h"
#include "runtime/host/chain/space.h"

// A node with more inputs than a run keeps on the stack (run.h) would keep its loop from running as a list.
enum { NOWHERE = INT16_MAX, MOST_DEPTH = 24, MOST_INPUTS = 14 };

struct tfc_dynamic_chain {
  struct tfc_chain chain;
  struct tfc_shape shape; // of the result
  struct tfc_output inputs[TFC_CHAIN_OPERANDS];
  size_t bytes[TFC_CHAIN_OPERANDS];
  uint32_t input_count, reusable;
  bool apart[TFC_CHAIN_OPERANDS]; // [inputs] some step does not read it element by element
  uint32_t product;               // the node on whose result the chain follows; TFC_NONE: there is none
  struct tfc_chain_finish finish; // if there is one; `inputs` are then those of the product and of the chain
  uint32_t from[TFC_CHAIN_OPERANDS];
};

struct finder {
  const struct tfc_build *b;
  const struct tfc_graph *g;
  const struct tfc_session *session;
  const bool *elided;
  uint32_t *reader_count; // [node] of its outputs, including control edges and fetches
  uint32_t *reader;       // [node] the last one that reads a value of it; TFC_NONE: there is none
  bool *fits;             // [node] can be part of a tree
  uint32_t *taken;        // [node] the operation that alone reads it, in the same tree; TFC_NONE: it ends its tree
};

struct tree { // a chain being made
  struct tfc_dynamic_chain *made;
  struct tfc_chain_step steps[TFC_CHAIN_STEPS];
  struct tfc_chain_operand operands[TFC_CHAIN_OPERANDS];
  uint32_t members[TFC_CHAIN_STEPS];
  bool used[TFC_CHAIN_REGISTERS];
};

static const struct tfc_shape *shape_of(const struct finder *f, struct tfc_output o) {
  return &f->b->ground->shapes.shapes[f->g->nodes[o.node].output_begin + (uint32_t)o.index];
}
static const struct tfc_shape *result_of(const struct finder *f, uint32_t id) {
  return shape_of(f, (struct tfc_output){id, 0});
}
static uint16_t device_of(const struct finder *f, uint32_t id) {
  return f->b->spec->placement ? f->b->spec->placement[id] : 0;
}

// Returns the real producer of an output, behind nodes that only pass it on.
static struct tfc_output origin_of(const struct finder *f, struct tfc_output o) {
  while (!tfc_is_fed(f->b->ground, o) && f->elided[o.node]) o = tfc_node_inputs(f->g, &f->g->nodes[o.node])[0];
  return o;
}

static void count_readers(struct finder *f) {
  for (uint32_t i = 0; i < f->g->node_count; i++) {
    const struct tfc_node *n = &f->g->nodes[i];
    for (uint32_t k = 0; f->b->ground->needed[i] && k < n->input_count + n->control_count; k++) {
      const uint32_t from = tfc_node_inputs(f->g, n)[k].node;
      f->reader_count[from]++;
      if (k < n->input_count) f->reader[from] = i;
    }
  }
  for (uint32_t i = 0; i < f->b->spec->fetch_count; i++) f->reader_count[f->b->spec->fetches[i].node]++;
  for (uint32_t i = 0; i < f->b->spec->target_count; i++) f->reader_count[f->b->spec->targets[i]]++;
}

// `product`: the product that an addition computes, too (sums.c), or TFC_NONE.
static bool fits(const struct finder *f, uint32_t id, const uint32_t *product, const uint32_t *runs_in) {
  const struct tfc_node *n = &f->g->nodes[id];
  if (!f->b->ground->needed[id] || f->elided[id] || !n->def || !n->def->elementwise) return false;
  if (product[id] != TFC_NONE || runs_in[id] != id) return false;
  if (n->output_count != 1 || n->input_count < 1 || n->input_count > 2) return false;
  if (tfc_is_fed(f->b->ground, (struct tfc_output){id, 0})) return false;
  if (f->session->devices[device_of(f, id)]->driver->host_kernels != TFC_HOST_KERNELS_IN_PLACE) return false;
  const struct tfc_elementwise *loops = n->def->elementwise;
  if (n->input_count == 1 ? !loops->unary || !loops->unary[TFC_FLOAT] : !loops->binary || !loops->binary[TFC_FLOAT])
    return false;
  const struct tfc_shape *y = result_of(f, id);
  if (f->g->output_dtypes[n->output_begin] != TFC_FLOAT || !tfc_shape_is_static(y) || tfc_shape_elements(y) < 2)
    return false;
  for (uint32_t k = 0; k < n->input_count; k++) {
    const struct tfc_output o = tfc_node_inputs(f->g, n)[k];
    struct tfc_chain_operand operand;
    if (o.index < 0 || tfc_output_dtype(f->g, o) != TFC_FLOAT || !tfc_shape_is_static(shape_of(f, o))) return false;
    if (!tfc_chain_lies(shape_of(f, o), y, tfc_chain_space_of(y), &operand)) return false;
  }
  return !tfc_str_starts(tfc_node_attr_string(f->g, n, "data_format", ""), "NC");
}

// Returns the operation that alone reads `id`, if both can be in one tree; TFC_NONE: there is none.
static uint32_t taken_by(const struct finder *f, uint32_t id) {
  uint32_t at = id;
  if (!f->fits[id] || f->g->nodes[id].control_count) return TFC_NONE;
  do {
    if (f->reader_count[at] != 1) return TFC_NONE;
    at = f->reader[at];
  } while (at != TFC_NONE && f->elided[at]);
  if (at == TFC_NONE || !f->fits[at] || device_of(f, at) != device_of(f, id)) return TFC_NONE;
  const struct tfc_chain_space a = tfc_chain_space_of(result_of(f, id)), b = tfc_chain_space_of(result_of(f, at));
  return a.rows == b.rows && a.columns == b.columns ? at : TFC_NONE;
}

// Adds an operand in memory, which an operation with a result of shape `whole` reads. NOWHERE: there is no room.
static int16_t add_operand(const struct finder *f, struct tree *t, struct tfc_output o, const struct tfc_shape *whole) {
  struct tfc_dynamic_chain *made = t->made;
  struct tfc_chain *c = &made->chain;
  const struct tfc_shape *shape = shape_of(f, o);
  uint32_t i = 0;
  o = origin_of(f, o);
  while (i < made->input_count && (made->inputs[i].node != o.node || made->inputs[i].index != o.index)) i++;
  if (i == made->input_count) {
    if (i == MOST_INPUTS) return NOWHERE;
    made->inputs[made->input_count++] = o;
    made->bytes[i] = (size_t)tfc_shape_elements(shape) * sizeof(float);
  }
  if (c->operand_count + 1 == TFC_CHAIN_OPERANDS) return NOWHERE; // the last one is the result
  struct tfc_chain_operand *operand = &t->operands[c->operand_count];
  *operand = (struct tfc_chain_operand){.tensor = (uint16_t)i, .size = sizeof(float)};
  if (!tfc_chain_lies(shape, whole, (struct tfc_chain_space){c->rows, c->columns}, operand)) return NOWHERE;
  // The result may be computed in the memory of an input that is read element by element, as it is written.
  if (operand->row != c->columns || operand->column != 1 || operand->each)
    made->apart[i] = true, made->reusable &= ~(1u << i);
  return (int16_t)c->operand_count++;
}

// Adds operation `id` and those of its tree before it. Returns where its result is: a register, or, for the last
// operation, the operand `out`. NOWHERE: there is no room.
static int16_t add_step(const struct finder *f, struct tree *t, uint32_t id, int16_t out, int depth) {
  const struct tfc_node *n = &f->g->nodes[id];
  int16_t from[2] = {0, 0};
  if (depth == MOST_DEPTH) return NOWHERE;
  for (uint32_t k = 0; k < n->input_count; k++) {
    const struct tfc_output o = tfc_node_inputs(f->g, n)[k], source = origin_of(f, o);
    const bool member = !tfc_is_fed(f->b->ground, source) && f->taken[source.node] == id;
    from[k] = member ? add_step(f, t, source.node, 0, depth + 1) : add_operand(f, t, o, result_of(f, id));
    if (from[k] == NOWHERE) return NOWHERE;
  }
  struct tfc_chain *c = &t->made->chain;
  if (c->step_count == TFC_CHAIN_STEPS) return NOWHERE;
  int16_t place = out;
  if (depth) {
    int16_t r = 0;
    while (r < TFC_CHAIN_REGISTERS && t->used[r]) r++;
    if (r == TFC_CHAIN_REGISTERS) return NOWHERE;
    t->used[r] = true; // loops do not write what they read, so registers that this step reads are free only after it
    place = (int16_t)(-1 - r);
  }
  const struct tfc_elementwise *loops = n->def->elementwise;
  t->members[c->step_count] = id;
  t->steps[c->step_count++] = (struct tfc_chain_step){.unary = n->input_count == 1 ? loops->unary[TFC_FLOAT] : NULL,
                                                      .binary = n->input_count == 2 ? loops->binary[TFC_FLOAT] : NULL,
                                                      .a = from[0],
                                                      .b = from[1],
                                                      .out = place,
                                                      .register_size = sizeof(float),
                                                      .def = n->def};
  for (uint32_t k = 0; k < n->input_count; k++)
    if (from[k] < 0) t->used[-1 - from[k]] = false;
  return place;
}

// Whether input `k` of the chain that `id` ends is the result of a product or convolution that can run the chain.
static bool can_finish(const struct finder *f, const struct tfc_dynamic_chain *c, uint32_t id, uint32_t k,
                       const uint32_t *runs_in) {
  const struct tfc_output o = c->inputs[k];
  const struct tfc_node *n = &f->g->nodes[o.node];
  if (tfc_is_fed(f->b->ground, o) || c->apart[k] || !n->def || !(n->def->flags & TFC_OP_FINISHES)) return false;
  if (!f->b->ground->needed[o.node] || runs_in[o.node] != o.node || n->output_count != 1 || n->control_count)
    return false;
  if (device_of(f, o.node) != device_of(f, id) || tfc_output_dtype(f->g, o) != TFC_FLOAT) return false;
  for (uint32_t at = o.node; at == o.node || f->elided[at]; at = f->reader[at])
    if (f->reader_count[at] != 1 || f->reader[at] == TFC_NONE) return false;
  const struct tfc_shape *y = shape_of(f, o);
  if (!tfc_shape_is_static(y) || y->rank < 1 || c->shape.rank < 1) return false;
  if (tfc_shape_elements(y) != tfc_shape_elements(&c->shape)) return false;
  if (y->dims[y->rank - 1] != c->shape.dims[c->shape.rank - 1]) return false;
  for (uint32_t i = 0; i < n->input_count; i++)
    if (tfc_dtype_is_ref(tfc_output_dtype(f->g, tfc_node_inputs(f->g, n)[i]))) return false;
  return n->input_count + c->input_count <= MOST_INPUTS + 2 &&
         !tfc_str_starts(tfc_node_attr_string(f->g, n, "data_format", ""), "NC");
}

// Makes the chain part of the product that is its input `k`.
static void finish(const struct finder *f, struct tfc_dynamic_chain *c, uint32_t k) {
  const struct tfc_output product = c->inputs[k];
  const struct tfc_node *n = &f->g->nodes[product.node];
  const struct tfc_shape *y = shape_of(f, product);
  struct tfc_output inputs[TFC_CHAIN_OPERANDS];
  uint32_t count = n->input_count;
  memcpy(inputs, tfc_node_inputs(f->g, n), count * sizeof *inputs);
  for (uint32_t i = 0; i < c->input_count; i++) {
    c->from[i] = i == k ? TFC_NONE : count;
    if (i != k) inputs[count++] = c->inputs[i];
  }
  c->finish = (struct tfc_chain_finish){.chain = c->chain,
                                        .columns = y->dims[y->rank - 1],
                                        .own = n->input_count,
                                        .input_count = c->input_count,
                                        .from = c->from,
                                        .before = *y,
                                        .after = c->shape};
  memcpy(c->inputs, inputs, count * sizeof *inputs);
  c->input_count = count, c->product = product.node, c->reusable = 0;
}

// Makes the chain of the tree that `id` ends; *out NULL: the tree has one operation, or too many.
static tfc_status make(const struct finder *f, uint32_t id, const uint32_t *runs_in, struct tree *t,
                       struct tfc_arena *arena, struct tfc_dynamic_chain **out) {
  struct tfc_dynamic_chain made = {.shape = *result_of(f, id), .reusable = UINT32_MAX, .product = TFC_NONE};
  const struct tfc_chain_space space = tfc_chain_space_of(&made.shape);
  enum { RESULT = TFC_CHAIN_OPERANDS - 1 };
  *out = NULL;
  *t = (struct tree){.made = &made};
  made.chain = (struct tfc_chain){.rows = space.rows, .columns = space.columns};
  if (add_step(f, t, id, RESULT, 0) == NOWHERE) return NULL;
  uint32_t of = 0; // the input that is a product
  while (of < made.input_count && !can_finish(f, &made, id, of, runs_in)) of++;
  if (made.chain.step_count < 2 && of == made.input_count) return NULL;
  const uint16_t steps = made.chain.step_count, result = made.chain.operand_count++;
  t->operands[result] = (struct tfc_chain_operand){
      .tensor = (uint16_t)made.input_count, .size = sizeof(float), .row = space.columns, .column = 1};
  t->steps[steps - 1].out = (int16_t)result;
  made.chain.steps = TFC_ARENA_ARRAY(arena, struct tfc_chain_step, steps);
  made.chain.operands = TFC_ARENA_ARRAY(arena, struct tfc_chain_operand, made.chain.operand_count);
  struct tfc_dynamic_chain *chain = TFC_ARENA_NEW(arena, struct tfc_dynamic_chain);
  if (!made.chain.steps || !made.chain.operands || !chain) return tfc_status_no_memory("planning a step");
  memcpy(made.chain.steps, t->steps, steps * sizeof *t->steps);
  memcpy(made.chain.operands, t->operands, made.chain.operand_count * sizeof *t->operands);
  tfc_chain_flatten(&made.chain);
  tfc_chain_join(&made.chain);
  *chain = made;
  if (of < made.input_count) finish(f, chain, of);
  *out = chain;
  return NULL;
}

struct work {
  const struct tfc_chain *chain;
  void **tensors;
};
static void run_blocks(void *arg, int64_t begin, int64_t end) {
  const struct work *work = arg;
  tfc_chain_run(work->chain, work->tensors, begin, end);
}

static tfc_status run(struct tfc_kernel_ctx *ctx) {
  const struct tfc_dynamic_chain *c = ctx->state;
  void *tensors[TFC_CHAIN_OPERANDS];
  struct tfc_tensor *y = NULL;
  for (uint32_t i = 0; i < c->input_count; i++) {
    if (ctx->inputs[i]->size != c->bytes[i])
      return tfc_status_make(TFC_INTERNAL, "input %u has another size than when the step was planned", i);
    tensors[i] = ctx->inputs[i]->data;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &c->shape, &y));
  tensors[c->input_count] = y->data;
  struct work work = {&c->chain, tensors};
  tfc_kernel_parallel_for(ctx, tfc_chain_blocks(&c->chain), 16384 / TFC_CHAIN_BLOCK, run_blocks, &work);
  return NULL;
}

const struct tfc_op_def tfc_dynamic_chain_def = {
    .name = "_Chain", .inputs = "inputs: N * float", .outputs = "output: float", .attrs = "N: int", .kernel = run};

uint32_t tfc_dynamic_chain_inputs(const struct tfc_dynamic_chain *c, uint32_t *out_reusable) {
  *out_reusable = c->reusable;
  return c->input_count;
}
struct tfc_output tfc_dynamic_chain_input(const struct tfc_dynamic_chain *c, uint32_t k) {
  return c->inputs[k];
}
uint32_t tfc_dynamic_chain_product(const struct tfc_dynamic_chain *c, const struct tfc_chain_finish **out_finish) {
  *out_finish = c->product == TFC_NONE ? NULL : &c->finish;
  return c->product;
}

tfc_status tfc_dynamic_find_chains(const struct tfc_build *b, const struct tfc_session *session,
                                   const uint32_t *product, const bool *elided, uint32_t *runs_in,
                                   struct tfc_arena *arena, struct tfc_dynamic_chain **out) {
  tfc_status s = NULL;
  const uint32_t n = b->graph->node_count;
  struct finder f = {.b = b, .g = b->graph, .session = session, .elided = elided};
  struct tree *tree = malloc(sizeof *tree);
  f.reader_count = calloc(n + 1u, sizeof *f.reader_count);
  f.reader = malloc((n + 1u) * sizeof *f.reader);
  f.fits = calloc(n + 1u, sizeof *f.fits);
  f.taken = malloc((n + 1u) * sizeof *f.taken);
  if (!tree || !f.reader_count || !f.reader || !f.fits || !f.taken) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < n; i++) f.reader[i] = TFC_NONE;
  count_readers(&f);
  for (uint32_t i = 0; i < n; i++) f.fits[i] = fits(&f, i, product, runs_in);
  for (uint32_t i = 0; i < n; i++) f.taken[i] = taken_by(&f, i);
  for (uint32_t i = 0; i < n; i++) {
    if (!f.fits[i] || f.taken[i] != TFC_NONE) continue;
    TFC_TRY(s, make(&f, i, runs_in, tree, arena, &out[i]));
    if (out[i] && out[i]->product != TFC_NONE) runs_in[out[i]->product] = i;
    for (uint16_t k = 0; out[i] && tree->members[k] != i; k++) runs_in[tree->members[k]] = i;
  }
out:
  free(tree);
  free(f.reader_count);
  free(f.reader);
  free(f.fits);
  free(f.taken);
  return s;
}
