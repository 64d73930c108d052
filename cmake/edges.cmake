# The table of allowed library edges. One CMake library per leaf folder; a library may use what its row names, and,
# transitively, what those may use. `orrery_library` links from this table and the test `edges` fails on any #include
# that the table does not allow. Nothing includes upward.
#
# orrery_edge(<folder> <folders it may use>...)
orrery_edge(base)
orrery_edge(proto            base)
orrery_edge(topology         proto)
orrery_edge(workloads        proto)
orrery_edge(schedules        proto)
orrery_edge(schedules/text   schedules)
orrery_edge(sim/layout       proto)
orrery_edge(sim/engine       base)
orrery_edge(sim/collectives  topology sim/layout)
orrery_edge(sim/kernels      workloads)
orrery_edge(sim/pipeline     schedules sim/engine)
orrery_edge(sim/pipeline/optimizer sim/pipeline)
orrery_edge(sim/memory       sim/engine workloads)
orrery_edge(sim/training     schedules/text sim/collectives sim/kernels sim/memory)
orrery_edge(reports          sim/training sim/pipeline schedules/text)
orrery_edge(sweep            sim/training)
orrery_edge(calibration      sim/training)
orrery_edge(validation       calibration schedules/text sim/pipeline)
orrery_edge(cli              reports validation sweep sim/pipeline/optimizer)
