"""Computes figures of a report and the events of a trace from the views of its database, and compares.

    views_check.py NAME DATABASE FOLDER

FOLDER has page/index.html, show.txt, trace.json, and critical.json, gaps.json, memory.json of tfc-report.
"""

import html
import json
import re
import statistics
import subprocess
import sys

name, database, folder = sys.argv[1:]
page, shown = open(folder + "/page/index.html").read(), open(folder + "/show.txt").read()
trace = json.load(open(folder + "/trace.json"))["traceEvents"]
critical, gaps, memory = (json.load(open(f"{folder}/{n}.json")) for n in ("critical", "gaps", "memory"))
faults, compared = [], 0


def ask(sql):
    said = subprocess.run(["sqlite3", "-readonly", "-json", database, sql], capture_output=True, text=True, check=True).stdout
    return json.loads(said) if said.strip() else []


def time_of(text):  # "1.234 ms" in microseconds
    value, unit = re.fullmatch(r"([-\d.e+]+) (ns|us|µs|ms|s|m|h)", text.strip()).groups()
    return float(value) * {"ns": 1e-3, "us": 1, "µs": 1, "ms": 1e3, "s": 1e6, "m": 6e7, "h": 3.6e9}[unit]


def bytes_of(text):
    value, unit = re.fullmatch(r"([-\d.e+]+) (B|kB|MB|GB)", text.strip()).groups()
    return float(value) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


def last_digit(text):  # of a number of bytes: one unit of its last digit
    value, unit = re.fullmatch(r"([-\d.e+]+) (B|kB|MB|GB)", text.strip()).groups()
    return 10.0 ** -len(value.partition(".")[2]) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


def same(what, said, expected, share=0.006):
    """`said` has as few digits as people read: the last of them may be off by one."""
    global compared
    compared += 1
    if abs(said - expected) > share * abs(expected) + 0.0051:
        faults.append(f"{what}: {said} is said, {expected} follows from the views")


def cells(section):  # rows of the first table behind a heading, without tags
    at = page.index(section)
    table = page[at : page.index("</table>", at)]
    return [[html.unescape(re.sub("<[^>]*>", "", c)).strip() for c in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)]
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.S)]


run = ask("SELECT * FROM v_run")[0]
mine = f"run_id = {run['run_id']} AND placement_id = {run['placement_id']}"
steps_of = (f"FROM v_step s WHERE {mine} AND traced AND EXISTS (SELECT 1 FROM v_op o WHERE o.run_id = s.run_id AND o.placement_id ="
            " s.placement_id AND o.step = s.step)")
middle = ask(f"SELECT step_median_us AS us FROM v_result WHERE {mine}")[0]["us"]
traced = ask(f"SELECT step, phase, step_us {steps_of} ORDER BY step")
step = min(traced, key=lambda s: (s["phase"] != "final", abs(s["step_us"] - middle) if middle else 0, s["step"]))["step"]
this = f"{mine} AND step = {step}"

# --- The first screen ---
answer = run["step_median_us"]
card = dict((text, value) for value, text in re.findall(r'<div class="card[^"]*"><b>(.*?)</b><span>(.*?)</span>', page))
if run["objective"] == "throughput" and ask("SELECT 1 AS there FROM sqlite_master WHERE name = 'v_load'"):
    loads = {r["placement_id"]: r for r in ask("SELECT placement_id, MAX(placement) AS placement, MAX(load_us) AS us FROM v_load GROUP BY 1")}
    load = loads[run["placement_id"]]["us"]
    single = min(r["us"] for r in loads.values() if r["placement"].startswith("single:"))
    same("card load", time_of(next(v for t, v in card.items() if t.startswith("load of the busiest"))), load)
    text, value = next((t, v) for t, v in card.items() if t.startswith("load against the best single device"))
    same("card speed-up of the load", float(value.rstrip("×")), single / load)
    same("load of the best single device", time_of(re.search(r"\((.*?)\)", text).group(1)), single)
    verdict = re.sub("<[^>]*>", "", re.search(r'<p class="verdict">(.*?)</p>', page, re.S).group(1))
    same("the verdict's load", time_of(re.search(r"It is (\S+ \S+),", verdict).group(1)), load)
    same("the verdict's speed-up", float(re.search(r"is ([\d.]+) times as large", verdict).group(1)), single / load)
    said = dict(re.findall(r"([^\s,]+) ([\d.]+ (?:us|ms|s))(?:,|\n)", re.search(r"\n  loads: (.*?\n)(?!    )", shown, re.S).group(1)))
    for row in ask(f"SELECT device, load_us FROM v_load WHERE {mine}"):
        same("load in show of " + row["device"], time_of(said[row["device"]]), row["load_us"])
