// An op is one const row in its family's file (runtime/ops), with TensorFlow's signature, the shape function, the
// gradient, the cost, the plain reference kernel, and sample inputs for tests.
#ifndef TFC_RUNTIME_GRAPH_OP_DEF_H
#define TFC_RUNTIME_GRAPH_OP_DEF_H

#include "runtime/graph/builder.h"
#include "runtime/graph/graph.h"

struct tfc_kernel_ctx;
struct tfc_prepare_ctx;

// --- Shape functions ---------------------------------------------------------------------------------------------
// Shape functions are called in topological order of the nodes. A shape function reads what is known of the inputs, and
// sets the shape of every output (before, it is unknown). INVALID_ARGUMENT says which inputs contradict each other; the
// caller adds the node's name.
struct tfc_handle_info { // what a resource or variant handle holds
  tfc_dtype dtype;       // NONE: unknown
  struct tfc_shape shape;
};
struct tfc_shape_ctx {
  const struct tfc_graph *graph;
  const struct tfc_node *node;
  const struct tfc_shape *const *inputs;        // [node->input_count]
  const struct tfc_tensor *const *input_values; // constant value of an input, or NULL
  // The value of an integer input, as a shape whose dimensions may be unknown or symbols: the outputs of Shape, Pack
  // and StridedSlice may be known in part, and constants are known completely. Rank -1: nothing is known.
  const struct tfc_shape *const *input_as_shape;
  const struct tfc_handle_info *const *input_handles; // for resource and variant inputs; dtype NONE: unknown
  struct tfc_shape *outputs;                          // [node->output_count]
  struct tfc_shape *output_as_shape;                  // optional: partial values of small integer outputs
  struct tfc_handle_info *output_handles;
  int64_t (*new_symbol)(struct tfc_shape_ctx *ctx); // a fresh symbol
  void *owner;
};
typedef tfc_status (*tfc_shape_fn)(struct tfc_shape_ctx *ctx);

// --- Gradients ---------------------------------------------------------------------------------------------------
// Adds the nodes of dL/d(inputs) to the builder, with the formula of TensorFlow's registered gradient, so that rounding
// agrees. `grad_outputs[i]` is TFC_NO_OUTPUT if the output has no gradient. `grad_inputs` are TFC_NO_OUTPUT before the
// call and stay so for an input that has no gradient. A gradient of TensorFlow's kind IndexedSlices is dense here
// unless the function sets `grad_indexed` (values in grad_inputs[i], indices and dense shape in the record).
struct tfc_indexed_slices {
  struct tfc_output values, indices, dense_shape; // values.node == TFC_NONE: the gradient is dense
};
struct tfc_grad_ctx {
  struct tfc_builder *builder;
  uint32_t node; // the forward node's id in the builder
  const struct tfc_output *grad_outputs;
  struct tfc_output *grad_inputs;
  struct tfc_indexed_slices *grad_indexed;                            // [input_count]
  const struct tfc_shape *const *input_shapes, *const *output_shapes; // the inferred shapes, which may be unknown
  void *owner;
};
typedef tfc_status (*tfc_grad_fn)(struct tfc_grad_ctx *ctx);

// --- Cost --------------------------------------------------------------------------------------------------------
struct tfc_op_cost {
  double flops; // additions and multiplications (a multiply-add is two); transcendental functions count once
  double bytes; // read and written, each operand once
};
// All shapes are static when this is called. NULL in the row: the op counts no FLOP, and the bytes of all its inputs
// and outputs.
typedef void (*tfc_cost_fn)(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                            const struct tfc_shape *outputs, struct tfc_op_cost *out);

