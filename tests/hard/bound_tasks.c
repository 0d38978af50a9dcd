// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams much larger than the machine, bound, and few tasks or many: who has nothing to do must not keep the others from it.
//   bound_tasks TEAM TASKS ROUNDS [nested]
#include "hard.h"

int main(int argc, char** argv) {
  if (argc < 4) no_such_mode();
  const int team = atoi(argv[1]), tasks = atoi(argv[2]), rounds = atoi(argv[3]);
  int ran = 0;
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel num_threads(team) shared(ran)
#pragma omp single
    {
#pragma omp taskloop num_tasks(tasks) shared(ran)
      for (int i = 0; i < tasks; ++i) {
        compute(.05);
#pragma omp atomic
        ran++;
      }
    }
    CHECK(ran == tasks * (round + 1), "%d tasks ran, not %d", ran, tasks * (round + 1));
  }
#pragma omp parallel num_threads(team) shared(ran)
  {
#pragma omp single nowait
    for (int i = 0; i < tasks; ++i) {
#pragma omp task shared(ran)
      {
        compute(.05);
#pragma omp atomic
        ran++;
      }
    }
#pragma omp barrier
    const int found = __atomic_load_n(&ran, __ATOMIC_RELAXED);
    CHECK(found == tasks * (rounds + 1), "%d tasks ran before the barrier ended", found);
  }
  return passed();
}
