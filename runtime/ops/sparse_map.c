// Operations on sparse tensors that a session keeps under numbers (handles): AddSparseToTensorsMap,
// AddManySparseToTensorsMap, TakeManySparseFromTensorsMap. A tensor can be taken once.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/ops/data_named.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"
#include "runtime/ops/sparse_parts.h"

struct kept {
  int64_t handle;
  bool taken;
  struct ops_sparse_part part;
};
struct map {
  struct tfc_object object;
  pthread_mutex_t lock;
  int64_t next;
  TFC_ARRAY(struct kept) kept; // in ascending order of handles
  size_t live;
};
static void map_destroy(struct tfc_object *self) {
  struct map *m = (struct map *)self;
  for (size_t i = 0; i < m->kept.count; i++) ops_sparse_part_release(&m->kept.data[i].part);
  tfc_array_free(&m->kept);
  pthread_mutex_destroy(&m->lock);
  free(m);
}
static tfc_status map_save(struct tfc_object *self, struct tfc_text *out) {
  struct map *m = (struct map *)self;
  (void)out;
  pthread_mutex_lock(&m->lock);
  const bool holds = m->live > 0;
  pthread_mutex_unlock(&m->lock);
  return holds ? tfc_status_make(TFC_UNIMPLEMENTED, "sparse tensors") : NULL;
}
static const struct tfc_object_type map_type = {
    .name = "map of sparse tensors", .destroy = map_destroy, .save = map_save};

static tfc_status map_make(void *arg, struct tfc_object **out) {
  (void)arg;
  struct map *m = calloc(1, sizeof *m);
  if (!m) return tfc_status_no_memory(NULL);
  m->object = (struct tfc_object){.type = &map_type, .references = 1};
  pthread_mutex_init(&m->lock, NULL);
  *out = &m->object;
  return NULL;
}
static tfc_status map_of(struct tfc_kernel_ctx *ctx, struct map **out) { // the caller must release it
  return tfc_resources_find_or_create(ctx->env->resources, tfc_node_attr_string(ctx->graph, ctx->node, "container", ""),
                                      tfc_named_name(ctx), &map_type, map_make, ctx, (struct tfc_object **)out);
}

// Takes over the part.
static tfc_status map_add(struct map *m, struct ops_sparse_part *part, int64_t *out_handle) {
  pthread_mutex_lock(&m->lock);
  bool ok = tfc_array_push(&m->kept, (struct kept){.handle = m->next, .part = *part});
  if (ok) {
    *out_handle = m->next++;
    m->live++;
  }
  pthread_mutex_unlock(&m->lock);
  if (ok) return NULL;
  ops_sparse_part_release(part);
  return tfc_status_no_memory(NULL);
}

// Called under the lock.
static struct kept *map_find(struct map *m, int64_t handle) {
  size_t low = 0, high = m->kept.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (m->kept.data[middle].handle < handle)
      low = middle + 1;
    else
      high = middle;
  }
  struct kept *k = low < m->kept.count ? &m->kept.data[low] : NULL;
  return k && k->handle == handle && !k->taken ? k : NULL;
}
static void map_compact(struct map *m) {
  if (m->live * 2 > m->kept.count) return;
  size_t n = 0;
  for (size_t i = 0; i < m->kept.count; i++)
    if (!m->kept.data[i].taken) m->kept.data[n++] = m->kept.data[i];
  m->kept.count = n;
}

// --- Kernels -------------------------------------------------------------------------------------------------------
static tfc_status add(struct tfc_kernel_ctx *ctx) {
  struct map *m = NULL;
  struct ops_sparse_part p = {0};
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_part_inputs(ctx, &p));
  tfc_status s = ops_sparse_part_check(&p, 0, p.values.dtype);
  int64_t total = 1;
  for (int64_t d = 0; !s && d < p.dims.shape.dims[0]; d++) {
    int64_t size = ((const int64_t *)p.dims.data)[d];
    if (size < 0 || __builtin_mul_overflow(total, size, &total))
      s = tfc_status_make(TFC_INVALID_ARGUMENT, "dimension %lld of the dense shape, %lld, is negative or too large",
                          (long long)d, (long long)size);
  }
  if (!s) s = tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE_SCALAR, &y);
  if (!s) s = map_of(ctx, &m);
  if (s)
    ops_sparse_part_release(&p);
  else
    s = map_add(m, &p, y->data);
  if (m) tfc_object_release(&m->object);
  return s;
}

