#!/usr/bin/env python3
"""The stages of scripts/gpu_check that read numbers: parts in probe, --gpu-math in numerics, cupti, green, bench, reducing a database for
bringing it back, and running again what failed, with everything said that can be (explain).

Everything is computed from the documented views. Exit: 0 all held, 1 something did not."""

import argparse
import atexit
import functools
import json
import lzma
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import sqlite3
except ImportError:  # a Python without its library: once more with the one that was carried
    if os.environ.get("LD_LIBRARY_PATH") == os.environ.get("TFC_LIBRARY_PATH"):
        raise
    os.environ["LD_LIBRARY_PATH"] = os.environ["TFC_LIBRARY_PATH"]
    os.execv(sys.executable, [sys.executable] + sys.argv)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BEGIN = time.time()
failures = []


@functools.cache
def scratch():
    """A folder for what is not brought back."""
    folder = tempfile.mkdtemp(prefix="gpu_check")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def expect(ok, text):
    print(("ok    " if ok else "WRONG ") + text, flush=True)
    if not ok:
        failures.append(text)


def attempt(name, check, *arguments):
    """One part of a stage: what goes wrong in it is said, and the next part goes on."""
    try:
        return check(*arguments)
    except Exception as problem:  # any kind of error is reported
        expect(False, f"{name}: {type(problem).__name__}: {str(problem)[-800:]}")
        return None


# On a slow machine programs get as much more time as stages do (scripts/gpu_check).
PATIENCE = float(os.environ.get("GPU_CHECK_PATIENCE") or 100) / 100


def start(arguments, timeout=120):
    """A program of tfc's, with the libraries that it was carried with."""
    own = dict(os.environ)
    if "TFC_LIBRARY_PATH" in own:
        own["LD_LIBRARY_PATH"] = own["TFC_LIBRARY_PATH"]
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=timeout * PATIENCE, env=own)


def run(arguments, timeout=120):
    """The JSON document that a program prints."""
    done = start(arguments, timeout)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()[-600:]}")
    return json.loads(done.stdout)


def begin_database(options, path):
    """A new database, with the algorithms that earlier stages chose for the libraries: they are not measured again."""
    if options.tuning and os.path.exists(options.tuning):
        shutil.copy(options.tuning, path)
    elif os.path.exists(path):
        os.remove(path)


def keep_tuning(options, path):
    """What a run has chosen, for the stages behind it: a copy of its database without the run."""
    if not options.tuning or not os.path.exists(path):
        return
    fresh = options.tuning + ".new"
    shutil.copy(path, fresh)
    db = sqlite3.connect(fresh)
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("DELETE FROM run")
    db.commit()
    db.execute("VACUUM")
    db.close()
    os.replace(fresh, options.tuning)


def tfc_run(options, graph, *more):
    path = more[more.index("--db") + 1] if "--db" in more else os.path.join(scratch(), "run.db")
    if "--db" not in more:
        more += "--db", path
    begin_database(options, path)
    document = run([os.path.join(options.bin, "tfc-run"), "--graph", f"examples/{graph}.pb", "--json", *more])
    keep_tuning(options, path)
    return document


def median_of(document):
    return document["step"]["median_us"]


def profile(options, name, graph, devices, steps):
    path = os.path.join(options.out, name + ".db")
    document = tfc_run(options, graph, "--devices", devices, "--steps", str(steps), "--profile", "--db", path)
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True), document


