#@ title: Simulated against measured
#@ caption: Each placement that was both simulated (with costs from the profile) and measured. On the line the simulator is right; what counts for the search is the order.
#@ place: 70
#@ query points: simulated and measured step, 1 for rivals
#@   SELECT simulated_us, step_median_us, role <> 'candidate' FROM v_result
#@   WHERE run_id = :run AND state = 'ok' AND simulated_us IS NOT NULL AND step_median_us IS NOT NULL
stats $points using 1 nooutput
low = STATS_min
top = STATS_max
stats $points using 2 nooutput
if (STATS_min < low) { low = STATS_min }
if (STATS_max > top) { top = STATS_max }
span = top > low ? top - low : 0.1 * top
set terminal svg size 620, 480 @TERM
set xrange [(low - 0.05 * span) * scale:(top + 0.05 * span) * scale]
set yrange [(low - 0.05 * span) * scale:(top + 0.05 * span) * scale]
set xlabel "simulated [".unit."]"
set ylabel "measured [".unit."]"
set key outside right top reverse Left width -2 samplen 1
plot x with lines lw 1.2 dt 2 lc rgb 0xb8bcc4 notitle, \
     $points using ($1 * scale):($3 == 1 ? NaN : $2 * scale) with points pt 7 ps 0.55 lc rgb 0x4269d0 title "candidates", \
     $points using ($1 * scale):($3 == 1 ? $2 * scale : NaN) with points pt 5 ps 0.7 lc rgb 0xff725c title "rivals"
