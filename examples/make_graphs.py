#!/usr/bin/env python3
"""Makes the example graphs with TensorFlow 2.15, and TensorFlow's golden values beside them.

    python3 -m venv .venv && .venv/bin/pip install tensorflow-cpu==2.15.1
    .venv/bin/python examples/make_graphs.py --list
    .venv/bin/python examples/make_graphs.py --only nmt            # the graph alone
    .venv/bin/python examples/make_graphs.py --only nmt --golden   # and its golden values

The same TensorFlow makes the same graphs, byte for byte: --check compares with the committed files.
--channels-first DIR writes resnet50_channels_first.pb into DIR: the same net and values (for tests/gpu/launches.sh).
"""

import argparse
import importlib
import os
import subprocess
import sys

NAMES = ["nmt", "rnnlm", "mlp", "ridge", "rnnlm_large", "lstm_grid", "transformer", "resnet50", "inception_v3", "alexnet",
         "nmt_while", "nmt_while_v2"]
DIRECTORIES = ["saved_model", "checkpoint"]  # functions of their own make these; their bytes differ each time


# The SavedModel needs TensorFlow 2's behaviour, the graphs need TensorFlow 1's, so it is made in a process of its own.
ONE_DIRECTORY = """
import importlib, os, sys
sys.path.insert(0, os.getcwd())
module = importlib.import_module("models." + os.environ["TFC_EXAMPLE"])
if os.environ["TFC_EXAMPLE"] == "checkpoint":
    module.tf1.disable_v2_behavior()
print(module.make())
if %s:
    print(module.golden())
"""
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the examples")
    parser.add_argument("--only", action="append", metavar="NAME", help="this example alone (may be repeated)")
    parser.add_argument("--golden", action="store_true", help="also run it and write golden/NAME/")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a committed graph differs")
    parser.add_argument("--channels-first", metavar="DIR", help="write resnet50_channels_first.pb into DIR, nothing else")
    options = parser.parse_args()
    unknown = sorted(set(options.only or []) - set(NAMES + DIRECTORIES))
    if unknown:
        parser.error("unknown example: " + ", ".join(unknown))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    sys.path.insert(0, HERE)
    if options.channels_first:
        import common
        from models import convnet, resnet50
        common.tf.compat.v1.disable_v2_behavior()
        convnet.channels_first = True
        with open(os.path.join(options.channels_first, "resnet50_channels_first.pb"), "wb") as f:
            f.write(resnet50.example().graph_bytes())
        return 0
    names, differ = options.only or NAMES + DIRECTORIES, 0
    if len(names) > 1 and not options.list:
        # Each graph is made in a process of its own: TensorFlow numbers functions within a process, and the bytes
        # should be the same every time.
        flags = ["--golden"] * options.golden + ["--check"] * options.check
        return max([subprocess.run([sys.executable, __file__, "--only", n] + flags).returncode for n in names])
    for name in names:
        module = importlib.import_module("models." + name)
        if options.list:
            print("%-16s %s" % (name, module.__doc__.strip().splitlines()[0]))
            continue
        if name in DIRECTORIES:
            if not options.check:
                status = subprocess.run([sys.executable, "-c", ONE_DIRECTORY % (options.golden and name != "checkpoint")],
                                        env=dict(os.environ, TFC_EXAMPLE=name), cwd=HERE).returncode
                differ += status != 0
            continue
        import common
        common.tf.compat.v1.disable_v2_behavior()
        example = module.example()
        if options.check:
            with open(example.path, "rb") as f:
                committed = f.read()
            same = example.graph_bytes() == committed
            print("%-16s %s" % (name, "as committed" if same else "DIFFERS"))
            differ += not same
            continue
        print(common.describe(example, example.make()), flush=True)
        if options.golden:
            print(common.write_golden(example), flush=True)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
