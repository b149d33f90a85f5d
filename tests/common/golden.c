#include "tests/common/golden.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/import.h"
#include "tests/common/eval.h"
#include "tests/common/packed.h"
#include "tests/common/test.h"

// --- Comparing -----------------------------------------------------------------------------------------------------
// Returns the real number at index i; the two parts of a complex number have an index each.
static double number(const struct tfc_tensor *t, int64_t i) {
  switch (t->dtype) {
  case TFC_FLOAT:
  case TFC_COMPLEX64: return (double)((const float *)t->data)[i];
  case TFC_DOUBLE:
  case TFC_COMPLEX128: return ((const double *)t->data)[i];
  case TFC_HALF: return (double)tfc_half_to_float(((const uint16_t *)t->data)[i]);
  case TFC_BFLOAT16: return (double)tfc_bfloat16_to_float(((const uint16_t *)t->data)[i]);
  case TFC_BOOL: return ((const uint8_t *)t->data)[i];
  case TFC_UINT64: return (double)((const uint64_t *)t->data)[i];
  default: return (double)tfc_tensor_int(t, i);
  }
}

// Returns the position of a value among all representable values in rising order; the difference of two positions is a
// distance in units in the last place.
static int64_t ordinal(const struct tfc_tensor *t, int64_t i) {
  int64_t bits, sign;
  if (t->dtype == TFC_FLOAT) {
    int32_t b;
    memcpy(&b, (const char *)t->data + i * 4, 4);
    bits = b & INT32_MAX, sign = b < 0;
  } else if (t->dtype == TFC_DOUBLE) {
    memcpy(&bits, (const char *)t->data + i * 8, 8);
    sign = bits < 0, bits &= INT64_MAX;
  } else {
    uint16_t b = ((const uint16_t *)t->data)[i];
    bits = b & 0x7FFF, sign = b >> 15;
  }
  return sign ? -bits : bits;
}

static double epsilon(tfc_dtype t) {
  return t == TFC_HALF                            ? 0x1p-10
         : t == TFC_BFLOAT16                      ? 0x1p-7
         : t == TFC_DOUBLE || t == TFC_COMPLEX128 ? 0x1p-52
                                                  : 0x1p-23;
}

bool golden_compare(const struct tfc_tensor *got, const struct tfc_tensor *want, const char *rule, char *why,
                    size_t room) {
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  if (got->dtype != want->dtype || !tfc_shape_equal(&got->shape, &want->shape)) {
    snprintf(why, room, "%s %s instead of %s %s", tfc_dtype_name(got->dtype), tfc_shape_show(&got->shape, a),
             tfc_dtype_name(want->dtype), tfc_shape_show(&want->shape, b));
    return false;
  }
  if (strcmp(rule, "shape") == 0) return true;
  int64_t n = tfc_tensor_elements(got);
  if (got->dtype == TFC_STRING) {
    for (int64_t i = 0; i < n; i++)
      if (!tfc_str_equal(tfc_tensor_get_string(got, i), tfc_tensor_get_string(want, i))) {
        snprintf(why, room, "[%lld] is '%.*s', not '%.*s'", (long long)i, TFC_STR_ARG(tfc_tensor_get_string(got, i)),
                 TFC_STR_ARG(tfc_tensor_get_string(want, i)));
        return false;
      }
    return true;
  }
  bool is_complex = tfc_dtype_is_complex(got->dtype), floating = tfc_dtype_is_floating(got->dtype);
  if (is_complex) n *= 2;
  double largest = 0, limit = 0, floor = -1;
  for (int64_t i = 0; i < n; i++) {
    double v = fabs(number(want, i));
    if (isfinite(v) && v > largest) largest = v;
  }
  char kind[16] = "";
  sscanf(rule, "%15[a-z]:%lf:%lf", kind, &limit, &floor);
  for (int64_t i = 0; i < n; i++) {
    double g = number(got, i), w = number(want, i);
    bool ok;
    if (isnan(w) || isinf(w) || isnan(g) || isinf(g)) {
      ok = (isnan(w) && isnan(g)) || g == w;
    } else if (strcmp(kind, "ulp") == 0 && floating) {
      ok = (double)llabs(ordinal(got, i) - ordinal(want, i)) <= limit;
    } else if (strcmp(kind, "ulp") == 0 && is_complex) { // relative to the modulus of the number
      double m = hypot(number(want, i & ~1), number(want, i | 1));
      ok = fabs(g - w) <= limit * epsilon(got->dtype) * m;
    } else if (strcmp(kind, "relative") == 0) {
      double scale = floor >= 0 ? floor : largest;
      ok = fabs(g - w) <= limit * (fabs(w) > scale ? fabs(w) : scale);
    } else if (strcmp(kind, "element") == 0) {
      double least = floor * largest;
      ok = fabs(g - w) <= limit * (fabs(w) > least ? fabs(w) : least);
    } else if (strcmp(kind, "off") == 0) {
      ok = fabs(g - w) <= limit;
    } else if (floating || is_complex) {
      ok = g == w;
    } else {
      size_t size = tfc_dtype_size(got->dtype);
      ok = memcmp((const char *)got->data + (size_t)i * size, (const char *)want->data + (size_t)i * size, size) == 0;
    }
    if (!ok) {
      snprintf(why, room, "[%lld] is %.17g, not %.17g (%s)", (long long)i, g, w, rule);
      return false;
    }
  }
  return true;
}

