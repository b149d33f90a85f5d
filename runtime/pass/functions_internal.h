// Declarations that the files of the lowering share. functions.c is built on functions_control.c, functions_inline.c
// and functions_call.c.
#ifndef TFC_RUNTIME_PASS_FUNCTIONS_INTERNAL_H
#define TFC_RUNTIME_PASS_FUNCTIONS_INTERNAL_H

#include "runtime/base/array.h"
#include "runtime/pass/functions.h"

struct tfc_lowering {
  struct tfc_builder *b;
  const struct tfc_graph *library;
  tfc_gradients_fn *gradients;
  TFC_ARRAY(uint32_t) origin; // by node of the builder
  TFC_ARRAY(uint8_t) depth;
  TFC_ARRAY(uint32_t) caller;
  bool *recursive;        // by function
  uint64_t *expanded;     // by function: how many nodes it has if all calls are lowered
  TFC_ARRAY(bool) inside; // inside of a loop or a branch: nodes without inputs need a control edge from it
  // By node: it depends only on values that a loop does not change, so it is alive in the loop's last iteration, too.
  TFC_ARRAY(bool) steady;
};

// The result of a call: its outputs, and a node that runs after everything in the call (or TFC_NONE).
struct tfc_inlined {
  struct tfc_output *results;
  uint32_t result_count;
  uint32_t done;
};

// One call, as the caller sees it.
struct tfc_call_site {
  uint32_t caller; // node of the builder
  tfc_str name;    // prefix of the body's nodes
  tfc_str device;  // for nodes without one
  const struct tfc_output *args;
  uint32_t arg_count;
  uint32_t control;             // a node that runs before everything in the call, or TFC_NONE
  bool strict;                  // parameters wait for `control`, too
  bool inside;                  // the caller is in a loop or a branch
  const struct tfc_attr *attrs; // for a polymorphic function: the call's attributes
  uint32_t attr_count;
  // > 0: nodes of the body from this id on belong to no function in the file; all are placed with this call.
  uint32_t made_from;
};

// Inlines one call of a function, by its name or by the attribute of a call.
static inline bool tfc_lowering_is_call(const struct tfc_node *n) {
  return !n->def || n->def->role == TFC_ROLE_CALL || n->def->role == TFC_ROLE_REMOTE_CALL;
}

// Attribute of the node that called a loop, once the loop is lowered: true.
#define TFC_LOWERED_LOOP "_tfc_loop"

// functions_call.c. Adds a node "<call>/<suffix>" and returns its first output.
struct tfc_output tfc_lowering_add(struct tfc_lowering *l, const struct tfc_call_site *at, const char *op,
                                   const char *suffix, const struct tfc_output *inputs, uint32_t count,
                                   const uint32_t *controls, uint32_t control_count, const struct tfc_attr *attrs,
                                   uint32_t attr_count);
// Fails unless the function's results are as many and of such types as the calling node declares its outputs.
TFC_MUST_USE tfc_status tfc_lowering_check(struct tfc_lowering *l, uint32_t id, tfc_str function,
                                           const struct tfc_output *results, uint32_t count);
// Makes the calling node an Identity of the results, which runs after its own control inputs and `done`. `is_loop`: it
// called a loop (TFC_LOWERED_LOOP).
TFC_MUST_USE tfc_status tfc_lowering_settle(struct tfc_lowering *l, uint32_t id, const struct tfc_output *results,
                                            uint32_t done, bool is_loop);
// Returns a node that waits for all of the caller's control inputs; TFC_NONE: the caller has none.
uint32_t tfc_lowering_control(struct tfc_lowering *l, const struct tfc_call_site *at);
TFC_MUST_USE tfc_status tfc_lowering_func(struct tfc_lowering *l, uint32_t id, const char *name,
                                          const struct tfc_func_attr **out);

// functions_inline.c: copies the body of a function to the caller's graph.
TFC_MUST_USE tfc_status tfc_lowering_inline(struct tfc_lowering *l, const struct tfc_call_site *at,
                                            const struct tfc_function *fn, struct tfc_inlined *out);
TFC_MUST_USE tfc_status tfc_lowering_inline_call(struct tfc_lowering *l, const struct tfc_call_site *at,
                                                 tfc_str function, struct tfc_inlined *out);
void tfc_lowering_set_steady(struct tfc_lowering *l, uint32_t id);
// Returns a node that is dead exactly if the inputs of a call are dead; TFC_NONE: there is none.
uint32_t tfc_lowering_pivot(const struct tfc_lowering *l, const struct tfc_call_site *at);

// functions_control.c
TFC_MUST_USE tfc_status tfc_lowering_if(struct tfc_lowering *l, struct tfc_call_site *at);
TFC_MUST_USE tfc_status tfc_lowering_case(struct tfc_lowering *l, struct tfc_call_site *at);
TFC_MUST_USE tfc_status tfc_lowering_while(struct tfc_lowering *l, struct tfc_call_site *at);

#endif
