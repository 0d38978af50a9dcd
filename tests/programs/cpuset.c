// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A process in a cpuset, as batch systems and containers have it: threads stay inside, and the work gets done.
//   cpuset begins [CPUS [NODES]]       the process finds itself in it
//   cpuset shrinks [CPUS [NODES]]      it is put there while its regions run; the rest of the CPUs is gone
//   cpuset grows [CPUS [NODES]]        it begins there and is let out while its regions run
//   cpuset run CPUS NODES COMMAND…     a command in it
// CPUS and NODES as the kernel writes lists; without them one CPU and the nodes of this process. The process that was
// started makes a group below its own (cgroups version 1 or 2) and takes it away again. Status 77: it may not.
#include "bosk_check.h"

#include <fcntl.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { kMembers = 5, kInner = 3, kThreads = 40, kCannot = 77, kPage = 4096 };

static char group[PATH_MAX];          ///< the folder of the group that is made
static char parent[PATH_MAX];         ///< the folder of the group it is made in
static cpu_set_t given;               ///< CPUs of the process at its start
static cpu_set_t inside;              ///< those of the cpuset
static const char* memory_list = "";  ///< nodes that memory has to be on; empty: any
static int bound;                     ///< by what the user said
static int in_lab;                    ///< docs/lab.md

// --- The group -------------------------------------------------------------------------------------

/// Status of the file; a control file takes a write whole or not at all.
static int put(const char* folder, const char* file, const char* text) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : errno;
  close(fd);
  return error;
}

static int get(const char* folder, const char* file, char* text, size_t size) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = fd >= 0 ? read(fd, text, size - 1) : -1;
  if (fd >= 0) close(fd);
  text[length > 0 ? length : 0] = '\0';
  text[strcspn(text, "\n")] = '\0';
  return length > 0;
}

/// Where cpusets are mounted: version 1 has a tree for them, version 2 one for all. 0: nowhere.
static int find_tree(char* where) {
  FILE* mounts = fopen("/proc/self/mounts", "r");
  CHECK(mounts != NULL, "/proc/self/mounts: %s", strerror(errno));
  char path[PATH_MAX];
  char type[64];
  char options[1024];
  char controllers[256];
  int version = 0;
  while (version != 1 &&
         fscanf(mounts, "%*s %4095s %63s %1023s %*d %*d", path, type, options) == 3) {
    if (!strcmp(type, "cgroup") && strstr(options, "cpuset"))
      version = 1;
    else if (!strcmp(type, "cgroup2") &&
             get(path, "cgroup.controllers", controllers, sizeof controllers) &&
             strstr(controllers, "cpuset"))
      version = 2;
    else
      continue;
    strcpy(where, path);
  }
  fclose(mounts);
  return version;
}

/// This process's own group in that tree.
static void find_own(int version, char* path) {
  FILE* groups = fopen("/proc/self/cgroup", "r");
  CHECK(groups != NULL, "/proc/self/cgroup: %s", strerror(errno));
  char line[PATH_MAX];
  path[0] = '\0';
  while (fgets(line, sizeof line, groups)) {
    line[strcspn(line, "\n")] = '\0';
    char* const names = strchr(line, ':');
    char* const own = names ? strchr(names + 1, ':') : NULL;
    if (own == NULL) continue;
    *own = '\0';
    if (version == 1 ? strstr(names, "cpuset") != NULL : names[1] == '\0') strcpy(path, own + 1);
  }
  fclose(groups);
}

/// Takes the last component away; 0: there is none.
static int go_up(char* path) {
  char* slash = strrchr(path, '/');
  if (slash == NULL || path[1] == '\0') return 0;
  *slash = '\0';
  return 1;
}

/// As the kernel writes lists: 0-3,8.
static void read_list(const char* text, cpu_set_t* set) {
  CPU_ZERO(set);
  for (char* at = (char*)text; *at >= '0' && *at <= '9'; at += *at == ',') {
    long cpu = strtol(at, &at, 10);
    const long last = *at == '-' ? strtol(at + 1, &at, 10) : cpu;
    for (; cpu <= last && cpu < CPU_SETSIZE; ++cpu) CPU_SET((int)cpu, set);
  }
}

static void cannot(const char* what, const char* why) {
  printf("SKIPPED, no cpuset can be made here: %s: %s\n", what, why);
  exit(kCannot);
}

static void make_group(const char* cpus, const char* nodes) {
  char tree[PATH_MAX];
  char own[PATH_MAX];
  char around[256] = "";
  const int version = find_tree(tree);
  if (version == 0) cannot("/proc/self/mounts", "no cgroup tree with cpusets");
  find_own(version, own);
  // In version 2 a group gets controllers from the one around it, which need not pass all of them on; and
  // in a container the names of groups may be those outside. So upwards until it works.
  int error = ENOENT;
  do {
    snprintf(parent, sizeof parent, "%.2000s%.2000s", tree, strcmp(own, "/") ? own : "");
    snprintf(group, sizeof group, "%.4000s/bosk-test-%ld", parent, (long)getpid());
    if (mkdir(group, 0755) != 0) {
      error = errno;
      continue;
    }
    // Version 1 has a value of its own in every group, and refuses processes where it is empty.
    if (version == 1 && *nodes == '\0') get(parent, "cpuset.mems", around, sizeof around);
    error = put(group, "cpuset.cpus", cpus);
    if (error == 0 && (*nodes || *around))
      error = put(group, "cpuset.mems", *nodes ? nodes : around);
    if (error != 0) rmdir(group);
  } while (error != 0 && go_up(own));
  if (error != 0) cannot(group, strerror(error));
}

