"""Sparse tensors: their layout, arithmetic, sets, and what TensorFlow refuses."""

import numpy as np

from cases import ALL, COMPLEX, FLOATS, INTS

I32, I64 = np.int32, np.int64
AT = np.array([[0, 1], [1, 0], [1, 2], [3, 1]], I64)
OTHER = np.array([[0, 1], [1, 1], [3, 0], [3, 1]], I64)
DIMS = np.array([4, 3], I64)
NONE = np.zeros([0, 2], I64)


def refused(f, op, dtype, inputs, tag, **attrs):
    f.case(op, dtype, tag=tag, expect_error="InvalidArgumentError")
    with f.graph.as_default(), f.scope():
        f.run(f.node(op, inputs, dynamic=True, **attrs))


def cases(f):
    layout(f)
    arithmetic(f)
    sets(f)
    v = f.values("float32", [4])
    refused(f, "SparseReshape", "int64", [AT, DIMS, np.array([5, -1], I64)], "multiple")
    refused(f, "SparseReshape", "int64", [AT, DIMS, np.array([-1, -1], I64)], "unknown")
    refused(f, "SparseReshape", "int64", [AT, DIMS, np.array([5, 5], I64)], "size")
    refused(f, "SparseFillEmptyRows", "float32", [AT, v, np.array([3, 3], I64), np.float32(1)], "row")
    refused(f, "SparseFillEmptyRows", "float32", [AT, v, np.array([0, 3], I64), np.float32(1)], "no_rows")
    refused(f, "SparseFillEmptyRowsGrad", "float32", [np.array([0, 7], I64), v], "index")
    refused(f, "SparseAdd", "float32", [AT, v, DIMS, AT, v, np.array([4, 4], I64), np.float32(0)], "shapes")
    refused(f, "SparseReduceSum", "float32", [AT, v, DIMS, np.array([2], I32)], "axis")
    refused(f, "SparseDenseCwiseMul", "float32", [AT, v, DIMS, f.values("float32", [2])], "broadcast")
    refused(f, "SparseTensorDenseAdd", "float32", [AT, v, DIMS, f.values("float32", [3, 4])], "shapes")
    refused(f, "SparseSplit", "float32", [np.array(1, I64), AT, v, DIMS], "parts", num_split=4)
    refused(f, "SparseConcat", "float32", [[AT, AT], [v, v], [DIMS, np.array([5, 3], I64)]], "shapes", concat_dim=1)


def layout(f):
    f.simple("SparseReshape", "int64", [([AT, DIMS, np.array(s, I64)], {}) for s in ([3, 4], [2, -1, 2], [12], [4, 3], [-1])] + [([NONE, DIMS, np.array([12], I64)], {})])
    twisted = AT[[2, 0, 3, 1]]
    for d in ALL + ["string"]:
        v = f.values(d, [4])
        f.simple("SparseReorder", d, [([twisted, v, DIMS], {}), ([AT, v, DIMS], {}), ([NONE, v[:0], DIMS], {})])
        one = f.values(d, [1], salt=3)[0] if d != "string" else np.array(b"none", object)
        f.simple("SparseFillEmptyRows", d, [([AT, v, np.array([6, 3], I64), one], {}), ([AT[[2, 0, 1, 3]], v, DIMS, one], {}), ([NONE, v[:0], DIMS, one], {}),
                                            ([NONE, v[:0], np.array([0, 3], I64), one], {}), ([AT[:3], v[:3], np.array([2, 3], I64), one], {})])
        f.simple("SparseConcat", d, [([[AT, OTHER], [v, f.values(d, [4], salt=1)], [DIMS, DIMS]], {"concat_dim": c}) for c in (0, 1, -1)])
        f.simple("SparseSplit", d, [([np.array(a, I64), AT, v, DIMS], {"num_split": n}) for a, n in ((0, 3), (-1, 2))])
        f.simple("SparseSlice", d, [([AT, v, DIMS, np.array(s, I64), np.array(n, I64)], {}) for s, n in (([1, 0], [2, 2]), ([0, 1], [9, 9]), ([3, 2], [1, 1]), ([0, 0], [0, 3]))])
    for d in FLOATS + INTS + COMPLEX:
        f.simple("SparseFillEmptyRowsGrad", d, [([np.array([2, 0], I64), f.values(d, [5])], {}), ([np.zeros([0], I64), f.values(d, [3])], {})])
        f.simple("SparseSliceGrad", d, [([f.values(d, [2]), AT, np.array([1, 0], I64), np.array([[0, 0], [0, 2]], I64)], {})])


