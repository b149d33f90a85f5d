"""Computes figures of a report and the events of a trace from the views of its database, and compares.

    views_check.py NAME DATABASE PAGE TERMINAL TRACE
"""

import html
import json
import re
import subprocess
import sys

name, database, page_file, shown_file, trace_file = sys.argv[1:]
page, shown = open(page_file).read(), open(shown_file).read()
trace = json.load(open(trace_file))["traceEvents"]
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
step = trace_step = ask(f"SELECT step FROM v_step s WHERE {mine} AND traced AND EXISTS (SELECT 1 FROM v_op o WHERE o.run_id = s.run_id"
                        " AND o.placement_id = s.placement_id AND o.step = s.step) ORDER BY step")[0]["step"]
this = f"{mine} AND step = {step}"

# --- The first screen ---
answer = run["step_median_us"]
card = dict((text, value) for value, text in re.findall(r'<div class="card[^"]*"><b>(.*?)</b><span>(.*?)</span>', page))
for column, words in [("best_single_us", "best single device"), ("expert_us", "expert"), ("whole_us", "undivided machine")]:
    if run[column] and answer:
        text, value = next((t, v) for t, v in card.items() if words in t)
        same("card " + words, float(value.rstrip("×")), run[column] / answer)
        same("time of " + words, time_of(re.search(r"\((.*?)\)", text).group(1)), run[column])
if answer:
    same("step", time_of(next(v for t, v in card.items() if t.startswith("a step"))), answer)
rows = ask(f"SELECT d.name, 100.0 * SUM(b.busy_us) / SUM(b.step_us) AS busy FROM v_device d JOIN v_busy b USING (run_id, device_id)"
           f" WHERE b.{mine.replace(' AND ', ' AND b.')} GROUP BY d.name")
table = cells("<h2>Devices</h2>")
heads = table[0]
for row in rows:
    line = next(r for r in table if r[0] == row["name"])
    same("busy " + row["name"], float(line[heads.index("busy")].rstrip(" %")), float(f"{row['busy']:.0f}"), 0)
    said = re.search(rf"^  {re.escape(row['name'])} +\S+ +([\d.]+) %", shown, re.M)
    same("busy in show " + row["name"], float(said.group(1)), row["busy"])
for row in ask(f"SELECT device, peak_bytes FROM v_memory WHERE {mine}"):
    line = next(r for r in table if r[0] == row["device"])
    same("peak " + row["device"], bytes_of(line[heads.index("peak memory")]), row["peak_bytes"])
for row in ask("SELECT placement, step_median_us, transfer_bytes, placement_id FROM v_result WHERE role <> 'candidate'"):
    if row["step_median_us"] and row["placement_id"] != run["placement_id"]:
        line = next(r for r in cells("<h2>The answer and its rivals</h2>") if r[0] == row["placement"])
        same("rival " + row["placement"], time_of(line[1]), row["step_median_us"])

# --- Transfers, operations, plots ---
pairs = ask(f"SELECT source, target, COUNT(*) AS n, SUM(bytes) AS bytes, SUM(duration_us) AS us FROM v_transfer WHERE {this}"
            " GROUP BY source, target")
if "<h3>Moved in the step" in page:
    moved = {r[0]: r for r in cells("<h3>Moved in the step</h3>")}
    for pair in pairs:
        line = moved[f"{pair['source']} → {pair['target']}"]
        same("tensors", float(line[1]), pair["n"], 0)
        same("bytes", bytes_of(line[2]), pair["bytes"], 0.55 * last_digit(line[2]) / pair["bytes"])
        same("took", time_of(line[3]), pair["us"])
elif pairs:
    faults.append("transfers, but no table of them")
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
for row in ask(f"SELECT op, COUNT(*) AS n, SUM(median_us) AS us FROM v_op_total WHERE {mine} GROUP BY op ORDER BY us DESC, op LIMIT 5"):
    section = page[page.index('<section id="cost_by_op">') :]
    section = section[: section.index("</section>")]
    said = [t for t, n in re.findall(r">([\d.e+-]+ (?:µs|ms|s)), (\d+)<", section) if int(n) == row["n"]]
    if "<svg" in section and not any(abs(time_of(t) - row["us"]) <= 0.006 * row["us"] for t in said):
        faults.append(f"no bar of {row['op']} says {row['us']} us and {row['n']}")
    compared += 1
if run["tau"] is not None:
    same("tau", float(re.search(r"tau (-?[\d.]+) over", shown).group(1)), run["tau"], 0.01)

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
