// Each byte makes one choice, one byte after another. After the last byte all choices are 0, which always stands for
// the simplest one. So changing one byte changes one thing, unless that byte chooses a number of things.
#include "tests/common/made_graph.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/export_attr.h"
#include "runtime/graph/text_format.h"
#include "tests/common/sample.h"

enum {
  MOST_VALUES = 160,
  MOST_OPS = 4,
  MOST_DEPTH = 3,
  MOST_ELEMENTS = 256,
  MOST_LIST = 8,
  MOST_INPUTS = 32,
  KEPT = 16
};

struct value {
  char name[24];
  int32_t index;
  tfc_dtype type; // the type that the op declares, which may be a reference type
};
struct maker {
  const uint8_t *at, *end;
  struct tfc_text *out;
  struct tfc_arena arena; // for lists of attributes
  struct value values[MOST_VALUES];
  uint32_t value_count, node_count, depth;
  struct tfc_tensor kept[KEPT]; // tensors that attributes point to
  uint32_t kept_count;
  bool failed;
};

static uint8_t byte(struct maker *m) {
  return m->at < m->end ? *m->at++ : 0;
}
static uint32_t below(struct maker *m, uint32_t n) {
  return byte(m) % n;
}
static bool one_in(struct maker *m, uint32_t n) {
  return below(m, n) == n - 1;
}
static void *space(struct maker *m, size_t bytes) {
  void *p = tfc_arena_alloc(&m->arena, bytes);
  if (!p) abort();
  return p;
}

// --- The library of functions ---------------------------------------------------------------------------------------
#define FUNCTION(name, args, nodes, rets)                                                                              \
  "library { function { signature { name: '" name "' " args " } " nodes " " rets " } }\n"
#define IN(name, type) "input_arg { name: '" name "' type: " type " } "
#define OUT(name, type) "output_arg { name: '" name "' type: " type " } "
#define TYPE(key, type) "attr { key: '" key "' value { type: " type " } } "
#define NUMBER(name, type, value)                                                                                      \
  "node_def { name: '" name "' op: 'Const' " TYPE("dtype", type) "attr { key: 'value' value { tensor { dtype: " type   \
                                                                 " tensor_shape { } " value " } } } } "
#define UNARY(name, op, in, type) "node_def { name: '" name "' op: '" op "' input: '" in "' " TYPE("T", type) "} "
#define BINARY(name, op, a, b, type)                                                                                   \
  "node_def { name: '" name "' op: '" op "' input: '" a "' input: '" b "' " TYPE("T", type) "} "
#define RET(name, from) "ret { key: '" name "' value: '" from "' } "

static const char *const function_names[] = {"i_inc", "i_less", "i_add",  "i_range", "f_neg", "f_add",
                                             "f_pos", "j_inc",  "j_less", "none",    "i_two", "self",
                                             "s_len", "i_fail", "f_id",   "absent"};
