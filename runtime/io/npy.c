// The header of a file is a Python dictionary with three keys, as text. A small scanner reads it and accepts nothing
// else.
#include "runtime/io/npy.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/file.h"
#include "runtime/base/memory_account.h"

struct header {
  tfc_str descr;
  bool fortran;
  struct tfc_shape shape;
};

struct scanner {
  const char *at, *end;
};
static void skip(struct scanner *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t')) p->at++;
}
static bool take(struct scanner *p, const char *text) {
  skip(p);
  size_t n = strlen(text);
  if ((size_t)(p->end - p->at) < n || memcmp(p->at, text, n) != 0) return false;
  p->at += n;
  return true;
}
static bool take_text(struct scanner *p, tfc_str *out) {
  skip(p);
  if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return false;
  char quote = *p->at++;
  const char *start = p->at;
  while (p->at < p->end && *p->at != quote) p->at++;
  if (p->at == p->end) return false;
  *out = (tfc_str){start, (size_t)(p->at - start)};
  p->at++;
  return true;
}
static bool take_number(struct scanner *p, int64_t *out) {
  skip(p);
  int64_t value = 0;
  const char *start = p->at;
  while (p->at < p->end && *p->at >= '0' && *p->at <= '9') {
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *p->at - '0', &value)) return false;
    p->at++;
  }
  if (p->at == start) return false;
  (void)take(p, "L"); // Python 2 wrote long integers with an L
  *out = value;
  return true;
}

static tfc_status read_header(tfc_str text, struct header *out) {
  struct scanner p = {text.data, text.data + text.size};
  struct header h = {0};
  bool seen[3] = {0};
  tfc_status s = NULL;
  if (!take(&p, "{")) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the header is not a dictionary");
  while (!take(&p, "}")) {
    tfc_str key;
    if (!take_text(&p, &key) || !take(&p, ":")) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the header is not a dictionary");
    if (tfc_str_is(key, "descr")) {
      if (!take_text(&p, &h.descr))
        TFC_FAIL(s, TFC_UNIMPLEMENTED, "record types are not read: only arrays of numbers, booleans or byte strings");
      seen[0] = true;
    } else if (tfc_str_is(key, "fortran_order")) {
      h.fortran = take(&p, "True");
      if (!h.fortran && !take(&p, "False"))
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "fortran_order is neither True nor False");
      seen[1] = true;
    } else if (tfc_str_is(key, "shape")) {
      if (seen[2] || !take(&p, "(")) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the shape is not one tuple");
      while (!take(&p, ")")) {
        if (h.shape.rank == TFC_MAX_RANK) TFC_FAIL(s, TFC_UNIMPLEMENTED, "more than %d dimensions", TFC_MAX_RANK);
        if (!take_number(&p, &h.shape.dims[h.shape.rank]))
          TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the shape is not a tuple of whole numbers");
        h.shape.rank++;
        if (!take(&p, ",") && !(p.at < p.end && (skip(&p), p.at < p.end && *p.at == ')')))
          TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the shape is not a tuple of whole numbers");
      }
      seen[2] = true;
    } else {
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the header has an unknown key '%.*s'", TFC_STR_ARG(key));
    }
    if (!take(&p, ",")) {
      if (!take(&p, "}")) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the header is not a dictionary");
      break;
    }
  }
  if (!seen[0] || !seen[1] || !seen[2])
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the header lacks one of descr, fortran_order and shape");
  *out = h;
out:
  return s;
}

// Reads types like "<f4". `width` is the length of a string type, otherwise 0; for `wide` it counts code points of four
// bytes.
static tfc_status read_type(tfc_str descr, tfc_dtype *out, size_t *out_width, bool *out_wide, bool *out_swap) {
  static const struct {
    const char *text;
    tfc_dtype dtype;
  } types[] = {{"f4", TFC_FLOAT},     {"f8", TFC_DOUBLE},     {"f2", TFC_HALF},   {"i1", TFC_INT8},
               {"i2", TFC_INT16},     {"i4", TFC_INT32},      {"i8", TFC_INT64},  {"u1", TFC_UINT8},
               {"u2", TFC_UINT16},    {"u4", TFC_UINT32},     {"u8", TFC_UINT64}, {"b1", TFC_BOOL},
               {"c8", TFC_COMPLEX64}, {"c16", TFC_COMPLEX128}};
  if (descr.size < 2 || !strchr("<>|=", descr.data[0]))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the type '%.*s' is not NumPy's", TFC_STR_ARG(descr));
  tfc_str name = tfc_str_sub(descr, 1, SIZE_MAX);
  *out_swap = descr.data[0] == '>';
  *out_width = 0;
  *out_wide = name.data[0] == 'U';
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (tfc_str_is(name, types[i].text)) {
      *out = types[i].dtype;
      return NULL;
    }
  if (name.data[0] == 'S' || name.data[0] == 'U') {
    size_t width = 0;
    for (size_t i = 1; i < name.size; i++) {
      if (name.data[i] < '0' || name.data[i] > '9' || width > (1u << 30)) {
        width = 0;
        break;
      }
      width = width * 10 + (size_t)(name.data[i] - '0');
    }
    if (width > 0 || tfc_str_is(name, "S0") || tfc_str_is(name, "U0")) {
      *out = TFC_STRING, *out_width = width;
      return NULL;
    }
  }
  return tfc_status_make(TFC_UNIMPLEMENTED, "elements of type '%.*s' are not read: only numbers, booleans and strings",
                         TFC_STR_ARG(descr));
}

