# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs for bosk's own threads and bubbles; each compares its result with that of one thread.
set(nps BOSK_WORKERS=16 BOSK_TOPOLOGY_XML=${PROJECT_SOURCE_DIR}/tests/data/topology/nps.xml)
set(bubbles_interface FLAGS -I${PROJECT_SOURCE_DIR}/include LINK gomp BOSK_ONLY)

bosk_example(NAME bubbles_fibonacci SOURCES fibonacci.c ARGS 20 5 ${bubbles_interface} MATCH "as computed by one thread")
bosk_example(NAME bubbles_fibonacci_nodes SOURCES fibonacci.c ARGS 18 6 ${bubbles_interface} ENV ${nps})
bosk_example(NAME bubbles_mergesort SOURCES mergesort.cpp ARGS 100000 16 FLAGS -std=c++17
             -I${PROJECT_SOURCE_DIR}/include LINK gomp BOSK_ONLY MATCH "parts: sorted; [0-9]+ of 15 merges")
bosk_example(NAME bubbles_mergesort_nodes SOURCES mergesort.cpp ARGS 5000 32 FLAGS -std=c++17
             -I${PROJECT_SOURCE_DIR}/include LINK gomp BOSK_ONLY ENV ${nps})
bosk_example(NAME bubbles_conduction SOURCES conduction.f90 ARGS 1000 101 8 LINK gomp bosk_fortran BOSK_ONLY
             MATCH "8 stripes in [0-9]+ bubbles: as by one thread")
bosk_example(NAME bubbles_conduction_nodes SOURCES conduction.f90 ARGS 500 60 16 LINK gomp bosk_fortran BOSK_ONLY
             ENV ${nps} MATCH "16 stripes in 4 bubbles: as by one thread")
