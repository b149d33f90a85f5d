// Datasets that pass on elements of others unchanged: take, skip, shard, repeat, concatenate, zip.
#include "runtime/ops/data_dataset.h"

static tfc_status hand_on(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                          bool *ended) {
  return tfc_dataset_next(ctx, it->inputs[0], parts, ended);
}
static tfc_status drop_one(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                           bool *ended) {
  TFC_RETURN_IF_ERROR(tfc_dataset_next(ctx, it->inputs[0], parts, ended));
  if (!*ended) tfc_dataset_parts_clear(parts, it->dataset->parts);
  return NULL;
}

// n[0] is the number of elements to take, -1 for all. The state is how many were taken.
static tfc_status take_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                            bool *ended) {
  int64_t *taken = tfc_dataset_state(it), most = it->dataset->n[0];
  if (most >= 0 && *taken >= most) {
    *ended = true;
    return NULL;
  }
  ++*taken;
  return hand_on(ctx, it, parts, ended);
}
static tfc_status skip_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                            bool *ended) {
  int64_t *skipped = tfc_dataset_state(it), count = it->dataset->n[0];
  if (count < 0) { // skip all of them
    *ended = true;
    return NULL;
  }
  for (; *skipped < count; ++*skipped) {
    TFC_RETURN_IF_ERROR(drop_one(ctx, it, parts, ended));
    if (*ended) return NULL;
  }
  return hand_on(ctx, it, parts, ended);
}

// Gives every n[0]th element, beginning with number n[1]. n[2]: an error if a shard would have no element.
static tfc_status shard_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                             bool *ended) {
  int64_t *at = tfc_dataset_state(it);
  const int64_t *n = it->dataset->n;
  for (;; ++*at) {
    const bool mine = *at % n[0] == n[1];
    TFC_RETURN_IF_ERROR(mine ? hand_on(ctx, it, parts, ended) : drop_one(ctx, it, parts, ended));
    TFC_KERNEL_CHECK(
        !*ended || !n[2] || *at >= n[0],
        "dataset '%s' (Shard): Could not apply sharding policy: there are fewer elements than shards (%lld)",
        it->dataset->node, (long long)n[0]);
    if (!*ended && !mine) continue;
    *at += !*ended;
    return NULL;
  }
}

// n[0]: how many times, -1 for ever.
struct repeat {
  int64_t round;
  bool any; // this round has given an element
};
static tfc_status repeat_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                              bool *ended) {
  struct repeat *r = tfc_dataset_state(it);
  const int64_t times = it->dataset->n[0];
  while (times < 0 || r->round < times) {
    if (!it->inputs[0]) TFC_RETURN_IF_ERROR(tfc_dataset_open(ctx, it->dataset->inputs[0], &it->inputs[0]));
    TFC_RETURN_IF_ERROR(hand_on(ctx, it, parts, ended));
    if (!*ended) {
      r->any = true;
      return NULL;
    }
    tfc_dataset_close(it->inputs[0]);
    it->inputs[0] = NULL;
    if (times < 0 && !r->any) return NULL;
    r->any = false;
    r->round++;
  }
  *ended = true;
  return NULL;
}

static tfc_status concatenate_begin(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it) {
  return tfc_dataset_open(ctx, it->dataset->inputs[0], &it->inputs[0]);
}
static tfc_status concatenate_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it,
                                   struct tfc_tensor *parts, bool *ended) {
  if (it->inputs[0]) {
    TFC_RETURN_IF_ERROR(hand_on(ctx, it, parts, ended));
    if (!*ended) return NULL;
    tfc_dataset_close(it->inputs[0]);
    it->inputs[0] = NULL;
    TFC_RETURN_IF_ERROR(tfc_dataset_open(ctx, it->dataset->inputs[1], &it->inputs[1]));
  }
  *ended = !it->inputs[1];
  return *ended ? NULL : tfc_dataset_next(ctx, it->inputs[1], parts, ended);
}

static tfc_status zip_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                           bool *ended) {
  uint32_t at = 0;
  tfc_status s = NULL;
  for (uint32_t i = 0; i < it->dataset->input_count && !s && !*ended; at += it->dataset->inputs[i++]->parts)
    s = tfc_dataset_next(ctx, it->inputs[i], parts + at, ended);
  return s;
}

static const struct tfc_dataset_kind take_kind = {.name = "Take", .state = sizeof(int64_t), .next = take_next};
static const struct tfc_dataset_kind skip_kind = {.name = "Skip", .state = sizeof(int64_t), .next = skip_next};
static const struct tfc_dataset_kind shard_kind = {.name = "Shard", .state = sizeof(int64_t), .next = shard_next};
static const struct tfc_dataset_kind repeat_kind = {
    .name = "Repeat", .state = sizeof(struct repeat), .next = repeat_next};
static const struct tfc_dataset_kind concatenate_kind = {
    .name = "Concatenate", .opens = true, .begin = concatenate_begin, .next = concatenate_next};
static const struct tfc_dataset_kind zip_kind = {.name = "Zip", .next = zip_next};

static tfc_status same_parts(const struct tfc_dataset *d, uint32_t have) {
  if (have == d->parts) return NULL;
  return tfc_status_make(TFC_INVALID_ARGUMENT, "elements of %u components are read, the node says %u", have, d->parts);
}