// --- An op's row -------------------------------------------------------------------------------------------------
enum tfc_op_flags {
  TFC_OP_STATEFUL = 1 << 0, // never dropped, merged or folded: variables, queues, random numbers
  TFC_OP_COMMUTATIVE = 1 << 1,
  TFC_OP_VIEW = 1 << 2,     // output 0 is input 0's buffer, with the same or another shape (Identity, Reshape)
  TFC_OP_INPLACE = 1 << 3,  // output 0 may be computed in the buffer of an input of the same size (element-wise)
  TFC_OP_UPDATE = 1 << 4,   // writes the variable that its first input (a reference or a resource) refers to
  TFC_OP_VARIABLE = 1 << 5, // makes a variable (reference) or its handle (VarHandleOp)
  TFC_OP_HOST = 1 << 6,     // runs on the host only (strings, queues, files)
  TFC_OP_ASYNC = 1 << 7,    // completes by callback (tfc_kernel_done) and occupies no device
  TFC_OP_SAVES = 1 << 8,    // writes files or summaries: never run by measuring
  TFC_OP_SWITCH = 1 << 9,   // control flow; the executor itself runs this op and the next ones
  TFC_OP_MERGE = 1 << 10,
  TFC_OP_ENTER = 1 << 11,
  TFC_OP_EXIT = 1 << 12,
  TFC_OP_NEXT_ITERATION = 1 << 13,
  TFC_OP_LOOP_COND = 1 << 14,
  TFC_OP_FUNCTIONAL = 1 << 15,         // calls functions: If, While, PartitionedCall: lowered before running
  TFC_OP_NOP = 1 << 16,                // nothing to run: NoOp, Const (its value is in the plan)
  TFC_OP_PLACEHOLDER = 1 << 17,        // must be fed
  TFC_OP_NOT_DIFFERENTIABLE = 1 << 18, // gradients stop here without an error
  TFC_OP_DEAD_INPUTS = 1 << 19,        // runs with dead inputs too (Merge, Send)
  TFC_OP_INPLACE_FIRST = 1 << 20,      // output 0 may be computed in the buffer of input 0, and of no other
  TFC_OP_CHECKS = 1 << 21,             // a view that checks its input: never left out of a plan
  TFC_OP_FILES = 1 << 22,              // reads, writes or looks for files: refused for untrusted graphs
  TFC_OP_ABOUT_INPUTS = 1 << 23,       // outputs are shapes, lengths or numbers of elements, so they are small
  TFC_OP_NO_ELEMENTS = 1 << 24,        // its kernel reads no element of its inputs
  TFC_OP_FINISHES = 1 << 25,           // the CPU's kernel runs element-wise operations on rows it has just computed
  TFC_OP_READS_OUTSIDE = 1 << 26, // its output comes from outside of the step: a feed, a queue, an iterator, a reader
};

