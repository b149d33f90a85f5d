#@ title: What operations reach of what the devices can do
#@ caption: Each type of operation by its FLOP per byte and the rate that its operations reach under the answer. The lines are the best rates seen in this run, of memory (rising) and of arithmetic (flat): what lies below them is limited by something else, such as short operations. What runs fused into another operation counts with its own type, so types that others are fused into reach more than is shown.
#@ place: 50
#@ query types: name, FLOP per byte, FLOP per microsecond, microseconds of the step, rank
#@   WITH runs AS (SELECT node_id, device_id, COUNT(*) AS n FROM v_op
#@     WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY node_id, device_id),
#@   took AS (SELECT t.node_id, COALESCE(r.n, 1) AS n, t.median_us * COALESCE(r.n, 1) AS us FROM v_op_total t
#@     LEFT JOIN runs r USING (node_id, device_id) WHERE t.run_id = :run AND t.placement_id = :placement),
#@   t AS (SELECT n.op, SUM(n.flops * o.n) AS flops, SUM(n.bytes_touched * o.n) AS bytes, SUM(o.us) AS us
#@     FROM took o CROSS JOIN v_node n ON n.run_id = :run AND n.node_id = o.node_id
#@     WHERE n.bytes_touched > 0 AND o.us > 0 GROUP BY n.op)
#@   SELECT op, flops / bytes, flops / us, us, ROW_NUMBER() OVER (ORDER BY us DESC, op) FROM t WHERE flops > 0
#@   ORDER BY us DESC, op LIMIT 9
#@ query rates: the best FLOP and bytes per microsecond, of operations of 20 microseconds and more without a twentieth
#@   WITH c AS (SELECT node_id, fastest_us AS us FROM v_cost WHERE run_id = :run UNION ALL SELECT node_id, fastest_us
#@   FROM v_op_total WHERE run_id = :run AND NOT EXISTS (SELECT 1 FROM v_cost WHERE run_id = :run)), r AS
#@   MATERIALIZED (SELECT n.flops / c.us AS f, n.bytes_touched / c.us AS b FROM c JOIN v_node n ON n.run_id = :run
#@   AND n.node_id = c.node_id WHERE c.us >= 20), best AS (SELECT (SELECT f FROM r WHERE f > 0 ORDER BY f DESC LIMIT
#@   1 OFFSET (SELECT COUNT(*) / 20 FROM r WHERE f > 0)) AS f, (SELECT b FROM r WHERE b > 0 ORDER BY b DESC LIMIT 1
#@   OFFSET (SELECT COUNT(*) / 20 FROM r WHERE b > 0)) AS b) SELECT f, b FROM best WHERE f > 0
stats $rates using (peak = $1, bandwidth = $2, $1) nooutput
stats $types using 2 nooutput
m = STATS_records
left = 0.3 * STATS_min
right = 3 * STATS_max
if (right < 3 * peak / bandwidth) { right = 3 * peak / bandwidth }
stats $types using 3 nooutput
low = STATS_min
array label[m]
stats $types using (label[int($0) + 1] = sprintf("%s  %.3g %s", short(strcol(1), 26), $4 * scale, unit), $2) nooutput
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
