// Operations on checkpoints, which the graphs of a Saver consist of. runtime/io reads and writes the files.
#include <stdlib.h>
#include <unistd.h>

#include "runtime/io/checkpoint.h"
#include "runtime/io/checkpoint_v1.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

static tfc_status sharded_filename(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  for (uint32_t i = 0; i < 3; i++) TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 0, "input %u must be a scalar", i);
  struct tfc_text text = {0};
  tfc_text_add(&text, tfc_tensor_get_string(ctx->inputs[0], 0));
  tfc_text_printf(&text, "-%05lld-of-%05lld", (long long)ops_scalar_int(ctx->inputs[1]),
                  (long long)ops_scalar_int(ctx->inputs[2]));
  tfc_status s = tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y);
  if (!s) s = tfc_tensor_set_text(y, 0, &text);
  tfc_text_deinit(&text);
  return s;
}
static tfc_status sharded_filespec(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  struct tfc_text text = {0};
  for (uint32_t i = 0; i < 2; i++) TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 0, "input %u must be a scalar", i);
  tfc_text_add(&text, tfc_tensor_get_string(ctx->inputs[0], 0));
  tfc_text_printf(&text, "-?\?\?\?\?-of-%05lld", (long long)ops_scalar_int(ctx->inputs[1]));
  tfc_status s = tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y);
  if (!s) s = tfc_tensor_set_text(y, 0, &text);
  tfc_text_deinit(&text);
  return s;
}

// A slice is described as "10 20 0,5:-": the full shape, then for each dimension "begin,length", or "-" for all of it.
struct slice_spec {
  struct tfc_shape whole;
  int64_t starts[TFC_MAX_RANK], lengths[TFC_MAX_RANK];
};

static bool number(tfc_str *text, char end, int64_t *out) { // takes digits and the character behind them
  size_t n = tfc_str_find(*text, end), digits = n == SIZE_MAX ? text->size : n;
  int64_t value = 0;
  for (size_t i = 0; i < digits; i++) {
    if (text->data[i] < '0' || text->data[i] > '9' || value > (INT64_MAX - 9) / 10) return false;
    value = value * 10 + (text->data[i] - '0');
  }
  *out = value;
  *text = n == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(*text, n + 1, text->size);
  return digits > 0;
}

static tfc_status parse_slice(tfc_str spec, struct slice_spec *out) {
  size_t space = tfc_str_rfind(spec, ' ');
  struct slice_spec made = {.whole = TFC_SHAPE_SCALAR};
  tfc_str dims = space == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(spec, 0, space);
  tfc_str slices = space == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(spec, space + 1, spec.size);
  bool ok = space != SIZE_MAX;
  while (ok && dims.size) {
    int d = made.whole.rank;
    if (d == TFC_MAX_RANK || !number(&dims, ' ', &made.whole.dims[d])) {
      ok = false;
      break;
    }
    tfc_str one = tfc_str_take(&slices, ':');
    if (tfc_str_is(one, "-"))
      made.lengths[d] = made.whole.dims[d];
    else
      ok = tfc_str_find(one, ',') != SIZE_MAX && number(&one, ',', &made.starts[d]) &&
           number(&one, ',', &made.lengths[d]) && made.starts[d] <= made.whole.dims[d] &&
           made.lengths[d] <= made.whole.dims[d] - made.starts[d];
    made.whole.rank++;
  }
  if (!ok || slices.size)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "'%.*s' is not a shape and slice, like '10 20 0,5:-' for the first half of [10,20]",
                           TFC_STR_ARG(spec));
  *out = made;
  return NULL;
}
static tfc_status shape_restore(struct tfc_shape_ctx *ctx) {
  const struct tfc_tensor *slices = ctx->input_values ? ctx->input_values[2] : NULL;
  for (uint32_t i = 0; i < ctx->node->output_count; i++) {
    ctx->outputs[i] = TFC_SHAPE_UNKNOWN;
    if (!slices || slices->dtype != TFC_STRING || i >= tfc_tensor_elements(slices)) continue;
    struct slice_spec spec;
    tfc_str text = tfc_tensor_get_string(slices, i);
    if (!text.size) continue;
    TFC_RETURN_IF_ERROR(parse_slice(text, &spec));
    ctx->outputs[i].rank = spec.whole.rank;
    for (int d = 0; d < spec.whole.rank; d++) ctx->outputs[i].dims[d] = spec.lengths[d];
  }
  return NULL;
}

