// A maximum pool that alone reads a convolution's result becomes part of the convolution: its kernel computes some
// lines, pools them while they are in the cache, and writes only the maxima. The first layers of a network make tensors
// that are larger than the cache, which would be written, read back and thrown away. Only windows that do not overlap
// are merged, so that no line is computed twice, and only filters that stay in the cache, because each part of the
// lines reads all of the filter. The results are bit-identical.
#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/host/chain/chain.h"
#include "runtime/ops/nn_pool.h"

enum {
  LEAST_BYTES = 1 << 20,       // of the convolution's result; less stays in the cache
  MOST_FILTER_BYTES = 1 << 19, // so that it stays in the second-level cache
  MOST_CHANNELS = 8192         // as many as the kernel takes (MOST_ZEROS of runtime/device/cpu/conv/conv.c)
};

static bool is_pool(const struct tfc_ir *ir, const struct tfc_ir_op *op) {
  return !op->dead && !op->joint && !op->prepared && !op->wanted && op->def && op->def->plan_trait == TFC_PLAN_MAXIMA &&
         op->input_count == 1 && op->output_count == 1 && op->outputs[0] != TFC_NONE &&
         ir->devices[op->device]->driver->host_kernels;
}

// Whether the CPU's kernel runs the convolution: the image with channels last, no groups, not both a stride and a
// dilation.
static bool is_convolution(const struct tfc_ir *ir, const struct tfc_ir_op *op) {
  if (op->dead || op->joint || op->prepared || op->wanted || !op->finish || op->finish->pool || op->output_count != 1)
    return false;
  if (op->def->role != TFC_ROLE_CONVOLUTION || op->def->plan_trait != TFC_PLAN_FILTERED || op->finish->own != 2)
    return false; // depthwise convolutions have the role alone
  const struct tfc_node *node = &ir->graph->nodes[op->node];
  const struct tfc_shape *x = tfc_ir_shape(ir, &op->inputs[0]), *w = tfc_ir_shape(ir, &op->inputs[1]),
                         *y = &op->finish->before;
  if (!tfc_shape_is_static(x) || !tfc_shape_is_static(w) || x->rank != w->rank || y->rank != x->rank) return false;
  const int64_t channels = w->dims[w->rank - 2], filters = w->dims[w->rank - 1];
  if (x->dims[x->rank - 1] != channels || y->dims[y->rank - 1] != filters) return false;
  if (channels > MOST_CHANNELS || filters > MOST_CHANNELS || tfc_shape_elements(x) < 1) return false;
  if (tfc_shape_elements(w) * (int64_t)sizeof(float) > MOST_FILTER_BYTES) return false;
  struct tfc_window window;
  if (op->window) {
    window = *op->window;
  } else {
    tfc_status s = tfc_window_read(ir->graph, node, x->rank, &window);
    if (s) {
      tfc_status_free(s);
      return false;
    }
  }
  bool both = false;
  for (int k = 0; k < 3; k++) both = both || (window.stride[k] > 1 && window.dilation[k] > 1);
  return !both && !window.channels_first;
}

// Whether the pool's windows follow each other, with channels last.
static bool is_plain(const struct tfc_pool *pool) {
  return !pool->w.channels_first && pool->w.channel_size == 1 && pool->w.batch_size == 1 &&
         pool->w.stride[0] >= pool->w.size[0] && pool->w.stride[1] >= pool->w.size[1];
}

// Describes the pool if it can become part of the operation whose result it reads; NULL: it cannot.
static tfc_status fits(struct tfc_ir *ir, const struct tfc_ir_readers *readers, const bool *waits, uint32_t id,
                       struct tfc_pool **out) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  *out = NULL;
  if (!is_pool(ir, op) || waits[id] || op->inputs[0].value == TFC_NONE || op->inputs[0].view) return NULL;
  const uint32_t v = op->inputs[0].value;
  const struct tfc_ir_value *x = &ir->values.data[v], *y = &ir->values.data[op->outputs[0]];
  if (x->kind != TFC_IR_OP || x->op == TFC_NONE || x->fetched || !x->planned || x->alias != TFC_NONE) return NULL;
  if (x->dtype != TFC_FLOAT || x->bytes < LEAST_BYTES || !y->planned || y->alias != TFC_NONE) return NULL;
  const struct tfc_ir_op *made = &ir->ops.data[x->op];
  if (readers->begin[v + 1] - readers->begin[v] != 1 || made->device != op->device || !is_convolution(ir, made))
    return NULL;
  if (!tfc_shape_equal(&made->finish->before, &x->shape) || !tfc_shape_equal(&made->finish->after, &x->shape))
    return NULL;
  struct tfc_pool *pool = TFC_ARENA_NEW(&ir->arena, struct tfc_pool);
  struct tfc_shape shape;
  if (!pool) return tfc_status_no_memory("planning a step");
  tfc_status s = tfc_pool_of_node(ir->graph, &ir->graph->nodes[op->node], &x->shape, pool, &shape);
  if (!s && tfc_shape_equal(&shape, &y->shape) && tfc_shape_elements(&shape) > 0 && is_plain(pool)) *out = pool;
  tfc_status_free(s); // the pool's own kernel reports it
  return NULL;
}

static tfc_status merge(struct tfc_ir *ir, uint32_t pool_id, const struct tfc_pool *pool) {
  const struct tfc_ir_op *reader = &ir->ops.data[pool_id];
  const uint32_t id = ir->values.data[reader->inputs[0].value].op;
  struct tfc_ir_op op = ir->ops.data[id];
  struct tfc_chain_finish *finish = TFC_ARENA_NEW(&ir->arena, struct tfc_chain_finish);
  uint32_t new_id;
  if (!finish) return tfc_status_no_memory("planning a step");
  *finish = *op.finish;
  finish->pool = pool, finish->after = ir->values.data[reader->outputs[0]].shape;
  op.finish = finish, op.outputs = reader->outputs;
  op.cost_us += reader->cost_us / 2;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &new_id));
  tfc_ir_replace(ir, id, new_id);
  tfc_ir_replace(ir, pool_id, new_id);
  return NULL;
}

static tfc_status merge_pools(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct tfc_arena arena = {0};
  struct tfc_ir_readers readers;
  const uint32_t count = (uint32_t)ir->ops.count;
  bool *waits = NULL, any = false; // [ops] an ordering edge leads to it, which need not come before the convolution
  for (uint32_t i = 0; i < count && !any; i++) any = is_pool(ir, &ir->ops.data[i]);
  if (!any) return NULL;
  TFC_TRY(s, tfc_ir_waits(ir, &arena, &waits));
  TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_pool *pool;
    TFC_TRY(s, fits(ir, &readers, waits, i, &pool));
    if (pool) TFC_TRY(s, merge(ir, i, pool));
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"pools of convolutions", 69, true, merge_pools}};
TFC_REWRITES(rows);
