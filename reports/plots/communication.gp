#@ title: What moves between devices
#@ caption: Bytes of one step under the answer, from the device in the row to the device in the column, and how many tensors that is.
#@ place: 60
#@ query cells: source, target, megabytes, transfers
#@   SELECT s.device_id, t.device_id, COALESCE(SUM(x.bytes), 0) / 1e6, COUNT(x.bytes) FROM v_device s
#@   JOIN v_device t ON t.run_id = s.run_id AND t.name <> 'whole'
#@   LEFT JOIN v_transfer x ON x.run_id = s.run_id AND x.placement_id = :placement AND x.step = :step
#@     AND x.source_id = s.device_id AND x.target_id = t.device_id
#@   WHERE s.run_id = :run AND s.name <> 'whole' GROUP BY s.device_id, t.device_id
#@ query devices: index, name
#@   SELECT device_id, name FROM v_device WHERE run_id = :run AND name <> 'whole'
stats $devices using 1 nooutput
n = STATS_records
stats $cells using 3 nooutput
top = STATS_max > 0 ? STATS_max : 1
mix(a, b, f) = int(a + (b - a) * f)
shade(v) = v <= 0 ? 0xf7f8fa : mix(0xe8, 0x42, v / top) * 65536 + mix(0xee, 0x69, v / top) * 256 + mix(0xfb, 0xd0, v / top)
set terminal svg size 150 + 110 * (n < 3 ? 3 : n > 9 ? 9 : n), 110 + (n > 9 ? 500 : 56 * n) @TERM
set xrange [-0.5:n - 0.5]
set yrange [n - 0.5:-0.5]
unset grid
set border 0
set tics scale 0
set x2tics
unset xtics
set x2range [-0.5:n - 0.5]
set x2label "to" textcolor rgb 0x40444c
set ylabel "from"
unset key
plot $devices using (NaN):1:x2tic(2):ytic(2) with points axes x2y1, \
     $cells using 2:1:($2 - 0.48):($2 + 0.48):($1 - 0.46):($1 + 0.46):(shade($3)) with boxxyerror fs solid noborder lc rgb variable, \
     $cells using 2:1:($4 > 0 && n < 10 ? sprintf("%.3g MB\n%d tensors", $3, $4) : $1 == $2 ? "" : n < 10 ? "–" : "") : \
       ($3 > 0.55 * top ? 0xffffff : 0x30343c) with labels textcolor rgb variable font ",11"
