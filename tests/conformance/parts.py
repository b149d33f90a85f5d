"""The parts of the comparison; each takes (options, program, report)."""

import gzip
import importlib
import json
import os
import re

import numpy as np

import cases as op_cases
import common
import external
import generate
import graphs as random_graphs
import hostile as mutants
import make_graphs
from tool import last_line

tf, tf1 = op_cases.tf, op_cases.tf1
UNSUPPORTED = re.compile(r"unsupported|not supported|cannot run|no kernel|unknown op|does not know|no operation", re.I)
LOSS_TOLERANCE = 1e-4


# -- operations --------------------------------------------------------------------------------------------------------

def ops(options, program, report):
    for name in options.family or generate.FAMILIES:
        family = generate.family(name)
        family.cases = [c for c in family.cases if options.case in c["name"]]
        if not family.cases:
            continue
        results = family.compute()
        directory = os.path.join(options.directory, "ops", name)
        os.makedirs(directory, exist_ok=True)
        graph = os.path.join(directory, "graph.pb")
        with open(graph, "wb") as f:
            f.write(family.graph_def().SerializeToString(deterministic=True))
        run_cases(family, results, graph, directory, program, report)


def run_cases(family, results, graph, directory, program, report):
    """All cases in one session; when one of them ends it, the rest in the next."""
    waiting, attempt = [c for c in family.cases if "error" not in c], 0
    while waiting:
        runs = [run for case in waiting for run in case["runs"]]
        attempt += 1
        code, outputs, errors = program.script(graph, runs, os.path.join(directory, "session%d" % attempt))
        at, culprit = 0, None
        for i, case in enumerate(waiting):
            part = outputs[at:at + len(case["runs"])]
            at += len(case["runs"])
            if code != 0 and any(len(found) < len(run["fetches"]) for found, run in zip(part, case["runs"])):
                culprit = i
                break
            judge(case, results[case["name"]], part, report)
        if culprit is None:
            if code != 0:
                report.fail(family.name, "tfc-run ended with %s: %s" % (code, last_line(errors)))
            break
        named = [i for i, case in enumerate(waiting) if i >= culprit and case["name"] + "/" in errors]
        blamed = waiting.pop(named[0] if named else culprit)
        blame(blamed, code, errors, report)
        waiting = waiting[culprit:] if not named or named[0] == culprit else waiting[culprit:]
    for case in family.cases:
        if "error" not in case:
            continue
        code, _, errors = program.script(graph, case["runs"], os.path.join(directory, "error_" + case["name"]))
        if code is None or code < 0:
            report.fail(case["name"], "crashed or hung (%s)" % code)
        elif code == 0:
            report.fail(case["name"], "ran, TensorFlow ends with " + case["error"])
        elif UNSUPPORTED.search(errors):
            report.lacks(case["name"], last_line(errors))
        else:
            report.ok(case["name"])


def blame(case, code, errors, report):
    if code is not None and code > 0 and UNSUPPORTED.search(errors):
        report.lacks(case["name"], last_line(errors))
    else:
        report.fail(case["name"], "tfc-run ended with %s: %s" % (code, last_line(errors)))


def judge(case, expected, outputs, report):
    for r, (run, values, found) in enumerate(zip(case["runs"], expected, outputs)):
        for tensor, value in zip(run["fetches"], values):
            if tensor not in found:
                return report.fail(case["name"], "run %d: %s was not written" % (r, tensor))
            wrong = op_cases.mismatch(value, found[tensor], run.get("tolerance", case["tolerance"]))
            if wrong:
                return report.fail(case["name"], "run %d: %s: %s" % (r, tensor, wrong))
    report.ok(case["name"])


# -- mutated operations ------------------------------------------------------------------------------------------------

def hostile(options, program, report):
    mutants.compare(options, program, report)


# -- random graphs -----------------------------------------------------------------------------------------------------

def graphs(options, program, report):
    random_graphs.compare(options, program, report)


# -- examples ----------------------------------------------------------------------------------------------------------

def compare_losses(name, expected, found, report, allowed=0.0):
    """Each within 1e-4 relative, or within `allowed` where that is more."""
    if len(found) < len(expected):
        return report.fail(name, "%d of %d losses" % (len(found), len(expected)))
    off = [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(found, expected)]
    excess = np.array(off) / np.maximum(LOSS_TOLERANCE, np.broadcast_to(allowed, len(off)))
    worst = int(np.argmax(excess))
    if not excess[worst] <= 1:
        return report.fail(name, "loss %d is %.9g, not %.9g (%.2g relative)" % (worst + 1, found[worst], expected[worst], off[worst]))
    report.ok(name)