static const char library[] = FUNCTION("i_inc", IN("x", "DT_INT64") OUT("y", "DT_INT64"),
                                       NUMBER("one", "DT_INT64", "int64_val: 1")
                                           BINARY("add", "AddV2", "x", "one:output:0", "DT_INT64"),
                                       RET("y", "add:z:0"))
    FUNCTION("i_less", IN("x", "DT_INT64") OUT("y", "DT_BOOL"),
             NUMBER("five", "DT_INT64", "int64_val: 5") BINARY("less", "Less", "x", "five:output:0", "DT_INT64"),
             RET("y", "less:z:0")) FUNCTION("i_add", IN("x", "DT_INT64") IN("y", "DT_INT64") OUT("z", "DT_INT64"),
                                            BINARY("add", "AddV2", "x", "y", "DT_INT64"), RET("z", "add:z:0"))
        FUNCTION(
            "i_range", IN("x", "DT_INT64") OUT("y", "DT_VARIANT"),
            NUMBER("zero", "DT_INT64", "int64_val: 0") NUMBER(
                "one", "DT_INT64",
                "int64_val: 1") "node_def { name: 'range' op: 'RangeDataset' input: 'zero:output:0' input: 'x' input: "
                                "'one:output:0' attr { key: 'output_types' value { list { type: DT_INT64 } } } attr { "
                                "key: 'output_shapes' value { list { shape { } } } } } ",
            RET("y", "range:handle:0")) FUNCTION("f_neg", IN("x", "DT_FLOAT") OUT("y", "DT_FLOAT"),
                                                 UNARY("neg", "Neg", "x", "DT_FLOAT"), RET("y", "neg:y:0"))
            FUNCTION("f_add", IN("x", "DT_FLOAT") IN("y", "DT_FLOAT") OUT("z", "DT_FLOAT"),
                     BINARY("add", "AddV2", "x", "y", "DT_FLOAT"),
                     RET("z", "add:z:0")) FUNCTION("f_pos", IN("x", "DT_FLOAT") OUT("y", "DT_BOOL"),
                                                   NUMBER("zero", "DT_FLOAT", "float_val: 0")
                                                       BINARY("pos", "Greater", "x", "zero:output:0", "DT_FLOAT"),
                                                   RET("y", "pos:z:0"))
                FUNCTION("j_inc", IN("x", "DT_INT32") OUT("y", "DT_INT32"),
                         NUMBER("one", "DT_INT32", "int_val: 1")
                             BINARY("add", "AddV2", "x", "one:output:0", "DT_INT32"),
                         RET("y", "add:z:0")) FUNCTION("j_less", IN("x", "DT_INT32") OUT("y", "DT_BOOL"),
                                                       NUMBER("five", "DT_INT32", "int_val: 5")
                                                           BINARY("less", "Less", "x", "five:output:0", "DT_INT32"),
                                                       RET("y", "less:z:0"))
                    FUNCTION("none", OUT("y", "DT_INT64"), NUMBER("one", "DT_INT64", "int64_val: 1"),
                             RET("y", "one:output:0"))
                        FUNCTION("i_two", IN("x", "DT_INT64") OUT("y", "DT_INT64") OUT("z", "DT_FLOAT"),
                                 NUMBER("half", "DT_FLOAT", "float_val: 0.5") UNARY("id", "Identity", "x", "DT_INT64"),
                                 RET("y", "id:output:0") RET("z", "half:output:0"))
                            FUNCTION("self", IN("x", "DT_FLOAT") OUT("y", "DT_FLOAT"),
                                     "node_def { name: 'call' op: 'self' input: 'x' } ", RET("y", "call:y:0"))
                                FUNCTION("s_len", IN("x", "DT_STRING") OUT("y", "DT_INT32"),
                                         "node_def { name: 'length' op: 'StringLength' input: 'x' } ",
                                         RET("y", "length:output:0"))
                                    FUNCTION("i_fail", IN("x", "DT_INT64") OUT("y", "DT_INT64"),
                                             NUMBER("zero", "DT_INT64", "int64_val: 0")
                                                 BINARY("div", "FloorDiv", "x", "zero:output:0", "DT_INT64"),
                                             RET("y", "div:z:0"))
                                        FUNCTION("f_id", IN("x", "DT_FLOAT") OUT("y", "DT_FLOAT"),
                                                 UNARY("id", "Identity", "x", "DT_FLOAT"), RET("y", "id:output:0"));

// --- Values ---------------------------------------------------------------------------------------------------------
static const int64_t odd_ints[] = {0,
                                   1,
                                   2,
                                   3,
                                   -1,
                                   -2,
                                   4,
                                   5,
                                   7,
                                   8,
                                   16,
                                   100,
                                   127,
                                   128,
                                   255,
                                   256,
                                   65535,
                                   1000000,
                                   INT32_MAX,
                                   INT32_MIN,
                                   (int64_t)1 << 31,
                                   1ll << 32,
                                   1ll << 40,
                                   1ll << 62,
                                   -100,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT64_MAX - 1,
                                   -65536,
                                   33,
                                   INT32_MAX / 2};
static const double odd_floats[] = {0,       1,      -1,      0.5,      2,       1e-3,         INFINITY,     -INFINITY,
                                    NAN,     -0.0,   FLT_MAX, -FLT_MAX, FLT_MIN, FLT_TRUE_MIN, 1e30,         -1e30,
                                    DBL_MAX, 1e-300, 1e-20,   100,      -7.25,   65504,        2147483648.0, 9.3e18,
                                    -9.3e18};
static const char *const odd_strings[] = {"",       "a",     "abc",      "1",        "-1",      "3.5",
                                          "nan",    "1e400", "\xc3\xa9", "\xff\xfe", "a,b,\"c", "(",
                                          "[a-z]+", "%s%n",  "a b c",    "true",     "NHWC",    "NCHW",
                                          "SAME",   "VALID", "UTF-8",    "i,j->ij",  "\\1",     "\xf0\x9f\x98\x80",
                                          "2",      "0x10",  "float32",  "b"};
#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof *(list)))

