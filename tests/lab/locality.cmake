# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What --locality counts, against programs whose matrix is known, and the table of docs/locality.md.
if(NOT TARGET bosk_lab_locality)
  return()
endif()

add_executable(lab_known_matrix known_matrix.c)
target_compile_options(lab_known_matrix PRIVATE -O2)
target_compile_definitions(lab_known_matrix PRIVATE _GNU_SOURCE)
target_link_libraries(lab_known_matrix PRIVATE bosk_common Threads::Threads)
set_target_properties(
  lab_known_matrix PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/lab")

set(check_locality python3 "${CMAKE_CURRENT_SOURCE_DIR}/check_locality.py" $<TARGET_FILE:bosk>)
lab_host_test(locality-words COMMAND ${check_locality} words TIMEOUT 60)
lab_host_test(locality-known COMMAND ${check_locality} known $<TARGET_FILE:lab_known_matrix> TIMEOUT 300)
lab_host_test(locality-like COMMAND ${check_locality} like "${captured}/nps.xml" TIMEOUT 300)
lab_host_test(locality-ends COMMAND ${check_locality} ends TIMEOUT 300)
if(CMAKE_Fortran_COMPILER AND "examples" IN_LIST BOSK_TEST_KINDS)
  set(stream $<TARGET_FILE:examples_nested-stream>)
  lab_host_test(locality-stream-4 COMMAND ${check_locality} stream 4 ${stream} TIMEOUT 600)
  lab_host_test(locality-stream-8 COMMAND ${check_locality} stream 8 ${stream} TIMEOUT 900)
endif()

# What policies do, compared with `null` (docs/policies.md).
foreach(program bubble_pairs gangs pairs team_gangs)
  lab_program(${program} ${with_bosk})
endforeach()
lab_program(nested_stream FLAGS -I${PROJECT_SOURCE_DIR}/include)
set(check_policies python3 "${CMAKE_CURRENT_SOURCE_DIR}/check_policies.py" $<TARGET_FILE:bosk>)
lab_host_test(policies-bubbles COMMAND ${check_policies} bubbles $<TARGET_FILE:lab_bubble_pairs> TIMEOUT 900)
lab_host_test(policies-teams COMMAND ${check_policies} teams $<TARGET_FILE:lab_pairs> TIMEOUT 900)
lab_host_test(policies-stream COMMAND ${check_policies} stream $<TARGET_FILE:lab_nested_stream> TIMEOUT 900)
lab_host_test(policies-gangs COMMAND ${check_policies} gangs $<TARGET_FILE:lab_gangs> TIMEOUT 900)
lab_host_test(policies-team-gangs COMMAND ${check_policies} team-gangs $<TARGET_FILE:lab_team_gangs> TIMEOUT 900)

# Twisted-STREAM's phase change: what is local afterwards, under libgomp and in every way that can be forced (docs/memory.md).
lab_program(stream SOURCE "${PROJECT_SOURCE_DIR}/bench/programs/stream.c" FLAGS -I${PROJECT_SOURCE_DIR}/include)
lab_program(twisted_bubbles SOURCE "${PROJECT_SOURCE_DIR}/bench/programs/twisted_bubbles.c" ${with_bosk})
lab_host_test(memory-twisted
              COMMAND python3 "${PROJECT_SOURCE_DIR}/bench/twisted.py" --check --bosk $<TARGET_FILE:bosk>
                      --programs "${PROJECT_BINARY_DIR}/tests/lab" --kib 512 --passes 20 TIMEOUT 1200)
# The longest of those without a machine of their own: what comes last should not be waited for by half of the CPUs.
set_tests_properties("${BOSK_TEST_PREFIX}lab.memory-twisted" PROPERTIES COST 1000)
