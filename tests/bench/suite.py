#!/usr/bin/env python3
"""tfc beside TensorFlow 2.15 on models of families that users have (tests/bench/zoo), in turns. Run by a Python that has
TensorFlow 2.15 (`scripts/bench peers --suite` finds or makes one).

    suite.py [--short | --memory] [--cores N] [--models FOLDER] [--save FILE.json] [--fresh]
             [--table FILE.md] [MODEL...]

Each side is a process of its own on the same cores. They run blocks of steps in turns; a time is the wall time of the run
call. The first steps' fetches (of training: the losses of three steps) are compared. Everything measured is kept in
--save, and a call goes on where the last one ended, unless tfc or the model changed meanwhile. The models are made once.

  whole form   5 s of each side, inference of one example 15 s or 1,000 requests, and a new TensorFlow process for each
               model, whose peak resident memory is then compared with tfc's: about 60 minutes
  --short      1 s of each side, one TensorFlow process for all models, no memory: about 8 minutes
  --memory     no times: 12 steps of each side, of TensorFlow no more than take 4 s, each side in a process of its own, and
               the peak resident memory of both: about 10 minutes. The page's section about it is written anew
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BLOCK_S, MOST_REQUESTS, SMALL_US, MEMORY_STEPS = 0.3, 1000, 20e3, 12
# zoo.narrow: numbers with 8 bits of mantissa, or an eighth of a range; all others: 1e-3
TOLERANCE = {"zoo.narrow": 0.05}


class Refused(Exception):
    pass


class Side:
    def __init__(self, command, cores, **variables):
        self.cpu = 0.0  # microseconds of all steps
        environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "TF_ENABLE_ONEDNN_OPTS")}
        # TensorFlow turns oneDNN on by itself only where the processor has VNNI or bfloat16 instructions.
        environment.update({"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "1", **variables})
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=environment, preexec_fn=lambda: os.sched_setaffinity(0, cores))

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        answer = self.process.stdout.readline()
        if not answer:
            raise Refused("the process ended with code %s" % self.process.wait())
        if answer.startswith("error "):
            raise Refused(answer[6:].strip())
        return answer

    def ask(self, line):
        self.tell(line)
        return self.hear()

    def run(self, steps):
        *times, cpu = (float(t) for t in self.ask("run %d" % steps).split())
        self.cpu += cpu
        return times

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def difference(folder, count, names, theirs="tensorflow"):
    """The largest distance of tfc's fetches from TensorFlow's, relative to the largest value of the fetch."""
    worst = 0.0
    for k in range(count):
        for i in range(len(names)):
            a, b = (np.load(os.path.join(folder, side, "%d_%d.npy" % (k, i))).astype(np.float64) for side in ("tfc", theirs))
            if a.shape != b.shape:
                raise Refused("%s has shape %s, TensorFlow's %s" % (names[i], list(a.shape), list(b.shape)))
            if not np.array_equal(np.isfinite(a), np.isfinite(b)):
                return math.inf
            if b.size:
                worst = max(worst, float(np.nanmax(np.abs(a - b)) / max(1e-30, float(np.nanmax(np.abs(b))))))
    return worst


def one_block(side, us):
    return side.run(max(1, min(200, int(BLOCK_S * 1e6 / us))))


def in_turns(sides, seconds, most):
    """Blocks in turns until each side ran for `seconds`, or `most` steps."""
    times = {k: [] for k in sides}
    guess = {k: min(side.run(1)) for k, side in sides.items()}
    for side in sides.values():
        side.cpu = 0.0
    while any(sum(t) < seconds * 1e6 and len(t) < most for t in times.values()):
        for k, side in sides.items():
            times[k] += one_block(side, guess[k])
    return times


def fetch_plain(command, cores, folder, steps, to):
    """The first steps' fetches of TensorFlow without oneDNN, which is the judge where its results with oneDNN differ."""
    plain = Side(command, cores, TF_ENABLE_ONEDNN_OPTS="0")
    try:
        plain.ask("load " + folder)
        os.mkdir(to)
        plain.ask("first %d %s" % (steps, to))
    finally:
        plain.close()