static tfc_status add_many(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  struct map *m = NULL;
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_rows(ctx, &x));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE(x.dims[0]), &y));
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  int64_t *handles = y->data;
  for (int empty = 0; empty < 2; empty++) { // rows without elements get the last numbers
    int64_t at = 0;
    for (int64_t row = 0; row < x.dims[0]; row++) {
      struct ops_sparse_part p = {0};
      bool none = at == x.count || x.at[at * x.rank] != row;
      if (none != (bool)empty) {
        while (at < x.count && x.at[at * x.rank] == row) at++;
        continue;
      }
      TFC_TRY(s, ops_sparse_row(&x, row, &at, &p));
      TFC_TRY(s, map_add(m, &p, &handles[row]));
    }
  }
out:
  tfc_object_release(&m->object);
  return s;
}

static tfc_status take_many(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *handles = ctx->inputs[0];
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin + 1];
  struct map *m = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(handles->shape.rank == 1, "sparse_handles should be a vector but received shape %s",
                   tfc_shape_show(&handles->shape, (char[TFC_SHAPE_TEXT]){0}));
  int64_t n = handles->shape.dims[0], got = 0;
  TFC_KERNEL_CHECK(n > 0, "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
  struct ops_sparse_part *parts = calloc((size_t)n, sizeof *parts);
  if (!parts) return tfc_status_no_memory(NULL);
  TFC_TRY(s, map_of(ctx, &m));
  pthread_mutex_lock(&m->lock);
  for (; got < n; got++) {
    int64_t handle = ((const int64_t *)handles->data)[got];
    struct kept *k = map_find(m, handle);
    if (!k) {
      s = tfc_status_make(TFC_INVALID_ARGUMENT, "Unable to find SparseTensor: %lld in map: %.*s", (long long)handle,
                          TFC_STR_ARG(tfc_named_name(ctx)));
      break;
    }
    parts[got] = k->part;
    k->part = (struct ops_sparse_part){0};
    k->taken = true;
    m->live--;
  }
  map_compact(m);
  pthread_mutex_unlock(&m->lock);
  for (int64_t i = 0; !s && i < n; i++) s = ops_sparse_part_check(&parts[i], i, type);
  if (!s) s = ops_sparse_stack(ctx, parts, n, &TFC_SHAPE(n));
out:
  for (int64_t i = 0; i < got; i++) ops_sparse_part_release(&parts[i]);
  free(parts);
  if (m) tfc_object_release(&m->object);
  return s;
}

// --- Shapes --------------------------------------------------------------------------------------------------------
static tfc_status shape_add(struct tfc_shape_ctx *ctx) {
  struct tfc_shape s;
  for (uint32_t i = 0; i < 3; i++) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, i == 0 ? 2 : 1, &s));
  ctx->outputs[0] = tfc_str_is(ctx->node->op, "AddSparseToTensorsMap") ? TFC_SHAPE_SCALAR : TFC_SHAPE(TFC_DIM_UNKNOWN);
  return NULL;
}
static tfc_status shape_take(struct tfc_shape_ctx *ctx) {
  struct tfc_shape s;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &s));
  ctx->outputs[0] = tfc_shape_unknown_of_rank(2);
  ctx->outputs[1] = ctx->outputs[2] = tfc_shape_unknown_of_rank(1);
  return NULL;
}

#define FLAGS (TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE)
#define SPARSE "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
#define NAMED "container: string = '', shared_name: string = ''"
static const struct tfc_op_def sparse_map_rows[] = {
    {.name = "AddSparseToTensorsMap",
     .inputs = SPARSE,
     .outputs = "sparse_handle: int64",
     .attrs = "T: type, " NAMED,
     .flags = FLAGS,
     .shape = shape_add,
     .kernel = add},
    {.name = "AddManySparseToTensorsMap",
     .inputs = SPARSE,
     .outputs = "sparse_handles: int64",
     .attrs = "T: type, " NAMED,
     .flags = FLAGS,
     .shape = shape_add,
     .kernel = add_many},
    {.name = "TakeManySparseFromTensorsMap",
     .inputs = "sparse_handles: int64",
     .outputs = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     .attrs = "dtype: type, " NAMED,
     .flags = FLAGS,
     .shape = shape_take,
     .kernel = take_many},
};
TFC_REGISTER_OPS(sparse_map_rows);
