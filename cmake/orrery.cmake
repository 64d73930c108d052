# Build rules shared by every folder.

# Flags that keep one spec at the same bytes for every compiler and level: no contraction, no fast-math, no -march.
add_library(orrery_flags INTERFACE)
target_compile_options(orrery_flags INTERFACE
  -ffp-contract=off -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
target_include_directories(orrery_flags INTERFACE ${PROJECT_SOURCE_DIR})

# orrery_edge(<folder> <folders>...): records one row of the table in edges.cmake.
macro(orrery_edge folder)
  set(ORRERY_EDGES_${folder} "${ARGN}")
  list(APPEND ORRERY_FOLDERS ${folder})
endmacro()

# orrery_target(<out> <folder>): the CMake target of a folder, sim/engine -> orrery_sim_engine.
function(orrery_target out folder)
  string(REPLACE "/" "_" name "orrery_${folder}")
  set(${out} ${name} PARENT_SCOPE)
endfunction()

# orrery_library(<sources>... [LINK <external targets>...]): the library of the current folder, linked to exactly the
# folders its row in edges.cmake allows.
function(orrery_library)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  orrery_target(name ${folder})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC orrery_flags ${ARG_LINK})
  foreach(used IN LISTS ORRERY_EDGES_${folder})
    orrery_target(used_name ${used})
    target_link_libraries(${name} PUBLIC ${used_name})
  endforeach()
endfunction()

# orrery_test(<name> <sources>... [LINK <folders>...]): one GoogleTest binary; its cases are found by CTest.
function(orrery_test name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE orrery_flags GTest::gmock GTest::gtest_main)
  foreach(used IN LISTS ARG_LINK)
    orrery_target(used_name ${used})
    target_link_libraries(${name} PRIVATE ${used_name})
  endforeach()
  target_compile_definitions(${name} PRIVATE ORRERY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST)
endfunction()
