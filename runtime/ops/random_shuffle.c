// RandomIndexShuffle: the position of an index in a random permutation of 0 .. max_index. The permutation is the block
// cipher Simon (Beaulieu et al. 2013) on the smallest even number of bits that holds max_index, but at least 16. The
// cipher is applied again and again until the result is at most max_index.
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

enum { MOST_ROUNDS = 1024 };
struct cipher {
  int width; // of half a block, in bits
  int64_t rounds;
  uint64_t mask, keys[MOST_ROUNDS];
};

static uint64_t turn_left(const struct cipher *c, uint64_t x, int by) {
  by %= c->width;
  return ((x << by) | (x >> (c->width - by))) & c->mask;
}
static uint64_t turn_right(const struct cipher *c, uint64_t x, int by) {
  return turn_left(c, x, c->width - by % c->width);
}
static void set_key(struct cipher *c, const uint32_t *key) {
  uint64_t sequence = UINT64_C(0x7369f885192c0ef5) & c->mask; // cut to the bits of half a block
  for (int64_t i = 0; i < c->rounds; i++) {
    if (i < 3) {
      c->keys[i] = key[i] & c->mask;
      continue;
    }
    c->keys[i] = (UINT64_C(0xfffffffc) & c->mask) ^ (sequence & 1) ^ c->keys[i - 3] ^ turn_right(c, c->keys[i - 1], 3) ^
                 turn_right(c, c->keys[i - 1], 4);
    sequence >>= 1;
  }
}
static uint64_t mix(const struct cipher *c, uint64_t x) {
  return (turn_left(c, x, 1) & turn_left(c, x, 8)) ^ turn_left(c, x, 2);
}
static uint64_t encrypt(const struct cipher *c, uint64_t value) {
  uint64_t high = value >> c->width & c->mask, low = value & c->mask;
  for (int64_t i = 0; i + 1 < c->rounds; i += 2) {
    high ^= mix(c, low) ^ c->keys[i];
    low ^= mix(c, high) ^ c->keys[i + 1];
  }
  return high << c->width | low;
}

static tfc_status random_index_shuffle(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *index = ctx->inputs[0], *seed = ctx->inputs[1], *most = ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  const int64_t rounds = tfc_node_attr_int(ctx->graph, ctx->node, "rounds", 4);
  const int64_t n = tfc_tensor_elements(index);
  const bool seeds = seed->shape.rank == 2, mosts = most->shape.rank == 1;
  TFC_KERNEL_CHECK(rounds >= 4 && rounds % 2 == 0 && rounds <= MOST_ROUNDS,
                   "rounds must be an even number of at least 4, got %lld", (long long)rounds);
  TFC_KERNEL_CHECK(index->shape.rank <= 1, "Index must be a scalar or vector.");
  TFC_KERNEL_CHECK((seeds || seed->shape.rank == 1) && seed->shape.dims[seed->shape.rank - 1] == 3,
                   "Seed must be a vector of 3 elements or a matrix of 3 columns.");
  TFC_KERNEL_CHECK(most->shape.rank <= 1, "Maxval must be a scalar or vector.");
  int64_t count = n; // how many results: inputs that are vectors have as many elements, a scalar is used for all
  if (index->shape.rank == 0 && mosts) count = most->shape.dims[0];
  if (index->shape.rank == 0 && seeds) count = seed->shape.dims[0];
  TFC_KERNEL_CHECK((index->shape.rank == 0 || n == count) && (!seeds || seed->shape.dims[0] == count) &&
                       (!mosts || most->shape.dims[0] == count),
                   "Index, seed and maxval must be scalars or of one length");
  const bool scalar = index->shape.rank == 0 && !seeds && !mosts;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, index->dtype, scalar ? &TFC_SHAPE_SCALAR : &TFC_SHAPE(count), &y));
  struct cipher c = {.rounds = rounds};
  for (int64_t i = 0; i < count; i++) {
    const uint64_t last = (uint64_t)tfc_tensor_int(most, mosts ? i : 0);
    uint64_t at = (uint64_t)tfc_tensor_int(index, index->shape.rank ? i : 0);
    uint32_t key[3];
    TFC_KERNEL_CHECK(at <= last, "Max index must be at least index, got %llu for %llu", (unsigned long long)last,
                     (unsigned long long)at);
    for (int k = 0; k < 3; k++) key[k] = (uint32_t)tfc_tensor_int(seed, (seeds ? 3 * i : 0) + k);
    int bits = 16;
    while (bits < 64 && last >> bits) bits += 2;
    c.width = bits / 2;
    c.mask = (UINT64_C(1) << c.width) - 1;
    set_key(&c, key);
    do at = encrypt(&c, at);
    while (at > last);
    if (tfc_dtype_size(y->dtype) == 4)
      ((uint32_t *)y->data)[i] = (uint32_t)at;
    else
      ((uint64_t *)y->data)[i] = at;
  }
  return NULL;
}

static tfc_status shape_shuffle(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *index = ctx->inputs[0], *seed = ctx->inputs[1], *most = ctx->inputs[2];
  if (index->rank < 0 || seed->rank < 0 || most->rank < 0) return NULL;
  if (index->rank > 1 || seed->rank < 1 || seed->rank > 2 || most->rank > 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "index, seed or max_index has the wrong rank");
  int64_t n = TFC_DIM_UNKNOWN;
  if (index->rank) TFC_RETURN_IF_ERROR(tfc_dim_merge(n, index->dims[0], &n));
  if (seed->rank == 2) TFC_RETURN_IF_ERROR(tfc_dim_merge(n, seed->dims[0], &n));
  if (most->rank) TFC_RETURN_IF_ERROR(tfc_dim_merge(n, most->dims[0], &n));
  ctx->outputs[0] = index->rank || seed->rank == 2 || most->rank ? TFC_SHAPE(n) : TFC_SHAPE_SCALAR;
  return NULL;
}

static const struct tfc_op_def random_shuffle_rows[] = {
    {.name = "RandomIndexShuffle",
     .inputs = "index: dtype, seed: Tseed, max_index: dtype",
     .outputs = "output: dtype",
     .attrs = "rounds: int = 4, dtype: {int32, uint32, int64, uint64}, Tseed: {int32, uint32, int64, uint64}",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_shuffle,
     .kernel = random_index_shuffle,
     .samples = "int32[]=3, int32[3]=[1,2,3], int32[]=10; int64[4]=[0,1,2,3], int64[3]=[1,2,3], int64[]=3"},
};
TFC_REGISTER_OPS(random_shuffle_rows);