// What other code needs to know about an op, besides its flags: code that rewrites, lowers, differentiates or places
// graphs compares roles, never names of ops.
typedef enum tfc_op_role {
  TFC_ROLE_NONE,
  TFC_ROLE_IDENTITY,          // its output is its input
  TFC_ROLE_REF_IDENTITY,      // the same for a reference
  TFC_ROLE_PASSES,            // its input's value, unchanged; it differs from Identity only for gradients or in copying
  TFC_ROLE_DEFAULT,           // its input, unless another value is fed
  TFC_ROLE_SPREAD,            // output i is input i
  TFC_ROLE_PARAMETER,         // a parameter of a function
  TFC_ROLE_RESULT,            // a result of a function
  TFC_ROLE_CONST,             // its value is in the graph
  TFC_ROLE_NOTHING,           // runs nothing; it has only control edges
  TFC_ROLE_TRIGGER,           // like CONST, but also runs if its inputs are dead
  TFC_ROLE_READ,              // reads a variable by its handle
  TFC_ROLE_HANDLE,            // a variable's handle
  TFC_ROLE_OLD_VARIABLE,      // a variable for which the shape [] means that the shape is not known
  TFC_ROLE_TEMPORARY,         // a variable of one step
  TFC_ROLE_ASSIGN,            // gives a variable its value: input 1, to the reference or handle in input 0
  TFC_ROLE_CALL,              // calls the function of its attribute f
  TFC_ROLE_REMOTE_CALL,       // the same; input 0 names a device
  TFC_ROLE_SYMBOLIC_GRADIENT, // calls the gradient of the function of its attribute f
  TFC_ROLE_IF,                // a branch by input 0
  TFC_ROLE_CASE,              // one of several branches by input 0
  TFC_ROLE_WHILE,             // a loop
  TFC_ROLE_STACK,             // a stack of one step
  TFC_ROLE_PUSH,              // input 1 onto the stack in input 0
  TFC_ROLE_POP,               // takes back what was pushed last
  TFC_ROLE_STACK_CLOSE,       // ends a stack
  TFC_ROLE_TENSOR_ARRAY,      // a TensorArray of one step, or uses one
  TFC_ROLE_LIST_PUSH,         // a list with one more tensor
  TFC_ROLE_LIST_POP,          // a list without its last tensor, and that tensor
  TFC_ROLE_OF_SHAPE,          // reads only the shape of its input
  TFC_ROLE_PICKS,             // picks some elements of its input, so its output is no larger
  TFC_ROLE_REPEATS,           // its input, repeated along dimensions
  TFC_ROLE_REDUCTION,         // of input 0 along the dimensions in input 1; of a single element it is that element
  TFC_ROLE_ENQUEUE,           // puts inputs 1.. into the queue in input 0, as one element
  TFC_ROLE_ENQUEUE_MANY,      // the same, along their first dimension
  TFC_ROLE_DEQUEUE,           // takes an element from the queue in input 0
  TFC_ROLE_DEQUEUE_MANY,      // takes several, along a new first dimension
  TFC_ROLE_PRODUCT,           // a product of two matrices
  TFC_ROLE_ADD,               // the sum of two tensors
  TFC_ROLE_ADD_N,             // the sum of several tensors
  TFC_ROLE_BATCH_NORM,        // input 0 normalised by channel: scale, offset, mean, variance; or by its own statistics
  TFC_ROLE_CONVOLUTION,       // of the image in input 0 with the filter in input 1 (tfc_window_read)
  TFC_ROLE_PAD,               // input 0 in a border of zeros; input 1: how many before and after it, by dimension
  TFC_ROLE_SPACE_TO_BATCH,    // input 0 divided into pictures of every b-th element: block sizes b, paddings
  TFC_ROLE_BATCH_TO_SPACE,    // the reverse: block sizes, crops
  TFC_ROLE_CROSS_ENTROPY,     // loss and gradient of logits, from logits and classes
  TFC_ROLE_SEND,              // sends its input to another task
  TFC_ROLE_RECEIVE,           // its output comes from another task
  TFC_ROLE_MAKE_ITERATOR,     // restarts the iterator in input 1
  TFC_ROLE_QUEUE_CLOSE,       // ends the queue in input 0
  TFC_ROLE_GIVES_GRADIENT,    // puts a gradient into the accumulator in input 0
  TFC_ROLE_TAKES_GRADIENT, // takes their average from the accumulator in input 0, once it has as many as input 1 says
} tfc_op_role;

// What rewrites of plans need to know of an op besides its role and flags: they replace particular operations that
// follow each other by one that does the work of all. An op that no rewrite looks for has none.
typedef enum tfc_plan_trait {
  TFC_PLAN_OTHER,
  TFC_PLAN_HALF_SQUARES, // half the sum of the squares of input 0
  TFC_PLAN_MULTIPLY,     // two tensors, multiplied element by element
  TFC_PLAN_AT_LEAST,     // whether input 0 is at least input 1, element by element
  TFC_PLAN_SELECT,       // input 1 where input 0 is true, else input 2
  TFC_PLAN_SUM,          // the sum of input 0 along the dimensions in input 1
  TFC_PLAN_MEAN,         // the same, divided by the number of elements
  TFC_PLAN_ADD,          // the sum of two tensors; a smaller one is repeated along the first dimensions
  TFC_PLAN_ADD_BIAS, // the same; if the attribute data_format has channels first, input 1 is repeated along the others
  TFC_PLAN_BIAS_GRADIENT, // the sum of input 0 along all dimensions but that of the channels (data_format says which)
  TFC_PLAN_RECTIFY,       // the elements of input 0 that are above 0, and 0 for the others
  TFC_PLAN_SUBTRACT,      // two tensors, the second subtracted from the first
  TFC_PLAN_SOFTMAX,       // of the last dimension of input 0
  TFC_PLAN_LOG_SOFTMAX,   // the logarithm of that
  TFC_PLAN_TRANSPOSE,     // input 0 with its dimensions in the order of input 1
  TFC_PLAN_BATCHED,       // products of matrices, those of the attributes adj_x and adj_y transposed
  TFC_PLAN_FILTERED,      // a convolution, or the gradient of its image: input 1 is the filter
  TFC_PLAN_SLICE,         // a part of input 0: input 1 says where it begins, input 2 how large it is
  TFC_PLAN_SPLIT,         // input 1, divided along dimension input 0 into outputs of one size
  TFC_PLAN_SPLIT_SIZES,   // input 0, divided along dimension input 2 into outputs of the sizes in input 1
  TFC_PLAN_CONCAT,        // the inputs but the last, one behind the other along the dimension in the last
  TFC_PLAN_RECTIFY_LEAKY, // as RECTIFY, but instead of 0 the elements times the attribute `alpha`
  TFC_PLAN_MAXIMA,        // of the windows over input 0 that the attributes describe (nn_pool.h)
} tfc_plan_trait;