def attribution(db, label):
    kernels = db.execute("SELECT COALESCE(SUM(duration_us), 0), COALESCE(SUM(duration_us) FILTER (WHERE node_id IS NOT NULL), 0),"
                         " COUNT(*) FROM v_kernel").fetchone()
    copies = db.execute("SELECT COALESCE(SUM(duration_us), 0), COALESCE(SUM(duration_us) FILTER (WHERE node_id IS NOT NULL"
                        " OR transfer IS NOT NULL), 0), COUNT(*) FROM v_copy").fetchone()
    busy, named = kernels[0] + copies[0], kernels[1] + copies[1]
    expect(kernels[2] > 0, f"{label}: {kernels[2]} kernels and {copies[2]} copies were seen")
    expect(busy > 0 and named >= 0.99 * busy, f"{label}: {100 * named / max(busy, 1e-9):.2f} % of {busy:.1f} us belong to a named node or transfer")
    for name, us, count in db.execute("SELECT name, SUM(duration_us), COUNT(*) FROM v_kernel WHERE node_id IS NULL GROUP BY name"
                                      " ORDER BY 2 DESC LIMIT 20"):
        print(f"      of nobody: {us:.1f} us in {count} x {name}")
    for direction, us, count, size in db.execute("SELECT direction, SUM(duration_us), COUNT(*), SUM(bytes) FROM v_copy WHERE node_id IS NULL"
                                                 " AND transfer IS NULL GROUP BY direction ORDER BY 2 DESC LIMIT 20"):
        print(f"      of nobody: {us:.1f} us in {count} copies or fills, {direction}, {size} bytes")


def gaps(db, label):
    """How long a node of a captured segment lets wait after the one before it, which is all that it waits for: over 10 us as a rule (the
    median over the steps) fails, over 10 us once is told."""
    rows = db.execute("SELECT step, segment, place, gap_us, COALESCE(node_before, '-'), name_before, COALESCE(node, '-'), name"
                      " FROM v_segment_gap ORDER BY step, segment, place").fetchall()
    expect(rows, f"{label}: captured segments were replayed in traced steps")
    if not rows:
        return
    pairs, segments = {}, {}
    for step, segment, place, gap, *names in rows:
        number = segments.setdefault(step, {}).setdefault(segment, len(segments[step]))  # within the step
        pairs.setdefault((number, place, *names), []).append(gap)
    every = [row[3] for row in rows]
    over = sum(gap > 10 for gap in every)
    print(f"      {label}: {len(rows)} gaps in {sum(map(len, segments.values()))} replays of captured segments, {len(segments)} steps:"
          f" median {statistics.median(every):.2f} us, longest {max(every):.2f} us, {over} over 10 us, together"
          f" {sum(every) / len(segments):.1f} us a step")
    worst = sorted(pairs.items(), key=lambda pair: -max(pair[1]))
    for at, ((number, place, *names), taken) in enumerate(worst[:8]):
        if at == 0 or max(taken) > 10:
            print("      up to {:.2f} us, median {:.2f} us: segment {}, place {}: {} ({:.40}) -> {} ({:.40})".format(
                max(taken), statistics.median(taken), number, place, *names))
    rule = sum(statistics.median(taken) > 10 for taken in pairs.values())
    expect(rule == 0, f"{label}: launch gaps over 10 us within captured segments: {rule} of {len(pairs)} as a rule"
           + (f", {over} of {len(rows)} in all" if over else ""))


def traced(options, graph):
    db, document = profile(options, "cupti_" + graph, graph, "gpu:0", 20)
    print(f"      {graph}: median {median_of(document):.1f} us")
    by_profiler(document, graph)
    attribution(db, graph)
    worst = db.execute("SELECT MAX(operations_us - busy_us), MAX(busy_us - step_us) FROM v_busy").fetchone()
    expect(worst[0] is not None and worst[0] <= 0 and worst[1] <= 0, f"{graph}: operations <= busy <= step, per step and device")
    over = db.execute("SELECT COUNT(*) FROM (SELECT k.step, SUM(k.duration_us) AS us, MAX(s.step_us) AS step_us FROM v_kernel k"
                      " JOIN v_step s ON s.run_id = k.run_id AND s.step = k.step GROUP BY k.step, k.stream) WHERE us > step_us").fetchone()[0]
    expect(over == 0, f"{graph}: the kernels of a stream fit into their step")
    gaps(db, graph)
    untimed = db.execute("SELECT COUNT(*) FROM v_op WHERE dispatch_us IS NULL").fetchone()[0]
    expect(untimed == 0, f"{graph}: every operation has its dispatch beside its execution")