def measure(name, folder, about, cores, options, servers, tolerance):
    """One model on some cores: {"tfc": quartiles and p99, "tensorflow": ..., "difference": ..., memory}."""
    on = set(sorted(os.sched_getaffinity(0))[:cores])
    command = [sys.executable, os.path.join(HERE, "models.py"), "serve"]
    theirs = servers.get(cores) if options.short else None
    if theirs is None:
        theirs = Side(command, on)
        if options.short:
            servers[cores] = theirs
    ours = Side([options.bench, folder, "exact"], on)
    try:
        theirs.tell("load " + folder)
        sides, result = {"tensorflow": theirs, "tfc": ours}, {}
        theirs.hear()
        ours.hear()
        with tempfile.TemporaryDirectory() as kept:
            steps = 3 if about["kind"] == "training" else 1
            for k, side in sides.items():
                os.mkdir(os.path.join(kept, k))
                side.tell("first %d %s" % (steps, os.path.join(kept, k)))
            for side in sides.values():
                side.hear()
            result["difference"] = difference(kept, steps, about["fetches"])
            if not result["difference"] <= tolerance:
                fetch_plain(command, on, folder, steps, os.path.join(kept, "plain"))
                result["onednn"], result["difference"] = result["difference"], difference(kept, steps, about["fetches"], "plain")
        alone = about["kind"] == "inference" and about["batch"] == 1
        seconds = 1 if options.short else 15 if alone else 5
        for _ in range(1 if options.short else 3):  # warms up: adapting, and filling caches
            for side in sides.values():
                side.run(2)
        for k, t in in_turns(sides, seconds, MOST_REQUESTS if alone else 10**9).items():
            q = np.percentile(t, [25, 50, 75, 99])
            result[k] = {"q1": q[0], "median": q[1], "q3": q[2], "p99": q[3], "cpu": sides[k].cpu / len(t), "steps": len(t)}
        if not options.short:
            result["memory"] = {k: json.loads(side.ask("info"))["peak_resident"] for k, side in sides.items()}
        return result
    except (BrokenPipeError, Refused):
        if theirs.process.poll() is not None:
            servers.pop(cores, None)
        raise
    finally:
        ours.close()
        if not options.short:
            theirs.close()


def measure_memory(folder, cores, bench):
    """Peak resident memory of both sides, each with the machine to itself: {"tfc": bytes, "tensorflow": bytes}."""
    on, peaks = set(sorted(os.sched_getaffinity(0))[:cores]), {}
    for side, command in (("tfc", None), ("tensorflow", [sys.executable, os.path.join(HERE, "models.py"), "serve"])):
        process = Side(command or [bench, folder, "exact"], on)
        try:
            if command:
                process.tell("load " + folder)
            process.hear()
            begin = time.monotonic()
            for _ in range(MEMORY_STEPS):  # also those in which tfc tries another way to run the same
                process.run(1)
                if side == "tensorflow" and time.monotonic() - begin > 4:
                    break
            peaks[side] = json.loads(process.ask("info"))["peak_resident"]
        finally:
            process.close()
    return peaks