static int64_t pick_int(struct maker *m) {
  return odd_ints[below(m, COUNT(odd_ints))];
}
static double pick_float(struct maker *m) {
  return odd_floats[below(m, COUNT(odd_floats))];
}
static tfc_str pick_string(struct maker *m) {
  uint32_t which = below(m, COUNT(odd_strings) + 4);
  if (which < COUNT(odd_strings)) return tfc_str_from(odd_strings[which]);
  if (which == COUNT(odd_strings)) { // a long string
    char *text = space(m, 300);
    memset(text, 'a' + (char)below(m, 26), 300);
    return (tfc_str){text, 300};
  }
  size_t size = byte(m), left = (size_t)(m->end - m->at); // the bytes of the string are used as they are
  if (size > left) size = left;
  char *text = space(m, size + 1);
  memcpy(text, m->at, size);
  m->at += size;
  return (tfc_str){text, size};
}

static struct tfc_shape pick_shape(struct maker *m, bool static_only) {
  static const int8_t dims[] = {2, 1, 3, 0, 4, 1, 2, 5, 7, 16, -1, 3};
  uint32_t rank = below(m, 8);
  struct tfc_shape s = {.rank = (int32_t)(rank == 7 ? below(m, TFC_MAX_RANK + 1) : rank)};
  if (rank == 6 && !static_only) return TFC_SHAPE_UNKNOWN;
  int64_t elements = 1;
  for (int d = 0; d < s.rank; d++) {
    s.dims[d] = dims[below(m, COUNT(dims))];
    if (!static_only) continue;
    if (s.dims[d] < 0) s.dims[d] = 1;
    if (s.dims[d] > 1 && elements * s.dims[d] > MOST_ELEMENTS) s.dims[d] = 1;
    elements *= s.dims[d] ? s.dims[d] : 1;
  }
  return s;
}

static void put_number(struct tfc_tensor *t, int64_t i, int64_t v, double f) {
  switch (t->dtype) {
  case TFC_FLOAT: ((float *)t->data)[i] = (float)f; break;
  case TFC_DOUBLE: ((double *)t->data)[i] = f; break;
  case TFC_HALF: ((uint16_t *)t->data)[i] = tfc_float_to_half((float)f); break;
  case TFC_BFLOAT16: ((uint16_t *)t->data)[i] = tfc_float_to_bfloat16((float)f); break;
  case TFC_COMPLEX64: ((float *)t->data)[2 * i] = (float)f, ((float *)t->data)[2 * i + 1] = (float)(1 - f); break;
  case TFC_COMPLEX128: ((double *)t->data)[2 * i] = f, ((double *)t->data)[2 * i + 1] = 1 - f; break;
  case TFC_BOOL: ((uint8_t *)t->data)[i] = v & 1; break;
  default: memcpy((char *)t->data + (size_t)i * tfc_dtype_size(t->dtype), &v, tfc_dtype_size(t->dtype)); break;
  }
}

// How the elements of a tensor are made: 0: small; 1: rising; 2: extreme; 3: all equal; 4: small with one extreme; 5:
// the bytes as they are.
static void fill(struct maker *m, struct tfc_tensor *t) {
  int64_t n = tfc_tensor_elements(t);
  uint32_t style = below(m, 6);
  if (t->dtype == TFC_STRING) {
    for (int64_t i = 0; i < n; i++)
      if (tfc_tensor_set_string(t, i, pick_string(m))) abort();
    return;
  }
  int64_t same = style == 3 ? pick_int(m) : 0;
  double same_float = style == 3 ? pick_float(m) : 0;
  for (int64_t i = 0; i < n; i++) {
    int8_t b;
    switch (style) {
    case 1: put_number(t, i, i, (double)i / 4); break;
    case 2: put_number(t, i, pick_int(m), pick_float(m)); break;
    case 3: put_number(t, i, same, same_float); break;
    case 5:
      if (t->dtype == TFC_BOOL || m->at == m->end) {
        put_number(t, i, 0, 0);
        break;
      }
      for (size_t k = 0; k < tfc_dtype_size(t->dtype); k++)
        ((uint8_t *)t->data)[(size_t)i * tfc_dtype_size(t->dtype) + k] = byte(m);
      break;
    default:
      b = (int8_t)byte(m);
      put_number(t, i, b % 8, b / 16.0);
      break;
    }
  }
  if (style == 4 && n) {
    int64_t at = byte(m) % n;
    put_number(t, at, pick_int(m), pick_float(m));
  }
}

