// Compares tfc's table of operations with TensorFlow 2.15.1's (golden/registry.json.gz, made by registry.py): inputs,
// outputs, attributes with kinds, allowed values and defaults, which ops are stateful, which types their CPU kernels
// take, and which have a gradient. Known differences are listed here; a listed difference that no longer exists is an
// error too.
#include "tests/common/test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "runtime/graph/op_def.h"

enum { LEAST_OPS = 1100 };

static json_t *document;
static int different;

// Known differences; the comment above each group gives the reason.
static struct {
  const char *op, *what, *tensorflow; // "": any op, feature or value
  int seen;
} known[] = {
    // tfc gives these ops one common list of attributes; those that TensorFlow's op does not have get a default.
    {"AnonymousHashTable", "attributes", "", 0},
    {"AnonymousMutableHashTable", "attributes", "", 0},
    {"AnonymousMutableHashTableOfTensors", "attributes", "", 0},
    // A signature cannot have a tensor as default: the kernel has it.
    {"ImageSummary", "attribute bad_color", "", 0},
    // TensorFlow registers these types but has no kernel for some: tfc refuses those when it reads the graph.
    {"AccumulatorApplyGradient", "attribute dtype", "", 0},
    {"AccumulatorTakeGradient", "attribute dtype", "", 0},
    {"ConditionalAccumulator", "attribute dtype", "", 0},
    {"ResourceAccumulatorApplyGradient", "attribute dtype", "", 0},
    {"ResourceAccumulatorTakeGradient", "attribute dtype", "", 0},
    {"ResourceConditionalAccumulator", "attribute dtype", "", 0},
    {"SparseAccumulatorApplyGradient", "attribute dtype", "", 0},
    {"SparseAccumulatorTakeGradient", "attribute dtype", "", 0},
    {"SparseConditionalAccumulator", "attribute dtype", "", 0},
    {"WriteHistogramSummary", "attribute T", "", 0}, // the attribute does not allow bool
    // tfc also allows bfloat16, because graphs for GPUs and of later versions use it.
    {"ImageProjectiveTransformV2", "attribute dtype", "", 0},
    {"ImageProjectiveTransformV3", "attribute dtype", "", 0},
    // Types that tfc's kernels do not take.
    {"ClipByValue", "type", "complex64", 0},
    {"ClipByValue", "type", "complex128", 0},
    {"Conj", "type", "variant", 0},
    {"_FusedMatMul", "type", "bfloat16", 0}, // only a TensorFlow with oneDNN has this op
    {"RaggedTensorToVariantGradient", "type", "string", 0},
    {"RaggedTensorToVariantGradient", "type", "bool", 0},
    {"ResourceScatterNdAdd", "type", "bool", 0},
    {"ResourceScatterNdSub", "type", "bool", 0},
    // TensorFlow registers functions for these that return no gradient, or an error.
    {"ArgMax", "gradient", "", 0},
    {"ArgMin", "gradient", "", 0},
    {"SparseDenseCwiseAdd", "gradient", "", 0},
    {"SparseSparseMaximum", "gradient", "", 0},
    {"SparseSparseMinimum", "gradient", "", 0},
    {"QuantizeAndDequantizeV4Grad", "gradient", "", 0},
    {"StatelessParameterizedTruncatedNormal", "gradient", "", 0},
    // tfc has no gradient for these.
    {"RaggedTensorFromVariant", "gradient", "", 0},
    {"RaggedTensorToVariant", "gradient", "", 0},
    // Older names: TensorFlow has a gradient only for the newer names, tfc for both.
    {"BatchCholesky", "gradient", "", 0},
    {"BatchMatrixDeterminant", "gradient", "", 0},
    {"BatchMatrixInverse", "gradient", "", 0},
    {"BatchMatrixSolve", "gradient", "", 0},
    {"BatchMatrixSolveLs", "gradient", "", 0},
    {"BatchMatrixTriangularSolve", "gradient", "", 0},
    {"BatchSelfAdjointEigV2", "gradient", "", 0},
    {"BatchSvd", "gradient", "", 0},
    {"Snapshot", "gradient", "", 0},
    // TensorFlow calls these stateful so that they are not left out. A tfc plan never leaves out CheckNumerics, and
    // arguments and
    // results of functions are not operations of a plan.
    {"CheckNumerics", "stateful", "", 0},
    {"_Arg", "stateful", "", 0},
    {"_Retval", "stateful", "", 0},
    {"_DeviceArg", "stateful", "", 0},
    {"_DeviceRetval", "stateful", "", 0},
};

