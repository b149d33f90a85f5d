#@ title: Search and learning
#@ caption: Every measured candidate in the order of measuring, coloured by who proposed it; crosses were stopped early. The line is the best so far, the dashed ones are the rivals.
#@ place: 30
#@ query episodes: episode, measured step, whether it was measured to the end, rank of the algorithm
#@   WITH names AS (SELECT algorithm, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, algorithm) AS rank FROM v_episode
#@     WHERE run_id = :run AND step_median_us IS NOT NULL GROUP BY algorithm)
#@   SELECT e.episode, e.step_median_us, e.state = 'ok', MIN(rank, 10) FROM v_episode e
#@   JOIN names ON names.algorithm IS e.algorithm WHERE e.run_id = :run AND e.step_median_us IS NOT NULL
#@   ORDER BY e.episode
#@ query best: episode and the best step so far
#@   SELECT episode, best_so_far_us FROM v_episode WHERE run_id = :run AND best_so_far_us IS NOT NULL ORDER BY episode
#@ query names: rank and name of the algorithms
#@   WITH names AS (SELECT algorithm, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, algorithm) AS rank
#@     FROM v_episode WHERE run_id = :run AND step_median_us IS NOT NULL GROUP BY algorithm)
#@   SELECT MIN(rank, 10) AS color, CASE WHEN rank < 10 THEN COALESCE(algorithm, 'unknown') ELSE 'other' END, SUM(n)
#@   FROM names GROUP BY color ORDER BY color
#@ query rivals: name and measured step
#@   SELECT 'undivided machine', whole_us FROM v_run WHERE run_id = :run AND whole_us IS NOT NULL
#@   UNION ALL SELECT 'best single device', best_single_us FROM v_run WHERE run_id = :run AND best_single_us IS NOT NULL
#@   UNION ALL SELECT 'expert', expert_us FROM v_run WHERE run_id = :run AND expert_us IS NOT NULL
#@ optional rivals
stats $names using 1 nooutput
m = STATS_records
array label[m]
stats $names using (label[int($0) + 1] = sprintf("%s (%d)", strcol(2), $3), $1) nooutput
stats $episodes using ($3 == 1 ? $2 : NaN) nooutput
low = STATS_min
top = STATS_max
rivals = |$rivals|
array rival[rivals > 0 ? rivals : 1]
array rival_name[rivals > 0 ? rivals : 1]
if (rivals > 0) {
  stats $rivals using (rival[int($0) + 1] = $2, rival_name[int($0) + 1] = strcol(1), $2) nooutput
  if (STATS_max > top) { top = STATS_max }
  if (STATS_min < low) { low = STATS_min }
}
set terminal svg size 1080, 430 @TERM
set xlabel "measured placements"
set ylabel "time of a step [".unit."]"
set key outside right top reverse Left width -2 samplen 1.2
span = (top - low) > 0 ? top - low : low * 0.1
set yrange [(low - 0.08 * span) * scale:(top + 0.25 * span) * scale]
set xrange [0:*]
plot for [k = 1:m] $episodes using 1:($4 == k && $3 == 1 ? $2 * scale : NaN) with points pt 7 ps 0.55 lc rgb color[k] \
       title label[k], \
     for [k = 1:m] $episodes using 1:($4 == k && $3 != 1 ? $2 * scale : NaN) with points pt 2 ps 0.5 lc rgb color[k] notitle, \
     $best using 1:($2 * scale) with steps lw 2.2 lc rgb 0x20242c title "best so far", \
     for [k = 1:rivals] rival[k] * scale with lines dt 2 lw 1.4 lc rgb (k == 1 ? 0x6a6f78 : k == 2 ? 0xa463f2 : 0xff725c) \
       title sprintf("%s  %.4g %s", rival_name[k], rival[k] * scale, unit)
