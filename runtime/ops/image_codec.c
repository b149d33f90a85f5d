#include "runtime/ops/image_codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TFC_HAVE_PNG
#include <png.h>
#endif
#ifdef TFC_HAVE_JPEG
#include <jpeglib.h>
// jpeglib.h must be included before jerror.h
#include <jerror.h>
#endif

enum { MOST_PIXELS = 1 << 29 };

#if !defined(TFC_HAVE_PNG) || !defined(TFC_HAVE_JPEG)
static tfc_status without(const char *library) {
  return tfc_status_make(TFC_UNIMPLEMENTED, "tfc was built without %s", library);
}
#endif

// --- PNG -----------------------------------------------------------------------------------------------------------
#ifdef TFC_HAVE_PNG
struct png {
  png_structp png;
  png_infop info;
  jmp_buf fail;
  char message[160];
  tfc_str left;          // the rest of the file that is being read
  struct tfc_text *text; // the file that is being written
  png_bytep *rows;
};
static void png_fails(png_structp p, png_const_charp message) {
  struct png *io = png_get_error_ptr(p);
  snprintf(io->message, sizeof io->message, "%s", message);
  longjmp(io->fail, 1);
}
static void png_warns(png_structp p, png_const_charp message) {
  (void)p;
  (void)message;
}
static void png_gives(png_structp p, png_bytep to, png_size_t size) {
  struct png *io = png_get_io_ptr(p);
  if (size > io->left.size) png_error(p, "the file ends early");
  memcpy(to, io->left.data, size);
  io->left = tfc_str_sub(io->left, size, io->left.size);
}
static void png_takes(png_structp p, png_bytep from, png_size_t size) {
  struct png *io = png_get_io_ptr(p);
  tfc_text_add(io->text, (tfc_str){(const char *)from, size});
}
static void png_flushes(png_structp p) {
  (void)p;
}

static void write_png(struct png *io, const char *pixels, int64_t height, int64_t width, int channels, int bits,
                      int level) {
  static const int colors[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                               PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_compression_level(io->png, level);
  png_set_write_fn(io->png, io, png_takes, png_flushes);
  png_set_IHDR(io->png, io->info, (png_uint_32)width, (png_uint_32)height, bits, colors[channels], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(io->png, io->info);
  if (bits > 8) png_set_swap(io->png);
  for (int64_t y = 0; y < height; y++)
    png_write_row(io->png, (png_const_bytep)(pixels + y * width * channels * (bits / 8)));
  png_write_end(io->png, NULL);
}
tfc_status tfc_png_write(const void *pixels, int64_t height, int64_t width, int channels, int bits, int level,
                         struct tfc_text *out) {
  struct png io = {.text = out};
  tfc_status volatile s = NULL;
  if (height <= 0 || width <= 0 || height > INT32_MAX || width > INT32_MAX || channels < 1 || channels > 4)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "an image of %lld x %lld pixels and %d channels cannot be a PNG file",
                           (long long)height, (long long)width, channels);
  io.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &io, png_fails, png_warns);
  io.info = io.png ? png_create_info_struct(io.png) : NULL;
  if (!io.info)
    s = tfc_status_no_memory("a PNG file");
  else if (setjmp(io.fail))
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "PNG encoding failed: %s", io.message);
  else
    write_png(&io, pixels, height, width, channels, bits, level);
  png_destroy_write_struct(&io.png, &io.info);
  return s;
}