for column, words in [("best_single_us", "best single device"), ("expert_us", "expert"), ("whole_us", "undivided machine")]:
    if run[column] and answer:
        text, value = next((t, v) for t, v in card.items() if words in t and not re.match("load|rate", t))
        same("card " + words, float(value.rstrip("×")), run[column] / answer)
        same("time of " + words, time_of(re.search(r"\((.*?)\)", text).group(1)), run[column])
if answer:
    same("step", time_of(next(v for t, v in card.items() if re.match("a step|one step alone, (?:median|simulated)", t))), answer)
phase = next(s["phase"] for s in traced if s["step"] == step)
rows = [{"name": b["device"], "busy": 100 * b["busy_us"] / b["step_us"]} for b in ask(f"SELECT * FROM v_busy WHERE {this}")]
table = cells("<h2>Devices</h2>")
heads = table[0]
for row in rows:
    line = next(r for r in table if r[0] == row["name"])
    for where, percent in [("table", line[heads.index("busy")]), ("timeline", re.search(rf"</i>{re.escape(row['name'])} <span>busy (.*?)<", page).group(1))]:
        same(f"busy {row['name']} in the {where}", float(percent.rstrip(" %")), float(f"{row['busy']:.0f}"), 0)
    ran = ask(f"SELECT COUNT(DISTINCT node_id) AS n FROM v_op WHERE {this} AND device = '{row['name']}'")[0]["n"]
    same("operations of " + row["name"], float(line[heads.index("operations")]), ran, 0)
    said = re.search(rf"^  {re.escape(row['name'])} +\S+ +([\d.]+) %", shown, re.M)
    same("busy in show " + row["name"], float(said.group(1)), float(f"{row['busy']:.1f}"), 0)
# A peak of the variables alone is marked; runs of older versions have it where the graph has loops.
LOOPS = ("NextIteration", "RefNextIteration", "While", "StatelessWhile", "For")
looped = run["program"] == "tfc-place" and bool(ask(f"SELECT 1 FROM v_node WHERE run_id = {run['run_id']} AND op IN {LOOPS} LIMIT 1"))
for row in ask(f"SELECT * FROM v_memory WHERE {mine}"):
    line = next(r for r in table if r[0] == row["device"])
    said = line[heads.index("peak memory")]
    complete = row.get("complete")
    same("mark of the peak of " + row["device"], said.startswith(">"), row["peak_bytes"] > 0 and (looped if complete is None else not complete), 0)
    said = said.lstrip(">")
    same("peak " + row["device"], bytes_of(said), row["peak_bytes"], 0.55 * last_digit(said) / max(row["peak_bytes"], 1))
for row in ask("SELECT placement, step_median_us, transfer_bytes, placement_id FROM v_result WHERE role <> 'candidate'"):
    if row["step_median_us"] and row["placement_id"] != run["placement_id"]:
        line = next(r for r in cells("<h2>The answer and its rivals") if r[0] == row["placement"])
        same("rival " + row["placement"], time_of(line[1]), row["step_median_us"])

# --- Transfers, operations, plots ---
pairs = ask(f"SELECT source, target, COUNT(*) AS n, SUM(bytes) AS bytes, SUM(duration_us) AS us FROM v_transfer WHERE {this}"
            " GROUP BY source, target")
if "<h3>Moved in the step" in page:
    moved = {r[0]: r for r in cells("<h3>Moved in the step")}
    more = re.search(r"and (\d+) more pairs", page)
    listed = [pair for pair in pairs if f"{pair['source']} → {pair['target']}" in moved]
    same("pairs that are listed", len(listed) + int(more.group(1) if more else 0), len(pairs), 0)
    for pair in listed:
        line = moved[f"{pair['source']} → {pair['target']}"]
        same("tensors", float(line[1]), pair["n"], 0)
        same("bytes", bytes_of(line[2]), pair["bytes"], 0.55 * last_digit(line[2]) / pair["bytes"])
        same("took", time_of(line[3]), pair["us"])
elif pairs:
    faults.append("transfers, but no table of them")
said = re.search(r"<h3>The answer</h3>.*?>([\d.]+ \w+) go to another device", page, re.S)
if said and pairs:  # the map has every tensor of the step once for each device to which it went
    all_bytes = sum(p["bytes"] for p in pairs)
    same("bytes of the map", bytes_of(said.group(1)), all_bytes, 0.55 * last_digit(said.group(1)) / all_bytes)
elif pairs and '<ol class="cuts">' not in page:
    faults.append("transfers, but the map has none")
