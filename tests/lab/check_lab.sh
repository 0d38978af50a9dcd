#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_lab.sh BOSK PART: `bosk lab` as a command. PART: start (fetches the kernel if need be), words (nothing
# is started), guest, cache.
set -u

bosk=$(realpath "$1")
part=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# The smallest machine starts fastest.
small=(--nodes 2 --cpus-per-node 1 --mem 512M)

failures=0
complain() {
  echo "check_lab: $*"
  failures=$((failures + 1))
}

# expect STATUS PATTERN words…: standard output and error together must match (grep -E). Where bosk itself
# fails, that is one line; what follows it is the guest's console, indented.
expect() {
  local status=$1 pattern=$2 output got
  shift 2
  output=$("$@" 2>&1)
  got=$?
  [ "$got" -eq "$status" ] || complain "status $got, not $status: $* ($output)"
  grep -qE -e "$pattern" <<<"$output" || complain "no line matches '$pattern': $* ($output)"
  case $status in
    2 | 12[4-7])
      [ "$(grep -cv '^  ' <<<"$output")" -eq 1 ] || complain "more than one line: $* ($output)"
      grep -q '^bosk: ' <<<"$output" || complain "does not begin with 'bosk: ': $* ($output)"
      ;;
  esac
}
lab() { "$bosk" lab "$@"; }
no_qemu_is_left() {
  local cmdline
  for cmdline in /proc/[0-9]*/cmdline; do
    # Ours have this folder's name in their environment; those of others are none of our business.
    { tr '\0' ' ' <"$cmdline"; } 2>/dev/null | grep -q '^qemu-system-x86_64' || continue
    { tr '\0' '\n' <"${cmdline%cmdline}environ"; } 2>/dev/null | grep -qx "LAB_CHECK=$work" &&
      complain "a QEMU is left behind: $cmdline"
  done
}
export LAB_CHECK=$work

check_start() { expect 0 "^up$" lab "${small[@]}" -- echo up; }