// --- Saving and restoring ----------------------------------------------------------------------------------------
// Checks inputs 0 to 2: one prefix, and a name and a slice for each tensor.
static tfc_status check_names(const struct tfc_kernel_ctx *ctx, uint32_t tensors, bool sliced) {
  const struct tfc_tensor *prefix = ctx->inputs[0], *names = ctx->inputs[1], *slices = ctx->inputs[sliced ? 2 : 1];
  TFC_KERNEL_CHECK(tfc_tensor_elements(prefix) == 1, "Input prefix should have a single element, got %lld instead",
                   (long long)tfc_tensor_elements(prefix));
  TFC_KERNEL_CHECK(names->shape.rank == 1 && slices->shape.rank == 1,
                   "Input tensor_names and shape_and_slices should be an 1-D tensor");
  TFC_KERNEL_CHECK(tfc_tensor_elements(names) == tfc_tensor_elements(slices) && tfc_tensor_elements(names) == tensors,
                   "%lld names and %lld slices for %u tensors", (long long)tfc_tensor_elements(names),
                   (long long)tfc_tensor_elements(slices), tensors);
  return NULL;
}

// Saves the inputs from `from` on; `slices`: input 2 describes the slice that each is.
static tfc_status save(struct tfc_kernel_ctx *ctx, uint32_t from, bool slices,
                       tfc_status (*write)(const char *, const struct tfc_checkpoint_item *, size_t)) {
  tfc_status s = NULL;
  uint32_t n = ctx->input_count - from;
  TFC_RETURN_IF_ERROR(check_names(ctx, n, slices));
  struct tfc_checkpoint_item *items = calloc(n + 1u, sizeof *items);
  struct slice_spec *specs = calloc(n + 1u, sizeof *specs);
  char *prefix = tfc_str_dup(tfc_tensor_get_string(ctx->inputs[0], 0));
  if (!items || !specs || !prefix) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < n; i++) {
    const struct tfc_tensor *t = ctx->inputs[i + from];
    tfc_str name = tfc_tensor_get_string(ctx->inputs[1], i),
            slice = slices ? tfc_tensor_get_string(ctx->inputs[2], i) : (tfc_str){0};
    items[i] = (struct tfc_checkpoint_item){.name = name, .tensor = t};
    if (!slice.size) continue;
    s = parse_slice(slice, &specs[i]);
    bool fits = !s && t->shape.rank == specs[i].whole.rank;
    for (int d = 0; fits && d < t->shape.rank; d++) fits = t->shape.dims[d] == specs[i].lengths[d];
    if (!s && !fits)
      s = tfc_status_make(TFC_INVALID_ARGUMENT,
                          "Slice in shape_and_slice specification does not match the shape of "
                          "the tensor to save: %.*s, tensor: %s",
                          TFC_STR_ARG(slice), tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
    if (s) {
      s = tfc_status_annotate(s, "tensor '%.*s'", TFC_STR_ARG(name));
      goto out;
    }
    items[i].whole = &specs[i].whole;
    items[i].offsets = specs[i].starts;
  }
  s = write(prefix, items, n);
out:
  free(items);
  free(specs);
  free(prefix);
  return s;
}
static tfc_status save_v2(struct tfc_kernel_ctx *ctx) {
  return save(ctx, 3, true, tfc_checkpoint_write);
}
static tfc_status save_v1(struct tfc_kernel_ctx *ctx) {
  return save(ctx, 2, false, tfc_checkpoint_v1_write);
}
static tfc_status save_slices(struct tfc_kernel_ctx *ctx) {
  return save(ctx, 3, true, tfc_checkpoint_v1_write);
}

