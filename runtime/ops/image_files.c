// Operations on image files: DecodePng, DecodeJpeg, DecodeAndCropJpeg, DecodeGif, DecodeBmp, DecodeImage, EncodePng,
// EncodeJpeg, ExtractJpegShape. image_codec.h and image_bitmap.h read and write the formats.
#include "runtime/ops/element_types.h"
#include "runtime/ops/image_bitmap.h"
#include "runtime/ops/image_codec.h"
#include "runtime/ops/row.h"

static bool is_png(tfc_str file) {
  return tfc_str_starts(file, "\211PNG\r\n\032\n");
}
static bool is_jpeg(tfc_str file) {
  return tfc_str_starts(file, "\377\330\377");
}

static bool is_gif(tfc_str file) {
  return tfc_str_starts(file, "GIF8");
}
static bool is_bmp(tfc_str file) {
  return tfc_str_starts(file, "BM");
}

// The content of the file decides the format, not the operation, as in TensorFlow's kernels: DecodePng reads JPEG files
// too.
static tfc_status decode(struct tfc_kernel_ctx *ctx) {
  const struct tfc_graph *g = ctx->graph;
  struct tfc_tensor image = {0}, converted = {0};
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "`contents` must be scalar but got shape%s",
                   tfc_shape_show(&ctx->inputs[0]->shape, (char[TFC_SHAPE_TEXT]){0}));
  tfc_str file = tfc_tensor_get_string(ctx->inputs[0], 0);
  tfc_dtype dtype = g->output_dtypes[ctx->node->output_begin];
  int channels = (int)tfc_node_attr_int(g, ctx->node, "channels", 0);
  TFC_KERNEL_CHECK(channels == 0 || channels == 1 || channels == 3 || channels == 4,
                   "`channels` must be 0, 1, 3 or 4 but got %d", channels);
  if (ctx->input_count == 2 || is_jpeg(file)) {
    TFC_KERNEL_CHECK(channels != 4, "JPEG does not support 4 channels");
    struct tfc_jpeg_choice choice = {
        .channels = channels,
        .ratio = (int)tfc_node_attr_int(g, ctx->node, "ratio", 1),
        .fancy_upscaling = tfc_node_attr_bool(g, ctx->node, "fancy_upscaling", true),
        .try_recover_truncated = tfc_node_attr_bool(g, ctx->node, "try_recover_truncated", false),
        .accurate = tfc_str_is(tfc_node_attr_string(g, ctx->node, "dct_method", ""), "INTEGER_ACCURATE")};
    TFC_KERNEL_CHECK(choice.ratio == 1 || choice.ratio == 2 || choice.ratio == 4 || choice.ratio == 8,
                     "ratio must be 1, 2, 4, or 8, got %d", choice.ratio);
    if (ctx->input_count == 2) {
      TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 1 && ctx->inputs[1]->shape.dims[0] == 4,
                       "crop_window must have four elements: y, x, height and width");
      choice.window = ctx->inputs[1]->data;
    }
    TFC_TRY(s, tfc_jpeg_read(file, &choice, &image));
  } else if (is_png(file)) {
    TFC_TRY(s, tfc_png_read(file, channels, dtype == TFC_UINT8 ? TFC_UINT8 : TFC_UINT16, &image));
  } else if (is_gif(file)) {
    // DecodeGif returns all frames, and so does DecodeImage if its attribute says so; otherwise only the first frame is
    // read.
    const bool whole =
        tfc_str_is(ctx->node->op, "DecodeGif") ||
        (tfc_str_is(ctx->node->op, "DecodeImage") && tfc_node_attr_bool(g, ctx->node, "expand_animations", true));
    TFC_KERNEL_CHECK(channels == 0 || channels == 3, "channels must be 0 or 3 for GIF, got %d", channels);
    TFC_TRY(s, tfc_gif_read(file, !whole, &image));
  } else if (is_bmp(file)) {
    TFC_TRY(s, tfc_bmp_read(file, channels, &image));
  } else {
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Unknown image file format: PNG, JPEG, GIF and BMP are read");
  }
  if (dtype != image.dtype) { // converts the file's 8 or 16 bits as TensorFlow does
    int64_t n = tfc_tensor_elements(&image);
    TFC_TRY(s, tfc_tensor_create(dtype, &image.shape, &converted));
    for (int64_t i = 0; i < n; i++) {
      if (image.dtype == TFC_UINT16)
        ((float *)converted.data)[i] = (float)((const uint16_t *)image.data)[i] * (1.0f / 65535);
      else if (dtype == TFC_FLOAT)
        ((float *)converted.data)[i] = (float)((const uint8_t *)image.data)[i] * (1.0f / 255);
      else
        ((uint16_t *)converted.data)[i] = (uint16_t)(((const uint8_t *)image.data)[i] << 8);
    }
    s = tfc_kernel_set_output(ctx, 0, &converted);
  } else {
    s = tfc_kernel_set_output(ctx, 0, &image);
  }
