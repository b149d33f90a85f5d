// Compares every CUDA kernel that writes variables with the CPU's (optimizers, scatters, assignments; of reference and
// resource variables; with indices that occur twice): after two updates, all variables must agree.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "tests/cuda_kernels/host.h"

enum { MOST = 16, POSITIONS = 11 };

struct subject {
  struct tfc_graph *graph;
  uint32_t node, inits[MOST], init_count;
  char names[MOST][16];
};

static struct tfc_output values(struct tfc_builder *b, tfc_dtype type, const struct tfc_shape *shape, double low,
                                double high, struct tfc_random *random) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(type, shape, &t));
  for (int64_t i = 0; i < tfc_tensor_elements(&t); i++) {
    double v = low + (high - low) * tfc_random_unit(random);
    if (type == TFC_FLOAT)
      ((float *)t.data)[i] = (float)v;
    else if (type == TFC_DOUBLE)
      ((double *)t.data)[i] = v;
    else
      ((uint16_t *)t.data)[i] = type == TFC_HALF ? tfc_float_to_half((float)v) : tfc_float_to_bfloat16((float)v);
  }
  struct tfc_output o = tfc_add_const(b, "", &t);
  tfc_tensor_release(&t);
  return o;
}

// Makes a graph with the op and its variables [6, 5].
static void build(const struct tfc_op_def *def, tfc_dtype type, bool flag, struct subject *out) {
  const struct tfc_op_signature *s = tfc_op_signature(def);
  struct tfc_builder *b = NULL;
  struct tfc_random random;
  struct tfc_output inputs[MOST];
  const struct tfc_shape shape = TFC_SHAPE(6, 5);
  bool rows = strstr(def->name, "Scatter") || strstr(def->name, "Sparse"), nd = strstr(def->name, "ScatterNd");
  *out = (struct subject){0};
  tfc_random_init(&random, 11);
  assert_ok(tfc_builder_create(NULL, &b));
  for (uint32_t i = 0; i < s->input_count; i++) {
    const struct tfc_op_arg *arg = &s->inputs[i];
    bool resource = arg->type == TFC_RESOURCE;
    if (arg->is_ref || resource) {
      snprintf(out->names[out->init_count], sizeof *out->names, "v%u", out->init_count);
      struct tfc_attr attrs[2] = {tfc_attr_type("dtype", type), tfc_attr_shape("shape", &shape)};
      inputs[i] = tfc_add(b, resource ? "VarHandleOp" : "VariableV2", out->names[out->init_count], NULL, 0, attrs, 2);
      struct tfc_output first[2] = {inputs[i], values(b, type, &shape, 0.2, 1, &random)};
      out->inits[out->init_count++] = tfc_builder_add(
          b,
          &(struct tfc_node_spec){.op = resource ? "AssignVariableOp" : "Assign", .inputs = first, .input_count = 2});
    } else if (tfc_str_is(arg->name, "indices")) {
      const int32_t flat[POSITIONS] = {1, 3, 1, 0, 1, 1, 5, 1, 1, 3, 1};
      struct tfc_tensor t = {0};
      struct tfc_shape index_shape = nd ? TFC_SHAPE(POSITIONS, 1) : TFC_SHAPE(POSITIONS);
      assert_ok(tfc_tensor_create(TFC_INT32, &index_shape, &t));
      memcpy(t.data, flat, sizeof flat);
      inputs[i] = tfc_add_const(b, "", &t);
      tfc_tensor_release(&t);
    } else if (tfc_str_is(arg->name, "grad") || tfc_str_is(arg->name, "delta") || tfc_str_is(arg->name, "updates") ||
               tfc_str_is(arg->name, "value")) {
      inputs[i] = values(b, type, rows ? &TFC_SHAPE(POSITIONS, 5) : &shape, -1, 1, &random);
    } else if (arg->type == TFC_INT64) { // the number of steps, an input of the op
      struct tfc_tensor t = {0};
      assert_ok(tfc_tensor_create(TFC_INT64, &TFC_SHAPE_SCALAR, &t));
      *(int64_t *)t.data = 3;
      inputs[i] = tfc_add_const(b, "", &t);
      tfc_tensor_release(&t);
    } else if (tfc_str_is(arg->name, "lr_power")) {
      inputs[i] = values(b, type, &TFC_SHAPE_SCALAR, -0.5, -0.5, &random);
    } else {
      inputs[i] = values(b, type, &TFC_SHAPE_SCALAR, 0.1, 0.5, &random);
    }
  }
  struct tfc_attr attrs[2];
  uint32_t attr_count = 0;
  for (uint32_t i = 0; i < s->attr_count; i++)
    if (tfc_str_is(s->attrs[i].name, "use_nesterov") || tfc_str_is(s->attrs[i].name, "update_slots") ||
        tfc_str_is(s->attrs[i].name, "multiply_linear_by_lr"))
      attrs[attr_count++] = (struct tfc_attr){.name = s->attrs[i].name, .kind = TFC_ATTR_BOOL, .b = flag};
  out->node = tfc_builder_add(
      b,
      &(struct tfc_node_spec){
          .op = def->name, .inputs = inputs, .input_count = s->input_count, .attrs = attrs, .attr_count = attr_count});
  assert_ok(tfc_builder_finish(b, &out->graph));
  tfc_builder_free(b);
}

