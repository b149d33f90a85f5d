// Random distributions, and the generator that a stateful op keeps from step to step.
#ifndef TFC_RUNTIME_OPS_RANDOM_STREAM_H
#define TFC_RUNTIME_OPS_RANDOM_STREAM_H

#include "runtime/ops/kernel.h"
#include "runtime/ops/random_philox.h"

// These distributions fill a tensor group by group. Each group has its own place in the stream, so that the numbers do
// not depend on how the work is split.
enum tfc_random_kind {
  TFC_RANDOM_UNIFORM,          // floats in [0, 1)
  TFC_RANDOM_NORMAL,           // floats
  TFC_RANDOM_TRUNCATED_NORMAL, // floats within two standard deviations
  TFC_RANDOM_UNIFORM_INT,      // [low, low + range) of int32, int64, uint32, uint64
  TFC_RANDOM_FULL_INT,         // all values of int32, int64, uint32, uint64
};
struct tfc_random_request {
  enum tfc_random_kind kind;
  struct tfc_philox generator;
  int64_t low;    // for UNIFORM_INT
  uint64_t range; // for UNIFORM_INT, > 0
};
void tfc_random_fill(struct tfc_kernel_ctx *ctx, const struct tfc_random_request *request, struct tfc_tensor *out);

// The generator of a stateful op (from attributes seed and seed2, or from the session's seed if both are 0). Reserves
// `draws` for this run; the next run continues behind them. Needs op_def.node_state = TFC_RANDOM_NODE_STATE and
// op_def.prepare = tfc_random_prepare.
enum { TFC_RANDOM_NODE_STATE = 8 };
TFC_MUST_USE tfc_status tfc_random_prepare(struct tfc_prepare_ctx *ctx);
struct tfc_philox tfc_random_reserve(struct tfc_kernel_ctx *ctx, uint64_t draws);

#endif
