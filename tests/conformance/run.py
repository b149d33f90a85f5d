#!/usr/bin/env python3
"""Compares tfc-run with TensorFlow and prints `N passed, N failed` and what is not supported.

    python tests/conformance/run.py                       # everything
    python tests/conformance/run.py --only ops --family nn --case Conv2D
    python tests/conformance/run.py --graph train.meta    # also a training graph from elsewhere
"""

import argparse
import collections
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "examples")]
PARTS = ["ops", "hostile", "graphs", "examples", "checkpoints", "models", "shapes", "graph"]


class Report:
    """Counts, and says at once what is wrong."""

    def __init__(self, verbose):
        self.passed, self.failed, self.skipped, self.unsupported, self.verbose = 0, 0, 0, collections.OrderedDict(), verbose

    def ok(self, name):
        self.passed += 1
        if self.verbose:
            print("passed  " + name, flush=True)

    def fail(self, name, why):
        self.failed += 1
        print("FAILED  %s: %s" % (name, why), flush=True)

    def skip(self, name, why):
        self.skipped += 1
        print("SKIPPED %s: %s" % (name, why), flush=True)

    def lacks(self, name, why):
        self.unsupported[name] = why

    def end(self):
        if self.unsupported:
            print("\nnot supported (%d):" % len(self.unsupported))
            for name, why in self.unsupported.items():
                print("  %s: %s" % (name, why))
        print("\n%d passed, %d failed%s%s" % (self.passed, self.failed, ", %d not supported" % len(self.unsupported) if self.unsupported else "",
                                              ", %d skipped" % self.skipped if self.skipped else ""))
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tfc-run", default=os.path.join(ROOT, "build", "release", "bin", "tfc-run"), metavar="PATH")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone (may be repeated)")
    parser.add_argument("--family", action="append", help="ops: this family alone (may be repeated)")
    parser.add_argument("--case", default="", help="ops: only cases whose name contains this")
    parser.add_argument("--example", action="append", help="examples: this one alone (may be repeated)")
    parser.add_argument("--graph", action="append", default=[], metavar="PATH", help="a training graph from elsewhere")
    parser.add_argument("--loss", help="graph: the loss tensor (default: what the summary train_loss shows)")
    parser.add_argument("--count", type=int, default=1000, help="hostile: mutants of each family (default 1000)")
    parser.add_argument("--graphs", type=int, default=1000, help="graphs: how many (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="hostile: of the mutations; graphs: of the first")
    parser.add_argument("--keep", metavar="DIR", help="keep scripts and outputs there")
    parser.add_argument("-v", "--verbose", action="store_true", help="also name what passed")
    options = parser.parse_args()
    if not os.access(options.tfc_run, os.X_OK):
        print("conformance: no program %s: build it first (scripts/run tfc-run --help)" % options.tfc_run, file=sys.stderr)
        return 1
    import tool
    import parts
    options.directory = options.keep or tempfile.mkdtemp(prefix="tfc-conformance-")
    report, program = Report(options.verbose), tool.Tool(options.tfc_run)
    try:
        for part in options.only or PARTS:
            getattr(parts, part)(options, program, report)
    finally:
        if not options.keep:
            shutil.rmtree(options.directory, ignore_errors=True)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
