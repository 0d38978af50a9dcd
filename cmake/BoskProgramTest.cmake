# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Ordinary OpenMP programs as tests: built against the system's libgomp, run on ours.
#
#   bosk_program_test(NAME name
#     [SOURCES file…]        default: name.c, name.cpp or name.f90 beside the manifest
#     [ARGS arg…] [ENV VAR=value…]
#     [WRAPPER command…]     put before the program; `bosk` is the built tool
#     [LINK library…] [FLAGS compiler-flag…]
#     [TIMEOUT seconds]      default 60
#     [EXIT status]          the exit status it must end with, default 0
#     [MATCH regex…]         what its output must match (all of them)
#     [REJECT regex…]        what its output must not match
#     [ENDLESS seconds]      it must still run after so long, and is then stopped
#     [BOSK_ONLY]            asks for what the system's libgomp does not do
#     [SKIP status]          the exit status that says that it cannot be run here
#     [SERIAL]               nothing else may run meanwhile
#     [LABELS label…])
#   bosk_example(…)          the same; the program goes to build/examples
#   bosk_program_plugin(NAME name [SOURCES file…] [FLAGS flag…] [LINK library…])
#     builds $BOSK_TEST_DIR/libNAME.so for a program to dlopen
#
# Tests with the same sources, flags and libraries share one program. The program finds in its
# environment BOSK_TEST_DIR (where plug-ins lie) and BOSK_TEST_ALARM (seconds until it is stopped).
# With BOSK_ALSO_STOCK, NAME.stock is the same on the system's libgomp: shows whether a test asks for
# more than OpenMP promises.

set(BOSK_PROGRAMS_DIR "${PROJECT_BINARY_DIR}/tests/programs")