check_words() {
  expect 2 "nodes 0: a machine has at least one" lab --nodes 0 -- true
  expect 2 "nodes 65: there can be 64" lab --nodes 65 -- true
  expect 2 "nodes four: not a number" lab --nodes four -- true
  expect 2 "^bosk: 256 CPUs: the lab can have 255" lab --nodes 16 --cpus-per-node 16 -- true
  expect 2 "node 0 needs a CPU" lab --nodes 2 --cpus-per-node 0,4 -- true
  expect 2 "cpus-per-node 4,4: 2 values for 3 nodes" lab --nodes 3 --cpus-per-node 4,4 -- true
  expect 2 "node 0 needs 256 MiB" lab --mem 0,1G,1G,1G -- true
  expect 2 "node 1 needs 64 MiB" lab --nodes 2 --mem 1G,3M -- true
  expect 2 "node 2 has neither" lab --nodes 3 --cpus-per-node 1,1,0 --mem 1G,1G,0 -- true
  expect 2 "mem 1X: not a size" lab --mem 1X -- true
  expect 2 "mem 9999999G: more than" lab --mem 9999999G -- true
  expect 2 "timeout 0: not a number of seconds" lab --timeout 0 -- true
  expect 2 "no command to run" lab
  expect 2 "has no option --frob" lab --frob -- true
  expect 2 "give one of them" lab --like x.xml --nodes 2 -- true
  expect 2 "shell and a command" lab --shell -- true
  expect 2 "env =x: not NAME" lab --env =x -- true
  expect 0 "bosk lab --like server.xml" lab --help

  expect 2 "nofile: No such file.*flat, line, ring" lab --distances nofile -- true
  expect 2 "cube: 6 nodes are no power of two" lab --nodes 6 --distances cube -- true
  printf '10 20\n' >d
  expect 2 "d: 1 lines for 2 nodes" lab --nodes 2 --distances d -- true
  printf '10 20 30\n20 10 30\n' >d
  expect 2 "d: line 1: 3 numbers for 2 nodes" lab --nodes 2 --distances d -- true
  printf '# mine\n10 20\n20 11\n' >d
  expect 2 "d: line 3: a node's distance to itself is 10, not 11" lab --nodes 2 --distances d -- true
  printf '10 255\n20 10\n' >d
  expect 2 "d: line 1: 255 is not a distance" lab --nodes 2 --distances d -- true
  printf '10 x\n20 10\n' >d
  expect 2 "d: line 1: x is not a number" lab --nodes 2 --distances d -- true
  printf '10 20\n20 10\n20 20\n' >d
  expect 2 "d: line 3: more lines than the 2 nodes" lab --nodes 2 --distances d -- true

  expect 2 "machine.xml" lab --like machine.xml -- true
  echo '<nonsense' >machine.xml
  expect 2 "machine.xml is not hwloc XML" lab --like machine.xml -- true
  expect 2 "kernel nosuch: No such file.*auto, debian, newer, built" lab --kernel nosuch -- true
  expect 2 "kernel machine.xml: neither a kernel" lab --kernel machine.xml -- true
  printf '!<arch>\nnonsense' >broken.deb
  expect 125 "broken.deb cannot be unpacked as a linux-image package" \
    env XDG_CACHE_HOME="$work/cache" "$bosk" lab --kernel broken.deb -- true
  [ -z "$(ls cache/bosk/lab)" ] || complain "a broken package leaves something: $(ls -A cache/bosk/lab)"
  expect 125 "output /proc/x" lab --output /proc/x -- true
  expect 125 "there is no qemu-system-x86_64: apt-get install qemu-system-x86" \
    env PATH="$work" "$bosk" lab -- true
  mkdir few && ln -s "$(command -v qemu-system-x86_64)" "$(command -v sha256sum)" few/
  expect 125 "a kernel cannot be built here: apt-get install gcc make flex bison" \
    env PATH="$work/few" XDG_CACHE_HOME="$work/cache" "$bosk" lab --kernel built -- true
  [ -z "$(ls cache/bosk/lab)" ] || complain "without a compiler there is $(ls -A cache/bosk/lab)"
  mkdir -p alone/bin && cp "$bosk" alone/bin/bosk
  expect 125 "alone/lib/bosk/lab-init" alone/bin/bosk lab -- true
}

