# cmake -DSCRATCH=<folder to use> -P check_edges_test.cmake
#
# Plants one #include per case into a copy of the table and asks check_edges.cmake what it says.

cmake_minimum_required(VERSION 3.25)

# expect(<name> <file> <header> <what its output must match, "" if it must pass>): the offending line is the file's third.
function(expect name file header pattern)
  file(REMOVE_RECURSE ${SCRATCH})
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/../../cmake/edges.cmake DESTINATION ${SCRATCH}/cmake)
  foreach(folder base proto sim/engine tests)
    file(MAKE_DIRECTORY ${SCRATCH}/${folder})
  endforeach()
  file(WRITE ${SCRATCH}/${file} "// A comment; with a semicolon [and brackets\n\n#include \"${header}\"\n#include <vector>\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/check_edges.cmake
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(pattern STREQUAL "")
    if(NOT result EQUAL 0)
      message(SEND_ERROR "${name}: must pass, but:\n${output}")
    endif()
  elseif(result EQUAL 0 OR NOT output MATCHES "${pattern}")
    message(SEND_ERROR "${name}: must fail with '${pattern}', but:\n${output}")
  endif()
endfunction()

expect("own folder"        base/a.h              "base/units.h"             "")
expect("row"               sim/engine/a.cc       "base/units.h"             "")
expect("row of a row"      sim/training/a.cc     "workloads/operator.h"     "")
expect("generated"         workloads/a.h         "orrery/v1/model.pb.h"     "")
expect("external"          base/a.cc             "absl/status/status.h"     "")
expect("upward"            base/a.cc             "sim/engine/program.h"     "base/a.cc:3: base may not include")
expect("sideways"          schedules/a.cc        "workloads/operator.h"     "schedules/a.cc:3: schedules may not include")
expect("engine and proto"  sim/engine/a.cc       "orrery/v1/run.pb.h"       "sim/engine/a.cc:3: sim/engine may not include")
expect("engine, loader"    sim/engine/a.h        "proto/loader.h"           "sim/engine/a.h:3: sim/engine may not include")
expect("subfolder"         sim/engine/deep/a.cc  "proto/loader.h"           "sim/engine/deep/a.cc:3: sim/engine may not include")
expect("test helper"       base/a.cc             "tests/helper.h"           "base/a.cc:3: base may not include")
expect("relative"          base/a.cc             "units.h"                  "base/a.cc:3: includes \"units.h\"")
expect("dots"              sim/engine/a.cc       "../../proto/loader.h"     "sim/engine/a.cc:3: sim/engine may not include")
expect("no row"            sim/unheard_of/a.cc   "base/units.h"             "sim/unheard_of/a.cc:1: lies in no folder")
file(REMOVE_RECURSE ${SCRATCH})