def by_profiler(document, label):
    """What CUDA events timed, because CUPTI was refused or left, says nothing about CUPTI."""
    timer = document.get("timer") or "nothing"
    expect(timer != "nothing" and not timer.startswith("CUDA events"), f"{label}: timed by {timer}")
    if document.get("trace_records"):
        print(f"      {label}: how its records came: {json.dumps(document['trace_records'])}, untrusted steps {document.get('untrusted_steps', 0)}")


def many_steps(options, steps):
    path = os.path.join(scratch(), "many.db")
    begin = time.time()
    done = start([os.path.join(options.bin, "tfc-run"), "--graph", "examples/mlp.pb", "--devices", "gpu:0", "--steps", str(steps),
                  "--profile", "--db", path, "--json"], timeout=150)
    expect(done.returncode == 0, f"{steps} traced steps without drops ({time.time() - begin:.0f} s) {done.stderr.strip()[-200:]}")
    if done.returncode == 0:
        by_profiler(json.loads(done.stdout), "many steps")


def overhead(options):
    """What tracing adds to a step, by tfc-run's own blocks in turns."""
    shares, untraced, traced_us = [], [], []
    for _ in range(3):
        document = tfc_run(options, "nmt", "--devices", "gpu:0", "--steps", "60")
        by_profiler(document, "nmt")
        shares.append(document["trace_overhead"])
        untraced.append(document["untraced"]["median_us"])
        traced_us.append(median_of(document))
    print(f"      nmt: untraced {statistics.median(untraced):.1f} us by the host's clock, traced {statistics.median(traced_us):.1f} us of work")
    expect(statistics.median(shares) <= 0.05, f"tracing costs {100 * statistics.median(shares):.1f} % of an nmt step (at most 5 %)")


def cupti(options):
    for graph in ("mlp",) if options.quick else ("mlp", "rnnlm", "nmt"):
        attempt(graph, traced, options, graph)
    attempt("many steps", many_steps, options, 300 if options.quick else 10000)
    if options.quick:
        return
    attempt("overhead", overhead, options)


def virtual_devices(options):
    db, _ = profile(options, "green", "mlp" if options.quick else "rnnlm", "vgpu:0-3", 10)
    rows = db.execute("SELECT name, model, label, cores FROM v_device WHERE name LIKE 'vgpu:%'").fetchall()
    for row in rows:
        print("      ", *row)
    expect(len(rows) == 4 and len({r[3] for r in rows}) == 1, "four virtual devices of one size")
    expect(all(r[2] == "virtual" for r in rows), "all are labelled virtual")


def placed_on_virtual_devices(options):
    path, placement = os.path.join(options.out, "green_place.db"), os.path.join(options.out, "green.placement.json")
    graph, time_limit, measurements = ("mlp", "20s", "4") if options.quick else ("rnnlm", "2m", "20")
    for _ in range(6):
        done = start([os.path.join(options.bin, "tfc-place"), "--graph", f"examples/{graph}.pb", "--devices", "vgpu:0-3", "--time", time_limit,
                      "--measurements", measurements, "--db", path, "--out", placement, "--report", "none"], timeout=240)
        if "another run measures" not in done.stderr:
            break
        time.sleep(10)
    else:
        print("      another run measures on this machine all the time")
        if options.quick:  # a quick check may run on a machine that others use
            return
    expect(done.returncode in (0, 7), f"tfc-place on four virtual devices: exit {done.returncode} {done.stderr.strip()[-300:]}")
    print(done.stdout[-1500:])
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    contexts = db.execute("SELECT device, GROUP_CONCAT(DISTINCT context), COUNT(DISTINCT context) FROM v_kernel WHERE device LIKE"
                          " 'vgpu:%' GROUP BY device").fetchall()
    for row in contexts:
        print("       contexts of the kernels of", *row)
    print("       kernels name their green context:", "yes" if len({r[1] for r in contexts}) == len(contexts) > 1 else "no")
    for name, slowdown in db.execute("SELECT kind, slowdown FROM v_device WHERE slowdown IS NOT NULL GROUP BY kind"):
        print(f"       {name}: alone against co-run, by busy devices: {slowdown}")


