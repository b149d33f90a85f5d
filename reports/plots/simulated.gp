#@ title: Can the model be trusted here: simulated against measured
#@ caption: The placements and readings that Kendall's τ is made of: candidates and rivals that were simulated with costs from the profile and measured to the end, each with the time that the tables show (of the final measurement, where it took part). Bars are as long as the quartiles of the measured steps are apart. On the dashed line the simulator is right; what counts for the search is the order, which τ measures (1: the same order, 0: none) over the pairs of which the bars have no time in common: others may be in either order by chance. An answer that was stopped early when it was first measured is drawn, and does not count.
#@ place: 60
#@ left out without points: no placement was both simulated and measured to its end
#@ left out without steps: loads were searched, and what was simulated for that says nothing of steps one by one
#@ query steps: whether steps were searched
#@   SELECT 1 FROM v_run WHERE run_id = :run AND objective IS NOT 'throughput'
#@ query points: simulated and measured step, half of the distance between the quartiles, 1 for rivals
#@   SELECT simulated_us, step_median_us, 0.5 * (step_q3_us - step_q1_us), episode IS NULL FROM v_result
#@   WHERE run_id = :run AND state = 'ok' AND simulated_us IS NOT NULL AND step_median_us IS NOT NULL
#@     AND label IS NOT 'modelled'
#@ query tau: Kendall's tau, placements, pairs of them that count
#@   {tau}
#@ query answer: the answer, if it was stopped early at first and does not count
#@   {tau without}
#@ optional answer
stats $points using 1 nooutput
low = STATS_min
top = STATS_max
stats $points using 2 nooutput
span = top > low ? top - low : 0.1 * top
stats $points using ($2 - $3) nooutput
least = STATS_min
stats $points using ($2 + $3) nooutput
most = STATS_max
apart = |$answer|
if (apart) {
  stats $answer using (low = $1 < low ? $1 : low, top = $1 > top ? $1 : top, $1) nooutput
  stats $answer using (least = $2 - $3 < least ? $2 - $3 : least, most = $2 + $3 > most ? $2 + $3 : most, $2) nooutput
  span = top > low ? top - low : 0.1 * top
}
height = most > least ? most - least : 0.1 * most
tau = "as simulated; no τ"
stats $tau using (tau = valid(1) && $3 > 0 ? sprintf("as simulated; τ %.2f of %d pairs", $1, $3) : tau, 1) nooutput
eval PICTURE(440, 3 + apart)
set xrange [(low - 0.05 * span) * scale:(top + 0.05 * span) * scale]
set yrange [(least - 0.05 * height) * scale:(most + 0.05 * height) * scale]
set xlabel "simulated [".unit."]"
set ylabel "measured [".unit."]"
if (!wide && 1.1 * span * scale > 0) { set xtics tick_of(1.1 * span * scale) }
plot x with lines lw 1.2 dt 2 lc rgb RULE title tau, \
     $points using ($1 * scale):($4 == 1 ? NaN : $2 * scale):($3 * scale) with yerrorbars pt 7 ps 0.45 lc rgb SOFT title "candidates", \
     $points using ($1 * scale):($4 == 1 ? $2 * scale : NaN):($3 * scale) with yerrorbars pt 5 ps 0.7 lc rgb INK title "rivals", \
     for [k = 1:apart] $answer using ($1 * scale):($2 * scale):($3 * scale) with yerrorbars pt 4 ps 0.9 lc rgb ACCENT title "answer, not in τ"
