#@ title: What operations reach of what the devices can do
#@ caption: Each type of operation by its FLOP per byte and the rate that its operations reached in the step; times are theirs in it. The lines are the best rates that this run saw, of memory (rising) and of arithmetic (flat), over all its steps and devices: a type far below them is limited by something else, such as short operations or cores that are shared. FLOP of what is fused into another operation count nowhere, so that the types that it is fused into reach more than is shown.
#@ place: 50
#@ query types: name, FLOP per byte, FLOP per microsecond, microseconds of the step, rank
#@   WITH took AS (SELECT node_id, node, op, device_id, COUNT(*) AS n, SUM(duration_us) AS us FROM v_op
#@     WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY node_id UNION ALL
#@     SELECT node_id, node, op, device_id, 1, median_us FROM v_op_total
#@     WHERE run_id = :run AND placement_id = :placement AND :step < 0),
#@   loops AS (SELECT COUNT(*) > 0 AS any FROM v_node WHERE run_id = :run AND op IN ('NextIteration', 'RefNextIteration',
#@     'While', 'StatelessWhile')),
#@   t AS (SELECT n.op, SUM(n.flops * CASE WHEN any THEN o.n ELSE 1 END) AS flops,
#@     SUM(n.bytes_touched * CASE WHEN any THEN o.n ELSE 1 END) AS bytes, SUM(o.us) AS us
#@     FROM took o CROSS JOIN loops CROSS JOIN v_node n ON n.run_id = :run AND n.node_id = o.node_id
#@     WHERE n.flops > 0 AND n.bytes_touched > 0 AND o.us > 0 GROUP BY n.op ORDER BY us DESC, n.op LIMIT 9)
#@   SELECT op, flops / bytes, flops / us, us, ROW_NUMBER() OVER (ORDER BY us DESC, op) FROM t ORDER BY us DESC, op
#@ query rates: the best FLOP and bytes per microsecond: of operations of 20 microseconds and more without the fastest twentieth, or of a type
#@   WITH took AS (SELECT node_id, node, op, device_id, COUNT(*) AS n, SUM(duration_us) AS us FROM v_op
#@     WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY node_id UNION ALL
#@     SELECT node_id, node, op, device_id, 1, median_us FROM v_op_total
#@     WHERE run_id = :run AND placement_id = :placement AND :step < 0),
#@   loops AS (SELECT COUNT(*) > 0 AS any FROM v_node WHERE run_id = :run AND op IN ('NextIteration', 'RefNextIteration',
#@     'While', 'StatelessWhile')),
#@   t AS (SELECT n.op, SUM(n.flops * CASE WHEN any THEN o.n ELSE 1 END) AS flops,
#@     SUM(n.bytes_touched * CASE WHEN any THEN o.n ELSE 1 END) AS bytes, SUM(o.us) AS us
#@     FROM took o CROSS JOIN loops CROSS JOIN v_node n ON n.run_id = :run AND n.node_id = o.node_id
#@     WHERE n.flops > 0 AND n.bytes_touched > 0 AND o.us > 0 GROUP BY n.op ORDER BY us DESC, n.op LIMIT 9),
#@   c AS (SELECT node_id, fastest_us AS us FROM v_cost WHERE run_id = :run UNION ALL SELECT node_id, fastest_us
#@     FROM v_op_total WHERE run_id = :run AND NOT EXISTS (SELECT 1 FROM v_cost WHERE run_id = :run)),
#@   r AS MATERIALIZED (SELECT n.flops / c.us AS f, n.bytes_touched / c.us AS b FROM c JOIN v_node n ON n.run_id = :run
#@     AND n.node_id = c.node_id WHERE c.us >= 20),
#@   best AS (SELECT (SELECT f FROM r WHERE f > 0 ORDER BY f DESC LIMIT 1 OFFSET (SELECT COUNT(*) / 20 FROM r WHERE f > 0)) AS f,
#@     (SELECT b FROM r WHERE b > 0 ORDER BY b DESC LIMIT 1 OFFSET (SELECT COUNT(*) / 20 FROM r WHERE b > 0)) AS b)
#@   SELECT MAX(f, (SELECT MAX(flops / us) FROM t)), MAX(b, (SELECT MAX(bytes / us) FROM t)) FROM best
#@   WHERE f > 0 AND EXISTS (SELECT 1 FROM t)
stats $rates using (peak = $1, bandwidth = $2, $1) nooutput
stats $types using 2 nooutput
m = STATS_records
left = 0.3 * STATS_min
right = 3 * STATS_max
if (right < 3 * peak / bandwidth) { right = 3 * peak / bandwidth }
stats $types using 3 nooutput
low = STATS_min
array label[m]
stats $types using (label[int($0) + 1] = short(strcol(1), 26)."  ".took($4), $2) nooutput
eval PICTURE(400, m)
set logscale xy
set xrange [left:right]
set yrange [0.4e-3 * low:2.5e-3 * peak]
set xlabel "FLOP per byte"
set ylabel "GFLOP/s"
set format x "%g"
set format y "%g"
roof(x) = 1e-3 * (x * bandwidth < peak ? x * bandwidth : peak)
plot roof(x) with lines lw 1.6 lc rgb INK title sprintf("%.3g GFLOP/s, %.3g GB/s", 1e-3 * peak, 1e-3 * bandwidth), \
     for [k = 1:m] $types using 2:($5 == k ? 1e-3 * $3 : NaN):(op_colour(strcol(1))) with points pt shape[k] ps 1.1 lc rgb variable title label[k]
