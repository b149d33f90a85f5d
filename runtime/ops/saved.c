// Bytes are hexadecimal digits. A tensor is its type, its dimensions with commas between them, and its bytes; of
// strings each element is a word.
#include "runtime/ops/saved.h"

#include <stdlib.h>

#include "runtime/base/state_text.h"
#include "runtime/base/units.h"

void tfc_saved_add_number(struct tfc_text *out, int64_t value) {
  tfc_text_printf(out, "\t%lld", (long long)value);
}

void tfc_saved_add_bytes(struct tfc_text *out, tfc_str bytes) {
  tfc_text_add(out, TFC_STR("\t"));
  tfc_state_add_bytes(out, bytes);
}

bool tfc_saved_has_text(tfc_dtype dtype) {
  return dtype == TFC_STRING || tfc_dtype_is_plain(dtype);
}

void tfc_saved_add_tensor(struct tfc_text *out, const struct tfc_tensor *t) {
  tfc_text_printf(out, "\t%s\t", tfc_dtype_name(t->dtype));
  for (int d = 0; d < t->shape.rank; d++) tfc_text_printf(out, "%s%lld", d ? "," : "", (long long)t->shape.dims[d]);
  if (t->dtype != TFC_STRING) {
    tfc_saved_add_bytes(out, (tfc_str){t->data, t->size});
    return;
  }
  for (int64_t i = 0; i < tfc_tensor_elements(t); i++) tfc_saved_add_bytes(out, tfc_tensor_get_string(t, i));
}

// --- Reading ---------------------------------------------------------------------------------------------------------
static void fail(struct tfc_saved *in, const char *why) {
  if (!in->failure) in->failure = tfc_status_make(TFC_INVALID_ARGUMENT, "what was saved makes no sense: %s", why);
}

static tfc_str next(struct tfc_saved *in) {
  if (in->failure) return (tfc_str){0};
  if (!in->words.size || in->words.data[0] != '\t') {
    fail(in, "it ends too early");
    return (tfc_str){0};
  }
  const tfc_str rest = tfc_str_sub(in->words, 1, SIZE_MAX);
  const size_t end = tfc_str_find(rest, '\t');
  in->words = end == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(rest, end, SIZE_MAX);
  return tfc_str_sub(rest, 0, end);
}

int64_t tfc_saved_number(struct tfc_saved *in, int64_t least, int64_t most) {
  int64_t value = least;
  const tfc_str word = next(in);
  if (in->failure) return least;
  tfc_status s = tfc_parse_i64(word, &value);
  if (!s && value >= least && value <= most) return value;
  tfc_status_free(s);
  fail(in, "a number");
  return least;
}

char *tfc_saved_bytes(struct tfc_saved *in, size_t *out_size) {
  const tfc_str word = next(in);
  *out_size = 0;
  if (in->failure) return NULL;
  char *bytes = malloc(word.size / 2 + 1);
  if (!bytes) {
    in->failure = tfc_status_no_memory("what was saved");
    return NULL;
  }
  if (!tfc_state_copy_bytes(word, bytes)) fail(in, "bytes");
  bytes[word.size / 2] = 0;
  if (in->failure) {
    free(bytes);
    return NULL;
  }
  *out_size = word.size / 2;
  return bytes;
}

static void read_shape(struct tfc_saved *in, struct tfc_shape *out) {
  *out = TFC_SHAPE_SCALAR;
  for (tfc_str rest = next(in); rest.size && !in->failure;) {
    const size_t comma = tfc_str_find(rest, ',');
    int64_t dim = -1;
    tfc_status s = tfc_parse_i64(tfc_str_sub(rest, 0, comma), &dim);
    const bool wrong = s != NULL;
    tfc_status_free(s);
    if (wrong || dim < 0 || out->rank == TFC_MAX_RANK)
      fail(in, "a shape");
    else
      out->dims[out->rank++] = dim;
    rest = comma == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(rest, comma + 1, SIZE_MAX);
  }
}

static void read_strings(struct tfc_saved *in, struct tfc_tensor *t) {
  for (int64_t i = 0; i < tfc_tensor_elements(t) && !in->failure; i++) {
    size_t size;
    char *bytes = tfc_saved_bytes(in, &size);
    if (bytes) in->failure = tfc_tensor_set_string(t, i, (tfc_str){bytes, size});
    free(bytes);
  }
}

void tfc_saved_tensor(struct tfc_saved *in, tfc_dtype dtype, struct tfc_tensor *out) {
  struct tfc_shape shape;
  struct tfc_tensor t = {0};
  size_t bytes = 0;
  *out = t;
  const tfc_str type = next(in);
  read_shape(in, &shape);
  if (!in->failure && (tfc_dtype_parse(type) != dtype || !tfc_saved_has_text(dtype))) fail(in, "the type of a tensor");
  if (!in->failure) in->failure = tfc_tensor_bytes(dtype, &shape, &bytes);
  // Checked before memory is allocated: a broken file must not ask for more than it contains.
  const tfc_str word = dtype == TFC_STRING ? (tfc_str){0} : next(in);
  if (dtype == TFC_STRING ? (uint64_t)tfc_shape_elements(&shape) > in->words.size
                          : word.size / 2 != bytes || word.size % 2)
    fail(in, "a tensor's size is not that of its shape");
  if (!in->failure) in->failure = tfc_tensor_create(dtype, &shape, &t);
  if (in->failure) return;
  if (dtype == TFC_STRING)
    read_strings(in, &t);
  else if (!tfc_state_copy_bytes(word, t.data))
    fail(in, "bytes");
  if (in->failure)
    tfc_tensor_release(&t);
  else
    *out = t;
}

tfc_status tfc_saved_end(struct tfc_saved *in) {
  if (in->words.size) fail(in, "it is too long");
  tfc_status s = in->failure;
  in->failure = NULL;
  return s;
}