static tfc_dtype pick_type(struct maker *m, uint32_t allowed) {
  static const tfc_dtype common[] = {TFC_FLOAT, TFC_INT64, TFC_INT32, TFC_DOUBLE, TFC_STRING, TFC_BOOL};
  uint32_t b = byte(m);
  if (!allowed) return b < 192 ? common[b % COUNT(common)] : (tfc_dtype)(1 + b % (TFC_DTYPE_COUNT - 1));
  uint32_t count = (uint32_t)__builtin_popcount(allowed), which = b % count;
  for (uint32_t t = 1; t < TFC_DTYPE_COUNT; t++)
    if (allowed & TFC_TYPE_BIT(t) && which-- == 0) return (tfc_dtype)t;
  return TFC_FLOAT;
}

// --- Attributes -----------------------------------------------------------------------------------------------------
static struct tfc_func_attr *pick_function(struct maker *m, struct tfc_func_attr *f) {
  *f = (struct tfc_func_attr){.name = tfc_str_from(function_names[below(m, COUNT(function_names))])};
  return f;
}

static void pick_tensor(struct maker *m, tfc_dtype type, const struct tfc_shape *shape, struct tfc_tensor *out) {
  if (type == TFC_RESOURCE || type == TFC_VARIANT || type >= TFC_DTYPE_COUNT || !type) type = TFC_FLOAT;
  tfc_status s = tfc_tensor_create(type, shape, out);
  if (s) abort();
  fill(m, out);
}

static struct tfc_attr pick_attr(struct maker *m, const struct tfc_op_attr *declared) {
  struct tfc_attr a = {.name = declared->name, .kind = declared->kind};
  if (declared->has_default && !one_in(m, 3)) {
    a = declared->default_value;
    a.name = declared->name;
    return a;
  }
  uint32_t minimum = declared->has_minimum && declared->minimum > 0 ? (uint32_t)declared->minimum : 0;
  if (a.kind >= TFC_ATTR_LIST_INT) {
    a.count = (minimum + below(m, 5)) % MOST_LIST;
    a.ints = space(m, 256 * (a.count + 1u));
  }
  switch (a.kind) {
  case TFC_ATTR_INT: a.i = one_in(m, 2) ? pick_int(m) : minimum + below(m, 4); break;
  case TFC_ATTR_FLOAT: a.f = pick_float(m); break;
  case TFC_ATTR_BOOL: a.b = byte(m) & 1; break;
  case TFC_ATTR_STRING:
    a.s =
        declared->string_count && !one_in(m, 16) ? declared->strings[below(m, declared->string_count)] : pick_string(m);
    break;
  case TFC_ATTR_TYPE: a.type = pick_type(m, declared->allowed_types); break;
  case TFC_ATTR_SHAPE: {
    struct tfc_shape *s = space(m, sizeof *s);
    *s = pick_shape(m, false);
    a.shape = s;
    break;
  }
  case TFC_ATTR_FUNC: a.func = pick_function(m, space(m, sizeof *a.func)); break;
  case TFC_ATTR_LIST_INT:
    for (uint32_t i = 0; i < a.count; i++) ((int64_t *)a.ints)[i] = one_in(m, 4) ? pick_int(m) : 1 + below(m, 3);
    break;
  case TFC_ATTR_LIST_FLOAT:
    for (uint32_t i = 0; i < a.count; i++) ((double *)a.floats)[i] = pick_float(m);
    break;
  case TFC_ATTR_LIST_BOOL:
    for (uint32_t i = 0; i < a.count; i++) ((bool *)a.bools)[i] = byte(m) & 1;
    break;
  case TFC_ATTR_LIST_STRING:
    for (uint32_t i = 0; i < a.count; i++) ((tfc_str *)a.strings)[i] = pick_string(m);
    break;
  case TFC_ATTR_LIST_TYPE:
    for (uint32_t i = 0; i < a.count; i++) ((tfc_dtype *)a.types)[i] = pick_type(m, declared->allowed_types);
    break;
  case TFC_ATTR_LIST_SHAPE:
    for (uint32_t i = 0; i < a.count; i++) ((struct tfc_shape *)a.shapes)[i] = pick_shape(m, false);
    break;
  case TFC_ATTR_LIST_FUNC:
    for (uint32_t i = 0; i < a.count; i++) pick_function(m, &((struct tfc_func_attr *)a.funcs)[i]);
    break;
  default: a.kind = TFC_ATTR_NONE; break; // tensors are made with their type below
  }
  return a;
}

