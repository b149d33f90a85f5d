"""Sparse and ragged tensors: layout, arithmetic, sets, decoded sequences; text; and what TensorFlow refuses."""

import numpy as np

from cases import ALL, COMPLEX, FLOATS, INTS

I32, I64 = np.int32, np.int64
AT = np.array([[0, 1], [1, 0], [1, 2], [3, 1]], I64)
OTHER = np.array([[0, 1], [1, 1], [3, 0], [3, 1]], I64)
DIMS = np.array([4, 3], I64)
NONE = np.zeros([0, 2], I64)


def cases(f):
    layout(f)
    arithmetic(f)
    sets(f)
    sequences(f)
    ragged(f)
    text(f)
    v = f.values("float32", [4])
    f.refused("SparseReshape", "int64", [AT, DIMS, np.array([5, -1], I64)], "multiple")
    f.refused("SparseReshape", "int64", [AT, DIMS, np.array([-1, -1], I64)], "unknown")
    f.refused("SparseReshape", "int64", [AT, DIMS, np.array([5, 5], I64)], "size")
    f.refused("SparseFillEmptyRows", "float32", [AT, v, np.array([3, 3], I64), np.float32(1)], "row")
    f.refused("SparseFillEmptyRows", "float32", [AT, v, np.array([0, 3], I64), np.float32(1)], "no_rows")
    f.refused("RaggedFillEmptyRows", "float32", [np.array([0, 3, 1, 1], I64), v, np.array(3, I64), np.float32(1)], "row")
    f.refused("RaggedFillEmptyRows", "float32", [np.array([0, -1, 1, 1], I64), v, np.array(3, I64), np.float32(1)], "negative")
    f.refused("SparseFillEmptyRowsGrad", "float32", [np.array([0, 7], I64), v], "index")
    f.refused("SparseAdd", "float32", [AT, v, DIMS, AT, v, np.array([4, 4], I64), np.float32(0)], "shapes")
    f.refused("SparseReduceSum", "float32", [AT, v, DIMS, np.array([2], I32)], "axis")
    f.refused("SparseDenseCwiseMul", "float32", [AT, v, DIMS, f.values("float32", [2])], "broadcast")
    f.refused("SparseTensorDenseAdd", "float32", [AT, v, DIMS, f.values("float32", [3, 4])], "shapes")
    f.refused("SparseSplit", "float32", [np.array(1, I64), AT, v, DIMS], "parts", num_split=4)
    f.refused("SparseConcat", "float32", [[AT, AT], [v, v], [DIMS, np.array([5, 3], I64)]], "shapes", concat_dim=1)
    f.refused("SparseConcat", "float32", [[AT, AT], [v, v], [np.array([3, -4], I64), DIMS]], "negative", concat_dim=1)
    f.refused("SparseSlice", "float32", [AT, v, DIMS, np.array([0, 0], I64), np.array([2, -1], I64)], "negative")
    f.refused("SparseSoftmax", "float32", [AT, v, np.array([3, -4], I64)], "negative")
    f.refused("SparseSplit", "float32", [np.array([1], I64), AT, v, DIMS], "axis", num_split=2)


def layout(f):
    f.simple("SparseReshape", "int64", [([AT, DIMS, np.array(s, I64)], {}) for s in ([3, 4], [2, -1, 2], [12], [4, 3], [-1])] + [([NONE, DIMS, np.array([12], I64)], {})])
    f.simple("SparseReshape", "int64", [([AT + [[3, 0]], DIMS, np.array(s, I64)], {}) for s in ([2, 3, 2], [12], [4, 3])], tag="outside")
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
        v, one = f.values(d, [4]), f.values(d, [1], salt=3)[0]
        # for no rows TensorFlow makes [0, 1] row numbers
        for rows, n in (([0, 2, 2, 5], 7), ([5, 0, 3, 0], 6), ([0, 1, 1, 2], 3), ([], 2)):
            f.simple("RaggedFillEmptyRows", d, [([np.array(rows, I64), v[:len(rows)], np.array(n, I64), one], {})], tag="%d_of_%d" % (len(set(rows)), n))
        f.simple("RaggedFillEmptyRowsGrad", d, [([np.array([2, 0], I64), f.values(d, [5])], {})])
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