// Reads output `i` from a file of the first format.
static tfc_status restore_v1_one(struct tfc_kernel_ctx *ctx, const struct tfc_checkpoint_v1 *c, uint32_t i,
                                 tfc_str name, tfc_str slice) {
  struct tfc_tensor value = {0};
  struct slice_spec spec;
  struct tfc_shape shape;
  tfc_dtype dtype, want = ctx->graph->output_dtypes[ctx->node->output_begin + i];
  TFC_RETURN_IF_ERROR(tfc_checkpoint_v1_find(c, name, &dtype, &shape));
  TFC_KERNEL_CHECK(dtype == want, "Expected to restore a tensor of type %s, got a tensor of type %s instead",
                   tfc_dtype_name(want), tfc_dtype_name(dtype));
  if (slice.size) {
    TFC_RETURN_IF_ERROR(parse_slice(slice, &spec));
    TFC_KERNEL_CHECK(tfc_shape_equal(&spec.whole, &shape),
                     "Shape in shape_and_slice spec %s does not match the shape in the save file: %s",
                     tfc_shape_show(&spec.whole, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}));
    TFC_RETURN_IF_ERROR(tfc_checkpoint_v1_read(c, name, spec.starts, spec.lengths, &value));
  } else {
    TFC_RETURN_IF_ERROR(tfc_checkpoint_v1_read(c, name, NULL, NULL, &value));
  }
  tfc_status s = tfc_kernel_set_output(ctx, i, &value);
  tfc_tensor_release(&value);
  return s;
}
static tfc_status restore_v1(struct tfc_kernel_ctx *ctx) {
  tfc_status s = NULL;
  struct tfc_checkpoint_v1 *c = NULL;
  for (uint32_t i = 0; i < ctx->input_count; i++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[i]) == 1, "Input %u must be a string scalar", i);
  char *pattern = tfc_str_dup(tfc_tensor_get_string(ctx->inputs[0], 0));
  if (!pattern) return tfc_status_no_memory(NULL);
  TFC_TRY(s, tfc_checkpoint_v1_open(pattern, &c));
  s = restore_v1_one(ctx, c, 0, tfc_tensor_get_string(ctx->inputs[1], 0),
                     ctx->input_count > 2 ? tfc_tensor_get_string(ctx->inputs[2], 0) : (tfc_str){0});
out:
  tfc_checkpoint_v1_close(c);
  free(pattern);
  return s;
}
static tfc_status shape_restore_v1(struct tfc_shape_ctx *ctx) {
  const struct tfc_tensor *slice = ctx->input_values && ctx->node->input_count > 2 ? ctx->input_values[2] : NULL;
  struct slice_spec spec;
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (!slice || slice->dtype != TFC_STRING || tfc_tensor_elements(slice) != 1) return NULL;
  tfc_str text = tfc_tensor_get_string(slice, 0);
  if (!text.size) return NULL;
  TFC_RETURN_IF_ERROR(parse_slice(text, &spec));
  ctx->outputs[0].rank = spec.whole.rank;
  for (int d = 0; d < spec.whole.rank; d++) ctx->outputs[0].dims[d] = spec.lengths[d];
  return NULL;
}

static tfc_status restore_one(struct tfc_kernel_ctx *ctx, struct tfc_checkpoint *c, uint32_t i) {
  tfc_str name = tfc_tensor_get_string(ctx->inputs[1], i), slice = tfc_tensor_get_string(ctx->inputs[2], i);
  const struct tfc_checkpoint_entry *e = tfc_checkpoint_find(c, name);
  struct tfc_tensor value = {0};
  struct slice_spec spec;
  tfc_dtype want = ctx->graph->output_dtypes[ctx->node->output_begin + i];
  if (!e) return tfc_status_make(TFC_NOT_FOUND, "Key %.*s not found in checkpoint", TFC_STR_ARG(name));
  TFC_KERNEL_CHECK(e->dtype == want, "tensor_name = %.*s; expected dtype %s does not equal original dtype %s",
                   TFC_STR_ARG(name), tfc_dtype_name(want), tfc_dtype_name(e->dtype));
  if (slice.size) {
    TFC_RETURN_IF_ERROR(parse_slice(slice, &spec));
    TFC_KERNEL_CHECK(tfc_shape_equal(&spec.whole, &e->shape),
                     "tensor_name = %.*s; shape in shape_and_slice spec %s does not match the shape stored in "
                     "checkpoint: %s",
                     TFC_STR_ARG(name), tfc_shape_show(&spec.whole, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&e->shape, (char[TFC_SHAPE_TEXT]){0}));
    TFC_RETURN_IF_ERROR(tfc_checkpoint_read_slice(c, name, spec.whole.rank, spec.starts, spec.lengths, &value));
  } else {
    TFC_RETURN_IF_ERROR(tfc_checkpoint_read(c, name, &value));
  }
  tfc_status s = tfc_kernel_set_output(ctx, i, &value);
  tfc_tensor_release(&value);
  return s;
}

static tfc_status restore_v2(struct tfc_kernel_ctx *ctx) {
  tfc_status s = NULL;
  struct tfc_checkpoint *c = NULL;
  TFC_RETURN_IF_ERROR(check_names(ctx, ctx->output_count, true));
  char *prefix = tfc_str_dup(tfc_tensor_get_string(ctx->inputs[0], 0));
  if (!prefix) return tfc_status_no_memory(NULL);
  struct tfc_checkpoint_v1 *old = NULL;
  s = tfc_checkpoint_open(prefix, &c);
  if (s && tfc_status_code(s) == TFC_NOT_FOUND && access(prefix, R_OK) == 0) {
    // The prefix is a file of the first format.
    tfc_status_free(s);
    s = tfc_checkpoint_v1_open(prefix, &old);
  }
  for (uint32_t i = 0; !s && i < ctx->output_count; i++)
    s = old ? restore_v1_one(ctx, old, i, tfc_tensor_get_string(ctx->inputs[1], i),
                             tfc_tensor_get_string(ctx->inputs[2], i))
            : restore_one(ctx, c, i);
  tfc_checkpoint_v1_close(old);
  tfc_checkpoint_close(c);
  free(prefix);
  return s;
}

