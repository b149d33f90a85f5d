// Tests subjects, which are graphs prepared for placing: which operations run, which share a device, which edges can
// cross devices, and how a placement of units becomes one of nodes.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/subject/subject.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/op_def.h"

// The graph: x -> Neg "a" -> Identity "i" -> Neg "b" (with a device string) -> "m", which also reads the variable v;
// "up" updates v.
struct fixture {
  struct tfc_graph *graph;
  struct tfc_machine *machine;
  uint32_t ops[8], op_count, target;
  struct tfc_output feed;
  uint64_t *bytes;
};
static uint32_t id(const struct fixture *f, const char *name) {
  return tfc_graph_find(f->graph, tfc_str_from(name));
}

static void make(struct fixture *f) {
  struct tfc_builder *b = NULL;
  struct tfc_shape shape = TFC_SHAPE(4, 4);
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &shape);
  struct tfc_attr attrs[] = {tfc_attr_shape("shape", &shape), tfc_attr_type("dtype", TFC_FLOAT)};
  struct tfc_output v = tfc_add(b, "VariableV2", "v", NULL, 0, attrs, 2);
  struct tfc_output read = tfc_add(b, "Identity", "v/read", &v, 1, NULL, 0);
  struct tfc_output a = tfc_add(b, "Neg", "a", &x, 1, NULL, 0);
  struct tfc_output i = tfc_add(b, "Identity", "i", &a, 1, NULL, 0);
  tfc_builder_set_device(b, TFC_STR("/device:GPU:5"));
  struct tfc_output n = tfc_add(b, "Neg", "b", &i, 1, NULL, 0);
  tfc_builder_set_device(b, (tfc_str){0});
  struct tfc_output m = tfc_add(b, "MatMul", "m", (struct tfc_output[]){n, read}, 2, NULL, 0);
  struct tfc_output up = tfc_add(b, "AssignSub", "up", (struct tfc_output[]){v, a}, 2, NULL, 0);
  tfc_builder_add(b, &(struct tfc_node_spec){.op = "NoOp",
                                             .name = "step",
                                             .controls = (uint32_t[]){up.node, m.node},
                                             .control_count = 2,
                                             .colocate_with = 0});
  tfc_builder_add(b, &(struct tfc_node_spec){
                         .op = "Neg", .name = "c", .inputs = &x, .input_count = 1, .colocate_with = n.node + 1});
  assert_ok(tfc_builder_finish(b, &f->graph));
  tfc_builder_free(b);
  f->feed = x;
  f->ops[0] = id(f, "a"), f->ops[1] = id(f, "b"), f->ops[2] = id(f, "m"), f->ops[3] = id(f, "up");
  f->op_count = 4;
  f->target = id(f, "step");
  f->bytes = calloc(f->graph->output_total + 1u, sizeof *f->bytes);
  for (uint32_t o = 0; o < f->graph->output_total; o++) f->bytes[o] = 64;
  assert_ok(tfc_machine_create(&f->machine));
  for (int d = 0; d < 2; d++) {
    char name[16], tensorflow[32];
    snprintf(name, sizeof name, "cpu:%d", d);
    snprintf(tensorflow, sizeof tensorflow, "/device:CPU:%d", d);
    assert_ok(tfc_machine_add_device(f->machine, &(struct tfc_machine_device){.name = tfc_str_from(name),
                                                                              .kind = TFC_STR("cpu"),
                                                                              .tensorflow = tfc_str_from(tensorflow),
                                                                              .memory = TFC_NO_LIMIT}));
  }
  struct tfc_link link = tfc_link_default();
  link.latency_us = 1;
  assert_ok(tfc_machine_add_link(f->machine, &link));
}
static void unmake(struct fixture *f) {
  tfc_graph_release(f->graph);
  tfc_machine_free(f->machine);
  free(f->bytes);
}
static tfc_status subject_of(const struct fixture *f, const char **pins, uint32_t pin_count, bool constrain,
                             struct tfc_subject **out) {
  return tfc_subject_create(f->graph,
                            &(struct tfc_subject_options){
                                .feeds = &f->feed,
                                .feed_count = 1,
                                .targets = &f->target,
                                .target_count = 1,
                                .ops = f->ops,
                                .op_count = f->op_count,
                                .output_bytes = f->bytes,
                                .machine = f->machine,
                                .request = {.pins = {pins, pin_count},
                                            .device_strings = constrain ? TFC_STRINGS_CONSTRAIN : TFC_STRINGS_IGNORE},
                                .host = TFC_STR("cpu:0")},
                            out);
}
static bool has_edge(const struct fixture *f, const struct tfc_subject *s, const char *from, int output,
                     const char *to) {
  for (uint32_t e = 0; e < s->edge_count; e++)
    if (s->edges[e].from == s->cost_of[id(f, from)] && s->edges[e].output == output &&
        s->edges[e].to == s->cost_of[id(f, to)])
      return true;
  return false;
}