// --- Nodes ----------------------------------------------------------------------------------------------------------
static const struct tfc_attr *attr_of(const struct tfc_attr *attrs, uint32_t count, tfc_str name) {
  for (uint32_t i = 0; i < count; i++)
    if (tfc_str_equal(attrs[i].name, name)) return &attrs[i];
  return NULL;
}

// Return how many tensors an argument of a signature stands for, and the type of the k-th of them.
static uint32_t arg_count(const struct tfc_op_arg *arg, const struct tfc_attr *attrs, uint32_t attr_count) {
  const struct tfc_attr *a;
  if (arg->number_attr.size) {
    a = attr_of(attrs, attr_count, arg->number_attr);
    return a && a->kind == TFC_ATTR_INT && a->i > 0 ? (uint32_t)(a->i < MOST_LIST ? a->i : MOST_LIST) : 0;
  }
  if (!arg->is_list) return 1;
  a = attr_of(attrs, attr_count, arg->type_attr);
  return a && a->kind == TFC_ATTR_LIST_TYPE ? a->count : 0;
}
static tfc_dtype arg_type(const struct tfc_op_arg *arg, uint32_t k, const struct tfc_attr *attrs, uint32_t attr_count) {
  tfc_dtype t = arg->type;
  if (t == TFC_DTYPE_NONE) {
    const struct tfc_attr *a = attr_of(attrs, attr_count, arg->type_attr);
    if (a && a->kind == TFC_ATTR_TYPE) t = a->type;
    if (a && a->kind == TFC_ATTR_LIST_TYPE && k < a->count) t = a->types[k];
  }
  t = tfc_dtype_base(t);
  return arg->is_ref ? (tfc_dtype)(t + TFC_REF) : t;
}

static void put_node(struct maker *m, const char *name, const struct tfc_op_def *def, const struct value *inputs,
                     uint32_t input_count, const struct tfc_attr *attrs, uint32_t attr_count) {
  struct tfc_text node = {0};
  const struct tfc_op_signature *sig = tfc_op_signature(def);
  tfc_wire_put_bytes(&node, 1, tfc_str_from(name));
  tfc_wire_put_bytes(&node, 2, tfc_str_from(def->name));
  for (uint32_t i = 0; i < input_count; i++) {
    struct tfc_text in = {0};
    tfc_text_printf(&in,
                    inputs[i].index < 0 ? "^%s"
                    : inputs[i].index   ? "%s:%d"
                                        : "%s",
                    inputs[i].name, inputs[i].index);
    tfc_wire_put_bytes(&node, 3, tfc_text_view(&in));
    tfc_text_deinit(&in);
  }
  for (uint32_t i = 0; i < attr_count; i++)
    if (attrs[i].kind != TFC_ATTR_NONE) tfc_wire_put_attr(&node, 5, &attrs[i]);
  tfc_wire_put_bytes(m->out, 1, tfc_text_view(&node));
  m->failed |= node.failed;
  tfc_text_deinit(&node);
  int32_t index = 0;
  for (uint32_t o = 0; o < sig->output_count; o++)
    for (uint32_t k = 0, n = arg_count(&sig->outputs[o], attrs, attr_count); k < n; k++, index++) {
      if (m->value_count == MOST_VALUES) continue;
      struct value *v = &m->values[m->value_count++];
      snprintf(v->name, sizeof v->name, "%s", name);
      v->index = index;
      v->type = arg_type(&sig->outputs[o], k, attrs, attr_count);
    }
}

static const struct tfc_op_def *row(const char *name) {
  return tfc_op_find(tfc_str_from(name));
}
static void name_node(struct maker *m, char *name, const char *prefix) {
  snprintf(name, 24, "%s%u", prefix, m->node_count++);
}

static struct value constant(struct maker *m, const struct tfc_tensor *t) {
  char name[24];
  struct tfc_attr attrs[2] = {tfc_attr_type("dtype", t->dtype), tfc_attr_tensor("value", t)};
  name_node(m, name, "c");
  put_node(m, name, row("Const"), NULL, 0, attrs, 2);
  struct value v = {.type = t->dtype};
  snprintf(v.name, sizeof v.name, "%s", name);
  if (!one_in(m, 3)) return v;
  // Returns the same value, passed through a node that hides it from shape inference.
  struct tfc_shape unknown = TFC_SHAPE_UNKNOWN;
  struct tfc_attr more[2] = {tfc_attr_type("dtype", t->dtype), tfc_attr_shape("shape", &unknown)};
  name_node(m, name, "p");
  put_node(m, name, row("PlaceholderWithDefault"), &v, 1, more, 2);
  snprintf(v.name, sizeof v.name, "%s", name);
  return v;
}

