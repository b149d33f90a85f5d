# Comes before every plot. The caller has set: NAME, W (the picture's width: 1060 for a page, 340 for a telephone), run,
# placement, step (numbers of the database), scale and unit (times in microseconds are multiplied by scale to be in
# unit), device_colour[device_id + 1] and op_colour(type). The colours below become the page's own, light or dark.
set encoding utf8
set datafile separator "\t"
INK = 0x20242c
SOFT = 0x60656f
RULE = 0xb8bcc4
LINE = 0xe4e7ec
ACCENT = 0xd21ec3
wide = W > 600
# Begins a picture that is h high on a page; on a telephone it is lower, with a key of `entries` lines below.
PICTURE(h, entries) = sprintf("set terminal svg size %d, %d noenhanced font 'system-ui,sans-serif,%d' name '%s'; %s", W, wide ? h : int(0.8 * h) + 17 * entries + 16, wide ? 13 : 11, NAME, wide ? "set key outside right top reverse Left width -1 samplen 1.2" : "set key bmargin left reverse Left samplen 1.2 maxcols 1")
# Shapes of what is neither a device nor an operation, by rank; the first is the answer's or the most frequent.
array shape[10] = [7, 5, 9, 13, 11, 6, 4, 8, 12, 2]
ink(k) = k == 1 ? ACCENT : k % 2 ? SOFT : INK
set border 3 lc rgb RULE lw 1
set tics nomirror textcolor rgb SOFT
set xlabel textcolor rgb SOFT
set ylabel textcolor rgb SOFT
set grid xtics ytics lc rgb LINE lw 1 lt 1
set key textcolor rgb SOFT
set xtics autofreq
if (!wide) { set xtics rangelimited; set format x "%.3g"; set format y "%.3g" }
# The distance of marks so that at most four of them divide a span: a telephone has room for no more.
tick_base(span) = 10 ** floor(log10(span / 4.0))
tick_of(span) = span / tick_base(span) > 20 ? 10 * tick_base(span) : span / tick_base(span) > 8 ? 5 * tick_base(span) : span / tick_base(span) > 4 ? 2 * tick_base(span) : tick_base(span)
# These write a time or a size with the unit that fits it.
took(us) = us >= 1e6 ? sprintf("%.3g s", us * 1e-6) : us >= 1e3 ? sprintf("%.3g ms", us * 1e-3) : sprintf("%.3g µs", us)
held(mb) = mb >= 1e3 ? sprintf("%.3g GB", mb * 1e-3) : mb >= 1 ? sprintf("%.3g MB", mb) : mb >= 1e-3 ? sprintf("%.3g kB", mb * 1e3) : sprintf("%.3g B", mb * 1e6)
short(name, n) = strlen(name) > n ? "…".name[strlen(name) - n + 2:*] : name
# A key has room for this many devices; further ones have no entry.
keys(n) = n > 24 ? 24 : n
keyed(k, name) = k <= 24 ? name : ""