static void enter(const char* folder) {
  char pid[32];
  snprintf(pid, sizeof pid, "%ld", (long)getpid());
  const int error = put(folder, "cgroup.procs", pid);
  CHECK(error == 0, "%s: %s", folder, strerror(error));
}

// --- What is looked at -----------------------------------------------------------------------------

/// The kernel's word on the calling kernel thread. `exact`: it may use all of them, too.
static void check_cpus(const char* whose, const cpu_set_t* allowed, int exact) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CHECK(syscall(SYS_sched_getaffinity, 0, sizeof mask, &mask) > 0, "%s: errno %d", whose, errno);
  cpu_set_t both;
  CPU_AND(&both, &mask, allowed);
  CHECK(CPU_EQUAL(&both, &mask), "%s may use %d CPUs, %d of them outside of the cpuset", whose,
        CPU_COUNT(&mask), CPU_COUNT(&mask) - CPU_COUNT(&both));
  CHECK(!exact || CPU_EQUAL(&mask, allowed), "%s may use %d CPUs of the cpuset's %d", whose,
        CPU_COUNT(&mask), CPU_COUNT(allowed));
  unsigned cpu = 0;
  CHECK(syscall(SYS_getcpu, &cpu, NULL, NULL) == 0 && CPU_ISSET((int)cpu, allowed),
        "%s is on CPU %u, outside of the cpuset", whose, cpu);
}

/// A page that the caller touches first is on a node of the cpuset.
static void check_memory(const char* whose) {
  if (memory_list[0] == '\0') return;
  char* page =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  CHECK(page != MAP_FAILED, "mmap: errno %d", errno);
  void* address = page;
  int node = -1;
  CHECK(syscall(SYS_move_pages, 0, 1l, &address, NULL, &node, 0) == 0, "move_pages: errno %d",
        errno);
  cpu_set_t nodes;
  read_list(memory_list, &nodes);
  CHECK(node >= 0 && CPU_ISSET(node, &nodes), "memory of %s is on node %d", whose, node);
  munmap(page, kPage);
}

struct work {
  const cpu_set_t* allowed;
  int exact;
};

static void* thread_body(void* argument) {
  const struct work* work = argument;
  check_cpus("a thread of bosk", work->allowed, work->exact);
  bosk_thread_yield();
  return argument;
}

static void threads_in_bubble(const struct work* work) {
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.bubble = bubble;
  bosk_thread_t made[kThreads];
  for (int i = 0; i < kThreads; ++i)
    OK(bosk_thread_create(&made[i], &attr, thread_body, (void*)work));
  OK(bosk_bubble_wake(bubble, NULL));
  for (int i = 0; i < kThreads; ++i) {
    void* result = NULL;
    OK(bosk_thread_join(made[i], &result));
    CHECK(result == work, "a thread ended with something else");
  }
  OK(bosk_bubble_destroy(bubble));
}

/// A region of each kind; what is not `allowed` is nobody's.
static void one_round(const cpu_set_t* allowed, int exact) {
  long sum = 0;
  int turn = 0;
#pragma omp parallel num_threads(kMembers) reduction(+ : sum) shared(turn)
  {
    check_cpus("a member", allowed, exact);
    check_memory("a member");
    // Each waits for the one before it without giving way: whoever has the CPU has to lose it. Not where
    // CPUs are emulated in turn, which takes minutes.
    while (!in_lab && __atomic_load_n(&turn, __ATOMIC_ACQUIRE) != omp_get_thread_num()) {
    }
    __atomic_store_n(&turn, omp_get_thread_num() + 1, __ATOMIC_RELEASE);
#pragma omp barrier
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 100; ++i) sum += i;
#pragma omp parallel num_threads(kInner) reduction(+ : sum)
    {
      check_cpus("an inner member", allowed, exact);
#pragma omp barrier
      ++sum;
    }
#pragma omp single
    for (int i = 0; i < 20; ++i) {
#pragma omp task
      check_cpus("a task", allowed, exact);
    }
  }
  CHECK(sum == 4950 + kMembers * kInner, "the sum is %ld", sum);
  const struct work work = {allowed, exact};
  const char* identity =
      getenv("BOSK_IDENTITY");  // without user-level threads there are none of bosk
  if (identity == NULL || strcmp(identity, "kthread") != 0) threads_in_bubble(&work);
}

static void* new_thread(void* argument) {
  const struct work* work = argument;
  check_cpus("a new thread", work->allowed, work->exact);
  return NULL;
}

