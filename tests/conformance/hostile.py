"""Mutated op cases: attributes left out or changed, inputs of other shapes, values and dtypes; values and errors compared.

Each seed is a node of a family's table whose inputs are constants. A mutant is that node with one to three changes. What
TensorFlow does with it (values, an error, or the end of its process, which proves nothing) is found out in a process of
its own; tfc must give the same values, or refuse.
"""

import multiprocessing
import os
import random
import re

import numpy as np

STRINGS = {
    "data_format": ["NHWC", "NCHW", "NDHWC", "NCDHW", "NCHW_VECT_C", "HWNC"],
    "padding": ["SAME", "VALID", "EXPLICIT", "same"],
    "mode": ["REFLECT", "SYMMETRIC", "MIN_COMBINED", "MIN_FIRST", "SCALED"],
    "equation": ["ij,jk->ik", "bij,bjk->bik", "ii->i", "ij->ji", "i,i->", "...ij,...jk->...ik", "ij->", "ij,ij->ij", "iij->j", "ab,b"],
    "direction": ["left", "right"],
    "side": ["left", "right"],
    "method": ["bilinear", "nearest"],
    "unit": ["BYTE", "UTF8_CHAR"],
    "kernel_type": ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"],
    "separator": ["", ",", "--"],
    "reduction_type": ["sum", "mean"],
}


def _numpy_of(tf, tensor):
    return tf.make_ndarray(tensor)


def seeds(family):
    """[(NodeDef, [input array], case)] of the family's simple cases."""
    graph_def = family.graph_def()
    nodes = {n.name: n for n in graph_def.node}
    import cases
    tf = cases.tf
    found, seen = [], set()
    for case in family.cases:
        if len(case["runs"]) != 1 or "error" in case or case["runs"][0].get("targets"):
            continue
        for fetch in case["runs"][0]["fetches"]:
            node = nodes[fetch.split(":")[0]]
            if node.name in seen or node.op in ("Const", "PlaceholderWithDefault"):
                continue
            definition = cases.op_def_registry.get(node.op)
            # it calls functions of the library
            if definition is None or any(a.type in ("func", "list(func)") for a in definition.attr):
                continue
            seen.add(node.name)
            arrays = []
            for name in node.input:
                source = nodes.get(name.split(":")[0])
                while source is not None and source.op == "PlaceholderWithDefault":
                    source = nodes[source.input[0]]
                if source is None or source.op != "Const":
                    break
                arrays.append(_numpy_of(tf, source.attr["value"].tensor))
            else:
                found.append((node, arrays, case))
    return found


