#@ title: One step, stream by stream
#@ caption: The same step as the GPU's profiler saw it. Each row is a stream; each coloured bar is a kernel, each grey one a copy or a fill. At the right: the share of the time from its first work to its last that the stream worked, and its longest gap. Below a device's name: how long its operations waited from their launch on the host to their start, the least and the mean (short means that the host is what the device waits for).
#@ place: 15
#@ left out without works: no GPU's profiler recorded the step
#@ query works: row, start and end in microseconds since the step began, 1: kernel, 2: copy or fill
#@   WITH rows AS (SELECT context, stream, ROW_NUMBER() OVER (ORDER BY device, context, stream) - 1 AS row FROM v_stream
#@     WHERE run_id = :run AND placement_id = :placement AND step = :step)
#@   SELECT row, start_us, start_us + duration_us, 1 FROM v_kernel JOIN rows USING (context, stream)
#@   WHERE run_id = :run AND placement_id = :placement AND step = :step
#@   UNION ALL SELECT row, start_us, start_us + duration_us, 2 FROM v_copy JOIN rows USING (context, stream)
#@   WHERE run_id = :run AND placement_id = :placement AND step = :step ORDER BY 1, 2
#@ query streams: row, name, percent of its time that it worked, longest gap in microseconds
#@   SELECT ROW_NUMBER() OVER (ORDER BY device, context, stream) - 1, COALESCE(device, 'of nobody') || ', stream ' || stream,
#@     100.0 * busy_us / MAX(last_us - first_us, 1e-3), longest_gap_us FROM v_stream
#@   WHERE run_id = :run AND placement_id = :placement AND step = :step
#@ query launches: device, operations, least and mean microseconds from launch to start
#@   SELECT device, COUNT(*), MIN(launch_to_start_us), AVG(launch_to_start_us) FROM v_op
#@   WHERE run_id = :run AND placement_id = :placement AND step = :step AND launch_to_start_us IS NOT NULL AND duration_us > 0
#@   GROUP BY device_id
#@ optional launches
stats $streams using 1 nooutput
n = STATS_records
stats $works using 3 nooutput
top = STATS_max * scale
m = 0
array launch[64]
if (|$launches| > 0) {
  stats $launches using (m < 64 ? (m = m + 1, launch[m] = sprintf("%s: %.1f us at least, %.1f us on average", strcol(1), $3, $4), m) : m) nooutput
}
height = 130 + 34 * n + 18 * m
eval PICTURE(height, 0)
set xrange [0:top]
set yrange [n - 0.4:-0.6]
set xlabel "time since the step began [".unit."]"
if (wide) { set rmargin at screen 0.72 } else { set rmargin 2; height = int(0.8 * height) + 16 }
set bmargin at screen (62.0 + 18 * m) / height
do for [k = 1:m] {
  set label k "launch to start, ".launch[k] at screen 0.02, screen (18.0 * (m - k) + 10) / height textcolor rgb SOFT
}
unset key
set grid noytics
set offsets 0, 0, 0, 0
plot $streams using (NaN):1:ytic(short(strcol(2), wide ? 30 : 14)) with points notitle, \
     for [k = 1:2] $works using ($2 * scale):($4 == k ? $1 : NaN):($2 * scale):($3 * scale):($1 - 0.3):($1 + 0.3) \
       with boxxyerror fs solid 1.0 noborder lc rgb (k == 1 ? op_colour("MatMul") : SOFT) notitle, \
     $streams using (top):1:(wide ? sprintf("%.0f %% busy, longest gap %.1f us", $3, $4) : "") with labels left offset 1, 0 \
       textcolor rgb SOFT notitle
