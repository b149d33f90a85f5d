// What to move: which unit would make the answer better on another device, by itself. tfc-place simulated such moves
// and recorded those that win (v_move). Of other runs, those of tfc-run and of older versions, this estimates them from
// the traced step: which operations of its critical path would have ended earlier elsewhere.
#ifndef TFC_REPORTS_MOVES_H
#define TFC_REPORTS_MOVES_H

#include "reports/traced.h"

// The queries that this needs in addition to those of the traced step. links: the times of transfers between two
// devices, by bytes; units: the unit of each node (the nodes of a unit move together), and the bytes of its outputs.
extern const char tfc_report_sql_links[], tfc_report_sql_units[];

// Fills `out` with a row for each unit (v_node.unit_id) that one could move, to where that wins most, the largest
// first: unit_id, node, operations, source, target, won_us, checked, value_us. Strings live as long as `arena` and
// `traced`.
//
// value_us is what the step (or the largest load) takes without any move, and won_us is how much less it takes with
// this one. If checked, both are simulated; otherwise value_us is the traced step.
//
// checked 1: the rows are those of v_move. 0: they are estimates; node is the operation that gains most, operations
// those of the path. An operation may then only move to a device of the same kind. It would begin there as soon as its
// inputs have come (`v_link` says how long that takes) and the device was idle for long enough, so the other operations
// stay where they are; what its result then takes to its readers is subtracted. If the next item of the path only
// waited for the device, it wins at most the operation's time. No move wins more than the part of the path that its
// operations take, with what they waited for.
TFC_MUST_USE tfc_status tfc_report_moves(struct tfc_store *store, const struct tfc_query_args *args,
                                         const struct tfc_traced *traced, struct tfc_arena *arena,
                                         struct tfc_table *out);
// Adds to `out` what the figures of `moves`, such a table, are; or that nothing is to be moved. Nothing is added if
// that is not known.
TFC_MUST_USE tfc_status tfc_report_moves_explain(struct tfc_store *store, const struct tfc_query_args *args,
                                                 const struct tfc_table *moves, struct tfc_text *out);

#endif