static void test_structure(void **state) {
  (void)state;
  struct fixture f = {0};
  struct tfc_subject *s = NULL;
  make(&f);
  assert_ok(subject_of(&f, NULL, 0, false, &s));
  assert_int_equal(s->cost_count, 5);          // a, b, m, up and the variable
  assert_true(has_edge(&f, s, "a", 0, "b"));   // through the identity
  assert_true(has_edge(&f, s, "v", 0, "m"));   // a variable's readers read the variable
  assert_true(has_edge(&f, s, "m", -1, "up")); // the update waits for the reader
  assert_true(has_edge(&f, s, "a", 0, "up"));
  assert_int_equal(s->edge_count, 6); // the other two are b -> m and v -> up
  assert_int_equal(s->variable_bytes, 64);
  assert_int_equal(s->unit_count, 4); // v and up share a reference
  assert_int_equal(s->anchor[id(&f, "i")], s->cost_of[id(&f, "a")]);
  assert_int_equal(s->anchor[id(&f, "c")], s->cost_of[id(&f, "b")]); // c is outside of the step, but colocated with b
  assert_false(s->needed[id(&f, "c")]);
  tfc_subject_free(s);
  unmake(&f);
}

static void test_there_and_back(void **state) {
  (void)state;
  struct fixture f = {0};
  struct tfc_subject *s = NULL;
  struct tfc_cost_table *costs = NULL;
  struct tfc_cost_graph *graph = NULL;
  struct tfc_problem *p = NULL;
  struct tfc_solution solution = {0}, again = {0};
  char *note = NULL;
  make(&f);
  assert_ok(subject_of(&f, NULL, 0, false, &s));
  assert_ok(tfc_cost_table_create(f.graph->node_count, 1, &costs));
  for (uint32_t i = 0; i < f.op_count; i++) assert_ok(tfc_cost_table_put(costs, f.ops[i], 0, 10 + i));
  assert_ok(tfc_subject_cost_graph(s, costs, false, NULL, &graph));
  assert_ok(tfc_problem_create(graph, f.machine, TFC_OBJECTIVE_STEP, &p));
  assert_int_equal(p->unit_count, 4);
  // In the expert's placement, GPU:5 is mapped to one of the devices in use; nodes without a device string are on the
  // first device.
  assert_ok(tfc_solution_init(&solution, p));
  assert_ok(tfc_subject_strings(s, p, f.graph, &solution, &note));
  assert_string_equal(note, "GPU:5 -> cpu:1");
  assert_int_equal(solution.device[p->unit[s->cost_of[id(&f, "b")]]], 1);
  assert_int_equal(solution.device[p->unit[s->cost_of[id(&f, "a")]]], 0);
  // The device index of each node, as a session needs it.
  uint16_t placement[32];
  uint32_t sequence[8], count = 0;
  assert_ok(tfc_subject_assign(s, p, &solution, placement, sequence, &count));
  assert_int_equal(count, 4);
  assert_int_equal(sequence[0], id(&f, "a"));
  assert_int_equal(sequence[3], id(&f, "up"));
  assert_int_equal(placement[id(&f, "b")], 1);
  assert_int_equal(placement[id(&f, "c")], 1);
  assert_int_equal(placement[id(&f, "i")], 0);
  // The document has every node, and is read back as the same placement.
  struct tfc_placement *d = NULL;
  assert_ok(tfc_placement_create(&d));
  assert_ok(tfc_subject_document(s, p, &solution, d));
  assert_int_equal(d->node_count, f.graph->node_count);
  assert_ok(tfc_solution_init(&again, p));
  assert_ok(tfc_subject_resolve(s, p, d, &again));
  for (uint32_t u = 0; u < p->unit_count; u++) assert_int_equal(again.device[u], solution.device[u]);
  // Unknown devices are reported first; then unknown nodes, missing nodes, and units on several devices.
  d->nodes[id(&f, "a")].name = TFC_STR("nobody");
  assert_fails(tfc_subject_resolve(s, p, d, &again), TFC_INVALID_ARGUMENT, "nobody");
  d->nodes[id(&f, "b")].device = TFC_STR("gpu:7");
  assert_fails(tfc_subject_resolve(s, p, d, &again), TFC_UNAVAILABLE, "gpu:7");
  d->nodes[id(&f, "a")].name = TFC_STR("a");
  d->nodes[id(&f, "b")].device = TFC_STR("cpu:0");
  d->nodes[id(&f, "up")].device = TFC_STR("cpu:1");
  assert_fails(tfc_subject_resolve(s, p, d, &again), TFC_INVALID_ARGUMENT, "'v' and 'up' must share");
  d->node_count = 2;
  assert_fails(tfc_subject_resolve(s, p, d, &again), TFC_INVALID_ARGUMENT, "no device for node");
  free(note);
  tfc_placement_free(d);
  tfc_solution_deinit(&solution);
  tfc_solution_deinit(&again);
  tfc_problem_free(p);
  tfc_cost_graph_free(graph);
  tfc_cost_table_free(costs);
  tfc_subject_free(s);
  unmake(&f);
}

