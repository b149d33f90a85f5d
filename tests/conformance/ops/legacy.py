"""What older graphs call their ops: TensorArrays of versions 1 and 2, batches of matrices, batch normalisation."""

import numpy as np
import tensorflow.compat.v1 as tf1

from cases import relative
from ops.files import records
from ops.random import stream
from ops.uncommon import drawn

I32, I64 = np.int32, np.int64


def cases(f):
    # TensorFlow accepts these ops only in graphs of an equally old version.
    old = tf1.GraphDef()
    old.versions.producer = 8
    with f.graph.as_default():
        tf1.import_graph_def(old, name="")
        for version in ("", "V2"):
            tensor_arrays(f, version)
        packed_arrays(f)
        matrices(f)
        batch_norm(f)
        readers(f)
        drawn(f, [("StatefulStandardNormal", d) for d in ("float32", "float64")])
        stream(f, "RandomPoisson", "float32", [np.array([20], I32), np.array([0.5, 3.0, 25.0], np.float32)], "exact", seed=4, seed2=5)


def tensor_arrays(f, version):
    v = f.values

    def op(name, inputs, **attrs):
        return f.node("TensorArray" + name + version, inputs, **attrs)

    def array(d, size, **attrs):
        return op("", [np.array(size, I32)], dtype=d, element_shape=None, tensor_array_name="", **attrs)

    zero = np.float32(0)
    for d in ("float32", "int64", "string", "bool"):
        f.case("TensorArray" + version, d)
        with f.scope():
            handle, flow = array(d, 3, dynamic_size=True, clear_after_read=False), zero
            for i in (0, 2, 1, 3):
                flow = op("Write", [handle, np.array(i, I32), v(d, [2, 2], salt=i), flow])
            read = op("Read", [handle, np.array(2, I32), flow], dtype=d)
            gathered = op("Gather", [handle, np.array([3, 0], I32), flow], dtype=d, element_shape=None)
            joined = op("Concat", [handle, flow], dtype=d, element_shape_except0=None)
            got = [read, op("Size", [handle, flow]), gathered, joined]
        f.run(got + [handle] if version and d == "int64" else got, tolerance="shape" if version and d == "int64" else None)
        f.case("TensorArrayScatter" + version, d)
        with f.scope():
            handle = array(d, 3, clear_after_read=False)
            flow = op("Scatter", [handle, np.array([2, 0, 1], I32), v(d, [3, 2]), zero])
            f.run(op("Gather", [handle, np.array([0, 1, 2], I32), flow], dtype=d, element_shape=[2]))
        f.case("TensorArraySplit" + version, d)
        with f.scope():
            handle = array(d, 2, clear_after_read=False)
            flow = op("Split", [handle, v(d, [5, 2]), np.array([2, 3], I64), zero])
            reads = [op("Read", [handle, np.array(i, I32), flow], dtype=d) for i in (0, 1)]
            with tf1.control_dependencies(reads):
                closed = op("Close", [handle])
            f.run(reads, targets=closed)
    f.case("TensorArrayGrad" + version, "float32")
    with f.scope():
        handle = array("float32", 2, clear_after_read=False)
        flow = op("Scatter", [handle, np.array([0, 1], I32), v("float32", [2, 3]), zero])
        # both requests return the same array
        first, again = (f.node("TensorArrayGrad" + version, [handle, flow], source="gradients") for _ in (0, 1))
        for i, salt, grad in ((0, 1, first), (1, 2, again), (0, 3, again)):  # writing twice adds the values
            flow = op("Write", [grad, np.array(i, I32), v("float32", [3], salt=salt), flow])
        f.run(op("Gather", [first, np.array([0, 1], I32), flow], dtype="float32", element_shape=None))
    f.case("TensorArrayRead" + version, "float32", tag="twice", expect_error=True)
    with f.scope():
        handle = array("float32", 2)
        flow = op("Write", [handle, np.array(0, I32), v("float32", [2]), zero])
        with tf1.control_dependencies([op("Read", [handle, np.array(0, I32), flow], dtype="float32")]):
            f.run(op("Read", [handle, np.array(0, I32), flow], dtype="float32"))
    f.case("TensorArrayWrite" + version, "float32", tag="closed", expect_error=True)
    with f.scope():
        handle = array("float32", 2)
        with tf1.control_dependencies([op("Close", [handle])]):
            f.run(op("Write", [handle, np.array(0, I32), v("float32", [2]), zero]))


def packed_arrays(f):
    for tag, size, dynamic in (("", 3, False), ("dynamic", 1, True)):
        f.case("TensorArrayPack", "float32", tag=tag)
        with f.scope():
            handle = f.node("TensorArray", [np.array(size, I32)], dtype="float32", element_shape=None, dynamic_size=dynamic)
            flow = f.node("TensorArrayUnpack", [handle, f.values("float32", [3, 2]), np.float32(0)])
            f.run(f.node("TensorArrayPack", [handle, flow], dtype="float32", element_shape=None))
    f.case("TensorArrayUnpack", "float32", tag="size", expect_error=True)
    with f.scope():
        handle = f.node("TensorArray", [np.array(2, I32)], dtype="float32", element_shape=None)
        f.run(f.node("TensorArrayUnpack", [handle, f.values("float32", [3, 2]), np.float32(0)]))