static void differs(const char *op, const char *what, const char *tfc, const char *tensorflow) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].op, op) == 0 && strcmp(known[i].what, what) == 0 &&
        (!*known[i].tensorflow || strcmp(known[i].tensorflow, tensorflow) == 0)) {
      known[i].seen++;
      return;
    }
  print_message("%s: %s: %s, in TensorFlow %s\n", op, what, tfc, tensorflow);
  different++;
}

static int set_up(void **state) {
  (void)state;
  static char text[4 << 20];
  gzFile in = gzopen(TFC_SOURCE_DIR "/tests/ops/golden/registry.json.gz", "rb");
  if (!in) return -1;
  int size = gzread(in, text, sizeof text - 1);
  gzclose(in);
  if (size <= 0 || (size_t)size == sizeof text - 1) return -1;
  json_error_t error;
  document = json_loadb(text, (size_t)size, 0, &error);
  if (!document) fprintf(stderr, "registry.json.gz:%d: %s\n", error.line, error.text);
  return document ? 0 : -1;
}
static int tear_down(void **state) {
  (void)state;
  json_decref(document);
  return 0;
}

static const char *text_of(const json_t *array, size_t i) {
  return json_string_value(json_array_get(array, i));
}

static void check_args(const char *op, const char *what, const struct tfc_op_arg *args, uint32_t count,
                       const json_t *wanted) {
  char mine[32], theirs[32], name[64];
  if (count != json_array_size(wanted)) {
    snprintf(mine, sizeof mine, "%u", count);
    snprintf(theirs, sizeof theirs, "%zu", json_array_size(wanted));
    differs(op, what, mine, theirs);
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_op_arg *a = &args[i];
    const json_t *w = json_array_get(wanted, i);
    const char *list = text_of(w, 4), *type_attr = *list ? list : text_of(w, 2);
    const char *type = a->type == TFC_DTYPE_NONE ? "" : tfc_dtype_name(tfc_dtype_base(a->type));
    const bool same = tfc_str_is(a->name, text_of(w, 0)) && strcmp(type, text_of(w, 1)) == 0 &&
                      tfc_str_is(a->type_attr, type_attr) && tfc_str_is(a->number_attr, text_of(w, 3)) &&
                      a->is_list == (*list != 0) && a->is_ref == json_is_true(json_array_get(w, 5));
    if (same) continue;
    snprintf(name, sizeof name, "%s %u", what, i);
    char *dump = json_dumps(w, JSON_COMPACT);
    char own[160];
    snprintf(own, sizeof own, "%.*s %s %.*s %.*s%s%s", TFC_STR_ARG(a->name), type, TFC_STR_ARG(a->type_attr),
             TFC_STR_ARG(a->number_attr), a->is_list ? " list" : "", a->is_ref ? " ref" : "");
    differs(op, name, own, dump);
    free(dump);
  }
}

static tfc_attr_kind kind_of(const char *name) {
  static const struct {
    const char *name;
    tfc_attr_kind kind;
  } kinds[] = {{"int", TFC_ATTR_INT},
               {"float", TFC_ATTR_FLOAT},
               {"bool", TFC_ATTR_BOOL},
               {"string", TFC_ATTR_STRING},
               {"type", TFC_ATTR_TYPE},
               {"shape", TFC_ATTR_SHAPE},
               {"tensor", TFC_ATTR_TENSOR},
               {"func", TFC_ATTR_FUNC},
               {"list(int)", TFC_ATTR_LIST_INT},
               {"list(float)", TFC_ATTR_LIST_FLOAT},
               {"list(bool)", TFC_ATTR_LIST_BOOL},
               {"list(string)", TFC_ATTR_LIST_STRING},
               {"list(type)", TFC_ATTR_LIST_TYPE},
               {"list(shape)", TFC_ATTR_LIST_SHAPE},
               {"list(tensor)", TFC_ATTR_LIST_TENSOR},
               {"list(func)", TFC_ATTR_LIST_FUNC}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].name, name) == 0) return kinds[i].kind;
  return TFC_ATTR_NONE;
}

