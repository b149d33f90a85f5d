#@ title: How busy devices are over the step
#@ caption: The step in 60 equal parts; the height of a device's band is the share of each part in which it ran operations. Where a band is empty the device stood still; the timeline says what it waited for.
#@ place: 10
#@ left out without recorded: no step of the answer is kept operation by operation
#@ query recorded: any operation of the step
#@   SELECT 1 FROM v_op WHERE run_id = :run AND placement_id = :placement AND step = :step LIMIT 1
#@ query parts: device, start and end of the part in microseconds, share of it that the device worked
#@   WITH RECURSIVE part(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM part WHERE k < 59),
#@   o AS MATERIALIZED (SELECT device_id, start_us AS s, start_us + duration_us AS e FROM v_op
#@     WHERE run_id = :run AND placement_id = :placement AND step = :step),
#@   width AS MATERIALIZED (SELECT MAX(e) / 60.0 AS w FROM o)
#@   SELECT device_id, k * w, (k + 1) * w, MIN(1, SUM(MIN(e, (k + 1) * w) - MAX(s, k * w)) / w)
#@   FROM part, width JOIN o ON s < (k + 1) * w AND e > k * w WHERE w > 0 GROUP BY device_id, k ORDER BY device_id, k
#@ query devices: index, name, percent of the step that it was busy
#@   SELECT d.device_id, d.name, COALESCE(100.0 * SUM(b.busy_us) / SUM(b.step_us), 0) FROM v_device d
#@   LEFT JOIN v_busy b ON b.run_id = d.run_id AND b.placement_id = :placement AND b.step = :step AND b.device_id = d.device_id
#@   WHERE d.run_id = :run AND d.name <> 'whole' GROUP BY d.device_id
stats $devices using 1 nooutput
n = STATS_records
stats $parts using 3 nooutput
top = STATS_max * scale
eval PICTURE(90 + 44 * n, 0)
unset key
set xrange [0:top]
set yrange [n - 0.1:-0.1]
set xlabel "time since the step began [".unit."]"
set grid noytics
set ytics scale 0
if (wide) { set rmargin at screen 0.9 }
if (!wide && top > 0) { set xtics tick_of(top) }
plot $devices using (NaN):($1 + 0.55):ytic(short(strcol(2), wide ? 24 : 10)) with points notitle, \
     $parts using ($2 * scale):1:($2 * scale):($3 * scale):($1 + 0.95 - 0.85 * $4):($1 + 0.95):(device_colour[int($1) + 1]) \
       with boxxyerror fs solid 1.0 noborder lc rgb variable notitle, \
     $devices using (top):($1 + 0.55):(wide ? sprintf("  busy %.0f %%", $3) : "") with labels left textcolor rgb SOFT notitle