// --- Cases ---------------------------------------------------------------------------------------------------------
static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

struct family {
  struct tfc_graph *graph, *expected;
};

// Returns 1 (passed), 0 (failed) or -1 (not supported).
static int run_case(const struct family *f, const json_t *item, char *why, size_t room) {
  const char *name = text_of(item, "name");
  bool wants_error = json_is_string(json_object_get(item, "error"));
  const json_t *runs = json_object_get(item, "runs");
  struct eval e = {0}, expected = {0};
  int result = 1;
  tfc_status s = NULL;
  if (!tfc_op_find(tfc_str_from(text_of(item, "op")))) {
    snprintf(why, room, "no op %s", text_of(item, "op"));
    return -1;
  }
  TFC_TRY(s, eval_create(f->graph, &e));
  TFC_TRY(s, eval_create(f->expected, &expected));
  for (size_t r = 0; r < json_array_size(runs) && result == 1; r++) {
    const json_t *run = json_array_get(runs, r), *fetches = json_object_get(run, "fetches");
    const char *rule = *text_of(run, "tolerance") ? text_of(run, "tolerance") : text_of(item, "tolerance");
    for (size_t k = 0; k < json_array_size(fetches) && result == 1; k++) {
      struct tfc_output o;
      const struct tfc_tensor *got, *want;
      char node[256];
      TFC_TRY(s, tfc_graph_parse_output(f->graph, tfc_str_from(json_string_value(json_array_get(fetches, k))), &o));
      TFC_TRY(s, eval_output(&e, o, &got));
      if (wants_error) continue;
      snprintf(node, sizeof node, "%s/r%zu/f%zu", name, r, k);
      uint32_t id = tfc_graph_find(f->expected, tfc_str_from(node));
      if (id == TFC_NONE) TFC_FAIL(s, TFC_NOT_FOUND, "no expected value %s", node);
      TFC_TRY(s, eval_output(&expected, (struct tfc_output){id, 0}, &want));
      char difference[300];
      if (!golden_compare(got, want, rule, difference, sizeof difference)) {
        snprintf(why, room, "%s: %s", json_string_value(json_array_get(fetches, k)), difference);
        result = 0;
      }
    }
  }
  if (wants_error && result == 1) {
    snprintf(why, room, "no error where one is expected");
    result = 0;
  }
out:
  if (s) {
    snprintf(why, room, "%s", tfc_status_message(s));
    result = tfc_status_code(s) == TFC_UNIMPLEMENTED ? -1 : wants_error;
    tfc_status_free(s);
  }
  eval_deinit(&e);
  eval_deinit(&expected);
  return result;
}

// Subnormal numbers become zero here, as on the device threads of TensorFlow and tfc.
static void flush_subnormals(void) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
}

void golden_run(const char *root, const char *family, const char *filter, struct golden_result *out) {
  struct family f = {0};
  char path[1024];
  *out = (struct golden_result){0};
  flush_subnormals();
  snprintf(path, sizeof path, "%s/tests/conformance/golden/%s/graph.pb.gz", root, family);
  assert_ok(packed_graph_load(path, &f.graph));
  snprintf(path, sizeof path, "%s/tests/conformance/golden/%s/expected.pb.gz", root, family);
  assert_ok(packed_graph_load(path, &f.expected));
  snprintf(path, sizeof path, "%s/tests/conformance/golden/%s/cases.json", root, family);
  json_t *document = json_load_file(path, 0, NULL);
  assert_non_null(document);
  const json_t *cases = json_object_get(document, "cases");
  for (size_t i = 0; i < json_array_size(cases); i++) {
    const json_t *item = json_array_get(cases, i);
    char why[512] = "";
    if (!strstr(text_of(item, "name"), filter)) continue;
    int r = run_case(&f, item, why, sizeof why);
    if (r == 1) out->passed++;
    if (r == 0) out->failed++;
    if (r < 0) out->unsupported++;
    if (r != 1) print_message("%s %s: %s\n", r ? "NOT SUPPORTED" : "FAILED", text_of(item, "name"), why);
  }
  print_message("%s: %d passed, %d failed, %d not supported\n", family, out->passed, out->failed, out->unsupported);
  json_decref(document);
  tfc_graph_release(f.graph);
  tfc_graph_release(f.expected);
}
