// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the policies let nested teams run on an invented machine of 4 nodes with 2 PUs each, seen in
// the report; and that every ghost is run whatever the policy wants. The program runs itself with the
// environment of each case, because some values hold spaces.
#include "check.h"

#include <omp.h>
#include <sys/wait.h>

enum { kWorkers = 8, kRounds = 200, kCrowdRounds = 40, kSpinRounds = 6, kLevels = 5, kNodes = 4 };

static volatile int sink;

static void work(int turns) {
  for (int i = 0; i < turns; ++i) sink = i;
}

/// One level-1 member opens all teams, while the workers of the others have nothing to do and look for
/// ghosts everywhere. After a barrier, where its members may have been switched out and made ready
/// again, each opens a region of one thread: the report shows on which worker.
static void one_opener(int opener, int size) {
  long ran = 0;
#pragma omp parallel num_threads(kWorkers) reduction(+ : ran)
  if (omp_get_thread_num() == opener) {
    for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(size) reduction(+ : ran)
      {
        work(2000);
#pragma omp barrier
#pragma omp parallel num_threads(1) reduction(+ : ran)
        {
          work(500);
          ran += 1;
        }
      }
    }
  }
  CHECK(ran == (long)kRounds * size, "%ld members ran, not %ld", ran, (long)kRounds * size);
}

/// A member of a team that is crowded on its node: it meets the others, which makes all of them ready at
/// once, waits for a lock that somebody in another node may hold, and then opens a region of one thread:
/// the report shows on which worker.
static long crowded_member(void) {
  long ran = 0;
  for (int i = 0; i < 3; ++i) {
#pragma omp barrier
    work(3000);
#pragma omp critical
    work(3000);
#pragma omp parallel num_threads(1) reduction(+ : ran)
    ran += 1;
  }
  return ran;
}

/// Level-1 members from `first` on open teams of two, which open teams of four: eight threads a member.
static void crowds(int first, int rounds) {
  long ran = 0;
#pragma omp parallel num_threads(kWorkers) reduction(+ : ran)
  if (omp_get_thread_num() >= first) {
    for (int round = 0; round < rounds; ++round) {
#pragma omp parallel num_threads(2) reduction(+ : ran)
#pragma omp parallel num_threads(4) reduction(+ : ran)
      ran += crowded_member();
    }
  }
  const long expected = 24l * (kWorkers - first) * rounds;
  CHECK(ran == expected, "%ld members ran, not %ld", ran, expected);
}

/// The two members of every team wait for each other by spinning, and all workers of the last node are
/// in such a team: nobody there is ever free to fetch a ghost.
static void spin(void) {
  long ran = 0;
#pragma omp parallel num_threads(kWorkers) reduction(+ : ran)
  if (omp_get_thread_num() >= kWorkers - 2) {
    for (int round = 0; round < kSpinRounds; ++round) {
      int arrived = 0;
#pragma omp parallel num_threads(2) reduction(+ : ran) shared(arrived)
      {
        __atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
        while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < 2) {
        }
        ran += 1;
      }
    }
  }
  CHECK(ran == 4l * kSpinRounds, "%ld members ran, not %ld", ran, 4l * kSpinRounds);
}

#ifdef OWN_STACKS
#include <pthread.h>
/// A program that imports this has members with stacks of their own.
int stack_bounds(pthread_attr_t* attributes);
int stack_bounds(pthread_attr_t* attributes) {
  return pthread_getattr_np(pthread_self(), attributes);
}
#endif

static int run_child(const char* what) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(9);
  if (strcmp(what, "pair") == 0) {
    one_opener(kWorkers - 1, 2);
  } else if (strcmp(what, "wide") == 0) {
    one_opener(kWorkers - 1, kWorkers);
  } else if (strcmp(what, "crowd") == 0) {
    crowds(kWorkers - 1, kCrowdRounds);
  } else if (strcmp(what, "crowds") == 0) {
    crowds(0, kCrowdRounds);
  } else {
    spin();
  }
  return passed();
}

static char report[64 * 1024];

