// Operations with regular expressions; like TensorFlow, they use RE2.
#include <stdlib.h>

#include "runtime/base/pattern.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

static tfc_status compile(tfc_str pattern, struct tfc_pattern **out) {
  char why[160];
  *out = tfc_pattern_make(pattern.data, pattern.size, why, sizeof why);
  // A pattern may be megabytes long: the message shows only its beginning.
  return *out ? NULL
              : tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid pattern: %.*s%s, error: %s",
                                TFC_STR_ARG(tfc_str_sub(pattern, 0, 200)), pattern.size > 200 ? "..." : "", why);
}

static tfc_status full_match_with(struct tfc_kernel_ctx *ctx, tfc_str text) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct tfc_pattern *pattern = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &x->shape, &y));
  TFC_RETURN_IF_ERROR(compile(text, &pattern));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    tfc_str s = tfc_tensor_get_string(x, i);
    ((bool *)y->data)[i] = tfc_pattern_matches(pattern, s.data, s.size);
  }
  tfc_pattern_free(pattern);
  return NULL;
}

static tfc_status replace_with(struct tfc_kernel_ctx *ctx, tfc_str text, tfc_str rewrite) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct tfc_pattern *pattern = NULL;
  bool all = tfc_node_attr_bool(ctx->graph, ctx->node, "replace_global", true);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  TFC_RETURN_IF_ERROR(compile(text, &pattern));
  tfc_status s = NULL;
  for (int64_t i = 0; !s && i < tfc_tensor_elements(x); i++) {
    size_t size = 0;
    tfc_str from = tfc_tensor_get_string(x, i);
    char *to = tfc_pattern_replace(pattern, from.data, from.size, rewrite.data, rewrite.size, all, &size);
    s = to ? tfc_tensor_set_string(y, i, (tfc_str){to, size}) : tfc_status_no_memory("replacing in strings");
    free(to);
  }
  tfc_pattern_free(pattern);
  return s;
}

static tfc_status scalar_string(struct tfc_kernel_ctx *ctx, uint32_t i, tfc_str *out) {
  TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 0, "input %u must be a scalar", i);
  *out = tfc_tensor_get_string(ctx->inputs[i], 0);
  return NULL;
}
static tfc_status static_full_match(struct tfc_kernel_ctx *ctx) {
  return full_match_with(ctx, tfc_node_attr_string(ctx->graph, ctx->node, "pattern", ""));
}
static tfc_status full_match(struct tfc_kernel_ctx *ctx) {
  tfc_str pattern;
  TFC_RETURN_IF_ERROR(scalar_string(ctx, 1, &pattern));
  return full_match_with(ctx, pattern);
}
static tfc_status static_replace(struct tfc_kernel_ctx *ctx) {
  return replace_with(ctx, tfc_node_attr_string(ctx->graph, ctx->node, "pattern", ""),
                      tfc_node_attr_string(ctx->graph, ctx->node, "rewrite", ""));
}
static tfc_status replace(struct tfc_kernel_ctx *ctx) {
  tfc_str pattern, rewrite;
  TFC_RETURN_IF_ERROR(scalar_string(ctx, 1, &pattern));
  TFC_RETURN_IF_ERROR(scalar_string(ctx, 2, &rewrite));
  return replace_with(ctx, pattern, rewrite);
}

#define STRING(kernel_)                                                                                                \
  .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = ops_shape_same, .kernel = kernel_
static const struct tfc_op_def string_regex_rows[] = {
    {.name = "StaticRegexFullMatch",
     .inputs = "input: string",
     .outputs = "output: bool",
     .attrs = "pattern: string",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(static_full_match)},
    {.name = "RegexFullMatch",
     .inputs = "input: string, pattern: string",
     .outputs = "output: bool",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(full_match)},
    {.name = "StaticRegexReplace",
     .inputs = "input: string",
     .outputs = "output: string",
     .attrs = "pattern: string, rewrite: string, replace_global: bool = true",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(static_replace)},
    {.name = "RegexReplace",
     .inputs = "input: string, pattern: string, rewrite: string",
     .outputs = "output: string",
     .attrs = "replace_global: bool = true",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(replace)},
};
TFC_REGISTER_OPS(string_regex_rows);
