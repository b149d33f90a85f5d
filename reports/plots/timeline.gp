#@ title: One step, device by device
#@ caption: The traced step of the final measurement whose time is nearest to the median. Each bar is an operation, coloured by its type (the nine that take most); the thin grey bars below a device are tensors that arrive there.
#@ place: 10
#@ query operations: device, start and end in microseconds since the step began, rank of the operation's type
#@   WITH types AS (SELECT op, ROW_NUMBER() OVER (ORDER BY SUM(duration_us) DESC, op) AS rank FROM v_op
#@     WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY op)
#@   SELECT device_id, start_us, start_us + duration_us, MIN(rank, 10) FROM v_op JOIN types USING (op)
#@   WHERE run_id = :run AND placement_id = :placement AND step = :step ORDER BY device_id, start_us
#@ query transfers: target, start and end, kilobytes
#@   SELECT target_id, start_us, start_us + duration_us, bytes / 1e3 FROM v_transfer
#@   WHERE run_id = :run AND placement_id = :placement AND step = :step
#@ query devices: index, name
#@   SELECT device_id, name FROM v_device WHERE run_id = :run AND name <> 'whole'
#@ query types: rank, name and milliseconds of the types of operations
#@   WITH types AS (SELECT op, SUM(duration_us) AS us, ROW_NUMBER() OVER (ORDER BY SUM(duration_us) DESC, op) AS rank
#@     FROM v_op WHERE run_id = :run AND placement_id = :placement AND step = :step GROUP BY op)
#@   SELECT MIN(rank, 10) AS color, CASE WHEN rank < 10 THEN op ELSE 'other' END, SUM(us) / 1e3 FROM types
#@   GROUP BY color ORDER BY color
#@ optional transfers
stats $devices using 1 nooutput
n = STATS_records
stats $types using 1 nooutput
m = STATS_records
array label[m]
short(name) = strlen(name) > 22 ? name[1:21]."…" : name # the key has a fifth of the picture
stats $types using (label[int($0) + 1] = sprintf("%s  %.3g ms", short(strcol(2)), $3), $1) nooutput
set terminal svg size 1080, (n < 3 ? 300 : 120 + 62 * n) @TERM
set yrange [n - 0.4:-0.6]
set xlabel "time since the step began [".unit."]"
set rmargin at screen 0.79
set key at screen 0.99, 0.96 right top reverse Left width -2 samplen 1 maxrows 12
set grid noytics
set offsets 0, 0, 0, 0
plot $devices using (NaN):1:ytic(2) with points notitle, \
     $transfers using ($2 * scale):($1 + 0.36):($2 * scale):($3 * scale):($1 + 0.31):($1 + 0.41) with boxxyerror \
       fs solid noborder lc rgb 0x9498a0 notitle, \
     for [k = 1:m] $operations using ($2 * scale):($4 == k ? $1 : NaN):($2 * scale):($3 * scale):($1 - 0.3):($1 + 0.27) \
       with boxxyerror fs solid 1.0 noborder lc rgb color[k] notitle, \
     for [k = 1:m] NaN with boxes fs solid 1.0 noborder lc rgb color[k] title label[k]