def examples(options, program, report):
    for name in options.example or make_graphs.NAMES:
        example = importlib.import_module("models." + name).example()
        with open(os.path.join(example.golden_dir, "golden.json")) as f:
            golden = json.load(f)
        feeds = [{t: np.load(os.path.join(example.golden_dir, p)) for t, p in one.items()} for one in golden["feeds"]]
        reads = [v["read"] for v in golden["variables"]]
        gradients = [g["name"] for g in golden["gradients"]]
        steps = [{"feeds": feeds[k % len(feeds)], "fetches": [example.loss], "targets": example.train} for k in range(len(golden["losses"]))]
        directory = os.path.join(options.directory, "examples", name)
        code, outputs, errors = program.script(example.path, [{"targets": example.init}] + steps, os.path.join(directory, "losses"))
        if code != 0:
            report.fail(name + ".losses", "tfc-run ended with %s: %s" % (code, last_line(errors)))
        else:
            compare_losses(name + ".losses", golden["losses"], [float(o[example.loss]) for o in outputs[1:] if example.loss in o], report)
        code, outputs, errors = program.script(example.path, [{"targets": example.init}, {"fetches": reads}, {"feeds": feeds[0], "fetches": gradients}],
                                               os.path.join(directory, "values"))
        if code != 0:
            report.fail(name + ".values", "tfc-run ended with %s: %s" % (code, last_line(errors)))
            continue
        for row, tensor in zip(golden["variables"], reads):
            compare_checksum("%s.initial.%s" % (name, row["name"]), row, outputs[1].get(tensor), row["initializer"] != "normal", 1e-6, report)
        compare_gradients(example, golden["gradients"], outputs[2], feeds[0], report)
    if not options.example:
        saved_model(options, program, report)


class Quiet:
    """A report that keeps what went wrong to itself."""

    def __init__(self):
        self.why = None

    def ok(self, name):
        pass

    def fail(self, name, why):
        self.why = why


def compare_gradients(example, rows, values, feeds, report):
    """Each within 1e-4 of its tensor's largest element; where one is not, TensorFlow itself is asked how far its gradients move
    when the variables move by a millionth, which is what sums of thousands of products in another order are off (of two near maxima
    of a window another may win, a Relu may close: that moves gradients far). So far, the farthest of seven tries, ours may be away, but
    no further than a tenth of the largest element: a wrong factor, sign or axis, or a missing term, fails all the same. Where one
    such choice alone makes the difference it is the farthest, and ours is the gradient of that try: within 1e-4 of it."""
    tensors, off = [row["name"] for row in rows], {}
    for row in rows:
        quiet = Quiet()
        compare_checksum(row["name"], row, values.get(row["name"]), False, 1e-4, quiet)
        if quiet.why:
            off[row["name"]] = quiet.why
        else:
            report.ok("%s.gradient.%s" % (example.name, row["name"]))
    if not off:
        return
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(example.load(), name="")
    moved, most = {}, max(row["max_abs"] for row in rows)
    for seed in range(8):  # the first seed changes nothing
        with common.plain_session(graph) as session:
            session.run(example.init)
            if seed:
                shake(graph, session, seed)
            for tensor, value in zip(tensors, session.run(tensors, feeds)):
                if tensor in off:
                    moved.setdefault(tensor, []).append(np.asarray(value, np.float64))
    for tensor, why in off.items():
        first, spread = moved[tensor][0], max(np.abs(v - moved[tensor][0]).max() for v in moved[tensor][1:])
        ours = np.asarray(values[tensor], np.float64) if tensor in values and values[tensor].shape == first.shape else np.full(first.shape, np.inf)
        away, nearest = np.abs(ours - first).max(), min(np.abs(ours - v).max() for v in moved[tensor])
        name = "%s.gradient.%s" % (example.name, tensor)
        largest = np.abs(first).max()
        nothing = spread >= largest and largest <= 1e-6 * most
        if away <= (spread if nothing else min(spread, 0.1 * largest)) or nearest <= 1e-4 * largest:
            report.ok(name)
        else:
            report.fail(name, "%s (%.2g away; TensorFlow's own moves by %.2g, its largest element is %.2g)" % (why, away, spread, largest))