# --- The table ---------------------------------------------------------------------------------------------------------
def geometric(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else math.nan


def bold(text, missed):
    return "**%s**" % text if missed else text


def shown(us):
    return "%.1f" % (us / 1e3) if us < 1e5 else "%.0f" % (us / 1e3)


def cell(row):
    """Ratio with the quartiles' half distance."""
    if row is None:
        return "–"
    if "refused" in row:
        return "**refused: %s**" % row["refused"].replace("|", "/")[:160]
    ratio = row["tfc"]["median"] / row["tensorflow"]["median"]
    spread = (row["tfc"]["q3"] - row["tfc"]["q1"]) / row["tfc"]["median"] / 2
    return bold("%.2f" % ratio, ratio > 1) + " ± %.0f %%" % (100 * spread) + (
        " **wrong by %.1g**" % row["difference"] if row["wrong"] else " (oneDNN: %.1g)" % row["onednn"] if "onednn" in row else "")


def table(kept, names, options):
    rows, out = kept["rows"], []
    counts = sorted({int(c) for r in rows.values() for c in r["cores"]})
    out.append("| model | step | " + " | ".join("%d core%s: tfc / TF | tfc, TF ms | CPU time" % (c, "s" * (c > 1)) for c in counts) + " | resident |")
    out.append("|---|---|" + "---|---|---|" * len(counts) + "---|")
    for name in names:
        if name not in rows:
            continue
        r = rows[name]
        cells = [name, "%s, %d" % (r["kind"], r["batch"])]
        for c in counts:
            one = r["cores"].get(str(c))
            cells.append(cell(one))
            if one is None or "refused" in one:
                cells += ["–", "–"]
            else:
                cells += ["%s, %s" % (shown(one["tfc"]["median"]), shown(one["tensorflow"]["median"])), "%.2f" % (one["tfc"]["cpu"] / one["tensorflow"]["cpu"])]
        memory = next((o["memory"] for o in r["cores"].values() if "memory" in o), None)
        ratio = memory and memory["tfc"] / memory["tensorflow"]
        cells.append(bold("%.2f" % ratio, ratio > 0.8) if memory else "–")
        out.append("| " + " | ".join(cells) + " |")
    out.append("")
    for c in counts:
        done = [(n, r["cores"][str(c)], r) for n, r in rows.items() if str(c) in r["cores"] and "refused" not in r["cores"][str(c)]]
        large = [o for _, o, _ in done if o["tensorflow"]["median"] >= SMALL_US]
        ratios = [o["tfc"]["median"] / o["tensorflow"]["median"] for _, o, _ in done]
        alone = [o for _, o, r in done if r["kind"] == "inference" and r["batch"] == 1]
        mean = geometric([o["tfc"]["median"] / o["tensorflow"]["median"] for o in large])
        p50, p99 = (geometric([o["tfc"][k] / o["tensorflow"][k] for o in alone]) for k in ("median", "p99"))
        out.append("- %d core%s: geometric mean of the %d steps that take TensorFlow 20 ms and more %s (goal 0.75); %s of %d above 1.0; "
                   "inference of one example, %d models: p50 %s (goal 0.70), p99 %s (goal 0.80)."
                   % (c, "s" * (c > 1), len(large), bold("%.2f" % mean, mean > 0.75), bold("%d" % sum(x > 1 for x in ratios), any(x > 1 for x in ratios)), len(ratios),
                      len(alone), bold("%.2f" % p50, p50 > 0.7), bold("%.2f" % p99, p99 > 0.8)))
    return "\n".join(out) + "\n"


def processor():
    with open("/proc/cpuinfo") as f:
        info = f.read()
    model = next((line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")), "an unnamed processor")
    flags = set(next((line.split(":")[1] for line in info.splitlines() if line.startswith("flags")), "").split())
    have = [text for flag, text in (("avx2", "AVX2"), ("avx512f", "AVX-512"), ("avx512_vnni", "VNNI"), ("avx512_bf16", "bfloat16 dot products"), ("amx_tile", "a tile unit")) if flag in flags]
    return "%s with %s" % (model, ", ".join(have))


TITLE = "# tfc beside TensorFlow 2.15 on models of families that users have\n"
# One section for each kind of processor and number of cores; a new run takes the place of the one before.
SECTION = """## %(machine)s, %(cores)s

Made by `scripts/bench peers --suite%(short)s` at `%(commit)s`, %(count)d models

Measured on %(processor)s, tfc with `--rewrites exact`, TensorFlow with oneDNN and grappler
on, in turns, blocks of 0.3 s, %(seconds)s of each side. Ratios are tfc / TensorFlow of medians; ± is half the distance
of tfc's quartiles; what missed a goal is bold. Behind the kind of a step stands its batch. Every row's numbers were
compared with TensorFlow's (losses of three steps, or the outputs: to 0.001 of the largest value, 0.05 for narrow types).
"(oneDNN: 0.1)": TensorFlow's own result with oneDNN is that far from tfc's, and without oneDNN it is as tfc's.
CPU time is that of all of a process's threads, tfc / TensorFlow: where other programs run, compare it, too.
The models are made by `tests/bench/models.py` with weights that are random from a seed. Resident: peak resident memory of
tfc's process / TensorFlow's, which has Python in it (goal 0.80).

"""


def section(kept, names, options):
    """The page's section about the machine and the cores of this run."""
    words = {1: "one core", 2: "two cores"}
    name, _, have = processor().partition(" with ")
    known = {"count": len(kept["rows"]), "short": " --short" if options.short else "", "commit": kept["commit"][:7], "processor": processor(),
             "machine": name + next((" with " + text for text in ("AVX-512", "AVX2") if text in have.split(", ")), ""),
             "cores": "one and two cores" if not options.cores else words.get(options.cores, "%d cores" % options.cores),
             "seconds": "1 s" if options.short else "5 s (inference of one example: 15 s or 1,000 requests)"}
    return SECTION % known + table(kept, names, options)


MEMORY = "## Peak resident memory"


def memory_section(kept, names, cores):
    """The page's section about memory."""
    rows = [(n, kept["rows"][n]) for n in names if "peaks" in kept["rows"].get(n, {})]
    out = [MEMORY, "", "`scripts/bench peers --suite --memory%s` at `%s`: peak resident memory of tfc's process / TensorFlow's, which has" % (
               " --cores %d" % cores if cores else "", kept["commit"][:7]),
           "Python in it; %d steps of each (of TensorFlow no more than take 4 s), each in a process of its own. Goal 0.80." % MEMORY_STEPS, "",
           "| model | step | tfc / TF | tfc, TF MB |", "|---|---|---|---|"]
    ratios = []
    for name, row in rows:
        ours, theirs = (row["peaks"].get(k) for k in ("tfc", "tensorflow"))
        if not ours or not theirs:
            out.append("| %s | %s, %d | **refused** | – |" % (name, row["kind"], row["batch"]))
            continue
        ratios.append(ours / theirs)
        out.append("| %s | %s, %d | %s | %.0f, %.0f |" % (name, row["kind"], row["batch"], bold("%.2f" % ratios[-1], ratios[-1] > 0.8), ours / 1e6, theirs / 1e6))
    if ratios:
        over = sum(r > 0.8 for r in ratios)
        out += ["", "%d models: %.2f to %.2f, geometric mean %.2f; %s above 0.80." % (
            len(ratios), min(ratios), max(ratios), geometric(ratios), bold("%d" % over, over > 0))]
    return "\n".join(out) + "\n"


def put_section(path, text):
    """Puts a section into a page, in the place of the one with the same heading if there is one."""
    try:
        with open(path) as f:
            old = f.read()
    except OSError:
        old = TITLE
    heading = text.split("\n", 1)[0]
    begin = old.find(heading + "\n")
    begin = len(old) if begin < 0 else begin
    end = old.find("\n## ", begin + 1)
    before, after = old[:begin].rstrip("\n"), old[end + 1:] if end > 0 else ""
    with open(path, "w") as f:
        f.write((before + "\n\n" if before else "") + text + ("\n" + after if after else ""))


# --- The run -------------------------------------------------------------------------------------------------------
def commit():
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    return head or "unknown"


def kept_rows(options):
    try:
        with open(options.save) as f:
            kept = json.load(f)
        if kept["commit"] == commit() and not options.fresh:
            return kept
    except (OSError, ValueError, KeyError):
        pass
    return {"commit": commit(), "rows": {}}


def keep(kept, options):
    with open(options.save + ".new", "w") as f:
        json.dump(kept, f, indent=1)
    os.replace(options.save + ".new", options.save)


def main():
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tfc")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(ROOT, "build", "release", "tests", "suite_bench"), help="tfc's side")
    parser.add_argument("--short", action="store_true", help="1 s of each side: about 8 minutes for all models")
    parser.add_argument("--memory", action="store_true", help="no times: peak resident memory of both sides")
    parser.add_argument("--cores", type=int, default=0, help="only this number of cores (default 1 and 2)")
    parser.add_argument("--models", default=os.path.join(cache, "models"), help="where models are made (default %(default)s)")
    parser.add_argument("--save", help="where results are kept (default beside the models)")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    parser.add_argument("--table", metavar="FILE.md", help="write the section into that page (all models on all cores: default docs/measurements/peers_suite.md)")
    parser.add_argument("names", nargs="*", metavar="MODEL", help="default: all")
    options = parser.parse_args()
    tool = [sys.executable, os.path.join(HERE, "models.py")]
    listed = [line.split() for line in subprocess.run(tool + ["list"], capture_output=True, text=True, check=True).stdout.splitlines()]
    names, makers = [n for n, _, _ in listed], {n: m for n, _, m in listed}
    for n in options.names:
        if n not in names:
            sys.exit("suite: no model named '%s'; there are: %s" % (n, ", ".join(names)))
    os.makedirs(options.models, exist_ok=True)
    options.save = options.save or os.path.join(options.models, "memory.json" if options.memory else "short.json" if options.short else "whole.json")
    kept, servers, wanted = kept_rows(options), {}, options.names or names
    making = subprocess.run(tool + ["make", options.models] + wanted, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    for name, line in zip(wanted, making.stdout.splitlines()):
        about, folder = json.loads(line), os.path.join(options.models, name)
        if "error" in about:
            sys.exit("suite: %s could not be made: %s" % (name, about["error"]))
        row = kept["rows"].setdefault(name, {})
        if row.get("digest") != about["digest"]:
            row.clear()
            row.update(digest=about["digest"], kind=about["kind"], batch=about["batch"], cores={})
        if options.memory:
            if "peaks" in row and not options.fresh:
                continue
            try:
                row["peaks"] = measure_memory(folder, options.cores or len(os.sched_getaffinity(0)), options.bench)
                said = "%.0f MB, TensorFlow %.0f MB, ratio %.2f" % (
                    row["peaks"]["tfc"] / 1e6, row["peaks"]["tensorflow"] / 1e6, row["peaks"]["tfc"] / row["peaks"]["tensorflow"])
            except (BrokenPipeError, Refused) as e:
                row["peaks"], said = {}, str(e)
            keep(kept, options)
            print("%-22s %s" % (name, said), flush=True)
            continue
        for cores in [options.cores] if options.cores else [1, 2]:
            if cores > len(os.sched_getaffinity(0)) or (str(cores) in row["cores"] and not options.fresh):
                continue
            begin = time.monotonic()
            try:
                tolerance = TOLERANCE.get(makers[name], 1e-3)
                one = measure(name, folder, about, cores, options, servers, tolerance)
                one["wrong"] = not one["difference"] <= tolerance
            except Refused as e:
                one = {"refused": str(e)}
            row["cores"][str(cores)] = one
            keep(kept, options)
            said = one.get("refused") or "%s ms, TensorFlow %s ms, ratio %.2f, p99 %.2f, CPU %.2f, difference %.1g%s" % (
                shown(one["tfc"]["median"]), shown(one["tensorflow"]["median"]), one["tfc"]["median"] / one["tensorflow"]["median"],
                one["tfc"]["p99"] / one["tensorflow"]["p99"], one["tfc"]["cpu"] / one["tensorflow"]["cpu"], one["difference"], " WRONG" if one["wrong"] else "")
            print("%-22s %d: %s  (%.0f s)" % (name, cores, said, time.monotonic() - begin), flush=True)
    for side in servers.values():
        side.close()
    if options.memory:
        memory = memory_section(kept, names, options.cores)
        print(memory)
        if options.table or not options.names:
            put_section(options.table or os.path.join(ROOT, "docs", "measurements", "peers_suite.md"), memory)
        return
    print(table(kept, names, options))
    if not options.names and not options.cores:
        options.table = options.table or os.path.join(ROOT, "docs", "measurements", "peers_suite.md")
    if options.table:
        put_section(options.table, section(kept, names, options))


if __name__ == "__main__":
    main()