def whole_against_virtual(options):
    graph = "mlp" if options.quick else "rnnlm"
    whole = median_of(tfc_run(options, graph, "--devices", "gpu:0", "--steps", "40"))
    one = median_of(tfc_run(options, graph, "--devices", "vgpu:0", "--steps", "40"))
    print(f"       {graph}: whole GPU {whole:.1f} us, one virtual device of all multiprocessors {one:.1f} us")


def green(options):
    attempt("virtual devices", virtual_devices, options)
    attempt("whole and virtual", whole_against_virtual, options)
    attempt("tfc-place", placed_on_virtual_devices, options)


SHAPES = {"own": [8, 300], "product": [64, 64], "convolution": [2, 12, 12, 8]}
FIRST = "channels first"  # as "convolution", with its channels before the positions


def part_graph(kind):
    """A placeholder, two operations of a kind (one alone is not captured) and their sum, in text. The filter of the convolution is a slice
    of its input: 3 x 3 x 8 x 8 of 2 x 12 x 12 x 8."""
    def node(name, op, inputs, attributes):
        return (f'node {{ name: "{name}" op: "{op}" ' + " ".join(f'input: "{i}"' for i in inputs) + " "
                + " ".join(f'attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attributes.items()) + " }")

    def integers(name, *values):
        return node(name, "Const", [], {"dtype": "type: DT_INT32", "value":
                    f"tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: {len(values)} }} }} "
                    + " ".join(f"int_val: {v}" for v in values) + " }"})
    shape = SHAPES[kind] if kind != FIRST else [2, 8, 12, 12]
    of_float, lines = {"T": "type: DT_FLOAT"}, []
    lines.append(node("x", "Placeholder", [], {"dtype": "type: DT_FLOAT",
                                               "shape": "shape { " + " ".join(f"dim {{ size: {d} }}" for d in shape) + " }"}))
    if kind == "own":
        lines += [node("a", "Exp", ["x"], of_float), node("b", "Sin", ["a"], of_float)]
    elif kind == "product":
        lines += [node("a", "MatMul", ["x", "x"], of_float), node("b", "MatMul", ["a", "x"], of_float)]
    else:
        lines += [node("flat", "Reshape", ["x", "whole"], of_float | {"Tshape": "type: DT_INT32"}), integers("whole", 2304),
                  integers("from", 0), integers("size", 576), integers("form", 3, 3, 8, 8),
                  node("cut", "Slice", ["flat", "from", "size"], of_float | {"Index": "type: DT_INT32"}),
                  node("filter", "Reshape", ["cut", "form"], of_float | {"Tshape": "type: DT_INT32"})]
        how = of_float | {"strides": "list { i: 1 i: 1 i: 1 i: 1 }", "padding": 's: "SAME"'}
        if kind == FIRST:
            how["data_format"] = 's: "NCHW"'
        lines += [node("a", "Conv2D", ["x", "filter"], how), node("b", "Conv2D", ["a", "filter"], how)]
    lines += [integers("axes", *range(len(shape))), node("out", "Sum", ["b", "axes"], of_float | {"Tidx": "type: DT_INT32"})]
    return "\n".join(lines) + "\n"


def part(options, kind, way, more, on_cpu):
    path = os.path.join(options.out, f"part_{kind}.pbtxt")
    command = [os.path.join(options.bin, "tfc-run"), "--graph", path, "--fetch", "out:0", "--json", *more]
    done = start(command)
    if done.returncode != 0:
        expect(False, f"{kind}, {way}: exit {done.returncode}: {done.stderr.strip()[-600:]}")
        return explain(options, command)
    document = json.loads(done.stdout)
    value = document["fetched"]["out:0"]
    near = abs(value - on_cpu) <= 1e-3 * abs(on_cpu)
    expect(near, f"{kind}, {way}: {value:.7g}, the CPU has {on_cpu:.7g}; {median_of(document):.1f} us a step")
    for lost in document["fallbacks"]:
        expect(lost.get("op") == "Slice", f"{kind}, {way}: on the host, or not by its library: {json.dumps(lost)[:400]}")
    if way == "under CUPTI":
        by_profiler(document, kind)
    if not near:
        explain(options, command)
    return None


def parts(options):
    """An own kernel, a product and a convolution, each launched one by one, captured, also with branches, on a green stream,
    and under CUPTI."""
    ways = {"plain": ["--devices", "gpu:0", "--cuda-graphs", "off", "--steps", "3"],
            "captured": ["--devices", "gpu:0", "--steps", "5"],
            "captured, side by side": ["--devices", "gpu:0", "--steps", "5", "--cuda-graphs", "branches"],
            "on a green stream": ["--devices", "vgpu:0-1", "--steps", "5"],
            "under CUPTI": ["--devices", "gpu:0", "--steps", "5", "--profile", "--db", os.path.join(scratch(), "part.db")]}
    for kind in SHAPES:
        path = os.path.join(options.out, f"part_{kind}.pbtxt")
        with open(path, "w") as f:
            f.write(part_graph(kind))
        cpu = attempt(kind, run, [os.path.join(options.bin, "tfc-run"), "--graph", path, "--fetch", "out:0", "--json", "--steps", "1"])
        for way, more in ways.items() if cpu else ():
            attempt(f"{kind}, {way}", part, options, kind, way, more, cpu["fetched"]["out:0"])


def declines(options):
    """What runs on the host in the large graphs, and why, in the libraries' own words where they said something."""
    for graph in ("mlp",) if options.quick else ("nmt", "transformer", "resnet50"):
        document = attempt(graph, tfc_run, options, graph, "--devices", "gpu:0", "--steps", "2", "--warmup", "0")
        for lost in document["fallbacks"] if document else []:
            print(f"      {graph}: on the host, or not by its library:", json.dumps(lost)[:400])
        if document:
            print(f"      {graph}: {len(document['fallbacks'])} operations on the host or not by their library, {median_of(document):.1f} us a step")


def again(options, what, command, seconds, **more):
    """The end of what a command says when it runs again; its exit status."""
    seconds = min(seconds, options.seconds - (time.time() - BEGIN))
    if seconds < 5:
        print(f"      -- again {what}: no time left", flush=True)
        return None
    environment = dict(os.environ, **more)
    if "TFC_LIBRARY_PATH" in environment:
        environment["LD_LIBRARY_PATH"] = environment["TFC_LIBRARY_PATH"]
    print(f"      -- again {what}:", flush=True)
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=seconds, env=environment)
    except subprocess.TimeoutExpired as late:
        lines, code = (late.stdout or b"").decode(errors="replace").splitlines(), "stopped"
    except OSError as problem:
        lines, code = [str(problem)], "not started"
    else:
        lines, code = done.stdout.splitlines(), done.returncode
    for line in lines[-40:]:
        print("        ", line[:300])
    print(f"         exit {code}", flush=True)
    return code


def toolkit_program(name):
    """Where the program is, on the path or in the toolkit's folder; None: nowhere."""
    return shutil.which(name) or shutil.which(os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", name))


def explain(options, command):
    """The first thing that fails is run again: launches that wait, with the libraries' logs; under a debugger for the stack where a signal
    ended it; under compute-sanitizer. The others are not: there is no time."""
    told = os.path.join(options.out, "explained")
    if os.path.exists(told):
        return
    with open(told, "w") as f:
        f.write(" ".join(command) + "\n")
    print("      the first failure, run again:", " ".join(command))
    code = again(options, "with CUDA_LAUNCH_BLOCKING=1 and the libraries' logs", command, 40, CUDA_LAUNCH_BLOCKING="1", CUDNN_LOGLEVEL_DBG="2",
                 CUDNN_LOGDEST_DBG="stderr", CUBLASLT_LOG_LEVEL="2")
    if isinstance(code, int) and (code < 0 or code >= 128):
        # A machine for CUDA may have only the toolkit's, which needs no GPU code to stop in.
        debugger = shutil.which("gdb") or toolkit_program("cuda-gdb")
        if debugger:
            again(options, "under " + os.path.basename(debugger),
                  [debugger, "-batch", "-ex", "run", "-ex", "thread apply all backtrace 20", "--args", *command], 40)
        else:
            print("      there is no gdb: no stack")
    sanitizer = toolkit_program("compute-sanitizer")
    if sanitizer:
        again(options, "under compute-sanitizer", [sanitizer, "--target-processes", "all", "--print-limit", "10", *command], 60)
    else:
        print("      there is no compute-sanitizer")


def losses_in(options, graph, *more):
    """Of one step in each arithmetic: near that in float32. Returns those in which it is another."""
    plain, others = None, set()
    for name, most in {"float32": 0, "tf32": 5e-3, "float16": 5e-3, "bfloat16": 3e-2}.items():
        document = tfc_run(options, graph, "--devices", "gpu:0", "--steps", "5", "--fetch", "loss:0", "--gpu-math", name, *more)
        value = document["fetched"]["loss:0"]
        plain = value if plain is None else plain
        off = abs(value - plain) / abs(plain)
        expect(document.get("gpu_math") == name and off <= most,
               f"{graph} in {name}: loss {value:.8g}, off by {off:.2g} (at most {most:g}), {median_of(document):.1f} us a step")
        if off > 0:
            others.add(name)
    return others


def all_rewrites(options, graph):
    """Of a few steps in float32: what rounds in another order (attention, biases in products) is near."""
    exact, every = (tfc_run(options, graph, "--devices", "gpu:0", "--steps", "5", "--fetch", "loss:0", "--gpu-math", "float32", "--rewrites",
                            which) for which in ("exact", "all"))
    want, got = (document["fetched"]["loss:0"] for document in (exact, every))
    off = abs(got - want) / abs(want)
    expect(off <= 1e-4, f"{graph}: loss {got:.8g} with all rewrites, {want:.8g} with exact ones, off by {off:.2g} (at most 1e-4),"
           f" {median_of(every):.1f} us a step, {median_of(exact):.1f} with exact ones")


def channels_first(options):
    """Two convolutions with channels first, each by itself and as a chain that may keep channels last: near the CPU's sum."""
    path = os.path.join(scratch(), "first.pbtxt")
    with open(path, "w") as f:
        f.write(part_graph(FIRST))
    command = [os.path.join(options.bin, "tfc-run"), "--graph", path, "--fetch", "out:0", "--json", "--steps", "5", "--gpu-math", "float32"]
    want, exact, every = (run([*command, "--devices", device, "--rewrites", which])
                          for device, which in (("cpu:0", "exact"), ("gpu:0", "exact"), ("gpu:0", "all")))
    for which, document in (("exact", exact), ("all", every)):
        off = abs(document["fetched"]["out:0"] - want["fetched"]["out:0"]) / abs(want["fetched"]["out:0"])
        expect(off <= 1e-3, f"channels first, --rewrites {which}: off by {off:.2g} (at most 1e-3), {median_of(document):.1f} us a step")


def maths(options):
    others = set()
    for graph, *more in (("mlp",),) if options.quick else (("mlp",), ("rnnlm",), ("alexnet", "--batch", "8")):
        others |= attempt(f"{graph}: --gpu-math", losses_in, options, graph, *more) or set()
    # One loss may be the same by chance: it has few digits, and rnnlm's is nearly that of a guess.
    for name in ("tf32", "float16", "bfloat16"):
        expect(name in others, f"a loss in {name} is not the one in float32, so it was used")
    graph = "mlp" if options.quick else "transformer"
    attempt(f"{graph}: --rewrites all", all_rewrites, options, graph)
    attempt(FIRST, channels_first, options)


def torch_models():
    """Which graphs, with which batch; the file is also the program that times PyTorch."""
    import importlib.util
    path = os.path.join(ROOT, "tests", "gpu", "torch_models.py")
    spec = importlib.util.spec_from_file_location("torch_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def torch_time(name, mode, timeout):
    """Microseconds of PyTorch's step (NaN where it failed), and its launches by its own profiler ("-": not known)."""
    try:
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "gpu", "torch_models.py"), name, mode], capture_output=True,
                              text=True, timeout=timeout)
        if done.returncode == 0:
            time_us, launches = done.stdout.split()[-2:]
            return float(time_us), launches
        print("      PyTorch", mode, name, "failed:", done.stderr.strip()[-300:])
    except (subprocess.TimeoutExpired, ValueError, IndexError) as problem:
        print("      PyTorch", mode, name, "failed:", str(problem)[-300:])
    return float("nan"), "-"