class Mutator:
    def __init__(self, seed):
        import cases
        self.cases, self.tf, self.rng = cases, cases.tf, random.Random(seed)

    def mutant(self, seed, number):
        """(GraphDef, [fetch], case, description)"""
        tf, rng = self.tf, self.rng
        node, arrays, case = seed
        made = tf.compat.v1.NodeDef()
        made.CopyFrom(node)
        made.name = "m%d/node" % number
        arrays = [np.array(a) for a in arrays]
        definition = self.cases.op_def_registry.get(node.op)
        said = []
        for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
            kinds = [self.drop_attr, self.change_attr, self.change_attr, self.change_type]
            if arrays:
                kinds += [self.change_shape, self.change_shape, self.change_value, self.change_value]
            what = rng.choice(kinds)(definition, made, arrays)
            if what:
                said.append(what)
        graph_def = tf.compat.v1.GraphDef()
        del made.input[:]
        for i, array in enumerate(arrays):
            name = "m%d/in%d" % (number, i)
            const = graph_def.node.add(name=name, op="Const")
            try:
                proto = tf.make_tensor_proto(array)
            except (TypeError, ValueError):
                return None
            const.attr["dtype"].type = proto.dtype
            const.attr["value"].tensor.CopyFrom(proto)
            if rng.random() < 0.5:
                soft = graph_def.node.add(name=name + "d", op="PlaceholderWithDefault", input=[name])
                soft.attr["dtype"].type = proto.dtype
                soft.attr["shape"].shape.unknown_rank = True
                name += "d"
            made.input.append(name)
        graph_def.node.add().CopyFrom(made)
        graph_def.versions.producer = self.cases.producer(graph_def)
        count = self.output_count(definition, made)
        return graph_def, ["%s:%d" % (made.name, i) for i in range(count)], case, "; ".join(said) or "as it is"

    @staticmethod
    def output_count(definition, node):
        total = 0
        for arg in definition.output_arg:
            if arg.number_attr:
                total += node.attr[arg.number_attr].i
            elif arg.type_list_attr:
                total += len(node.attr[arg.type_list_attr].list.type)
            else:
                total += 1
        return total

    def inferred(self, definition):
        return {a for arg in definition.input_arg for a in (arg.type_attr, arg.number_attr, arg.type_list_attr)}

    def drop_attr(self, definition, node, arrays):
        droppable = [a.name for a in definition.attr if a.HasField("default_value") and a.name in node.attr]
        droppable = [a for a in droppable if a not in self.inferred(definition)]
        if not droppable:
            return None
        name = self.rng.choice(droppable)
        del node.attr[name]
        return "without " + name

    def change_attr(self, definition, node, arrays):
        rng = self.rng
        able = [a for a in definition.attr if a.name in node.attr and a.type in ("bool", "int", "float", "string", "list(int)", "shape")]
        able = [a for a in able if a.name not in self.inferred(definition)]
        if not able:
            return None
        attr = rng.choice(able)
        value = node.attr[attr.name]
        if attr.type == "bool":
            value.b = not value.b
        elif attr.type == "int":
            value.i = rng.choice([-2, -1, 0, 1, 2, 3, value.i + 1, value.i - 1])
        elif attr.type == "float":
            value.f = rng.choice([0.0, -1.0, 1.0, 0.5, value.f * 2, value.f / 2])
        elif attr.type == "string":
            allowed = [v.decode() for v in attr.allowed_values.list.s] or STRINGS.get(attr.name)
            if not allowed:
                return None
            value.s = rng.choice(allowed).encode()
        elif attr.type == "shape":
            dims = value.shape.dim
            if dims:
                rng.choice(list(dims)).size = rng.choice([-1, 0, 1, 2, 3])
        else:
            numbers = list(value.list.i)
            change = rng.random()
            if numbers and change < 0.6:
                numbers[rng.randrange(len(numbers))] = rng.choice([-1, 0, 1, 2, 3])
            elif numbers and change < 0.8:
                numbers.pop()
            else:
                numbers.append(rng.choice([-1, 0, 1, 2]))
            del value.list.i[:]
            value.list.i.extend(numbers)
            return "%s = %s" % (attr.name, numbers)
        return "%s = %s" % (attr.name, str(value).strip().replace("\n", " "))

    def change_type(self, definition, node, arrays):
        tf, rng = self.tf, self.rng
        able = [a for a in definition.attr if a.type == "type" and a.name in node.attr]
        if not able:
            return None
        attr = rng.choice(able)
        allowed = list(attr.allowed_values.list.type) or [tf.as_dtype(t).as_datatype_enum for t in self.cases.ALL + ["string", "complex128"]]
        allowed = [t for t in allowed if tf.as_dtype(t).name in self.cases.ALL + ["string", "complex128"]]
        if not allowed:
            return None
        wanted = rng.choice(allowed)
        kind = np.dtype(self.cases.npdtype(tf.as_dtype(wanted).name))
        at = 0
        for arg in definition.input_arg:
            count = node.attr[arg.number_attr].i if arg.number_attr else len(node.attr[arg.type_list_attr].list.type) if arg.type_list_attr else 1
            if arg.type_attr == attr.name:
                for i in range(at, at + count):
                    try:
                        with np.errstate(all="ignore"):
                            if kind == object:
                                arrays[i] = np.array([str(v).encode() for v in arrays[i].ravel()], object).reshape(arrays[i].shape)
                            elif arrays[i].dtype == object:
                                arrays[i] = np.zeros(arrays[i].shape, kind)
                            elif arrays[i].dtype.kind == "c" and kind.kind != "c":
                                arrays[i] = np.real(arrays[i]).astype(kind)
                            else:
                                arrays[i] = arrays[i].astype(kind)
                    except (TypeError, ValueError):
                        return None
            at += count
        node.attr[attr.name].type = wanted
        return "%s = %s" % (attr.name, tf.as_dtype(wanted).name)

    def change_shape(self, definition, node, arrays):
        rng = self.rng
        i = rng.randrange(len(arrays))
        a = arrays[i]
        before = a.shape
        change = rng.randrange(8)
        if change == 0 and a.ndim < 5:
            a = np.expand_dims(a, rng.randrange(a.ndim + 1))
        elif change == 1 and a.ndim:
            axis = rng.randrange(a.ndim)
            if not a.shape[axis]:
                return None
            a = a.take(0, axis=axis)
        elif change == 2 and a.ndim:
            axis = rng.randrange(a.ndim)
            a = a[tuple(slice(0, 0) if d == axis else slice(None) for d in range(a.ndim))]
        elif change == 3 and a.ndim and a.size < 2000:
            a = np.concatenate([a, a], axis=rng.randrange(a.ndim))
        elif change == 4 and a.ndim > 1:
            axes = list(range(a.ndim))
            rng.shuffle(axes)
            a = a.transpose(axes)
        elif change == 5 and a.ndim:
            axis = rng.randrange(a.ndim)
            a = a[tuple(slice(0, 1) if d == axis else slice(None) for d in range(a.ndim))]
        elif change == 6 and a.ndim:
            axis = rng.randrange(a.ndim)
            a = a[tuple(slice(0, max(0, a.shape[d] - 1)) if d == axis else slice(None) for d in range(a.ndim))]
        elif change == 7 and a.size:
            a = np.array(a.ravel()[0], a.dtype)
        arrays[i] = np.array(a)
        return "input %d %s -> %s" % (i, list(before), list(arrays[i].shape)) if arrays[i].shape != before else None

    def change_value(self, definition, node, arrays):
        rng = self.rng
        i = rng.randrange(len(arrays))
        a = np.array(arrays[i])
        if not a.size:
            return None
        flat = a.reshape(-1)
        at = rng.randrange(flat.size)
        if a.dtype == object:
            value = rng.choice([b"", b"-1", b"nan", b"1e400", b"0x10", b" 12", "h\u00e4\u00df\u20ac".encode(), b"\xff\xfe", b"a,b,,c", b"99999999999999999999"])
        elif a.dtype == bool:
            value = not flat[at]
        elif a.dtype.kind in "iu":
            info = np.iinfo(a.dtype)
            value = rng.choice([v for v in (-1, 0, 1, 2, 3, 5, -2, -3, 100, info.min, info.max) if info.min <= v <= info.max])
            # these are sizes: avoids huge tensors
            if a.dtype.kind == "i" and a.ndim <= 1 and a.size <= 8 and abs(value) > 1000:
                value = rng.choice([-1, 0, 1, 2])
        elif a.dtype.kind == "c":
            value = rng.choice([0, 1j, complex(np.inf, 0), complex(np.nan, 1)])
        else:
            value = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-30, 1e30, -1.0, 0.5, 3.0])
        with np.errstate(all="ignore"):
            if rng.random() < 0.15:
                flat[:] = value
            else:
                flat[at] = value
        arrays[i] = flat.reshape(a.shape)
        return "input %d has %r" % (i, value)


