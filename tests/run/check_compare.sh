#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_compare.sh BOSK LIBRARY CC WHICH_LIBRARY_C: `bosk run --compare` on scripts, and on a program of OpenMP.
set -u

bosk=$(realpath "$1")
library=$(realpath --no-symlinks "$2")
cc=$3
source=$(realpath "$4")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for variable in $(env | sed -n 's/^\(\(OMP\|GOMP\|BOSK\)_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
unset LD_PRELOAD LD_LIBRARY_PATH

failures=0
complain() { echo "check_compare: $*"; failures=$((failures + 1)); }

# compare STATUS words…: `bosk run` with these; standard output is in $said, standard error in $errors.
compare() {
  local status=$1 got
  shift
  said=$("$bosk" run "$@" 2>errors </dev/null)
  got=$?
  errors=$(cat errors)
  what="bosk run $*"
  [ "$got" -eq "$status" ] || complain "status $got, not $status: $what ($said$errors)"
}
# says PATTERN, and silent PATTERN: what was said has a line that matches (grep -E), and has none.
says() { grep -qE -e "$1" <<<"$said" || complain "no line matches '$1': $what ($said)"; }
silent() { ! grep -qE -e "$1" <<<"$said" || complain "a line matches '$1': $what ($said)"; }
# refused STATUS PATTERN words…: nothing is run, and one line on standard error says why.
refused() {
  local status=$1 pattern=$2
  shift 2
  compare "$status" "$@"
  [ -z "$said" ] || complain "something is printed: $what ($said)"
  [ "$(wc -l <<<"$errors")" -eq 1 ] || complain "not one line: $what ($errors)"
  grep -qE -e "^bosk: .*$pattern" <<<"$errors" || complain "no line matches '$pattern': $what ($errors)"
}

# script NAME: a program of these lines. There, on_bosk is a command that tells on what it runs, and run its number.
script() {
  { cat <<'END'; cat; } >"$1"
#!/bin/bash
on_bosk() { [[ ${LD_PRELOAD-} == *libgomp.so.1* ]]; }
echo >>"$0.runs"
run=$(($(wc -l <"$0.runs")))
END
  chmod +x "$1"
  rm -f "$1.runs"
}

"$cc" -O1 -fopenmp "$source" -o app || exit 1

# --- what is run, and how often
script order <<'END'
if on_bosk; then echo bosk; else echo libgomp; fi >>order.log
echo same
END
compare 0 --compare -n 3 ./order
says '^(bosk (is|takes) [0-9.]+ times .*|no difference that 3 runs can show: bosk [0-9.]+ s, libgomp [0-9.]+ s.*)$'
says '^ +wall s +from +to +CPU s +memory MiB +wall / libgomp.s$'
says '^libgomp( +[0-9.]+){5}$'
says '^bosk( +[0-9.]+){6} \([0-9.]+ to [0-9.]+\)$'
says '^exit status   0 in all runs$'
says '^output        the same in all runs$'
[ -z "$errors" ] || complain "standard error is not empty: $errors"
[ "$(tr '\n' ' ' <order.log)" = "libgomp bosk bosk libgomp libgomp bosk " ] ||
  complain "not in turn: $(cat order.log)"
rm order.log && compare 0 --compare ./order
[ "$(wc -l <order.log)" -eq 10 ] || complain "not 5 runs of each: $(cat order.log)"

compare 0 --compare=policy=spread,burst:core --runs 1 ./order
says '^libgomp '
says '^bosk  '
says '^bosk under spread '
says '^bosk under burst:core '
compare 0 --compare=threads=1,3 -n 1 ./order
for variant in 'libgomp with 1 thread' 'bosk with 1 thread' 'libgomp with 3 threads' 'bosk with 3 threads'; do
  says "^$variant "
done

# What each of them gets.
script settings <<'END'
echo "$(on_bosk && echo bosk) ${OMP_NUM_THREADS-} ${OMP_PROC_BIND-} ${BOSK_WORKERS-} ${BOSK_POLICY-}" >>settings.log
END
compare 0 --compare -n 1 --threads 2 --bind --workers 3 --policy spread ./settings
[ "$(cat settings.log)" = " 2 close  
bosk 2 close 3 spread" ] || complain "settings: $(cat settings.log)"
rm settings.log && compare 0 --compare=threads=2,4 -n 1 ./settings
[ "$(cut -d' ' -f1,2 settings.log | tr '\n' ,)" = " 2,bosk 2, 4,bosk 4," ] ||
  complain "threads: $(cat settings.log)"
rm settings.log && compare 0 --compare=policy=cache -n 1 --policy spread ./settings
[ "$(tr -s ' ' <settings.log | tr '\n' ,)" = " ,bosk spread,bosk cache," ] || complain "policies: $(cat settings.log)"

# --- the program's output
# A program of OpenMP that names its library: another one each time, whatever the environment leads to.
stock=$(./app | sed -n 's/^library //p')
for setting in A=b LD_PRELOAD="$library" LD_PRELOAD="libm.so.6 $library" LD_LIBRARY_PATH="${library%/*}" \
  "LD_PRELOAD=libbosk.so LD_LIBRARY_PATH=/nowhere:${library%/*}"; do
  # shellcheck disable=SC2086 # two variables in the last
  case $setting in
    *' LD_LIBRARY'*) said=$(env $setting "$bosk" run --compare -n 1 ./app </dev/null) ;;
    *) said=$(env "$setting" "$bosk" run --compare -n 1 ./app </dev/null) ;;
  esac
  what="with $setting"
  says '^output +differs between libgomp and bosk .*; first in line 2:$'
  says "^  libgomp  \"library ${stock:0:40}"
  says "^  bosk     \"(library ${library:0:30}|…)"
  says "its output is not libgomp's"
