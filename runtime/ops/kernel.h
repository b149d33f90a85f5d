// Declares what a kernel gets: its inputs, its outputs, and the services of the executor.
//
// A kernel is called with known shapes. If the memory plan has a place for an output, outputs[i].data is set and
// tfc_kernel_output returns that place; otherwise it allocates. A kernel need not know the difference.
//
//   static tfc_status relu(struct tfc_kernel_ctx *ctx) {
//     const struct tfc_tensor *x = ctx->inputs[0];
//     struct tfc_tensor *y = NULL;
//     TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y)); // may be x's own memory (TFC_OP_INPLACE)
//     ...
//   }
#ifndef TFC_RUNTIME_OPS_KERNEL_H
#define TFC_RUNTIME_OPS_KERNEL_H

#include <pthread.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/last_pass.h"

struct tfc_resources;
struct tfc_variable;
struct tfc_kernel_env;
struct tfc_device;
struct tfc_rendezvous;

// Given to a row's `prepare`, which is called once when a plan is made and not in every step.
struct tfc_prepare_ctx {
  const struct tfc_graph *graph;
  const struct tfc_node *node;
  const struct tfc_op_def *def;
  const struct tfc_shape *input_shapes, *output_shapes; // as inferred; may be unknown
  const tfc_dtype *input_dtypes;
  const struct tfc_tensor *const *input_values; // constant inputs, else NULL
  const struct tfc_window *window;              // a convolution's (nn_window.h); NULL: as the node's attributes say
  struct tfc_arena *arena;                      // lives as long as the plan
  void *state;                                  // out: passed to the kernel as ctx->state
  void (*release)(void *state);                 // out, optional: called when the plan is freed
  // A maximum pool that is part of a convolution (nn_pool.h): output 0 is the pool of the convolution's result, after
  // ctx->finish. A kernel that cannot pool declines. NULL: there is none, output 0 is the result.
  const struct tfc_pool *pool;
};