static json_t *shape_of(const struct tfc_shape *s) {
  json_t *dims = json_array();
  if (s->rank < 0) {
    json_decref(dims);
    return json_null();
  }
  for (int d = 0; d < s->rank; d++) json_array_append_new(dims, json_integer(s->dims[d]));
  return dims;
}

// Returns a default in the form in which registry.py writes it.
static json_t *value_of(const struct tfc_attr *a) {
  json_t *list = json_array();
  json_t *one = NULL;
  switch (a->kind) {
  case TFC_ATTR_INT: one = json_integer(a->i); break;
  case TFC_ATTR_FLOAT:
    one = isfinite(a->f) ? json_real(a->f) : json_string(isnan(a->f) ? "nan" : a->f > 0 ? "inf" : "-inf");
    break;
  case TFC_ATTR_BOOL: one = json_boolean(a->b); break;
  case TFC_ATTR_STRING: one = json_stringn(a->s.data, a->s.size); break;
  case TFC_ATTR_TYPE: one = json_string(tfc_dtype_name(a->type)); break;
  case TFC_ATTR_SHAPE: one = shape_of(a->shape); break;
  case TFC_ATTR_TENSOR: one = json_string("tensor"); break;
  case TFC_ATTR_FUNC: one = json_string("func"); break;
  default:
    for (uint32_t i = 0; i < a->count; i++)
      json_array_append_new(list, a->kind == TFC_ATTR_LIST_INT     ? json_integer(a->ints[i])
                                  : a->kind == TFC_ATTR_LIST_FLOAT ? json_real(a->floats[i])
                                  : a->kind == TFC_ATTR_LIST_BOOL  ? json_boolean(a->bools[i])
                                  : a->kind == TFC_ATTR_LIST_STRING
                                      ? json_stringn(a->strings[i].data, a->strings[i].size)
                                  : a->kind == TFC_ATTR_LIST_TYPE  ? json_string(tfc_dtype_name(a->types[i]))
                                  : a->kind == TFC_ATTR_LIST_SHAPE ? shape_of(&a->shapes[i])
                                                                   : json_null());
    return list;
  }
  json_decref(list);
  return one;
}

static bool same_value(const json_t *a, const json_t *b) {
  if (json_is_array(a) && json_is_array(b)) {
    bool same = json_array_size(a) == json_array_size(b);
    for (size_t i = 0; same && i < json_array_size(a); i++)
      same = same_value(json_array_get(a, i), json_array_get(b, i));
    return same;
  }
  if (json_is_number(a) && json_is_number(b)) return (float)json_number_value(a) == (float)json_number_value(b);
  return json_equal(a, b);
}