// Asks libpng for this many channels, with TensorFlow's settings. Returns how many channels there will be.
static int choose_png(struct png *io, int channels, bool wide) {
  int color = png_get_color_type(io->png, io->info), depth = png_get_bit_depth(io->png, io->info);
  bool transparent = png_get_valid(io->png, io->info, PNG_INFO_tRNS) != 0, alpha = color & PNG_COLOR_MASK_ALPHA;
  if (channels == 0)
    channels = color == PNG_COLOR_TYPE_PALETTE ? (transparent ? 4 : 3) : png_get_channels(io->png, io->info);
  if (channels % 2 == 0) {
    if (!alpha && transparent)
      png_set_tRNS_to_alpha(io->png);
    else if (!alpha)
      png_set_add_alpha(io->png, (1u << depth) - 1, PNG_FILLER_AFTER);
  } else if (alpha || transparent) {
    png_set_strip_alpha(io->png);
  }
  if (depth > 8 && !wide) png_set_strip_16(io->png);
  png_set_packing(io->png);
  if (wide) png_set_swap(io->png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(io->png);
  bool gray = !(color & PNG_COLOR_MASK_COLOR);
  if (gray && depth < 8) png_set_expand_gray_1_2_4_to_8(io->png);
  if (channels < 3 && !gray) png_set_rgb_to_gray(io->png, 1, 0.299, 0.587);
  if (channels >= 3 && gray) png_set_gray_to_rgb(io->png);
  return channels;
}
static void read_png(struct png *io, int channels, tfc_dtype dtype, struct tfc_tensor *out, tfc_status *out_status) {
  bool wide = dtype == TFC_UINT16;
  png_set_read_fn(io->png, io, png_gives);
  png_read_info(io->png, io->info);
  png_uint_32 width = png_get_image_width(io->png, io->info), height = png_get_image_height(io->png, io->info);
  bool narrow = png_get_bit_depth(io->png, io->info) <= 8;
  if (width == 0 || height == 0 || width >= MOST_PIXELS / height / 4) png_error(io->png, "the image is too large");
  channels = choose_png(io, channels, wide);
  png_set_interlace_handling(io->png);
  png_read_update_info(io->png, io->info);
  size_t row = (size_t)width * (size_t)channels, stride = png_get_rowbytes(io->png, io->info);
  if (stride != row * (wide && !narrow ? 2 : 1)) png_error(io->png, "its rows have another size");
  *out_status = tfc_tensor_create(dtype, &TFC_SHAPE(height, width, channels), out);
  io->rows = *out_status ? NULL : malloc(height * sizeof *io->rows);
  if (!io->rows) return;
  size_t size = row * (wide ? 2 : 1); // rows of 8 bits are read into the second half of a 16-bit row's memory
  for (png_uint_32 y = 0; y < height; y++) io->rows[y] = (png_bytep)out->data + y * size + (size - stride);
  png_read_image(io->png, io->rows);
  png_read_end(io->png, io->info);
  for (png_uint_32 y = 0; wide && narrow && y < height; y++)
    for (size_t x = 0; x < row; x++) {
      uint16_t v = io->rows[y][x];
      ((uint16_t *)out->data)[y * row + x] = (uint16_t)(v << 8 | v);
    }
}
tfc_status tfc_png_read(tfc_str file, int channels, tfc_dtype dtype, struct tfc_tensor *out) {
  struct png io = {.left = file};
  struct tfc_tensor made = {0};
  tfc_status s = NULL;
  io.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &io, png_fails, png_warns);
  io.info = io.png ? png_create_info_struct(io.png) : NULL;
  if (!io.info)
    s = tfc_status_no_memory("a PNG file");
  else if (setjmp(io.fail))
    s = tfc_status_join(s, tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid PNG data: %s", io.message));
  else
    read_png(&io, channels, dtype, &made, &s);
  if (!s && !io.rows) s = tfc_status_no_memory("a PNG file");
  png_destroy_read_struct(&io.png, &io.info, NULL);
  free(io.rows);
  if (s)
    tfc_tensor_release(&made);
  else
    *out = made;
  return s;
}
#else
tfc_status tfc_png_write(const void *pixels, int64_t height, int64_t width, int channels, int bits, int level,
                         struct tfc_text *out) {
  (void)pixels, (void)height, (void)width, (void)channels, (void)bits, (void)level, (void)out;
  return without("libpng");
}
tfc_status tfc_png_read(tfc_str file, int channels, tfc_dtype dtype, struct tfc_tensor *out) {
  (void)file, (void)channels, (void)dtype, (void)out;
  return without("libpng");
}
#endif

// --- JPEG ----------------------------------------------------------------------------------------------------------
#ifdef TFC_HAVE_JPEG
struct jpeg {
  struct jpeg_error_mgr errors; // must be first: libjpeg passes a pointer to it back
  jmp_buf fail;
  char message[JMSG_LENGTH_MAX];
  bool ended_early;
  unsigned char *bytes; // the file that is being written
  unsigned long size;
  struct tfc_tensor made;
  uint8_t *line; // a row before it is converted from four colours or cut
};
static void jpeg_fails(j_common_ptr c) {
  struct jpeg *io = (struct jpeg *)c->err;
  c->err->format_message(c, io->message);
  longjmp(io->fail, 1);
}
static void jpeg_says(j_common_ptr c, int level) {
  if (level < 0 && c->err->msg_code == JWRN_JPEG_EOF) ((struct jpeg *)c->err)->ended_early = true;
}
static void jpeg_prints(j_common_ptr c) {
  (void)c;
}
static struct jpeg_error_mgr *errors_of(struct jpeg *io) {
  jpeg_std_error(&io->errors);
  io->errors.error_exit = jpeg_fails;
  io->errors.emit_message = jpeg_says;
  io->errors.output_message = jpeg_prints;
  return &io->errors;
}

static void write_jpeg(struct jpeg_compress_struct *c, struct jpeg *io, const uint8_t *pixels, int64_t height,
                       int64_t width, int channels, const struct tfc_jpeg_style *style) {
  static const char xmp_name[] = "http://ns.adobe.com/xap/1.0/";
  jpeg_mem_dest(c, &io->bytes, &io->size);
  c->image_width = (JDIMENSION)width;
  c->image_height = (JDIMENSION)height;
  c->input_components = channels;
  c->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(c);
  c->optimize_coding = style->optimize_size;
  c->density_unit = (UINT8)style->density_unit;
  c->X_density = (UINT16)style->x_density;
  c->Y_density = (UINT16)style->y_density;
  jpeg_set_quality(c, style->quality, TRUE);
  if (style->progressive) jpeg_simple_progression(c);
  for (int i = 0; !style->chroma_downsampling && i < c->num_components; i++)
    c->comp_info[i].h_samp_factor = c->comp_info[i].v_samp_factor = 1;
  jpeg_start_compress(c, TRUE);
  if (style->xmp.size) {
    jpeg_write_m_header(c, JPEG_APP0 + 1, (unsigned)(sizeof xmp_name + style->xmp.size));
    for (size_t i = 0; i < sizeof xmp_name; i++) jpeg_write_m_byte(c, xmp_name[i]);
    for (size_t i = 0; i < style->xmp.size; i++) jpeg_write_m_byte(c, (unsigned char)style->xmp.data[i]);
  }
  while (c->next_scanline < c->image_height) {
    JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)c->next_scanline * (size_t)width * (size_t)channels);
    jpeg_write_scanlines(c, &row, 1);
  }
  jpeg_finish_compress(c);
}
tfc_status tfc_jpeg_write(const uint8_t *pixels, int64_t height, int64_t width, int channels,
                          const struct tfc_jpeg_style *style, struct tfc_text *out) {
  struct jpeg io = {0};
  struct jpeg_compress_struct c = {0};
  tfc_status volatile s = NULL;
  if (height <= 0 || width <= 0 || height > 65535 || width > 65535 || (channels != 1 && channels != 3) ||
      style->xmp.size > 65000)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "an image of %lld x %lld pixels, %d channels cannot be a JPEG file (or its XMP is too long)",
                           (long long)height, (long long)width, channels);
  c.err = errors_of(&io);
  if (setjmp(io.fail)) {
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "JPEG encoding failed: %s", io.message);
  } else {
    jpeg_create_compress(&c);
    write_jpeg(&c, &io, pixels, height, width, channels, style);
  }
  if (!s) tfc_text_add(out, (tfc_str){(const char *)io.bytes, io.size});
  jpeg_destroy_compress(&c);
  free(io.bytes);
  return s;
}