data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
ops = ask(f"SELECT node_id, start_us, duration_us FROM v_op WHERE {this}")
same("operations of the timeline", len(data["ops"]), len(ops), 0)
same("their time", sum(o[3] for o in data["ops"]) / 1e3, sum(o["duration_us"] for o in ops), 1e-4)
same("bytes of the timeline", sum(t[6] for t in data["transfers"]), sum(p["bytes"] for p in pairs), 0)
totals = {r["node_id"]: r for r in ask(f"SELECT t.node_id, t.node, t.samples, n.flops, n.output_bytes FROM v_op_total t JOIN v_node n"
                                      f" USING (run_id, node_id) WHERE t.{mine.replace(' AND ', ' AND t.')}")}
for node in data["nodes"]:
    row = totals.get(node[0])
    if row and (row["node"] != node[1] or (row["flops"] is not None and abs(row["flops"] - node[7]) > 1e-4 * row["flops"])):
        faults.append(f"node {node[1]} is another one in v_node")
same("operations of the table", len(data["nodes"]), len(set(totals) | {o["node_id"] for o in ops}), 0)
in_step = {r["node_id"]: r["us"] for r in ask(f"SELECT node_id, SUM(duration_us) AS us FROM v_op WHERE {this} GROUP BY node_id")}
for node in data["nodes"]:  # what the table, the map, the timeline and the costs say of an operation is what it took in the step
    same("time of " + node[1], node[4] or 0, in_step.get(node[0], 0), 1e-5)
legend = re.search(r'<section id="timeline">.*?<p class="legend">(.*?)</p>', page, re.S).group(1)
same("the timeline's families", sum(time_of(t) for t in re.findall(r"</i>[^<]*? ([\d.]+ (?:us|ms|s))</span>", legend)), sum(in_step.values()), 0.01)
legend = re.search(r'<section id="map">.*?<p class="legend">(.*?)</p>', page, re.S)
if legend:
    same("the map's devices", sum(time_of(t) for t in re.findall(r"</i>\S+ ([\d.]+ (?:us|ms|s))[,<]", legend.group(1))), sum(in_step.values()), 0.01)
took = f"(SELECT node_id, op, SUM(duration_us) AS us FROM v_op WHERE {this} GROUP BY node_id, device_id)"
for row in ask(f"SELECT op, COUNT(*) AS n, SUM(us) AS us FROM {took} GROUP BY op ORDER BY us DESC, op LIMIT 5"):
    section = page[page.index('<section id="cost_by_op">') :]
    section = section[: section.index("</section>")]
    said = [t for t, n in re.findall(r">([\d.e+-]+ (?:µs|ms|s)), (\d+)<", section) if int(n) == row["n"]]
    if "<svg" in section and not any(abs(time_of(t) - row["us"]) <= 0.006 * row["us"] for t in said):
        faults.append(f"no bar of {row['op']} says {row['us']} us and {row['n']}")
    compared += 1
# Kendall's tau, from v_result: pairs of which the measured steps are further apart than both vary.
dots = ask(f"SELECT simulated_us AS x, step_median_us AS y, 0.5 * (step_q3_us - step_q1_us) AS s, label FROM v_result WHERE run_id ="
           f" {run['run_id']} AND state = 'ok' AND simulated_us IS NOT NULL AND step_median_us IS NOT NULL AND label <> 'modelled'")
if run["objective"] == "throughput":  # what was simulated are loads
    dots = []
pairs_of = [(a, b) for i, a in enumerate(dots) for b in dots[:i] if abs(a["y"] - b["y"]) > a["s"] + b["s"]]
order = [((a["x"] > b["x"]) - (a["x"] < b["x"])) * ((a["y"] > b["y"]) - (a["y"] < b["y"])) for a, b in pairs_of]
said = re.search(r"tau (-?[\d.]+) over (\d+) placements", shown)
on_card = [(float(v), int(re.search(r"(\d+) placements", t).group(1))) for t, v in card.items() if t.startswith("Kendall")]
if bool(said) != bool(order) or bool(on_card) != bool(order):
    faults.append(f"tau: {said and said.group(0)}, {on_card}, and {len(order)} pairs by the views")
elif order:
    for where, (value, count) in [("show", (float(said.group(1)), int(said.group(2)))), ("the card", on_card[0])]:
        same("tau in " + where, value, sum(order) / len(order), 0.01)
        same("placements of tau in " + where, count, len(dots), 0)