def our_time(options, name, graph, batch, more, rewrites):
    """Microseconds of tfc's step, and what it launches: every kernel, copy and fill of the last step has a row. Arithmetic as PyTorch's:
    float32 without TF32."""
    path = os.path.join(scratch(), "bench.db")
    document = attempt(f"{name}, {rewrites}", tfc_run, options, graph, "--devices", "gpu:0", "--steps", "30", "--warmup", "10", "--batch",
                       str(batch), "--rewrites", rewrites, "--gpu-math", "float32", "--profile", "--db", path, *more)
    if not document:
        return float("nan"), "-"
    if rewrites == "exact":
        for lost in document["fallbacks"]:
            print("      on the host:", json.dumps(lost)[:200])
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    last = "run_id = (SELECT MAX(run_id) FROM v_step) AND step = (SELECT MAX(step) FROM v_step)"
    works = [db.execute(f"SELECT COUNT(*), COALESCE(SUM(duration_us), 0) FROM {view} WHERE {last}").fetchone() for view in ("v_kernel", "v_copy")]
    chains = db.execute(f"SELECT COUNT(*), COALESCE(SUM(duration_us), 0) FROM v_kernel WHERE {last} AND (name LIKE '%chain_kernel%' OR name"
                        " LIKE '%chain_rows_kernel%')").fetchone()
    print(f"      {name}, {rewrites}: {works[0][0]} kernels {works[0][1]:.1f} us, {works[1][0]} copies and fills {works[1][1]:.1f} us; of these"
          f" {chains[0]} chains that a kernel interprets {chains[1]:.1f} us", flush=True)
    return median_of(document), str(works[0][0] + works[1][0])