static void test_constraints(void **state) {
  (void)state;
  struct fixture f = {0};
  struct tfc_subject *s = NULL;
  make(&f);
  const char *pins[] = {"a|b=cpu:1", "v/read=cpu:0"};
  assert_ok(subject_of(&f, pins, 2, false, &s));
  assert_true(tfc_str_is(s->pin[s->cost_of[id(&f, "a")]], "cpu:1"));
  // pinned with its variable, which the identity forwards
  assert_true(tfc_str_is(s->pin[s->cost_of[id(&f, "up")]], "cpu:0"));
  tfc_subject_free(s);
  const char *torn[] = {"up=cpu:1", "v=cpu:0"};
  assert_fails(subject_of(&f, torn, 2, false, &s), TFC_INVALID_ARGUMENT, "'v'");
  assert_fails(subject_of(&f, (const char *[]){"nothing=cpu:0"}, 1, false, &s), TFC_INVALID_ARGUMENT, "matches no");
  assert_fails(subject_of(&f, (const char *[]){"a=gpu:0"}, 1, false, &s), TFC_UNAVAILABLE, "gpu:0");
  assert_fails(subject_of(&f, (const char *[]){"(=cpu:0"}, 1, false, &s), TFC_INVALID_ARGUMENT, "pin '(=cpu:0'");
  assert_fails(subject_of(&f, (const char *[]){"a"}, 1, false, &s), TFC_INVALID_ARGUMENT, "REGEX=DEVICE");
  assert_ok(subject_of(&f, NULL, 0, true, &s)); // device strings as constraints
  assert_true(tfc_str_is(s->pin[s->cost_of[id(&f, "b")]], "cpu:1"));
  assert_null(s->pin[s->cost_of[id(&f, "a")]].data);
  tfc_subject_free(s);
  assert_fails(subject_of(&f, (const char *[]){"b=cpu:0"}, 1, true, &s), TFC_INVALID_ARGUMENT, "its device string");
  unmake(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_structure), cmocka_unit_test(test_there_and_back),
                                     cmocka_unit_test(test_constraints)};
  return cmocka_run_group_tests_name("subject", tests, NULL, NULL);
}