section = page[page.index('<section id="simulated">') :] if '<section id="simulated">' in page else ""
section = section[: section.index("</section>")] if section else ""
if order:
    said = re.search(r"τ (-?[\d.]+) of (\d+) pairs", section)
    same("tau in the plot", float(said.group(1)), sum(order) / len(order), 0.01)
    same("pairs in the plot", int(said.group(2)), len(order), 0)
    sql = html.unescape(re.search(r"-- points:[^\n]*\n(.*?)(?:\n-- |</pre>)", section, re.S).group(1))
    drawn_dots = [tuple(r.values())[:3] for r in ask(sql.replace(":run", str(run["run_id"])))]
    if sorted(drawn_dots) != sorted((d["x"], d["y"], d["s"]) for d in dots):
        faults.append("the plot's points are not the readings of tau")
elif "<svg" in section and run["objective"] == "throughput":
    faults.append("steps are drawn against simulated loads")

# --- Gaps: what no operation of the device covers ---
spans, idle = {}, []
for o in sorted(ask(f"SELECT device, start_us, start_us + duration_us AS end_us FROM v_op WHERE {this}"), key=lambda o: o["start_us"]):
    spans.setdefault(o["device"], []).append((o["start_us"], o["end_us"]))
end = max(b for span in spans.values() for a, b in span)
for device, span in spans.items():
    at = 0
    for a, b in span + [(end, end)]:
        if round(a - at, 3) > 0:
            idle.append((device, round(at, 3), round(a - at, 3)))
        at = max(at, b)
said = sorted((g["device"], round(g["start_us"], 3), round(g["gap_us"], 3)) for g in gaps["gaps"])
same("gaps", len(said), len(idle), 0)
for a, b in zip(said, sorted(idle)):
    if a[0] != b[0] or abs(a[1] - b[1]) > 2e-3 or abs(a[2] - b[2]) > 2e-3:
        faults.append(f"the gap {a} is {b} by the views")
        break
for g in gaps["gaps"]:
    same("the parts of a gap", g["dependency_us"] + g["transfer_us"] + g["other_us"], g["gap_us"], 1e-6)
shown_gaps = re.search(r"\nLongest gaps(?: \(simulated\))?\n(.*?)\n\n", shown, re.S)
if shown_gaps:
    sentences = [t for t in re.split(r"\n  (?! )", shown_gaps.group(1)) if not t.endswith(" ran nothing")]
    for text, gap in zip(sentences, sorted((g[2] for g in idle), reverse=True)):
        same("a longest gap", sum(time_of(t) for t in re.findall(r"[\d.]+ (?:us|ms|s)\b", text)), gap, 0.01)
elif idle:
    faults.append("gaps, but none in the terminal")
if pairs:
    line_of = re.compile(r"^  (\S+) +to (\S+) +(\d+) +([\d.]+ \S+) +([\d.]+ \S+) +([\d.]+ \S+) +([\d.]+ \S+)$", re.M)
    for source, target, n, size, took, exposed, overlapped in line_of.findall(shown):
        pair = next(p for p in pairs if (p["source"], p["target"]) == (source, target))
        waited = sum(g["transfer_us"] for g in gaps["gaps"] if (g["source"], g["device"]) == (source, target))
        row = moved[f"{source} → {target}"]
        for where, (b, t, x, y) in [("show", (size, took, exposed, overlapped)), ("page", row[2:6])]:
            same(f"bytes in {where}", bytes_of(b), pair["bytes"], 0.55 * last_digit(b) / pair["bytes"])
            same(f"took in {where}", time_of(t), pair["us"])
            same(f"exposed in {where}", time_of(x), waited)
            same(f"overlapped in {where}", time_of(y), max(pair["us"] - waited, 0))

# --- The critical path: items of the trace, without holes, as long as the step ---
ran = {(o["node"], round(o["start_us"], 3)): o for o in ask(f"SELECT * FROM v_op WHERE {this}")}
came = ask(f"SELECT * FROM v_transfer WHERE {this}")
at = 0
for item in critical["path"]:
    if abs(item["start_us"] - at - item["waited_us"]) > 2e-3:
        faults.append(f"the path has a hole before {item['node']}")
    at = item["start_us"] + item["time_us"]
    if item["kind"] == "operation" and (item["node"], round(item["start_us"], 3)) not in ran:
        faults.append(f"{item['node']} of the path did not run then")
    if item["kind"] == "transfer" and not any(x["node"] == item["node"] and x["source"] == item["source"] and x["start_us"] <= item["start_us"] + 2e-3
                                              and at <= x["start_us"] + x["duration_us"] + 2e-3 for x in came):
        faults.append(f"{item['node']} of the path was not sent then")
same("the end of the path", at, end, 1e-6)
ends = [ask(f"SELECT MAX(start_us + duration_us) AS us FROM v_op WHERE {mine} AND step = {s['step']}")[0]["us"] for s in
        sorted((s for s in traced if s["phase"] == phase), key=lambda s: (abs(s["step_us"] - middle) if middle else 0, s["step"]))]
