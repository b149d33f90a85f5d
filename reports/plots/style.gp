# What all plots share. The caller has set: NAME, run, placement, step (numbers of the database), scale and unit (times
# in microseconds are multiplied by scale to be in unit).
set encoding utf8
set datafile separator "\t"
array color[10] = [0x4269d0, 0xefb118, 0xff725c, 0x6cc5b0, 0x3ca951, 0xff8ab7, 0xa463f2, 0x97bbf5, 0x9c6b4e, 0x9498a0]
TERM = "noenhanced font 'system-ui,sans-serif,13' name '".NAME."' background '#ffffff'"
set border 3 lc rgb 0xb8bcc4 lw 1
set tics nomirror textcolor rgb 0x40444c
set xlabel textcolor rgb 0x40444c
set ylabel textcolor rgb 0x40444c
set grid xtics ytics lc rgb 0xeceef2 lw 1 lt 1
set key textcolor rgb 0x40444c
