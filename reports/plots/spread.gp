#@ title: How much steps vary
#@ caption: The same steps of the final measurement, sorted: at each time the share of a placement's steps that took no longer. The curve that lies further left is faster, a steep one is steady; where two cross, the one is faster at its best and the other at its worst. Steps beyond three times the distance of the quartiles are outliers, which medians do not show: triangles at the right edge, not drawn to scale. Of a run without such a measurement (tfc-run): all of its steps.
#@ place: 85
#@ query steps: step, share of the placement's steps that took no longer, rank of the placement, 1 for outliers
#@   WITH final AS (SELECT placement_id, placement, step_us FROM v_step WHERE run_id = :run AND (phase = 'final' OR (phase =
#@     'profile' AND placement_id = :placement AND NOT EXISTS (SELECT 1 FROM v_step WHERE run_id = :run AND phase = 'final')))),
#@   names AS (SELECT placement_id, ROW_NUMBER() OVER (ORDER BY placement_id = :placement DESC, placement_id)
#@     + (MAX(placement_id = :placement) OVER () = 0) AS rank
#@     FROM final GROUP BY placement_id),
#@   sorted AS (SELECT placement_id, step_us, 4 * ROW_NUMBER() OVER (PARTITION BY placement_id ORDER BY step_us) AS k,
#@     COUNT(*) OVER (PARTITION BY placement_id) AS n FROM final),
#@   edge AS (SELECT placement_id, MAX(CASE WHEN k <= 3 * n + 3 THEN step_us END) AS q3,
#@     MAX(CASE WHEN k <= n + 3 THEN step_us END) AS q1 FROM sorted GROUP BY placement_id)
#@   SELECT step_us, CUME_DIST() OVER (PARTITION BY placement_id ORDER BY step_us), rank, step_us > 4 * q3 - 3 * q1 FROM final
#@   JOIN names USING (placement_id) JOIN edge USING (placement_id) WHERE rank <= 10 ORDER BY rank, step_us
#@ query names: rank, name, median
#@   WITH final AS (SELECT placement_id, placement, step_us,
#@     ROW_NUMBER() OVER (PARTITION BY placement_id ORDER BY step_us) AS k, COUNT(*) OVER (PARTITION BY placement_id) AS n
#@     FROM v_step WHERE run_id = :run AND (phase = 'final' OR (phase =
#@     'profile' AND placement_id = :placement AND NOT EXISTS (SELECT 1 FROM v_step WHERE run_id = :run AND phase = 'final')))),
#@   names AS (SELECT placement, placement_id = :placement AND placement <> 'run' AS answers, AVG(CASE WHEN 2 * k BETWEEN n AND n + 2 THEN step_us END) AS middle,
#@     ROW_NUMBER() OVER (ORDER BY placement_id = :placement DESC, placement_id)
#@     + (MAX(placement_id = :placement) OVER () = 0) AS rank FROM final GROUP BY placement_id)
#@   SELECT rank, CASE WHEN answers THEN 'answer' ELSE placement END, middle FROM names WHERE rank <= 10 ORDER BY rank
stats $names using 1 nooutput
first = int(STATS_min)
m = int(STATS_max)
array label[m]
stats $names using (label[int($1)] = sprintf("%s  %.4g %s", short(strcol(2), 22), $3 * scale, unit), $1) nooutput
stats $steps using ($4 == 1 ? NaN : $1) nooutput
low = STATS_min
length = STATS_max > low ? STATS_max - low : 0.1 * low
stats $steps using 4 nooutput
outliers = STATS_max > 0
eval PICTURE(340, m - first + 1 + outliers)
set xrange [(low - 0.03 * length) * scale:(low + (outliers ? 1.12 : 1.03) * length) * scale]
edge = (low + 1.07 * length) * scale
length = length * scale
set xlabel "time of a step [".unit."]"
set ylabel "share of the steps [%]"
set yrange [0:100]
if (!wide && length > 0) { set xtics tick_of(length) }
dash(k) = k < 2 ? 1 : k < 7 ? k - 1 : k - 6
plot for [k = first:m] $steps using ($3 == k && $4 != 1 ? $1 * scale : NaN):(100 * $2) with steps dt dash(k) lw (k == 1 ? 2.4 : 1.4) \
       lc rgb ink(k) title label[k], \
     for [k = first:m] $steps using (edge):($3 == k && $4 == 1 ? 100 * $2 : NaN) with points pt 8 ps 0.8 lc rgb ink(k) \
       title (k == first && outliers ? "outliers" : "")