static bool eligible(const struct tfc_op_def *def) {
  return !(def->flags & (TFC_OP_FILES | TFC_OP_SAVES)) && !def->file_attr;
}

// Chooses an op that has an output of this type whatever its attributes are. Mostly one whose row is near that of `by`
// in memory, because families of ops that share handles are next to each other.
static const struct tfc_op_def *producer(struct maker *m, tfc_dtype type, const struct tfc_op_def *by) {
  size_t rows;
  const struct tfc_op_def *const *list = tfc_op_list(&rows), *found[256];
  uint32_t count = 0;
  for (size_t i = 0; i < rows && count < COUNT(found); i++) {
    const struct tfc_op_signature *sig = tfc_op_signature(list[i]);
    if (!eligible(list[i]) || !sig) continue;
    for (uint32_t o = 0; o < sig->output_count; o++)
      if (sig->outputs[o].type == tfc_dtype_base(type) && sig->outputs[o].is_ref == tfc_dtype_is_ref(type)) {
        found[count++] = list[i];
        break;
      }
  }
  if (!count) return NULL;
  uint32_t which = byte(m);
  if (which >= 192) return found[which % count];
  for (which %= 12;; which--) { // finds the node that is number `which` by distance
    uint32_t nearest = 0;
    for (uint32_t i = 1; i < count; i++)
      if (labs((long)((const char *)found[i] - (const char *)by)) <
          labs((long)((const char *)found[nearest] - (const char *)by)))
        nearest = i;
    if (which == 0 || count == 1) return found[nearest];
    found[nearest] = found[--count];
  }
}

static void add_op(struct maker *m, const struct tfc_op_def *def);

static struct value variable(struct maker *m, tfc_dtype type) {
  char name[24], init[24];
  struct tfc_tensor t = {0};
  struct tfc_shape shape = pick_shape(m, true);
  bool set = !one_in(m, 8);
  if (type == TFC_RESOURCE || type == TFC_VARIANT) type = TFC_FLOAT;
  pick_tensor(m, type, &shape, &t);
  struct value first = constant(m, &t);
  struct tfc_attr attrs[2] = {tfc_attr_type("dtype", type), tfc_attr_shape("shape", &shape)};
  name_node(m, name, "v");
  put_node(m, name, row("VariableV2"), NULL, 0, attrs, 2);
  struct value v = {.type = (tfc_dtype)(type + TFC_REF)};
  snprintf(v.name, sizeof v.name, "%s", name);
  snprintf(init, sizeof init, "init_%.16s", name);
  struct value both[2] = {v, first};
  struct tfc_attr typed = tfc_attr_type("T", type);
  if (set) put_node(m, init, row("Assign"), both, 2, &typed, 1);
  tfc_tensor_release(&t);
  return v;
}
static struct value handle_of_variable(struct maker *m, tfc_dtype type) {
  char name[24], init[24];
  struct tfc_tensor t = {0};
  struct tfc_shape shape = pick_shape(m, true);
  bool set = !one_in(m, 8);
  if (type == TFC_RESOURCE || type == TFC_VARIANT) type = TFC_FLOAT;
  pick_tensor(m, type, &shape, &t);
  struct value first = constant(m, &t);
  struct tfc_attr attrs[3] = {tfc_attr_type("dtype", type), tfc_attr_shape("shape", &shape)};
  name_node(m, name, "h");
  attrs[2] = tfc_attr_string("shared_name", tfc_str_from(name));
  put_node(m, name, row("VarHandleOp"), NULL, 0, attrs, 3);
  struct value v = {.type = TFC_RESOURCE};
  snprintf(v.name, sizeof v.name, "%s", name);
  snprintf(init, sizeof init, "init_%.16s", name);
  struct value both[2] = {v, first};
  struct tfc_attr typed = tfc_attr_type("dtype", type);
  if (set) put_node(m, init, row("AssignVariableOp"), both, 2, &typed, 1);
  tfc_tensor_release(&t);
  return v;
}