# -- TensorFlow in a process of its own --------------------------------------------------------------------------------

def _serve(pipe):
    import cases
    tf, tf1 = cases.tf, cases.tf1
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    config = tf1.ConfigProto(allow_soft_placement=True, intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    config.graph_options.optimizer_options.do_constant_folding = False
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    while True:
        data, fetches = pipe.recv()
        graph = tf.Graph()
        try:
            with graph.as_default():
                graph_def = tf1.GraphDef.FromString(data)
                tf1.import_graph_def(graph_def, name="")
                tensors = [graph.get_tensor_by_name(f) for f in fetches]
        except Exception as error:
            pipe.send(("construct", type(error).__name__, str(error)[:300]))
            continue
        try:
            with tf1.Session(graph=graph, config=config) as session:
                pipe.send(("ok", [np.asarray(v) for v in session.run(tensors)], None))
        except Exception as error:
            pipe.send(("error", type(error).__name__, str(getattr(error, "message", error))[:300]))


class Reference:
    """What TensorFlow does: ("ok", arrays, _), ("construct" or "error", class, message) or ("died", ...)."""

    def __init__(self):
        self.process = None

    def start(self):
        # Uses a server that only ever imported TensorFlow: a forked copy of a process that ran a session would lack the
        # session's threads.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["cases"])
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, graph_def, fetches):
        if self.process is None:
            self.start()
        try:
            self.pipe.send((graph_def.SerializeToString(), fetches))
            if not self.pipe.poll(20):
                raise EOFError
            return self.pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.kill()
            self.process.join()
            self.process = None
            return "died", None, None

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


