// What the memory of devices holds, for `tfc-report memory` (lists.h), for plots and for traces.
#ifndef TFC_REPORTS_MEMORY_H
#define TFC_REPORTS_MEMORY_H

#include "reports/lists.h"

// Begins a query: `held` has what lies in the memory of devices in the step and how long, `levels` the bytes of each
// device from a moment on, `fullest` the moment when it holds most. The list, the plot and the trace have it from here.
//
// A tensor is held on its producer's device from the producer's start until its readers on that device and its
// transfers have ended; if it is handed over, until the readers on the other device have ended. A copy is held on the
// receiving device from the transfer's start until its readers there have ended. Outputs of a variable are not counted,
// because they are in the variable's own memory.
//
// That is also what the simulator counts. In a step that ran, what shares memory counts once. An AddN that adds up only
// matrix products without other readers never has them in memory (runtime/exec/rewrites/sums.c): its sum is held from
// the start of the first of them. An operation whose result is as large as its input, of which it is the only reader,
// is taken to work in place, so that its input is held until it starts; products and convolutions cannot.
//
// Times in the query are nanoseconds * 2^20, plus a number that orders what happens in the same nanosecond: first what
// ends (0), then transfers that begin (1), then operations by their position p: they begin at 2p + 1 and, if they take
// no time, end at 2p + 2. So the input and the result of an operation that takes no time are held together.
#define TFC_SQL_HELD                                                                                                   \
  "WITH m AS MATERIALIZED (SELECT COALESCE(MAX(label = 'modelled'), 0) AS simulated FROM v_result WHERE "              \
  "run_id = :run AND placement_id = :placement), o AS MATERIALIZED (SELECT node_id, node, device, s * "                \
  "1048576 AS began, s * 1048576 + 2 * p + 1 AS s, e * 1048576 + CASE WHEN s = e THEN 2 * p + 2 ELSE 0 "               \
  "END AS e FROM (SELECT node_id, node, device, MIN(position) AS p, CAST(ROUND(MIN(start_us) * 1000) AS "              \
  "INTEGER) AS s, CAST(ROUND(MAX(start_us + duration_us) * 1000) AS INTEGER) AS e FROM v_op WHERE "                    \
  "run_id = :run AND placement_id = :placement AND step = :step GROUP BY node_id, device)), x AS "                     \
  "MATERIALIZED (SELECT node_id, node, output, target, bytes, how, CAST(ROUND(MIN(start_us) * 1000) AS "               \
  "INTEGER) * 1048576 + 1 AS s, CAST(ROUND(MAX(start_us + duration_us) * 1000) AS INTEGER) * 1048576 AS "              \
  "e FROM v_transfer WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY "                     \
  "node_id, output, target), g AS MATERIALIZED (SELECT producer_id, output, consumer_id, MAX(bytes) AS "               \
  "bytes FROM v_edge WHERE run_id = :run AND output >= 0 AND bytes > 0 GROUP BY 1, 2, 3), alone AS "                   \
  "MATERIALIZED (SELECT producer_id, output FROM g GROUP BY 1, 2 HAVING COUNT(*) = 1), terms AS "                      \
  "MATERIALIZED (SELECT producer_id AS id, consumer_id AS sum FROM g WHERE consumer_id IN (SELECT "                    \
  "g.consumer_id FROM v_node c CROSS JOIN g ON g.consumer_id = c.node_id CROSS JOIN v_node p ON "                      \
  "p.run_id = :run AND p.node_id = g.producer_id WHERE c.run_id = :run AND c.op = 'AddN' AND NOT "                     \
  "(SELECT simulated FROM m) GROUP BY 1 HAVING MIN(p.op = 'MatMul' AND (g.producer_id, g.output) IN "                  \
  "(SELECT producer_id, output FROM alone)))), begun AS MATERIALIZED (SELECT t.sum AS id, o.device, "                  \
  "MIN(o.s) AS s FROM terms t JOIN o ON o.node_id = t.id GROUP BY 1, 2), taken AS MATERIALIZED (SELECT "               \
  "producer_id, output FROM g WHERE (producer_id, output) IN (SELECT producer_id, output FROM alone) "                 \
  "AND (consumer_id, bytes) IN (SELECT producer_id, bytes FROM g) AND consumer_id IN (SELECT node_id "                 \
  "FROM v_node WHERE run_id = :run AND op <> '' AND op NOT LIKE '%MatMul%' AND op NOT LIKE '%Conv%') "                 \
  "AND NOT (SELECT simulated FROM m)), held AS MATERIALIZED (SELECT 'variable' AS kind, p.device, "                    \
  "n.name AS node, NULL AS output, n.memory_bytes AS bytes, 0 AS s, COALESCE((SELECT MAX(e) FROM o), 0) "              \
  "AS e FROM v_node n JOIN v_placement p ON p.run_id = n.run_id AND p.placement_id = :placement AND "                  \
  "p.node_id = n.node_id WHERE n.run_id = :run AND n.memory_bytes > 0 UNION ALL SELECT 'tensor', "                     \
  "p.device, p.node, g.output, MAX(g.bytes), MIN(p.s, COALESCE(b.s, p.s)), MAX(MAX(p.e, CASE WHEN "                    \
  "c.device = p.device THEN CASE WHEN (g.producer_id, g.output) IN (SELECT producer_id, output FROM "                  \
  "taken) THEN c.began ELSE c.e END WHEN x.how = 'handed over' AND NOT (SELECT simulated FROM m) THEN "                \
  "c.e ELSE 0 END, COALESCE(x.e, 0))) FROM g JOIN o p ON p.node_id = g.producer_id JOIN o c ON "                       \
  "c.node_id = g.consumer_id LEFT JOIN x ON x.node_id = g.producer_id AND x.output = g.output AND "                    \
  "x.target = c.device AND c.device <> p.device LEFT JOIN begun b ON b.id = p.node_id AND b.device = "                 \
  "p.device WHERE NOT EXISTS (SELECT 1 FROM v_node v WHERE v.run_id = :run AND v.node_id = "                           \
  "g.producer_id AND v.memory_bytes > 0) AND g.producer_id NOT IN (SELECT id FROM terms) GROUP BY "                    \
  "g.producer_id, g.output, p.device UNION ALL SELECT 'received', x.target, x.node, x.output, x.bytes, "               \
  "x.s, MAX(x.e, COALESCE((SELECT MAX(c.e) FROM g JOIN o c ON c.node_id = g.consumer_id AND c.device = "               \
  "x.target WHERE g.producer_id = x.node_id AND g.output = x.output), 0)) FROM x WHERE x.how IS NULL OR "              \
  "x.how <> 'handed over' OR (SELECT simulated FROM m)), events AS (SELECT device, s AS t, bytes AS "                  \
  "more FROM held UNION ALL SELECT device, e, -bytes FROM held), levels AS (SELECT device, t, SUM(more) "              \
  "OVER (PARTITION BY device ORDER BY t, more ROWS UNBOUNDED PRECEDING) AS bytes FROM events), fullest "               \
  "AS MATERIALIZED (SELECT device, t, bytes FROM (SELECT device, t, bytes, ROW_NUMBER() OVER (PARTITION "              \
  "BY device ORDER BY bytes DESC, t) AS k FROM levels) WHERE k = 1)"

// Lists the peak memory of devices under the answer against their limits, and what occupies each device at the moment
// of the representative step when most is held.
TFC_MUST_USE tfc_status tfc_report_memory(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out);
// Computes how many bytes each device holds during a traced step, for `memory`. Columns: device_id, at_us, and the
// bytes from then on.
TFC_MUST_USE tfc_status tfc_report_memory_levels(struct tfc_store *store, const struct tfc_query_args *args,
                                                 struct tfc_table *out);

#endif