static void swap_bytes(uint8_t *data, size_t count, size_t size) {
  for (size_t i = 0; i < count; i++, data += size)
    for (size_t k = 0; k < size / 2; k++) {
      uint8_t b = data[k];
      data[k] = data[size - 1 - k], data[size - 1 - k] = b;
    }
}

// Converts code points of four bytes each to UTF-8; zeros at the end are padding.
static tfc_status set_text(struct tfc_tensor *t, int64_t i, tfc_str from, bool swap) {
  size_t n = from.size / 4, size = 0;
  tfc_status s = NULL;
  char *text = malloc(from.size + 1); // UTF-8 needs at most four bytes for each
  if (!text) TFC_TRY(s, tfc_status_no_memory(NULL));
  while (n > 0 && memcmp(from.data + 4 * (n - 1), "\0\0\0", 4) == 0) n--;
  for (size_t k = 0; k < n; k++) {
    const uint8_t *b = (const uint8_t *)from.data + 4 * k;
    uint32_t c = swap ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
                      : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "element %lld has no character %#x", (long long)i, c);
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    text[size++] = (char)(first[more] | c >> 6 * more);
    while (more-- > 0) text[size++] = (char)(0x80 | (c >> 6 * more & 0x3f));
  }
  TFC_TRY(s, tfc_tensor_set_string(t, i, (tfc_str){text, size}));
out:
  free(text);
  return s;
}

static tfc_status parse(tfc_str bytes, struct tfc_tensor *out) {
  struct tfc_tensor t = {0};
  struct header h;
  tfc_status s = NULL;
  const uint8_t *p = (const uint8_t *)bytes.data;
  if (bytes.size < 10 || memcmp(p, "\x93NUMPY", 6) != 0) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "not a .npy file");
  size_t start = p[6] == 1 ? 10 : 12, size;
  if (p[6] < 1 || p[6] > 3) TFC_FAIL(s, TFC_UNIMPLEMENTED, "version %u of the format", p[6]);
  if (bytes.size < start) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the file ends in its header");
  size = p[6] == 1 ? (size_t)p[8] | (size_t)p[9] << 8
                   : (size_t)p[8] | (size_t)p[9] << 8 | (size_t)p[10] << 16 | (size_t)p[11] << 24;
  if (size > bytes.size - start) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the file ends in its header");
  TFC_TRY(s, read_header(tfc_str_sub(bytes, start, start + size), &h));
  tfc_dtype dtype = TFC_DTYPE_NONE;
  size_t width = 0, element, wanted, have = bytes.size - start - size;
  bool swap = false, wide = false;
  TFC_TRY(s, read_type(h.descr, &dtype, &width, &wide, &swap));
  if (wide) width *= 4;
  int64_t count = tfc_shape_elements(&h.shape);
  element = dtype == TFC_STRING ? width : tfc_dtype_size(dtype);
  if (count < 0 || __builtin_mul_overflow((size_t)count, element, &wanted) ||
      (count > 0 && element == 0 && count > 1 << 24))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the shape is too large");
  if (wanted != have)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the header promises %zu bytes of values, the file holds %zu", wanted, have);
  TFC_TRY(s, tfc_tensor_create(dtype, &h.shape, &t));
  const char *values = bytes.data + start + size;
  int64_t index[TFC_MAX_RANK] = {0};
  for (int64_t i = 0; i < count && element > 0; i++) { // strings of width 0 stay empty
    // `at` becomes the position in the file of element i in C order
    int64_t at = i;
    if (h.fortran) {
      int64_t stride = 1;
      at = 0;
      for (int32_t d = 0; d < h.shape.rank; d++) at += index[d] * stride, stride *= h.shape.dims[d];
      for (int32_t d = h.shape.rank - 1; d >= 0 && ++index[d] == h.shape.dims[d]; d--) index[d] = 0;
    } else if (dtype != TFC_STRING) { // copies all elements at once
      memcpy(t.data, values, wanted);
      break;
    }
    const char *from = values + (size_t)at * element;
    if (dtype == TFC_STRING && wide) {
      TFC_TRY(s, set_text(&t, i, (tfc_str){from, width}, swap));
    } else if (dtype == TFC_STRING) {
      size_t n = width;
      while (n > 0 && from[n - 1] == 0) n--;
      TFC_TRY(s, tfc_tensor_set_string(&t, i, (tfc_str){from, n}));
    } else {
      memcpy((char *)t.data + (size_t)i * element, from, element);
    }
  }
  if (swap && dtype != TFC_STRING) {
    bool pair = tfc_dtype_is_complex(dtype);
    swap_bytes(t.data, (size_t)count * (pair ? 2 : 1), element / (pair ? 2 : 1));
  }
  if (dtype == TFC_BOOL)
    for (int64_t i = 0; i < count; i++) ((uint8_t *)t.data)[i] = ((uint8_t *)t.data)[i] != 0;
  *out = t;
  t = (struct tfc_tensor){0};