done

script varies <<'END'
echo "first"; echo "run $run"
END
compare 0 --compare -n 3 ./varies
says '^output        the same in all runs$'
says '^              not compared: a line that differs from run to run on libgomp, too; line 2:$'
says '^  one run  "run 1"$'
says '^  another  "run 4"$'
silent 'not libgomp'
# Other numbers of lines each time: what belongs together?
script grows <<'END'
seq "$run"
END
compare 0 --compare -n 3 ./grows
says '^output        differs from run to run on libgomp, too: nothing can be said of it; first in line 2:$'
# A difference beside a line that varies.
script beside <<'END'
echo "time $run"
on_bosk && echo 1 || echo 2
END
compare 0 --compare -n 3 ./beside
says '^output        differs between libgomp and bosk; first in line 2:$'
script varies_on_bosk <<'END'
if on_bosk && [ "$run" -gt 2 ]; then echo "run $run"; else echo always; fi
END
compare 0 --compare -n 3 ./varies_on_bosk
says '^output +differs between libgomp and bosk in 2 of 3 runs, which varies, while libgomp does not; first in line 1:$'
says '^  libgomp  "always"$'
says '^  bosk     "run 3"$'
script by_threads <<'END'
echo "$OMP_NUM_THREADS"
END
compare 0 --compare=threads=1,2 -n 2 ./by_threads
says '^output        differs with the number of threads, not between libgomp and bosk$'

script controls <<'END'
on_bosk && printf 'a\033[31m\377\tb\\\n'
on_bosk || echo 'plain'
exit 0
END
compare 0 --compare -n 1 ./controls
says '^  bosk     "a\\x1b\[31m\\xff\\tb\\\\"$'
silent $'\033'
# Much output, which differs near its end.
script much <<'END'
seq 200000
on_bosk && echo more
exit 0
END
compare 0 --compare -n 1 ./much
says '; first in line 200001:$'
says '^  libgomp  no such line$'
says '^  bosk     "more"$'

# --- its input
printf 'one\ntwo\nthree\n' >input
script reads <<'END'
cat >>reads.log
END
{ read -r _; "$bosk" run --compare -n 2 ./reads >/dev/null; } <input
[ "$(sort reads.log | uniq -c | tr -s ' \n' ' ')" = " 4 three 4 two " ] || complain "from a file: $(cat reads.log)"
rm reads.log && tail -n 2 input | "$bosk" run --compare -n 2 ./reads >/dev/null
[ "$(sort reads.log | uniq -c | tr -s ' \n' ' ')" = " 4 three 4 two " ] || complain "from a pipe: $(cat reads.log)"
"$bosk" run --compare -n 1 ./reads <&- >/dev/null || complain "without standard input"

