#!/usr/bin/env python3
"""Computes the op cases with TensorFlow and writes golden/FAMILY/.

    python tests/conformance/generate.py [FAMILY...]        # all families when none is named
"""

import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

FAMILIES = ["math_unary", "math_binary", "reductions", "array", "nn", "linalg", "signal", "image", "state", "optimizers", "random", "control_flow", "data", "coordination", "edges", "sparse", "features", "files", "serialized", "pooling", "quantized", "spectral", "staging", "legacy", "uncommon", "datasets"]


def family(name):
    import cases
    module = importlib.import_module("ops." + name)
    f = cases.Family(name)
    module.cases(f)
    return f


def main():
    import cases
    total = 0
    for name in sys.argv[1:] or FAMILIES:
        count, problems = cases.write(family(name), os.path.join(HERE, "golden", name))
        size = sum(os.path.getsize(os.path.join(HERE, "golden", name, p)) for p in os.listdir(os.path.join(HERE, "golden", name)))
        print("%-16s %4d cases, %.2f MB" % (name, count, size / 1e6), flush=True)
        for problem in problems:
            print("  left out: " + problem)
        total += count
    print("%d cases" % total)


if __name__ == "__main__":
    main()
