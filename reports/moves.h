// What to move: operations of the critical path that would have ended earlier on another device, by the traced step.
#ifndef TFC_REPORTS_MOVES_H
#define TFC_REPORTS_MOVES_H

#include "reports/traced.h"

// The queries that this needs in addition to those of the traced step. links: the times of transfers between two
// devices, by bytes; units: the unit of each node (the nodes of a unit move together), and the bytes of its outputs.
extern const char tfc_report_sql_links[], tfc_report_sql_units[];

// Fills `out` with a row for each unit (v_node.unit_id) that one could move, to where that wins most, the largest
// first: unit_id, node (of the operation that gains most), operations (of the path), source, target, won_us. Strings
// live as long as `arena` and `traced`. An operation may only move to a device of the same kind. It would begin there
// as soon as its inputs have come (`v_link` says how long that takes) and the device was idle for long enough, so the
// other operations stay where they are; what its result then takes to its readers is subtracted. If the next item of
// the path only waited for the device, it wins at most the operation's time. No move wins more than the part of the
// path that its operations take, with what they waited for.
TFC_MUST_USE tfc_status tfc_report_moves(struct tfc_store *store, const struct tfc_query_args *args,
                                         const struct tfc_traced *traced, struct tfc_arena *arena,
                                         struct tfc_table *out);

#endif
