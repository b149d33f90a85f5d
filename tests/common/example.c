// Reads the files of an example, which examples/README.md describes.
#include "tests/common/example.h"

#include <jansson.h>
#include <stdlib.h>

#include "runtime/base/file.h"
#include "runtime/graph/import.h"
#include "tests/common/source.h"

static const struct {
  const char *descr;
  tfc_dtype dtype;
} types[] = {{"<f4", TFC_FLOAT},  {"<i4", TFC_INT32}, {"<i8", TFC_INT64},
             {"<f8", TFC_DOUBLE}, {"|b1", TFC_BOOL},  {"|u1", TFC_UINT8}};

static tfc_status read_npy(const char *path, struct tfc_tensor *out) {
  tfc_status s = NULL;
  struct tfc_file f = {0};
  struct tfc_shape shape = {.rank = 0};
  tfc_dtype dtype = TFC_DTYPE_NONE;
  TFC_TRY(s, tfc_file_map(path, &f));
  if (f.size < 12) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: not a .npy file", path);
  size_t header = f.data[8] | (size_t)f.data[9] << 8;
  if (f.size < 10 + header) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: cut short", path);
  char text[1024] = {0};
  memcpy(text, f.data + 10, header < sizeof text - 1 ? header : sizeof text - 1);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strstr(text, types[i].descr)) dtype = types[i].dtype;
  char *p = strstr(text, "'shape': (");
  if (!p || dtype == TFC_DTYPE_NONE) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: header not understood", path);
  for (p += 10; *p && *p != ')';) {
    char *end;
    long d = strtol(p, &end, 10);
    if (end == p) break;
    shape.dims[shape.rank++] = d;
    p = end + strspn(end, ", ");
  }
  TFC_TRY(s, tfc_tensor_create(dtype, &shape, out));
  memcpy(out->data, f.data + 10 + header, out->size);
out:
  tfc_file_unmap(&f);
  return s;
}

tfc_status example_load(const char *name, struct example *out) {
  tfc_status s = NULL;
  *out = (struct example){0};
  json_error_t error;
  char *path = tfc_format("%s/examples/%s.pb", test_source_dir(), name);
  char *golden = tfc_format("%s/examples/golden/%s/golden.json", test_source_dir(), name), *file = NULL;
  json_t *root = NULL;
  TFC_TRY(s, tfc_graph_load(path, NULL, &out->graph));
  root = json_load_file(golden, 0, &error);
  if (!root) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: %s", golden, error.text);
  out->init =
      tfc_graph_find(out->graph, tfc_str_from(json_string_value(json_array_get(json_object_get(root, "init"), 0))));
  out->train =
      tfc_graph_find(out->graph, tfc_str_from(json_string_value(json_array_get(json_object_get(root, "train"), 0))));
  TFC_TRY(s, tfc_graph_parse_output(out->graph, tfc_str_from(json_string_value(json_object_get(root, "loss"))),
                                    &out->loss));
  const json_t *losses = json_object_get(root, "losses"), *sets = json_object_get(root, "feeds");
  for (; out->loss_count < 20 && out->loss_count < json_array_size(losses); out->loss_count++)
    out->losses[out->loss_count] = json_number_value(json_array_get(losses, out->loss_count));
  for (; out->set_count < EXAMPLE_SETS && out->set_count < json_array_size(sets); out->set_count++) {
    const char *key;
    json_t *value;
    uint32_t i = 0;
    json_object_foreach(json_array_get(sets, out->set_count), key, value) {
      TFC_TRY(s, tfc_graph_parse_output(out->graph, tfc_str_from(key), &out->feeds[i]));
      free(file);
      file = tfc_format("%s/examples/golden/%s/%s", test_source_dir(), name, json_string_value(value));
      TFC_TRY(s, read_npy(file, &out->values[out->set_count][i]));
      out->shapes[i] = out->values[out->set_count][i].shape;
      i++;
    }
    out->feed_count = i;
  }
out:
  free(file);
  free(path);
  free(golden);
  json_decref(root);
  return s;
}

static const int32_t widths[][2] = {{784, 16}, {256, 24}, {128, 20}};
static int64_t narrower(int64_t width) {
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    if (width == widths[i][0]) return widths[i][1];
  return width;
}
static void make_narrow(struct tfc_shape *s) {
  for (int32_t i = 0; i < s->rank; i++) s->dims[i] = narrower(s->dims[i]);
}

tfc_status example_load_narrow_mlp(struct example *e) {
  TFC_RETURN_IF_ERROR(example_load("mlp", e));
  struct tfc_graph *g = e->graph; // nobody else has it yet
  e->loss_count = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    for (uint32_t k = 0; k < g->nodes[i].attr_count; k++) {
      struct tfc_attr *a = &g->attrs[g->nodes[i].attr_begin + k];
      if (a->kind == TFC_ATTR_SHAPE) { // of a placeholder or a variable
        struct tfc_shape *shape = TFC_ARENA_NEW(&g->arena, struct tfc_shape);
        if (!shape) return tfc_status_no_memory(NULL);
        *shape = *a->shape;
        make_narrow(shape);
        a->shape = shape;
      } else if (a->kind == TFC_ATTR_TENSOR) { // a shape as a constant, or a bias's first value
        struct tfc_tensor *t = TFC_ARENA_NEW(&g->arena, struct tfc_tensor);
        int32_t *values = tfc_arena_alloc(&g->arena, a->tensor->size + 1);
        if (!t || !values) return tfc_status_no_memory(NULL);
        *t = *a->tensor;
        make_narrow(&t->shape);
        t->size = (size_t)tfc_tensor_elements(t) * tfc_dtype_size(t->dtype);
        if (t->dtype == TFC_INT32) {
          for (int64_t j = 0; j < tfc_tensor_elements(t); j++)
            values[j] = (int32_t)narrower(((const int32_t *)t->data)[j]);
          t->data = values;
        }
        a->tensor = t;
      }
    }
  for (uint32_t i = 0; i < e->feed_count; i++) {
    make_narrow(&e->shapes[i]);
    for (uint32_t k = 0; k < e->set_count; k++) { // the first values of each feed
      struct tfc_tensor *t = &e->values[k][i];
      make_narrow(&t->shape);
      t->size = (size_t)tfc_tensor_elements(t) * tfc_dtype_size(t->dtype);
    }
  }
  return NULL;
}

void example_deinit(struct example *e) {
  for (uint32_t k = 0; k < e->set_count; k++)
    for (uint32_t i = 0; i < e->feed_count; i++) tfc_tensor_release(&e->values[k][i]);
  tfc_graph_release(e->graph);
  *e = (struct example){0};
}

void example_spec(const struct example *e, struct tfc_run_spec *out) {
  *out = (struct tfc_run_spec){.feeds = e->feeds,
                               .feed_count = e->feed_count,
                               .fetches = &e->loss,
                               .fetch_count = 1,
                               .targets = &e->train,
                               .target_count = 1,
                               .feed_shapes = e->shapes};
}
