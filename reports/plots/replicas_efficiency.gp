#@ title: How much of the devices that is
#@ caption: Batches a second, divided by what as many devices would do that exchange nothing and never wait.
eval PICTURE(300, 3)
set logscale x
set xlabel "replicas"
set ylabel "efficiency [%]"
set yrange [0:105]
array mode[3] = ["synchronous, reduced by all", "synchronous, parameter servers", "asynchronous, parameter servers"]
plot for [m = 0:2] $rows using 1:(100 * column(2 * m + 3)) with linespoints pt shape[m + 1] ps 0.6 lw (m == 0 ? 2.2 : 1.4) lc rgb ink(m + 1) title mode[m + 1]
