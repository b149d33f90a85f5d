// Loads an example: its graph, its step, its feeds, and the losses that TensorFlow computed.
#ifndef TFC_TESTS_COMMON_EXAMPLE_H
#define TFC_TESTS_COMMON_EXAMPLE_H

#include "runtime/exec/session.h"

enum { EXAMPLE_FEEDS = 16, EXAMPLE_SETS = 4 };
struct example {
  struct tfc_graph *graph;
  uint32_t init, train;
  struct tfc_output loss, feeds[EXAMPLE_FEEDS];
  uint32_t feed_count, set_count;
  struct tfc_tensor values[EXAMPLE_SETS][EXAMPLE_FEEDS];
  struct tfc_shape shapes[EXAMPLE_FEEDS];
  double losses[20];
  uint32_t loss_count;
};
TFC_MUST_USE tfc_status example_load(const char *name, struct example *out); // "mlp": examples/mlp.pb
// The mlp example with layers of 16, 24 and 20 in place of 784, 256 and 128: the same operations, in a fraction of the
// time. For tests of what a step does; its losses are not TensorFlow's.
TFC_MUST_USE tfc_status example_load_narrow_mlp(struct example *out);
void example_deinit(struct example *e);
// Makes the training step with the loss; the caller may change `spec` further (placement).
void example_spec(const struct example *e, struct tfc_run_spec *out);

#endif