check_guest() {
  local output got
  # --- what a program gives to its caller
  expect 0 "^node distances:" lab "${small[@]}" -- numactl -H
  expect 7 "^out$" lab "${small[@]}" -- sh -c 'echo out; exit 7'
  output=$(lab "${small[@]}" -- sh -c 'echo out; echo err >&2' 2>err)
  [ "$output" = out ] || complain "standard output: $output"
  [ "$(cat err)" = err ] || complain "standard error: $(cat err)"
  # In one file they stay in order.
  lab "${small[@]}" -- sh -c 'for i in 1 2 3 4 5 6; do echo $i; echo $i >&2; done' >both 2>&1
  [ "$(tr -d '\n' <both)" = 112233445566 ] || complain "the order is lost: $(cat both)"
  # Nothing is changed on the way, in either direction.
  head -c 700000 /dev/urandom >random
  lab "${small[@]}" -- cat <random | cmp - random || complain "bytes are changed"
  # A reader that leaves ends it.
  lab "${small[@]}" --timeout 60 -- yes 2>/dev/null | head -n 1 >one
  [ "$(cat one)" = y ] || complain "yes says $(cat one)"
  expect 127 "^bosk: nosuch: there is no such program in the guest" lab "${small[@]}" -- nosuch
  expect 126 "^bosk: ./random: the guest cannot run it" lab "${small[@]}" -- ./random
  # shellcheck disable=SC2016 # for the shell in the guest
  lab "${small[@]}" -- sh -c 'kill -SEGV $$'
  got=$?
  [ $got -eq 139 ] || complain "a signal becomes $got"

  # --- its surroundings
  [ "$(lab "${small[@]}" -- pwd)" = "$work" ] || complain "not the same directory"
  export OMP_PLACES=cores TWO='second words' SECRET=1
  output=$(lab "${small[@]}" --env TWO --env THREE=3 -- env)
  grep -qx OMP_PLACES=cores <<<"$output" || complain "OMP_PLACES does not arrive"
  grep -qx 'TWO=second words' <<<"$output" || complain "--env TWO does not arrive"
  grep -qx THREE=3 <<<"$output" || complain "--env THREE=3 does not arrive"
  ! grep -q SECRET <<<"$output" || complain "SECRET arrives"
  lab "${small[@]}" --output kept -- sh -c 'echo kept >kept/file; echo lost >lost; cat kept/file' >seen 2>note
  [ "$(cat kept/file seen)" = "$(printf 'kept\nkept')" ] || complain "the output folder is not written"
  [ ! -e lost ] || complain "the guest writes on the host"
  grep -q "^bosk: $work/lost was written and is gone" note || complain "nothing is said of lost files: $(cat note)"
  [ "$(wc -l <note)" -eq 1 ] || complain "too much is said: $(cat note)"

  expect 2 "output /: the guest's root" lab --output / -- true
  # Closed standard files stay closed: nothing of ours goes there.
  lab "${small[@]}" -- sh -c 'cat; echo out; echo err >&2' <&- >only_out 2>&-
  [ "$(cat only_out)" = out ] || complain "with closed files: $(cat only_out)"
  lab "${small[@]}" --output kept -- sh -c 'echo out; echo err >&2; echo 3 >kept/file' >&- 2>only_err
  [ "$(cat only_err kept/file)" = "$(printf 'err\n3')" ] || complain "with no output: $(cat only_err)"
  # Emulated clocks are set right: what is written here is not of tomorrow there.
  touch now
  lab "${small[@]}" -- sh -c 'touch later; [ later -nt now ]' 2>/dev/null || complain "the guest's clock is late"

  # --- how it ends
  # On a machine that is busy enough the guest has not even started by then.
  expect 124 "^bosk: the (program had not ended|guest had not started) after 20 s" \
    lab "${small[@]}" --timeout 20 -- sleep 1000
  expect 125 "^bosk: the guest's kernel panicked: .*sysrq" \
    lab "${small[@]}" --root -- sh -c 'echo c >/proc/sysrq-trigger; sleep 60'
  local signal
  for signal in INT TERM; do
    # A background job of a script ignores SIGINT; this one must not.
    env --default-signal=INT "$bosk" lab "${small[@]}" -- sh -c 'echo up; sleep 1000' >up &
    while ! grep -q up up && kill -0 $! 2>/dev/null; do sleep 0.2; done
    kill -$signal $!
    wait $!
    got=$?
    [ $got -eq $((128 + $(kill -l $signal))) ] || complain "SIG$signal: status $got"
  done
  # Killed, it can say nothing any more; QEMU goes all the same.
  "$bosk" lab "${small[@]}" -- sh -c 'echo up; sleep 1000' >up &
  while ! grep -q up up && kill -0 $! 2>/dev/null; do sleep 0.2; done
  kill -KILL $!
  wait $! 2>/dev/null
  sleep 1
  no_qemu_is_left
}