# --- how it ends
compare 3 --compare -n 2 ./app 3
says '^every run ended with status 3$'
says '^exit status   3 in all runs$'
compare 143 --compare -n 2 ./app kill
says '^exit status   SIGTERM in all runs$'
script crashes <<'END'
on_bosk || exit 0
[ "$run" -gt 2 ] || exit 0
for i in $(seq 12); do printf 'line %s\033\n' "$i" >&2; done
kill -SEGV $$
END
compare 1 --compare -n 3 ./crashes
[ "$(head -n 2 <<<"$said")" = "bosk failed in 2 of 3 runs
times of runs that ended differently are not compared" ] || complain "does not begin with the failure: $said"
says '^exit status   libgomp: 0 in 3 runs$'
says '^              bosk: 0 in 1 run, SIGSEGV in 2$'
says '^standard error of bosk, run 2, which ended by SIGSEGV; its last lines:$'
says '^  line 3\\x1b$'
says '^  line 12\\x1b$'
silent '^  line 2'
silent $'\033'
script status <<'END'
on_bosk && exit 4
exit 5
END
compare 1 --compare -n 1 ./status
says '^libgomp failed in 1 of 1 run; bosk failed in 1 of 1 run$'
# One policy fails: the others are still compared.
script one_policy <<'END'
[ "${BOSK_POLICY-}" != null ]
END
compare 1 --compare=policy=null -n 2 ./one_policy
says '^bosk under null failed in 2 of 2 runs$'
says 'bosk \(the best of 2\)'
says '^bosk under null .* -$'

# --- ended by a signal
mkfifo ready
script hangs <<'END'
echo "run $run"
[ "$run" -le "$PERMITTED" ] && exit 0
trap 'kill $!; echo told >told; exit 0' TERM INT
sleep 100 &
echo >ready
wait
END
# ended_by SIGNAL PERMITTED: the signal comes in the run after so many; the status is in $got.
ended_by() {
  rm -f told hangs.runs
  PERMITTED=$2 env --default-signal=INT "$bosk" run --compare -n 5 ./hangs >said 2>errors </dev/null &
  read -r _ <ready
  kill -s "$1" $!
  wait $!
  got=$?
  said=$(cat said)
  what="$1 after $2 runs"
  [ -e told ] || complain "$what: the program is not told"
}
ended_by TERM 5
[ "$got" -eq 143 ] || complain "$what: status $got"
says 'differs from run to run'
says 'medians of 2 runs|2 runs can show'
grep -qx 'bosk: SIGTERM after 2 of 5 rounds' errors || complain "$what: $(cat errors)"
ended_by INT 1
[ "$got" -eq 130 ] || complain "$what: status $got"
[ -z "$said" ] || complain "$what: $said"
grep -qx 'bosk: SIGINT after 0 of 5 rounds' errors || complain "$what: $(cat errors)"

# --- what takes long says so, once
script sleeps <<'END'
on_bosk || sleep 2.5
END
compare 0 --compare -n 1 ./sleeps
[ "$errors" = "bosk: comparing; 2 runs in all" ] || complain "progress: $errors"

# --- commands for a shell
compare 0 --compare=policy=cache --threads 2 --dry-run ./app 0 "it's"
says '^# libgomp$'
says '^# bosk under cache$'
[ "$(grep -c '^OMP_NUM_THREADS=2 ' <<<"$said")" -eq 3 ] || complain "not all have the threads: $said"
[ "$(grep -c '^BOSK_POLICY=cache ' <<<"$said")" -eq 1 ] || complain "not one has the policy: $said"
[ "$(sh -c "$said" | grep '^[al]')" = "library $stock
argument 0
argument it's
library $library
argument 0
argument it's
library $library
argument 0
argument it's" ] || complain "the commands do something else: $(sh -c "$said")"

# --- what cannot be meant
refused 2 'compare=frob: there are' --compare=frob ./app
refused 2 'compare=false: there are' --compare=false ./app
refused 2 'compare=policy=: policies are wanted' --compare=policy= ./app
refused 2 'policies are wanted' --compare=policy=spread,,cache ./app
refused 2 '"frob" is not a policy' --compare=policy=frob ./app
refused 2 'numbers from 1 on are wanted' --compare=threads=2,x ./app
refused 2 'numbers from 1 on are wanted' --compare=threads=0 ./app
refused 2 'numbers from 1 on .*nesting levels cannot' --compare=threads=2/2 ./app
refused 2 'both say how many threads' --compare=threads=2 --threads 4 ./app
refused 2 'n 0: a number of runs' --compare -n 0 ./app
refused 2 'n x: a number of runs' --compare -n x ./app
refused 2 'n 1001: a number of runs' --compare -n 1001 ./app
refused 2 'give one of them' --compare --report - ./app
refused 2 'did you mean --compare=threads=2' --compare threads=2 ./app
refused 2 'did you mean --threads 4\?' -n 4 ./app
refused 2 'did you mean --threads 4\?' -n4 ./app
refused 2 'did you mean --threads 4\?' -np 4 ./app
refused 2 'compare was not given' -n x ./app
refused 2 'no program to run' --compare
refused 127 'no such program' --compare ./nosuch
refused 126 'is a directory' --compare /tmp
says '^$'
# Programs that have the same library both times.
"$cc" -O1 -fopenmp "$source" -o linked -Wl,-rpath,"${library%/*}" || exit 1
refused 126 'loads bosk.s library by itself' --compare ./linked
echo 'void of_clang(void) {}' >omp.c && "$cc" -shared -fPIC -Wl,-soname,libomp.so.5 omp.c -o libomp.so.5 || exit 1
echo 'void of_clang(void); int main(void) { of_clang(); }' >clang.c
"$cc" clang.c -Wl,--no-as-needed ./libomp.so.5 -o clang_app || exit 1
refused 126 'uses libomp.so.5 .*nothing to compare' --compare ./clang_app
"$bosk" run --policy list --compare | grep -q '^spread ' || complain "--policy list does not list"

[ "$failures" -eq 0 ] && echo "check_compare: all well"
exit "$failures"