def shake(graph, session, seed):
    """Every element of a float32 variable by a millionth, up or down."""
    rng = np.random.RandomState(seed)
    for variable in common.variables_of(graph):
        read = common.read_tensor(graph, variable)
        if read.dtype.base_dtype != tf.float32:
            continue
        value = session.run(read)
        value = value * (1 + np.float32(1e-6) * rng.choice([-1, 1], size=value.shape)).astype(np.float32)
        assign = [op for op in graph.get_operations() if op.type in ("Assign", "AssignVariableOp") and op.inputs[0].op == variable]
        session.run(assign[0], {assign[0].inputs[1]: value})


def compare_checksum(name, row, value, to_the_bit, tolerance, report):
    if value is None:
        return report.fail(name, "was not written")
    found = common.checksum(row["name"], value)
    if found["shape"] != row["shape"] or found["dtype"] != row["dtype"]:
        return report.fail(name, "%s %s, not %s %s" % (found["dtype"], found["shape"], row["dtype"], row["shape"]))
    if to_the_bit:
        return report.ok(name) if found["sha256"] == row["sha256"] else report.fail(name, "other bytes: starts with %s, not %s" % (found["first"], row["first"]))
    scale = max(row["max_abs"], 1e-30)
    for key in ("first", "last"):
        for a, b in zip(found[key], row[key]):
            if not abs(a - b) <= tolerance * scale:
                return report.fail(name, "%s elements %s, not %s" % (key, found[key], row[key]))
    if not abs(found["sum_of_squares"] - row["sum_of_squares"]) <= 4 * tolerance * max(row["sum_of_squares"], 1e-300):
        return report.fail(name, "sum of squares %.9g, not %.9g" % (found["sum_of_squares"], row["sum_of_squares"]))
    report.ok(name)


def saved_model(options, program, report):
    directory = os.path.join(ROOT, "examples", "golden", "saved_model")
    with open(os.path.join(directory, "golden.json")) as f:
        golden = json.load(f)
    with open(os.path.join(directory, "script.json")) as f:
        runs = json.load(f)["runs"]
    for run in runs:
        run["feeds"] = {t: np.load(os.path.join(directory, p)) for t, p in run["feeds"].items()}
    code, outputs, errors = program.script(os.path.join(ROOT, "examples", "saved_model"), runs, os.path.join(options.directory, "saved_model"))
    if code != 0:
        return report.fail("saved_model", "tfc-run ended with %s: %s" % (code, last_line(errors)))
    for tensor, path in golden["serving"].items():
        wrong = op_cases.mismatch(np.load(os.path.join(directory, path)), outputs[0].get(tensor, np.zeros(0)), "relative:1e-5")
        report.fail("saved_model." + tensor, wrong) if wrong else report.ok("saved_model." + tensor)
    compare_losses("saved_model.losses", golden["losses"], [float(list(o.values())[0]) for o in outputs[1:] if o], report)


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# -- checkpoints -------------------------------------------------------------------------------------------------------

def checkpoints(options, program, report):
    """TensorFlow's checkpoint read by tfc (and trained on); tfc's read by TensorFlow; dtypes, slices, partitions."""
    directory = os.path.join(ROOT, "examples", "checkpoint")
    with open(os.path.join(directory, "golden.json")) as f:
        golden = json.load(f)
    with open(os.path.join(directory, "script.json")) as f:
        runs = json.load(f)["runs"]
    for run in runs:
        run["feeds"] = {t: np.load(os.path.join(directory, p)) for t, p in run["feeds"].items()}
    graph = os.path.join(ROOT, "examples", "mlp.pb")
    out = os.path.join(options.directory, "checkpoints")
    code, outputs, errors = program.script(graph, runs, os.path.join(out, "restore"), "--checkpoint", os.path.join(directory, golden["checkpoint"]))
    if code != 0:
        report.fail("checkpoint.restore", "tfc-run ended with %s: %s" % (code, last_line(errors)))
    else:
        compare_losses("checkpoint.restore", golden["losses"], [float(o["loss:0"]) for o in outputs if "loss:0" in o], report)
    prefix = os.path.join(out, "saved", "mlp")
    os.makedirs(os.path.dirname(prefix), exist_ok=True)
    code, _, errors = program.script(graph, [{"targets": ["init"]}], os.path.join(out, "save"), "--save-checkpoint", prefix)
    if code != 0:
        report.fail("checkpoint.save", "tfc-run ended with %s: %s" % (code, last_line(errors)))
    else:
        with open(os.path.join(ROOT, "examples", "golden", "mlp", "golden.json")) as f:
            rows = json.load(f)["variables"]
        try:
            reader = tf.train.load_checkpoint(prefix)
            for row in rows:
                compare_checksum("checkpoint.save." + row["name"], row, reader.get_tensor(row["name"]), row["initializer"] != "normal", 1e-6, report)
        except (tf.errors.OpError, ValueError) as error:
            report.fail("checkpoint.save", "TensorFlow cannot read it: " + str(error).splitlines()[0])
    slices(program, report, out)