static void open_jpeg(struct jpeg_decompress_struct *c, tfc_str file) {
  jpeg_create_decompress(c);
  jpeg_mem_src(c, (const unsigned char *)file.data, file.size);
  jpeg_read_header(c, TRUE);
}
// Converts four colours (CMYK; inverted if Adobe's marker says so) to three.
static void from_cmyk(const uint8_t *in, uint8_t *out, size_t width, bool inverted) {
  for (size_t x = 0; x < width; x++)
    for (int k = 0; k < 3; k++) {
      int c = in[4 * x + (size_t)k], black = in[4 * x + 3];
      out[3 * x + (size_t)k] = (uint8_t)(inverted ? black * c / 255 : (255 - black) * (255 - c) / 255);
    }
}
// Reads a part of the image. If the library can skip the columns on both sides, it does, as in TensorFlow: colours at
// the edges are then smoothed only within the part.
static tfc_status read_window(struct jpeg_decompress_struct *c, struct jpeg *io, const struct tfc_jpeg_choice *choice,
                              bool four, int channels) {
  const int32_t *w = choice->window;
  const int64_t high = c->output_height, wide = c->output_width;
  if (w[0] < 0 || w[1] < 0 || w[2] <= 0 || w[3] <= 0 || w[0] > high - w[2] || w[1] > wide - w[3])
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "Invalid crop window: x=%d, y=%d, w=%d, h=%d for image_width: %lld and image_height: %lld",
                           w[1], w[0], w[3], w[2], (long long)wide, (long long)high);
  JDIMENSION left = 0, width = c->output_width;
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
  left = (JDIMENSION)w[1], width = (JDIMENSION)w[3];
  jpeg_crop_scanline(c, &left, &width);
