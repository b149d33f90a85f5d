// Compares the importer with protobuf-c: both read the same nodes, edges, devices, attributes and functions from every
// example graph, and the importer accepts no damaged file that protobuf-c refuses.
#include "tests/common/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "graphdef.pb-c.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/graph/import.h"

static bool same(tfc_str a, const char *b) {
  return tfc_str_is(a, b ? b : "");
}
static bool same_bytes(tfc_str a, ProtobufCBinaryData b) {
  return tfc_str_equal(a, (tfc_str){(const char *)b.data, b.len});
}

static void check_shape(const struct tfc_shape *a, const Oracle__Shape *b) {
  if (b->unknown_rank) {
    assert_true(a->rank < 0);
    return;
  }
  assert_int_equal(a->rank, b->n_dim);
  for (int d = 0; d < a->rank; d++) assert_int_equal(a->dims[d] < 0 ? -1 : a->dims[d], b->dim[d]->size);
}

// Compares values that a TensorProto lists one by one (float_val, ...): the last one also stands for all that follow.
#define CHECK_VALUES(type, field)                                                                                      \
  for (int64_t i = 0; b->n_##field && i < n; i++)                                                                      \
  assert_true(((const type *)a->data)[i] == (type)b->field[(size_t)i < b->n_##field ? (size_t)i : b->n_##field - 1])

static void check_tensor(const struct tfc_tensor *a, const Oracle__Tensor *b) {
  assert_int_equal(a->dtype, b->dtype);
  static const Oracle__Shape scalar = ORACLE__SHAPE__INIT;
  check_shape(&a->shape, b->tensor_shape ? b->tensor_shape : &scalar);
  int64_t n = tfc_tensor_elements(a);
  if (b->tensor_content.len) {
    assert_int_equal(a->size, b->tensor_content.len);
    assert_memory_equal(a->data, b->tensor_content.data, a->size);
    return;
  }
  switch (a->dtype) {
  case TFC_FLOAT: CHECK_VALUES(float, float_val); break;
  case TFC_DOUBLE: CHECK_VALUES(double, double_val); break;
  case TFC_INT32: CHECK_VALUES(int32_t, int_val); break;
  case TFC_INT64: CHECK_VALUES(int64_t, int64_val); break;
  case TFC_BOOL: CHECK_VALUES(bool, bool_val); break;
  case TFC_HALF: CHECK_VALUES(uint16_t, half_val); break;
  case TFC_STRING:
    for (int64_t i = 0; i < n && (size_t)i < b->n_string_val; i++)
      assert_true(same_bytes(tfc_tensor_get_string(a, i), b->string_val[i]));
    break;
  default: break;
  }
}

static size_t attributes_seen, tensors_seen;
static void check_attributes(const struct tfc_attr *a, uint32_t a_count, Oracle__Attr **b, size_t b_count);

static void check_function(const struct tfc_func_attr *a, const Oracle__Function *b) {
  assert_true(same(a->name, b->name));
  check_attributes(a->attrs, a->attr_count, b->attr, b->n_attr);
}

static void check_list(const struct tfc_attr *a, const Oracle__ListValue *b) {
  size_t n = b->n_s + b->n_i + b->n_f + b->n_b + b->n_type + b->n_shape + b->n_tensor + b->n_func;
  assert_int_equal(a->count, n);
  for (size_t i = 0; i < b->n_s; i++) assert_true(same_bytes(a->strings[i], b->s[i]));
  for (size_t i = 0; i < b->n_i; i++) assert_int_equal(a->ints[i], b->i[i]);
  for (size_t i = 0; i < b->n_f; i++) assert_true((float)a->floats[i] == b->f[i]);
  for (size_t i = 0; i < b->n_b; i++) assert_int_equal(a->bools[i], b->b[i]);
  for (size_t i = 0; i < b->n_type; i++) assert_int_equal(a->types[i], b->type[i]);
  for (size_t i = 0; i < b->n_shape; i++) check_shape(&a->shapes[i], b->shape[i]);
  for (size_t i = 0; i < b->n_tensor; i++) check_tensor(&a->tensors[i], b->tensor[i]);
  for (size_t i = 0; i < b->n_func; i++) check_function(&a->funcs[i], b->func[i]);
}

static void check_value(const struct tfc_attr *a, const Oracle__AttrValue *b) {
  attributes_seen++;
  switch (b->value_case) {
  case ORACLE__ATTR_VALUE__VALUE_LIST: check_list(a, b->list); break;
  case ORACLE__ATTR_VALUE__VALUE_S: assert_true(a->kind == TFC_ATTR_STRING && same_bytes(a->s, b->s)); break;
  case ORACLE__ATTR_VALUE__VALUE_I: assert_true(a->kind == TFC_ATTR_INT && a->i == b->i); break;
  case ORACLE__ATTR_VALUE__VALUE_F: assert_true(a->kind == TFC_ATTR_FLOAT && (float)a->f == b->f); break;
  case ORACLE__ATTR_VALUE__VALUE_B: assert_true(a->kind == TFC_ATTR_BOOL && a->b == (b->b != 0)); break;
  case ORACLE__ATTR_VALUE__VALUE_TYPE: assert_true(a->kind == TFC_ATTR_TYPE && (int)a->type == b->type); break;
  case ORACLE__ATTR_VALUE__VALUE_SHAPE:
    assert_int_equal(a->kind, TFC_ATTR_SHAPE);
    check_shape(a->shape, b->shape);
    break;
  case ORACLE__ATTR_VALUE__VALUE_TENSOR:
    assert_int_equal(a->kind, TFC_ATTR_TENSOR);
    check_tensor(a->tensor, b->tensor);
    tensors_seen++;
    break;
  case ORACLE__ATTR_VALUE__VALUE_PLACEHOLDER:
    assert_true(a->kind == TFC_ATTR_PLACEHOLDER && same(a->s, b->placeholder));
    break;
  case ORACLE__ATTR_VALUE__VALUE_FUNC:
    assert_int_equal(a->kind, TFC_ATTR_FUNC);
    check_function(a->func, b->func);
    break;
  default: break;
  }
}

static void check_attributes(const struct tfc_attr *a, uint32_t a_count, Oracle__Attr **b, size_t b_count) {
  for (size_t i = 0; i < b_count; i++) {
    const struct tfc_attr *found = NULL;
    for (uint32_t j = 0; j < a_count && !found; j++)
      if (same(a[j].name, b[i]->key)) found = &a[j];
    if (!found) fail_msg("no attribute %s", b[i]->key);
    if (b[i]->value) check_value(found, b[i]->value);
  }
}

// Is the edge what the file says ("name:1", "name" or "^name")?
static bool edge_is(const struct tfc_graph *g, struct tfc_output o, const char *text) {
  char name[1024];
  tfc_str from = g->nodes[o.node].name;
  if (o.index > 0 && strchr(text, ':'))
    snprintf(name, sizeof name, "%.*s:%d", TFC_STR_ARG(from), o.index);
  else
    snprintf(name, sizeof name, "%s%.*s%s", o.index < 0 ? "^" : "", TFC_STR_ARG(from),
             strstr(text, ":0") && text[strlen(text) - 2] == ':' ? ":0" : "");
  return strcmp(name, text) == 0;
}

static void check_node(const struct tfc_graph *g, const struct tfc_node *n, const Oracle__Node *b) {
  if (!same(n->name, b->name) || !same(n->op, b->op) || !same(n->device, b->device))
    fail_msg("%.*s is not %s (%s)", TFC_STR_ARG(n->name), b->name, b->op);
  assert_int_equal(n->input_count + n->control_count, b->n_input);
  uint32_t data = 0, control = 0;
  for (size_t i = 0; i < b->n_input; i++) {
    uint32_t at = b->input[i][0] == '^' ? n->input_count + control++ : data++;
    if (!edge_is(g, tfc_node_inputs(g, n)[at], b->input[i])) fail_msg("%s: input %s", b->name, b->input[i]);
  }
  check_attributes(g->attrs + n->attr_begin, n->attr_count, b->attr, b->n_attr);
}

static void check_file(const char *path) {
  struct tfc_file file;
  assert_ok(tfc_file_map(path, &file));
  Oracle__Graph *oracle = oracle__graph__unpack(NULL, file.size, file.data);
  assert_non_null(oracle);
  struct tfc_graph *g = NULL;
  assert_ok(tfc_graph_load(path, NULL, &g));
  assert_int_equal(g->node_count, oracle->n_node);
  for (size_t i = 0; i < oracle->n_node; i++) check_node(g, &g->nodes[i], oracle->node[i]);
  size_t functions = oracle->library ? oracle->library->n_function : 0;
  assert_int_equal(g->function_count, functions);
  for (size_t i = 0; i < functions; i++) {
    const Oracle__FunctionDef *b = oracle->library->function[i];
    const struct tfc_function *f = tfc_graph_function(g, tfc_str_from(b->signature->name));
    assert_non_null(f);
    assert_non_null(f->body);
    for (size_t j = 0; j < b->n_node_def; j++) {
      uint32_t n = tfc_graph_find(f->body, tfc_str_from(b->node_def[j]->name));
      assert_true(n != TFC_NONE);
      assert_true(same(f->body->nodes[n].op, b->node_def[j]->op));
      check_attributes(f->body->attrs + f->body->nodes[n].attr_begin, f->body->nodes[n].attr_count,
                       b->node_def[j]->attr, b->node_def[j]->n_attr);
    }
  }
  tfc_graph_release(g);
  oracle__graph__free_unpacked(oracle, NULL);
  tfc_file_unmap(&file);
}

static void the_examples_are_read_alike(void **state) {
  (void)state;
  DIR *dir = opendir(TFC_SOURCE_DIR "/examples");
  assert_non_null(dir);
  int files = 0;
  for (struct dirent *e; (e = readdir(dir));) {
    if (!tfc_str_ends(tfc_str_from(e->d_name), ".pb")) continue;
    char path[4096];
    snprintf(path, sizeof path, TFC_SOURCE_DIR "/examples/%s", e->d_name);
    check_file(path);
    files++;
  }
  closedir(dir);
  assert_true(files >= 10);
  assert_true(attributes_seen > 10000 && tensors_seen > 1000);
}

// Files are cut off or have changed bytes: what the importer accepts, protobuf-c accepts too. (The reverse need not be
// true: the importer also checks the rules of graphs.)
static void nothing_more_is_accepted(void **state) {
  (void)state;
  struct tfc_file file;
  assert_ok(tfc_file_map(TFC_SOURCE_DIR "/examples/ridge.pb", &file));
  size_t size = file.size;
  uint8_t *copy = malloc(size);
  struct tfc_random random;
  tfc_random_init(&random, 20);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 3000; round++) {
    memcpy(copy, file.data, size);
    size_t length = round % 3 ? size : tfc_random_below(&random, size);
    for (int change = 0; change < round % 3 && length; change++)
      copy[tfc_random_below(&random, length)] = (uint8_t)tfc_random_below(&random, 256);
    struct tfc_graph *g = NULL;
    tfc_status s = tfc_graph_parse((tfc_str){(const char *)copy, length}, "changed.pb", NULL, &g);
    if (s) {
      refused++;
      tfc_status_free(s);
      continue;
    }
    Oracle__Graph *oracle = oracle__graph__unpack(NULL, length, copy);
    // (protobuf-c does not check the bytes of a string. The importer recognises a text file first, which is no
    // message.)
    if (!oracle) fail_msg("round %d: accepted, but protobuf-c sees no message", round);
    assert_int_equal(g->node_count, oracle->n_node);
    oracle__graph__free_unpacked(oracle, NULL);
    tfc_graph_release(g);
    accepted++;
  }
  assert_true(accepted > 100 && refused > 100);
  free(copy);
  tfc_file_unmap(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_examples_are_read_alike),
      cmocka_unit_test(nothing_more_is_accepted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
