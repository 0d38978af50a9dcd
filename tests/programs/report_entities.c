// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the report tells of each thread with all that it opens: counts, loads and processor time, summed up
// the tree. The program runs itself with a report and reads it.
#include "check.h"

#include <omp.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { kThreads = 4, kRounds = 10, kInner = 3, kInnermost = 2 };

static volatile long sink;

static void work(long turns) {
  for (long i = 0; i < turns; ++i) sink = i;
}

static int run_child(const char* what) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  if (strcmp(what, "flat") == 0) {
    for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(2)
      work(1000);
    }
    return passed();
  }
  const long turns = strcmp(what, "work") == 0 ? 1000000 : 1000;
  for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(kThreads)
    {
      work(turns);
#pragma omp parallel num_threads(kInner)
      {
        work(turns);
#pragma omp parallel num_threads(kInnermost)
        work(turns);
      }
    }
  }
  return passed();
}

static char report[64 * 1024];
static struct rusage used;

/// Runs this program; keeps its report, and the processor time that it took.
static void run_case(const char* what, const char* workers, const char* period, const char* load) {
  int ends[2];
  CHECK(pipe(ends) == 0, "pipe: %s", strerror(errno));
  const pid_t child = fork();
  CHECK(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv("BOSK_WORKERS", workers, 1);
    setenv("BOSK_PREEMPT_PERIOD", period, 1);
    setenv("BOSK_REPORT", "-", 1);
    if (load != NULL) setenv("BOSK_LOAD", load, 1);
    execl("/proc/self/exe", "report_entities", "run", what, (char*)NULL);
    _exit(127);
  }
  close(ends[1]);
  size_t length = 0;
  ssize_t got;
  while ((got = read(ends[0], report + length, sizeof report - 1 - length)) != 0) {
    CHECK(got > 0 || errno == EINTR, "read: %s", strerror(errno));
    if (got > 0) length += (size_t)got;
  }
  report[length] = '\0';
  close(ends[0]);
  int status;
  CHECK(wait4(child, &status, 0, &used) == child, "wait4: %s", strerror(errno));
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "case %s: status %d\n%s", what, status,
        report);
}

struct Line {
  long members, ghosts, measured;
  char load[32], cpu[32], missed[32];
};

/// The table's line with this name.
static struct Line line_of(const char* name) {
  const char* table = strstr(report, "\nentities    thread");
  CHECK(table != NULL, "no table:\n%s", report);
  struct Line line;
  for (const char* at = strchr(table + 1, '\n') + 1; strncmp(at, "            ", 12) == 0;
       at = strchr(at, '\n') + 1) {
    char found[32];
    const int read = sscanf(at, "%31s %ld %ld %31s %31s %ld %31s", found, &line.members,
                            &line.ghosts, line.load, line.cpu, &line.measured, line.missed);
    CHECK(read == 7, "a line of %d columns:\n%s", read, report);
    if (strcmp(found, name) == 0) return line;
  }
  CHECK(0, "no line %s:\n%s", name, report);
  return line;
}

static void expect_sound(const char* name, const struct Line* line) {
  CHECK(line->measured <= line->members && line->ghosts <= line->members, "%s:\n%s", name, report);
  // What is not known is "-"; what is known is more than 0.
  if (line->measured == 0)
    CHECK(strcmp(line->cpu, "-") == 0, "%s has processor time of nobody:\n%s", name, report);
  else
    CHECK(atof(line->cpu) > 0, "%s has no processor time:\n%s", name, report);
  CHECK(strcmp(line->missed, "-") == 0 || (atof(line->missed) >= 0 && atof(line->missed) <= 100),
        "%s misses:\n%s", name, report);
}

int main(int argc, char** argv) {
  CHECK(argc > 1, "which case?");
  if (strcmp(argv[1], "run") == 0) return run_child(argc > 2 ? argv[2] : "");
  const long below = 1 + kInner + kInner * kInnermost;
  if (strcmp(argv[1], "counts") == 0) {
    run_case("nested", "4", "1ms", "1:0=25,2-3=10");
    const char* const loads[kThreads] = {"25", "-", "10", "10"};
    long ghosts = 0;
    for (int i = 0; i < kThreads; ++i) {
      const char name[2] = {(char)('0' + i), '\0'};
      const struct Line line = line_of(name);
      CHECK(line.members == kRounds * below, "thread %d ran %ld members:\n%s", i, line.members,
            report);
      CHECK(strcmp(line.load, loads[i]) == 0, "thread %d has load %s:\n%s", i, line.load, report);
      expect_sound(name, &line);
      ghosts += line.ghosts;
    }
    const struct Line all = line_of("all");
    CHECK(all.members == kThreads * kRounds * below && strcmp(all.load, "45") == 0, "all:\n%s",
          report);
    CHECK(all.ghosts == ghosts, "ghosts do not add up:\n%s", report);
    expect_sound("all", &all);
  } else if (strcmp(argv[1], "flat") == 0) {
    // Nobody is ever switched out: everything is measured, and nothing is a ghost.
    run_case("flat", "2", "off", NULL);
    const struct Line all = line_of("all");
    CHECK(all.members == 2 * kRounds && all.measured == all.members && all.ghosts == 0, "flat:\n%s",
          report);
    CHECK(strcmp(all.load, "-") == 0, "a load that nobody told:\n%s", report);
    expect_sound("all", &all);
  } else if (strcmp(argv[1], "time") == 0) {
    // One worker runs members inside of members: each nanosecond counts once, in the innermost.
    run_case("work", "1", "off", NULL);
    const struct Line all = line_of("all");
    const double process = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    CHECK(atof(all.cpu) <= process, "%s s of %f s:\n%s", all.cpu, process, report);
    CHECK(all.measured != all.members || 2 * atof(all.cpu) >= process, "%s s of %f s:\n%s", all.cpu,
          process, report);
    CHECK(all.measured != 0, "nothing was measured:\n%s", report);
  } else {
    CHECK(0, "no case %s", argv[1]);
  }
  return passed();
}
