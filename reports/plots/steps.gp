#@ title: The final measurement, step by step
#@ caption: Every timed step of the final, interleaved run in the order in which it ran: blocks of the answer alternate with blocks of its rivals, so that a drift of the machine meets all of them. (A search for loads may have chosen another answer afterwards: then none of them is called that.) Steps beyond three times the distance of the quartiles are outliers: triangles at the upper edge, not drawn to scale. Of a run without such a measurement (tfc-run): all of its steps.
#@ place: 80
#@ query steps: seconds since the first of them, step, rank of the placement, 1 for outliers
#@   WITH final AS (SELECT placement_id, start_us, step_us FROM v_step WHERE run_id = :run AND (phase = 'final' OR (phase =
#@     'profile' AND placement_id = :placement AND NOT EXISTS (SELECT 1 FROM v_step WHERE run_id = :run AND phase = 'final')))),
#@   names AS (SELECT placement_id, ROW_NUMBER() OVER (ORDER BY placement_id = :placement DESC, placement_id)
#@     + (MAX(placement_id = :placement) OVER () = 0) AS rank
#@     FROM (SELECT DISTINCT placement_id FROM final)),
#@   sorted AS (SELECT placement_id, step_us, 4 * ROW_NUMBER() OVER (PARTITION BY placement_id ORDER BY step_us) AS k,
#@     COUNT(*) OVER (PARTITION BY placement_id) AS n FROM final),
#@   edge AS (SELECT placement_id, MAX(CASE WHEN k <= 3 * n + 3 THEN step_us END) AS q3,
#@     MAX(CASE WHEN k <= n + 3 THEN step_us END) AS q1 FROM sorted GROUP BY placement_id)
#@   SELECT (start_us - (SELECT MIN(start_us) FROM final)) / 1e6, step_us, MIN(rank, 10), step_us > 4 * q3 - 3 * q1
#@   FROM final JOIN names USING (placement_id) JOIN edge USING (placement_id) ORDER BY start_us
#@ query names: rank, name, number of steps
#@   WITH final AS (SELECT placement_id, placement, COUNT(*) AS n FROM v_step WHERE run_id = :run AND (phase = 'final' OR (phase =
#@     'profile' AND placement_id = :placement AND NOT EXISTS (SELECT 1 FROM v_step WHERE run_id = :run AND phase = 'final')))
#@     GROUP BY placement_id),
#@   names AS (SELECT n, placement, placement_id = :placement AND placement <> 'run' AS answers, ROW_NUMBER() OVER (ORDER BY placement_id = :placement DESC, placement_id)
#@     + (MAX(placement_id = :placement) OVER () = 0) AS rank
#@     FROM final)
#@   SELECT MIN(rank, 10) AS shape, CASE WHEN MAX(answers) THEN 'answer' WHEN rank < 10 THEN placement ELSE 'other' END, SUM(n)
#@   FROM names GROUP BY shape ORDER BY shape
stats $names using 1 nooutput
first = int(STATS_min)
m = int(STATS_max)
array label[m]
stats $names using (label[int($1)] = sprintf("%s (%d)", short(strcol(2), 28), $3), $1) nooutput
stats $steps using 1 nooutput
length = STATS_max
stats $steps using ($4 == 1 ? NaN : $2) nooutput
low = STATS_min
high = STATS_max
span = high > low ? high - low : 0.1 * high
eval PICTURE(340, m - first + 2)
set xlabel "seconds since the first of them"
set ylabel "time of a step [".unit."]"
set yrange [(low - 0.08 * span) * scale:(high + 0.16 * span) * scale]
set xrange [-0.02 * length:1.02 * length]
edge = (high + 0.1 * span) * scale
if (!wide && length > 0) { set xtics tick_of(length) }
plot for [k = first:m] $steps using 1:($3 == k && $4 != 1 ? $2 * scale : NaN) with points pt shape[k] ps 0.55 lc rgb ink(k) title label[k], \
     $steps using 1:($4 == 1 ? edge : NaN) with points pt 8 ps 0.8 lc rgb INK title "outliers"
