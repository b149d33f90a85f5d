"""Op cases: one graph per family of operations, what TensorFlow computes in it, and how closely that must be matched.

A family is a module under ops/ with a function `cases(f)` that adds cases to the Family `f`. A case is one operation
type and dtype: a list of runs in one session, each with fetches and targets. Inputs are constants, or constants behind
a PlaceholderWithDefault of unknown shape ("dynamic"), so that nothing needs feeding.
"""

import gzip
import hashlib
import json
import os
import re
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import kernels, op_def_library, op_def_registry  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf.get_logger().setLevel("ERROR")

BFLOAT16 = tf.bfloat16.as_numpy_dtype
FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64"]
ALL = FLOATS + INTS + ["bool"] + COMPLEX
LIGHT = ["float32", "float64", "int32", "int64"]


def npdtype(name):
    return BFLOAT16 if name == "bfloat16" else np.dtype(object) if name == "string" else np.dtype(name)


def kernel_dtypes(op, attr="T"):
    """Names of the dtypes for which TensorFlow has a CPU kernel of this op."""
    found = set()
    for kernel in kernels.get_registered_kernels_for_op(op).kernel:
        if kernel.device_type not in ("CPU", "DEFAULT"):
            continue
        allowed = [c.allowed_values.list.type for c in kernel.constraint if c.name == attr]
        found |= set(tf.as_dtype(t).name for t in allowed[0]) if allowed else set(ALL)
    return found


def producer(graph_def):
    """The newest version of graphs in which all these ops still are."""
    definitions = [op_def_registry.get(op) for op in {n.op for n in graph_def.node}]
    return min([tf.version.GRAPH_DEF_VERSION] + [d.deprecation.version - 1 for d in definitions if d is not None and d.deprecation.version])


def _attr_value(value):
    kind = value.WhichOneof("value")
    if kind == "list":
        return [v for field in (value.list.s, value.list.i, value.list.f, value.list.b, value.list.type, value.list.shape)
                for v in field]
    return value.s if kind == "s" else getattr(value, kind)


