#@ title: The final measurement, step by step
#@ caption: Every timed step of the final, interleaved run in the order in which it ran: blocks of the answer alternate with blocks of its rivals, so that a drift of the machine meets all of them.
#@ place: 80
#@ query steps: seconds since the first of them, step, rank of the placement
#@   WITH final AS (SELECT placement_id, placement, start_us, step_us FROM v_step WHERE run_id = :run AND phase = 'final'),
#@   names AS (SELECT placement_id, ROW_NUMBER() OVER (ORDER BY placement_id = :placement DESC, placement_id) AS rank
#@     FROM final GROUP BY placement_id)
#@   SELECT (start_us - (SELECT MIN(start_us) FROM final)) / 1e6, step_us, MIN(rank, 10) FROM final
#@   JOIN names USING (placement_id) ORDER BY start_us
#@ query names: rank, name, number of steps
#@   WITH final AS (SELECT placement_id, placement, COUNT(*) AS n FROM v_step WHERE run_id = :run AND phase = 'final'
#@     GROUP BY placement_id),
#@   names AS (SELECT n, placement, ROW_NUMBER() OVER (ORDER BY placement_id = :placement DESC, placement_id) AS rank
#@     FROM final)
#@   SELECT MIN(rank, 10) AS color, CASE WHEN rank = 1 THEN 'answer' WHEN rank < 10 THEN placement ELSE 'other' END, SUM(n)
#@   FROM names GROUP BY color ORDER BY color
stats $names using 1 nooutput
m = STATS_records
array label[m]
stats $names using (label[int($0) + 1] = sprintf("%s (%d)", strcol(2), $3), $1) nooutput
set terminal svg size 1080, 360 @TERM
set xlabel "seconds"
set ylabel "time of a step [".unit."]"
set key outside right top reverse Left width -2 samplen 1
set offsets graph 0.02, graph 0.02, graph 0.1, graph 0.1
plot for [k = 1:m] $steps using 1:($3 == k ? $2 * scale : NaN) with points pt 7 ps 0.5 lc rgb color[k] title label[k]