# -- comparing ---------------------------------------------------------------------------------------------------------

def compare(options, program, report):
    """options.count mutants per family, from options.seed."""
    import cases
    import generate
    from tool import last_line
    tf1 = cases.tf1
    reference = Reference()
    reference.start()
    for name in options.family or generate.FAMILIES:
        family = generate.family(name)
        family.cases = [c for c in family.cases if options.case in c["name"]]
        found = [s for s in seeds(family) if options.case in s[2]["name"]]
        if not found:
            continue
        mutator = Mutator("%s/%d" % (name, options.seed))
        directory = os.path.join(options.directory, "hostile", name)
        os.makedirs(directory, exist_ok=True)
        by_op = {}
        for seed in found:
            by_op.setdefault(seed[0].op, []).append(seed)
        group, refused, died = [], 0, 0
        order = sorted(by_op)
        for number in range(options.count):
            made = mutator.mutant(mutator.rng.choice(by_op[order[number % len(order)]]), number)
            if made is None:
                continue
            graph_def, fetches, case, said = made
            answer, values, message = reference.ask(graph_def, fetches)
            open_question = undecided(name, graph_def)
            label = "hostile.%s.%d.%s (%s)" % (name, number, case["name"], said)
            if answer == "died":
                died += 1
            elif answer == "ok":
                group.append((label, graph_def, fetches, None if open_question else values, case))
                if len(group) == 200:
                    judge(group, directory, program, report, tf1, cases, last_line)
                    group = []
            elif values in ("NotFoundError", "UnimplementedError") or LACKS.search(message):
                continue  # TensorFlow has no kernel for this; tfc may have one
            else:
                refused += 1
                path = os.path.join(directory, "refused%d.pb" % number)
                with open(path, "wb") as f:
                    f.write(graph_def.SerializeToString())
                code, _, errors = program.script(path, [{"fetches": fetches}], path + ".run")
                if code == 0 and answer == "construct":  # TensorFlow's import refuses it, and so does --shapes
                    code, _, errors = program.call("--graph", path, "--shapes")
                if code is None or code < 0 or code > 3:
                    report.fail(label, "crashed or hung (%s): %s" % (code, path))
                elif code == 0 and (open_question or (node_of(graph_def).op, answer) in KNOWS_LESS):
                    continue
                elif code == 0:
                    report.fail(label, "ran; TensorFlow: %s %s: %s" % (answer, values, " ".join(message.split())[:160]))
                else:
                    report.ok(label)
        judge(group, directory, program, report, tf1, cases, last_line)
        print("        hostile.%s: %d mutants, %d that TensorFlow refuses, %d that end its process" % (name, options.count, refused, died), flush=True)
    reference.stop()


# TensorFlow's import refuses these before their kernels could run them: EnsureShape(unknown) by a slip, the others where
# the sizes of their inputs are found out while they run, the last one for strides over channels, which its kernel never reads,
# or, of padded convolutions, by "Shape must be rank -1".
KNOWS_LESS = {("EnsureShape", "construct"), ("ParallelConcat", "construct"), ("SoftmaxCrossEntropyWithLogits", "construct"), ("Substr", "construct"),
              ("MaxPoolGradGradV2", "construct"), ("FusedPadConv2D", "construct"), ("FusedResizeAndPadConv2D", "construct"),
              ("ParseSequenceExample", "construct"), ("ParseSingleSequenceExample", "construct")}