# The first of stem.{c,cpp,f90} that exists in `folder`.
function(bosk_find_program_source folder stem out)
  foreach(extension c cpp f90)
    if(EXISTS "${folder}/${stem}.${extension}")
      set(${out} "${folder}/${stem}.${extension}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "bosk: no ${stem}.c, .cpp or .f90 in ${folder}, and no SOURCES")
endfunction()

# What gcc -fopenmp -O2 would do, whatever this build's type is.
function(bosk_program_options target)
  cmake_parse_arguments(arg "" "" "FLAGS;LINK" ${ARGN})
  target_compile_options(
    ${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra> -O2 -g -UNDEBUG -fopenmp
                      ${arg_FLAGS})
  target_link_options(${target} PRIVATE -fopenmp)
  target_link_libraries(${target} PRIVATE ${arg_LINK} m Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(
    ${target} PROPERTIES Fortran_MODULE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${target}.mod"
                         CXX_EXTENSIONS ON)
endfunction()

function(bosk_program_plugin)
  cmake_parse_arguments(arg "" "NAME" "SOURCES;FLAGS;LINK" ${ARGN})
  if(NOT arg_SOURCES)
    bosk_find_program_source("${CMAKE_CURRENT_LIST_DIR}" "${arg_NAME}" arg_SOURCES)
  endif()
  list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_LIST_DIR}/" REGEX "^[^/$]")
  set(target "plugin_${arg_NAME}")
  add_library(${target} MODULE ${arg_SOURCES})
  bosk_program_options(${target} FLAGS ${arg_FLAGS} LINK ${arg_LINK})
  set_target_properties(
    ${target} PROPERTIES PREFIX "lib" OUTPUT_NAME "${arg_NAME}" POSITION_INDEPENDENT_CODE ON
                         LIBRARY_OUTPUT_DIRECTORY "${BOSK_PROGRAMS_DIR}")
  add_dependencies(bosk_tests ${target})
endfunction()

# Sets `out` to the target that builds these sources so; makes it if no test before this one has.
function(bosk_program_target out kind name)
  cmake_parse_arguments(arg "" "" "SOURCES;FLAGS;LINK" ${ARGN})
  string(MD5 key "${kind}|${arg_SOURCES}|${arg_FLAGS}|${arg_LINK}")
  get_property(target GLOBAL PROPERTY bosk_program_${key})
  if(NOT target)
    # Named after its source, as one would by hand; other builds of it after their test.
    list(GET arg_SOURCES 0 first)
    get_filename_component(file_name "${first}" NAME_WE)
    if(TARGET ${kind}_${file_name})
      set(file_name "${name}")
    endif()
    set(target "${kind}_${file_name}")
    set(folder "${BOSK_PROGRAMS_DIR}")
    if(kind STREQUAL "examples")
      set(folder "${PROJECT_BINARY_DIR}/examples")
    endif()
    add_executable(${target} ${arg_SOURCES})
    bosk_program_options(${target} FLAGS ${arg_FLAGS} LINK ${arg_LINK})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${folder}"
                                               OUTPUT_NAME "${file_name}")
    add_dependencies(bosk_tests ${target})
    set_property(GLOBAL PROPERTY bosk_program_${key} ${target})
  endif()
  set(${out} ${target} PARENT_SCOPE)
endfunction()

macro(bosk_example)
  bosk_program_test(${ARGN} KIND examples)
endmacro()

function(bosk_program_test)
  cmake_parse_arguments(
    arg "SERIAL;BOSK_ONLY" "NAME;TIMEOUT;EXIT;SKIP;ENDLESS;KIND"
    "SOURCES;ARGS;ENV;WRAPPER;LINK;FLAGS;MATCH;REJECT;LABELS" ${ARGN})
  if(NOT arg_NAME OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bosk: bosk_program_test(NAME ${arg_NAME} …) does not know: "
                        "${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(BOSK_PROGRAM_FILTER AND NOT arg_NAME MATCHES "${BOSK_PROGRAM_FILTER}")
    return()
  endif()
  if(NOT arg_KIND)
    set(arg_KIND programs)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${BOSK_DEFAULT_TIMEOUT})
  endif()
  if(NOT arg_SOURCES)
    bosk_find_program_source("${CMAKE_CURRENT_LIST_DIR}" "${arg_NAME}" arg_SOURCES)
  endif()
  list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_LIST_DIR}/" REGEX "^[^/$]")
  if(arg_SOURCES MATCHES "\\.[fF]90" AND NOT CMAKE_Fortran_COMPILER)
    return()
  endif()
  bosk_program_target(target ${arg_KIND} ${arg_NAME} SOURCES ${arg_SOURCES} FLAGS ${arg_FLAGS}
                      LINK ${arg_LINK})

  set(wrapper ${arg_WRAPPER})
  list(TRANSFORM wrapper REPLACE "^bosk$" "${PROJECT_BINARY_DIR}/bin/bosk")

  # Exit status, several patterns and endless programs need more than CTest's own properties.
  set(judge)
  if(arg_EXIT OR arg_ENDLESS OR arg_MATCH OR arg_REJECT)
    set(judge "${PROJECT_SOURCE_DIR}/tests/judge.sh")
    foreach(option EXIT ENDLESS)
      if(arg_${option})
        string(TOLOWER "--${option}" flag)
        list(APPEND judge ${flag} "${arg_${option}}")
      endif()
    endforeach()
    foreach(regex IN LISTS arg_MATCH)
      list(APPEND judge --match "${regex}")
    endforeach()
    foreach(regex IN LISTS arg_REJECT)
      list(APPEND judge --reject "${regex}")
    endforeach()
    list(APPEND judge --)
  endif()

  # The program stops itself just before CTest would, so that what it has printed is seen.
  math(EXPR alarm "${arg_TIMEOUT} - 1")
  set(runs ours)
  if(BOSK_ALSO_STOCK AND NOT arg_BOSK_ONLY)
    list(APPEND runs stock)
  endif()
  foreach(run IN LISTS runs)
    set(name "${BOSK_TEST_PREFIX}${arg_KIND}.${arg_NAME}")
    set(environment "BOSK_TEST_DIR=${BOSK_PROGRAMS_DIR}" "BOSK_TEST_ALARM=${alarm}"
                    ${BOSK_TEST_ENVIRONMENT} ${arg_ENV})
    set(labels ${arg_KIND} ${arg_LABELS})
    if(run STREQUAL "stock")
      if(wrapper MATCHES "bin/bosk")
        continue() # the tool brings our library: there is no stock run of it
      endif()
      string(APPEND name ".stock")
      set(labels stock)
    else()
      list(PREPEND environment "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib")
    endif()
    add_test(NAME "${name}" COMMAND ${judge} ${wrapper} $<TARGET_FILE:${target}> ${arg_ARGS}
             WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
    set_tests_properties(
      "${name}" PROPERTIES LABELS "${labels}" TIMEOUT ${arg_TIMEOUT}
                           ENVIRONMENT "${environment}" RUN_SERIAL "${arg_SERIAL}")
    if(arg_SKIP)
      set_tests_properties("${name}" PROPERTIES SKIP_RETURN_CODE ${arg_SKIP})
    endif()
    bosk_under_asan("${name}")
  endforeach()
endfunction()
