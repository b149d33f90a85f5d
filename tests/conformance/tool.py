"""Calling tfc-run, and what it left behind."""

import json
import os
import subprocess

import numpy as np


class Tool:
    def __init__(self, path, timeout=600):
        self.path, self.timeout = path, timeout

    def call(self, *arguments):
        """(exit code or None when it ran out of time, stdout, stderr)"""
        try:
            done = subprocess.run([self.path, "--color", "never", *arguments], capture_output=True, timeout=self.timeout)
        except subprocess.TimeoutExpired:
            return None, "", "no answer after %d s" % self.timeout
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def script(self, graph, runs, directory, *arguments):
        """Runs a list of {"feeds": {name: array}, "fetches", "targets"}; returns (exit code, outputs, stderr).

        outputs[i] is {tensor name: array} of run i, as far as it came.
        """
        os.makedirs(directory, exist_ok=True)
        written, rows = {}, []
        for run in runs:
            row = {k: run[k] for k in ("fetches", "targets") if run.get(k)}
            for name, value in run.get("feeds", {}).items():
                if id(value) not in written:
                    written[id(value)] = "feed%d.npy" % len(written)
                    np.save(os.path.join(directory, written[id(value)]), value)
                row.setdefault("feeds", {})[name] = written[id(value)]
            rows.append(row)
        script, out = os.path.join(directory, "script.json"), os.path.join(directory, "out")
        with open(script, "w") as f:
            json.dump({"runs": rows}, f)
        code, _, errors = self.call("--graph", graph, "--run", script, "--out", out, *arguments)
        return code, [read(out, i, run.get("fetches", [])) for i, run in enumerate(runs)], errors


def read(out, index, fetches):
    found = {}
    for name in fetches:
        path = os.path.join(out, str(index), name.replace("/", "_").replace(":", "_") + ".npy")
        if os.path.exists(path):
            try:
                found[name] = np.load(path)
            except ValueError:  # the file was not written to its end
                pass
    return found


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no message"])[-1][:300]
