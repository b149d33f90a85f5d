#!/usr/bin/env python3
"""Models that users have, made with TensorFlow 2.15 (a Python that has it), and steps of them.

    models.py list                  every model: its kind and who makes it
    models.py make FOLDER NAME...   writes model.pb, model.json and feeds into FOLDER/NAME, unless they are there already
                                    (tests/bench/zoo/build.py); prints one line for each: its model.json, or the error
    models.py time FOLDER           median and quartiles of TensorFlow's steps, in ms
    models.py serve                 TensorFlow's side of `scripts/bench peers --suite`: lines on stdin, as suite_bench has
                                    them, and "load FOLDER"
"""

import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402


def tensorflow():
    import tensorflow as tf
    tf.get_logger().setLevel("ERROR")
    return tf.compat.v1


class Loaded:
    """A folder's model in a session of its own, as its users have it: oneDNN and grappler on."""

    def __init__(self, folder):
        tf1 = tensorflow()
        with open(os.path.join(folder, "model.json")) as f:
            about = json.load(f)
        definition, graph = tf1.GraphDef(), tf1.Graph()
        with open(os.path.join(folder, "model.pb"), "rb") as f:
            definition.ParseFromString(f.read())
        with graph.as_default():
            tf1.import_graph_def(definition, name="")
        del definition
        self.session = tf1.Session(graph=graph)
        if about["init"]:
            self.session.run(about["init"])
        keys = list(about["feeds"])
        self.values = [np.load(os.path.join(folder, about["feeds"][k])) for k in keys]
        self.fetched = len(about["fetches"])
        targets = [graph.get_operation_by_name(t) for t in about["targets"]]
        self.step = self.session.make_callable(about["fetches"] + targets, keys)

    def run(self, steps):
        """Wall times, and the CPU time of them all, in microseconds."""
        times, cpu = [], time.process_time()
        for _ in range(steps):
            begin = time.perf_counter()
            self.step(*self.values)
            times.append((time.perf_counter() - begin) * 1e6)
        return times + [(time.process_time() - cpu) * 1e6]

    def first(self, steps, folder):
        """The first steps' fetches, as files."""
        for k in range(steps):
            for i, value in enumerate(self.step(*self.values)[:self.fetched]):
                np.save(os.path.join(folder, "%d_%d.npy" % (k, i)), np.asarray(value).astype(np.float32))


def peak_resident():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) * 1024


def serve():
    model, answer = None, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # text that libraries print must not become part of the answers
    tensorflow()
    for line in sys.stdin:
        word = line.rstrip("\n").split(" ", 2)
        try:
            if word[0] == "load":
                if model:
                    model.session.close()
                model = None
                model, said = Loaded(line.rstrip("\n")[5:]), "ready"
            elif word[0] == "first":
                said = model.first(int(word[1]), word[2]) or "ready"
            elif word[0] == "run":
                said = " ".join("%.3f" % t for t in model.run(int(word[1])))
            else:
                said = json.dumps({"peak_resident": peak_resident()})
        except Exception as e:  # the caller gets the message, and goes on with the next model
            said = "error " + " ".join(str(e).split())[:500]
        print(said, file=answer, flush=True)


def main():
    words = sys.argv[1:]
    if words == ["serve"]:
        return serve()
    if len(words) == 2 and words[0] == "time":
        model = Loaded(words[1])
        model.run(5)
        print("step: median %.2f ms, quartiles %.2f ms to %.2f ms, 30 steps" % tuple(np.percentile(model.run(30)[:-1], [50, 25, 75]) / 1e3))
        return None
    if words != ["list"] and not (len(words) >= 3 and words[0] == "make"):
        sys.exit(__doc__)
    from zoo import MODELS, make
    for m in MODELS.values() if words == ["list"] else ():
        print("%-24s %-10s %s" % (m.name, m.kind, m.maker.__module__))
    for name in words[2:]:
        if name not in MODELS:
            sys.exit("models: no model named '%s'; there are: %s" % (name, ", ".join(MODELS)))
    for name in words[2:]:
        try:
            print(json.dumps(make(name, os.path.join(words[1], name))), flush=True)
        except Exception as e:  # a model that cannot be made must not prevent others
            print(json.dumps({"error": "%s: %s" % (type(e).__name__, e)}), flush=True)
    return None


if __name__ == "__main__":
    main()
