#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# lines.sh MOST command…: runs it, and fails if bosk says more than MOST lines; otherwise the command's status.
most=$1
shift
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$@" 2>"$said"
status=$?
cat "$said" >&2
count=$(grep -c '^bosk:' "$said")
if [ "$count" -gt "$most" ]; then
  echo "lines.sh: $count lines of bosk, not $most at most"
  exit 1
fi
exit "$status"