out:
  tfc_tensor_release(&image);
  tfc_tensor_release(&converted);
  return s;
}

static tfc_status encode_png(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  const int64_t compression = tfc_node_attr_int(ctx->graph, ctx->node, "compression", -1);
  TFC_KERNEL_CHECK(compression >= -1 && compression <= 9, "compression should be in [-1,9], got %lld",
                   (long long)compression);
  TFC_KERNEL_CHECK(x->shape.rank >= 3, "images must have at least rank 3");
  struct tfc_shape batch = x->shape;
  batch.rank -= 3;
  const int64_t *d = x->shape.dims + batch.rank;
  TFC_KERNEL_CHECK(tfc_tensor_elements(x) > 0 || tfc_shape_elements(&batch) == 0, "image must be non-empty");
  TFC_KERNEL_CHECK(d[2] >= 1 && d[2] <= 4, "image must have 1, 2, 3, or 4 channels, got %lld", (long long)d[2]);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &batch, &y));
  size_t size = (size_t)(d[0] * d[1] * d[2]) * tfc_dtype_size(x->dtype);
  for (int64_t i = 0, n = tfc_tensor_elements(y); i < n; i++) {
    struct tfc_text file = {0};
    tfc_status s = tfc_png_write((const char *)x->data + (size_t)i * size, d[0], d[1], (int)d[2],
                                 x->dtype == TFC_UINT16 ? 16 : 8, (int)compression, &file);
    if (!s) s = tfc_tensor_set_text(y, i, &file);
    tfc_text_deinit(&file);
    if (s) return s;
  }
  return NULL;
}

static tfc_status encode_jpeg_of(struct tfc_kernel_ctx *ctx, int quality) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 3, "image must be 3-dimensional, got %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  tfc_str format = tfc_node_attr_string(g, n, "format", "");
  int64_t channels = x->shape.dims[2], wanted = tfc_str_is(format, "rgb") ? 3 : format.size ? 1 : channels;
  TFC_KERNEL_CHECK(channels == wanted && (channels == 1 || channels == 3),
                   "format '%.*s' does not fit an image of %lld channels", TFC_STR_ARG(format), (long long)channels);
  TFC_KERNEL_CHECK(quality >= 0 && quality <= 100, "quality must be in [0,100], got %d", quality);
  struct tfc_jpeg_style style = {.quality = quality,
                                 .density_unit =
                                     tfc_str_is(tfc_node_attr_string(g, n, "density_unit", "in"), "cm") ? 2 : 1,
                                 .x_density = (int)tfc_node_attr_int(g, n, "x_density", 300),
                                 .y_density = (int)tfc_node_attr_int(g, n, "y_density", 300),
                                 .progressive = tfc_node_attr_bool(g, n, "progressive", false),
                                 .optimize_size = tfc_node_attr_bool(g, n, "optimize_size", false),
                                 .chroma_downsampling = tfc_node_attr_bool(g, n, "chroma_downsampling", true),
                                 .xmp = tfc_node_attr_string(g, n, "xmp_metadata", "")};
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y));
  struct tfc_text file = {0};
  tfc_status s = tfc_jpeg_write(x->data, x->shape.dims[0], x->shape.dims[1], (int)channels, &style, &file);
  if (!s) s = tfc_tensor_set_text(y, 0, &file);
  tfc_text_deinit(&file);
  return s;
}
static tfc_status encode_jpeg(struct tfc_kernel_ctx *ctx) {
  return encode_jpeg_of(ctx, (int)tfc_node_attr_int(ctx->graph, ctx->node, "quality", 95));
}
static tfc_status encode_jpeg_quality(struct tfc_kernel_ctx *ctx) {
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "quality must be a scalar");
  return encode_jpeg_of(ctx, *(const int32_t *)ctx->inputs[1]->data);
}

