#@ title: What the time is spent on
#@ caption: Time of the step by type of operation (summed over the operations of that type, on all devices), coloured by the device that they ran on; at the right the time and the number of operations.
#@ place: 30
#@ query bars: row, device, from, to (microseconds)
#@   WITH took AS (SELECT node_id, node, op, device_id, SUM(duration_us) AS us FROM v_op
#@     WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY node_id, device_id UNION ALL
#@     SELECT node_id, node, op, device_id, median_us FROM v_op_total
#@     WHERE run_id = :run AND placement_id = :placement AND :step < 0),
#@   types AS (SELECT op, ROW_NUMBER() OVER (ORDER BY SUM(us) DESC, op) AS rank FROM took GROUP BY op),
#@   parts AS (SELECT MIN(rank, 16) AS row, device_id, SUM(us) AS us FROM took JOIN types USING (op)
#@     GROUP BY row, device_id)
#@   SELECT row, device_id, SUM(us) OVER (PARTITION BY row ORDER BY device_id) - us,
#@     SUM(us) OVER (PARTITION BY row ORDER BY device_id) FROM parts ORDER BY row, device_id
#@ query types: row, name, number of operations, microseconds
#@   WITH took AS (SELECT node_id, node, op, device_id, SUM(duration_us) AS us FROM v_op
#@     WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY node_id, device_id UNION ALL
#@     SELECT node_id, node, op, device_id, median_us FROM v_op_total
#@     WHERE run_id = :run AND placement_id = :placement AND :step < 0),
#@   types AS (SELECT op, COUNT(*) AS n, SUM(us) AS us,
#@     ROW_NUMBER() OVER (ORDER BY SUM(us) DESC, op) AS rank FROM took GROUP BY op)
#@   SELECT MIN(rank, 16) AS row, CASE WHEN rank < 16 THEN CASE op WHEN '' THEN 'operations' ELSE op END ELSE 'all others' END,
#@     SUM(n), SUM(us) FROM types GROUP BY row ORDER BY row
#@ query devices: index, name
#@   SELECT device_id, name FROM v_device WHERE run_id = :run AND name <> 'whole'
stats $types using 1 nooutput
m = STATS_records
stats $devices using 1 nooutput
n = STATS_records
array name[n]
stats $devices using (name[int($0) + 1] = strcol(2), $1) nooutput
stats $types using 4 nooutput
top = STATS_max
eval PICTURE(25 * m > 17 * keys(n) ? 80 + 25 * m : 80 + 17 * keys(n), keys(n))
if (!wide) { set lmargin 17 }
set yrange [m + 0.7:0.3]
set xrange [0:top * scale * (wide ? 1.16 : 1.7)]
set xlabel "time in the step [".unit."]"
set grid noytics
set tics scale 0.5
if (!wide && 1.7 * top * scale > 0) { set xtics tick_of(1.7 * top * scale) }
plot $types using (NaN):1:ytic(short(strcol(2), wide ? 36 : 17)) with points notitle, \
     $bars using ($3 * scale):1:($3 * scale):($4 * scale):($1 - 0.36):($1 + 0.36):(device_colour[int($2) + 1]) with boxxyerror fs solid 1.0 noborder lc rgb variable notitle, \
     $types using ($4 * scale):1:(took($4).sprintf(", %d", $3)) with labels left offset 0.4, 0 textcolor rgb SOFT notitle, \
     for [k = 1:n] NaN with boxes fs solid 1.0 noborder lc rgb device_colour[k] title keyed(k, short(name[k], 24))
