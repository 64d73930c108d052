# Predicted iteration time over measured, by software level. Input: runs.csv; output: runs.svg.
set terminal svg size 820,760 font "Helvetica,13" background rgb "white"
set output output_file
set datafile separator ","
set logscale xy
set xlabel "measured iteration time (s)"
set ylabel "predicted iteration time (s)"
set key left top
set grid
set size ratio -1
set xrange [0.3:400]
set yrange [0.3:400]
of(level, column) = strstrt(strcol(2), level) > 0 ? column : NaN
plot x with lines lc rgb "black" title "exact", \
     1.15*x with lines dt 2 lc rgb "gray60" title "15 % off", \
     x/1.15 with lines dt 2 lc rgb "gray60" notitle, \
     input_file using (of("megatron-lm-2021", $3)):4 with points pt 7 ps 0.7 title "megatron-lm-2021", \
     input_file using (of("megatron-lm-2022", $3)):4 with points pt 5 ps 0.7 title "megatron-lm-2022", \
     input_file using (of("megatron-lm-2023", $3)):4 with points pt 9 ps 0.8 title "megatron-lm-2023", \
     input_file using (of("megascale-2024", $3)):4 with points pt 13 ps 0.8 title "megascale-2024", \
     input_file using (of("megatron-deepspeed-2022", $3)):4 with points pt 6 ps 0.6 title "megatron-deepspeed-2022", \
     input_file using (of("zero-bubble-2023", $3)):4 with points pt 4 ps 0.6 title "zero-bubble-2023", \
     input_file using (of("llm-foundry-fsdp", $3)):4 with points pt 8 ps 0.6 title "llm-foundry-fsdp", \
     input_file using (of("megatron-core", $3)):4 with points pt 11 ps 0.9 title "megatron-core", \
     input_file using (of("llama3", $3)):4 with points pt 3 ps 1.2 title "llama3-2024", \
     input_file using (of("nemo-", $3)):4 with points pt 2 ps 0.9 title "nemo-25.04, -25.05"
