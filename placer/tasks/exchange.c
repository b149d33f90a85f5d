#include "placer/tasks/exchange.h"

#include <stdio.h>
#include <string.h>

#include "runtime/graph/builder.h"

struct exchange {
  struct tfc_graph *graph;
  struct tfc_cluster_session *session;
  uint32_t assign;
  struct tfc_output given, value;
};

// Builds a graph that has a variable of task 0, named after the task whose numbers it holds; a placeholder and an
// operation that assigns it to the variable; and an operation that reads the variable.
static tfc_status open(struct tfc_member *member, const struct tfc_cluster_spec *spec, uint32_t rank, uint32_t count,
                       struct exchange *x) {
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  char first[TFC_TASK_TEXT], own[TFC_TASK_TEXT], name[64];
  const struct tfc_shape shape = TFC_SHAPE(count);
  tfc_cluster_task_name(spec, 0, first);
  tfc_cluster_task_name(spec, tfc_member_rank(member), own);
  snprintf(name, sizeof name, "tfc.numbers_of_task_%u", rank);
  const struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_DOUBLE), tfc_attr_shape("shape", &shape),
                                   tfc_attr_string("shared_name", tfc_str_from(name)),
                                   tfc_attr_string("container", TFC_STR(""))};
  const struct tfc_attr type[] = {tfc_attr_type("dtype", TFC_DOUBLE)};
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  tfc_builder_set_device(b, tfc_str_from(own));
  x->given = tfc_add_placeholder(b, "numbers", TFC_DOUBLE, &shape);
  tfc_builder_set_device(b, tfc_str_from(first));
  const struct tfc_output handle = tfc_add(b, "VarHandleOp", "kept", NULL, 0, attrs, sizeof attrs / sizeof *attrs);
  const struct tfc_output inputs[] = {handle, x->given};
  x->assign = tfc_add(b, "AssignVariableOp", "assign", inputs, 2, type, 1).node;
  x->value = tfc_add(b, "ReadVariableOp", "read", &handle, 1, type, 1);
  TFC_TRY(s, tfc_builder_finish(b, &x->graph));
  TFC_TRY(s, tfc_cluster_session_create(member, x->graph, &(struct tfc_execution){0}, &x->session));
out:
  tfc_builder_free(b);
  return s;
}

static void close(struct exchange *x) {
  tfc_cluster_session_free(x->session);
  tfc_graph_release(x->graph);
}

tfc_status tfc_task_give(struct tfc_member *member, const struct tfc_cluster_spec *spec, const double *values,
                         uint32_t count) {
  tfc_status s = NULL;
  struct exchange x = {0};
  struct tfc_tensor value = {0};
  TFC_TRY(s, open(member, spec, tfc_member_rank(member), count, &x));
  TFC_TRY(s, tfc_tensor_create(TFC_DOUBLE, &TFC_SHAPE(count), &value));
  memcpy(value.data, values, count * sizeof *values);
  const struct tfc_run_spec run = {.feeds = &x.given, .feed_count = 1, .targets = &x.assign, .target_count = 1};
  s = tfc_cluster_session_run(x.session, &run, &value, NULL, NULL);
out:
  tfc_tensor_release(&value);
  close(&x);
  return s;
}

tfc_status tfc_task_take(struct tfc_member *member, const struct tfc_cluster_spec *spec, uint32_t rank, uint32_t count,
                         double *out) {
  tfc_status s = NULL;
  struct exchange x = {0};
  struct tfc_tensor value = {0};
  TFC_TRY(s, open(member, spec, rank, count, &x));
  const struct tfc_run_spec run = {.fetches = &x.value, .fetch_count = 1};
  TFC_TRY(s, tfc_cluster_session_run(x.session, &run, NULL, &value, NULL));
  if (value.dtype != TFC_DOUBLE || tfc_tensor_elements(&value) != (int64_t)count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "task %u gave %lld numbers instead of %u", rank,
             (long long)tfc_tensor_elements(&value), count);
  memcpy(out, value.data, count * sizeof *out);
out:
  tfc_tensor_release(&value);
  close(&x);
  return s;
}
