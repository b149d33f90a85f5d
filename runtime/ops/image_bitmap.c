// Readers of BMP files, uncompressed with 8 (grey), 24 or 32 bits per pixel, as TensorFlow reads them, and of GIF files
// (version 89a), whose pictures are palette indices compressed by LZW (Welch 1984).
#include "runtime/ops/image_bitmap.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PIXELS = 1 << 29 };
static tfc_status damaged(const char *kind, const char *what) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid %s data: %s", kind, what);
}
static uint32_t number(const uint8_t *p, int bytes) {
  uint32_t v = 0;
  for (int i = 0; i < bytes; i++) v |= (uint32_t)p[i] << 8 * i;
  return v;
}

// --- BMP -------------------------------------------------------------------------------------------------------------
tfc_status tfc_bmp_read(tfc_str file, int channels, struct tfc_tensor *out) {
  const uint8_t *p = (const uint8_t *)file.data;
  if (file.size < 32) return damaged("BMP", "Incomplete bmp content, requires at least 32 bytes");
  const int64_t begin = number(p + 10, 4), width = (int32_t)number(p + 18, 4), tall = (int32_t)number(p + 22, 4);
  const int64_t height = tall < 0 ? -tall : tall, bits = number(p + 28, 2), own = bits / 8;
  if (own != 1 && own != 3 && own != 4) return damaged("BMP", "pixels must have 8, 24 or 32 bits");
  if (channels != 0 && channels != 3 && channels != 4)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "`channels` must be 0, 3 or 4 for BMP, but got %d", channels);
  if (width <= 0 || height <= 0 || width > MOST_PIXELS / height) return damaged("BMP", "its size");
  const int64_t row = (width * own + 3) / 4 * 4; // rows are padded to multiples of 4 bytes
  if (begin > (int64_t)file.size || row * (height - 1) + width * own > (int64_t)file.size - begin)
    return damaged("BMP", "Incomplete bmp content");
  const int64_t made = channels ? channels : own;
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_UINT8, &TFC_SHAPE(height, width, made), out));
  uint8_t *to = out->data;
  for (int64_t y = 0; y < height; y++) {
    // The lowest row is first, unless the height is negative.
    const uint8_t *from = p + begin + (tall < 0 ? y : height - 1 - y) * row;
    for (int64_t x = 0; x < width; x++, from += own, to += made) { // the order of colours is blue, green, red
      to[0] = own == 1 ? from[0] : from[2];
      if (made >= 3) to[1] = own == 1 ? from[0] : from[1], to[2] = from[0];
      if (made == 4) to[3] = own == 4 ? from[3] : 255;
    }
  }
  return NULL;
}

// --- GIF -------------------------------------------------------------------------------------------------------------
struct reader {
  const uint8_t *at, *end;
};
static const uint8_t *take(struct reader *r, size_t n) {
  if ((size_t)(r->end - r->at) < n) return NULL;
  const uint8_t *p = r->at;
  r->at += n;
  return p;
}
// Reads blocks of up to 255 bytes, until an empty one, and copies their bytes to `out` unless that is NULL.
static bool take_blocks(struct reader *r, uint8_t *out, size_t *size) {
  size_t total = 0;
  for (;;) {
    const uint8_t *n = take(r, 1), *p = n ? take(r, *n) : NULL;
    if (!p) return false;
    if (*n == 0) break;
    if (out) memcpy(out + total, p, *n);
    total += *n;
  }
  *size = total;
  return true;
}

enum { CODES = 4096 };
// Unpacks the palette indices of `count` pixels. Each code stands for a string: that of an earlier code and one byte
// more.
static bool unpack(const uint8_t *in, size_t size, int bits, uint8_t *out, size_t count) {
  uint16_t prefix[CODES];
  uint8_t last[CODES], stack[CODES];
  const int clear = 1 << bits, stop = clear + 1;
  int width = bits + 1, next = stop + 1, previous = -1, held = 0;
  uint32_t buffer = 0;
  size_t done = 0;
  uint8_t first = 0;
  for (size_t i = 0; done < count;) {
    for (; held < width && i < size; held += 8) buffer |= (uint32_t)in[i++] << held;
    if (held < width) return false;
    int code = (int)(buffer & ((1u << width) - 1)), depth = 0;
    buffer >>= width, held -= width;
    if (code == clear) {
      width = bits + 1, next = stop + 1, previous = -1;
      continue;
    }
    if (code == stop) return false;
    if (code > next || (code == next && previous < 0) || (previous < 0 && code >= clear)) return false;
    int at = code;
    // The code being defined now: the previous string and its own first byte.
    if (code == next) stack[depth++] = first, at = previous;
    for (; at > stop; at = prefix[at]) stack[depth++] = last[at];
    first = stack[depth++] = (uint8_t)at;
    if (previous >= 0 && next < CODES) {
      prefix[next] = (uint16_t)previous, last[next] = first;
      if (++next == 1 << width && width < 12) width++;
    }
    previous = code;
    while (depth > 0 && done < count) out[done++] = stack[--depth];
  }
  return true;
}