def side_by_side(options, name, graph, batch, more):
    """Microseconds of tfc's step where independent operations of a captured segment are branches of its graph: what decides whether that
    should be the default."""
    document = attempt(f"{name}, side by side", tfc_run, options, graph, "--devices", "gpu:0", "--steps", "30", "--warmup", "10", "--batch",
                       str(batch), "--rewrites", "all", "--gpu-math", "float32", "--cuda-graphs", "branches", *more)
    return median_of(document) if document else float("nan")


def keep_rows(options, rows):  # an interrupted check has only some of the rows
    with open(os.path.join(options.out, "bench.json"), "w") as f:
        json.dump(rows, f)


def bench(options):
    """tfc, with rewrites that keep every bit and with all, and PyTorch as it comes for every model first; in the time that is left graphs
    with branches, and PyTorch's compiled mode, which takes a minute each."""
    models, rows, begin = torch_models(), {}, time.time()
    for name, (graph, batch, more) in models.NAMES.items():
        ours = {way: our_time(options, name, graph, batch, more, way) for way in ("exact", "all")}
        eager = torch_time(name, "eager", 60)
        rows[name] = {"tfc_us": ours["all"][0], "tfc_launches": ours["all"][1], "exact_us": ours["exact"][0], "exact_launches": ours["exact"][1],
                      "eager_us": eager[0], "eager_launches": eager[1]}
        print(f"{name:14s} tfc {ours['all'][0]:10.1f} us {ours['all'][1]:>5s} launches (exact {ours['exact'][0]:.1f} us {ours['exact'][1]})   eager"
              f" {eager[0]:10.1f} us {eager[1]:>5s} ({ours['all'][0] / eager[0]:.2f})", flush=True)
        keep_rows(options, rows)
    for name, (graph, batch, more) in models.NAMES.items():
        if options.seconds - 40 - (time.time() - begin) < 20:
            print(f"{name:14s} side by side: no time left")
            continue
        row = rows[name]
        row["branches_us"] = side_by_side(options, name, graph, batch, more)
        print(f"{name:14s} tfc {row['tfc_us']:10.1f} us   side by side {row['branches_us']:10.1f} us"
              f" ({row['branches_us'] / row['tfc_us']:.2f})", flush=True)
        keep_rows(options, rows)
    for name, row in rows.items():
        left = options.seconds - 40 - (time.time() - begin)
        if left < 20:
            print(f"{name:14s} compiled: no time left")
            continue
        row["compiled_us"], row["compiled_launches"] = torch_time(name, "compiled", min(120, left))
        print(f"{name:14s} tfc {row['tfc_us']:10.1f} us   compiled {row['compiled_us']:10.1f} us {row['compiled_launches']:>5s}"
              f" ({row['tfc_us'] / row['compiled_us']:.2f})", flush=True)
        keep_rows(options, rows)
    for name, row in rows.items():
        expect(row["tfc_us"] <= row["eager_us"], f"{name}: at most PyTorch eager's time")