// Returns the length of the folder in front of a path's last '/'.
static size_t folder(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) : 0;
}

static tfc_status merge_v2(struct tfc_kernel_ctx *ctx) {
  tfc_status s = NULL;
  const struct tfc_tensor *parts = ctx->inputs[0];
  TFC_KERNEL_CHECK(parts->shape.rank == 1, "Input checkpoint_prefixes should be an 1-D tensor");
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "Input destination_prefix should be a scalar");
  size_t n = (size_t)tfc_tensor_elements(parts);
  char **prefixes = calloc(n + 1, sizeof *prefixes), *to = tfc_str_dup(tfc_tensor_get_string(ctx->inputs[1], 0));
  for (size_t i = 0; prefixes && to && i < n; i++)
    if (!(prefixes[i] = tfc_str_dup(tfc_tensor_get_string(parts, (int64_t)i)))) break;
  if (!prefixes || !to || (n && !prefixes[n - 1])) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_checkpoint_merge((const char *const *)prefixes, n, to,
                                  tfc_node_attr_bool(ctx->graph, ctx->node, "allow_missing_files", false)));
  for (size_t i = 0; tfc_node_attr_bool(ctx->graph, ctx->node, "delete_old_dirs", true) && i < n; i++) {
    size_t size = folder(prefixes[i]);
    if (!size || (size == folder(to) && !memcmp(prefixes[i], to, size))) continue;
    prefixes[i][size] = 0;
    rmdir(prefixes[i]); // removes the folder only if it is empty
  }
out:
  for (size_t i = 0; prefixes && i < n; i++) free(prefixes[i]);
  free(prefixes);
  free(to);
  return s;
}

#define IO(shape_, kernel_) .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
#define RESTORE .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_restore, .kernel = restore_v2
static const struct tfc_op_def io_checkpoint_rows[] = {
    {.name = "ShardedFilename",
     .inputs = "basename: string, shard: int32, num_shards: int32",
     .outputs = "filename: string",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(ops_shape_scalar, sharded_filename)},
    {.name = "ShardedFilespec",
     .inputs = "basename: string, num_shards: int32",
     .outputs = "filename: string",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(ops_shape_scalar, sharded_filespec)},
    {.name = "SaveV2",
     .inputs = "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes",
     .attrs = "dtypes: list(type) >= 1",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(ops_shape_none, save_v2)},
    {.name = "Save",
     .inputs = "filename: string, tensor_names: string, data: T",
     .attrs = "T: list(type) >= 1",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(ops_shape_none, save_v1)},
    {.name = "SaveSlices",
     .inputs = "filename: string, tensor_names: string, shapes_and_slices: string, data: T",
     .attrs = "T: list(type) >= 1",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(ops_shape_none, save_slices)},
    {.name = "Restore",
     .inputs = "file_pattern: string, tensor_name: string",
     .outputs = "tensor: dt",
     .attrs = "dt: type, preferred_shard: int = -1",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(shape_restore_v1, restore_v1),
     .effect = TFC_EFFECT_RESTORE},
    {.name = "RestoreSlice",
     .inputs = "file_pattern: string, tensor_name: string, shape_and_slice: string",
     .outputs = "tensor: dt",
     .attrs = "dt: type, preferred_shard: int = -1",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(shape_restore_v1, restore_v1),
     .effect = TFC_EFFECT_RESTORE},
    {.name = "RestoreV2",
     .inputs = "prefix: string, tensor_names: string, shape_and_slices: string",
     .outputs = "tensors: dtypes",
     .attrs = "dtypes: list(type) >= 1",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     RESTORE,
     .effect = TFC_EFFECT_RESTORE},
    {.name = "MergeV2Checkpoints",
     .inputs = "checkpoint_prefixes: string, destination_prefix: string",
     .attrs = "delete_old_dirs: bool = true, allow_missing_files: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(ops_shape_none, merge_v2)},
};
TFC_REGISTER_OPS(io_checkpoint_rows);
