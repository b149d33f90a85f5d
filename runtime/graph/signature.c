// The notation is that of TensorFlow's op registrations:
//   arguments   "a: T, b: N * T, c: Ref(T), d: Tlist, e: int32"
//   attributes  "T: {float, int32} = float, N: int >= 1, s: shape = [], names: list(string) >= 1 = []" The text is read
//   from left to right. A comma inside brackets or quotes does not end a part.
#include "runtime/graph/signature.h"

#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/units.h"

static tfc_str trim(tfc_str s) {
  while (s.size && (s.data[0] == ' ' || s.data[0] == '\n' || s.data[0] == '\t')) s.data++, s.size--;
  while (s.size && (s.data[s.size - 1] == ' ' || s.data[s.size - 1] == '\n' || s.data[s.size - 1] == '\t')) s.size--;
  return s;
}

// Takes the part before the first `separator`, outside of brackets and quotes, from `rest`.
static tfc_str next_part(tfc_str *rest, char separator) {
  int depth = 0;
  char quote = 0;
  size_t i = 0;
  for (; i < rest->size; i++) {
    char c = rest->data[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      depth++;
    } else if (c == ')' || c == ']' || c == '}') {
      depth--;
    } else if (depth == 0 && c == separator) {
      break;
    }
  }
  tfc_str part = trim(tfc_str_sub(*rest, 0, i));
  *rest = tfc_str_sub(*rest, i + 1, rest->size);
  return part;
}

static uint32_t count_parts(tfc_str text, char separator) {
  uint32_t n = 0;
  for (text = trim(text); text.size; n++) next_part(&text, separator);
  return n;
}

static bool wrapped(tfc_str s, const char *before, const char *after, tfc_str *out_inner) {
  if (!tfc_str_starts(s, before) || !tfc_str_ends(s, after) || s.size < strlen(before) + strlen(after)) return false;
  *out_inner = trim(tfc_str_sub(s, strlen(before), s.size - strlen(after)));
  return true;
}

static tfc_status bad(tfc_str part, const char *what) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s': %s", TFC_STR_ARG(part), what);
}

// --- Attributes ----------------------------------------------------------------------------------------------------
enum {
  integers = 1 << TFC_INT8 | 1 << TFC_INT16 | 1 << TFC_INT32 | 1 << TFC_INT64 | 1 << TFC_UINT8 | 1 << TFC_UINT16 |
             1 << TFC_UINT32 | 1 << TFC_UINT64,
  reals = integers | 1 << TFC_FLOAT | 1 << TFC_DOUBLE | 1 << TFC_HALF | 1 << TFC_BFLOAT16,
  quantized = 1 << TFC_QINT8 | 1 << TFC_QUINT8 | 1 << TFC_QINT32 | 1 << TFC_QINT16 | 1 << TFC_QUINT16,
  numbers = reals | 1 << TFC_COMPLEX64 | 1 << TFC_COMPLEX128 | quantized,
};

