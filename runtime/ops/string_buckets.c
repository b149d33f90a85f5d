// Operations that hash strings into buckets: StringToHashBucket (MurmurHash64A, Appleby 2008) and
// StringToHashBucketStrong (SipHash-2-4 with a secret key, Aumasson and Bernstein 2012). string_convert.c has the one
// that uses FarmHash.
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"
#include "runtime/ops/string_hash.h"

static uint64_t word_at(const char *p, size_t n) { // up to 8 bytes, the first one lowest
  uint64_t v = 0;
  for (size_t i = 0; i < n; i++) v |= (uint64_t)(uint8_t)p[i] << (8 * i);
  return v;
}

static uint64_t murmur(tfc_str s, const uint64_t *unused) {
  const uint64_t m = 0xc6a4a7935bd1e995u;
  uint64_t h = 0xDECAFCAFFEu ^ s.size * m;
  size_t i = 0;
  (void)unused;
  for (; i + 8 <= s.size; i += 8) {
    uint64_t k = word_at(s.data + i, 8) * m;
    k = (k ^ k >> 47) * m;
    h = (h ^ k) * m;
  }
  if (i < s.size) h = (h ^ word_at(s.data + i, s.size - i)) * m;
  h = (h ^ h >> 47) * m;
  return h ^ h >> 47;
}

static uint64_t rotate(uint64_t v, int by) {
  return v << by | v >> (64 - by);
}
static void round_of(uint64_t v[4]) {
  v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
  v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
  v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
  v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
}
uint64_t tfc_keyed_hash64(tfc_str s, const uint64_t *key) {
  uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                   key[1] ^ 0x7465646279746573u};
  for (size_t i = 0;; i += 8) {
    bool last = i + 8 > s.size;
    uint64_t m = word_at(s.size ? s.data + i : "", last ? s.size - i : 8) | (last ? (uint64_t)s.size << 56 : 0);
    v[3] ^= m;
    round_of(v);
    round_of(v);
    v[0] ^= m;
    if (last) break;
  }
  v[2] ^= 0xff;
  for (int i = 0; i < 4; i++) round_of(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static tfc_status into_buckets(struct tfc_kernel_ctx *ctx, uint64_t (*hash)(tfc_str, const uint64_t *),
                               const uint64_t *key) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  int64_t buckets = tfc_node_attr_int(ctx->graph, ctx->node, "num_buckets", 1);
  TFC_KERNEL_CHECK(buckets >= 1, "num_buckets is %lld", (long long)buckets);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &x->shape, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++)
    ((int64_t *)y->data)[i] = (int64_t)(hash(tfc_tensor_get_string(x, i), key) % (uint64_t)buckets);
  return NULL;
}
static tfc_status bucket(struct tfc_kernel_ctx *ctx) {
  return into_buckets(ctx, murmur, NULL);
}
static tfc_status bucket_strong(struct tfc_kernel_ctx *ctx) {
  const struct tfc_attr *key = tfc_node_attr(ctx->graph, ctx->node, "key");
  TFC_KERNEL_CHECK(key && key->count == 2, "Key must have 2 elements");
  return into_buckets(ctx, tfc_keyed_hash64, (uint64_t[]){(uint64_t)key->ints[0], (uint64_t)key->ints[1]});
}

static const struct tfc_op_def string_buckets_rows[] = {
    {.name = "StringToHashBucket",
     .inputs = "string_tensor: string",
     .outputs = "output: int64",
     .attrs = "num_buckets: int >= 1",
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = ops_shape_same,
     .kernel = bucket,
     .samples = "string[3] {num_buckets=5}"},
    {.name = "StringToHashBucketStrong",
     .inputs = "input: string",
     .outputs = "output: int64",
     .attrs = "num_buckets: int >= 1, key: list(int)",
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = ops_shape_same,
     .kernel = bucket_strong},
};
TFC_REGISTER_OPS(string_buckets_rows);
