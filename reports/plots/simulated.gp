#@ title: Can the model be trusted here: simulated against measured
#@ caption: The placements and readings that Kendall's τ of this run is made of: candidates and rivals on several devices that were simulated with costs from the profile and measured to the end. Bars are the quartiles of the measured steps. On the dashed line the simulator is right; what counts for the search is the order, which τ measures (1: the same order, 0: none).
#@ place: 60
#@ query points: simulated and measured step, half of the distance between the quartiles, 1 for rivals
#@   SELECT e.simulated_us, e.step_median_us, 0.5 * (e.step_q3_us - e.step_q1_us), 0 FROM v_episode e
#@   WHERE e.run_id = :run AND e.state = 'ok' AND e.simulated_us IS NOT NULL AND e.step_median_us IS NOT NULL
#@   UNION ALL SELECT r.simulated_us, r.step_median_us, 0.5 * (r.step_q3_us - r.step_q1_us), 1 FROM v_result r
#@   WHERE r.run_id = :run AND r.state = 'ok' AND r.episode IS NULL AND r.simulated_us IS NOT NULL
#@     AND r.step_median_us IS NOT NULL AND r.label IS NOT 'modelled'
#@ query tau: Kendall's tau, placements
#@   SELECT tau, tau_placements FROM v_run WHERE run_id = :run
stats $points using 1 nooutput
low = STATS_min
top = STATS_max
stats $points using 2 nooutput
span = top > low ? top - low : 0.1 * top
stats $points using ($2 - $3) nooutput
least = STATS_min
stats $points using ($2 + $3) nooutput
most = STATS_max
height = most > least ? most - least : 0.1 * most
tau = "as simulated; τ unknown"
stats $tau using (tau = valid(1) && $2 > 0 ? sprintf("as simulated; τ %.2f of %d", $1, $2) : tau, 1) nooutput
eval PICTURE(440, 3)
set xrange [(low - 0.05 * span) * scale:(top + 0.05 * span) * scale]
set yrange [(least - 0.05 * height) * scale:(most + 0.05 * height) * scale]
set xlabel "simulated [".unit."]"
set ylabel "measured [".unit."]"
if (!wide && 1.1 * span * scale > 0) { set xtics tick_of(1.1 * span * scale) }
plot x with lines lw 1.2 dt 2 lc rgb RULE title tau, \
     $points using ($1 * scale):($4 == 1 ? NaN : $2 * scale):($3 * scale) with yerrorbars pt 7 ps 0.45 lc rgb SOFT title "candidates", \
     $points using ($1 * scale):($4 == 1 ? $2 * scale : NaN):($3 * scale) with yerrorbars pt 5 ps 0.7 lc rgb ACCENT title "rivals"