def matrices(f):
    v = f.values
    floats = ("float32", "float64")

    def square(d):
        a = v(d, [2, 3, 3])
        return (a @ a.transpose(0, 2, 1) + 2 * np.eye(3)).astype(d)

    def lower(d):
        return np.linalg.cholesky(square("float64")).astype(d)

    near = relative(1e-5)
    f.sweep("BatchCholesky", lambda d: [([square(d)], {})], near, dtypes=floats)
    f.sweep("BatchMatrixDeterminant", lambda d: [([square(d)], {})], near, dtypes=floats)
    f.sweep("BatchMatrixInverse", lambda d: [([square(d)], {}), ([square(d)], {"adjoint": True})], near, dtypes=floats)
    f.sweep("BatchMatrixSolve", lambda d: [([square(d), v(d, [2, 3, 2])], {})], near, dtypes=floats)
    f.sweep("BatchMatrixTriangularSolve", lambda d: [([square(d), v(d, [2, 3, 2])], a) for a in ({}, {"lower": False, "adjoint": True})], near, dtypes=floats)
    f.sweep("BatchMatrixSolveLs", lambda d: [([v(d, [2, 4, 3]), v(d, [2, 4, 2]), np.array(0.25)], {})], near, dtypes=floats)
    for op, attr in (("BatchSvd", "compute_uv"), ("BatchSelfAdjointEigV2", "compute_v")):
        for d in floats:
            f.case(op, d, near(d))
            with f.scope():
                f.run(f.node(op, [square(d)], **{attr: False})[0])
    for op in ("CholeskyGrad", "BatchCholeskyGrad"):
        f.sweep(op, lambda d: [([lower(d), v(d, [2, 3, 3], salt=1)], {}), ([lower(d)[0], v(d, [3, 3], salt=2)], {}), ([np.zeros([0, 2, 2], d)] * 2, {})], near, dtypes=floats)
    for d in ("float32", "int64", "bool"):
        f.simple("BatchMatrixBandPart", d, [([v(d, [2, 3, 4]), np.array(1, I64), np.array(-1, I64)], {})])
        f.simple("BatchMatrixDiag", d, [([v(d, [2, 3])], {})])
        f.simple("BatchMatrixDiagPart", d, [([v(d, [2, 3, 4])], {})])
        f.simple("BatchMatrixSetDiag", d, [([v(d, [2, 3, 4]), v(d, [2, 3], salt=1)], {})])


def batch_norm(f):
    v = f.values
    for d in ("float32", "float64"):
        statistics = [v(d, [3], salt=1), np.array([0.5, 2, 0.01], d)]
        for scaled in (True, False):
            attrs = {"variance_epsilon": 0.001, "scale_after_normalization": scaled}
            tag = "" if scaled else "unscaled"
            x, dy = v(d, [2, 4, 3, 3]), v(d, [2, 4, 3, 3], salt=2)
            f.simple("BatchNormWithGlobalNormalization", d, [([x] + statistics + [v(d, [3], salt=3), v(d, [3], salt=4)], attrs)], relative(1e-5)(d), tag=tag)
            f.simple("BatchNormWithGlobalNormalizationGrad", d, [([x] + statistics + [v(d, [3], salt=4), dy], attrs)], relative(1e-5)(d), tag=tag)


def readers(f):
    text = lambda v: np.array(v, object)
    folder = b"/tmp/tfc-conformance-readers/old."
    framed = records(b"abc", b"", b"x" * 30)
    for name, contents, attrs in (("TextLineReader", [b"one\ntwo", b"three"], {"skip_header_lines": 0}), ("WholeFileReader", [b"all of it"], {}), ("IdentityReader", [b"", b""], {}), ("TFRecordReader", [framed], {})):
        for many in (None, 2):
            names = [folder + ("%s%d" % (name, i)).encode() for i in range(len(contents))]
            f.case(name, "string", tag="up_to" if many else "")
            with f.scope():
                writes = [f.node("WriteFile", [text(n), text(c)], name="write%d" % i) for i, (n, c) in enumerate(zip(names, contents))]
                r = f.node(name, shared_name=f.current["name"], container="", name="reader", **attrs)
                q = f.node("FIFOQueue", component_types=["string"], shapes=[[]], capacity=-1, shared_name=f.current["name"] + ".q", container="", name="queue")
                put = f.node("QueueEnqueueMany", [q, [text(names)]], name="put", timeout_ms=-1)
                read = f.node("ReaderReadUpTo", [r, q, np.int64(many)], name="read") if many else f.node("ReaderRead", [r, q], name="read")
                counts = [f.node("ReaderNumRecordsProduced", [r], name="records"), f.node("ReaderNumWorkUnitsCompleted", [r], name="units")]
                reset = f.node("ReaderReset", [r], name="reset")
            f.run(targets=writes)
            f.run(targets=[put])
            for _ in range(1 if name == "WholeFileReader" else 2):
                f.run(read)
                f.run(counts)
            f.run(targets=[reset])
            f.run(counts)