static void rounds(int count, const cpu_set_t* allowed, int exact) {
  if (in_lab) count = 2;
  for (int i = 0; i < count; ++i) {
    one_round(allowed, exact);
    // Idle workers look around, and sleep.
    if (i % 8 == 0) usleep(2000);
  }
  check_cpus("main", allowed, exact);
  struct work work = {allowed, exact};
  pthread_t made;
  CHECK(pthread_create(&made, NULL, new_thread, &work) == 0, "no thread");
  pthread_join(made, NULL);
}

/// Somebody else, as a batch system is, changes where the process is, while its regions run.
static void change(const char* folder) {
  const long pid = (long)getpid();
  const pid_t changer = fork();
  CHECK(changer >= 0, "fork: errno %d", errno);
  if (changer == 0) {
    char text[32];
    snprintf(text, sizeof text, "%ld", pid);
    _exit(put(folder, "cgroup.procs", text));
  }
  int status = 0;
  pid_t ended = 0;
  while (ended == 0) {
    one_round(&given, 0);
    ended = waitpid(changer, &status, WNOHANG);
  }
  CHECK(ended == changer && status == 0, "%s: %s", folder, strerror(WEXITSTATUS(status)));
}

// --- The process in it -----------------------------------------------------------------------------

static int in_it(const char* mode, const char* nodes) {
  // It ends before the process that takes the group away.
  const char* seconds = getenv("BOSK_TEST_ALARM");
  arm_watchdog(seconds && atoi(seconds) > 10 ? (unsigned)atoi(seconds) - 5 : 100u);
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  if (!strcmp(mode, "shrinks")) {
    rounds(5, &given, !bound);
    change(group);
  } else {
    CHECK(omp_get_num_procs() == CPU_COUNT(&inside), "%d processors in a cpuset of %d CPUs",
          omp_get_num_procs(), CPU_COUNT(&inside));
  }
  memory_list = nodes;
  rounds(16, &inside, !bound);
  if (!strcmp(mode, "grows")) {
    memory_list = "";
    char around[1024];
    CHECK(get(parent, "cpuset.effective_cpus", around, sizeof around) ||
              get(parent, "cpuset.cpus.effective", around, sizeof around),
          "%s does not tell its CPUs", parent);
    read_list(around, &given);
    change(parent);
    // Whether threads get the new CPUs depends on the kernel (docs/binding.md, limits).
    rounds(16, &given, 0);
  }
  return passed();
}

static int start(char** argv) {
  if (strcmp(argv[1], "shrinks") != 0) enter(group);
  if (!strcmp(argv[1], "run")) {
    execvp(argv[4], argv + 4);
    CHECK(0, "%s: %s", argv[4], strerror(errno));
  }
  setenv("CPUSET_GROUP", group, 1);
  setenv("CPUSET_PARENT", parent, 1);
  // Afresh: the runtime reads the process's CPUs when it starts.
  execv("/proc/self/exe", argv);
  CHECK(0, "execv: errno %d", errno);
}

int main(int argc, char** argv) {
  CHECK(argc >= 2,
        "usage: cpuset begins|shrinks|grows [CPUS [NODES]], cpuset run CPUS NODES COMMAND…");
  const char* mode = argv[1];
  const int run = !strcmp(mode, "run");
  CHECK(run ? argc >= 5
            : !strcmp(mode, "begins") || !strcmp(mode, "shrinks") || !strcmp(mode, "grows"),
        "no mode %s", mode);
  CPU_ZERO(&given);
  CHECK(sched_getaffinity(0, sizeof given, &given) == 0, "getaffinity: errno %d", errno);
  char cpus[512] = "";
  if (argc > 2) {
    snprintf(cpus, sizeof cpus, "%s", argv[2]);
  } else {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &given)) snprintf(cpus, sizeof cpus, "%d", cpu);
  }
  read_list(cpus, &inside);
  const char* nodes = argc > 3 ? argv[3] : "";
  bound = getenv("OMP_PROC_BIND") != NULL;
  in_lab = getenv("BOSK_LAB") != NULL;
  if (getenv("CPUSET_GROUP") != NULL) {
    snprintf(group, sizeof group, "%s", getenv("CPUSET_GROUP"));
    snprintf(parent, sizeof parent, "%s", getenv("CPUSET_PARENT"));
    const char* told = getenv("CPUSET_GIVEN");
    CHECK(told != NULL, "nothing was told");
    read_list(told, &given);
    return in_it(mode, nodes);
  }
  CHECK(!run || argc > 4, "run what?");
  char list[CPU_SETSIZE * 5] = "";
  size_t length = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &given))
      length +=
          (size_t)snprintf(list + length, sizeof list - length, "%s%d", length ? "," : "", cpu);
  if (CPU_COUNT(&given) < 2) cannot("this process", "it has one CPU already");
  make_group(cpus, nodes);
  setenv("CPUSET_GIVEN", list, 1);
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) return start(argv);
  int status = 1;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  // A process that has been waited for has left its group.
  const int removed = rmdir(group) == 0 ? 0 : errno;
  CHECK(pid > 0, "fork failed");
  CHECK(removed == 0, "%s cannot be taken away: %s", group, strerror(removed));
  CHECK(WIFEXITED(status), "signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}