# The cache: a disk that is full, two at once, and one that is killed.
check_cache() {
  local real pinned got
  mkdir cache
  if mount -t tmpfs -o size=90m tmpfs cache 2>/dev/null; then
    expect 125 "^bosk: .*MiB left there" \
      sh -c 'XDG_CACHE_HOME=$1/cache "$2" lab -- true 2>&1 | grep -v "fetching\|MiB$"; exit 125' sh "$work" "$bosk"
    [ -z "$(find cache/bosk/lab -mindepth 1 -not -name '.*.lock')" ] ||
      complain "a full disk leaves $(find cache/bosk/lab)"
    umount cache
  else
    echo "check_lab: no file system can be mounted here: the full disk was not tried"
  fi
  export XDG_CACHE_HOME=$work/cache

  # A package that is not what it was when it was tried.
  mkdir other
  real=$(command -v apt-get)
  printf '#!/bin/sh\n%s "$@" && case $* in *download*) echo x >>"$(echo ./*.deb)";; esac\n' "$real" >other/apt-get
  chmod +x other/apt-get
  expect 125 "^bosk: .*SHA-256 is [0-9a-f]{64}, not [0-9a-f]{64}: it is not used" \
    sh -c 'PATH=$1/other:$PATH "$2" lab -- true 2>&1 | grep -v "fetching\|MiB$"; exit 125' sh "$work" "$bosk"
  [ -z "$(ls cache/bosk/lab)" ] || complain "a wrong package leaves $(ls cache/bosk/lab)"
  # An archive that has dropped the version: the newest of the series.
  # shellcheck disable=SC2016 # for the script
  printf '#!/bin/sh\ncase $* in *=6.1.*) echo "E: no such version"; exit 100;; esac\nexec %s "$@"\n' "$real" >other/apt-get
  expect 0 "Debian no longer has linux-image-6.1.*: taking 6.1.*, of the same series" \
    env PATH="$work/other:$PATH" "$bosk" lab "${small[@]}" -- true
  # Which is then found without asking: as if another had been the newest.
  pinned=$(ls cache/bosk/lab)
  mv "cache/bosk/lab/$pinned" cache/bosk/lab/debian-6.1.999-1
  echo "${pinned#debian-}" >cache/bosk/lab/debian-6.1.999-1/instead-of
  [ "$(lab "${small[@]}" -- echo found 2>&1)" = found ] || complain "the stand-in is not found"
  rm -r cache

  # One that is told to stop cleans up.
  "$bosk" lab "${small[@]}" -- true 2>first &
  while ! grep -q fetching first && kill -0 $! 2>/dev/null; do sleep 0.1; done
  kill -TERM $!
  wait $!
  got=$?
  [ $got -eq 143 ] || complain "stopped while it fetches: status $got ($(cat first))"
  [ -z "$(find cache -name '*.draft')" ] || complain "stopped while it fetches, it leaves $(ls -A cache/bosk/lab)"

  # The first is killed while it fetches or unpacks; the others clean up after it and share the work.
  "$bosk" lab "${small[@]}" -- true 2>first &
  while ! grep -q fetching first && kill -0 $! 2>/dev/null; do sleep 0.1; done
  sleep 0.5
  kill -KILL $! && wait $! 2>/dev/null
  [ -z "$(ls cache/bosk/lab)" ] || complain "a killed one leaves $(ls cache/bosk/lab)"
  "$bosk" lab "${small[@]}" -- echo one >one 2>&1 &
  expect 0 "^two$" lab "${small[@]}" -- echo two
  wait $! || complain "the first of two fails: $(cat one)"
  grep -q "^one$" one || complain "the first of two says: $(cat one)"
  [ "$(ls cache/bosk/lab | wc -l)" -eq 1 ] || complain "not one kernel: $(ls -A cache/bosk/lab)"
  # Nothing is fetched or said a second time.
  [ "$(lab "${small[@]}" -- echo three 2>&1)" = three ] || complain "a second start says more"
}

# Status 77 is "skipped" to CTest. CI looks beforehand.
if ! command -v qemu-system-x86_64 >/dev/null; then
  echo "check_lab: SKIPPED, there is no qemu-system-x86_64 here: apt-get install qemu-system-x86"
  exit 77
fi
check_"$part"
[ "$failures" -eq 0 ] && echo "check_lab: all well"
exit "$failures"