near = ends[: len(ends) // 2 + 1]  # more than half of them, those nearest to the median
same("all of the paths", sum(o["time_us"] for o in critical["operations"]), sum(near) / len(near), 1e-6)
same("their percents", sum(o["percent"] for o in critical["operations"]), 100, 1e-6)
types = {}  # page and `show` have those of the one step
for item in critical["path"]:
    for of, us in [(item["op"] if item["kind"] == "operation" else "transfers", item["time_us"]), ("waiting", item["waited_us"])]:
        types[of or "operations"] = types.get(of or "operations", 0) + us
by_type = {line[0]: time_of(line[1]) for line in cells("<h3>Critical path by type")}
for of, us in by_type.items():
    if not re.match(r"other \(\d+ more\)$", of):
        same("type " + of, us, types[of])
    else:
        same("other types", us, sum(us for name, us in types.items() if name not in by_type))
for percent, us, of in re.findall(r"^ +([\d.]+) % +([\d.]+ \S+)  (\S+)$", shown[shown.index("\nCritical path of the"):], re.M):
    same("type in show " + of, time_of(us), types[of])
    same("its share", float(percent), float(f"{100 * types[of] / end:.1f}"), 0)

# What the rows leave out is a row, so that they add up to the path.
rows = re.search(r"\nCritical path of the[^\n]*\n((?: +[\d.]+ % [^\n]*\n)+)", shown).group(1)
listed = re.findall(r"^ +([\d.]+) % +([\d.]+ \S+)  (.*)$", rows, re.M)
if abs(sum(float(percent) for percent, _, _ in listed) - 100 * sum(types.values()) / end) > 0.05 * len(listed) + 0.01:
    faults.append(f"the rows of the critical path add up to {sum(float(r[0]) for r in listed)} %")
if len(listed) != min(len([us for us in types.values() if us > 0]), 6):
    faults.append("the critical path has no row for what its rows leave out")

# The transfer that costs most is the one that the step waits for longest, whatever others take; page and terminal name it.
waits = {}
for item in critical["path"]:
    if item["kind"] == "transfer":
        of = (item["node"], item["source"], item["device"])
        waits[of] = waits.get(of, 0) + item["time_us"]
if waits:
    of, us = max(waits.items(), key=lambda w: w[1])
    said = re.search(r"The transfer that costs most: ([\d.]+ \S+) \(.*?\), (\S+) to (\S+),\n +(\S+)$", shown, re.M)
    on_page = re.search(r"The transfer that costs most: (.*?) from (.*?) to (.*?): (\S+ \S+) ", html.unescape(page))
    if not said or not on_page:
        faults.append(f"no transfer of the path is named, {of} costs most")
    else:
        same("the transfer that costs most", time_of(said.group(1)), us)
        same("the same on the page", time_of(on_page.group(4)), us)
        in_show = (said.group(4), said.group(2), said.group(3))
        for what, (node, source, target) in [("show", in_show), ("page", on_page.groups()[:3])]:
            if waits.get((node, source, target), 0) < us - 0.01 and ".." not in node:
                faults.append(f"{what} names the transfer of {node}, {of} costs more")

# --- What to move: the best of the list, on the page and the terminal ---
moves = critical["moves"]
if [m["won_us"] for m in moves] != sorted((m["won_us"] for m in moves), reverse=True):
    faults.append("the moves are not in order")
tried = run.get("moves_tried")  # older databases lack the column
if tried is not None:  # they are those of the view
    stored = ask(f"SELECT * FROM v_move WHERE run_id = {run['run_id']} ORDER BY won_us DESC, unit_id")
    if [(m["unit_id"], m["target"]) for m in stored] != [(m["unit_id"], m["target"]) for m in moves]:
        faults.append("the moves are not those of v_move")
    for m, x in zip(stored, moves):
        same("what it wins", x["won_us"], m["won_us"])
part = {}  # of the path that a unit takes, with what it waited for: the most that a move of it can win
unit_of = {n["name"]: n["unit_id"] for n in ask(f"SELECT name, unit_id FROM v_node WHERE run_id = {run['run_id']}")}
for i in critical["path"]:
    if i["kind"] == "operation":
        part[unit_of[i["node"]]] = part.get(unit_of[i["node"]], 0) + i["time_us"] + i["waited_us"]
for m in moves:
    if tried is None and m["won_us"] > part[m["unit_id"]] + 0.01:
        faults.append(f"moving {m['node']} wins {m['won_us']} us of {part[m['unit_id']]} us on the path")
for m in moves:  # from where it runs in the step
    if tried is None and not any(o["node"] == m["node"] and o["device"] == m["source"] for o in ran.values()):
        faults.append(f"{m['node']} does not run on {m['source']}")
listed = re.search(r"<h3>What to move.*?<ol>(.*?)</ol>", page, re.S)
items = [html.unescape(t) for t in re.findall(r"<li>(.*?)</li>", listed.group(1))] if listed else []
same("moves of the page", len(items), min(len(moves), 3), 0)
for item, m in zip(items, moves):
    won_us, rest = item.split(": ", 1)
    same("a move", time_of(won_us), m["won_us"])
    if rest != f"{m['node']} from {m['source']} to {m['target']}":
        faults.append(f"the page would move {rest}")
listed = re.search(r"\nWhat to move:[^\n]*\n(.*?)\n\n", shown, re.S)
lines = [line for line in listed.group(1).split("\n") if re.match(r" *[\d.]+ \S+  ", line)] if listed else []
same("moves of the terminal", len(lines), min(len(moves), 3), 0)
for line, m in zip(lines, moves):
    same("a move in show", time_of(re.match(r" *([\d.]+ \S+)  ", line).group(1)), m["won_us"])

# --- What would help most: above the best rates of the run ---
costs = ask(f"SELECT node_id, fastest_us AS us FROM v_cost WHERE run_id = {run['run_id']}") or ask(
    f"SELECT node_id, fastest_us AS us FROM v_op_total WHERE run_id = {run['run_id']}")
nodes = {n["node_id"]: n for n in ask(f"SELECT * FROM v_node WHERE run_id = {run['run_id']}")}
named = {n["name"]: n for n in nodes.values()}
best = {}
for what in ("flops", "bytes_touched"):
    rates = sorted((nodes[c["node_id"]][what] / c["us"] for c in costs if c["us"] >= 20 and c["node_id"] in nodes and nodes[c["node_id"]][what]),
                   reverse=True)
    best[what] = rates[len(rates) // 20] if rates else None
fastest = {}
for c in ask(f"SELECT node_id, fastest_us AS us FROM v_cost WHERE run_id = {run['run_id']}"):
    fastest[c["node_id"]] = min(c["us"], fastest.get(c["node_id"], c["us"]))
won = []
modelled = ask(f"SELECT label FROM v_result WHERE {mine}")[0]["label"] == "modelled"
if modelled:  # transfers, dispatch in one row, and what an operation takes above its time on its fastest kind
    dispatch = {d["name"]: d["dispatch_us"] or 0 for d in ask(f"SELECT name, dispatch_us FROM v_device WHERE run_id = {run['run_id']}")}
    dispatched = 0
    for item in critical["path"]:
        if item["kind"] != "operation":
            won.append(item["time_us"])
            continue
        of_it = dispatch[item["device"]] if item["time_us"] > 0 else 0
        dispatched += of_it
        above = item["time_us"] - of_it - fastest.get(named[item["node"]]["node_id"], item["time_us"])
        if above > 0.0011:
            won.append(above)
    won = [w for w in won + [dispatched] if w > 0]
of_node = {}  # its pieces and rounds together
took = {}  # an operation's time is its median over the traced steps; one of several pieces has its part of the work
loops = any(n["op"] in LOOPS for n in nodes.values())
pieces = {} if loops else {(r["node"], r["device"]): r["n"] for r in ask(f"SELECT node, device, COUNT(*) AS n FROM v_op WHERE {this} GROUP BY 1, 2")}
for o in ask(f"SELECT node, device, duration_us AS us FROM v_op WHERE {mine} ORDER BY duration_us"):
    took.setdefault((o["node"], o["device"]), []).append(o["us"])
for item in critical["path"] if not modelled else []:
    node = named.get(item["node"])
    if item["kind"] != "operation" or not node:
        continue
    least = max([node[w] / pieces.get((item["node"], item["device"]), 1) / best[w] for w in best if best[w] and node[w] is not None] + [0])
    least = least if least > 0 else fastest.get(node["node_id"])
    times = took[item["node"], item["device"]]
    time = (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2
    if least is not None and time > least:
        of_node[item["node"]] = of_node.get(item["node"], 0) + time - least
won = sorted(won + list(of_node.values()), reverse=True)
helps = re.search(r"\nWhat would help most:(?: operations[^\n]*|\n  what[^\n]*)\n(.*?)\n\n", shown, re.S)
if helps:
    for line, us in zip(helps.group(1).split("\n"), won):
        same("what would help", time_of(re.match(r" *([\d.]+ \S+) of", line).group(1)), us)
elif won:
    faults.append("operations could be faster, and the terminal names none")

# --- Memory: what lies on a device when most of it does ---
edges, tensors = {}, []
for e in ask(f"SELECT producer_id, output, consumer_id, MAX(bytes) AS bytes FROM v_edge WHERE run_id = {run['run_id']} AND output >= 0"
             " AND bytes > 0 GROUP BY 1, 2, 3"):
    edges.setdefault((e["producer_id"], e["output"]), []).append(e)
# In a step that ran, products that only an AddN of products reads are never in memory: the sum is, from the start of the
# first of them. What the only reader can take over for a result as large as it ends where that reader starts.
terms_of = {}
for (producer, output), readers in edges.items() if not modelled else []:
    for e in readers:
        terms_of.setdefault(e["consumer_id"], []).append((producer, nodes[producer]["op"] == "MatMul" and len(readers) == 1))
terms_of = {sum_: [t for t, _ in terms] for sum_, terms in terms_of.items() if nodes[sum_]["op"] == "AddN" and all(good for _, good in terms)}
terms = {t for some in terms_of.values() for t in some}
made = {}
for (producer, _), readers in edges.items():
    made.setdefault(producer, set()).update(e["bytes"] for e in readers)


def taken_over(readers):
    reader = nodes[readers[0]["consumer_id"]]
    in_place = reader["op"] and "matmul" not in reader["op"].lower() and "conv" not in reader["op"].lower()
    return not modelled and len(readers) == 1 and in_place and readers[0]["bytes"] in made.get(reader["node_id"], ())


def handed(x):
    return bool(x) and x["how"] == "handed over" and not modelled


# A moment is nanoseconds and what comes within them: ends, transfers that begin, operations in their order. What takes no
# time ends behind its own start.
first, last, turn, sent, placed = {}, {}, {}, {}, {}
for o in ran.values():
    key = (o["node_id"], o["device"])
    begins, ends_at = round(o["start_us"] * 1e3), round((o["start_us"] + o["duration_us"]) * 1e3)
    first[key] = min(first.get(key, begins), begins)
    last[key] = max(last.get(key, 0), ends_at)
    turn[key] = min(turn.get(key, o["position"]), o["position"])
    placed.setdefault(o["node_id"], set()).add(o["device"])
begun = {key: (ns, 2 * turn[key] + 1) for key, ns in first.items()}
last = {key: (ns, 2 * turn[key] + 2 if ns == first[key] else 0) for key, ns in last.items()}
for x in came:
    old = sent.setdefault((x["node_id"], x["output"], x["target"]), dict(x, begins=(round(x["start_us"] * 1e3), 1), ends=(0, 0)))
    old["begins"] = min(old["begins"], (round(x["start_us"] * 1e3), 1))
    old["ends"] = max(old["ends"], (round((x["start_us"] + x["duration_us"]) * 1e3), 0))
for p in ask(f"SELECT p.device, n.memory_bytes AS bytes FROM v_placement p JOIN v_node n USING (run_id, node_id) WHERE"
             f" p.{mine.replace(' AND ', ' AND p.')} AND n.memory_bytes > 0"):
    tensors.append((p["device"], p["bytes"], (0, 0), max(last.values())))
for (producer, output), readers in edges.items():
    if nodes[producer]["memory_bytes"] or producer in terms:
        continue
    for device in placed.get(producer, ()):
        begin, until, there = begun[producer, device], (0, 0), False
        begin = min([begin] + [begun[t, device] for t in terms_of.get(producer, ()) if (t, device) in begun])
        for e in readers:
            for where in placed.get(e["consumer_id"], ()):
                done, there = last[e["consumer_id"], where], True
                if where == device and taken_over(readers):
                    done = (first[e["consumer_id"], where], 0)
                x = sent.get((producer, output, where)) if where != device else None
                until = max(until, last[producer, device], done if where == device or handed(x) else (0, 0), x["ends"] if x else (0, 0))
        if there:
            tensors.append((device, max(e["bytes"] for e in readers), begin, until))
for (node, output, target), x in sent.items():
    if not handed(x):
        reads = [last[e["consumer_id"], target] for e in edges.get((node, output), []) if (e["consumer_id"], target) in last]
        tensors.append((target, x["bytes"], x["begins"], max([x["ends"]] + reads)))
for device in memory["devices"]:
    events = [(t, b) for d, size, a, z in tensors if d == device["device"] for t, b in ((a, size), (z, -size))]
    level = most = 0
    for _, more in sorted(events):
        level += more
        most = max(most, level)
    if device["named_bytes"] is not None:
        same("named bytes of " + device["device"], device["named_bytes"], most, 1e-9)
        # What was planned has room for it; in steps with loops, and in cost graphs, only variables were planned.
        if device["peak_bytes"] > device["variable_bytes"] and device["named_bytes"] > device["peak_bytes"]:
            faults.append(f"{device['device']}: {device['named_bytes']} bytes are named, its peak is {device['peak_bytes']}")
# The curves of the plot, by the query that the page shows, are highest where the table says.
section = page[page.index('<section id="memory">') :]
drawn = re.search(r"-- levels:[^\n]*\n(.*?)(?:\n-- |</pre>)", section[: section.index("</section>")], re.S)
if drawn:
    sql = html.unescape(drawn.group(1)).replace(":run", str(run["run_id"])).replace(":placement", str(run["placement_id"])).replace(":step", str(step))
    tops = {}
    for row in ask(sql):
        device, _, megabytes = row.values()
        tops[device] = max(tops.get(device, 0), megabytes)
    ids = {d["name"]: d["device_id"] for d in ask(f"SELECT name, device_id FROM v_device WHERE run_id = {run['run_id']}")}
    for device in memory["devices"]:
        same("top of the plot of " + device["device"], tops.get(ids[device["device"]], 0) * 1e6, device["named_bytes"] or 0, 1e-9)
else:
    faults.append("the plot of memory has no query")

# --- The trace: slices, flows with both ends, counters, tracks ---
steps = [r["step"] for r in ask(f"SELECT DISTINCT step FROM v_op WHERE {mine}")]
slices = [e for e in trace if e["ph"] == "X"]
for category, view in [("op", "v_op"), ("transfer", "v_transfer")]:
    found = [e for e in slices if e["cat"] == category]
    expected = ask(f"SELECT COUNT(*) AS n, COALESCE(SUM(duration_us), 0) AS us FROM {view} WHERE {mine}")[0]
    same(category + " slices", len(found), expected["n"], 0)
    same(category + " time", sum(e["dur"] for e in found), expected["us"], 1e-4)
same("steps", len([e for e in slices if e["cat"] == "step"]), len(steps), 0)
begins = {e["id"]: e for e in trace if e["ph"] == "s"}
ends = {e["id"]: e for e in trace if e["ph"] == "f"}
if set(begins) != set(ends) or len(begins) != len([e for e in trace if e["ph"] == "s"]):
    faults.append("flows without both ends")
where = {}
for e in slices:
    where.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
for flow in list(begins.values()) + list(ends.values()):
    if not any(a - 1e-3 <= flow["ts"] <= b + 1e-3 for a, b in where.get((flow["pid"], flow["tid"]), [])):
        faults.append(f"a flow ends at {flow['ts']} outside of every slice")
        break
# A transfer of which the producer was recorded has a flow that ends in it.
produced = ask(f"SELECT COUNT(*) AS n FROM v_transfer t WHERE {mine} AND EXISTS (SELECT 1 FROM v_op o WHERE o.run_id = t.run_id AND"
               " o.placement_id = t.placement_id AND o.step = t.step AND o.node_id = t.node_id AND o.device_id = t.source_id AND"
               " o.start_us <= t.start_us)")[0]["n"]
same("flows into transfers", len([e for e in ends.values() if e["tid"] == 2]), produced, 0)
tracks = {(e["pid"], e["tid"]) for e in trace if e["ph"] == "M"}
devices = ask("SELECT name, device_id FROM v_device")
same("tracks", len(tracks), 1 + 3 * len(devices), 0)
for device in devices:
    counts = [e for e in trace if e["ph"] == "C" and e["pid"] == device["device_id"] + 1]
    busy = [e["args"]["busy"] for e in counts if e["name"] == "busy"]
    if sum(busy) * 2 != len(busy) or (busy and busy[-1] != 0):
        faults.append(f"{device['name']} is not idle at the end")
    memory = [e["args"]["bytes"] for e in counts if e["name"] == "memory"]
    lasting = ask(f"SELECT COALESCE(SUM(n.memory_bytes), 0) AS b FROM v_placement p JOIN v_node n USING (run_id, node_id) WHERE"
                  f" p.{mine.replace(' AND ', ' AND p.')} AND p.device = '{device['name']}'")[0]["b"]
    if memory and max(memory) < lasting:
        faults.append(f"{device['name']}: {max(memory)} bytes at most, {lasting} of variables")
    if memory and memory[-1] != 0:
        faults.append(f"{device['name']}: something is held for ever")

for fault in faults[:20]:
    print(f"{name}: {fault}")
if compared < 15:
    print(f"{name}: only {compared} figures were compared")
    sys.exit(1)
print(f"{name}: {compared} figures and {len(trace)} events compared, {len(faults)} wrong")
sys.exit(1 if faults else 0)