// Chooses a tensor of this type: the output of an earlier node, or a new constant. `like` (optional): the input of the
// op's sample in this place.
static struct value input(struct maker *m, tfc_dtype type, const struct tfc_op_def *by, tfc_dtype first_type,
                          const struct tfc_tensor *like) {
  uint32_t how = byte(m);
  bool handle = type == TFC_RESOURCE || type == TFC_VARIANT;
  if (how % 4 == 3 || (handle && how % 4)) { // uses an existing tensor
    uint32_t seen = 0, chosen = 0, want = byte(m) % 8;
    for (uint32_t i = m->value_count; i-- > 0 && seen <= want;)
      if (m->values[i].type == type || (!tfc_dtype_is_ref(type) && tfc_dtype_base(m->values[i].type) == type))
        seen++, chosen = i;
    if (seen) return m->values[chosen];
  }
  if (tfc_dtype_is_ref(type) || handle) {
    if (tfc_dtype_is_ref(type) && (type != TFC_STRING + TFC_REF || how < 64)) return variable(m, tfc_dtype_base(type));
    if (type == TFC_RESOURCE && (by->flags & TFC_OP_UPDATE || how < 64)) return handle_of_variable(m, first_type);
    uint32_t before = m->value_count;
    const struct tfc_op_def *def = m->depth < MOST_DEPTH ? producer(m, type, by) : NULL;
    if (def) add_op(m, def);
    for (uint32_t i = m->value_count; i-- > before;)
      if (m->values[i].type == type) return m->values[i];
    return type == TFC_RESOURCE ? handle_of_variable(m, first_type) : (struct value){.name = "absent", .type = type};
  }
  struct tfc_tensor t = {0};
  if (like && like->dtype == type && how < 160 && tfc_tensor_elements(like) <= MOST_ELEMENTS) {
    struct tfc_shape shape = like->shape;
    uint32_t change = how / 4 % 8; // uses the sample unchanged, with other values, or with another dimension
    if (change >= 6 && shape.rank) shape.dims[byte(m) % shape.rank] = below(m, 5);
    if (change == 7 && shape.rank < TFC_MAX_RANK) shape.dims[shape.rank++] = below(m, 3);
    if (tfc_shape_elements(&shape) > MOST_ELEMENTS) shape = like->shape;
    if (change < 4) {
      if (tfc_tensor_clone(like, &t)) abort();
      if (change == 3 && type != TFC_STRING && tfc_tensor_elements(&t)) {
        int64_t at = byte(m) % tfc_tensor_elements(&t);
        put_number(&t, at, pick_int(m), pick_float(m));
      }
    } else {
      pick_tensor(m, type, &shape, &t);
    }
  } else {
    struct tfc_shape shape = pick_shape(m, true);
    pick_tensor(m, type, &shape, &t);
  }
  struct value v = constant(m, &t);
  tfc_tensor_release(&t);
  v.type = type;
  return v;
}

