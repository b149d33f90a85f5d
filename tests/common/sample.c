#include "tests/common/sample.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/base/units.h"

enum { MOST = SAMPLE_MOST };

static tfc_str trim(tfc_str s) {
  while (s.size && (s.data[0] == ' ' || s.data[0] == '\n')) s.data++, s.size--;
  while (s.size && (s.data[s.size - 1] == ' ' || s.data[s.size - 1] == '\n')) s.size--;
  return s;
}
// Returns the part before the first separator that is in no bracket or quote; `rest` becomes the text after that
// separator.
static tfc_str cut(tfc_str *rest, char separator) {
  int depth = 0;
  bool quoted = false;
  size_t i = 0;
  for (; i < rest->size; i++) {
    char c = rest->data[i];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{' || c == '(') depth++;
    if (c == ']' || c == '}' || c == ')') depth--;
    if (depth == 0 && c == separator) break;
  }
  tfc_str part = trim(tfc_str_sub(*rest, 0, i));
  *rest = tfc_str_sub(*rest, i + 1, rest->size);
  return part;
}

int sample_count(const char *samples) {
  int n = 0;
  for (tfc_str rest = tfc_str_from(samples); trim(rest).size; n++) cut(&rest, ';');
  return n;
}

static void put(struct tfc_tensor *t, int64_t i, double v) {
  switch (t->dtype) {
  case TFC_FLOAT: ((float *)t->data)[i] = (float)v; break;
  case TFC_DOUBLE: ((double *)t->data)[i] = v; break;
  case TFC_HALF: ((uint16_t *)t->data)[i] = tfc_float_to_half((float)v); break;
  case TFC_BFLOAT16: ((uint16_t *)t->data)[i] = tfc_float_to_bfloat16((float)v); break;
  case TFC_COMPLEX64:
    ((float *)t->data)[2 * i] = (float)v;
    ((float *)t->data)[2 * i + 1] = (float)(0.5 - v);
    break;
  case TFC_COMPLEX128:
    ((double *)t->data)[2 * i] = v;
    ((double *)t->data)[2 * i + 1] = 0.5 - v;
    break;
  case TFC_STRING: {
    char text[2] = {(char)('a' + (int)(v * 8) % 26), 0};
    if (tfc_tensor_set_string(t, i, tfc_str_from(text))) abort();
    break;
  }
  case TFC_BOOL: ((bool *)t->data)[i] = v > 0.5; break;
  case TFC_INT8:
  case TFC_QINT8:
  case TFC_QUINT8:
  case TFC_UINT8: ((int8_t *)t->data)[i] = (int8_t)v; break;
  case TFC_INT16:
  case TFC_QINT16:
  case TFC_QUINT16:
  case TFC_UINT16: ((int16_t *)t->data)[i] = (int16_t)v; break;
  case TFC_INT64:
  case TFC_UINT64: ((int64_t *)t->data)[i] = (int64_t)v; break;
  default: ((int32_t *)t->data)[i] = (int32_t)v; break;
  }
}

static tfc_status parse_number(tfc_str text, double *out) {
  char buffer[64], *end;
  text = trim(text);
  if (tfc_str_is(text, "true") || tfc_str_is(text, "false")) {
    *out = tfc_str_is(text, "true");
    return NULL;
  }
  if (text.size == 0 || text.size >= sizeof buffer)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a number", TFC_STR_ARG(text));
  memcpy(buffer, text.data, text.size);
  buffer[text.size] = 0;
  *out = strtod(buffer, &end);
  return *end ? tfc_status_make(TFC_INVALID_ARGUMENT, "'%s' is not a number", buffer) : NULL;
}

static tfc_status parse_dims(tfc_str text, struct tfc_shape *out) {
  struct tfc_shape s = TFC_SHAPE_SCALAR;
  while (trim(text).size) {
    tfc_str part = cut(&text, ',');
    double v = -1;
    if (s.rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
    if (!tfc_str_is(part, "?")) TFC_RETURN_IF_ERROR(parse_number(part, &v));
    s.dims[s.rank++] = (int64_t)v;
  }
  *out = s;
  return NULL;
}

// Parses an input such as "float[2,3]=[...]".
static tfc_status parse_input(tfc_str text, struct tfc_random *random, struct tfc_tensor *out, bool *out_given) {
  size_t open = tfc_str_find(text, '['), close = tfc_str_find(text, ']');
  struct tfc_shape shape;
  if (open == SIZE_MAX || close == SIZE_MAX || close < open)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not an input", TFC_STR_ARG(text));
  tfc_dtype type = tfc_dtype_parse(trim(tfc_str_sub(text, 0, open)));
  if (type == TFC_DTYPE_NONE || type == TFC_RESOURCE || type == TFC_VARIANT)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' has no plain type", TFC_STR_ARG(text));
  TFC_RETURN_IF_ERROR(parse_dims(tfc_str_sub(text, open + 1, close), &shape));
  TFC_RETURN_IF_ERROR(tfc_tensor_create(type, &shape, out));
  int64_t n = tfc_tensor_elements(out), i = 0;
  tfc_str values = trim(tfc_str_sub(text, close + 1, text.size));
  bool given = *out_given = values.size && values.data[0] == '=';
  values = trim(tfc_str_sub(values, 1, values.size));
  if (given && values.size && values.data[0] == '[') values = tfc_str_sub(values, 1, values.size - 1);
  for (; i < n; i++) {
    double v = tfc_random_unit(random);
    if (tfc_dtype_is_integer(type)) v *= 2.5; // 0, 1, 2
    if (given) {
      if (i && !trim(values).size)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' has too few values", TFC_STR_ARG(text));
      TFC_RETURN_IF_ERROR(parse_number(cut(&values, ','), &v));
    }
    put(out, i, v);
  }
  return trim(values).size && given
             ? tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' has too many values", TFC_STR_ARG(text))
             : NULL;
}

// Parses "name=value" by the type that the op declares for the attribute. The store keeps the elements of lists and
// shapes, which attributes only point to.
struct store {
  int64_t ints[MOST][MOST];
  double floats[MOST][MOST];
  tfc_dtype types[MOST][MOST];
  struct tfc_shape shapes[MOST];
};
static tfc_status parse_attr(const struct tfc_op_def *def, tfc_str text, uint32_t at, struct store *store,
                             struct tfc_attr *out) {
  tfc_str value = text, name = cut(&value, '=');
  const struct tfc_op_signature *signature = tfc_op_signature(def);
  const struct tfc_op_attr *declared = NULL;
  for (uint32_t i = 0; i < signature->attr_count; i++)
    if (tfc_str_equal(signature->attrs[i].name, name)) declared = &signature->attrs[i];
  if (!declared) return tfc_status_make(TFC_INVALID_ARGUMENT, "no attribute '%.*s'", TFC_STR_ARG(name));
  value = trim(value);
  struct tfc_attr a = {.name = declared->name, .kind = declared->kind};
  double number = 0;
  tfc_str items = value.size > 1 && value.data[0] == '[' ? tfc_str_sub(value, 1, value.size - 1) : value;
  switch (a.kind) {
  case TFC_ATTR_INT:
    TFC_RETURN_IF_ERROR(parse_number(value, &number));
    a.i = (int64_t)number;
    break;
  case TFC_ATTR_FLOAT: TFC_RETURN_IF_ERROR(parse_number(value, &a.f)); break;
  case TFC_ATTR_BOOL: a.b = tfc_str_is(value, "true"); break;
  case TFC_ATTR_STRING: a.s = value.size > 1 ? tfc_str_sub(value, 1, value.size - 1) : value; break;
  case TFC_ATTR_TYPE: a.type = tfc_dtype_parse(value); break;
  case TFC_ATTR_SHAPE:
    TFC_RETURN_IF_ERROR(parse_dims(items, &store->shapes[at]));
    a.shape = &store->shapes[at];
    break;
  case TFC_ATTR_LIST_INT:
  case TFC_ATTR_LIST_FLOAT:
  case TFC_ATTR_LIST_TYPE:
    for (; trim(items).size && a.count < MOST; a.count++) {
      tfc_str part = cut(&items, ',');
      if (a.kind == TFC_ATTR_LIST_TYPE) {
        store->types[at][a.count] = tfc_dtype_parse(part);
        continue;
      }
      TFC_RETURN_IF_ERROR(parse_number(part, &number));
      store->ints[at][a.count] = (int64_t)number;
      store->floats[at][a.count] = number;
    }
    if (a.kind == TFC_ATTR_LIST_INT) a.ints = store->ints[at];
    if (a.kind == TFC_ATTR_LIST_FLOAT) a.floats = store->floats[at];
    if (a.kind == TFC_ATTR_LIST_TYPE) a.types = store->types[at];
    break;
  default: return tfc_status_make(TFC_UNIMPLEMENTED, "attribute '%.*s' of this kind", TFC_STR_ARG(name));
  }
  *out = a;
  return NULL;
}

tfc_status sample_read(const struct tfc_op_def *def, const char *samples, int index, uint64_t seed,
                       struct sample *out) {
  struct sample sample = {.store = calloc(1, sizeof(struct store))};
  struct tfc_random random;
  tfc_status s = NULL;
  tfc_str rest = tfc_str_from(samples), text = {0};
  if (!sample.store) return tfc_status_no_memory(NULL);
  for (int i = 0; i <= index; i++) text = cut(&rest, ';');
  tfc_random_init(&random, seed + (uint64_t)index);
  // Attributes begin at the first brace.
  size_t brace = tfc_str_find(text, '{');
  tfc_str given = trim(tfc_str_sub(text, 0, brace == SIZE_MAX ? text.size : brace));
  while (given.size) {
    uint32_t i = sample.input_count;
    if (i == SAMPLE_MOST) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "too many inputs");
    TFC_TRY(s, parse_input(cut(&given, ','), &random, &sample.inputs[i], &sample.given[i]));
    sample.input_count++;
    given = trim(given);
  }
  if (brace != SIZE_MAX) {
    tfc_str list = trim(tfc_str_sub(text, brace + 1, text.size));
    if (list.size && list.data[list.size - 1] == '}') list.size--;
    while (trim(list).size) {
      if (sample.attr_count == SAMPLE_MOST) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "too many attributes");
      TFC_TRY(s, parse_attr(def, cut(&list, ','), sample.attr_count, sample.store, &sample.attrs[sample.attr_count]));
      sample.attr_count++;
    }
  }
  *out = sample;
  return NULL;
out:
  sample_deinit(&sample);
  return s;
}

void sample_deinit(struct sample *sample) {
  for (uint32_t i = 0; i < SAMPLE_MOST; i++) tfc_tensor_release(&sample->inputs[i]);
  free(sample->store);
  *sample = (struct sample){0};
}

tfc_status sample_graph(const struct tfc_op_def *def, const char *samples, int index, uint64_t seed,
                        struct tfc_graph **out, uint32_t *out_node) {
  struct tfc_builder *b = NULL;
  struct sample sample = {0};
  struct tfc_output inputs[SAMPLE_MOST];
  tfc_status s = NULL;
  TFC_TRY(s, sample_read(def, samples, index, seed, &sample));
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  for (uint32_t i = 0; i < sample.input_count; i++) inputs[i] = tfc_add_const(b, "", &sample.inputs[i]);
  struct tfc_node_spec spec = {.op = def->name,
                               .inputs = inputs,
                               .input_count = sample.input_count,
                               .attrs = sample.attrs,
                               .attr_count = sample.attr_count,
                               .colocate_with = TFC_NONE};
  *out_node = tfc_builder_add(b, &spec);
  s = tfc_builder_finish(b, out);
out:
  sample_deinit(&sample);
  tfc_builder_free(b);
  return s;
}