def sequences(f):
    """Decoding, and how far sequences are apart."""
    for d in ("float32", "float64"):
        scores, lengths = f.values(d, [7, 3, 5]), np.array([7, 4, 0], I32)
        f.simple("CTCGreedyDecoder", d, [([scores, lengths], {"merge_repeated": m}) for m in (False, True)] + [([scores, lengths], {"blank_index": 0})], "ulp:4")
        f.simple("CTCBeamSearchDecoder", d, [([scores, np.array([7, 4, 2], I32)], {"beam_width": w, "top_paths": p, "merge_repeated": m})
                                             for w, p, m in ((4, 1, True), (10, 3, False), (2, 2, True))], "relative:1e-5")
    f.simple("CTCGreedyDecoder", "float32", [([f.values("float32", [7, 3, 5]), np.array([7, -1, -9], I32)], {})], "ulp:4", tag="negative")
    f.refused("CTCGreedyDecoder", "float32", [f.values("float32", [7, 3, 5]), np.array([7, 8, 1], I32)], "length")
    f.refused("CTCGreedyDecoder", "float32", [f.values("float32", [7, 3, 5]), np.array([7, 1], I32)], "batch")
    f.refused("CTCBeamSearchDecoder", "float32", [f.values("float32", [7, 3, 5]), np.array([7, 3, 0], I32)], "paths", beam_width=3, top_paths=2)
    at, dims = np.array([[0, 0], [0, 1], [1, 0], [3, 0], [3, 1], [3, 2]], I64), np.array([4, 3], I64)
    other, wider = np.array([[0, 0], [0, 1], [2, 0], [3, 0], [3, 1]], I64), np.array([5, 2], I64)
    for d in ("int32", "int64", "float32", "uint8", "string"):
        a, b = f.values(d, [6], 0, 2), f.values(d, [5], 0, 2, salt=1)
        f.simple("EditDistance", d, [([at, a, dims, other, b, wider], {"normalize": n}) for n in (False, True)])
    a, b = f.values("int32", [6], 0, 2), f.values("int32", [5], 0, 2, salt=1)  # within the larger shape: outside of their own
    f.simple("EditDistance", "int32", [([at, a, dims, other, b, np.array([2, 2], I64)], {}), ([at, a, dims, other, b, np.array([9, 1], I64)], {})], tag="larger")
    f.refused("EditDistance", "int32", [at, a, np.array([2, 3], I64), other, b, np.array([3, 2], I64)], "outside")
    f.refused("EditDistance", "int32", [at, a, np.array([4, -3], I64), other, b, wider], "negative")