// Makes a node of the op with all its inputs and attributes, from one of its samples or from the bytes.
static void add_op(struct maker *m, const struct tfc_op_def *def) {
  const struct tfc_op_signature *sig = tfc_op_signature(def);
  struct tfc_attr attrs[48];
  struct value inputs[MOST_INPUTS];
  struct tfc_graph *sample = NULL;
  uint32_t sample_node = TFC_NONE, attr_count = 0, input_count = 0;
  char name[24];
  if (!sig || sig->attr_count > COUNT(attrs) || m->value_count > MOST_VALUES - 40) return;
  m->depth++;
  uint32_t samples = def->samples ? (uint32_t)sample_count(def->samples) : 0;
  uint32_t which = byte(m);
  if (samples && which < 192)
    tfc_status_free(sample_graph(def, def->samples, (int)(which % samples), 7, &sample, &sample_node));
  const struct tfc_node *like = sample ? &sample->nodes[sample_node] : NULL;
  tfc_dtype first_type = TFC_FLOAT;
  for (uint32_t i = 0; i < sig->attr_count; i++) {
    const struct tfc_op_attr *declared = &sig->attrs[i];
    const struct tfc_attr *given = NULL;
    char key[64];
    snprintf(key, sizeof key, "%.*s", TFC_STR_ARG(declared->name));
    if (like) given = tfc_node_attr(sample, like, key);
    bool structural = declared->kind == TFC_ATTR_TYPE || declared->kind == TFC_ATTR_LIST_TYPE;
    uint32_t change = byte(m);
    if (given && (structural ? change < 250 : change < 160)) {
      attrs[attr_count] = *given;
    } else if (declared->kind == TFC_ATTR_TENSOR) {
      struct tfc_shape shape = pick_shape(m, true);
      struct tfc_tensor *t = m->kept_count < KEPT ? &m->kept[m->kept_count++] : &m->kept[0];
      tfc_tensor_release(t);
      pick_tensor(m, first_type, &shape, t);
      attrs[attr_count] = (struct tfc_attr){.kind = TFC_ATTR_TENSOR, .tensor = t};
    } else {
      attrs[attr_count] = pick_attr(m, declared);
    }
    attrs[attr_count].name = declared->name;
    if (attrs[attr_count].kind == TFC_ATTR_TYPE && first_type == TFC_FLOAT) first_type = attrs[attr_count].type;
    attr_count++;
  }
  // The lengths of lists of inputs (attributes such as N) are mostly limited to 1 to 4, because a graph with so few
  // nodes has no more tensors.
  for (uint32_t i = 0; i < sig->input_count; i++)
    for (uint32_t k = 0; k < attr_count && sig->inputs[i].number_attr.size; k++)
      if (tfc_str_equal(attrs[k].name, sig->inputs[i].number_attr) && attrs[k].i > MOST_LIST && !one_in(m, 8))
        attrs[k].i = 1 + attrs[k].i % 4;
  for (uint32_t i = 0; i < sig->input_count; i++)
    for (uint32_t k = 0, n = arg_count(&sig->inputs[i], attrs, attr_count); k < n && input_count < MOST_INPUTS - 1;
         k++) {
      tfc_dtype type = arg_type(&sig->inputs[i], k, attrs, attr_count);
      const struct tfc_tensor *t = NULL;
      if (like && input_count < like->input_count) {
        const struct tfc_node *from = &sample->nodes[tfc_node_inputs(sample, like)[input_count].node];
        const struct tfc_attr *value = tfc_node_attr(sample, from, "value");
        if (value && value->kind == TFC_ATTR_TENSOR) t = value->tensor;
      }
      inputs[input_count++] = input(m, type, def, first_type, t);
    }
  if (m->value_count && one_in(m, 6)) { // adds a control edge from an earlier node
    inputs[input_count] = m->values[byte(m) % m->value_count];
    inputs[input_count++].index = -1;
  }
  name_node(m, name, "n");
  put_node(m, name, def, inputs, input_count, attrs, attr_count);
  m->depth--;
  tfc_graph_release(sample);
}

// Two bytes choose an op by a hash of its name, so that adding an op to the table changes hardly any other graph.
static uint32_t hash_of(const struct tfc_op_def *def) {
  uint32_t h = 2166136261u;
  for (const char *c = def->name; *c; c++) h = (h ^ (uint8_t)*c) * 16777619u;
  return (h ^ h >> 16) & 0xffff;
}
static int by_hash(const void *a, const void *b) {
  uint32_t x = hash_of(*(const struct tfc_op_def *const *)a), y = hash_of(*(const struct tfc_op_def *const *)b);
  return (x > y) - (x < y);
}
static const struct tfc_op_def *pick_op(struct maker *m) {
  static const struct tfc_op_def **ops;
  static size_t count;
  if (!ops) {
    size_t rows;
    const struct tfc_op_def *const *list = tfc_op_list(&rows);
    ops = calloc(rows, sizeof *ops);
    if (!ops) abort();
    for (size_t i = 0; i < rows; i++)
      if (eligible(list[i])) ops[count++] = list[i];
    qsort(ops, count, sizeof *ops, by_hash);
  }
  uint32_t want = byte(m);
  want = want << 8 | byte(m);
  size_t low = 0, high = count; // binary search for the first that is not below
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (hash_of(ops[middle]) < want)
      low = middle + 1;
    else
      high = middle;
  }
  return ops[low % count];
}

bool made_graph(const uint8_t *data, size_t size, struct tfc_text *out, struct try_options *out_options) {
  static struct tfc_text functions;
  struct maker m = {.at = data, .end = data + size, .out = out};
  uint32_t flags = byte(&m), ops = 1 + below(&m, MOST_OPS);
  if (!functions.size && tfc_text_to_wire(tfc_str_from(library), "GraphDef", &functions)) abort();
  *out_options = (struct try_options){
      .dynamic = flags & 1, .no_rewrites = flags & 2, .gradient = flags & 4, .one_by_one = flags & 8};
  tfc_text_add(out, tfc_text_view(&functions));
  for (uint32_t i = 0; i < ops; i++) add_op(&m, pick_op(&m));
  tfc_arena_deinit(&m.arena);
  for (uint32_t i = 0; i < KEPT; i++) tfc_tensor_release(&m.kept[i]);
  return !m.failed && !out->failed;
}
