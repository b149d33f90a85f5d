#@ title: Memory over the step
#@ caption: Bytes of variables and of tensors between operations that lie on each device, in the step that the timeline shows. What lies there at the fullest moment is listed below; packed weights, results and scratch memory come on top, and the peak in the table of devices has them. Dashed: limits of up to three times the highest level.
#@ place: 40
#@ left out without recorded: no step of the answer is kept operation by operation
#@ query recorded: any operation of the step
#@   SELECT 1 FROM v_op WHERE run_id = :run AND placement_id = :placement AND step = :step LIMIT 1
#@ query levels: device, microseconds since the step began, megabytes
#@   {held}
#@   SELECT d.device_id, MIN(l.t) / 1048576 * 1e-3, MAX(l.bytes) / 1e6 FROM levels l JOIN v_device d ON d.run_id = :run
#@   AND d.name = l.device GROUP BY d.device_id, l.t / 1048576 * 400 / MAX(1, (SELECT MAX(e) / 1048576 FROM o)) ORDER BY
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
# What is named can be far less than what is held, so a limit is shown up to three times the highest level.
shown = top
do for [k = 1:n] { if (limit[k] <= 3 * top && limit[k] > shown) { shown = limit[k] } }
stats $levels using 2 nooutput
end = STATS_max
eval PICTURE(n > 16 ? 60 + 17 * keys(n) : 340, keys(n))
set xlabel "time since the step began [".unit."]"
set ylabel "MB"
set xrange [0:0.9995 * end * scale]
set yrange [0:shown * 1.08]
if (!wide && end * scale > 0) { set xtics tick_of(end * scale) }
plot for [k = 1:n] $levels using ($1 == k - 1 ? $2 * scale : NaN):3 with steps lw 1.8 lc rgb device_colour[k] title keyed(k, short(name[k], 24)), \
     for [k = 1:n] (limit[k] <= shown ? limit[k] : NaN) with lines dt 2 lw 1.2 lc rgb device_colour[k] notitle