# TensorFlow does not check these: it reads or writes beyond a tensor's end, or leaves out a part of it (sizes of
# gradients that do not fit, sizes of peephole weights, rows and classes that do not exist, counters that are too short,
# indices beyond a sparse tensor's shape), or its kernel never reads the attribute. tfc refuses such input, or leaves
# out what does not exist.
UNCHECKED = {"AvgPoolGrad": "Expected grad shape", "AvgPool3DGrad": "Expected grad shape", "AvgPool": "must be positive", "MaxPool3DGrad": "must be positive", "ResizeBicubicGrad": "same batch", "ResizeBilinearGrad": "same batch", "ScaleAndTranslateGrad": "same batch",
             "MaxPool3DGradGrad": "must be positive", "LSTMBlockCell": "peephole", "LSTMBlockCellGrad": "peephole", "BlockLSTM": "peephole", "BlockLSTMV2": "peephole", "BlockLSTMGrad": "peephole", "BlockLSTMGradV2": "peephole",
             "SparseSegmentSqrtNGrad": "out of range", "SparseSegmentMeanGrad": "out of range", "SparseSegmentSumGrad": "out of range",
             "DepthwiseConv2dNativeBackpropInput": "attribute 'dilations'", "DepthwiseConv2dNativeBackpropFilter": "attribute 'dilations'",
             "InplaceSub": "x has no rows", "InplaceAdd": "x has no rows", "InplaceUpdate": "x has no rows",
             "DiagPart": "even and", "Conv2D": "number of groups 0|filter must not have zero elements", "Dilation2D": "a window of 0",
             "ScatterNdNonAliasingAdd": "innermost dimension", "RandomIndexShuffle": "rounds must be|Max index must", "StringNGrams": "data_splits must be a vector", "UnicodeEncode": "input_splits must be a vector",
             "SparseCrossHashed": "out of bounds|should be a scalar", "SparseReduceSum": "out of bounds", "SparseReduceMax": "out of bounds", "SparseBincount": "non-negative",
             "StatelessTruncatedNormalV2": "counter must have|random algorithm",
             "FractionalAvgPoolGrad": "larger batch or depth", "MaxPoolGradGradV2": "must be positive", "RaggedGather": "value of ragged splits", "RaggedCross": "indices", "RaggedTensorToTensor": "the row partitions are of|must be a vector|must be a scalar|row splits must be", "RaggedBincount": "must", "RaggedTensorToSparse": "row splits must be a vector",
             "SparseCross": "out of bounds", "SparseCrossV2": "out of bounds",
             "SparseReduceSumSparse": "out of bounds", "SparseReduceMaxSparse": "out of bounds",
             "StatelessShuffle": "counter must have", "StatelessRandomUniformV2": "counter must have", "StatelessRandomNormalV2": "counter must have",
             "StatelessRandomGammaV3": "counter must have",
             "BatchNormWithGlobalNormalization": "must be a vector of as many elements", "BatchNormWithGlobalNormalizationGrad": "the gradient must have|must be a vector of as many elements"}


def node_of(graph_def):
    return graph_def.node[-1]


def inputs_of(graph_def):
    """The node's input values."""
    import cases
    return [cases.tf.make_ndarray(n.attr["value"].tensor) for n in graph_def.node if n.op == "Const"]


def wide(a):
    return a if a.dtype in (np.float32, np.float64, np.complex64, np.complex128) else a.astype(np.float32)