static tfc_status run(const struct subject *s, bool cuda, struct tfc_tensor *out) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  tfc_status status = NULL;
  TFC_TRY(status, tfc_devices_open("cpu:0", NULL, 0, &set));
  if (cuda) set.devices[0]->driver = cuda_host_driver();
  TFC_TRY(status, tfc_session_create(s->graph, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec init = {.targets = s->inits, .target_count = s->init_count};
  struct tfc_run_spec step = {.targets = &s->node, .target_count = 1};
  TFC_TRY(status, tfc_session_run(session, &init, NULL, NULL, NULL));
  for (int i = 0; i < 2; i++) TFC_TRY(status, tfc_session_run(session, &step, NULL, NULL, NULL));
  for (uint32_t i = 0; i < s->init_count; i++)
    TFC_TRY(status, tfc_session_get_variable(session, tfc_str_from(s->names[i]), &out[i]));
out:
  tfc_session_free(session);
  tfc_devices_close(&set);
  return status;
}

static double element(const struct tfc_tensor *t, int64_t i) {
  return t->dtype == TFC_FLOAT    ? (double)((float *)t->data)[i]
         : t->dtype == TFC_DOUBLE ? ((double *)t->data)[i]
         : t->dtype == TFC_HALF   ? (double)tfc_half_to_float(((uint16_t *)t->data)[i])
                                  : (double)tfc_bfloat16_to_float(((uint16_t *)t->data)[i]);
}

static int compare(const struct tfc_op_def *def, tfc_dtype type, bool flag) {
  struct subject s;
  struct tfc_tensor want[MOST] = {0}, got[MOST] = {0};
  int failed = 0;
  build(def, type, flag, &s);
  cuda_host_census = (struct cuda_host_census){0};
  assert_ok(run(&s, false, want));
  assert_ok(run(&s, true, got));
  if (cuda_host_census.miss_count) {
    print_message("FAILED %s of %s falls back: %s\n", def->name, tfc_dtype_name(type),
                  cuda_host_census.misses[0].reason);
    failed = 1;
  }
  double close = type == TFC_FLOAT ? 4e-6 : type == TFC_DOUBLE ? 1e-13 : type == TFC_HALF ? 4e-3 : 3e-2;
  for (uint32_t v = 0; v < s.init_count; v++) {
    for (int64_t i = 0; i < tfc_tensor_elements(&want[v]) && !failed; i++) {
      double w = element(&want[v], i), g = element(&got[v], i);
      if (w == g || fabs(w - g) <= close * (fabs(w) > 1 ? fabs(w) : 1) || (isnan(w) && isnan(g))) continue;
      print_message("FAILED %s of %s: variable %u, element %lld: %.9g instead of %.9g\n", def->name,
                    tfc_dtype_name(type), v, (long long)i, g, w);
      failed = 1;
    }
    tfc_tensor_release(&want[v]);
    tfc_tensor_release(&got[v]);
  }
  tfc_graph_release(s.graph);
  return failed;
}

struct wanted {
  const char *op;
  bool found;
};
static void is_row(void *arg, const struct tfc_cuda_kernel *row) {
  struct wanted *w = arg;
  if (!strcmp(row->op, w->op)) w->found = true;
}

static void test_updates(void **state) {
  (void)state;
  const tfc_dtype types[] = {TFC_FLOAT, TFC_DOUBLE, TFC_HALF, TFC_BFLOAT16};
  const struct tfc_op_def *const *list;
  size_t count;
  int ran = 0, failed = 0;
  list = tfc_op_list(&count);
  for (size_t i = 0; i < count; i++) {
    struct wanted wanted = {list[i]->name, false};
    cuda_host_each_row(is_row, &wanted);
    if (!wanted.found || !(list[i]->flags & TFC_OP_UPDATE)) continue;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
      for (int flag = 0; flag < 2; flag++) {
        failed += compare(list[i], types[t], flag);
        ran++;
      }
  }
  print_message("%d updates, %d failed\n", ran, failed);
  assert_int_equal(failed, 0);
  assert_true(ran > 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_updates)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
