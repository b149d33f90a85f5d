"""Compares what the scripts of a case fetched with what is expected of them.

    compare.py CASE RESULTS
"""

import glob
import json
import os
import struct
import sys

TOLERANCE = 1e-5  # relative: sums of gradients in another order, exponentials by other formulas
TYPES = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "u1": "B", "b1": "?"}


def load(path):
    """Elements and shape of an .npy file, without numpy."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + size].decode(), {"__builtins__": {}}, {"True": True, "False": False})
    raw, count = data[10 + size:], 1
    for d in header["shape"]:
        count *= d
    kind = header["descr"].lstrip("<|=>")
    if kind[0] == "S":
        width = int(kind[1:])
        return [raw[i * width:(i + 1) * width].rstrip(b"\0").decode() for i in range(count)], list(header["shape"])
    return list(struct.unpack("<%d%s" % (count, TYPES[kind]), raw)), list(header["shape"])


def entries(script):
    """(folder of the results, entry) of every run."""
    for index, entry in enumerate(json.load(open(script))["runs"]):
        if "together" in entry:
            for k, one in enumerate(entry["together"]):
                yield "%d/%d" % (index, k), one
        elif "barrier" not in entry:
            yield str(index), entry


def close(a, b):
    return a == b if isinstance(b, str) else abs(a - b) <= TOLERANCE * max(abs(a), abs(b), 1e-3)


def main(case, results):
    compared = wrong = 0
    worst = 0.0
    for script in sorted(glob.glob(os.path.join(case, "script.*.json"))):
        task = os.path.basename(script)[len("script."):-len(".json")]
        for folder, entry in entries(script):
            for name, want in zip(entry.get("fetches", []), entry.get("expected", [])):
                path = os.path.join(results, task, folder, name.replace("/", "_").replace(":", "_") + ".npy")
                values, shape = load(path)
                compared += 1
                if shape != want[1] or not all(close(a, b) for a, b in zip(values, want[0])):
                    wrong += 1
                    print("%s %s, run %s: %s is %s %s, TensorFlow's %s %s" % (os.path.basename(case), task, folder, name, shape, values[:6], want[1], want[0][:6]))
                elif want[2] != "string":
                    worst = max([worst] + [abs(a - b) / max(abs(b), 1e-3) for a, b in zip(values, want[0])])
    print("%-28s %3d tensors, largest relative difference %.1e%s" % (os.path.basename(case), compared, worst, ", %d WRONG" % wrong if wrong else ""))
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