def undecided(family, graph_def):
    """Linear algebra of numbers that are not finite, or whose squares are not, and of squares of matrices that are singular but for
    rounding: what comes of them follows from the order of the arithmetic alone. And a negative class of DenseBincount, which TensorFlow
    counts in the row before; and complex numbers divided by infinite ones; and the order of boxes with equal scores, and of beams with equal chances; and which parts of a complex NaN's
    sign are NaN, which changes with its place in the tensor; the loss of no labels, where TensorFlow's backward variables begin with a 0 that
    it writes in front of the last step's, into the one before; the pole of BesselY1, which TensorFlow finds in double only; spectra of what
    is not finite; sums of a batch normalisation in half, in whatever order; noise around an image; what is left of metadata that is no message; transforms of nothing into
    something, which TensorFlow does not write; seeds that are not given; which NaN win in volumes' windows, which follows from the vectors' width;
    Betainc of parameters beyond what float's series bear; a rate of samples that is no number; types that a kernel reads as another's bits;
    and a basis of columns that do not span it."""
    node, values = node_of(graph_def), inputs_of(graph_def)
    if node.op == "CTCBeamSearchDecoder" and values[0].ndim == 3:  # all classes have the same score in some step
        in_order = np.sort(values[0], -1)
        return bool(np.isnan(values[0]).any() or (in_order[..., 1:] == in_order[..., :-1]).any())
    if node.op in ("MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad"):
        return any(v.dtype.kind not in "iub" and np.isnan(v.astype(np.float64)).any() for v in values)
    if node.op == "Betainc" and values[0].dtype == np.float32:
        return bool((np.abs(values[0]) > 1e6).any() or (np.abs(values[1]) > 1e6).any())
    if node.op == "AudioSummaryV2":
        return not np.isfinite(values[2] if values[2].dtype.kind == "f" else values[-1]).all()
    if (node.op == "SparseAdd" and "Treal" in node.attr and node.attr["Treal"].type != node.attr["T"].type and values[1].dtype.kind in "iu") or \
            (node.op in ("ArgMax", "ArgMin") and values[1].dtype == np.int16):
        return True
    if node.op == "Qr" and not ("full_matrices" in node.attr and node.attr["full_matrices"].b) and values[0].ndim >= 2 and values[0].size and np.isfinite(wide(values[0])).all():
        n = min(values[0].shape[-2:])
        if (np.linalg.matrix_rank(wide(values[0])[..., :n]) < n).any():
            return True
    if node.op == "BesselY1" and values[0].dtype != np.float64:
        return bool((values[0] == 0).any())
    if node.op == "AudioSpectrogram":
        return not np.isfinite(values[0]).all()
    if node.op == "BatchNormWithGlobalNormalizationGrad" and values[0].dtype == np.float16:
        return True
    if node.op in ("ExtractGlimpse", "ExtractGlimpseV2") and values[0].ndim == 4 and values[1].size == 2:
        if "noise" not in node.attr or not np.isfinite(values[2]).all():
            return True
        normalized = "normalized" not in node.attr or node.attr["normalized"].b
        return node.attr["noise"].s != b"zero" and (not normalized or bool((values[1].ravel() > values[0].shape[1:3]).any()))
    if node.op == "CTCLoss" and values[0].ndim == 3 and values[1].shape == (values[2].size, 2):
        return len(set(values[1][values[2].ravel() < values[0].shape[2] - 1, 0])) < values[0].shape[1]
    if node.op == "TensorSummaryV2":
        from tensorflow.core.framework import summary_pb2
        try:
            summary_pb2.SummaryMetadata.FromString(bytes(values[2].ravel()[0]))
        except Exception:
            return True
    if node.op in ("FractionalMaxPool", "FractionalAvgPool"):  # they have seeds of their own
        return not any(node.attr[a].i for a in ("seed", "seed2") if a in node.attr)
    if node.op == "StatelessRandomBinomial":  # TensorFlow converts NaN to integers
        return any(np.isnan(wide(v)).any() for v in values[2:])
    # TensorFlow reads beyond the end of the counter
    if node.op.startswith("Stateless") and len(values) > 2 and values[2].dtype == np.uint64:
        return values[2].size < 2
    if node.op in ("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D"):
        return values[0].size == 0
    if node.op == "DenseBincount":
        return any(v.dtype.kind == "i" and v.ndim == 2 and (v < 0).any() for v in values[:1])
    # TensorFlow gives NaN in vectors, and 0 for single elements
    if node.op in ("Div", "RealDiv", "Xdivy", "DivNoNan") and values[1].dtype.kind == "c":
        return not np.isfinite(values[1]).all()
    if node.op == "Sign" and values[0].dtype.kind == "c":
        return bool(np.isnan(values[0]).any())
    if node.op == "CombinedNonMaxSuppression":  # the order of equal scores is that of TensorFlow's heap and sort
        return np.unique(values[1]).size < values[1].size
    old = family == "legacy" and re.match("Batch(Matrix|Cholesky|Svd|Self)", node.op)
    if family not in ("linalg", "spectral") and node.op not in ("Cholesky", "CholeskyGrad", "MatrixSquareRoot") and not old:
        return False
    if node.op == "Eig" and values[0].shape[-1:] == (1,):  # TensorFlow gives arbitrary values
        return False
    for v in values:
        if v.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                if not np.isfinite(v * v.conj()).all():
                    return True
    if node.op in ("MatrixSquareRoot", "MatrixLogarithm") and values[0].ndim >= 2 and values[0].shape[-1] == values[0].shape[-2] and values[0].size:
        s = np.linalg.svd(wide(values[0]), compute_uv=False)  # a singular matrix has no principal root
        return bool((s.min(-1) <= s.max(-1) * 8 * s.shape[-1] * np.finfo(wide(values[0]).dtype).eps).any())
    if node.op == "Cholesky" and values[0].ndim >= 2 and values[0].shape[-1] == values[0].shape[-2] and values[0].size:
        s = np.linalg.eigvalsh(wide(values[0]))
        return bool((s.min(-1) <= s.max(-1) * 8 * np.finfo(values[0].dtype).eps).any())
    if node.op == "MatrixSolveLs" and ("fast" not in node.attr or node.attr["fast"].b) and values[0].ndim >= 2 and values[0].size:
        s = np.linalg.svd(wide(values[0]), compute_uv=False)  # the fast method squares the condition number
        return bool((s.min(-1) ** 2 < s.max(-1) ** 2 * 8 * np.finfo(values[0].dtype).eps).any())
    return False


