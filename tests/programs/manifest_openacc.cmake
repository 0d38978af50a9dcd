# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# OpenACC on the host; manifest.cmake includes this file. Errors are in libgomp's words.
set(openacc -fopenacc -foffload=disable)

function(acc_test name source)
  bosk_program_test(NAME acc_${name} SOURCES ${source} FLAGS ${openacc} LABELS openacc ${ARGN})
endfunction()
function(acc_error name source mode text)
  acc_test(${name} ${source} ARGS ${mode} EXIT 1 MATCH "^libgomp: ${text}$" REJECT "^ok$" ${ARGN})
endfunction()

acc_test(constructs acc_constructs.c)
bosk_program_test(NAME acc_constructs_O0 SOURCES acc_constructs.c FLAGS ${openacc} -O0 LABELS openacc)
acc_test(constructs_strict acc_constructs.c ENV BOSK_IDENTITY=strict)
acc_test(constructs_old acc_constructs.c ARGS old EXIT 1
         MATCH "^libgomp: >>>> GOACC_enter_exit_data UNHANDLED kind 0x03$" "^now a kind"
         REJECT "still here" "acc_constructs:")

acc_test(constructs_debug acc_constructs.c ENV GOMP_DEBUG=1
         MATCH "^GOACC_parallel_keyed: mapnum=[0-9]+, hostaddrs=0x[0-9a-f]+, size=0x[0-9a-f]+, kinds=0x"
               "^GOACC_data_start: mapnum=1, hostaddrs=0x" "^ok$")
acc_test(constructs_quiet acc_constructs.c REJECT "mapnum")

foreach(mode host properties life threads inside change-in-fallback)
  acc_test(devices_${mode} acc_devices.c ARGS ${mode})
endforeach()
acc_error(unknown_type acc_devices.c no-type "unknown device type 77")
acc_error(negative_type acc_devices.c no-negative-type "unknown device type 4294967294")
acc_error(no_accelerator acc_devices.c no-accelerator "no device found")
acc_error(no_nvidia acc_devices.c no-nvidia "device type nvidia not supported")
acc_error(no_radeon acc_devices.c no-radeon "device type radeon not supported")
foreach(mode number property)
  acc_error(no_${mode} acc_devices.c no-${mode} "device 1 out of range")
endforeach()
foreach(mode second-init init-after-use)
  acc_error(no_${mode} acc_devices.c no-${mode} "device already active")
endforeach()
foreach(mode shutdown-first second-shutdown)
  acc_error(no_${mode} acc_devices.c no-${mode} "no device initialized")
endforeach()
foreach(mode device-in-thread device-left device-left-by-thread)
  acc_error(no_${mode} acc_devices.c no-${mode} "no device active")
endforeach()
foreach(mode shutdown-in-data shutdown-in-others-data)
  acc_error(no_${mode} acc_devices.c no-${mode} "shutdown in 'acc data' region")
endforeach()
acc_error(no_shutdown-in-fallback acc_devices.c no-shutdown-in-fallback "shutdown during host fallback")

acc_test(env_host acc_devices.c ARGS environment 0 1 ENV ACC_DEVICE_TYPE=HOST ACC_DEVICE_NUM=0)
acc_test(env_number acc_devices.c ARGS environment 5 1 ENV ACC_DEVICE_NUM=5)
acc_test(env_type acc_devices.c ARGS environment 0 0 ENV ACC_DEVICE_TYPE=nvidia)
acc_test(env_bad_number acc_devices.c ARGS environment 0 1 ENV ACC_DEVICE_NUM=-1
         MATCH "^libgomp: Invalid value for environment variable ACC_DEVICE_NUM$" "^ok$")
acc_error(env_type_used acc_constructs.c compute "device type fpga not supported"
          ENV ACC_DEVICE_TYPE=fpga)
acc_error(env_number_used acc_constructs.c compute "device 2 out of range" ENV ACC_DEVICE_NUM=2)

foreach(mode presence routines asynchronous blocks cuda)
  acc_test(memory_${mode} acc_memory.c ARGS ${mode})
endforeach()
# libgomp crashes where these come before the device is initialised.
foreach(routine copyout delete unmap memcpy free)
  acc_test(memory_first_${routine} acc_memory.c ARGS first ${routine} BOSK_ONLY)
endforeach()
acc_test(memory_later acc_memory.c ARGS later BOSK_ONLY)
acc_error(no_device acc_memory.c no-device "no device active")
acc_error(no_size acc_memory.c no-size ".0x[0-9a-f]+,.0. is a bad range")
foreach(mode address address-async)
  acc_error(no_${mode} acc_memory.c no-${mode} "..nil.,.16. is a bad range")
