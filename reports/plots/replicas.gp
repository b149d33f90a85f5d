#@ title: How many batches a second
#@ caption: Steps of single replicas that count, all replicas together. On the dashed line N replicas do N times what one does that exchanges nothing.
eval PICTURE(340, 4)
set logscale xy
set xlabel "replicas"
set ylabel "batches a second"
array mode[3] = ["synchronous, reduced by all", "synchronous, parameter servers", "asynchronous, parameter servers"]
single = 0
do for [m = 0:2] {
  stats $rows using (valid(2 * m + 2) && $1 > 0 && column(2 * m + 3) > 0 ? column(2 * m + 2) / column(2 * m + 3) / $1 : NaN) nooutput
  if (STATS_records > 0) { single = STATS_max }
}
plot $rows using 1:(single > 0 ? single * $1 : NaN) with lines lw 1.2 dt 2 lc rgb RULE title "linear", \
     for [m = 0:2] $rows using 1:2 * m + 2 with linespoints pt shape[m + 1] ps 0.6 lw (m == 0 ? 2.2 : 1.4) lc rgb ink(m + 1) title mode[m + 1]