def ragged(f):
    splits, rows, rest = np.array([0, 2, 2, 5], I64), np.array([0, 0, 2, 2, 2], I64), np.array(3, I64)
    for d in ALL + ["string"]:
        v = f.values(d, [5])
        zero = f.values(d, [], salt=1) if d != "string" else np.array(b"-", object)
        by_rows, by_splits = {"row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]}, {"row_partition_types": ["ROW_SPLITS"]}
        f.simple("RaggedTensorToTensor", d, [([np.array(-1, I64), v, zero, [rest, rows]], by_rows), ([np.array([-1, 2], I64), v, zero, [rest, rows]], by_rows), ([np.array([2, 4], I64), v, zero, [splits]], by_splits),
                                             ([np.array([4, -1], I64), v, zero, [splits]], by_splits),
                                             ([np.array(-1, I64), f.values(d, [3]), zero, [np.array([0, 2, 3], I64), np.array([0, 1, 1, 3], I64)]], {"row_partition_types": ["ROW_SPLITS", "ROW_SPLITS"]})])
        f.simple("RaggedTensorToSparse", d, [([[splits], v], {}), ([[splits], f.values(d, [5, 2])], {}), ([[np.array([0, 2, 3], I64), np.array([0, 1, 1, 3], I64)], f.values(d, [3])], {})])
        f.simple("RaggedGather", d, [([[splits], v, np.array([2, 0, 2], I32)], {"OUTPUT_RAGGED_RANK": 1}), ([[splits], f.values(d, [5, 2]), np.array([[2, 0], [1, 1]], I64)], {"OUTPUT_RAGGED_RANK": 2}),
                                     ([[np.array([0, 2, 3], I64), np.array([0, 1, 1, 3], I64)], f.values(d, [3]), np.array([1, 0], I32)], {"OUTPUT_RAGGED_RANK": 2})])
    f.simple("RaggedTensorToTensor", "float32", [([np.array([-1, -1, -1], I64), f.values("float32", [5, 2]), f.values("float32", [2], salt=1), [rest, rows]], by_rows)], tag="inner")
    for d in ("float32", "float64", "int32", "int64"):
        f.simple("RaggedRange", d, [([np.array(a, d), np.array(b, d), np.array(c, d)], {"Tsplits": t}) for t in ("int32", "int64") for a, b, c in (([0, 5, 8], [3, 0, 8], [1, -2, 1]), (0, [2, 5], 2), (7, 1, -3))]
                 + ([([np.array([0.1, 2], d), np.array([1.05, 1], d), np.array([0.3, -0.25], d)], {})] if d.startswith("float") else []))
    f.refused("RaggedRange", "int32", [np.array([0], I32), np.array([3], I32), np.array([0], I32)], "delta")
    f.refused("RaggedGather", "float32", [[splits], f.values("float32", [5]), np.array([3], I32)], "index", OUTPUT_RAGGED_RANK=1)
    f.refused("RaggedTensorToTensor", "float32", [np.array(-1, I64), f.values("float32", [5]), np.float32(0), [np.array([0, 3, 2, 5], I64)]], "splits", row_partition_types=["ROW_SPLITS"])
    f.refused("RaggedTensorToTensor", "float32", [np.array([3], I64), f.values("float32", [5]), np.float32(0), [splits]], "rank", row_partition_types=["ROW_SPLITS"])


def text(f):
    words = np.array([b"", b"a", b"hello", b"a b  c", b"sixteen letters!", b"a rather long line of text, of more than 32 bytes"], object)
    f.simple("StringToHashBucket", "string", [([words], {"num_buckets": n}) for n in (7, 1000003)])
    f.simple("StringToHashBucketStrong", "string", [([words], {"num_buckets": 1000003, "key": k}) for k in ([1, 2], [-5, 2 ** 62])])
    f.simple("StringSplit", "string", [([words, np.array(d, object)], {"skip_empty": e}) for d in (b" ", b"", b" el") for e in (True, False)])
    with f.graph.as_default():
        f.case("StringFormat", "string")
        with f.scope():
            made = []
            for d in ALL + ["string"]:
                for shape, n in (([], 3), ([8], 3), ([8], -1), ([3, 2, 7], 2), ([0], 3), ([2, 0], 3), ([5], 0)):
                    made.append(f.node("StringFormat", [[f.values(d, shape)]], template="<%s>", summarize=n))
            made.append(f.node("StringFormat", [[np.array([0.1, 1 / 3, 1e-20, 1e20, np.inf, np.nan, -0.0, 2 ** 24], "float32"), np.array([0.1, 1 / 3, 1e300], "float64")]], template="{} and {}.", placeholder="{}", summarize=-1))
            made.append(f.node("StringFormat", [[]], template="nothing", T=[]))
            for i in range(0, len(made), 12):
                f.run(made[i:i + 12])