#define TFC_TYPE_BIT(t) (1u << (t))
#define TFC_INT32_BIT TFC_TYPE_BIT(TFC_INT32)

// What an op changes outside of its step, or reads from there; the later ones are stronger.
typedef enum tfc_op_effect {
  TFC_EFFECT_NONE,
  TFC_EFFECT_UPDATE,  // writes a variable or a queue
  TFC_EFFECT_TABLE,   // fills a lookup table, or starts an iterator
  TFC_EFFECT_RESTORE, // reads a checkpoint
  TFC_EFFECT_SAVE,    // writes files or summaries
} tfc_op_effect;

// How an op uses an integer input. This decides which values are valid when inputs are made up.
typedef enum tfc_index_use {
  TFC_INDEX_NONE,
  TFC_INDEX_ROWS,           // input 1 selects rows of input 0
  TFC_INDEX_ROWS_OF_HANDLE, // input 1 selects rows of the variable whose handle is input 0
  TFC_INDEX_CLASSES,        // input 1 selects columns of input 0, one for each row
  TFC_INDEX_TOP,            // the same, and input 0 is a matrix
  TFC_INDEX_ONE_HOT,        // input 0 is less than input 1
  TFC_INDEX_SEGMENTS,       // input 1 is less than input 2
  TFC_INDEX_PARTITIONS,     // input 1 is less than num_partitions
  TFC_INDEX_LENGTHS,        // input 1 is at most the size of input 0's axis seq_dim
  TFC_INDEX_COMPARED,       // the input is compared with the other one
  TFC_INDEX_IN_PIECES,      // input 0, divided by input 1, is a row within one part of a partitioned table
  TFC_INDEX_MOVED,          // the input is passed on: the reader of the output decides
} tfc_index_use;

// The types for which TensorFlow has all operands of an op in host memory, beside a GPU, or no kernel for GPUs
// (runtime/ops/host_memory.c).
struct tfc_op_host {
  const char *attr; // the attribute with the type that decides; NULL: there is no such type
  uint32_t types;   // bits of the types
};

// The loops of an element-wise op by dtype (NULL: there is no loop), for fusion. Each loop may be called for any range
// of elements.
typedef void tfc_unary_loop(const void *x, void *y, int64_t n);
typedef void tfc_binary_loop(const void *a, int64_t a_step, const void *b, int64_t b_step, void *y,
                             int64_t n); // steps are 0 or 1
struct tfc_elementwise {
  tfc_unary_loop *const *unary; // only one of the two fields is set, to an array [TFC_DTYPE_COUNT]
  tfc_binary_loop *const *binary;
};

// Which operands are images, whose dimensions are in the order that the node's attribute data_format names (NHWC, NCHW,
// NDHWC, NCDHW).
struct tfc_op_images {
  uint32_t inputs, outputs; // bit i: input or output i is one
  uint32_t sizes;           // bit i: input i is the shape of one
  bool convolves;           // a convolution, or a gradient of one
};

