#@ title: How much steps vary
#@ caption: The same steps of the final measurement, sorted: at each time the share of a placement's steps that took no longer. The curve that lies further left is faster, a steep one is steady; where two cross, the one is faster at its best and the other at its worst. A step at the right end is an outlier, which medians do not show. Of a run without such a measurement (tfc-run): all of its steps.
#@ place: 85
#@ query steps: step, share of the placement's steps that took no longer, rank of the placement
#@   WITH final AS (SELECT placement_id, placement, step_us FROM v_step WHERE run_id = :run AND (phase = 'final' OR (phase =
#@     'profile' AND placement_id = :placement AND NOT EXISTS (SELECT 1 FROM v_step WHERE run_id = :run AND phase = 'final')))),
#@   names AS (SELECT placement_id, ROW_NUMBER() OVER (ORDER BY placement_id = :placement DESC, placement_id) AS rank
#@     FROM final GROUP BY placement_id)
#@   SELECT step_us, CUME_DIST() OVER (PARTITION BY placement_id ORDER BY step_us), rank FROM final
#@   JOIN names USING (placement_id) WHERE rank <= 10 ORDER BY rank, step_us
#@ query names: rank, name, half of the steps took no longer
#@   WITH final AS (SELECT placement_id, placement, step_us,
#@     CUME_DIST() OVER (PARTITION BY placement_id ORDER BY step_us) AS share
#@     FROM v_step WHERE run_id = :run AND (phase = 'final' OR (phase =
#@     'profile' AND placement_id = :placement AND NOT EXISTS (SELECT 1 FROM v_step WHERE run_id = :run AND phase = 'final')))),
#@   names AS (SELECT placement, MIN(CASE WHEN share >= 0.5 THEN step_us END) AS middle,
#@     ROW_NUMBER() OVER (ORDER BY placement_id = :placement DESC, placement_id) AS rank FROM final GROUP BY placement_id)
#@   SELECT rank, CASE WHEN rank = 1 AND placement <> 'run' THEN 'answer' ELSE placement END, middle FROM names WHERE rank <= 10 ORDER BY rank
stats $names using 1 nooutput
m = STATS_records
array label[m]
stats $names using (label[int($0) + 1] = sprintf("%s  %.4g %s", short(strcol(2), 22), $3 * scale, unit), $1) nooutput
stats $steps using 1 nooutput
length = (STATS_max - STATS_min) * scale
eval PICTURE(340, m)
set xlabel "time of a step [".unit."]"
set ylabel "share of the steps [%]"
set yrange [0:100]
set offsets graph 0.02, graph 0.02, 0, 0
if (!wide && length > 0) { set xtics tick_of(length) }
dash(k) = k < 2 ? 1 : k < 7 ? k - 1 : k - 6
plot for [k = 1:m] $steps using ($3 == k ? $1 * scale : NaN):(100 * $2) with steps dt dash(k) lw (k == 1 ? 2.4 : 1.4) \
       lc rgb ink(k) title label[k]