static void check_attr(const char *op, const struct tfc_op_attr *a, const json_t *w) {
  char what[96];
  const char *kind = json_string_value(json_object_get(w, "kind"));
  const json_t *allowed = json_object_get(w, "allowed"), *value = json_object_get(w, "default");
  snprintf(what, sizeof what, "attribute %.*s", TFC_STR_ARG(a->name));
  if (a->kind != kind_of(kind)) differs(op, what, "another kind", kind);
  uint32_t types = 0, strings = 0;
  for (size_t i = 0; i < json_array_size(allowed); i++) {
    const char *item = text_of(allowed, i);
    bool found = false;
    for (uint32_t t = 1; t < 32 && a->kind != TFC_ATTR_STRING && a->kind != TFC_ATTR_LIST_STRING; t++)
      if (strcmp(tfc_dtype_name((tfc_dtype)t), item) == 0) types |= 1u << t, found = true;
    for (uint32_t k = 0; k < a->string_count; k++)
      if (tfc_str_is(a->strings[k], item)) strings++, found = true;
    if (!found && a->string_count) differs(op, what, "not allowed", item);
  }
  if ((a->string_count || strings) && strings != a->string_count) differs(op, what, "more values", "fewer");
  // (Quantized types, and others of which tfc has no tensors, have no bit in `types`.)
  uint32_t own = a->allowed_types;
  if ((own == 0) != (allowed == NULL || types == 0) && !a->string_count)
    differs(op, what, own ? "limited types" : "any type", own ? "any type" : "limited types");
  else if (own != types && own) {
    char mine[16], theirs[16];
    snprintf(mine, sizeof mine, "%x", own);
    snprintf(theirs, sizeof theirs, "%x", types);
    differs(op, what, mine, theirs);
  }
  const json_t *least = json_object_get(w, "minimum");
  if (a->has_minimum != (least != NULL) || (least && a->minimum != json_integer_value(least)))
    differs(op, what, "another minimum", least ? "one" : "none");
  if (a->has_default != (value != NULL)) {
    differs(op, what, a->has_default ? "a default" : "no default", value ? "a default" : "no default");
  } else if (value) {
    json_t *mine = value_of(&a->default_value);
    if (!same_value(mine, value)) {
      char *x = json_dumps(mine, JSON_ENCODE_ANY), *y = json_dumps(value, JSON_ENCODE_ANY);
      differs(op, what, x, y);
      free(x), free(y);
    }
    json_decref(mine);
  }
}

static void test_signatures(void **state) {
  (void)state;
  const json_t *ops = json_object_get(document, "ops");
  int compared = 0;
  different = 0;
  for (size_t i = 0; i < json_array_size(ops); i++) {
    const json_t *w = json_array_get(ops, i), *attrs = json_object_get(w, "attrs");
    const char *op = json_string_value(json_object_get(w, "op"));
    const struct tfc_op_def *def = tfc_op_find(tfc_str_from(op));
    if (!def) continue;
    compared++;
    const struct tfc_op_signature *s = tfc_op_signature(def);
    check_args(op, "inputs", s->inputs, s->input_count, json_object_get(w, "inputs"));
    check_args(op, "outputs", s->outputs, s->output_count, json_object_get(w, "outputs"));
    for (size_t k = 0; k < json_array_size(attrs); k++) {
      const json_t *a = json_array_get(attrs, k);
      const char *name = json_string_value(json_object_get(a, "name"));
      const struct tfc_op_attr *own = NULL;
      for (uint32_t m = 0; m < s->attr_count; m++)
        if (tfc_str_is(s->attrs[m].name, name)) own = &s->attrs[m];
      if (own)
        check_attr(op, own, a);
      else
        differs(op, "attribute", "not known", name);
    }
    if (s->attr_count > json_array_size(attrs)) differs(op, "attributes", "more", "fewer");
  }
  assert_int_equal(different, 0);
  assert_true(compared >= LEAST_OPS);
}

// TensorFlow must have every op that tfc has, except those that begin with "_".
static void test_names(void **state) {
  (void)state;
  size_t count;
  const struct tfc_op_def *const *all = tfc_op_list(&count);
  const json_t *ops = json_object_get(document, "ops");
  for (size_t i = 0; i < count; i++) {
    bool found = false;
    for (size_t k = 0; k < json_array_size(ops) && !found; k++)
      found = strcmp(all[i]->name, json_string_value(json_object_get(json_array_get(ops, k), "op"))) == 0;
    if (!found && all[i]->name[0] != '_') fail_msg("TensorFlow has no %s", all[i]->name);
  }
}