def slices(program, report, out):
    """SaveV2, RestoreV2 and MergeV2Checkpoints as operations, with slices and every dtype, both ways."""
    dtypes = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool", "complex64", "string"]
    family = op_cases.Family("checkpoint")
    values = {d: family.values(d, [4, 6]) for d in dtypes}
    def build(theirs, ours):
        graph = tf.Graph()
        with graph.as_default():
            names = dtypes + ["halves", "halves"]
            spec = [""] * len(dtypes) + ["4 6 0,2:-", "4 6 2,2:-"]
            tensors = [tf1.constant(values[d], dtype=d) for d in dtypes] + [tf1.constant(values["float32"][:2]), tf1.constant(values["float32"][2:])]
            tf1.raw_ops.SaveV2(prefix=theirs + "-a", tensor_names=names[:5], shape_and_slices=spec[:5], tensors=tensors[:5], name="save_a")
            tf1.raw_ops.SaveV2(prefix=theirs + "-b", tensor_names=names[5:], shape_and_slices=spec[5:], tensors=tensors[5:], name="save_b")
            with tf1.control_dependencies([graph.get_operation_by_name("save_a"), graph.get_operation_by_name("save_b")]):
                tf1.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[theirs + "-a", theirs + "-b"], destination_prefix=theirs, name="save")
            tf1.raw_ops.RestoreV2(prefix=ours, tensor_names=dtypes + ["halves", "halves"], shape_and_slices=[""] * len(dtypes) + ["", "4 6 1,2:3,3"],
                                  dtypes=dtypes + ["float32", "float32"], name="restore")
        return graph
    fetches = ["restore:%d" % i for i in range(len(dtypes) + 2)]
    expected = [values[d] for d in dtypes] + [values["float32"], values["float32"][1:3, 3:6]]
    for writer, reader in (("tensorflow", "tfc"), ("tfc", "tensorflow"), ("tfc", "tfc")):
        name, prefix = "checkpoint.%s_reads_%s" % (reader, writer), os.path.join(out, writer + "_" + reader)
        graph = build(prefix, prefix)
        path = prefix + ".pb"
        with open(path, "wb") as f:
            f.write(graph.as_graph_def().SerializeToString())
        found = None
        for who, run in ((writer, {"targets": ["save"]}), (reader, {"fetches": fetches})):
            if who == "tensorflow":
                try:
                    with tf1.Session(graph=graph) as session:
                        made = session.run([graph.get_tensor_by_name(n) for n in run.get("fetches", [])]
                                           + [graph.get_operation_by_name(n) for n in run.get("targets", [])])
                    found = dict(zip(run.get("fetches", []), made))
                except tf.errors.OpError as error:
                    report.fail(name, "TensorFlow: " + str(error.message).splitlines()[0])
                    break
            else:
                code, outputs, errors = program.script(path, [run], prefix + "_run")
                if code != 0:
                    report.fail(name, "tfc-run ended with %s: %s" % (code, last_line(errors)))
                    break
                found = outputs[0]
        else:
            wrong = [w for w in (op_cases.mismatch(e, found.get(f, np.zeros(0)), "exact") for f, e in zip(fetches, expected)) if w]
            report.fail(name, wrong[0]) if wrong else report.ok(name)


# -- models ------------------------------------------------------------------------------------------------------------