static bool base_kind(tfc_str s, tfc_attr_kind *out, uint32_t *out_allowed) {
  static const struct {
    const char *name;
    tfc_attr_kind kind;
    uint32_t allowed;
  } kinds[] = {{"int", TFC_ATTR_INT, 0},
               {"float", TFC_ATTR_FLOAT, 0},
               {"bool", TFC_ATTR_BOOL, 0},
               {"string", TFC_ATTR_STRING, 0},
               {"type", TFC_ATTR_TYPE, 0},
               {"shape", TFC_ATTR_SHAPE, 0},
               {"tensor", TFC_ATTR_TENSOR, 0},
               {"func", TFC_ATTR_FUNC, 0},
               {"numbertype", TFC_ATTR_TYPE, numbers},
               {"realnumbertype", TFC_ATTR_TYPE, reals},
               {"quantizedtype", TFC_ATTR_TYPE, quantized}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (tfc_str_is(s, kinds[i].name)) {
      *out = kinds[i].kind;
      *out_allowed = kinds[i].allowed;
      return true;
    }
  return false;
}

static tfc_attr_kind list_of(tfc_attr_kind kind) {
  return (tfc_attr_kind)(kind - TFC_ATTR_INT + TFC_ATTR_LIST_INT);
}

static tfc_status parse_kind(tfc_str s, struct tfc_arena *arena, struct tfc_op_attr *out) {
  tfc_str inner;
  if (wrapped(s, "list(", ")", &inner)) {
    TFC_RETURN_IF_ERROR(parse_kind(inner, arena, out));
    if (out->kind >= TFC_ATTR_PLACEHOLDER) return bad(s, "a list of that cannot be");
    out->kind = list_of(out->kind);
    return NULL;
  }
  if (wrapped(s, "{", "}", &inner)) { // types, or allowed strings
    out->kind = TFC_ATTR_TYPE;
    tfc_str *strings = TFC_ARENA_ARRAY(arena, tfc_str, (size_t)count_parts(inner, ',') + 1);
    if (!strings) return tfc_status_no_memory(NULL);
    out->strings = strings;
    while (inner.size) {
      tfc_str part = next_part(&inner, ',');
      if (part.size && (part.data[0] == '\'' || part.data[0] == '"')) {
        out->kind = TFC_ATTR_STRING;
        if (part.size >= 2) strings[out->string_count++] = tfc_str_sub(part, 1, part.size - 1);
        continue;
      }
      tfc_dtype t = tfc_dtype_parse(part);
      tfc_attr_kind kind;
      uint32_t allowed;
      if (t != TFC_DTYPE_NONE && !tfc_dtype_is_ref(t))
        out->allowed_types |= TFC_TYPE_BIT(t);
      else if (base_kind(part, &kind, &allowed) && kind == TFC_ATTR_TYPE && allowed)
        out->allowed_types |= allowed;
      else
        return bad(part, "not an element type");
    }
    return NULL;
  }
  // Otherwise it is a kind, or a word of TensorFlow's sources that stands for a set of types ("numbertype").
  if (!base_kind(s, &out->kind, &out->allowed_types)) return bad(s, "not a kind of attribute");
  return NULL;
}

static tfc_status parse_shape(tfc_str text, struct tfc_shape *out) {
  tfc_str inner;
  struct tfc_shape shape = TFC_SHAPE_SCALAR;
  if (wrapped(text, "{", "}", &inner)) { // { unknown_rank: true }
    *out = TFC_SHAPE_UNKNOWN;
    return NULL;
  }
  if (tfc_str_is(text, "unknown") || tfc_str_is(text, "None")) {
    *out = TFC_SHAPE_UNKNOWN;
    return NULL;
  }
  if (!wrapped(text, "[", "]", &inner)) return bad(text, "not a shape");
  while (inner.size) {
    if (shape.rank == TFC_MAX_RANK) return bad(text, "too many dimensions");
    tfc_str part = next_part(&inner, ',');
    int64_t d = -1;
    if (!tfc_str_is(part, "?")) TFC_RETURN_IF_ERROR(tfc_parse_i64(part, &d));
    shape.dims[shape.rank++] = d;
  }
  *out = shape;
  return NULL;
}

static tfc_status parse_value(tfc_str text, tfc_attr_kind kind, struct tfc_arena *arena, struct tfc_attr *out) {
  out->kind = kind;
  tfc_str inner;
  switch (kind) {
  case TFC_ATTR_INT: return tfc_parse_i64(text, &out->i);
  case TFC_ATTR_FLOAT: {
    char *copy = (char *)tfc_arena_str(arena, text).data, *end = copy;
    if (!copy) return tfc_status_no_memory(NULL);
    out->f = strtof(copy, &end); // attributes are 32-bit floats
    return *end || end == copy ? bad(text, "not a number") : NULL;
  }
  case TFC_ATTR_BOOL:
    if (!tfc_str_is(text, "true") && !tfc_str_is(text, "false")) return bad(text, "not true or false");
    out->b = tfc_str_is(text, "true");
    return NULL;
  case TFC_ATTR_STRING:
    if (!wrapped(text, "'", "'", &out->s) && !wrapped(text, "\"", "\"", &out->s)) return bad(text, "not a string");
    out->s = tfc_str_sub(text, 1, text.size - 1); // spaces inside the quotes are part of the value
    return NULL;
  case TFC_ATTR_TYPE:
    out->type = tfc_dtype_parse(text);
    return out->type == TFC_DTYPE_NONE ? bad(text, "not an element type") : NULL;
  case TFC_ATTR_SHAPE: {
    struct tfc_shape *shape = TFC_ARENA_NEW(arena, struct tfc_shape);
    if (!shape) return tfc_status_no_memory(NULL);
    out->shape = shape;
    return parse_shape(text, shape);
  }
  case TFC_ATTR_LIST_INT:
  case TFC_ATTR_LIST_FLOAT:
  case TFC_ATTR_LIST_BOOL:
  case TFC_ATTR_LIST_STRING:
  case TFC_ATTR_LIST_TYPE:
  case TFC_ATTR_LIST_SHAPE:
  case TFC_ATTR_LIST_FUNC: {
    if (!wrapped(text, "[", "]", &inner)) return bad(text, "not a list");
    uint32_t n = count_parts(inner, ',');
    void *items = tfc_arena_array(arena, n + 1, sizeof(struct tfc_shape));
    if (!items) return tfc_status_no_memory(NULL);
    out->count = n;
    for (uint32_t i = 0; i < n; i++) {
      struct tfc_attr item = {0};
      TFC_RETURN_IF_ERROR(
          parse_value(next_part(&inner, ','), (tfc_attr_kind)(kind - TFC_ATTR_LIST_INT + TFC_ATTR_INT), arena, &item));
      switch (kind) {
      case TFC_ATTR_LIST_INT: ((int64_t *)items)[i] = item.i; break;
      case TFC_ATTR_LIST_FLOAT: ((double *)items)[i] = item.f; break;
      case TFC_ATTR_LIST_BOOL: ((bool *)items)[i] = item.b; break;
      case TFC_ATTR_LIST_STRING: ((tfc_str *)items)[i] = item.s; break;
      case TFC_ATTR_LIST_TYPE: ((tfc_dtype *)items)[i] = item.type; break;
      default: ((struct tfc_shape *)items)[i] = *item.shape; break;
      }
    }
    out->ints = items; // all list members have this address
    return NULL;
  }
  default: return bad(text, "this kind of attribute has no default");
  }
}

static tfc_status parse_attr(tfc_str part, struct tfc_arena *arena, struct tfc_op_attr *out) {
  size_t colon = tfc_str_find(part, ':');
  if (colon == SIZE_MAX) return bad(part, "an attribute is written 'name: kind'");
  out->name = trim(tfc_str_sub(part, 0, colon));
  tfc_str rest = trim(tfc_str_sub(part, colon + 1, part.size));
  // kind [>= minimum] [= default]: the first '=' outside of brackets that is not part of ">="
  size_t minimum = SIZE_MAX, value = SIZE_MAX;
  int depth = 0;
  for (size_t i = 0; i < rest.size && value == SIZE_MAX; i++) {
    char c = rest.data[i];
    depth += (c == '(' || c == '{' || c == '[') - (c == ')' || c == '}' || c == ']');
    if (depth == 0 && c == '>' && i + 1 < rest.size && rest.data[i + 1] == '=')
      minimum = i++;
    else if (depth == 0 && c == '=')
      value = i;
  }
  tfc_str kind = trim(tfc_str_sub(rest, 0, minimum != SIZE_MAX ? minimum : value));
  TFC_RETURN_IF_ERROR(parse_kind(kind, arena, out));
  if (minimum != SIZE_MAX) {
    out->has_minimum = true;
    TFC_RETURN_IF_ERROR(tfc_parse_i64(trim(tfc_str_sub(rest, minimum + 2, value)), &out->minimum));
  }
  if (value != SIZE_MAX) {
    out->has_default = true;
    out->default_value.name = out->name;
    TFC_RETURN_IF_ERROR(
        parse_value(trim(tfc_str_sub(rest, value + 1, rest.size)), out->kind, arena, &out->default_value));
  }
  return NULL;
}

// --- Arguments -----------------------------------------------------------------------------------------------------
static const struct tfc_op_attr *find_attr(const struct tfc_op_signature *sig, tfc_str name) {
  for (uint32_t i = 0; i < sig->attr_count; i++)
    if (tfc_str_equal(sig->attrs[i].name, name)) return &sig->attrs[i];
  return NULL;
}

static tfc_status parse_arg(tfc_str part, const struct tfc_op_signature *sig, struct tfc_op_arg *out) {
  size_t colon = tfc_str_find(part, ':');
  if (colon == SIZE_MAX) return bad(part, "an argument is written 'name: type'");
  out->name = trim(tfc_str_sub(part, 0, colon));
  tfc_str type = trim(tfc_str_sub(part, colon + 1, part.size)), inner;
  if (wrapped(type, "Ref(", ")", &inner)) {
    out->is_ref = true;
    type = inner;
  }
  size_t star = tfc_str_find(type, '*');
  if (star != SIZE_MAX) {
    out->number_attr = trim(tfc_str_sub(type, 0, star));
    type = trim(tfc_str_sub(type, star + 1, type.size));
    const struct tfc_op_attr *n = find_attr(sig, out->number_attr);
    if (!n || n->kind != TFC_ATTR_INT) return bad(part, "the number is not an int attribute of the op");
  }
  const struct tfc_op_attr *a = find_attr(sig, type);
  if (a) {
    if (a->kind != TFC_ATTR_TYPE && a->kind != TFC_ATTR_LIST_TYPE) return bad(part, "the attribute is not a type");
    out->type_attr = type;
    out->is_list = a->kind == TFC_ATTR_LIST_TYPE;
    return NULL;
  }
  out->type = tfc_dtype_parse(type);
  return out->type == TFC_DTYPE_NONE ? bad(part, "neither a type nor an attribute of the op") : NULL;
}

static tfc_status parse_args(const char *text, const struct tfc_op_signature *sig, struct tfc_arena *arena,
                             const struct tfc_op_arg **out, uint32_t *out_count) {
  tfc_str rest = trim(tfc_str_from(text));
  uint32_t n = count_parts(rest, ',');
  struct tfc_op_arg *args = TFC_ARENA_ARRAY(arena, struct tfc_op_arg, n + 1);
  if (!args) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < n; i++) TFC_RETURN_IF_ERROR(parse_arg(next_part(&rest, ','), sig, &args[i]));
  *out = args;
  *out_count = n;
  return NULL;
}

