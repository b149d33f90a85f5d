#@ title: What the learned policy did
#@ caption: For each measured candidate, the search that proposed it: how different the policy's own samples were (entropy: 0, all were equal; 100 %, any device was as likely as any other) and how many of them were invalid. A policy that has learned something has an entropy that falls; one that has learned to break constraints has a share of invalid ones that rises. Bars: how many samples it drew.
#@ place: 72
#@ left out without searches: no candidate was measured that a search with a learned policy proposed
#@ query searches: episode, samples of the policy, their entropy and share of invalid ones in percent
#@   SELECT episode, policy_samples, 100 * policy_entropy, 100 * policy_invalid_share FROM v_episode
#@   WHERE run_id = :run AND policy_samples > 0 ORDER BY episode
stats $searches using 2 nooutput
most = STATS_max
stats $searches using 1 nooutput
last = STATS_max
eval PICTURE(300, 3)
set xlabel "measured placements"
set ylabel "of the policy's samples [%]"
set yrange [0:105]
set xrange [0:*]
if (last < 9) { set xtics 1 }
set y2range [0:3 * most]
set offsets 0, graph 0.02, 0, 0
plot $searches using 1:($2):(0.6) axes x1y2 with boxes fs solid 1.0 noborder lc rgb LINE title sprintf("samples, at most %d", most), \
     $searches using 1:3 with linespoints pt 7 ps 0.6 lw 1.8 lc rgb INK title "entropy", \
     $searches using 1:4 with linespoints pt 4 ps 0.6 lw 1.4 dt 2 lc rgb SOFT title "invalid"
