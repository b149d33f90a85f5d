#@ title: Memory over the step
#@ caption: Bytes of variables and of tensors between operations that lie on each device, in the step that the timeline shows. What lies there at the fullest moment is listed below; packed weights, results and scratch memory come on top, and the peak in the table of devices has them. Dashed: limits.
#@ place: 40
#@ query levels: device, microseconds since the step began, megabytes
#@   WITH o AS MATERIALIZED (SELECT node_id, node, device, CAST(ROUND(MIN(start_us) * 1000) AS INTEGER) AS s,
#@   CAST(ROUND(MAX(start_us + duration_us) * 1000) AS INTEGER) AS e FROM v_op WHERE run_id = :run AND placement_id =
#@   :placement AND step = :step GROUP BY node_id, device), x AS MATERIALIZED (SELECT node_id, node, output, target,
#@   bytes, how, CAST(ROUND(MIN(start_us) * 1000) AS INTEGER) AS s, CAST(ROUND(MAX(start_us + duration_us) * 1000) AS
#@   INTEGER) AS e FROM v_transfer WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY
#@   node_id, output, target), g AS MATERIALIZED (SELECT producer_id, output, consumer_id, MAX(bytes) AS bytes FROM
#@   v_edge WHERE run_id = :run AND output >= 0 AND bytes > 0 GROUP BY 1, 2, 3), alone AS MATERIALIZED (SELECT
#@   producer_id, output FROM g GROUP BY 1, 2 HAVING COUNT(*) = 1), terms AS MATERIALIZED (SELECT producer_id AS id,
#@   consumer_id AS sum FROM g WHERE consumer_id IN (SELECT g.consumer_id FROM v_node c CROSS JOIN g ON g.consumer_id
#@   = c.node_id CROSS JOIN v_node p ON p.run_id = :run AND p.node_id = g.producer_id WHERE c.run_id = :run AND c.op
#@   = 'AddN' GROUP BY 1 HAVING MIN(p.op = 'MatMul' AND (g.producer_id, g.output) IN (SELECT producer_id, output FROM
#@   alone)))), begun AS MATERIALIZED (SELECT t.sum AS id, o.device, MIN(o.s) AS s FROM terms t JOIN o ON o.node_id =
#@   t.id GROUP BY 1, 2), taken AS MATERIALIZED (SELECT producer_id, output FROM g WHERE (producer_id, output) IN
#@   (SELECT producer_id, output FROM alone) AND (consumer_id, bytes) IN (SELECT producer_id, bytes FROM g) AND
#@   consumer_id IN (SELECT node_id FROM v_node WHERE run_id = :run AND op <> '' AND op NOT LIKE '%MatMul%' AND op
#@   NOT LIKE '%Conv%')), held AS MATERIALIZED (SELECT 'variable' AS kind, p.device, n.name AS node, NULL AS output,
#@   n.memory_bytes AS bytes, 0 AS s, COALESCE((SELECT MAX(e) FROM o), 0) AS e FROM v_node n JOIN v_placement p ON
#@   p.run_id = n.run_id AND p.placement_id = :placement AND p.node_id = n.node_id WHERE n.run_id = :run AND
#@   n.memory_bytes > 0 UNION ALL SELECT 'tensor', p.device, p.node, g.output, MAX(g.bytes), MIN(p.s, COALESCE(b.s,
#@   p.s)), MAX(MAX(p.e, CASE WHEN c.device = p.device THEN CASE WHEN (g.producer_id, g.output) IN (SELECT
#@   producer_id, output FROM taken) THEN c.s ELSE c.e END WHEN x.how = 'handed over' THEN c.e ELSE 0 END,
#@   COALESCE(x.e, 0))) FROM g JOIN o p ON p.node_id = g.producer_id JOIN o c ON c.node_id = g.consumer_id LEFT JOIN
#@   x ON x.node_id = g.producer_id AND x.output = g.output AND x.target = c.device AND c.device <> p.device LEFT
#@   JOIN begun b ON b.id = p.node_id AND b.device = p.device WHERE NOT EXISTS (SELECT 1 FROM v_node v WHERE v.run_id
#@   = :run AND v.node_id = g.producer_id AND v.memory_bytes > 0) AND g.producer_id NOT IN (SELECT id FROM terms)
#@   GROUP BY g.producer_id, g.output, p.device UNION ALL SELECT 'received', x.target, x.node, x.output, x.bytes,
#@   x.s, MAX(x.e, COALESCE((SELECT MAX(c.e) FROM g JOIN o c ON c.node_id = g.consumer_id AND c.device = x.target
#@   WHERE g.producer_id = x.node_id AND g.output = x.output), 0)) FROM x WHERE x.how IS NULL OR x.how <> 'handed
#@   over'), events AS (SELECT device, s AS t, bytes AS more FROM held UNION ALL SELECT device, e, -bytes FROM held),
#@   levels AS (SELECT device, t, SUM(more) OVER (PARTITION BY device ORDER BY t, more ROWS UNBOUNDED PRECEDING) AS
#@   bytes FROM events) SELECT d.device_id, MIN(l.t) * 1e-3, MAX(l.bytes) / 1e6 FROM levels l JOIN v_device d ON
#@   d.run_id = :run AND d.name = l.device GROUP BY d.device_id, l.t * 400 / MAX(1, (SELECT MAX(e) FROM o)) ORDER BY
#@   d.device_id, 2
#@ query devices: index, name, megabytes of its limit
#@   SELECT device_id, name, memory_limit_bytes / 1e6 FROM v_device WHERE run_id = :run AND name <> 'whole' ORDER BY device_id
stats $devices using 1 nooutput
n = STATS_records
array name[n]
array limit[n]
stats $devices using (name[int($0) + 1] = strcol(2), limit[int($0) + 1] = valid(3) ? $3 : NaN, $1) nooutput
stats $levels using 3 nooutput
top = STATS_max
stats $levels using 2 nooutput
end = STATS_max
eval PICTURE(n > 16 ? 60 + 17 * keys(n) : 340, keys(n))
set xlabel "time since the step began [".unit."]"
set ylabel "MB"
set xrange [0:0.9995 * end * scale]
set yrange [0:top * 1.08]
if (!wide && end * scale > 0) { set xtics tick_of(end * scale) }
plot for [k = 1:n] $levels using ($1 == k - 1 ? $2 * scale : NaN):3 with steps lw 1.8 lc rgb device_colour[k] title keyed(k, short(name[k], 24)), \
     for [k = 1:n] (limit[k] <= top * 1.08 ? limit[k] : NaN) with lines dt 2 lw 1.2 lc rgb device_colour[k] notitle