// tfc's kernels must take every type that TensorFlow's CPU kernels take and the definition allows; they may take more.
// Both must have a gradient, or neither, except for branches, loops and calls, whose gradients are built by passes. Ops
// that TensorFlow calls stateful must be stateful here, so that they are never merged or left out.
static void test_kernels_and_gradients(void **state) {
  (void)state;
  const json_t *ops = json_object_get(document, "ops");
  const uint32_t built_by_passes = TFC_OP_SWITCH | TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION |
                                   TFC_OP_LOOP_COND | TFC_OP_FUNCTIONAL;
  size_t compared = 0;
  different = 0;
  for (size_t i = 0; i < json_array_size(ops); i++) {
    const json_t *w = json_array_get(ops, i), *list = NULL;
    const char *op = json_string_value(json_object_get(w, "op"));
    const char *gradient = json_string_value(json_object_get(w, "gradient"));
    const struct tfc_op_def *def = tfc_op_find(tfc_str_from(op));
    const struct tfc_op_attr *first = NULL;
    if (!def) continue;
    const struct tfc_op_signature *s = tfc_op_signature(def);
    for (uint32_t m = 0; m < s->attr_count && !first; m++)
      if (s->attrs[m].kind == TFC_ATTR_TYPE) first = &s->attrs[m];
    if (first) {
      char name[64];
      snprintf(name, sizeof name, "%.*s", TFC_STR_ARG(first->name));
      list = json_object_get(json_object_get(w, "types"), name);
    }
    // for All and Any, the attribute is the type of the indices
    if (s->input_count && s->inputs[0].type == TFC_BOOL) list = NULL;
    for (size_t k = 0; k < json_array_size(list) && def->kernel; k++)
      for (uint32_t t = 1; t < 32; t++) {
        if (strcmp(tfc_dtype_name((tfc_dtype)t), text_of(list, k)) != 0) continue;
        if (strstr(text_of(list, k), "qint") || strstr(text_of(list, k), "quint"))
          continue; // tfc has other operations for quantized types
        compared++;
        if ((!first->allowed_types || first->allowed_types >> t & 1) && def->types && !(def->types >> t & 1))
          differs(op, "type", "none", text_of(list, k));
      }
    if ((def->gradient != NULL) != (strcmp(gradient, "function") == 0) && !(def->flags & built_by_passes))
      differs(op, "gradient", def->gradient ? "yes" : "no", *gradient ? gradient : "nothing registered");
    if (json_is_true(json_object_get(w, "stateful")) && !(def->flags & TFC_OP_STATEFUL))
      differs(op, "stateful", "no", "yes");
  }
  assert_int_equal(different, 0);
  assert_true(compared > 2000);
}

// Ops with the attribute data_format say which operands are images. These are not changed from one layout to the other:
// their windows are operands, they rearrange channels, or no training step has them.
static const char *const keep_their_layout[] = {"DepthToSpace",     "SpaceToDepth",      "MaxPoolV2",
                                                "MaxPoolGradV2",    "MaxPoolGradGradV2", "MaxPoolGradGrad",
                                                "MaxPool3DGradGrad"};
static void test_images(void **state) {
  (void)state;
  size_t count;
  const struct tfc_op_def *const *all = tfc_op_list(&count);
  for (size_t i = 0; i < count; i++) {
    const struct tfc_op_def *def = all[i];
    const struct tfc_op_signature *s = tfc_op_signature(def);
    const struct tfc_op_images *images = &def->images;
    const bool some = images->inputs || images->outputs || images->sizes || images->convolves;
    bool has_format = false, kept = false;
    for (uint32_t a = 0; a < s->attr_count; a++) has_format |= tfc_str_is(s->attrs[a].name, "data_format");
    for (size_t k = 0; k < sizeof keep_their_layout / sizeof *keep_their_layout; k++)
      kept |= !strcmp(def->name, keep_their_layout[k]);
    if (some != (has_format && !kept)) fail_msg("%s: which operands are images?", def->name);
    assert_false((images->inputs & images->sizes) || (images->inputs | images->sizes) >> s->input_count);
    assert_true(images->outputs <= 1); // later outputs are statistics
  }
}

static void test_known_differences_are_there(void **state) {
  (void)state;
  different = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!known[i].seen) {
      print_message("%s: %s %s is no difference any more\n", known[i].op, known[i].what, known[i].tensorflow);
      different++;
    }
  assert_int_equal(different, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_signatures), cmocka_unit_test(test_names),
                                     cmocka_unit_test(test_kernels_and_gradients), cmocka_unit_test(test_images),
                                     cmocka_unit_test(test_known_differences_are_there)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