out:
  tfc_tensor_release(&t);
  return s;
}

tfc_status tfc_npy_parse(tfc_str bytes, const char *path, struct tfc_tensor *out) {
  return tfc_status_annotate(parse(bytes, out), "%s", path);
}

tfc_status tfc_npy_read(const char *path, struct tfc_tensor *out) {
  struct tfc_file file = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_file_map(path, &file));
  TFC_TRY(s, tfc_npy_parse((tfc_str){(const char *)file.data, file.size}, path, out));
out:
  tfc_file_unmap(&file);
  return s;
}

tfc_status tfc_npy_format(const struct tfc_tensor *tensor, struct tfc_text *out) {
  char header[512], descr[32];
  int64_t count = tfc_tensor_elements(tensor);
  size_t width = 1, taken = 0;
  tfc_status s = NULL;
  if (tensor->dtype == TFC_RESOURCE || tensor->dtype == TFC_VARIANT)
    TFC_FAIL(s, TFC_UNIMPLEMENTED, "a tensor of type %s cannot be written", tfc_dtype_name(tensor->dtype));
  if (tensor->dtype == TFC_STRING) {
    for (int64_t i = 0; i < count; i++)
      if (tfc_tensor_get_string(tensor, i).size > width) width = tfc_tensor_get_string(tensor, i).size;
    snprintf(descr, sizeof descr, "|S%zu", width);
    // In the file all strings are as long as the longest. A text that grows may have twice the memory that it needs.
    size_t wanted;
    if (__builtin_mul_overflow((size_t)count, width, &wanted) || wanted > SIZE_MAX / 4) wanted = SIZE_MAX / 4;
    if (!tfc_account_take(tfc_account_host(), 2 * wanted))
      TFC_TRY(s, tfc_status_annotate(tfc_account_exhausted(tfc_account_host(), 2 * wanted),
                                     "%lld strings, each as long as the longest, which has %zu bytes", (long long)count,
                                     width));
    taken = 2 * wanted;
  } else {
    snprintf(descr, sizeof descr, "%s", tensor->dtype == TFC_BFLOAT16 ? "<f4" : tfc_dtype_npy(tensor->dtype));
  }
  size_t n = (size_t)snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int32_t d = 0; d < tensor->shape.rank; d++)
    n += (size_t)snprintf(header + n, sizeof header - n, "%s%lld%s", d ? " " : "", (long long)tensor->shape.dims[d],
                          d + 1 < tensor->shape.rank || tensor->shape.rank == 1 ? "," : "");
  n += (size_t)snprintf(header + n, sizeof header - n, "), }");
  while ((10 + n + 1) % 64) header[n++] = ' ';
  header[n++] = '\n';
  const char prefix[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(n & 0xff), (char)(n >> 8)};
  tfc_text_add(out, (tfc_str){prefix, sizeof prefix});
  tfc_text_add(out, (tfc_str){header, n});
  if (tensor->dtype == TFC_STRING) {
    for (int64_t i = 0; i < count; i++) {
      tfc_str piece = tfc_tensor_get_string(tensor, i);
      static const char zeros[256];
      tfc_text_add(out, piece);
      for (size_t left = width - piece.size; left > 0;) {
        size_t some = left < sizeof zeros ? left : sizeof zeros;
        tfc_text_add(out, (tfc_str){zeros, some});
        left -= some;
      }
    }
  } else if (tensor->dtype == TFC_BFLOAT16) {
    for (int64_t i = 0; i < count; i++) {
      float value = tfc_bfloat16_to_float(((const uint16_t *)tensor->data)[i]);
      tfc_text_add(out, (tfc_str){(const char *)&value, sizeof value});
    }
  } else {
    tfc_text_add(out, (tfc_str){tensor->data, (size_t)count * tfc_dtype_size(tensor->dtype)});
  }
  if (out->failed) TFC_TRY(s, tfc_status_no_memory(NULL));
out:
  tfc_account_give(tfc_account_host(), taken);
  return s;
}

tfc_status tfc_npy_write(const char *path, const struct tfc_tensor *tensor) {
  struct tfc_text text = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_status_annotate(tfc_npy_format(tensor, &text), "%s", path));
  TFC_TRY(s, tfc_file_write(path, (tfc_str){text.data, text.size}));
out:
  tfc_text_deinit(&text);
  return s;
}
