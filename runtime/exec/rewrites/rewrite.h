// The plan's own form of a step (its intermediate representation, `ir`), and rewrites of it: fusion of element-wise
// chains, weight packing, merged products.
//
// An `ir` holds the operations that really run (elided nodes are gone), the values that pass between them, and ordering
// edges. Rewrites run after placement and before the order is made, so a rewrite may depend on which operations share a
// device. A file of rewrites ends with TFC_REWRITES(rows): the linker gathers all rows, and they run in order of
// `rank`.
//
// clang-format off
//   static tfc_status fuse(struct tfc_ir *ir) {
//     for (uint32_t i = 0; i < ir->ops.count; i++) {
//       ... // operations old_a and old_b become one
//       uint32_t id;
//       struct tfc_ir_op fused = {.node = node, .def = &fused_def, .device = d, .prepared = true, .state = program};
//       TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &fused, &id));
//       tfc_ir_replace(ir, old_a, id);
//       tfc_ir_replace(ir, old_b, id);
//     }
//     return NULL;
//   }
//   static const struct tfc_rewrite rows[] = {{"fuse", 10, true, fuse}};
//   TFC_REWRITES(rows);
// clang-format on
#ifndef TFC_RUNTIME_EXEC_REWRITES_REWRITE_H
#define TFC_RUNTIME_EXEC_REWRITES_REWRITE_H

#include "runtime/base/array.h"
#include "runtime/device/driver.h"
#include "runtime/exec/session.h"
#include "runtime/ops/host_memory.h"

#define TFC_NONE32 UINT32_MAX

typedef enum tfc_ir_kind {
  TFC_IR_OP,    // output of an operation
  TFC_IR_CONST, // known when planned; host memory
  TFC_IR_FEED,  // set by the caller each step
  // a variable's value: the one that operation `op` wrote, or (TFC_NONE32) the one that it had when the step began
  TFC_IR_VARIABLE,
} tfc_ir_kind;

struct tfc_ir_value {
  tfc_ir_kind kind;
  uint32_t op;              // producer or writer, TFC_NONE32: none
  uint32_t output;          // OP: which output of `op`
  struct tfc_output origin; // in the graph, for names and traces
  tfc_dtype dtype;
  struct tfc_shape shape;            // as inferred
  uint64_t bytes;                    // 0 where the shape is not static
  bool planned;                      // static shape, plain type: the memory plan gives it a place
  bool fetched;                      // the step's caller fetches it
  const struct tfc_tensor *constant; // CONST
  uint32_t feed;                     // FEED: index in the spec
  uint32_t variable;                 // VARIABLE: index in ir->variables
  // OP: the value in whose memory it is (it is a view, made by an operation that had to run), or TFC_NONE32
  uint32_t alias;
};

struct tfc_ir_input {
  uint32_t value;
  const struct tfc_shape *view; // read with this shape; NULL: the value's own
  uint32_t variable;            // the variable behind a reference or resource input, else TFC_NONE32
  // of a VARIABLE value: the operation reads the value (so it must be initialised) and does not only name the variable
  bool by_value;
};

struct tfc_ir_op {
  uint32_t node; // the graph's node whose name it has in traces and errors, and whose place it has in orders
  const struct tfc_op_def *def;
  uint16_t device;
  struct tfc_host_memory host; // set when it is added: which operands are in host memory on devices with their own
  bool joint;                  // runs no kernel: it stands for an elided node with control edges, to keep the order
  bool dead;                   // replaced
  bool wanted;                 // a target of the step: it runs even if nothing reads it
  struct tfc_ir_input *inputs;
  uint32_t input_count;
  uint32_t *outputs;          // value ids, one per output; TFC_NONE32: an output without readers
  uint32_t *output_variables; // index of the variable that a reference output is, else TFC_NONE32; NULL: none is
  uint32_t output_count;
  // By output, a bit for each input whose memory it may be computed in (of the same size, and nothing reads it
  // afterwards); NULL: as the flags of `def` say.
  const uint32_t *in_place;
  bool goes_on;  // it continues the work of the operation that made its last input, on the same device
  bool prepared; // `state` goes to def->kernel as it is; when the plan ends it calls release(state)
  void *state;
  void (*release)(void *state);
  const struct tfc_chain_finish *finish; // a chain that is part of it (finishes.c), or NULL
  double cost_us;                        // estimate for list scheduling
};