def reduce(options):
    """Keeps the raw rows of the answer and the baselines only, and compresses: at most 15 MB a file."""
    db = sqlite3.connect(options.db)
    used = db.execute("SELECT name, kind, label FROM device WHERE run_id = (SELECT MAX(run_id) FROM run)").fetchall()
    expect(any("gpu" in row[1] for row in used), f"measured on {', '.join(' '.join(row) for row in used)}")
    keep = "SELECT placement FROM placement p JOIN run r ON r.run_id = p.run_id WHERE p.role = 'baseline' OR p.placement_id = r.best_placement_id"
    for table in ("op", "transfer", "work", "gpu_call"):
        db.execute(f"DELETE FROM {table} WHERE placement NOT IN ({keep})")
        db.execute(f"DELETE FROM {table} WHERE step > (SELECT MIN(step) + 5 FROM {table} t WHERE t.placement = {table}.placement)")
    db.commit()
    db.execute("VACUUM")
    db.close()
    with open(options.db, "rb") as f, lzma.open(options.db + ".xz", "wb", preset=3) as packed:
        shutil.copyfileobj(f, packed)
    size = os.path.getsize(options.db + ".xz")
    expect(size <= 15_000_000, f"{options.db}.xz: {size / 1e6:.1f} MB")
    os.remove(options.db)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=["parts", "declines", "explain", "maths", "cupti", "green", "bench", "reduce"])
    parser.add_argument("--bin")
    parser.add_argument("--out", default=".")
    parser.add_argument("--db")
    parser.add_argument("--tuning", help="a database that carries what was measured of the libraries' algorithms from stage to stage")
    parser.add_argument("--seconds", type=float, default=470, help="what there is time for")
    parser.add_argument("--quick", action="store_true", help="small graphs and few steps: whether it runs at all")
    # explain's command follows "--"; argparse gives a list of positional arguments nothing where an option comes between
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:end])
    if options.stage == "explain":
        explain(options, given[end + 1:])
        return 0
    attempt(options.stage, globals()[options.stage], options)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
