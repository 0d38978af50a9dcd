# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Reads the manifests for run_all.sh: cmake -DOUT=file -DMANIFESTS="a;b" -P manifest_list.cmake
# writes one line per call: kind|name|folder|sources|flags|link|env|args|timeout|bosk_only|wrapper
file(WRITE ${OUT} "")

function(write_line kind)
  cmake_parse_arguments(P "BOSK_ONLY;SERIAL" "NAME;TIMEOUT" "SOURCES;ENV;ARGS;LINK;FLAGS;LABELS;WRAPPER;MATCH" ${ARGN})
  if(P_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${P_NAME}: unknown arguments ${P_UNPARSED_ARGUMENTS}")
  endif()
  foreach(list SOURCES ENV ARGS LINK FLAGS WRAPPER)
    string(REPLACE ";" " " P_${list} "${P_${list}}")
  endforeach()
  file(APPEND ${OUT} "${kind}|${P_NAME}|${FOLDER}|${P_SOURCES}|${P_FLAGS}|${P_LINK}|${P_ENV}|${P_ARGS}|${P_TIMEOUT}|${P_BOSK_ONLY}|${P_WRAPPER}\n")
endfunction()

macro(bosk_program_test)
  write_line(test ${ARGN})
endmacro()
macro(bosk_program_plugin)
  write_line(plugin ${ARGN})
endmacro()
macro(bosk_example)
  write_line(example ${ARGN})
endmacro()

foreach(manifest ${MANIFESTS})
  get_filename_component(FOLDER ${manifest} DIRECTORY)
  include(${manifest})
endforeach()
