// A traced step, and what each of its operations waited for: the critical path as it was run, gaps of devices with
// their causes, slack of operations. Read from v_op, v_transfer and v_edge; docs/database.md says how each is computed.
//
//   struct tfc_traced t = {0};
//   TFC_TRY(s, tfc_traced_load(store, &args, &t)); // args.placement and args.step say which
//   for (uint32_t i = 0; i < t.path_count; i++) use(&t.path[i]);
//   tfc_traced_deinit(&t);
//
// Times are nanoseconds since the step began, at most 2^50, and no end is before its start. Only one thread may use it.
// NOT_FOUND: no operation of that step was recorded. INVALID_ARGUMENT: a node's or device's number is none.
#ifndef TFC_REPORTS_TRACED_H
#define TFC_REPORTS_TRACED_H

#include "reports/query.h"
#include "runtime/base/none.h"

// Arrays are as long as the largest number of a node or device, which another program may have made any number.
enum { TFC_TRACED_NODES = 1 << 24, TFC_TRACED_DEVICES = 1 << 16 };
// Times in ns, which it may have made any number, too, are cut off at this one, so that their sums do not overflow. No
// step is that long: thirteen days.
#define TFC_TRACED_LONGEST (INT64_C(1) << 50)

struct tfc_traced_op {
  uint32_t node;
  int32_t device;
  int64_t start, end;
  uint32_t before;             // the operation that ended last on its device before it started, or TFC_NONE
  uint32_t producer, transfer; // of the input that arrived last; each may be TFC_NONE
  int64_t arrival;             // when that input had arrived, at most `start`; -1: no input is known
  bool by_input;               // it started when that input arrived, and not only when `before` ended
  int64_t latest;              // the latest end that would not make the step longer, with the same order on each device
};
struct tfc_traced_transfer {
  uint32_t node;
  int32_t output, source, target;
  int64_t start, end, bytes;
};
struct tfc_traced_item {      // an item of the critical path, in the order of time
  uint32_t op, transfer;      // one of the two is TFC_NONE
  int64_t start, end, waited; // `waited`: from the end of the previous item to `start`
};
struct tfc_traced_gap {
  int32_t device;
  uint32_t op; // the operation that ends the gap; TFC_NONE: the device has no further operation in the step
  int64_t start, end;
  int64_t dependency, transfer, other; // its parts: waiting for the producer, for the transfer, and for unknown reasons
};
struct tfc_traced_link {           // by the graph's edges, `op` had to wait for this producer or transfer
  uint32_t producer, transfer, op; // producer, transfer: each may be TFC_NONE
};
struct tfc_traced {
  struct tfc_table op_rows, transfer_rows; // row i belongs to ops[i] or transfers[i]
  uint32_t op_count, transfer_count, path_count, gap_count, link_count, link_capacity, edge_count;
  struct tfc_traced_op *ops;
  struct tfc_traced_transfer *transfers;
  struct tfc_traced_item *path;
  struct tfc_traced_gap *gaps; // longest first
  struct tfc_traced_link *links;
  int64_t end; // end of the last operation
  struct tfc_arena arena;
};
TFC_MUST_USE tfc_status tfc_traced_load(struct tfc_store *store, const struct tfc_query_args *args,
                                        struct tfc_traced *out);
// Reads the run's edges once, for loading many steps of the run.
TFC_MUST_USE tfc_status tfc_traced_edges(struct tfc_store *store, const struct tfc_query_args *args,
                                         struct tfc_table *out);
TFC_MUST_USE tfc_status tfc_traced_load_step(struct tfc_store *store, const struct tfc_query_args *args,
                                             const struct tfc_table *edges, struct tfc_traced *out);
void tfc_traced_deinit(struct tfc_traced *traced);

#endif