def arithmetic(f):
    for d in FLOATS + INTS + COMPLEX:
        a, b = f.values(d, [4]), f.values(d, [4], salt=1)
        f.simple("SparseReduceSum", d, [([AT, a, DIMS, np.array(r, I32)], {"keep_dims": k}) for r in ([0], [1], [-1], [], [0, 1]) for k in (False, True)] + [([NONE, a[:0], DIMS, np.array([1], I32)], {})],
                 "ulp:4" if d in COMPLEX else "exact")
        if d in FLOATS + INTS:
            f.simple("SparseReduceMax", d, [([AT, a, DIMS, np.array(r, I32)], {"keep_dims": k}) for r in ([0], [1], []) for k in (False, True)])
            f.simple("SparseSparseMaximum", d, [([AT, a, DIMS, OTHER, b, DIMS], {})])
            f.simple("SparseSparseMinimum", d, [([AT, a, DIMS, OTHER, b, DIMS], {})])
            for op in ("Add", "Mul", "Div"):
                dense = [f.values(d, s, 1, 4, salt=2) for s in ([4, 3], [3], [1, 3], [4, 1], [])]
                f.simple("SparseDenseCwise" + op, d, [([AT, a, DIMS, x], {}) for x in dense], "ulp:1")
        f.simple("SparseTensorDenseAdd", d, [([AT, a, DIMS, f.values(d, [4, 3], salt=2)], {}), ([NONE, a[:0], DIMS, f.values(d, [4, 3], salt=2)], {}),
                                             ([AT.astype(I32), a, DIMS.astype(I32), f.values(d, [4, 3], salt=2)], {})])
        if d in ("float32", "float64", "int8", "int16", "int32", "int64", "complex64"):
            limits = [np.array(t, "float32" if d == "complex64" else d) for t in (0, 3)]
            f.simple("SparseAdd", d, [([AT, a, DIMS, OTHER, b, DIMS, t], {}) for t in limits] + [([AT, a, DIMS, NONE, b[:0], DIMS, limits[0]], {})])
            f.simple("SparseAddGrad", d, [([f.values(d, [6]), AT, OTHER, np.array([[0, 1], [1, 0], [1, 1], [1, 2], [3, 0], [3, 1]], I64)], {})])
    for d, rule in (("float32", "ulp:4"), ("float64", "ulp:4"), ("float16", "ulp:2")):
        f.simple("SparseSoftmax", d, [([AT, f.values(d, [4]), DIMS], {}), ([NONE, f.values(d, [0]), DIMS], {})], rule)


def sets(f):
    one, two = np.array([[3, 1, 1], [2, 5, 4]]), np.array([[1, 2, 3, 3], [4, 4, 7, 0]])
    operations = ("a-b", "b-a", "intersection", "union")
    for d in ("int8", "int16", "int32", "int64", "uint8", "uint16", "string"):
        a, b = [x.astype(str).astype(object) if d == "string" else x.astype(d) for x in (one, two)]
        f.simple("DenseToDenseSetOperation", d, [([a, b], {"set_operation": o}) for o in operations] + [([a[None], b[None]], {"set_operation": "union"})])
        at, dims, values = np.array([[0, 0], [0, 1], [1, 0]], I64), np.array([2, 4], I64), b.ravel()[[0, 2, 4]]
        f.simple("DenseToSparseSetOperation", d, [([a, at, values, dims], {"set_operation": o}) for o in operations])
        f.simple("SparseToSparseSetOperation", d, [([np.array([[0, 0], [0, 1], [2, 0]], I64), a.ravel()[:3], np.array([3, 3], I64), at, values, np.array([3, 4], I64)],
                                                    {"set_operation": o}) for o in operations])
        f.simple("SetSize", d, [([np.array([[0, 0], [0, 1], [2, 0]], I64), a.ravel()[[1, 2, 3]], np.array([3, 3], I64)], {})])
