// Operations on files as a whole: ReadFile, WriteFile, MatchingFiles.
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

static tfc_status path_of(const struct tfc_kernel_ctx *ctx, char **out) { // the caller frees it
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "Input filename tensor must be scalar, but had shape: %s",
                   tfc_shape_show(&ctx->inputs[0]->shape, (char[TFC_SHAPE_TEXT]){0}));
  *out = tfc_str_dup(tfc_tensor_get_string(ctx->inputs[0], 0));
  return *out ? NULL : tfc_status_no_memory(NULL);
}

static tfc_status read_file(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  struct tfc_file file = {0};
  char *path = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(path_of(ctx, &path));
  TFC_TRY(s, tfc_file_map(path, &file));
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y));
  s = tfc_status_annotate(tfc_tensor_set_string(y, 0, (tfc_str){(const char *)file.data, file.size}), "%s", path);
out:
  tfc_file_unmap(&file);
  free(path);
  return s;
}

static tfc_status write_file(struct tfc_kernel_ctx *ctx) {
  char *path = NULL;
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "Contents tensor must be scalar, but had shape: %s",
                   tfc_shape_show(&ctx->inputs[1]->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(path_of(ctx, &path));
  tfc_status s = tfc_file_make_parents(path);
  if (!s) s = tfc_file_write(path, tfc_tensor_get_string(ctx->inputs[1], 0));
  free(path);
  return s;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}
static tfc_status matching_files(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *patterns = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  glob_t found = {0};
  TFC_KERNEL_CHECK(patterns->shape.rank <= 1, "Input patterns tensor must be scalar or vector, but had shape: %s",
                   tfc_shape_show(&patterns->shape, (char[TFC_SHAPE_TEXT]){0}));
  for (int64_t i = 0, n = tfc_tensor_elements(patterns); i < n; i++) {
    char *pattern = tfc_str_dup(tfc_tensor_get_string(patterns, i));
    int code = pattern ? glob(pattern, i ? GLOB_APPEND : 0, NULL, &found) : GLOB_NOSPACE;
    free(pattern);
    if (code == GLOB_NOSPACE) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  if (found.gl_pathc) qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE((int64_t)found.gl_pathc), &y));
  for (size_t i = 0; i < found.gl_pathc; i++)
    TFC_TRY(s, tfc_tensor_set_string(y, (int64_t)i, tfc_str_from(found.gl_pathv[i])));
out:
  globfree(&found);
  return s;
}
static tfc_status shape_vector(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  return NULL;
}

#define IO(shape_, kernel_) .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
static const struct tfc_op_def io_file_rows[] = {
    {.name = "ReadFile",
     .inputs = "filename: string",
     .outputs = "contents: string",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(ops_shape_scalar, read_file)},
    {.name = "WriteFile",
     .inputs = "filename: string, contents: string",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(ops_shape_none, write_file)},
    {.name = "MatchingFiles",
     .inputs = "pattern: string",
     .outputs = "filenames: string",
     .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(shape_vector, matching_files)},
};
TFC_REGISTER_OPS(io_file_rows);