tfc_status tfc_signature_parse(const struct tfc_op_def *def, struct tfc_arena *arena, struct tfc_op_signature *out) {
  struct tfc_op_signature sig = {0};
  tfc_str rest = trim(tfc_str_from(def->attrs));
  sig.attr_count = count_parts(rest, ',');
  struct tfc_op_attr *attrs = TFC_ARENA_ARRAY(arena, struct tfc_op_attr, sig.attr_count + 1);
  if (!attrs) return tfc_status_no_memory(NULL);
  sig.attrs = attrs;
  tfc_status s = NULL;
  for (uint32_t i = 0; i < sig.attr_count && !s; i++) s = parse_attr(next_part(&rest, ','), arena, &attrs[i]);
  if (!s) s = parse_args(def->inputs, &sig, arena, &sig.inputs, &sig.input_count);
  if (!s) s = parse_args(def->outputs, &sig, arena, &sig.outputs, &sig.output_count);
  if (s) return tfc_status_annotate(s, "signature of op %s", def->name);
  *out = sig;
  return NULL;
}

// --- Attributes of a node ------------------------------------------------------------------------------------------
static bool allowed_type(const struct tfc_op_attr *want, tfc_dtype t) {
  return !want->allowed_types || want->allowed_types >> tfc_dtype_base(t) & 1;
}
static bool allowed_string(const struct tfc_op_attr *want, tfc_str s) {
  for (uint32_t i = 0; i < want->string_count; i++)
    if (tfc_str_equal(s, want->strings[i])) return true;
  return !want->string_count;
}

