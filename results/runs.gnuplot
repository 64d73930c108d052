# Predicted iteration time over measured, by source. Input: runs.csv; output: runs.svg.
set terminal svg size 760,680 font "Helvetica,13" background rgb "white"
set output output_file
set datafile separator ","
set logscale xy
set xlabel "measured iteration time (s)"
set ylabel "predicted iteration time (s)"
set key left top
set grid
set size ratio -1
set xrange [1:300]
set yrange [1:300]
plot x with lines lc rgb "black" title "exact", \
     1.15*x with lines dt 2 lc rgb "gray60" title "15 % off", \
     x/1.15 with lines dt 2 lc rgb "gray60" notitle, \
     input_file using (strstrt(strcol(2), "Narayanan") > 0 ? $3 : NaN):4 with points pt 7 ps 0.8 title "SC21 (Narayanan et al.)", \
     input_file using (strstrt(strcol(2), "Korthikanti") > 0 ? $3 : NaN):4 with points pt 5 ps 0.8 title "Korthikanti et al.", \
     input_file using (strstrt(strcol(2), "2402.15627") > 0 ? $3 : NaN):4 with points pt 9 ps 0.9 title "MegaScale Table 2", \
     input_file using (strstrt(strcol(2), "Fig 9") > 0 ? $3 : NaN):4 with points pt 13 ps 0.9 title "MegaScale Fig 9"
