# Wall bubble over peak memory, by traffic; what has more than 36 % is in the table only. Input: unit, profiled (rows of schedule_frontier.txt); output: schedule_frontier.svg.
set terminal svg size 1280,640 font "Helvetica,12" background rgb "white"
set output output_file
set multiplot layout 1,2
set logscale x 2
set xlabel "peak activations of the worst rank (micro-batches of its share)"
set ylabel "wall bubble (%)"
set grid lc rgb "gray85"
set key top right
set xrange [2.5:48]
set yrange [0:36]
# Traffic of a row: 1 as 1f1b, 2 up to about twice, 3 more.
class(traffic) = traffic < 1.5 ? 1 : traffic < 3 ? 2 : 3
of(traffic, kind, value) = class(traffic) == kind ? value : NaN
do for [file in unit." ".profiled] {
  set title (file eq unit) ? "p = 8, m = 32, F = I = W, no latency" : "p = 8, m = 32, F 18.522, I 18.086, W 9.337, latency 0.601"
  plot "< grep -F '*' ".file using 4:2 with steps lc rgb "gray40" dt 2 title "least bubble at that memory", \
       file using 4:(of($5, 1, $2)) with points pt 7 ps 0.8 lc rgb "#186aaa" title "traffic of 1f1b", \
       file using 4:(of($5, 2, $2)) with points pt 5 ps 0.8 lc rgb "#e09810" title "up to 3 times", \
       file using 4:(of($5, 3, $2)) with points pt 9 ps 0.9 lc rgb "#be4c14" title "more", \
       "< grep -F '*' ".file using 4:2:1 with labels left offset 0.6,-0.7 font ",10" notitle, \
       "< grep -E '^(1f1b|gpipe|interleaved-1f1b-v2|dualpipe|v-min|v-half|zb-h1|zb-2p) [^*]*$' ".file \
         using 4:2:1 with labels left rotate by 35 offset 0.6,0.4 font ",10" textcolor rgb "gray40" notitle
}
unset multiplot
