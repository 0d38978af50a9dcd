#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_run.sh BOSK LIBRARY CC WHICH_LIBRARY_C: `bosk run` on programs that can be served, and on those
# that cannot.
set -u

bosk=$(realpath "$1")
library=$(realpath --no-symlinks "$2")
cc=$3
source=$(realpath "$4")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# The tests of a user's environment would be tests of that user.
for variable in $(env | sed -n 's/^\(\(OMP\|GOMP\|BOSK\)_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
unset LD_PRELOAD LD_LIBRARY_PATH

failures=0
complain() { echo "check_run: $*"; failures=$((failures + 1)); }

# expect STATUS PATTERN words…: runs them; stdout and stderr together must match the pattern (grep -E).
expect() {
  local status=$1 pattern=$2 output got
  shift 2
  output=$("$@" 2>&1)
  got=$?
  [ "$got" -eq "$status" ] || complain "status $got, not $status: $* ($output)"
  grep -qE -e "$pattern" <<<"$output" || complain "no line matches '$pattern': $* ($output)"
  # One line is enough to say what is wrong.
  if [ "$status" -ge 125 ] || [ "$status" -eq 2 ]; then
    [ "$(wc -l <<<"$output")" -eq 1 ] || complain "more than one line: $* ($output)"
    grep -q '^bosk: ' <<<"$output" || complain "does not begin with 'bosk: ': $* ($output)"
  fi
}

"$cc" -O1 -fopenmp "$source" -o app || exit 1
stock=$(dirname "$("$cc" -print-file-name=libgomp.so.1)")
"$cc" -O1 -fopenmp "$source" -o with_rpath -Wl,--disable-new-dtags,-rpath,"$stock" || exit 1

# --- the policies, without a program
for policy in burst cache explode gang null spread steal; do
  expect 0 "^$policy .*submit_team" "$bosk" run --policy list
done

# --- what can be served
expect 0 "^members 6$" "$bosk" run ./app
expect 0 "^library $library\$" "$bosk" run ./app
expect 0 "^library $library\$" "$bosk" run ./with_rpath
[ "$("$bosk" run ./with_rpath | grep -c '^library')" -eq 1 ] || complain "a second libgomp is mapped"
expect 0 "^library $library\$" env PATH="$work" "$bosk" run app
expect 0 "^library $library\$" env LD_PRELOAD="libm.so.6" "$bosk" run ./app
expect 0 "^LD_PRELOAD=$library:libm.so.6 " env LD_PRELOAD="libm.so.6" "$bosk" run --dry-run ./app
expect 7 "^argument 7$" "$bosk" run ./app 7
expect 0 "^argument --threads$" "$bosk" run ./app 0 --threads
expect 0 "^argument --$" "$bosk" run -- ./app 0 --
{ "$bosk" run ./app kill; } >/dev/null 2>&1
[ $? -eq 143 ] || complain "a signal is not passed on"
[ "$(echo through | "$bosk" run cat)" = through ] || complain "standard input is not passed on"

printf '#!/bin/sh\nexec ./app "$@"\n' >script
chmod +x script
expect 0 "^library $library\$" "$bosk" run ./script

# Children that use no OpenMP say nothing, whatever is asked of the library.
output=$("$bosk" run --report - --threads 4,2 --bind sh -c 'ls /dev/null; true' 2>&1)
grep -qv 'used no OpenMP' <<<"$output" && [ "$(wc -l <<<"$output")" -eq 2 ] ||
  complain "programs without OpenMP are not left alone: $output"

# A dry run is a command that does the same.
"$bosk" run --threads 4,2 --preempt 20ms --dry-run ./app 0 "it's" >again.sh
expect 0 "^argument it's$" sh ./again.sh
expect 0 "OMP_NUM_THREADS=4,2" cat again.sh
expect 0 "OMP_MAX_ACTIVE_LEVELS=2" cat again.sh
expect 0 "BOSK_PREEMPT_PERIOD=20ms" cat again.sh
expect 0 "OMP_PLACES=cores" "$bosk" run --bind --dry-run ./app
expect 0 "OMP_PROC_BIND=spread,close" "$bosk" run --bind=spread,close --dry-run ./app
"$bosk" run --bind --places sockets --dry-run ./app | grep -q 'PLACES=cores' && complain "--places is lost"
OMP_PLACES=threads "$bosk" run --bind --dry-run ./app | grep -q PLACES && complain "OMP_PLACES is lost"
expect 0 "BOSK_REPORT=$work/r.txt" "$bosk" run --report r.txt --dry-run ./app
[ -e r.txt ] && complain "a dry run writes"

# --- the report
expect 0 "^bosk report of ./app" "$bosk" run --report - ./app
echo old >r.txt
"$bosk" run --report r.txt ./app >/dev/null || complain "--report r.txt failed"
grep -q old r.txt && complain "the report does not begin a new file"
[ "$(grep -c '^bosk report' r.txt)" -eq 1 ] || complain "no report in the file"
[ "$(wc -l <r.txt)" -lt 90 ] || complain "the report is too long"
grep -qE '^ +1 +1 +2 +2$' r.txt || complain "level 1 is not told: $(cat r.txt)"
grep -qE '^ +2 +2 +3 +6$' r.txt || complain "level 2 is not told: $(cat r.txt)"
expect 125 "no/such/folder" "$bosk" run --report no/such/folder/r.txt ./app

# Of several ranks and processes.
"$bosk" run --report 'r-%r-%p.txt' sh -c 'exec ./app' >/dev/null || complain "--report r-%r-%p.txt failed"
ls r-0-[0-9]*.txt >/dev/null 2>&1 || complain "%p and %r are not filled in: $(ls)"
for rank in 0 1; do
  PMI_RANK=$rank "$bosk" run --report 'rank-%r.txt' ./app >/dev/null
  PMI_RANK=$rank "$bosk" run --report all.txt ./app >/dev/null
done
[ "$(cat rank-0.txt rank-1.txt | grep -c '^bosk report')" -eq 2 ] || complain "no file for each rank"
[ "$(grep -c '^bosk report' all.txt)" -eq 2 ] || complain "one rank erases the report of another"

# In which mode the members ran, and why.
cat >affinity.c <<'END'
#define _GNU_SOURCE
#include <pthread.h>
int main(void) {
#pragma omp parallel
  {
    cpu_set_t set;
    pthread_getaffinity_np(pthread_self(), sizeof set, &set);
  }
  return 0;
}
END
cat >kill.c <<'END'
#include <pthread.h>
#include <signal.h>
int main(void) {
#pragma omp parallel
  pthread_kill(pthread_self(), 0);
  return 0;
}
END
"$cc" -O1 -fopenmp affinity.c -o affinity && "$cc" -O1 -fopenmp kill.c -o kill_one || exit 1
many=$(($(nproc) * 4))
expect 0 "user: user-level threads" "$bosk" run --threads $many --report - ./app
expect 0 "^ +1 region had a kernel thread for each member: ./affinity \(pthread_getaffinity_np\)" \
  "$bosk" run --threads $many --report=full ./affinity
expect 0 "^ +1 region had a kernel thread for each member: ./kill_one \(pthread_kill\)" \
  "$bosk" run --threads $many --report=full ./kill_one
expect 0 "^ .*BOSK_IDENTITY=kthread" \
  env BOSK_IDENTITY=kthread "$bosk" run --report - ./app
expect 0 "for each member: bound to places" "$bosk" run --bind --threads $many --report=full ./affinity

# A program without OpenMP says so where a report was asked for; one that ran others may have had theirs.
# (Not cat: it closes standard error when it ends.)
echo 'int main(void) { return 0; }' >serial.c && "$cc" serial.c -o serial || exit 1
expect 0 "^bosk: ./serial used no OpenMP" "$bosk" run --report - ./serial
[ -z "$("$bosk" run ./serial 2>&1)" ] || complain "a program without OpenMP is told so though nobody asked"

# Names that are nearly right.
expect 0 "^bosk: there is no variable BOSK_POLCY; did you mean BOSK_POLICY" env BOSK_POLCY=cache "$bosk" run ./app

# --- what cannot
expect 127 "nosuch: not found in PATH" "$bosk" run nosuch
expect 127 "did you mean ./app" env PATH=/nowhere "$bosk" run app
expect 127 "./nosuch: there is no such program" "$bosk" run ./nosuch
expect 126 "is a directory" "$bosk" run /tmp
cp app plain && chmod -x plain
expect 126 "is not executable" "$bosk" run ./plain
echo "just words" >words && chmod +x words
expect 126 "neither a program nor a script" "$bosk" run ./words
printf '#!/no/such/interpreter\n' >orphan && chmod +x orphan
expect 127 "/no/such/interpreter" "$bosk" run ./orphan
if "$cc" -static -O1 -fopenmp "$source" -o static 2>/dev/null; then
  expect 126 "statically linked" "$bosk" run ./static
fi
# Byte 4 of an ELF file: 1 is 32 bit. Bytes 18 and 19: the processor; 8 is MIPS.
cp app bits32 && printf '\001' | dd of=bits32 bs=1 seek=4 conv=notrunc status=none
expect 126 "32-bit" "$bosk" run ./bits32
cp app mips && printf '\010\000' | dd of=mips bs=1 seek=18 conv=notrunc status=none
expect 126 "another processor" "$bosk" run ./mips
head -c 100 app >shortened && chmod +x shortened
expect 126 "damaged" "$bosk" run ./shortened
if [ "$(id -u)" -eq 0 ]; then
  cp app setuid && chown nobody setuid && chmod u+s setuid
  expect 126 "rights of its own" "$bosk" run ./setuid
fi

# The tool without its library.
mkdir -p alone/bin && cp "$bosk" alone/bin/bosk
expect 125 "alone/lib/libgomp.so.1" alone/bin/bosk run ./app

# --- bad options
expect 2 "no program to run" "$bosk" run
expect 2 "has no option --nonsense" "$bosk" run --nonsense ./app
expect 2 '"frob" is not a policy .*burst.*cache.*explode.*gang.*null.*spread.*steal' \
  "$bosk" run --policy frob ./app
expect 2 '"most" is not a slack' "$bosk" run --policy cache:most ./app
expect 2 'the policy null takes no argument' "$bosk" run --policy null:3 ./app
expect 2 '"l9" is not a level' "$bosk" run --policy spread@l9 ./app
expect 2 "threads 4,x" "$bosk" run --threads 4,x ./app
expect 2 "threads 0" "$bosk" run --threads 0 ./app
expect 2 "places sockts: there are threads, cores, sockets" "$bosk" run --bind --places sockts ./app
expect 2 "places \{0,1" "$bosk" run --places "{0,1" ./app
expect 0 "OMP_PLACES=.?\{0\}" "$bosk" run --places "{0}" --dry-run ./app
expect 2 "did you mean --threads 4" "$bosk" run -n 4 ./app
expect 2 "did you mean --threads 4" "$bosk" run -n4 ./app
expect 2 "did you mean --report - ./app" "$bosk" run --report ./app
expect 2 "bind=near" "$bosk" run --bind=near ./app
expect 2 "wait never" "$bosk" run --wait never ./app
expect 2 "preempt soon" "$bosk" run --preempt soon ./app
expect 2 "stack big" "$bosk" run --stack big ./app
expect 2 "workers 0" "$bosk" run --workers 0 ./app
expect 2 "nested=x" "$bosk" run --nested=x ./app
expect 2 "give one of them" "$bosk" run --synthetic "pu:2" --topology-xml x ./app
expect 125 "x.xml" "$bosk" run --topology-xml x.xml ./app
expect 125 "frog" "$bosk" run --synthetic "frog:2" ./app
expect 2 "no command frob" "$bosk" frob
expect 0 "^bosk [0-9]" "$bosk" --version
expect 0 "bosk run --report - ./app" "$bosk" run --help

[ "$failures" -eq 0 ] && echo "check_run: all well"
exit "$failures"
