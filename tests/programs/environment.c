// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the environment asks for arrives: each argument is one expectation, e.g. "threads=4,3,2".
#include "check.h"

#include <omp.h>

/// Sizes of nested teams, level by level, without num_threads clauses.
static void team_sizes(const char* list, int level) {
  int wanted = atoi(list);
  const char* rest = strchr(list, ',');
  int members = 0;
#pragma omp parallel shared(members)
  {
    CHECK(omp_get_num_threads() == wanted, "level %d: team of %d, expected %d", level,
          omp_get_num_threads(), wanted);
    CHECK(omp_get_level() == level, "level %d, expected %d", omp_get_level(), level);
#pragma omp atomic
    members++;
    if (rest) team_sizes(rest + 1, level + 1);
  }
  CHECK(members == wanted, "level %d: %d members, expected %d", level, members, wanted);
}

int main(int argc, char** argv) {
  CHECK(argc > 1, "no expectation given");
  for (int i = 1; i < argc; ++i) {
    char name[40];
    const char* value = strchr(argv[i], '=');
    CHECK(value && value - argv[i] < 40, "bad argument %s", argv[i]);
    snprintf(name, sizeof name, "%.*s", (int)(value - argv[i]), argv[i]);
    ++value;
    int number = atoi(value);
    if (!strcmp(name, "threads")) {
      team_sizes(value, 1);
    } else if (!strcmp(name, "max-threads")) {
      CHECK(omp_get_max_threads() == number, "omp_get_max_threads is %d", omp_get_max_threads());
    } else if (!strcmp(name, "schedule")) {
      omp_sched_t kind;
      int chunk;
      omp_get_schedule(&kind, &chunk);
      static const char* const names[] = {"?", "static", "dynamic", "guided", "auto"};
      char text[40];
      unsigned plain = (unsigned)kind & 0x7fffffffu;
      snprintf(text, sizeof text, "%s,%d", plain < 5 ? names[plain] : "?", chunk);
      CHECK(!strcmp(text, value), "the schedule is %s, expected %s", text, value);
    } else if (!strcmp(name, "dynamic")) {
      CHECK(omp_get_dynamic() == number, "omp_get_dynamic is %d", omp_get_dynamic());
    } else if (!strcmp(name, "limit")) {
      CHECK(omp_get_thread_limit() == number, "omp_get_thread_limit is %d", omp_get_thread_limit());
      int members = 0;
#pragma omp parallel num_threads(64) reduction(+ : members)
      members++;
      CHECK(members <= number, "a team of %d, limit %d", members, number);
      // Nested: all threads of the contention group count.
      members = 0;
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(64)
      {
#pragma omp atomic
        members++;
        // One thread of the other team at least runs beside this one.
        CHECK(omp_get_num_threads() < number, "an inner team of %d, limit %d",
              omp_get_num_threads(), number);
      }
      CHECK(members >= 2, "%d nested members", members);
    } else if (!strcmp(name, "levels")) {
      CHECK(omp_get_max_active_levels() == number, "max-active-levels is %d",
            omp_get_max_active_levels());
    } else if (!strcmp(name, "priority")) {
      CHECK(omp_get_max_task_priority() == number, "max task priority is %d",
            omp_get_max_task_priority());
    } else if (!strcmp(name, "cancellation")) {
      CHECK(omp_get_cancellation() == number, "omp_get_cancellation is %d", omp_get_cancellation());
    } else if (!strcmp(name, "bind")) {
      CHECK((int)omp_get_proc_bind() == number, "omp_get_proc_bind is %d",
            (int)omp_get_proc_bind());
    } else if (!strcmp(name, "teams")) {
      CHECK(omp_get_max_teams() == number, "omp_get_max_teams is %d", omp_get_max_teams());
    } else {
      fail_at(__LINE__, "unknown expectation %s", argv[i]);
    }
  }
  return passed();
}
