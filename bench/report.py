# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Statistics, verdicts and tables. Works on the dictionary that --json writes."""

import statistics


def summarise(values: list) -> dict:
    """Median and spread: the middle half when there are enough runs, else the range."""
    low, high = min(values), max(values)
    if len(values) >= 4:
        quartiles = statistics.quantiles(values, n=4, method="inclusive")
        low, high = quartiles[0], quartiles[2]
    return {"values": values, "median": statistics.median(values), "low": low, "high": high}


def judge(target, medians: dict) -> dict:
    """`factor` is how many times better bosk must become; at most 1 when the target is reached."""
    result = {"text": target.text(), "reached": None, "factor": None}
    mine, peer = medians.get("bosk"), medians.get(target.peer)
    if mine is None or (target.peer and peer is None):
        return result
    if target.kind == "min":
        factor = target.limit / mine if mine > 0 else float("inf")
    else:
        limit = {
            "max": lambda: target.limit,
            "times": lambda: peer / target.limit,
            "within": lambda: peer * target.limit,
            "plus": lambda: peer + target.limit,
        }[target.kind]()
        if limit > 0:
            factor = max(mine, 0) / limit
        else:
            factor = 0.0 if mine <= limit else float("inf")
    result["reached"] = factor <= 1
    result["factor"] = None if factor == float("inf") else factor
    return result


def verdict(target: dict) -> str:
    if target["reached"] is None:
        return "not judged"
    if target["reached"]:
        return "reached"
    if target["factor"] is None:
        return "short"
    return f"short by {max(target['factor'], 1.01):.2f}×"


def verdicts(targets: list) -> str:
    each = [verdict(target) for target in targets]
    return each[0] if len(set(each)) == 1 else "; ".join(each)


def number(value: float) -> str:
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size >= 0.01 else f"{value:.1g}"


def cell(lane: dict) -> str:
    if "failure" in lane:
        return "FAILED"
    return f"{number(lane['median'])} [{number(lane['low'])}–{number(lane['high'])}]"


def better(row: dict, peer: str) -> str:
    """How many times better bosk is than the peer."""
    lanes = row["lanes"]
    medians = [lanes.get(name, {}).get("median") for name in ("bosk", peer)]
    if None in medians or min(medians) <= 0:
        return ""
    mine, other = medians
    return f"{number(mine / other if row['higher_is_better'] else other / mine)}×"


def group_table(result: dict, group: str) -> list:
    """Header and rows of one group as lists of strings; lanes without any figure are left out."""
    rows = [row for row in result["rows"] if row["group"] == group and row["lanes"]]
    names = [lane["name"] for lane in result["lanes"]
             if any(lane["name"] in row["lanes"] for row in rows)]
    with_bosk = any("bosk" in row["lanes"] for row in rows)
    peers = [name for name in names if name != "bosk"] if with_bosk else []
    header = ["row", "unit", *names, *[f"{peer}/bosk" for peer in peers], "target", "verdict"]
    lines = [header]
    for row in rows:
        lines.append([
            row["name"],
            row["unit"],
            *[cell(row["lanes"][name]) if name in row["lanes"] else "" for name in names],
            *[better(row, peer) for peer in peers],
            "; ".join(target["text"] for target in row["targets"]),
            verdicts(row["targets"]),
        ])
    return lines if rows else []


def facts(result: dict) -> list:
    machine = result["machine"]
    return [
        f"{result['date']}, {machine['cpu']}, {machine['cpus']} CPUs used, Linux "
        f"{machine['kernel']}; {machine['busy_before']:g} % busy before the run, "
        f"{machine['stolen']:g} % stolen during it",
        *[f"{lane['name']}: {lane['library']}" for lane in result["lanes"] if lane["library"]],
        *result["skipped"],
        f"runs of each, interleaved: {result['runs']}; median [{result['spread']}]; "
        "peer/bosk: how many times better bosk is",
        *result["notes"],
    ]


def summary(result: dict) -> str:
    verdicts = [target["reached"] for row in result["rows"] for target in row["targets"]]
    text = (f"targets: {verdicts.count(True)} reached, {verdicts.count(False)} short, "
            f"{verdicts.count(None)} not judged")
    return text + (f"; {len(result['failures'])} FAILED" if result["failures"] else "")


def groups(result: dict) -> list:
    return list(dict.fromkeys(row["group"] for row in result["rows"]))


def text_report(result: dict) -> str:
    out = [*facts(result), ""]
    for group in groups(result):
        table = group_table(result, group)
        if not table:
            out += [f"== {group} ==", "nothing was measured", ""]
            continue
        widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
        out.append(f"== {group} ==")
        for line in table:
            out.append("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())
        out.append("")
    out += [f"FAILED {failure}" for failure in result["failures"]]
    out.append(summary(result))
    return "\n".join(out) + "\n"


def markdown_report(result: dict) -> str:
    out = [f"- {line}" for line in facts(result)] + [""]
    for group in groups(result):
        table = group_table(result, group)
        out += [f"### {group}", ""]
        if not table:
            out += ["nothing was measured", ""]
            continue
        out.append("| " + " | ".join(table[0]) + " |")
        out.append("|---|---|" + "---:|" * (len(table[0]) - 4) + "---|---|")
        out += ["| " + " | ".join(line) + " |" for line in table[1:]]
        out.append("")
    out += [f"- FAILED {failure}" for failure in result["failures"]]
    out.append(summary(result))
    return "\n".join(out) + "\n"
