// Operations that hash strings into buckets: StringToHashBucket (MurmurHash) and StringToHashBucketStrong (SipHash).
// string_convert.c has the one that uses FarmHash.
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"
#include "runtime/ops/string_hash.h"

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
  return into_buckets(ctx, tfc_murmur_hash64, NULL);
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