class Family:
    def __init__(self, name):
        self.name, self.cases, self.graph, self.constants, self.problems = name, [], tf.Graph(), {}, []
        self.current = None
        with self.graph.as_default():
            tf1.set_random_seed(11)

    # -- inputs --------------------------------------------------------------------------------------------------------

    def rng(self, *key):
        return np.random.RandomState(zlib.crc32(repr((self.name,) + key).encode()) & 0x7fffffff)

    def values(self, dtype, shape, low=-4.0, high=4.0, salt=0):
        """Deterministic values: floats on a coarse grid of 1/64 (exact in every dtype as far as it goes), whole numbers, ..."""
        rng = self.rng(dtype, tuple(shape) if not np.isscalar(shape) else shape, low, high, salt)
        kind = npdtype(dtype)
        if dtype == "bool":
            return rng.randint(0, 2, size=shape).astype(bool)
        if dtype == "string":
            letters = np.array(list("abcdefgXYZ 0123"))
            flat = ["".join(rng.choice(letters, size=rng.randint(0, 6))).encode() for _ in range(int(np.prod(shape)))]
            return np.array(flat, dtype=object).reshape(shape)
        if dtype in COMPLEX or dtype == "complex128":
            return (rng.uniform(low, high, size=shape) + 1j * rng.uniform(low, high, size=shape)).astype(kind)
        if dtype.startswith("uint"):
            return rng.randint(max(0, int(np.ceil(low))), max(1, int(high)) + 1, size=shape).astype(kind)
        if dtype.startswith("int"):
            return rng.randint(int(np.ceil(low)), int(high) + 1, size=shape).astype(kind)
        return (np.round(rng.uniform(low, high, size=shape) * 64) / 64).astype(kind)

    def special(self, dtype):
        """Values at the edges of a dtype."""
        if dtype in FLOATS:
            return np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 100.0, -100.0, np.inf, -np.inf, np.nan], npdtype(dtype))
        if dtype in COMPLEX:
            return np.array([0, 1, -1, 1j, -1j, 2 - 3j, -0.5 + 4j], npdtype(dtype))
        if dtype == "bool":
            return np.array([True, False])
        info = np.iinfo(npdtype(dtype))
        return np.array([0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1], npdtype(dtype))

    def const(self, value, dynamic=False):
        """The tensor of an input; equal inputs share one node."""
        if isinstance(value, (tf.Tensor, tf.Operation)):
            return value
        if isinstance(value, (list, tuple)) and any(isinstance(v, (tf.Tensor, np.ndarray)) for v in value):
            return [self.const(v, dynamic) for v in value]
        value = np.asarray(value)
        if value.dtype.kind in "SU":
            value = value.astype("S").astype(object)
        if value.dtype == object:
            data = repr(value.ravel().tolist()).encode()
        else:
            data = value.tobytes()
        key = (str(value.dtype), value.shape, data)
        with self.graph.as_default(), tf1.control_dependencies(None), tf1.name_scope("in/"):
            if key not in self.constants:
                name = "c" + hashlib.sha256(repr(key).encode()).hexdigest()[:10]
                self.constants[key] = tf1.constant(value, name=name)
            if not dynamic:
                return self.constants[key]
            if key + (1,) not in self.constants:
                node = self.constants[key]
                self.constants[key + (1,)] = tf1.placeholder_with_default(node, None, name=node.op.name.split("/")[-1] + "d")
            return self.constants[key + (1,)]

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def node(self, op, inputs=(), dynamic=False, name=None, **attrs):
        """Adds one node; inputs in the order of the op's definition (numpy arrays become constants). Returns its outputs."""
        definition = op_def_registry.get(op)
        if definition is None:
            raise ValueError("TensorFlow has no op " + op)
        named = {}
        if len(inputs) > len(definition.input_arg):
            raise ValueError("%s takes %d inputs, not %d" % (op, len(definition.input_arg), len(inputs)))
        for arg, value in zip(definition.input_arg, inputs):
            if (arg.number_attr or arg.type_list_attr) and isinstance(value, (list, tuple)):
                named[arg.name] = [self.const(v, dynamic) for v in value]
            else:
                named[arg.name] = self.const(value, dynamic)
        inferred = {a for arg in definition.input_arg for a in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
        given = definition.input_arg[:len(inputs)]
        for name_of in {a for arg in given for a in (arg.type_attr, arg.number_attr, arg.type_list_attr)}:
            attrs.pop(name_of, None)
        for attr in definition.attr:
            if attr.HasField("default_value") and attr.name not in attrs and attr.name not in inferred:
                attrs[attr.name] = _attr_value(attr.default_value)
        return op_def_library.apply_op(op, name=name or op, **named, **attrs)

    def case(self, op, dtype, tolerance="exact", tag="", expect_error=None):
        """Opens a case; nodes and fetches added until the next one belong to it."""
        name = "%s.%s%s" % (op.lstrip("_"), dtype, "." + tag if tag else "")
        assert name not in [c["name"] for c in self.cases], "two cases named " + name
        self.current = {"name": name, "op": op, "dtype": dtype, "tolerance": tolerance, "runs": []}
        if expect_error:
            self.current["error"] = expect_error
        self.cases.append(self.current)
        return self.current

    def run(self, fetches=(), targets=(), tolerance=None):
        """Adds a run to the open case."""
        def flat(values):
            if isinstance(values, tf.Operation):
                return []
            if isinstance(values, (list, tuple)):
                return [t for v in values for t in flat(v)]
            return [values]
        run = {"fetches": [t.name for t in flat(fetches)]}
        operations = [t for t in (targets if isinstance(targets, (list, tuple)) else [targets])]
        if operations:
            run["targets"] = [(t.op if isinstance(t, tf.Tensor) else t).name for t in operations]
        if tolerance:
            run["tolerance"] = tolerance
        self.current["runs"].append(run)

    def scope(self):
        return tf1.name_scope(self.current["name"] + "/")

    def simple(self, op, dtype, variants, tolerance="exact", tag="", expect_error=None, dynamic=None):
        """A case of one run: variants are (inputs, attrs), each one node, all outputs fetched; the first one once more
        with inputs of unknown shape."""
        with self.graph.as_default():
            count = len(self.cases)
            self.case(op, dtype, tolerance, tag, expect_error)
            try:
                with self.scope():
                    made = []
                    for i, (inputs, attrs) in enumerate(variants):
                        made.append(self.node(op, inputs, name="v%d" % i, **attrs))
                    if dynamic is None:
                        dynamic = bool(variants[0][0]) and dtype in ("float32", "int32", "string", "bool", "complex64")
                    if dynamic and not expect_error:
                        made.append(self.node(op, variants[0][0], dynamic=True, name="dynamic", **variants[0][1]))
                self.run(made)
            except Exception as error:  # the table asked for something that TensorFlow does not accept
                self.problems.append("%s: %s" % (self.current["name"], str(error).splitlines()[0][:160]))
                del self.cases[count:]

    def refused(self, op, dtype, inputs, tag="refused", kind="InvalidArgumentError", **attrs):
        """A case of one node whose inputs' shapes are not known before the run, which then fails."""
        with self.graph.as_default():
            self.case(op, dtype, tag=tag, expect_error=kind)
            with self.scope():
                self.run(self.node(op, inputs, dynamic=True, **attrs))

    def sweep(self, op, make, tolerance="exact", dtypes=None, attr="T", tag="", dynamic=None):
        """One simple case per dtype that has a CPU kernel; make(dtype) returns the variants."""
        available = kernel_dtypes(op, attr)
        for dtype in dtypes or ALL:
            if dtype in available:
                rule = tolerance(dtype) if callable(tolerance) else tolerance
                self.simple(op, dtype, make(dtype), rule, tag, dynamic=dynamic)

    # -- results -------------------------------------------------------------------------------------------------------

    def session(self):
        """A session of the graph that is written: no rewriting, one thread."""
        config = tf1.ConfigProto(allow_soft_placement=True, intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
        config.graph_options.optimizer_options.do_constant_folding = False
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        graph = tf.Graph()
        with graph.as_default():
            tf1.import_graph_def(self.graph_def(), name="")
        return tf1.Session(graph=graph, config=config)

    def compute(self):
        """Runs every case with TensorFlow; adds `shapes` to its runs. Returns {case name: [[array per fetch] per run]}."""
        while True:
            results, culprit = {}, None
            with self.session() as session:
                for case in list(self.cases):
                    outcome, culprit = self.compute_case(case, session)
                    if culprit:
                        break
                    if outcome is None:
                        self.cases.remove(case)
                    else:
                        results[case["name"]] = outcome
            if not culprit:
                return results
            # One node that TensorFlow cannot place makes the session fail for all cases: this begins again without its
            # case.
            self.cases = [c for c in self.cases if c["name"] != culprit]

    def compute_case(self, case, session):
        """(results or None, name of the case that spoils the session or None)"""
        try:
            values = []
            for run in case["runs"]:
                tensors = [session.graph.get_tensor_by_name(n) for n in run["fetches"]]
                operations = [session.graph.get_operation_by_name(n) for n in run.get("targets", [])]
                values.append(session.run(tensors + operations)[:len(tensors)])
                run["shapes"] = [t.shape.as_list() if t.shape.rank is not None else None for t in tensors]
        except tf.errors.OpError as error:
            text = " ".join(str(error.message).split())
            found = re.search(r"Detected at node '?([^' /]*)/", text) or re.search(r"{{node ([^ /]*)/", text)
            unplaced = found and ("No OpKernel" in text or "Cannot assign a device" in text)
            if "error" in case and not unplaced:
                case["error"] = type(error).__name__
                return [], None
            self.problems.append("%s: %s" % (found.group(1) if unplaced else case["name"], text[-300:]))
            return None, found.group(1) if unplaced else None
        if "error" in case:
            self.problems.append(case["name"] + ": an error was expected, TensorFlow gave none")
            return None, None
        # Bytes are passed as objects: numpy's own strings lose zero bytes at their ends.
        return [[np.asarray(v, object if isinstance(v, bytes) else None) for v in run] for run in values], None

    def graph_def(self):
        """The graph's nodes that the cases need (function library included)."""
        keep = set()
        for case in self.cases:
            todo = [n.split(":")[0] for run in case["runs"] for n in run["fetches"] + run.get("targets", [])]
            while todo:
                name = todo.pop()
                if name in keep:
                    continue
                keep.add(name)
                op = self.graph.get_operation_by_name(name)
                todo += [t.op.name for t in op.inputs] + [c.name for c in op.control_inputs]
        graph_def = self.graph.as_graph_def()
        nodes = [n for n in graph_def.node if n.name in keep]
        for n in nodes:  # colocation with nodes that are left out has no meaning
            classes = n.attr["_class"].list.s if "_class" in n.attr else []
            known = [c for c in classes if not c.startswith(b"loc:@") or c[5:].decode() in keep]
            if len(known) < len(classes):
                n.attr["_class"].list.s[:] = known
        del graph_def.node[:]
        graph_def.node.extend(nodes)
        return graph_def


def expected_graph(results):
    """The results as a GraphDef of constants: case NAME, run R, fetch F is the node NAME/rR/fF."""
    graph_def = tf1.GraphDef()
    for name in results:
        for r, run in enumerate(results[name]):
            for k, value in enumerate(run):
                node = graph_def.node.add(name="%s/r%d/f%d" % (name, r, k), op="Const")
                if value.dtype.kind in "SU":
                    value = value.astype(object)
                proto = tf.make_tensor_proto(value)
                node.attr["dtype"].type = proto.dtype
                node.attr["value"].tensor.CopyFrom(proto)
    return graph_def


def write(family, directory):
    """Computes a family and writes graph.pb.gz, expected.pb.gz and cases.json; returns (cases, problems)."""
    results = family.compute()
    os.makedirs(directory, exist_ok=True)
    for name, data in (("graph.pb.gz", family.graph_def()), ("expected.pb.gz", expected_graph(results))):
        with open(os.path.join(directory, name), "wb") as f:
            f.write(gzip.compress(data.SerializeToString(deterministic=True), 9, mtime=0))
    with open(os.path.join(directory, "cases.json"), "w") as f:
        rows = ",\n".join("  " + json.dumps(case, separators=(",", ":")) for case in family.cases)
        f.write('{"format": "tfc-cases", "version": 1, "family": "%s", "tensorflow": "%s", "cases": [\n%s\n]}\n'
                % (family.name, tf.__version__, rows))
    return len(family.cases), family.problems


# -- comparing ---------------------------------------------------------------------------------------------------------

def _ulp_distance(a, b):
    """Distance in representable values; a and b of one floating dtype."""
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[a.dtype.itemsize]
    low = np.iinfo(bits).min
    def ordered(v):
        i = v.view(bits).astype(object) if a.dtype.itemsize == 8 else v.view(bits).astype(np.int64)
        return np.where(i < 0, int(low) - i, i)
    return np.abs(ordered(np.ascontiguousarray(a)) - ordered(np.ascontiguousarray(b)))


def mismatch(expected, actual, rule):
    """None when `actual` matches; else what is wrong. Rules: see README.md."""
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.shape != actual.shape:
        return "shape %s, not %s" % (actual.shape, expected.shape)
    strings = expected.dtype == object or expected.dtype.kind in "SU"
    if rule == "shape" and strings:
        return None if actual.dtype.kind in "OSU" else "dtype %s, not strings" % actual.dtype
    if strings:
        a, e = actual.astype("S").ravel(), expected.astype("S").ravel()
        wrong = np.nonzero(a != e)[0]
        return "element %d is %r, not %r" % (wrong[0], a[wrong[0]], e[wrong[0]]) if len(wrong) else None
    if expected.dtype == BFLOAT16 and actual.dtype == np.float32:
        actual = actual.astype(BFLOAT16)
    if expected.dtype != actual.dtype:
        return "dtype %s, not %s" % (actual.dtype, expected.dtype)
    if rule == "shape":
        return None
    if expected.dtype.kind == "c":
        part = np.float32 if expected.dtype == np.complex64 else np.float64
        if rule.startswith("ulp:"):
            rule = "relative:%g" % (float(rule[4:]) * np.finfo(part).eps)
        # the rounding errors of one part of a complex number are as large as those of the other
        if rule.startswith("relative:") and rule.count(":") == 1:
            sizes = np.abs(expected[np.isfinite(expected)])
            rule += ":%g" % (sizes.max() if sizes.size else 0.0)
        return (mismatch(np.real(expected).copy(), np.real(actual).copy(), rule)
                or mismatch(np.imag(expected).copy(), np.imag(actual).copy(), rule))
    if expected.dtype.kind in "biu" and expected.dtype != BFLOAT16:
        if rule.startswith("off:"):  # integers that were made by rounding
            wrong = np.abs(expected.astype(object) - actual.astype(object)) > int(rule[4:])
        else:
            wrong = expected != actual
    else:
        e, a = expected.astype(np.float64), actual.astype(np.float64)
        both_nan = np.isnan(e) & np.isnan(a)
        same = both_nan | (e == a)
        if rule.startswith("ulp:"):
            finite = np.isfinite(e) & np.isfinite(a)
            distance = _ulp_distance(np.where(finite, expected, expected.dtype.type(0)),
                                     np.where(finite, actual, expected.dtype.type(0)))
            wrong = ~(same | (finite & (distance <= int(rule[4:]))))
        elif rule.startswith("relative:"):
            fields = rule.split(":")
            finite = e[np.isfinite(e)]
            scale = float(fields[2]) if len(fields) > 2 else (np.abs(finite).max() if finite.size else 0.0)
            with np.errstate(invalid="ignore"):
                wrong = ~(same | (np.abs(e - a) <= float(fields[1]) * np.maximum(np.abs(e), scale)))
        else:
            wrong = ~same
    wrong = np.argwhere(np.asarray(wrong, bool))
    if not len(wrong):
        return None
    at = tuple(wrong[0])
    return "%d of %d elements, first at %s: %r, not %r" % (len(wrong), expected.size, list(at), actual[at], expected[at])


def ulps(f32, f64=None, narrow=1):
    """Tolerance by dtype: so many units in the last place; whole numbers exactly."""
    def rule(dtype):
        if dtype in ("float16", "bfloat16"):
            return "ulp:%d" % narrow
        if dtype in ("float64", "complex128"):
            return "ulp:%d" % (f64 or f32)
        return "ulp:%d" % f32 if dtype in ("float32", "complex64") else "exact"
    return rule


def relative(f32, scale=None):
    """Tolerance by dtype: relative to the larger of the element and `scale` (default: the tensor's largest element)."""
    def rule(dtype):
        r = {"float16": 2e-3, "bfloat16": 1.6e-2, "float64": f32 * 1e-8, "complex128": f32 * 1e-8}.get(dtype, f32)
        if dtype not in FLOATS + ["complex64", "complex128"]:
            return "exact"
        return "relative:%g" % r + (":%g" % scale if scale is not None else "")
    return rule
