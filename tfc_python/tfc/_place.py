"""tfc-place, as a call."""

import json
import os
import shutil
import subprocess
import tempfile

from tfc import _library
from tfc._arrays import Error


class Placement:
    """Which device each operation runs on. `path`: its file. `document`: all that the file says."""

    def __init__(self, path, document):
        self.path, self.document = path, document

    @property
    def nodes(self):
        """{node: device}"""
        return self.document["placement"]

    @property
    def step_us(self):
        """The measured or modelled step time's median, as `label` says."""
        return self.document["step"]["median_us"]

    @property
    def label(self):
        return self.document["step"]["label"]

    def tensorflow_device(self, op):
        """For tf.compat.v1.device: TensorFlow's name of the device of an operation (the one it has, for an unknown)."""
        names = {d["name"]: d.get("tensorflow", "") for d in self.document["devices"]}
        return names.get(self.nodes.get(op.name), op.device)


def _program():
    for folder in (os.path.dirname(_library.path),):
        while folder and folder != os.path.dirname(folder):
            candidate = os.path.join(folder, "bin", "tfc-place")
            if os.access(candidate, os.X_OK):
                return candidate
            folder = os.path.dirname(folder)
    found = shutil.which("tfc-place")
    if not found:
        raise Error("tfc-place was not found beside libtfc or in PATH", 4)
    return found


def _message(said):
    """What the program said last under its own name, without the hint that it has a --help."""
    lines = [line for line in said.strip().splitlines() if not line.startswith("tfc-place --help")]
    named = [i for i, line in enumerate(lines) if line.startswith("tfc-place: ")]
    if named:
        return "\n".join(lines[named[-1]:])[len("tfc-place: "):]
    return lines[-1] if lines else ""


def place(graph, devices=None, out=None, quiet=True, **flags):
    """Finds a placement by running the graph: a path, a GraphDef, or the bytes of one. devices, out and every further
    argument are flags of tfc-place (time="60s", measurements=50, machine="m.yaml", wait=True; db=None keeps no database).
    Returns a Placement; that nothing beats one device is no error."""
    folder = tempfile.mkdtemp(prefix="tfc-")
    try:
        if hasattr(graph, "SerializeToString"):
            graph = graph.SerializeToString()
        if isinstance(graph, (bytes, bytearray, memoryview)):
            path = os.path.join(folder, "graph.pb")
            with open(path, "wb") as file:
                file.write(graph)
            graph = path
            out = out or os.path.abspath("graph.placement.json")
        if not isinstance(graph, (str, os.PathLike)):
            raise Error("graph: a path, a GraphDef or the bytes of one, not " + type(graph).__name__, 2)
        out = out or os.path.splitext(os.path.normpath(os.fspath(graph)))[0] + ".placement.json"
        if flags.get("db", "") is None:
            flags["db"] = os.path.join(folder, "tfc.db")
        flags.setdefault("report", "none")
        command = [_program(), "--graph", os.fspath(graph), "--out", out, "--json"]
        command += ["--devices", str(devices)] if devices is not None else []
        for name, value in flags.items():
            for one in value if isinstance(value, (list, tuple)) else [value]:
                if one is None or one is False:
                    continue
                command += ["--" + name.replace("_", "-")] + ([] if one is True else [str(one)])
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None, text=True)
        if done.returncode not in (0, 7):
            raise Error(_message(done.stderr or "") or "tfc-place ended with exit code %d" % done.returncode,
                        {2: 2, 3: 2, 4: 9, 5: 7, 6: 10, 130: 1}.get(done.returncode, 12))
        return Placement(out, json.loads(done.stdout))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
