#@ title: Search and learning
#@ caption: Every measured candidate, by what was searched (steps as measured, or loads of the busiest device as computed), in the order of measuring, its shape by who proposed it (the learned policy and what learns in colour); crosses were stopped early. The line is the best so far, the dashed ones are the rivals. Did learning help: see whether the line falls where the coloured ones are.
#@ place: 70
#@ left out without episodes: no candidate was measured
#@ left out without best: no candidate was measured to its end
#@ query episodes: episode, its step or load, whether it was measured to the end, rank of who proposed it
#@   WITH loads AS (SELECT placement_id, MAX(load_us) AS us FROM v_load WHERE run_id = :run GROUP BY placement_id),
#@   names AS (SELECT algorithm, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, algorithm) AS rank FROM v_episode
#@     WHERE run_id = :run AND step_median_us IS NOT NULL GROUP BY algorithm)
#@   SELECT e.episode, CASE WHEN r.objective IS 'throughput' THEN l.us ELSE e.step_median_us END AS value, e.state = 'ok',
#@     MIN(rank, 10) FROM v_episode e JOIN names ON names.algorithm IS e.algorithm JOIN v_run r USING (run_id)
#@     LEFT JOIN loads l USING (placement_id)
#@   WHERE e.run_id = :run AND e.step_median_us IS NOT NULL AND value IS NOT NULL ORDER BY e.episode
#@ query best: episode and the best step or load so far
#@   WITH loads AS (SELECT placement_id, MAX(load_us) AS us FROM v_load WHERE run_id = :run GROUP BY placement_id)
#@   SELECT e.episode, CASE WHEN r.objective IS 'throughput' THEN MIN(CASE WHEN e.state = 'ok' THEN l.us END) OVER
#@     (ORDER BY e.episode) ELSE e.best_so_far_us END FROM v_episode e JOIN v_run r USING (run_id)
#@     LEFT JOIN loads l USING (placement_id)
#@   WHERE e.run_id = :run AND e.best_so_far_us IS NOT NULL ORDER BY e.episode
#@ query what: what the candidates are drawn by
#@   SELECT CASE WHEN objective IS 'throughput' THEN 'load of the busiest device' ELSE 'time of a step' END FROM v_run
#@   WHERE run_id = :run
#@ query names: rank, name, number of candidates, 1 for what learns
#@   WITH names AS (SELECT algorithm, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, algorithm) AS rank
#@     FROM v_episode WHERE run_id = :run AND step_median_us IS NOT NULL GROUP BY algorithm)
#@   SELECT MIN(rank, 10) AS shape, CASE WHEN rank < 10 THEN COALESCE(algorithm, 'unknown') ELSE 'other' END, SUM(n),
#@     MAX(algorithm LIKE '%policy%' OR algorithm LIKE '%learn%' OR algorithm LIKE '%rl%') FROM names
#@   GROUP BY shape ORDER BY shape
#@ query rivals: name and its step or load
#@   WITH r AS (SELECT * FROM v_run WHERE run_id = :run),
#@   loads AS (SELECT placement, MAX(load_us) AS us FROM v_load WHERE run_id = :run GROUP BY placement_id)
#@   SELECT 'undivided machine', whole_us FROM r WHERE whole_us IS NOT NULL AND objective IS NOT 'throughput'
#@   UNION ALL SELECT 'best single device', best_single_us FROM r WHERE best_single_us IS NOT NULL AND objective IS NOT 'throughput'
#@   UNION ALL SELECT 'expert', expert_us FROM r WHERE expert_us IS NOT NULL AND objective IS NOT 'throughput'
#@   UNION ALL SELECT 'best single device', MIN(us) FROM loads, r WHERE placement LIKE 'single:%' AND objective IS 'throughput'
#@     HAVING COUNT(*) > 0
#@   UNION ALL SELECT 'expert', us FROM loads, r WHERE placement = 'expert' AND objective IS 'throughput'
#@ optional rivals
stats $names using 1 nooutput
m = STATS_records
stats $episodes using 1 nooutput
last = STATS_max
array label[m]
array tint[m]
stats $names using (label[int($0) + 1] = sprintf("%s (%d)", short(strcol(2), 28), $3), tint[int($0) + 1] = $4 == 1 ? INK : SOFT, $1) nooutput
stats $episodes using ($3 == 1 ? $2 : NaN) nooutput
low = STATS_records ? STATS_min : 0
top = STATS_records ? STATS_max : 1
if (!STATS_records) { stats $episodes using 2 nooutput; low = STATS_min; top = STATS_max }
rivals = |$rivals|
array rival[rivals > 0 ? rivals : 1]
array rival_name[rivals > 0 ? rivals : 1]
if (rivals > 0) {
  stats $rivals using (rival[int($0) + 1] = $2, rival_name[int($0) + 1] = strcol(1), $2) nooutput
  if (STATS_max > top) { top = STATS_max }
  if (STATS_min < low) { low = STATS_min }
}
eval PICTURE(400, m + rivals + 1)
set xlabel "measured placements"
what = ""
stats $what using (what = strcol(1), 1) nooutput
set ylabel what." [".unit."]"
span = (top - low) > 0 ? top - low : low * 0.1
set yrange [(low - 0.08 * span) * scale:(top + 0.25 * span) * scale]
set xrange [0:*]
if (last < 9) { set xtics 1 }
set offsets 0, graph 0.02, 0, 0
dash(k) = k == 1 ? 2 : k == 2 ? 4 : 3
plot for [k = 1:m] $episodes using 1:($4 == k && $3 == 1 ? $2 * scale : NaN) with points pt shape[k] ps 0.6 lc rgb tint[k] \
       title label[k], \
     for [k = 1:m] $episodes using 1:($4 == k && $3 != 1 ? $2 * scale : NaN) with points pt 2 ps 0.5 lc rgb tint[k] notitle, \
     $best using 1:($2 * scale) with steps lw 2.2 lc rgb INK title "best so far", \
     for [k = 1:rivals] rival[k] * scale with lines dt dash(k) lw 1.4 lc rgb INK \
       title sprintf("%s  %.4g %s", rival_name[k], rival[k] * scale, unit)