# Outputs that TensorFlow does not write, so that they contain old memory.
UNDEFINED = {(op, i) for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3") for i in (3, 4)} | {("FusedBatchNormV3", 5)}
# The reference processes of TensorFlow's CPU kernels lack these; tfc may have them.
UNDEFINED |= {("FakeParam", 0)}
UNDEFINED |= {("TensorArrayV2", 0)}  # a name with the number of earlier arrays in its process
UNDEFINED |= {("DynamicStitch", 0), ("ParallelDynamicStitch", 0)}  # rows that no index names


def undefined(node):
    return UNDEFINED | ({("Empty", 0)} if "init" not in node.attr or not node.attr["init"].b else set())


LACKS = re.compile("No OpKernel|block_shape must have rank 1|Could not find device|no supported kernel|do(es)? not yet support|not supported|only supports|not implemented", re.I)


def rule_for(case, value):
    """The case's tolerance; a wider one where the mutant computes in a narrower type than the case did."""
    if value.dtype.name in ("float16", "bfloat16") and value.dtype.name != case["dtype"]:
        return "relative:2e-3" if value.dtype.name == "float16" else "relative:1.6e-2"
    if value.dtype.name == "float32" and case["dtype"] in ("float16", "bfloat16") and case["tolerance"].startswith("ulp"):
        return "relative:1e-6"
    if value.dtype.name in ("float32", "complex64") and case["dtype"] in ("float64", "complex128"):
        return "relative:1e-5"
    if value.dtype.name == "float64" and case["tolerance"].startswith("ulp") and case["dtype"] in ("float32", "float16", "bfloat16"):
        # TensorFlow computes exp(x) - 1 near 0 with the rounding error of 1, which is half of 2.2e-16
        return "relative:1e-15:1"
    if value.dtype.kind in "fc" and case["tolerance"] == "exact" and value.dtype.name != case["dtype"]:
        return "relative:1e-6"
    return case["tolerance"]


def eigenvalues(graph_def, values, found):
    """Eigenvalues come in any order, vectors with any phase, and both are off by as much as a small change of the matrix moves them. The
    pairs to compare: each value of TensorFlow's, and the nearest of ours that is left; A v - e v, which is 0; and the vectors' lengths, 1.
    A change by E moves a value by no more than |E| times the condition of the matrix of vectors (Bauer and Fike 1960), and both
    solvers give the exact values of a matrix that is not more than 8 n eps |A| away."""
    a = inputs_of(graph_def)[0].astype(np.complex128)
    n, eps = a.shape[-1], np.finfo(values[0].dtype).eps
    if found[0].shape != values[0].shape or found[0].dtype != values[0].dtype or not a.size or not np.isfinite(a).all():
        return [(values[0], found[0], "exact")]
    attrs = node_of(graph_def).attr
    vectors = "compute_v" not in attrs or attrs["compute_v"].b
    if vectors and found[1].shape != values[1].shape:
        return [(values[1], found[1], "exact")]
    pairs = []
    for at in np.ndindex(a.shape[:-2]):
        m, size = a[at], max(np.linalg.norm(a[at]), np.finfo(values[0].dtype).tiny)
        with np.errstate(all="ignore"):
            bound = 8 * n * eps * min(max(np.linalg.cond(np.linalg.eig(m)[1]), 1), 1 / (8 * n * eps))
        left, nearest = list(found[0][at]), []
        for value in values[0][at]:
            nearest.append(left.pop(int(np.argmin(np.abs(np.array(left) - value)))))
        pairs.append((values[0][at], np.array(nearest, values[0].dtype), "relative:%g:%g" % (bound, size)))
        if vectors:
            v = found[1][at].astype(np.complex128)
            pairs.append((np.zeros([n, n], np.complex128), m @ v - v * found[0][at], "relative:%g:%g" % (8 * n * eps, size)))
            pairs.append((np.ones(n), np.linalg.norm(v, axis=0), "relative:%g" % (8 * n * eps)))
    return pairs


def finite_lines(graph_def, values, found):
    """Transforms whose input is finite. Which numbers of the others are NaN follows from the order of the arithmetic alone."""
    op = node_of(graph_def).op
    if "FFT" not in op or values[0].shape != found[0].shape:
        return None
    rank = int(op[-2]) if op.endswith("D") else 1
    x = inputs_of(graph_def)[0]
    fine = np.isfinite(x).all(axis=tuple(range(x.ndim - rank, x.ndim)))
    return [(values[0][fine], found[0][fine])]


def decomposition(graph_def, values, found):
    """Singular and eigenvectors are free up to a phase, and more where values meet or are 0: the pairs to compare then are the values,
    the products of the factors, and each factor's with itself. None: the node is no such one, or its input is not finite."""
    node = graph_def.node[-1]
    svd = node.op in ("Svd", "BatchSvd")
    if not svd and node.op not in ("SelfAdjointEigV2", "BatchSelfAdjointEigV2"):
        return None
    vectors = "compute_uv" if svd else "compute_v"
    if vectors in node.attr and not node.attr[vectors].b:  # TensorFlow does not write these outputs
        return [(values[0], found[0])]
    if not all(np.isfinite(v).all() for v in values) or any(v.shape != f.shape for v, f in zip(values, found)):
        return None

    def products(outputs):
        s, u = np.asarray(outputs[0]), outputs[1]
        v, k = outputs[2] if svd else u, s.shape[-1]
        turned = [np.conj(np.swapaxes(m, -1, -2)) for m in (u, v)]
        return [s, (u[..., :k] * s[..., None, :].astype(u.dtype)) @ turned[1][..., :k, :], turned[0] @ u, turned[1] @ v]

    return list(zip(products(values), products(found)))


def judge(group, directory, program, report, tf1, cases, last_line):
    """Mutants that TensorFlow runs, together in one graph; after an error the rest in the next session."""
    attempt = 0
    while group:
        attempt += 1
        graph_def = tf1.GraphDef()
        graph_def.versions.producer = 1645
        for _, part, _, _, _ in group:
            graph_def.node.extend(part.node)
        path = os.path.join(directory, "group%d.pb" % attempt)
        with open(path, "wb") as f:
            f.write(graph_def.SerializeToString())
        code, outputs, errors = program.script(path, [{"fetches": fetches} for _, _, fetches, _, _ in group], path + ".run")
        culprit = None
        for i, ((label, part, fetches, values, case), found) in enumerate(zip(group, outputs)):
            if any(f not in found for f in fetches):
                culprit = i
                break
            if values is None:  # the iterator has ended
                report.ok(label)
                continue
            pairs = [(v, found[f]) for i, (f, v) in enumerate(zip(fetches, values)) if (part.node[-1].op, i) not in undefined(part.node[-1])]
            ours = [found[f] for f in fetches]
            pairs = decomposition(part, values, ours) or finite_lines(part, values, ours) or pairs
            pairs = eigenvalues(part, values, ours) if node_of(part).op == "Eig" else [(v, f, rule_for(case, v)) for v, f in pairs]
            wrong = next((w for w in (cases.mismatch(*pair) for pair in pairs) if w), None)
            report.fail(label, wrong) if wrong else report.ok(label)
        if culprit is None:
            break
        named = [i for i in range(culprit, len(group)) if group[i][2][0].split("/")[0] + "/" in errors]
        blamed = group[named[0] if named else culprit]
        reason = UNCHECKED.get(node_of(blamed[1]).op)
        refusal = code == 3 and (blamed[3] is None or (reason and re.search(reason, errors)))
        if code == 3 and errors.strip().endswith("is not supported"):
            report.lacks(blamed[0], last_line(errors))
        else:
            report.ok(blamed[0]) if refusal else report.fail(blamed[0], "tfc-run ended with %s: %s" % (code, last_line(errors)))
        group = [g for g in group[culprit:] if g is not blamed]
