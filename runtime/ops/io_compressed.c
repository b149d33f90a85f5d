// DecodeCompressed: unpacks strings that zlib or gzip compressed.
#include <stdlib.h>

#include "runtime/ops/data_records.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

static tfc_status decode_compressed(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const tfc_str how = tfc_node_attr_string(ctx->graph, ctx->node, "compression_type", "");
  const bool zlib = tfc_str_is(how, "ZLIB"), gzip = tfc_str_is(how, "GZIP");
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(!how.size || zlib || gzip, "Only ZLIB, GZIP or NONE are supported compressions, not '%.*s'",
                   TFC_STR_ARG(how));
  if (!how.size) return tfc_kernel_set_output(ctx, 0, x);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &x->shape, &y));
  for (int64_t i = 0, n = tfc_tensor_elements(x); i < n; i++) {
    char *plain = NULL;
    size_t size = 0;
    tfc_status s = tfc_records_inflate("a compressed string", tfc_tensor_get_string(x, i),
                                       gzip ? TFC_RECORDS_GZIP : TFC_RECORDS_ZLIB, &plain, &size);
    if (tfc_status_code(s) == TFC_DATA_LOSS) { // the input is invalid: there is no file that could be damaged
      tfc_status_free(s);
      return tfc_status_make(TFC_INVALID_ARGUMENT, "string %lld is not compressed by %.*s, or damaged", (long long)i,
                             TFC_STR_ARG(how));
    }
    TFC_RETURN_IF_ERROR(s);
    const tfc_status status = tfc_tensor_set_string(y, i, (tfc_str){plain, size});
    free(plain);
    TFC_RETURN_IF_ERROR(status);
  }
  return NULL;
}
static const struct tfc_op_def io_compressed_rows[] = {
    {.name = "DecodeCompressed",
     .inputs = "bytes: string",
     .outputs = "output: string",
     .attrs = "compression_type: string = ''",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_same,
     .kernel = decode_compressed},
};
TFC_REGISTER_OPS(io_compressed_rows);
