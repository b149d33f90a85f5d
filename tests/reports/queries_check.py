"""Pastes each block of queries of a page into sqlite3, whole.

    queries_check.py REPORT DATABASE PAGE

If a block says with which command the file gets the views that it needs, that runs first, once.
"""

import html
import re
import subprocess
import sys

report, database, page = sys.argv[1:]
text = open(page).read()
blocks = [html.unescape(b) for b in re.findall(r'<details class="query"><summary>[^<]*</summary><pre>(.*?)</pre>', text, re.S)]
values = dict(re.findall(r":(run|placement|step|other) = (-?\d+)", text))
values.setdefault("other", "-1")
command = re.search(r"^-- tfc-report --db FILE (.*)$", blocks[0], re.M)
faults = [] if len(blocks) >= 8 else [f"only {len(blocks)} blocks of queries"]
if any(bool(re.search(r"^-- tfc-report --db FILE ", b, re.M)) != bool(command) for b in blocks):
    faults.append("only some blocks say what they need")
runs = "SELECT COUNT(*) FROM run"
before = subprocess.run(["sqlite3", database, runs], capture_output=True, text=True, check=True).stdout
if command:
    subprocess.run([report, "--db", database] + command.group(1).split(), check=True, stderr=subprocess.DEVNULL)
if subprocess.run(["sqlite3", database, runs], capture_output=True, text=True, check=True).stdout != before:
    faults.append("the command took runs away")
for block in blocks:
    sql = re.sub(r":(run|placement|step|other)\b", lambda m: values[m.group(1)], block)
    if not re.sub(r"--[^\n]*\n?", "", sql).rstrip().endswith(";"):
        faults.append("a block's last statement does not end: " + block[-60:])
    said = subprocess.run(["sqlite3", "-bail", "-readonly", database], input=sql, capture_output=True, text=True)
    if said.returncode or said.stderr:
        faults.append(f"{said.stderr.strip()[:200]} in: {block[:120]}")
for fault in faults:
    print(f"{database}: {fault}")
print(f"{database}: {len(blocks)} blocks, {'converted' if command else 'as it is'}, {len(faults)} wrong")
sys.exit(1 if faults else 0)