static tfc_status one_number(struct tfc_kernel_ctx *ctx, const struct tfc_dataset_kind *kind) {
  struct tfc_dataset *d = NULL;
  int64_t count;
  TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 1, "count", &count));
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, kind, 1, 0, 0, &d));
  d->n[0] = count;
  tfc_status s = same_parts(d, d->inputs[0]->parts);
  if (!s) return tfc_dataset_output(ctx, d);
  tfc_object_release(&d->object);
  return s;
}
static tfc_status take(struct tfc_kernel_ctx *ctx) {
  return one_number(ctx, &take_kind);
}
static tfc_status skip(struct tfc_kernel_ctx *ctx) {
  return one_number(ctx, &skip_kind);
}
static tfc_status repeat(struct tfc_kernel_ctx *ctx) {
  return one_number(ctx, &repeat_kind);
}
static tfc_status shard(struct tfc_kernel_ctx *ctx) {
  struct tfc_dataset *d = NULL;
  int64_t shards, index;
  TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 1, "num_shards", &shards));
  TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 2, "index", &index));
  TFC_KERNEL_CHECK(shards > 0, "Number of shards must be greater than zero (currently num_shards = %lld).",
                   (long long)shards);
  TFC_KERNEL_CHECK(index >= 0 && index < shards, "Index must be between 0 and %lld (currently index = %lld).",
                   (long long)shards - 1, (long long)index);
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &shard_kind, 1, 0, 0, &d));
  d->n[0] = shards, d->n[1] = index;
  d->n[2] = tfc_node_attr_bool(ctx->graph, ctx->node, "require_non_empty", false);
  tfc_status s = same_parts(d, d->inputs[0]->parts);
  if (!s) return tfc_dataset_output(ctx, d);
  tfc_object_release(&d->object);
  return s;
}
static tfc_status several(struct tfc_kernel_ctx *ctx, const struct tfc_dataset_kind *kind) {
  struct tfc_dataset *d = NULL;
  tfc_status s = NULL;
  uint32_t parts = 0;
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, kind, ctx->input_count, 0, 0, &d));
  for (uint32_t i = 0; i < d->input_count; i++) parts += d->inputs[i]->parts;
  if (kind == &zip_kind) TFC_TRY(s, same_parts(d, parts));
  for (uint32_t i = 0; i < d->input_count && kind != &zip_kind; i++) TFC_TRY(s, same_parts(d, d->inputs[i]->parts));
  return tfc_dataset_output(ctx, d);
out:
  tfc_object_release(&d->object);
  return s;
}
static tfc_status concatenate(struct tfc_kernel_ctx *ctx) {
  return several(ctx, &concatenate_kind);
}
static tfc_status zip(struct tfc_kernel_ctx *ctx) {
  return several(ctx, &zip_kind);
}

// Operations that only say how fast a pipeline should run return the dataset itself.
static tfc_status same(struct tfc_kernel_ctx *ctx) {
  struct tfc_dataset *d = NULL;
  TFC_RETURN_IF_ERROR(tfc_dataset_of(ctx->inputs[0], &d));
  return tfc_kernel_set_output(ctx, 0, ctx->inputs[0]);
}

#define KINDS TFC_DATASET_KINDS
#define MORE TFC_DATASET_MORE
#define ROW TFC_DATASET_ROW
static const struct tfc_op_def data_dataset_order_rows[] = {
    ROW("TakeDataset", "input_dataset: variant, count: int64", KINDS MORE, take),
    ROW("SkipDataset", "input_dataset: variant, count: int64", KINDS MORE, skip),
    ROW("RepeatDataset", "input_dataset: variant, count: int64", KINDS MORE, repeat),
    ROW("ShardDataset", "input_dataset: variant, num_shards: int64, index: int64",
        "require_non_empty: bool = false, " KINDS MORE, shard),
    ROW("ConcatenateDataset", "input_dataset: variant, another_dataset: variant", KINDS MORE, concatenate),
    ROW("ZipDataset", "input_datasets: N * variant", KINDS ", N: int >= 1" MORE, zip),
    ROW("PrefetchDataset", "input_dataset: variant, buffer_size: int64",
        KINDS ", slack_period: int = 0, legacy_autotune: bool = true, buffer_size_min: int = 0" MORE, same),
    ROW("OptionsDataset", "input_dataset: variant", "serialized_options: string, " KINDS MORE, same),
    ROW("ModelDataset", "input_dataset: variant",
        "algorithm: int = 0, cpu_budget: int = 0, ram_budget: int = 0, " KINDS, same),
    ROW("OptimizeDataset", "input_dataset: variant, optimizations: string",
        KINDS ", optimization_configs: list(string) = []", same),
    ROW("OptimizeDatasetV2",
        "input_dataset: variant, optimizations_enabled: string, optimizations_disabled: string, optimizations_default: "
        "string",
        KINDS ", optimization_configs: list(string) = []", same),
    ROW("FinalizeDataset", "input_dataset: variant", "has_captured_ref: bool = false, " KINDS, same),
    ROW("MaxIntraOpParallelismDataset", "input_dataset: variant, max_intra_op_parallelism: int64", KINDS, same),
    ROW("PrivateThreadPoolDataset", "input_dataset: variant, num_threads: int64", KINDS, same),
    ROW("NonSerializableDataset", "input_dataset: variant", KINDS, same),
};
TFC_REGISTER_OPS(data_dataset_order_rows);