struct gif {
  struct reader r;
  int64_t width, height, frames;
  const uint8_t *palette;
  int colors, clear; // clear: the index that leaves the pixel as it was, or -1
};
static bool open_gif(tfc_str file, struct gif *g) {
  *g = (struct gif){.r = {(const uint8_t *)file.data, (const uint8_t *)file.data + file.size}, .clear = -1};
  const uint8_t *p = take(&g->r, 13);
  if (!p || memcmp(p, "GIF", 3) != 0) return false;
  g->width = number(p + 6, 2), g->height = number(p + 8, 2);
  if (p[10] & 0x80) {
    g->colors = 2 << (p[10] & 7);
    g->palette = take(&g->r, (size_t)g->colors * 3);
  }
  return g->width > 0 && g->height > 0 && (!(p[10] & 0x80) || g->palette);
}
// Finds the next picture. Returns its descriptor, or NULL at the end. *ok false: the file is damaged.
static const uint8_t *next_picture(struct gif *g, bool *ok) {
  size_t size;
  for (;;) {
    const uint8_t *kind = take(&g->r, 1);
    *ok = kind != NULL;
    if (!kind || *kind == 0x3b) return NULL;
    if (*kind == 0x2c) {
      const uint8_t *p = take(&g->r, 9);
      *ok = p != NULL;
      return p;
    }
    const uint8_t *label = take(&g->r, 1);
    *ok = *kind == 0x21 && label;
    if (*ok && *label == 0xf9 && g->r.end - g->r.at >= 6) g->clear = g->r.at[1] & 1 ? g->r.at[4] : -1;
    *ok = *ok && take_blocks(&g->r, NULL, &size);
    if (!*ok) return NULL;
  }
}
// Draws one picture over the content of `to`; if that is NULL, skips the picture.
static bool draw(struct gif *g, const uint8_t *place, uint8_t *to) {
  const int64_t left = number(place, 2), top = number(place + 2, 2), width = number(place + 4, 2),
                height = number(place + 6, 2);
  const uint8_t *palette = g->palette, *bits;
  int colors = g->colors;
  size_t size = 0;
  if (place[8] & 0x80) {
    colors = 2 << (place[8] & 7);
    palette = take(&g->r, (size_t)colors * 3);
  }
  if (!palette || !(bits = take(&g->r, 1)) || *bits < 2 || *bits > 8) return false;
  if (!to) return take_blocks(&g->r, NULL, &size);
  uint8_t *packed = malloc((size_t)(g->r.end - g->r.at) + 1), *pixels = malloc((size_t)(width * height) + 1);
  bool ok = packed && pixels && take_blocks(&g->r, packed, &size) &&
            unpack(packed, size, *bits, pixels, (size_t)(width * height));
  for (int64_t i = 0; ok && i < height; i++) {
    int64_t y = i;
    if (place[8] & 0x40) { // interlaced: rows 0, 8, … come first, then 4, 12, …, then 2, 6, …, then the odd ones
      const int64_t a = (height + 7) / 8, b = a + (height + 3) / 8, c = b + (height + 1) / 4;
      y = i < a ? 8 * i : i < b ? 8 * (i - a) + 4 : i < c ? 4 * (i - b) + 2 : 2 * (i - c) + 1;
    }
    for (int64_t x = 0; x < width; x++) {
      const int v = pixels[i * width + x];
      if (v == g->clear || v >= colors || top + y >= g->height || left + x >= g->width) continue;
      memcpy(to + ((top + y) * g->width + left + x) * 3, palette + 3 * v, 3);
    }
  }
  free(packed), free(pixels);
  g->clear = -1; // a transparent index is valid for one picture only
  return ok;
}
tfc_status tfc_gif_read(tfc_str file, bool first_only, struct tfc_tensor *out) {
  struct gif g;
  int64_t frames = 0;
  bool ok = open_gif(file, &g);
  for (const uint8_t *p; ok && (p = next_picture(&g, &ok)) && !(first_only && frames); frames++) ok = draw(&g, p, NULL);
  if (!ok || !frames) return damaged("GIF", "it ends early, or is none");
  if (g.width * g.height > MOST_PIXELS / frames) return damaged("GIF", "it is too large");
  const struct tfc_shape all = TFC_SHAPE(frames, g.height, g.width, 3), one = TFC_SHAPE(g.height, g.width, 3);
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_UINT8, first_only ? &one : &all, out));
  const size_t size = (size_t)(g.width * g.height * 3);
  memset(out->data, 0, out->size);
  ok = open_gif(file, &g);
  for (int64_t i = 0; ok && i < frames; i++) {
    uint8_t *to = (uint8_t *)out->data + (size_t)i * size;
    const uint8_t *p = next_picture(&g, &ok);
    if (i) memcpy(to, to - size, size);
    ok = ok && p && draw(&g, p, to);
  }
  if (ok) return NULL;
  tfc_tensor_release(out);
  return damaged("GIF", "a picture");
}
