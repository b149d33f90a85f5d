// Random steps for the suites of static plans, and what must come before what in them.
#ifndef TFC_TESTS_EXEC_RANDOM_STEP_H
#define TFC_TESTS_EXEC_RANDOM_STEP_H

#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/plan/plan_internal.h"

enum { MOST_OPS = 40, MOST_DEVICES = 3 };

static const struct tfc_op_def plain = {.name = "Plain"}, anywhere = {.name = "Anywhere", .flags = TFC_OP_INPLACE},
                               first_only = {.name = "First", .flags = TFC_OP_INPLACE_FIRST},
                               update = {.name = "Update", .flags = TFC_OP_UPDATE};

struct step {
  struct tfc_ir ir;
  struct tfc_graph graph;
  struct tfc_device devices[MOST_DEVICES], *pointers[MOST_DEVICES];
  struct tfc_ir_input inputs[MOST_OPS][4];
  uint32_t outputs[MOST_OPS][2];
};

static inline void step_begin(struct step *s, uint32_t devices, bool own_memory) {
  *s = (struct step){0};
  for (uint32_t d = 0; d < devices; d++) {
    s->pointers[d] = &s->devices[d];
    s->devices[d].info.address_space = own_memory ? d + 1 : 0;
  }
  s->graph.node_count = MOST_OPS;
  s->ir.graph = &s->graph;
  s->ir.devices = s->pointers;
  s->ir.device_count = devices;
}

static inline void step_end(struct step *s) {
  tfc_array_free(&s->ir.ops);
  tfc_array_free(&s->ir.values);
  tfc_array_free(&s->ir.edges);
  tfc_array_free(&s->ir.variables);
  tfc_array_free(&s->ir.fused);
}

static inline uint32_t add_value(struct step *s, struct tfc_ir_value v) {
  v.dtype = TFC_FLOAT;
  v.alias = TFC_NONE;
  assert_true(tfc_array_push(&s->ir.values, v));
  return (uint32_t)s->ir.values.count - 1;
}

static inline uint32_t add_op(struct step *s, uint16_t device, double us) {
  uint32_t id = (uint32_t)s->ir.ops.count;
  assert_true(id < MOST_OPS);
  struct tfc_ir_op op = {
      .node = id, .def = &plain, .device = device, .inputs = s->inputs[id], .outputs = s->outputs[id], .cost_us = us};
  assert_true(tfc_array_push(&s->ir.ops, op));
  return id;
}

static inline uint32_t add_output(struct step *s, uint32_t op, uint64_t bytes) {
  struct tfc_ir_op *o = &s->ir.ops.data[op];
  uint32_t v = add_value(
      s,
      (struct tfc_ir_value){.kind = TFC_IR_OP, .op = op, .output = o->output_count, .bytes = bytes, .planned = true});
  s->outputs[op][o->output_count++] = v;
  return v;
}

static inline void add_input(struct step *s, uint32_t op, uint32_t value) {
  struct tfc_ir_op *o = &s->ir.ops.data[op];
  s->inputs[op][o->input_count++] = (struct tfc_ir_input){.value = value, .variable = TFC_NONE};
}

static inline void add_edge(struct step *s, uint32_t from, uint32_t to) {
  assert_true(tfc_array_push(&s->ir.edges, (struct tfc_ir_edge){from, to}));
}

// Operations in random numbering, of which each reads up to three earlier values; joints, edges, dead operations.
static inline void random_step(struct step *s, struct tfc_random *r, uint32_t devices, bool own_memory, bool prepared) {
  step_begin(s, devices, own_memory);
  uint32_t n = 4 + (uint32_t)tfc_random_below(r, MOST_OPS - 4), order[MOST_OPS], made[3 * MOST_OPS], made_count = 0;
  for (uint32_t i = 0; i < n; i++) {
    add_op(s, (uint16_t)tfc_random_below(r, devices), 1 + (double)tfc_random_below(r, 12));
    order[i] = i;
  }
  for (uint32_t i = n; i-- > 1;) {
    uint32_t k = (uint32_t)tfc_random_below(r, i + 1), t = order[i];
    order[i] = order[k], order[k] = t;
  }
  uint32_t feed = add_value(s, (struct tfc_ir_value){.kind = TFC_IR_FEED, .op = TFC_NONE, .bytes = 128});
  for (uint32_t i = 0; i < n; i++) {
    uint32_t id = order[i];
    struct tfc_ir_op *op = &s->ir.ops.data[id];
    uint64_t kind = tfc_random_below(r, 20);
    op->node = (uint32_t)tfc_random_below(r, 8) ? id : order[tfc_random_below(r, n)];
    op->dead = kind == 0;
    op->joint = kind == 1 || kind == 2;
    op->prepared = prepared && kind == 3;
    op->def = kind < 6 ? &plain : kind < 14 ? &anywhere : kind < 18 ? &first_only : &update;
    if (own_memory && kind == 4) op->host = (struct tfc_host_memory){UINT32_MAX, UINT32_MAX, true};
    if (own_memory && kind == 5) op->host = (struct tfc_host_memory){1, 1, false};
    for (uint32_t k = (uint32_t)tfc_random_below(r, 3); k-- > 0 && i > 0;) {
      uint32_t from = order[tfc_random_below(r, i)];
      add_edge(s, from, id);
    }
    if (op->dead || op->joint) continue;
    for (uint32_t k = (uint32_t)tfc_random_below(r, 4); k-- > 0 && made_count;) {
      uint32_t back = (uint32_t)tfc_random_below(r, made_count < 6 ? made_count : 6);
      add_input(s, id, tfc_random_below(r, 10) ? made[made_count - 1 - back] : feed);
    }
    for (uint32_t k = 1 + (uint32_t)(tfc_random_below(r, 5) == 0); k-- > 0;)
      made[made_count++] = add_output(s, id, 64 * tfc_random_below(r, 4) + tfc_random_below(r, 2) * 8);
    struct tfc_ir_value *out = &s->ir.values.data[s->outputs[id][0]];
    out->fetched = tfc_random_below(r, 12) == 0;
    if (op->output_count != 1 || !op->input_count || out->fetched || tfc_random_below(r, 8)) continue;
    const struct tfc_ir_value *in = &s->ir.values.data[op->inputs[0].value]; // a view
    if (in->kind == TFC_IR_OP && !in->fetched && in->alias == TFC_NONE && !own_memory && in->bytes == out->bytes)
      out->alias = op->inputs[0].value;
  }
}

// --- What must come before what --------------------------------------------------------------------------------------
static inline bool depends(const struct tfc_ir *ir, uint32_t from,
                           uint32_t to) { // true if `to` depends directly on `from`
  if (ir->ops.data[from].dead || ir->ops.data[to].dead) return false;
  for (size_t e = 0; e < ir->edges.count; e++)
    if (ir->edges.data[e].from == from && ir->edges.data[e].to == to) return true;
  for (uint32_t k = 0; k < ir->ops.data[to].input_count; k++) {
    uint32_t v = ir->ops.data[to].inputs[k].value;
    if (ir->values.data[v].op == from) return true;
  }
  return false;
}

static bool before_of[MOST_OPS][MOST_OPS]; // [to][from] true: `to` depends directly on `from`

static inline uint32_t find_dependencies(const struct tfc_ir *ir) {
  uint32_t alive = 0;
  for (uint32_t to = 0; to < ir->ops.count; to++) {
    alive += !ir->ops.data[to].dead;
    for (uint32_t from = 0; from < ir->ops.count; from++) before_of[to][from] = depends(ir, from, to);
  }
  return alive;
}

#endif
