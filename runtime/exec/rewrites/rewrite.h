// The plan's own form of a step (its intermediate representation, `ir`), and rewrites of it: fusion of element-wise
// chains, weight packing, merged products.
//
// An `ir` holds the operations that really run (without elided nodes), the values that pass between them, and ordering
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
#include "runtime/base/none.h"
#include "runtime/device/driver.h"
#include "runtime/exec/session.h"
#include "runtime/ops/host_memory.h"

typedef enum tfc_ir_kind {
  TFC_IR_OP,    // output of an operation
  TFC_IR_CONST, // known when the plan is made; in host memory
  TFC_IR_FEED,  // a feed: the caller gives the value in each step
  // a variable's value: the one that operation `op` wrote, or (TFC_NONE) the one that it had when the step began
  TFC_IR_VARIABLE,
} tfc_ir_kind;

struct tfc_ir_value {
  tfc_ir_kind kind;
  uint32_t op;              // producer or writer, TFC_NONE: none
  uint32_t output;          // OP: which output of `op`
  struct tfc_output origin; // the output of the graph that this value is, for names and traces
  tfc_dtype dtype;
  struct tfc_shape shape;            // the shape that shape inference found
  uint64_t bytes;                    // 0 where the shape is not static
  bool planned;                      // its shape is static and its type plain: the memory plan gives it a place
  bool fetched;                      // the step's caller fetches it
  const struct tfc_tensor *constant; // CONST
  uint32_t feed;                     // FEED: its index among the feeds
  uint32_t variable;                 // VARIABLE: index in ir->variables
  // OP: the value whose memory it shares (it is a view, made by an operation that had to run), or TFC_NONE
  uint32_t alias;
};

struct tfc_ir_input {
  uint32_t value;
  const struct tfc_shape *view; // it is read with this shape; NULL: with its own
  uint32_t variable;            // the variable behind a reference or resource input, else TFC_NONE
  // of a VARIABLE value: the operation reads the value (so it must be initialised) and does not only name the variable
  bool by_value;
};

struct tfc_ir_op {
  uint32_t node; // the graph's node whose name it has in traces and errors, and whose place it has in orders
  const struct tfc_op_def *def;
  uint16_t device;
  struct tfc_host_memory host; // which operands are in host memory on devices that have memory of their own; set when
                               // the operation is added
  bool joint;                  // runs no kernel: it stands for an elided node with control edges, to keep the order
  bool dead;                   // another operation replaced it
  bool wanted;                 // a target of the step: it runs even if nothing reads it
  struct tfc_ir_input *inputs;
  uint32_t input_count;
  uint32_t *outputs;          // value ids, one per output; TFC_NONE: an output without readers
  uint32_t *output_variables; // index of the variable that a reference output is, else TFC_NONE; NULL: none is
  uint32_t output_count;
  // One entry per output, a bit for each input in whose memory the output may be computed (the input has the same size,
  // and nothing reads it afterwards). NULL: the flags of `def` say it.
  const uint32_t *in_place;
  bool goes_on;  // it continues the work of the operation that made its last input, on the same device
  bool prepared; // `state` is passed to def->kernel as it is, and release(state) is called when the plan is freed
  void *state;
  void (*release)(void *state);
  const struct tfc_chain_finish *finish; // a chain that this operation runs on its own result (finishes.c), or NULL
  const struct tfc_window *window;       // of a convolution: instead of the one in the node's attributes, or NULL
  double cost_us;                        // estimated time, by which operations are ordered
  double tail_us;                        // how long other tasks need after it
};

struct tfc_ir_edge { // `to` runs after `from`
  uint32_t from, to;
};

struct tfc_ir_variable {
  struct tfc_variable *variable;
  uint32_t node;                   // VariableV2 / VarHandleOp
  uint16_t device;                 // the device where this plan needs the variable's value
  const struct tfc_tensor *handle; // for resource variables: the tensor that holds the handle
};

struct tfc_ir_fused {  // a node whose operation was replaced by the operation of another node
  uint32_t node, into; // node ids
};

struct tfc_ir {
  const struct tfc_graph *graph;  // a rewrite may have given its nodes other attributes
  const struct tfc_graph *source; // the caller's, from which the plan is made
  struct tfc_device *const *devices;
  uint32_t device_count;
  bool all_rewrites; // rewrites that change rounding run, too
  bool in_parts;     // the plan has several devices (or is compared with one that has): long sums are computed in parts
  // [node] tfc_host_memory of the node and its own op, where a caller has computed it before; NULL: nobody has
  const struct tfc_host_memory *host;
  // In a topological order when the ir is built; rewrites add operations at the end.
  TFC_ARRAY(struct tfc_ir_op) ops;
  TFC_ARRAY(struct tfc_ir_value) values;
  TFC_ARRAY(struct tfc_ir_edge) edges; // order that does not follow from the data
  TFC_ARRAY(struct tfc_ir_variable) variables;
  TFC_ARRAY(struct tfc_ir_fused) fused;
  TFC_ARRAY(struct tfc_plan_continued) continued;
  TFC_ARRAY(struct tfc_plan_shared) shared;
  // [ops] the operation by which tfc_ir_replace replaced it; only rewrite.c uses it, while rewrites run.
  TFC_ARRAY(uint32_t) replaced;
  bool rewriting;
  struct tfc_arena arena; // exists as long as the plan
};

