# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Costs of memory as programs ask for them.
bosk_thread_test(NAME bosk_memory_costs_invented SOURCES bosk_memory_costs.c ARGS invented
                 ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1")
bosk_thread_test(NAME bosk_memory_costs_here SOURCES bosk_memory_costs.c ARGS here)