/// Runs this program with the environment of the case; keeps what it says in `report`.
static void run_case(const char* what, const char* policy, const char* machine,
                     const char* period) {
  int ends[2];
  CHECK(pipe(ends) == 0, "pipe: %s", strerror(errno));
  const pid_t child = fork();
  CHECK(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv("BOSK_SYNTHETIC", machine, 1);
    setenv("BOSK_WORKERS", "8", 1);
    setenv("BOSK_REPORT", "-", 1);
    unsetenv("BOSK_TOPOLOGY_XML");
    if (policy != NULL) {
      setenv("BOSK_POLICY", policy, 1);
    } else {
      unsetenv("BOSK_POLICY");
    }
    if (period != NULL) setenv("BOSK_PREEMPT_PERIOD", period, 1);
    execl("/proc/self/exe", "policies", "run", what, (char*)NULL);
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
  CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "case %s, policy %s: status %d\n%s", what,
        policy, status, report);
  if (strstr(report, "using this machine") != NULL) {
    // No hwloc, which alone reads descriptions of machines.
    puts(report);
    exit(passed());
  }
}

/// The table's line of a node, or of a core: members at each level.
static void read_line(const char* level, int domain, long members[kLevels]) {
  char heading[32];
  snprintf(heading, sizeof heading, "\nmembers     %s ", level);
  const char* line = strstr(report, heading);
  CHECK(line != NULL, "no table of %ss in the report:\n%s", level, report);
  line = strchr(line + 1, '\n') + 1;
  for (int i = 0; i < domain; ++i) line = strchr(line, '\n') + 1;
  CHECK(strncmp(line, "            ", 12) == 0 && atoi(line + 12) == domain,
        "no line of %s %d:\n%s", level, domain, report);
  // The counts begin behind three columns of fixed width.
  char* at = (char*)line + 12 + 11 + 1 + 25;
  for (int i = 0; i < kLevels; ++i) members[i] = *at == '\n' ? 0 : strtol(at, &at, 10);
}

/// What the nodes ran, level by level; and that it adds up.
static void read_nodes(long nodes[kNodes][kLevels], const long expected[kLevels]) {
  long sum[kLevels] = {0};
  for (int node = 0; node < kNodes; ++node) {
    read_line("node", node, nodes[node]);
    for (int i = 0; i < kLevels; ++i) sum[i] += nodes[node][i];
  }
  for (int i = 0; i < kLevels; ++i)
    CHECK(sum[i] == expected[i], "%ld members at level %d, not %ld:\n%s", sum[i], i + 1,
          expected[i], report);
}

static void expect_in(const char* text) {
  CHECK(strstr(report, text) != NULL, "not said: %s\n%s", text, report);
}

static const char kMachine[] = "node:4 core:2 pu:1";

/// All members of the nested teams ran in the opener's node.
static void expect_last_node_only(const long expected[kLevels]) {
  long nodes[kNodes][kLevels];
  read_nodes(nodes, expected);
  for (int i = 1; i < kLevels; ++i)
    CHECK(nodes[kNodes - 1][i] == expected[i], "a team left its node:\n%s", report);
}

/// Every node ran what its own level-1 members opened.
static void expect_equal_nodes(const long expected[kLevels]) {
  long nodes[kNodes][kLevels];
  read_nodes(nodes, expected);
  for (int node = 0; node < kNodes; ++node)
    for (int i = 0; i < kLevels; ++i)
      CHECK(nodes[node][i] == expected[i] / kNodes, "a team left node %d:\n%s", node, report);
}

