#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Makes the machines of this folder with lstopo and hwloc-annotate (package hwloc, 2.9) and a little
# sed. The results are committed: run this only to change them, and look at the difference.
set -euo pipefail
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# xml NAME SYNTHETIC [lstopo options]: drops what names the machine it was made on.
xml() {
  local name=$1 description=$2
  shift 2
  lstopo --of xml -i "$description" "$@" "$tmp/$name.xml" 2>/dev/null
  grep -v -E '"(hwlocVersion|ProcessName|SyntheticDescription)"' "$tmp/$name.xml" >"$name.xml"
}

xml one-pu "package:1 [numa(memory=2GiB)] l3:1 core:1 pu:1"
xml uma "package:1 [numa(memory=4GiB)] l3:1(size=33554432) l2:2(size=1048576) core:1 pu:1"
xml two-packages "package:2 [numa(memory=32GiB)] l3:1 core:4 pu:2"
xml nps "package:2 group:2 [numa(memory=16GiB)] l3:2 core:2 pu:1"
xml node-above-package "group:2 [numa(memory=8GiB)] package:2 core:2 pu:1"
xml hbm "package:1 group:4 [numa(memory=24GiB)] [numa(memory=4GiB)] core:2 pu:2"
sed -i 's/ local_memory="4294967296"/ subtype="HBM"&/' hbm.xml

# Package 0: 4 cores, package 1: 2 cores of which one has lost its second PU.
xml asymmetric "package:2 [numa(memory=8GiB)] core:4 pu:2" --restrict 0x000007ff

# Hybrid: 2 fast cores of 2 PUs with an L2 each, 8 slow cores in two clusters of 4 around an L2.
xml hybrid "package:1 [numa(memory=16GiB)] l3:1 l2:4 core:4 pu:2" --restrict 0x55550303
hwloc-annotate hybrid.xml "$tmp/h1.xml" -- none -- cpukind 0x0303 1 0 CoreType IntelCore
hwloc-annotate "$tmp/h1.xml" "$tmp/h2.xml" -- none -- cpukind 0x55550000 0 0 CoreType IntelAtom
grep -v -E '"(hwlocVersion|ProcessName)"' "$tmp/h2.xml" >hybrid.xml

# The same with two frugal cores that are not under the L3 at all.
xml low-power "package:1 [numa(memory=16GiB)] l3:2 l2:2 core:2 pu:1" --restrict 0x3f
awk '/type="L3Cache"/ { n++; if (n == 2) { skip = 1; next } }
     { line[++lines] = $0 }
     END {
       # The L3 that was taken out leaves one closing tag too many behind: the last "      </object>".
       for (i = lines; i > 0 && skip; i--) if (line[i] ~ /^      <\/object>$/) { line[i] = ""; break }
       for (i = 1; i <= lines; i++) if (line[i] != "") print line[i]
     }' low-power.xml >"$tmp/lp.xml"
cp "$tmp/lp.xml" low-power.xml

# A CXL memory without CPUs beside two packages, and distances that are not symmetric.
xml cxl "package:2 [numa(memory=32GiB)] core:2 pu:1"
sed -i -e '0,/complete_nodeset="0x00000003"/s//complete_nodeset="0x00000007"/' \
  -e '0,/ nodeset="0x00000003"/s// nodeset="0x00000007"/' \
  -e '0,/allowed_nodeset="0x00000003"/s//allowed_nodeset="0x00000007"/' \
  -e '0,/  <object type="Package"/s//  <object type="NUMANode" os_index="2" cpuset="0x0" complete_cpuset="0x0" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="1000" subtype="CXL" local_memory="137438953472"\/>\n    <object type="Package"/' cxl.xml
cat >"$tmp/distances" <<'END'
name=NUMALatency
5
3
numanode:0
numanode:1
numanode:2
10
21
30
22
10
40
30
40
10
END
hwloc-annotate cxl.xml "$tmp/c.xml" -- none -- distances "$tmp/distances"
grep -v -E '"(hwlocVersion|ProcessName)"' "$tmp/c.xml" >cxl.xml

# PUs 0 and 5 are outside the cpuset of whoever wrote the file.
xml disallowed "package:2 [numa(memory=8GiB)] core:4 pu:1"
sed -i 's/allowed_cpuset="0x000000ff"/allowed_cpuset="0x000000de"/' disallowed.xml