struct tfc_rewrite {
  const char *name;
  int rank;   // rewrites run in order of rank, the lowest first
  bool exact; // its results are bit-identical; a rewrite that is not exact runs only with all_rewrites
  tfc_status (*apply)(struct tfc_ir *ir);
};
struct tfc_rewrites {
  const struct tfc_rewrite *rows;
  size_t count;
};
#define TFC_REWRITES(rows)                                                                                             \
  static const struct tfc_rewrites tfc_rewrites_##rows                                                                 \
      __attribute__((used, section("tfc_rewrites"))) = {rows, sizeof(rows) / sizeof *(rows)}

// Pointers into `ops` and `values` become invalid when an element is added. Adding an op sets `op` and `output` of the
// values that it lists as outputs (a value that moves from a replaced op to the new one keeps its id, so that its
// readers stay).
TFC_MUST_USE tfc_status tfc_ir_add_op(struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t *out_id);
TFC_MUST_USE tfc_status tfc_ir_add_value(struct tfc_ir *ir, const struct tfc_ir_value *value, uint32_t *out_id);
TFC_MUST_USE tfc_status tfc_ir_add_edge(struct tfc_ir *ir, uint32_t from, uint32_t to);
struct tfc_ir_tensor { // a tensor that a rewrite adds; its shape is static
  struct tfc_output origin;
  tfc_dtype dtype;
  struct tfc_shape shape;
};
// Adds a constant. The caller fills *out_data, which is in the ir's arena.
TFC_MUST_USE tfc_status tfc_ir_add_constant(struct tfc_ir *ir, const struct tfc_ir_tensor *tensor, void **out_data,
                                            uint32_t *out_value);
// Adds a copy of `op`, also of its inputs, with a new value as its only output.
TFC_MUST_USE tfc_status tfc_ir_add_maker(struct tfc_ir *ir, const struct tfc_ir_op *op,
                                         const struct tfc_ir_tensor *made, uint32_t *out_value);
// A copy of an operation with inputs of its own, which the caller may change before it adds the copy.
TFC_MUST_USE tfc_status tfc_ir_copy_op(struct tfc_ir *ir, uint32_t id, struct tfc_ir_op *out);
// Adds `op` and replaces `old` by it.
TFC_MUST_USE tfc_status tfc_ir_add_instead(struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t old);
// Marks `old` as dead. Its ordering edges become those of `by` (TFC_NONE: they are dropped).
void tfc_ir_replace(struct tfc_ir *ir, uint32_t old, uint32_t by);
// Whether the device launches kernels of its own, where fewer operations save time, and can run chains; if `def` is not
// NULL, also whether it has a kernel for this op in float32. tfc_ir_any_launches: whether one of the devices is such.
bool tfc_ir_launches(const struct tfc_ir *ir, uint16_t device, const struct tfc_op_def *def);
bool tfc_ir_any_launches(const struct tfc_ir *ir, const struct tfc_op_def *def);
// Whether the op adds two tensors: a sum, or a bias to its channels.
static inline bool tfc_ir_is_sum(const struct tfc_op_def *def) {
  return def->plan_trait == TFC_PLAN_ADD || def->plan_trait == TFC_PLAN_ADD_BIAS;
}
// Whether the operation adds two tensors, a smaller one repeated along the first dimensions.
bool tfc_ir_adds(const struct tfc_ir *ir, const struct tfc_ir_op *op);
// For each value, the operations that read it at the time of the call, in compressed form (CSR) in the arena: value v
// is read by ops[begin[v]] up to ops[begin[v + 1]]. An operation that reads a value twice is listed twice.
struct tfc_ir_readers {
  uint32_t *begin, *ops;
};
TFC_MUST_USE tfc_status tfc_ir_readers(const struct tfc_ir *ir, struct tfc_arena *arena, struct tfc_ir_readers *out);
// Finds the operations that wait. *out [ops], in the arena: an ordering edge ends at the operation.
TFC_MUST_USE tfc_status tfc_ir_waits(const struct tfc_ir *ir, struct tfc_arena *arena, bool **out);
// The shape with which an input is read.
static inline const struct tfc_shape *tfc_ir_shape(const struct tfc_ir *ir, const struct tfc_ir_input *input) {
  return input->view ? input->view : &ir->values.data[input->value].shape;
}
// The followers of operation i are ops[begin[i]] up to ops[begin[i + 1]], in the arena: those that read what it makes,
// and those with an ordering edge from it. An operation that follows for two reasons is listed twice.
struct tfc_ir_followers {
  uint32_t *begin, *ops;
};
TFC_MUST_USE tfc_status tfc_ir_followers(const struct tfc_ir *ir, struct tfc_arena *arena,
                                         const struct tfc_ir_readers *readers, struct tfc_ir_followers *out);
// Runs all registered rewrites that `ir->all_rewrites` allows.
TFC_MUST_USE tfc_status tfc_ir_rewrite(struct tfc_ir *ir);

#endif