static tfc_status jpeg_shape(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  int64_t dims[3];
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "contents must be scalar");
  TFC_RETURN_IF_ERROR(tfc_jpeg_shape(tfc_tensor_get_string(ctx->inputs[0], 0), dims));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->graph->output_dtypes[ctx->node->output_begin], &TFC_SHAPE(3), &y));
  for (int i = 0; i < 3; i++)
    if (y->dtype == TFC_INT64)
      ((int64_t *)y->data)[i] = dims[i];
    else
      ((int32_t *)y->data)[i] = (int32_t)dims[i];
  return NULL;
}

// --- Shapes --------------------------------------------------------------------------------------------------------
static tfc_status shape_decode(struct tfc_shape_ctx *ctx) {
  int64_t channels = tfc_node_attr_int(ctx->graph, ctx->node, "channels", 0);
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (channels < 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "channels must be non-negative, got %lld", (long long)channels);
  if (tfc_str_is(ctx->node->op, "DecodeImage") && tfc_node_attr_bool(ctx->graph, ctx->node, "expand_animations", true))
    return NULL;
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN, TFC_DIM_UNKNOWN, channels ? channels : TFC_DIM_UNKNOWN);
  return NULL;
}
static tfc_status shape_gif(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN, TFC_DIM_UNKNOWN, TFC_DIM_UNKNOWN, 3);
  return NULL;
}
static tfc_status shape_crop(struct tfc_shape_ctx *ctx) {
  const struct tfc_tensor *w = ctx->input_values ? ctx->input_values[1] : NULL;
  TFC_RETURN_IF_ERROR(shape_decode(ctx));
  for (int d = 0; w && tfc_tensor_elements(w) == 4 && d < 2; d++) ctx->outputs[0].dims[d] = tfc_tensor_int(w, 2 + d);
  return NULL;
}
static tfc_status shape_encode_png(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[0];
  if (ctx->outputs[0].rank >= 3)
    ctx->outputs[0].rank -= 3;
  else
    ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  return NULL;
}
static tfc_status shape_three(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(3);
  return NULL;
}

#define ROW(in, out, shape_, kernel_)                                                                                  \
  .inputs = in, .outputs = out, .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, .host_inputs = UINT32_MAX,           \
  .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
static const struct tfc_op_def image_files_rows[] = {
    {.name = "DecodePng",
     .attrs = "channels: int = 0, dtype: {uint8, uint16} = uint8",
     ROW("contents: string", "image: dtype", shape_decode, decode)},
    {.name = "DecodeJpeg",
     .attrs = "channels: int = 0, ratio: int = 1, fancy_upscaling: bool = true, try_recover_truncated: bool = false, "
              "acceptable_fraction: float = 1.0, dct_method: string = ''",
     ROW("contents: string", "image: uint8", shape_decode, decode)},
    {.name = "DecodeAndCropJpeg",
     .attrs = "channels: int = 0, ratio: int = 1, fancy_upscaling: bool = true, try_recover_truncated: bool = false, "
              "acceptable_fraction: float = 1.0, dct_method: string = ''",
     ROW("contents: string, crop_window: int32", "image: uint8", shape_crop, decode)},
    {.name = "DecodeGif", ROW("contents: string", "image: uint8", shape_gif, decode)},
    {.name = "DecodeBmp", .attrs = "channels: int = 0", ROW("contents: string", "image: uint8", shape_decode, decode)},
    {.name = "DecodeImage",
     .attrs = "channels: int = 0, dtype: {uint8, uint16, float} = uint8, expand_animations: bool = true",
     ROW("contents: string", "image: dtype", shape_decode, decode)},
    {.name = "EncodePng",
     .attrs = "compression: int = -1, T: {uint8, uint16} = uint8",
     ROW("image: T", "contents: string", shape_encode_png, encode_png)},
    {.name = "EncodeJpeg",
     .attrs = "format: string = '', quality: int = 95, progressive: bool = false, optimize_size: bool = false, "
              "chroma_downsampling: bool = true, density_unit: string = 'in', x_density: int = 300, "
              "y_density: int = 300, xmp_metadata: string = ''",
     ROW("image: uint8", "contents: string", ops_shape_scalar, encode_jpeg)},
    {.name = "EncodeJpegVariableQuality",
     ROW("images: uint8, quality: int32", "contents: string", ops_shape_scalar, encode_jpeg_quality)},
    {.name = "ExtractJpegShape",
     .attrs = "output_type: {int32, int64} = int32",
     ROW("contents: string", "image_shape: output_type", shape_three, jpeg_shape)},
};
TFC_REGISTER_OPS(image_files_rows);
