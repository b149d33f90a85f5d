// Measures the processor's peak (multiply-adds per second) and its memory bandwidth (bytes per second), and computes
// how long the operations of a plan would take at these.
#ifndef TFC_TESTS_BENCH_ROOFLINE_H
#define TFC_TESTS_BENCH_ROOFLINE_H

#include "runtime/exec/session.h"

struct roofline {
  double flops; // FLOP per second of fused multiply-adds in registers, in float32
  double bytes; // bytes per second of c = a + b over arrays far larger than the caches, read and written
};
// Measures on the first `threads` processors that this thread may use; takes about 0.3 s.
struct roofline roofline_measure(int threads);
// The work of the operations of a static plan, by node. A node that is fused into another one's operation has no work.
// Fused nodes are one operation, whose bytes are those of tensors that it reads from other operations or writes for
// them. Free it with free().
struct roofline_work {
  double flop, bytes, floor_us; // the larger one of FLOP / peak and bytes / bandwidth
  uint32_t members;             // nodes that the operation does
};
TFC_MUST_USE tfc_status roofline_of_nodes(const struct tfc_graph *graph, const struct tfc_run_spec *spec,
                                          const struct tfc_plan *plan, const struct roofline *machine,
                                          struct roofline_work **out);
// out_floor_us: the sum, over the operations that a static plan runs, of the larger one of FLOP / peak and bytes /
// bandwidth, in microseconds. out_flop and out_bytes: the sums of these operations' FLOP and bytes.
TFC_MUST_USE tfc_status roofline_of_plan(const struct tfc_graph *graph, const struct tfc_run_spec *spec,
                                         const struct tfc_plan *plan, const struct roofline *machine,
                                         double *out_floor_us, double *out_flop, double *out_bytes);

#endif
