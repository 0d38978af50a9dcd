#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_report.sh BOSK CC SCHEMA: `bosk run --report` of programs with one known fault each, and of one without: the right verdict
# comes first. And what else may happen to a report.
set -u

bosk=$(realpath "$1")
cc=$2
schema=$(realpath "$3")
here=$(dirname "$(realpath "$0")")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for variable in $(env | sed -n 's/^\(\(OMP\|GOMP\|BOSK\)_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
unset LD_PRELOAD LD_LIBRARY_PATH

failures=0
complain() { echo "check_report: $*"; failures=$((failures + 1)); }

cat >work.h <<'END'
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* Some n ns of computing. */
static inline void work(long n) {
  volatile double s = 0;
  for (long i = 0; i < n; i++) s += 1;
}
END

# build NAME < code
build() {
  { echo '#include "work.h"'; cat; } >"$1.c"
  "$cc" -O1 -g -fopenmp "$1.c" -o "$1" || exit 1
}

# Runs what it is given. Its status, and whether others had CPUs meanwhile: more than 3 % of all time that there was, by the kernel's count.
# And whether the machine was out of breath: the kernel had most of the program's own time, as few programs here make it do.
cat >beside.py <<'END'
import os, resource, subprocess, sys, time
def busy():
    ticks = [int(word) for word in open("/proc/stat").readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
def ours():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
def kernels_share():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_stime / max(used.ru_utime + used.ru_stime, .01)
before, began = busy() - ours(), time.monotonic()
status = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL).returncode
all_time = (time.monotonic() - began) * len(os.sched_getaffinity(0))
with open(sys.argv[1], "w") as others: print(int(busy() - ours() - before > .03 * all_time), file=others)
with open("breath", "w") as breath: print(int(kernels_share() > .6), file=breath)
sys.exit(status)
END

# advice words…: kind and cause of what the program's report says first. Strangers on the machine are a fault that every program has while
# they are there: what it says of them is not counted where the kernel says that there were some, and the test has none of its own.
strangers_of_ours=0
advice() {
  python3 beside.py others "$bosk" run --report r.json "$@" 2>errors || complain "$*: status $? ($(cat errors))"
  python3 - r.json "$(cat others)" $strangers_of_ours <<'END'
import json, sys
advice = json.load(open(sys.argv[1]))["processes"][0]["advice"]
if sys.argv[2] == "1" and sys.argv[3] == "0": advice = [one for one in advice if one["kind"] != "other-processes"]
print(advice[0]["kind"], advice[0]["cause"]) if advice else print("none")
END
}

# A try on a machine out of breath (reclaiming its host's memory, each fault takes a thousand times as long) says nothing of us: another one.
count_try() { [ "$(cat breath)" = 0 ] || [ "$tries" -ge 12 ] || tries=$((tries + 1)); }

# among KIND PATTERN words…: the program has two faults, and which costs more is the machine's: one of what the report says.
among() {
  local kind=$1 pattern=$2 try tries=3 got=
  shift 2
  for ((try = 1; try <= tries; try++)); do
    advice "$@" >/dev/null
    count_try
    got=$(python3 -c 'import json
for one in json.load(open("r.json"))["processes"][0]["advice"]: print(one["kind"], one["cause"])')
    grep -qE -e "^$kind .*$pattern" <<<"$got" && return
  done
  complain "$*: no '$kind … $pattern' at try $try in '$got' ($(cat r.json))"
}

# first KIND PATTERN words…: the program's first advice is of that kind, and its cause matches the pattern. It has three tries.
first() {
  local kind=$1 pattern=$2 got try tries=3
  shift 2
  for ((try = 1; try <= tries; try++)); do
    got=$(advice "$@")
    count_try
    [ "${got%% *}" = "$kind" ] && break
  done
  [ "${got%% *}" = "$kind" ] || complain "$*: '$got' at try $try, not $kind ($(cat r.json))"
  grep -qE -e "$pattern" <<<"$got" || complain "$*: no '$pattern' in '$got'"
}

build balanced <<'END'
int main(void) {
  for (int i = 0; i < 20; i++) {
#pragma omp parallel
    work(20000000);
  }
}
END
build imbalance <<'END'
int main(void) {
  for (int i = 0; i < 40; i++) {
#pragma omp parallel
    work(omp_get_thread_num() == 0 ? 16000000 : 1000000);
  }
}
END
build barriers <<'END'
int main(void) {
#pragma omp parallel
  for (int i = 0; i < 60; i++) {
    work(omp_get_thread_num() == i % 2 ? 16000000 : 1000000);
#pragma omp barrier
  }
}
END
build small <<'END'
int main(void) {
  for (int i = 0; i < 400000; i++) {
#pragma omp parallel
    work(50);
  }
}
END
build serial <<'END'
int main(void) {
  for (int i = 0; i < 10; i++) {
    work(60000000);
#pragma omp parallel
    work(10000000);
  }
}
END
build locks <<'END'
int main(void) {
#pragma omp parallel
  for (int i = 0; i < 100; i++) {
#pragma omp critical
    work(8000000);
  }
}
END
build sleeps <<'END'
int main(void) {
  for (int i = 0; i < 4; i++) {
#pragma omp parallel
    {
      usleep(150000);
      work(1000000);
    }
  }
}
END
build yields <<'END'
#include <stdatomic.h>
int main(void) {
  static atomic_int turn;
#pragma omp parallel
  for (int i = 0; i < 100; i++) {
    while (atomic_load(&turn) % omp_get_num_threads() != omp_get_thread_num()) sched_yield();
    work(8000000);
    atomic_fetch_add(&turn, 1);
  }
}
END

build polls <<'END'
int main(void) {
  static volatile int turn;
#pragma omp parallel
  for (int i = 0; i < 40; i++) {
    while (turn % omp_get_num_threads() != omp_get_thread_num()) { }
    work(12000000);
    __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST);
  }
}
END
# A loop whose counter is in memory computes, like any other. In parts: CPUs of a virtual machine may be a fifth apart in speed, and who
# had one long loop on the faster one would wait, as the report says.
build counts <<'END'
int main(void) {
#pragma omp parallel for schedule(dynamic)
  for (int part = 0; part < 48; part++)
    for (volatile int i = 0; i < 20000000; i++) { }
}
END
"$cc" -O0 -fopenmp counts.c -o counts-unoptimized

# Each region finds its threads asleep, if they do not poll. naps SERIAL: some ns between two regions.
build naps <<'END'
int main(int argc, char** argv) {
  for (int i = 0; i < 20000; i++) {
    work(atoi(argv[argc - 1]));
#pragma omp parallel
    work(20000);
  }
}
END
# A BLAS that opens teams inside of regions; its last thread has most to do.
cat >blas.c <<'END'
#include "work.h"
void dgemm(void) {
#pragma omp parallel num_threads(4)
  work(omp_get_thread_num() == 3 ? 20000000 : 100000);
}
END
"$cc" -O1 -g -fopenmp -shared -fPIC blas.c -o libopenblas.so.0 || exit 1
cat >calls_blas.c <<'END'
void dgemm(void);
int main(void) {
#pragma omp parallel num_threads(1)
  for (int i = 0; i < 20; i++) dgemm();
}
END
"$cc" -O1 -g -fopenmp calls_blas.c -o calls_blas ./libopenblas.so.0 || exit 1
build burns <<'END'
int main(void) {
  for (;;) work(1000000);
}
END
# Pages of 4 KiB, whatever the system's settings: 400 MiB that are touched once, and 8 MiB that are given back each time.
build pages <<'END'
#include <sys/prctl.h>
int main(int argc, char** argv) {
  long bytes = atol(argv[1]) << 20;
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  for (int i = 0; i < atoi(argv[2]); i++) {
    char* memory = malloc(bytes);
#pragma omp parallel for
    for (long at = 0; at < bytes; at += 64) memory[at] = 1;
    work(memory[0]);
    if (argc > 3) free(memory);
  }
}
END

if [ "$(nproc)" -ge 2 ]; then
  first none "" --threads 2 ./balanced
  first imbalance 'imbalance.c:[45]' --threads 2 ./imbalance
  first barrier 'barriers.c:[34]' --threads 2 ./barriers
  first small-regions 'small.c:.*400000 times' --threads 2 ./small
  first serial 'outside of parallel regions' --threads 2 ./serial
  first locks 'locks.c:3' --threads 2 ./locks
  first blocked 'sleeps.c' --threads 2 ./sleeps
  first yields 'yields.c' --threads 2 ./yields
  first huge-pages 'page faults.* 0 MiB are in huge pages' --threads 2 ./pages 400 1
  first page-faults 'given back and touched anew' --threads 2 ./pages 64 20 free
  OMP_WAIT_POLICY=passive among passive-wait '[0-9]* times, for 20000 short' --threads 2 ./naps 20000
  first serial 'outside of parallel' --threads 2 ./naps 10000
  first nested-blas 'libopenblas.so.0.*, 20 times' ./calls_blas
  burners=()
  for ((i = 0; i < $(nproc); i++)); do ./burns & burners+=($!); done
  strangers_of_ours=1
  first other-processes 'threads were preempted [0-9]* times' ./balanced
  strangers_of_ours=0
  kill "${burners[@]}"
  wait "${burners[@]}" 2>/dev/null
  export OMP_PROC_BIND=spread
  "$bosk" run --threads 8 --report - ./imbalance 2>&1 | grep -q 'kernel threads*.*teams\|teams of 8 on .* CPUs with a kernel thread for' || complain "bound teams are not told"
  unset OMP_PROC_BIND
  first polling 'polls.c' --threads 2 ./polls
  first none '' --threads 2 ./counts
  first none '' --threads 4 ./counts
  first none '' --threads 2 ./counts-unoptimized
fi

# The page: at most 40 lines, the verdict first.
"$bosk" run --threads 2 --report - ./imbalance >/dev/null 2>page || complain "--report - failed"
[ "$(wc -l <page)" -le 40 ] || complain "the page has $(wc -l <page) lines"
sed -n 3p page | grep -q '^verdict ' || complain "the verdict does not come first: $(cat page)"
"$bosk" run --threads 2 --report=full ./imbalance 2>&1 | grep -q '^members  *worker' || complain "full has no details"

# What was written can be shown, and compared.
"$bosk" run --threads 2 --report before.json ./imbalance >/dev/null
"$bosk" run --threads 2 --report after.json ./balanced >/dev/null
"$bosk" report show before.json | sed -n 3p | grep -q '^verdict ' || complain "report show shows no verdict"
"$bosk" report diff before.json after.json | grep -qE '^imbalance [(]idle in regions[)] +[0-9]' || complain "report diff has no figures"
for wrong in /dev/null errors no-such-file; do
  "$bosk" report show $wrong >out 2>&1
  [ $? -eq 2 ] || complain "report show $wrong: no status 2 ($(cat out))"
  [ "$(grep -c '^bosk: ' out)" -eq 1 ] || complain "report show $wrong: not one line ($(cat out))"
done

# The JSON is what its schema says.
python3 "$here/schema.py" "$schema" before.json after.json || complain "a report is not what the schema says"

# Without debug information it names object and address.
strip imbalance
"$bosk" run --threads 2 --report - ./imbalance 2>&1 | grep -q 'imbalance+0x' || complain "a stripped program has no names"

# What was done with teams, by region: placed on a machine of two nodes, opened as gangs, both or neither.
build nested <<'END'
int main(void) {
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
  for (int i = 0; i < 5; i++) {
#pragma omp parallel num_threads(2)
    work(1000000);
  }
}
END
# teams_of EXPECTED words…: "policy outer inner", keys of the counts of its two regions.
teams_of() {
  local expected=$1
  shift
  BOSK_WORKERS=4 "$bosk" run --report nested.json "$@" ./nested || complain "nested, $*: status $?"
  python3 - nested.json "$expected" <<'END' || complain "nested, $*: not '$expected'"
import json, sys
process = json.load(open(sys.argv[1]))["processes"][0]
by_level = {region["level"]: region["teams"] for region in process["regions"]}
# Who gets which ghost, and how many turns it takes, is chance.
of = lambda level: "+".join(name for name in by_level[level] if not name.endswith("_turns") and name != "taken_whole") or "-"
got = f"{process['policy']} {of(1)} {of(2)}"
if by_level[2].get("opened_as_gang", 10) != 10: got += f", not 10 gangs: {by_level[2]}"
if got != sys.argv[2]: sys.exit(f"got '{got}'")
END
  python3 "$here/schema.py" "$schema" nested.json || complain "nested, $*: not what the schema says"
}
export BOSK_SYNTHETIC="node:2 core:2 pu:1"
teams_of "spread - placed"
teams_of "gang - placed+opened_as_gang" --policy gang
BOSK_RELATION=2:gang teams_of "spread - seated+opened_as_gang"
"$bosk" run --report - --policy gang ./nested 2>&1 | grep -qE '^ {10}nested.c:[0-9]+: its members were placed .*; it was opened as a gang 10 times' ||
  complain "gangs are not told"
unset BOSK_SYNTHETIC
teams_of "None - -"

# Whatever becomes of the report, the program ends as it did.
build ends <<'END'
#include <signal.h>
int main(int argc, char** argv) {
#pragma omp parallel
  work(300000000);
  if (argc > 1) raise(atoi(argv[1]));
  return 3;
}
END
"$bosk" run --report - ./ends >/dev/null 2>&1
[ $? -eq 3 ] || complain "the exit status is lost"
"$bosk" run --report /dev/full ./ends >out 2>&1
[ $? -eq 3 ] || complain "a full disk changes the exit status"
grep -q '^bosk: cannot write the report to /dev/full' out || complain "a full disk is not told: $(cat out)"
for number in 9 15; do
  { "$bosk" run --report r.json ./ends $number; } >/dev/null 2>&1
  [ $? -eq $((128 + number)) ] || complain "signal $number is lost"
  python3 - r.json <<'END' || complain "nothing is left of a program that was killed ($number): $(cat r.json)"
import json, sys
process = json.load(open(sys.argv[1]))["processes"][0]
sys.exit(process["has_ended"] or process["shares"]["computing"] < 0.1)
END
done
[ -z "$(ls -d /dev/shm/bosk-report-* 2>/dev/null)" ] || [ -n "${BOSK_TESTS_IN_PARALLEL:-}" ] || true

# A signal for the tool is one for the program.
cat >waits.c <<'END'
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void end(int number) { _exit(number == SIGTERM ? 5 : 6); }
int main(void) {
  signal(SIGTERM, end);
#pragma omp parallel
  (void)omp_get_thread_num();
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
END
"$cc" -O1 -fopenmp waits.c -o waits || exit 1
mkfifo pipe
"$bosk" run --report r.json ./waits >pipe 2>errors &
tool=$!
read -r _ <pipe
kill -TERM $tool
wait $tool
[ $? -eq 5 ] || complain "SIGTERM does not reach the program"

# Served or not: one line. A library by the name that Clang's has in wheels stands for it.
cat >none.c <<'END'
#include <dlfcn.h>
int main(int argc, char** argv) { return argc > 1 && dlopen(argv[1], RTLD_NOW) == 0; }
END
"$cc" none.c -o none || exit 1
"$bosk" run --report - ./none >out 2>&1
[ $? -eq 0 ] && [ "$(cat out)" = "$(grep '^bosk: ./none used no OpenMP' out)" ] || complain "no OpenMP: $(cat out)"
"$bosk" run --report none.json ./none 2>out && python3 "$here/schema.py" "$schema" none.json || complain "no OpenMP: $(cat none.json)"
echo 'int nothing;' | "$cc" -xc - -shared -fPIC -o libomp-f1025659.so || exit 1
"$bosk" run --report - ./none ./libomp-f1025659.so >out 2>&1
[ $? -eq 0 ] && [ "$(cat out)" = "$(grep '^bosk: ./none (process [0-9]*): its OpenMP comes from libomp-f1025659.so' out)" ] ||
  complain "another's OpenMP: $(cat out)"
"$cc" -static none.c -o none-static 2>/dev/null && { "$bosk" run --report - ./none-static >out 2>&1; [ "$(wc -l <out)" -eq 1 ]; } ||
  complain "statically linked: $(cat out)"

# Each process has its own: those that are started, and forked children that open regions.
cat >forks.c <<'END'
#include <omp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv) {
#pragma omp parallel
  (void)omp_get_thread_num();
  pid_t child = fork();
  if (child == 0) {
#pragma omp parallel
    (void)omp_get_thread_num();
    exit(0);
  }
  waitpid(child, 0, 0);
  if (argc > 1) execl(argv[0], argv[0], (char*)0);
  return 0;
}
END
"$cc" -O1 -fopenmp forks.c -o forks || exit 1
"$bosk" run --report r.json ./forks || complain "forks: status $?"
python3 -c 'import json; p = json.load(open("r.json"))["processes"]
assert len(p) == 2 and all(sum(r["calls"] for r in q["regions"]) == 1 for q in p), p' ||
  complain "a forked child has no report of its own"

# JSON that all ranks would write is refused; names are escaped.
PMI_RANK=1 "$bosk" run --report r.json ./forks >out 2>&1
[ $? -eq 2 ] && grep -q 'put %r into its name' out || complain "ranks would overwrite each other's JSON: $(cat out)"
cp balanced $'bad\x1b[31m\xff name'
"$bosk" run --report - $'./bad\x1b[31m\xff name' 2>page
head -1 page | grep -q '^bosk report of ./bad\\x1b\[31m' || complain "control characters are not escaped: $(head -1 page | od -c | head -3)"

exit $((failures != 0))