def models(options, program, report):
    """Models as users save them: what tfc computes, and that TensorFlow reads what their own save nodes wrote."""
    import made_models as made
    for name, path, runs, expected in made.made_elsewhere(os.path.join(options.directory, "models")):
        code, outputs, errors = program.script(path, runs, os.path.join(options.directory, "models", name + "_run"))
        if code != 0:
            blame({"name": "model." + name}, code, errors, report)
            continue
        wrong = ["run %d: %s: %s" % (r, tensor, why) for r, values in enumerate(expected) for tensor, value in values.items()
                 for why in [op_cases.mismatch(value, outputs[r].get(tensor, np.zeros(0)), "relative:1e-5")] if why]
        if path.endswith(".meta"):
            theirs, ours = (tf.train.load_checkpoint(os.path.join(os.path.dirname(path), n)) for n in ("m", "ours"))
            wrong += ["saved %s differs" % v for v in theirs.get_variable_to_shape_map() if not np.array_equal(theirs.get_tensor(v), ours.get_tensor(v))]
        report.fail("model." + name, wrong[0]) if wrong else report.ok("model." + name)


# -- shapes ------------------------------------------------------------------------------------------------------------

def shapes(options, program, report):
    """tfc-run --shapes --json: every shape that TensorFlow infers is found; knowing more than TensorFlow is fine."""
    for path in [os.path.join(ROOT, "examples", n + ".pb") for n in make_graphs.NAMES]:
        compare_shapes(path, program, report)
    unpacked = os.path.join(options.directory, "golden.pb")
    for path in [os.path.join(ROOT, "tests", "conformance", "golden", n, "graph.pb.gz") for n in generate.FAMILIES]:
        with gzip.open(path) as packed, open(unpacked, "wb") as file:
            file.write(packed.read())
        compare_shapes(unpacked, program, report, path)


def compare_shapes(path, program, report, shown=None):
    name = "shapes." + os.path.relpath(shown or path, ROOT)
    code, out, errors = program.call("--graph", path, "--shapes", "--json")
    if code != 0:
        return report.fail(name, "tfc-run ended with %s: %s" % (code, last_line(errors)))
    try:
        found = {"%s:%d" % (node["name"], i): output for node in json.loads(out)["nodes"] for i, output in enumerate(node["outputs"])}
    except (ValueError, KeyError, TypeError):
        return report.fail(name, "--shapes --json printed no document with nodes and their outputs")
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(external.read_graph(path)[0], name="")
    wrong, count = [], 0
    for op in graph.get_operations():
        if op.type == "ResourceConditionalAccumulator":  # a handle is a scalar; TensorFlow infers [2], its kernel gives []
            continue
        # Where the runs of n cells begin and end are n + 1 numbers; TensorFlow infers n, its kernels give them all.
        for tensor in op.outputs[:1] if op.type in ("FractionalMaxPool", "FractionalAvgPool") else op.outputs:
            theirs = tensor.shape.as_list() if tensor.shape.rank is not None else None
            ours = found.get(tensor.name, "absent")
            ours = ours.get("shape") if isinstance(ours, dict) else ours
            ours = [None if d is None or d < 0 else d for d in ours] if isinstance(ours, list) else ours
            count += 1
            # TensorFlow infers four dimensions of patches of volumes, which have five, and divides rows and columns by the
            # strides where it pools over channels, where its kernel keeps them all.
            if op.type == "ExtractVolumePatches" and theirs == [None] * 4 and ours is not None and len(ours) == 5:
                continue
            if op.type == "MaxPoolV2" and theirs and ours and theirs[3] != op.inputs[0].shape[3] and ours == op.inputs[0].shape[:3].as_list() + [theirs[3]]:
                continue
            if ours == "absent":
                wrong.append("%s is absent" % tensor.name)
            elif theirs is not None and (ours is None or len(ours) != len(theirs) or any(t is not None and t != o for t, o in zip(theirs, ours))):
                wrong.append("%s (%s) is %s, TensorFlow's %s" % (tensor.name, op.type, ours, theirs))
    if wrong:
        report.fail(name, "%d of %d tensors; first: %s" % (len(wrong), count, "; ".join(wrong[:5])))
    else:
        report.ok(name)


# -- a graph from elsewhere --------------------------------------------------------------------------------------------

def graph(options, program, report):
    if not options.graph:
        report.skip("graph", "no --graph PATH was given")
    for path in options.graph:
        if not os.path.exists(path):
            report.skip("graph " + path, "no such file")
            continue
        compare_shapes(path, program, report)
        external.compare(path, options, program, report, compare_losses)