// Services that the executor fills in for kernels. Each device thread has its own.
struct tfc_kernel_env {
  // Allocates device memory. RESOURCE_EXHAUSTED: the message has the request, the memory in use and the limit.
  tfc_status (*allocate)(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out);
  // Calls fn(arg, begin, end) over [0, total) on the device's cores and returns when all are done. The pieces depend
  // on total and grain alone, never on the number of cores, so that results do not either.
  void (*parallel_for)(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                       void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
  // Runs a function of the graph's library (functional ops that were not lowered).
  tfc_status (*call)(struct tfc_kernel_env *env, const struct tfc_func_attr *func, const struct tfc_tensor *inputs,
                     uint32_t input_count, struct tfc_tensor *outputs, uint32_t output_count);
  bool (*cancelled)(struct tfc_kernel_env *env);
  struct tfc_device *device;            // the device of these services
  struct tfc_resources *resources;      // of the session
  struct tfc_resources *step_resources; // of this step: TensorArrays, stacks
  struct tfc_rendezvous *rendezvous;    // tensors from and to other tasks; NULL: there is only one task
  int64_t step_id;
  int threads;           // cores of this device that the operation may use
  uint32_t device_cores; // all cores of the device; 0: not known
  void *stream;          // of a device that has streams
  uint64_t seed;         // of the session: for random ops whose seeds are both 0
  // Whose state the nodes of called functions keep: an iterator's, by its number, or 0: the session's own.
  uint64_t states;
  void *owner;
};

// Element-wise operations on the rows of output 0 (its last dimension is a row), which a rewrite has made part of an
// operation whose row has the flag TFC_OP_FINISHES. A kernel may call `rows` for rows that it has just written, while
// they are in the cache of its core: once for each row, from any thread. If it has done so for all rows, it sets
// `done`; otherwise they are finished after the kernel. Instead it may run `last` on all elements before it writes
// them.
struct tfc_kernel_finish {
  const struct tfc_last_pass *last; // the same operations as steps; NULL: only `rows` can run them
  void (*rows)(const struct tfc_kernel_finish *finish, float *y, int64_t begin, int64_t end); // y: output 0
  bool done;
};

struct tfc_kernel_ctx {
  const struct tfc_graph *graph;
  const struct tfc_node *node;
  struct tfc_kernel_env *env;
  const struct tfc_tensor *const *inputs; // [input_count]; for reference inputs the variable's current value
  struct tfc_variable *const *variables;  // [input_count]; the variable behind a reference or resource input, or NULL
  struct tfc_tensor **outputs;            // [output_count]
  struct tfc_variable **output_variables; // [output_count]; set where an output is a reference
  uint32_t input_count, output_count;
  bool rounding;                    // faster arithmetic with other rounding is allowed
  uint32_t reusable;                // bits of inputs whose buffer output 0 may take over if it is not shared
  struct tfc_kernel_finish *finish; // NULL: no operation follows in this one
  void *state;                      // from prepare
  void *node_state;                 // op_def.node_state bytes, which the session keeps from step to step
  // Only for operations with both flags TFC_OP_DEAD_INPUTS and TFC_OP_ASYNC. Before the call: an input is dead. After
  // the call: the outputs are dead.
  bool dead;
  uint64_t iteration; // for these operations too: identifies an iteration of a loop; 0 outside of loops
  bool more;          // of TFC_ROLE_SEND: the thread sends another tensor at once, or calls the rendezvous's `flush`
  void (*done)(struct tfc_kernel_ctx *ctx, tfc_status status); // of TFC_OP_ASYNC ops: called exactly once
};

// Makes output `i` a tensor of this type and shape; its content is undefined.
TFC_MUST_USE tfc_status tfc_kernel_output(struct tfc_kernel_ctx *ctx, uint32_t i, tfc_dtype dtype,
                                          const struct tfc_shape *shape, struct tfc_tensor **out);
TFC_MUST_USE tfc_status tfc_kernel_output_like(struct tfc_kernel_ctx *ctx, uint32_t i, const struct tfc_tensor *like,
                                               struct tfc_tensor **out);
// Makes output `i` this tensor (shared, not copied): for views, variant and resource values. A value that the operation
// only borrows is copied.
TFC_MUST_USE tfc_status tfc_kernel_set_output(struct tfc_kernel_ctx *ctx, uint32_t i, const struct tfc_tensor *value);
// Whether a value is in memory of an input that the memory plan gives to others after this operation, because it does
// not know that the output is there, too. It knows that of views and of references to variables.
bool tfc_kernel_is_borrowed(const struct tfc_kernel_ctx *ctx, uint32_t i, const struct tfc_tensor *value);
// Makes output `i` a scalar handle to `object`; takes over one reference.
TFC_MUST_USE tfc_status tfc_kernel_set_object(struct tfc_kernel_ctx *ctx, uint32_t i, tfc_dtype dtype,
                                              struct tfc_object *object);
// Allocates scratch memory of the device, to be released with tfc_buffer_release.
TFC_MUST_USE tfc_status tfc_kernel_scratch(struct tfc_kernel_ctx *ctx, size_t bytes, struct tfc_buffer **out);
void tfc_kernel_parallel_for(struct tfc_kernel_ctx *ctx, int64_t total, int64_t grain,
                             void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
// Returns the type that `types` of an op's row is about: its first type attribute (of RandomUniform that is dtype, not
// T).
tfc_dtype tfc_kernel_type(const struct tfc_graph *g, const struct tfc_node *n);
// Call it before a row's kernel is called for the first time. Returns UNIMPLEMENTED if the row does not take the node's
// type; otherwise calls the row's `prepare`, if it has one.
TFC_MUST_USE tfc_status tfc_kernel_prepare(struct tfc_prepare_ctx *ctx);
// Makes a kernel return INVALID_ARGUMENT for wrong inputs; the executor adds node, op, device and shapes.
#define TFC_KERNEL_CHECK(condition, ...)                                                                               \
  do {                                                                                                                 \
    if (__builtin_expect(!(condition), 0)) return tfc_status_make(TFC_INVALID_ARGUMENT, __VA_ARGS__);                  \
  } while (0)

// --- State ----------------------------------------------------------------------------------------------------------
// A variable. `value` is on the device on which the variable is placed. Reads and writes are ordered by control edges;
// `lock` guards only the record (shape, initialised, swapping the buffer) and updates with use_locking.
struct tfc_variable {
  struct tfc_object object; // type: &tfc_variable_type
  tfc_str name;
  tfc_dtype dtype;
  struct tfc_shape shape; // declared; may be partly unknown
  struct tfc_tensor value;
  bool initialized;
  _Atomic int32_t lock;
  uint32_t device; // index in the session
  // If steps overlap, the executor holds this lock around every operation that uses the variable.
  pthread_mutex_t access;
};
extern const struct tfc_object_type tfc_variable_type;
// Makes a variable without a value, copying the name. Released with tfc_object_release(&v->object).
TFC_MUST_USE tfc_status tfc_variable_create(tfc_str name, tfc_dtype dtype, const struct tfc_shape *shape,
                                            struct tfc_variable **out);
// Returns FAILED_PRECONDITION "variable NAME is not initialized", with a remedy, if the variable has no value.
TFC_MUST_USE tfc_status tfc_variable_check(const struct tfc_variable *v);
void tfc_variable_lock(struct tfc_variable *v);
void tfc_variable_unlock(struct tfc_variable *v);

// Named objects of a session or a step, by container and name. Thread-safe.
TFC_MUST_USE tfc_status tfc_resources_create(struct tfc_resources **out);
void tfc_resources_free(struct tfc_resources *r);
// Finds the object of that name, which `create` makes if it does not exist; its type must match. Returned with a
// reference.
TFC_MUST_USE tfc_status tfc_resources_find_or_create(struct tfc_resources *r, tfc_str container, tfc_str name,
                                                     const struct tfc_object_type *type,
                                                     tfc_status (*create)(void *arg, struct tfc_object **out),
                                                     void *arg, struct tfc_object **out);
TFC_MUST_USE tfc_status tfc_resources_find(struct tfc_resources *r, tfc_str container, tfc_str name,
                                           const struct tfc_object_type *type, struct tfc_object **out);
// Returns an object of any type, with a reference; NULL: it does not exist.
struct tfc_object *tfc_resources_look(struct tfc_resources *r, tfc_str container, tfc_str name);
void tfc_resources_remove(struct tfc_resources *r, tfc_str container, tfc_str name);
// Calls fn for every object (in order of name); for snapshots and reports.
void tfc_resources_each(struct tfc_resources *r,
                        void (*fn)(void *arg, tfc_str container, tfc_str name, struct tfc_object *object), void *arg);
// Gives an object what a checkpoint kept of it: its type's name, and the words that its type's `save` made. If it does
// not exist, it gets them when it is made. INVALID_ARGUMENT: it is an object of another type, or the words make no
// sense.
TFC_MUST_USE tfc_status tfc_resources_load(struct tfc_resources *r, tfc_str container, tfc_str name, tfc_str kept);
// Calls fn for what waits for objects that have not been made yet. fn must not use resources.
void tfc_resources_each_kept(struct tfc_resources *r,
                             void (*fn)(void *arg, tfc_str container, tfc_str name, tfc_str kept), void *arg);
// Wakes the kernels that wait in queues or similar objects and whose env->cancelled() says that their step has ended.
// Whoever cancels a step must call it.
void tfc_resources_wake(struct tfc_resources *r);
// Finds the object that input `i` (a resource or variant handle) holds, checked against `type`. Borrowed.
TFC_MUST_USE tfc_status tfc_kernel_object(struct tfc_kernel_ctx *ctx, uint32_t i, const struct tfc_object_type *type,
                                          struct tfc_object **out);

#endif