struct tfc_ir_edge { // `to` runs after `from`
  uint32_t from, to;
};

struct tfc_ir_variable {
  struct tfc_variable *variable;
  uint32_t node;                   // VariableV2 / VarHandleOp
  uint16_t device;                 // the device where this plan needs the variable's value
  const struct tfc_tensor *handle; // resource variables: the tensor that names it
};

struct tfc_ir_fused {  // a node whose operation was replaced by another's
  uint32_t node, into; // node ids
};

struct tfc_ir {
  const struct tfc_graph *graph;
  struct tfc_device *const *devices;
  uint32_t device_count;
  bool all_rewrites;               // rewrites that change rounding are allowed, too
  bool in_parts;                   // a plan of several devices (or as for them): long sums are computed in parts
  TFC_ARRAY(struct tfc_ir_op) ops; // in a topological order as first built; new ones come at the end
  TFC_ARRAY(struct tfc_ir_value) values;
  TFC_ARRAY(struct tfc_ir_edge) edges; // for order that the data does not imply
  TFC_ARRAY(struct tfc_ir_variable) variables;
  TFC_ARRAY(struct tfc_ir_fused) fused;
  TFC_ARRAY(struct tfc_plan_continued) continued;
  TFC_ARRAY(struct tfc_plan_shared) shared;
  TFC_ARRAY(uint32_t) replaced; // [ops] by which operation tfc_ir_replace replaced it, while rewrites run; private
  bool rewriting;
  struct tfc_arena arena; // lives as long as the plan
};

struct tfc_rewrite {
  const char *name;
  int rank;   // lowest first
  bool exact; // keeps every bit; others run only with all_rewrites
  tfc_status (*apply)(struct tfc_ir *ir);
};
struct tfc_rewrites {
  const struct tfc_rewrite *rows;
  size_t count;
};
#define TFC_REWRITES(rows)                                                                                             \
  static const struct tfc_rewrites tfc_rewrites_##rows                                                                 \
      __attribute__((used, section("tfc_rewrites"))) = {rows, sizeof(rows) / sizeof *(rows)}

// Pointers into ops and values move when something is added. Adding an op sets `op` and `output` of the values that it
// lists as outputs (a value that moves from a replaced op to the new one keeps its id, so that its readers stay).
TFC_MUST_USE tfc_status tfc_ir_add_op(struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t *out_id);
TFC_MUST_USE tfc_status tfc_ir_add_value(struct tfc_ir *ir, const struct tfc_ir_value *value, uint32_t *out_id);
TFC_MUST_USE tfc_status tfc_ir_add_edge(struct tfc_ir *ir, uint32_t from, uint32_t to);
// Marks `old` as dead. Its ordering edges become those of `by` (TFC_NONE32: they are dropped).
void tfc_ir_replace(struct tfc_ir *ir, uint32_t old, uint32_t by);
// The operations that read each value as the ir is now, as CSR in the arena: readers of value v are ops[begin[v]] up to
// ops[begin[v + 1]]. An operation that reads a value twice is listed twice.
struct tfc_ir_readers {
  uint32_t *begin, *ops;
};
TFC_MUST_USE tfc_status tfc_ir_readers(const struct tfc_ir *ir, struct tfc_arena *arena, struct tfc_ir_readers *out);
// Runs all registered rewrites that `ir->all_rewrites` allows.
TFC_MUST_USE tfc_status tfc_ir_rewrite(struct tfc_ir *ir);

#endif