struct tfc_op_def {
  const char *name;
  // TensorFlow's registration, as its op definitions print: "a: T, b: T", "value: N * T", "x: Tin" (list(type)),
  // "ref: Ref(T)"; "T: {float, double, int32}", "transpose_a: bool = false", "N: int >= 1", "shape: shape = []".
  const char *inputs, *outputs, *attrs;
  uint32_t flags;
  tfc_op_role role;
  tfc_plan_trait plan_trait;
  const char *file_attr; // an attribute that names a file to read, if it is not empty; NULL: no such attribute
  // Two inputs; a smaller one may be read repeatedly, with the same bits as if it had been repeated before.
  bool broadcasts;
  struct tfc_op_images images;
  bool is_cheap;                      // it is as fast to compute the result again as to read it again from memory
  uint32_t types;                     // bits of the dtypes that the kernel takes for its first type attribute; 0: any
  uint32_t host_inputs, host_outputs; // bit i: in host memory on every device (TensorFlow's HostMemory)
  struct tfc_op_host host;            // types for which all operands are there
  tfc_index_use index_use;
  tfc_op_effect effect; // besides those that its flags say: TFC_OP_UPDATE, TFC_OP_SAVES (tfc_node_effect)
  size_t node_state;    // bytes of state that the node has for the whole session, zero at first (random generators)
  tfc_shape_fn shape;
  tfc_grad_fn gradient;
  tfc_cost_fn cost;
  // Reads attributes once, when a plan is made; NULL: nothing to prepare.
  tfc_status (*prepare)(struct tfc_prepare_ctx *ctx);
  // NULL: the op has no kernel (it is control flow, or tfc does not support it)
  tfc_status (*kernel)(struct tfc_kernel_ctx *ctx);
  const struct tfc_elementwise *elementwise; // NULL: not element-wise
  // Inputs for generated tests and random graphs: "float[3,4], float[4,5]; float[0,2], float[2,1] {transpose_b=true}";
  // if the values of an input matter, they are given: "float[3,4], int32[1]=[1]", "int32[]=0".
  const char *samples;
};

// Returns NONE if no family has the op, and for a call by the name of a function.
static inline tfc_op_role tfc_node_role(const struct tfc_node *n) {
  return n->def ? n->def->role : TFC_ROLE_NONE;
}

// A family's file ends with TFC_REGISTER_OPS(rows). The linker collects the families, so a new op needs a change in
// only one file.
struct tfc_op_family {
  const struct tfc_op_def *rows;
  size_t count;
};
#define TFC_REGISTER_OPS(rows)                                                                                         \
  static const struct tfc_op_family tfc_family_##rows                                                                  \
      __attribute__((used, section("tfc_op_families"))) = {rows, sizeof(rows) / sizeof *(rows)}

// Implemented in runtime/graph/registry.c. Returns NULL if no family has the op. Any thread may call it.
const struct tfc_op_def *tfc_op_find(tfc_str name);
// Lists all rows in the order of their names.
const struct tfc_op_def *const *tfc_op_list(size_t *out_count);

// Signatures are parsed once, when they are used first. Any thread may read them.
struct tfc_op_arg {
  tfc_str name;
  tfc_dtype type;      // the type of the argument, if it is fixed; otherwise NONE
  tfc_str type_attr;   // the attribute that gives the type, such as "T"; if is_list, an attribute of kind list(type)
  tfc_str number_attr; // the attribute with the number of tensors, such as "N"; "": one tensor
  bool is_list, is_ref;
};
struct tfc_op_attr {
  tfc_str name;
  tfc_attr_kind kind;
  uint32_t allowed_types; // bits; 0: any
  const tfc_str *strings; // the allowed values; empty: every value is allowed
  uint32_t string_count;
  bool has_default;
  struct tfc_attr default_value;
  bool has_minimum;
  int64_t minimum; // of an int; of a list: the least length
};
struct tfc_op_signature {
  const struct tfc_op_arg *inputs, *outputs;
  uint32_t input_count, output_count;
  const struct tfc_op_attr *attrs;
  uint32_t attr_count;
};
const struct tfc_op_signature *tfc_op_signature(const struct tfc_op_def *def);
// Checks that the node's attributes exist, have their kinds, and are among the allowed values. INVALID_ARGUMENT names
// the wrong one.
TFC_MUST_USE tfc_status tfc_op_check_attrs(const struct tfc_graph *g, const struct tfc_node *n);

#endif