int main(int argc, char** argv) {
  CHECK(argc > 1, "which case?");
  const char* what = argv[1];
  if (strcmp(what, "run") == 0) return run_child(argc > 2 ? argv[2] : "");
  long nodes[kNodes][kLevels];
  const long pairs[kLevels] = {kWorkers, 2 * kRounds, 2 * kRounds};
  const long wide[kLevels] = {kWorkers, kWorkers * kRounds, kWorkers * kRounds};
  const long crowd[kLevels] = {kWorkers, 2 * kCrowdRounds, 8 * kCrowdRounds, 24 * kCrowdRounds};
  const long crowds[kLevels] = {kWorkers, 2 * kWorkers * kCrowdRounds, 8 * kWorkers * kCrowdRounds,
                                24 * kWorkers * kCrowdRounds};
  const long spins[kLevels] = {kWorkers, 4 * kSpinRounds};
  if (strcmp(what, "burst-stays") == 0) {
    run_case("pair", "burst:node", kMachine, NULL);
    expect_in("placed      by burst:node");
    expect_last_node_only(pairs);
    run_case("pair", "burst", kMachine, NULL);
    expect_last_node_only(pairs);
    run_case("pair", "spread@machine,burst@node", kMachine, NULL);
    expect_last_node_only(pairs);
  } else if (strcmp(what, "burst-core") == 0) {
    // A core has one PU; the smallest domain with two is the node.
    run_case("pair", "burst:core", kMachine, NULL);
    long a[kLevels];
    long b[kLevels];
    read_line("core", 6, a);
    read_line("core", 7, b);
    CHECK(a[1] + b[1] == pairs[1] && a[2] + b[2] == pairs[2], "a team left its node:\n%s", report);
  } else if (strcmp(what, "burst-crowd") == 0) {
    // Threads that are ready wait there while other workers have nothing to do.
    run_case("crowd", "burst:node", kMachine, NULL);
    expect_last_node_only(crowd);
    run_case("crowd", "burst:node", kMachine, "100us");
    expect_last_node_only(crowd);
  } else if (strcmp(what, "burst-all") == 0) {
    run_case("crowds", "burst:node", kMachine, NULL);
    expect_equal_nodes(crowds);
    // Preempted in many a place, also before they are members.
    for (int i = 0; i < 6; ++i) {
      run_case("crowds", "burst:node", kMachine, "500us");
      expect_equal_nodes(crowds);
    }
  } else if (strcmp(what, "burst-wide") == 0) {
    // Too large for a node: anybody may help.
    run_case("wide", "burst:node", kMachine, NULL);
    read_nodes(nodes, wide);
  } else if (strcmp(what, "spread") == 0) {
    run_case("pair", "spread", kMachine, NULL);
    expect_in("placed      by spread");
    read_nodes(nodes, pairs);
    run_case("wide", "spread:50", kMachine, NULL);
    read_nodes(nodes, wide);
    // It is the default where there are domains, and plays no part where there are none.
    run_case("crowds", NULL, kMachine, NULL);
    expect_in("placed      by spread");
    read_nodes(nodes, crowds);
    run_case("crowds", NULL, "core:8 pu:1", NULL);
    CHECK(strstr(report, "placed") == NULL, "a policy on one domain:\n%s", report);
  } else if (strcmp(what, "gang") == 0) {
    // Together on the smallest domain with a PU for each, and nobody else takes them.
    run_case("pair", "gang", kMachine, NULL);
    expect_in("placed      by gang");
    expect_last_node_only(pairs);
    run_case("crowds", "gang:3", kMachine, "500us");
    read_nodes(nodes, crowds);
    run_case("spin", "gang", kMachine, NULL);
    expect_last_node_only(spins);
  } else if (strcmp(what, "cache") == 0 || strcmp(what, "steal") == 0 ||
             strcmp(what, "explode") == 0 || strcmp(what, "null") == 0) {
    // Preferences: whoever has nothing to do may take what is queued elsewhere. All of it is run.
    char placed[40];
    snprintf(placed, sizeof placed, "placed      by %s", what);
    run_case("pair", what, kMachine, NULL);
    expect_in(placed);
    read_nodes(nodes, pairs);
    run_case("wide", what, kMachine, NULL);
    read_nodes(nodes, wide);
    run_case("crowds", what, kMachine, NULL);
    read_nodes(nodes, crowds);
    run_case("crowds", what, kMachine, "500us");
    read_nodes(nodes, crowds);
    run_case("spin", what, kMachine, NULL);
    read_nodes(nodes, spins);
  } else if (strcmp(what, "composed") == 0) {
    run_case("crowds", "cache@machine,gang@node", kMachine, NULL);
    read_nodes(nodes, crowds);
    run_case("pair", "spread@machine,cache:10@node", kMachine, NULL);
    expect_in("placed      by spread@machine,cache:10@node");
    read_nodes(nodes, pairs);
  } else if (strcmp(what, "spin") == 0) {
    // Only ticks start the ghosts, and only in that node.
    run_case("spin", "burst:node", kMachine, NULL);
    expect_last_node_only(spins);
    run_case("spin", "spread", kMachine, NULL);
    // Without ticks the other workers must come and help.
    run_case("spin", "burst:node", kMachine, "off");
    read_nodes(nodes, spins);
  } else if (strcmp(what, "bad") == 0) {
    run_case("pair", "wurst", kMachine, NULL);
    CHECK(strncmp(report, "bosk: BOSK_POLICY: \"wurst\" is not a policy", 42) == 0, "%s", report);
    CHECK(strstr(strchr(report, '\n'), "bosk: ") == NULL, "more than one line:\n%s", report);
    expect_in("placed      by spread");
  } else {
    CHECK(0, "no case %s", what);
  }
  return passed();
}