#endif
  const size_t pixel = four ? 4 : (size_t)channels, row = (size_t)(w[3] * channels);
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_UINT8, &TFC_SHAPE(w[2], w[3], channels), &io->made));
  if (!(io->line = malloc((size_t)wide * pixel))) return tfc_status_no_memory(NULL);
  const uint8_t *from = io->line + ((JDIMENSION)w[1] - left) * pixel;
  for (int64_t y = 0; y < w[0] + w[2]; y++) {
    JSAMPROW line = io->line;
    if (jpeg_read_scanlines(c, &line, 1) != 1) break;
    uint8_t *to = (uint8_t *)io->made.data + (size_t)(y - w[0]) * row;
    if (y < w[0]) continue;
    if (four)
      from_cmyk(from, to, (size_t)w[3], c->saw_Adobe_marker);
    else
      memcpy(to, from, row);
  }
  if (io->ended_early && !choice->try_recover_truncated)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid JPEG data: it ends early");
  return NULL;
}
static tfc_status read_jpeg(struct jpeg_decompress_struct *c, struct jpeg *io, tfc_str file,
                            const struct tfc_jpeg_choice *choice) {
  open_jpeg(c, file);
  int channels = choice->channels ? choice->channels : c->num_components < 3 ? c->num_components : 3;
  bool four = c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK;
  if (channels != 1 && channels != 3)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a JPEG image cannot have %d channels", channels);
  c->out_color_space = channels == 1 ? JCS_GRAYSCALE : four ? JCS_CMYK : JCS_RGB;
  c->do_fancy_upsampling = choice->fancy_upscaling;
  c->scale_num = 1;
  c->scale_denom = (unsigned)choice->ratio;
  c->dct_method = choice->accurate ? JDCT_ISLOW : JDCT_IFAST;
  jpeg_start_decompress(c);
  size_t width = c->output_width, height = c->output_height;
  if (!width || !height || width >= MOST_PIXELS / height)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the JPEG image is too large");
  four &= channels == 3;
  if (choice->window) return read_window(c, io, choice, four, channels);
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_UINT8, &TFC_SHAPE((int64_t)height, (int64_t)width, channels), &io->made));
  if (four && !(io->line = malloc(width * 4))) return tfc_status_no_memory(NULL);
  while (c->output_scanline < c->output_height) {
    uint8_t *to = (uint8_t *)io->made.data + (size_t)c->output_scanline * width * (size_t)channels;
    JSAMPROW row = four ? io->line : to;
    if (jpeg_read_scanlines(c, &row, 1) != 1) break;
    if (four) from_cmyk(row, to, width, c->saw_Adobe_marker);
  }
  jpeg_finish_decompress(c);
  if (io->ended_early && !choice->try_recover_truncated)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid JPEG data: it ends early");
  return NULL;
}
tfc_status tfc_jpeg_read(tfc_str file, const struct tfc_jpeg_choice *choice, struct tfc_tensor *out) {
  struct jpeg io = {0};
  struct jpeg_decompress_struct c = {0};
  tfc_status volatile s = NULL;
  c.err = errors_of(&io);
  if (setjmp(io.fail))
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid JPEG data: %s", io.message);
  else
    s = read_jpeg(&c, &io, file, choice);
  jpeg_destroy_decompress(&c);
  free(io.line);
  if (s)
    tfc_tensor_release(&io.made);
  else
    *out = io.made;
  return s;
}
tfc_status tfc_jpeg_shape(tfc_str file, int64_t out[3]) {
  struct jpeg io = {0};
  struct jpeg_decompress_struct c = {0};
  tfc_status volatile s = NULL;
  c.err = errors_of(&io);
  if (setjmp(io.fail)) {
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid JPEG data: %s", io.message);
  } else {
    open_jpeg(&c, file);
    out[0] = c.image_height, out[1] = c.image_width, out[2] = c.num_components;
  }
  jpeg_destroy_decompress(&c);
  return s;
}
#else
tfc_status tfc_jpeg_write(const uint8_t *pixels, int64_t height, int64_t width, int channels,
                          const struct tfc_jpeg_style *style, struct tfc_text *out) {
  (void)pixels, (void)height, (void)width, (void)channels, (void)style, (void)out;
  return without("libjpeg");
}
tfc_status tfc_jpeg_read(tfc_str file, const struct tfc_jpeg_choice *choice, struct tfc_tensor *out) {
  (void)file, (void)choice, (void)out;
  return without("libjpeg");
}
tfc_status tfc_jpeg_shape(tfc_str file, int64_t out[3]) {
  (void)file, (void)out;
  return without("libjpeg");
}
#endif
