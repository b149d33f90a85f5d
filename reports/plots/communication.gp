#@ title: What moves between devices
#@ caption: Bytes that moved in the step, from the device in the row to the device in the column: the larger the square, the more bytes; below it the bytes and the number of tensors. How long they took, and how much of that the receiver stood still for, is in the table "Moved in the step".
#@ place: 20
#@ left out without recorded: no step of the answer is kept operation by operation
#@ left out without moved: nothing moved between devices in the step
#@ query recorded: any operation of the step
#@   SELECT 1 FROM v_op WHERE run_id = :run AND placement_id = :placement AND step = :step LIMIT 1
#@ query cells: source, target, megabytes, transfers
#@   SELECT s.device_id, t.device_id, COALESCE(SUM(x.bytes), 0) / 1e6, COUNT(x.bytes) FROM v_device s
#@   JOIN v_device t ON t.run_id = s.run_id AND t.name <> 'whole'
#@   LEFT JOIN v_transfer x ON x.run_id = s.run_id AND x.placement_id = :placement AND x.step = :step
#@     AND x.source_id = s.device_id AND x.target_id = t.device_id
#@   WHERE s.run_id = :run AND s.name <> 'whole' GROUP BY s.device_id, t.device_id
#@ query devices: index, name
#@   SELECT device_id, name FROM v_device WHERE run_id = :run AND name <> 'whole'
#@ query moved: any tensor that moved
#@   SELECT 1 FROM v_transfer WHERE run_id = :run AND placement_id = :placement AND step = :step LIMIT 1
stats $devices using 1 nooutput
n = STATS_records
stats $cells using 3 nooutput
top = STATS_max > 0 ? STATS_max : 1
eval PICTURE(110 + (n > 9 ? 500 : 70 * n), 0)
set xrange [-0.6:n - 0.4]
set yrange [n - 0.4:-0.6]
unset grid
set border 0
set tics scale 0
every_x = wide ? int((n + 49) / 50) : int((n + 15) / 16)
every_y = int((n + 29) / 30)
mark(i, name, every) = int(i) % every == 0 ? short(name, wide ? 20 : 9) : ""
if (n > (wide ? 10 : 4)) { set x2tics rotate by 90 } else { set x2tics }
unset xtics
set x2range [-0.6:n - 0.4]
set x2label "to" textcolor rgb SOFT
set ylabel "from"
unset key
half(v) = 0.3 * sqrt(v / top)
plot $devices using 1:1:x2tic(mark($1, strcol(2), every_x)):ytic(mark($1, strcol(2), every_y)) with points axes x2y1 pt 7 ps 0 lc rgb LINE, \
     $cells using 2:($1 - 0.12):($2 - half($3) / (wide ? 3 : 1)):($2 + half($3) / (wide ? 3 : 1)):($1 - 0.12 - half($3)):($1 - 0.12 + half($3)) with boxxyerror fs solid noborder lc rgb SOFT, \
     $cells using 2:($1 + 0.34):($4 > 0 && n < (wide ? 10 : 4) ? held($3).sprintf(", %d", $4) : $1 == $2 || $4 > 0 || n > (wide ? 24 : 16) ? "" : "–") with labels textcolor rgb INK