endforeach()
acc_error(no_mapping acc_memory.c no-mapping "cannot map data on shared-memory system")
acc_error(no_queue acc_memory.c no-queue "invalid async-argument: -3")
acc_error(no_queue-to-test acc_memory.c no-queue-to-test "invalid async-argument: -100")
acc_error(no_queue-to-wait-for acc_memory.c no-queue-to-wait-for "invalid async-argument: -4")
acc_error(no_queue-to-wait-with acc_memory.c no-queue-to-wait-with "invalid async-argument: -5")
acc_error(no_queue-to-attach acc_memory.c no-queue-to-attach "invalid async-argument: -6")
acc_error(no_queue-of-wait acc_memory.c no-queue-of-wait "invalid async-argument: -7")
acc_error(no_queue-of-wait-async acc_memory.c no-queue-of-wait-async "invalid async-argument: -8")

foreach(mode events order switches initialisation first-use concurrent)
  acc_test(profiling_${mode} acc_profiling.c ARGS ${mode})
endforeach()
# libgomp holds a lock while it calls callbacks, and hangs or aborts.
acc_test(profiling_callbacks acc_profiling.c ARGS callbacks BOSK_ONLY)
bosk_program_plugin(NAME acc_proflib SOURCES acc_proflib.c FLAGS ${openacc})
acc_test(proflib acc_proflib_program.c ARGS libacc_proflib.so libnone.so libacc_proflib.so
         MATCH "^proflib: loaded, the routines are the program's$" "^proflib: event 1 on device 1$"
               "^proflib: event 17 on device 2$" "^ok$"
               "^libgomp: while loading ACC_PROFLIB \".*/libnone.so\": .*cannot open shared object"
         REJECT "event 14" "event 2 ")
acc_test(proflib_none acc_proflib_program.c REJECT "proflib")

foreach(outer 4 8)
  math(EXPR inner "2 * ${outer}")
  acc_test(in_regions_${outer} acc_in_regions.c ARGS ${outer} ${inner})
  acc_test(in_regions_${outer}_preempted acc_in_regions.c ARGS ${outer} ${inner}
           ENV BOSK_WORKERS=2 BOSK_PREEMPT_PERIOD=100us BOSK_ONLY)
endforeach()
acc_test(in_regions_kthread acc_in_regions.c ARGS 3 3 ENV BOSK_IDENTITY=kthread BOSK_ONLY)

acc_test(fortran f_acc.f90 ARGS all)
acc_error(fortran_type f_acc.f90 no-type "unknown device type 77")
acc_error(fortran_nvidia f_acc.f90 no-nvidia "device type nvidia not supported")
acc_error(fortran_size f_acc.f90 no-size ".0x[0-9a-f]+,.0. is a bad range")
acc_error(fortran_length f_acc.f90 no-length ".0x[0-9a-f]+,.0. is a bad range")
acc_error(fortran_queue f_acc.f90 no-queue "invalid async-argument: -9")

# What plug-ins call.
foreach(mode memory events)
  acc_test(plugin_${mode} gomp_plugin.c ARGS ${mode})
endforeach()
acc_test(plugin_thread gomp_plugin.c ARGS thread)
acc_test(plugin_messages gomp_plugin.c ARGS messages REJECT "if asked"
         MATCH "^libgomp: 3 things are wrong$" "^still here$")
acc_test(plugin_debug gomp_plugin.c ARGS messages ENV GOMP_DEBUG=1 MATCH "^said if asked$" "^ok$")
acc_test(plugin_no_dim gomp_plugin.c ARGS dimensions 0 0 0)
foreach(case 3-3,0,0 3:4:5:6-3,4,5 :7-0,7,0 2::9-2,0,9 1:x:2-1,0,0 junk-0,0,0)
  string(REGEX MATCH "^(.*)-(.*),(.*),(.*)$" matched "${case}")
  acc_test(plugin_dim_${CMAKE_MATCH_1} gomp_plugin.c ENV GOMP_OPENACC_DIM=${CMAKE_MATCH_1}
           ARGS dimensions ${CMAKE_MATCH_2} ${CMAKE_MATCH_3} ${CMAKE_MATCH_4})
endforeach()
acc_error(plugin_memory_left gomp_plugin.c no-memory "Out of memory allocating 9223372036854775807 bytes")
acc_error(plugin_fatal gomp_plugin.c no-fatal "this is too much")
acc_error(plugin_dimension gomp_plugin.c no-dimension "invalid dimension argument: 3")
acc_error(plugin_unmap gomp_plugin.c no-unmap "invalid plugin function")
acc_error(plugin_task gomp_plugin.c no-task
          "GOMP_PLUGIN_target_task_completion: no plug-in has a target task here" BOSK_ONLY)
acc_error(plugin_reverse gomp_plugin.c no-reverse
          "GOMP_PLUGIN_target_rev: no plug-in drives a device here" BOSK_ONLY)