static tfc_status check_attr(const struct tfc_op_attr *want, const struct tfc_attr *a) {
  if (a->kind != want->kind) { // an empty list matches every kind of list
    bool both_lists = a->kind > TFC_ATTR_PLACEHOLDER && want->kind > TFC_ATTR_PLACEHOLDER;
    if (both_lists && a->count == 0) return NULL;
    return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' is of another kind", TFC_STR_ARG(want->name));
  }
  switch (a->kind) {
  case TFC_ATTR_TYPE:
    if (!allowed_type(want, a->type))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' must not be %s", TFC_STR_ARG(want->name),
                             tfc_dtype_name(a->type));
    break;
  case TFC_ATTR_LIST_TYPE:
    for (uint32_t i = 0; i < a->count; i++)
      if (!allowed_type(want, a->types[i]))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' must not have %s", TFC_STR_ARG(want->name),
                               tfc_dtype_name(a->types[i]));
    break;
  case TFC_ATTR_STRING:
    if (!allowed_string(want, a->s))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' must not be \"%.*s\"", TFC_STR_ARG(want->name),
                             TFC_STR_ARG(a->s));
    break;
  case TFC_ATTR_LIST_STRING:
    for (uint32_t i = 0; i < a->count; i++)
      if (!allowed_string(want, a->strings[i]))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' must not have \"%.*s\"", TFC_STR_ARG(want->name),
                               TFC_STR_ARG(a->strings[i]));
    break;
  default: break;
  }
  if (!want->has_minimum) return NULL;
  if (a->kind == TFC_ATTR_INT && a->i < want->minimum)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' is %lld, less than %lld", TFC_STR_ARG(want->name),
                           (long long)a->i, (long long)want->minimum);
  if (a->kind > TFC_ATTR_PLACEHOLDER && (int64_t)a->count < want->minimum)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' has %u items, fewer than %lld",
                           TFC_STR_ARG(want->name), a->count, (long long)want->minimum);
  return NULL;
}

tfc_status tfc_op_check_attrs(const struct tfc_graph *g, const struct tfc_node *n) {
  const struct tfc_op_signature *sig = tfc_op_signature(n->def);
  const struct tfc_attr *attrs = g->attrs + n->attr_begin;
  for (uint32_t i = 0; i < sig->attr_count; i++) {
    const struct tfc_op_attr *want = &sig->attrs[i];
    bool found = false;
    for (uint32_t k = 0; k < n->attr_count && !found; k++) {
      if (!tfc_str_equal(attrs[k].name, want->name)) continue;
      found = true;
      if (attrs[k].kind != TFC_ATTR_PLACEHOLDER) TFC_RETURN_IF_ERROR(check_attr(want, &attrs[k]));
    }
    if (!found && !want->has_default && want->kind != TFC_ATTR_TENSOR) // rows do not contain defaults that are tensors
      return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%.*s' is missing", TFC_STR_ARG(want->name));
  }
  return NULL;
}
