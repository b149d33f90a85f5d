"""Moving, cutting, joining and indexing."""

import numpy as np
import tensorflow as tf

from cases import ALL, FLOATS, INTS, LIGHT, npdtype, relative

I32, I64 = np.int32, np.int64
SOME = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8", "bool", "complex64", "string"]


def cases(f):
    shapes(f)
    joining(f)
    slicing(f)
    gathering(f)
    scattering(f)
    padding(f)
    matrices(f)
    sets(f)
    facts(f)


def facts(f):
    v = f.values
    f.sweep("ToBool", lambda d: [([x], {}) for x in (v(d, []), v(d, [2]), v(d, [0]), np.zeros([], v(d, []).dtype))], dtypes=["float32", "int32", "int64", "bool", "string"])
    f.sweep("PopulationCount", lambda d: [([f.special(d)], {}), ([v(d, [2, 3])], {})], dtypes=["int8", "uint8", "int16", "uint16", "int32", "int64"])
    for d in ("float32", "int8", "string"):
        f.simple("Fingerprint", d, [([v(d, s), np.array(b"farmhash64", object)], {}) for s in ([3], [2, 5], [2, 2, 3], [0, 2])], dynamic=False)
        f.simple("ParallelConcat", d, [([[v(d, [1, 3]), v(d, [1, 3], salt=1)]], {"shape": [2, 3]})], dynamic=False)
    f.sweep("ScatterNdNonAliasingAdd", lambda d: [([v(d, [5, 2]), np.array([[0], [3], [0]], I32), v(d, [3, 2], salt=1)], {})], "exact", dtypes=["float32", "float64", "int32"])
    f.sweep("GuaranteeConst", lambda d: [([v(d, [2, 3])], {})], dtypes=["float32", "int32"])
    f.simple("CheckNumericsV2", "float32", [([v("float32", [3])], {"message": "checked"})])
    f.simple("CheckNumericsV2", "float32", [([np.array([1, np.inf], np.float32)], {"message": "checked"})], tag="inf", expect_error=True)


def shapes(f):
    def v(d, s, **k):
        return f.values(d, s, **k)
    f.sweep("Reshape", lambda d: [([v(d, [3, 4]), np.array(s, t)], {}) for s, t in (([2, 6], I32), ([-1], I64), ([12, 1, -1], I32), ([3, 2, 2], I32))]
            + [([v(d, [1]), np.array([], I32)], {}), ([v(d, [0, 3]), np.array([3, -1], I32)], {})], dtypes=SOME)
    with f.graph.as_default():
        f.case("Reshape", "float32", tag="wrong_size", expect_error=True)
        with f.scope():
            f.run(f.node("Reshape", [v("float32", [3, 4]), np.array([5, -1], I32)], dynamic=True))
    f.sweep("ExpandDims", lambda d: [([v(d, [3, 4]), np.array(a, t)], {}) for a, t in ((0, I32), (1, I64), (-1, I32), (2, I32))], dtypes=SOME)
    f.sweep("Squeeze", lambda d: [([v(d, [1, 3, 1, 4])], {"squeeze_dims": a}) for a in ([], [0], [2], [-2, 0])], dtypes=SOME)
    for t in ("int32", "int64"):
        f.simple("Shape", t, [([v(d, s)], {"out_type": t}) for d, s in (("float32", [3, 4]), ("string", []), ("bool", [0, 2, 1]))])
        f.simple("Size", t, [([v(d, s)], {"out_type": t}) for d, s in (("float32", [3, 4]), ("int8", []), ("bool", [0, 2, 1]))])
        f.simple("ShapeN", t, [([[v("float32", [3, 4]), v("float32", [2])]], {"out_type": t})])
        f.simple("InvertPermutation", t, [([np.array([2, 0, 3, 1], t)], {}), ([np.array([], t)], {})])
        f.simple("ConcatOffset", t, [([np.array(1, I32), [np.array(s, t) for s in ([2, 3, 5], [2, 7, 5], [2, 0, 5])]], {})] if t == "int32" else
                 [([np.array(0, I32), [np.array(s, I32) for s in ([2, 3], [4, 3])]], {})])
    f.simple("Rank", "int32", [([v("float32", s)], {}) for s in ([3, 4], [], [0, 1, 2])])
    f.sweep("Fill", lambda d: [([np.array(s, t), v(d, [])], {}) for s, t in (([2, 3], I32), ([], I32), ([0, 3], I64))], dtypes=SOME)
    f.sweep("BroadcastTo", lambda d: [([v(d, a), np.array(b, t)], {}) for a, b, t in
                                      (([3], [2, 3], I32), ([2, 1], [2, 4], I64), ([], [3, 2], I32), ([1, 3, 1], [2, 3, 4], I32), ([0, 1], [0, 5], I32))], dtypes=SOME)
    f.sweep("Transpose", lambda d: [([v(d, s), np.array(p, t)], {}) for s, p, t in
                                    (([3, 4], [1, 0], I32), ([2, 3, 4], [2, 0, 1], I64), ([2, 3, 4], [0, 2, 1], I32), ([2, 3, 2, 4], [0, 3, 1, 2], I32),
                                     ([2, 1, 3, 2, 2], [4, 2, 0, 1, 3], I32), ([], [], I32), ([2, 0], [1, 0], I32))], dtypes=SOME)
    f.sweep("ConjugateTranspose", lambda d: [([v(d, [2, 3, 4]), np.array([2, 0, 1], I32)], {})], dtypes=["float32", "complex64"])
    for op in ("Identity", "StopGradient"):
        f.simple(op, "string", [([v("string", [2, 3])], {})])
    with f.graph.as_default():
        f.case("IdentityN", "mixed")
        with f.scope():
            f.run(f.node("IdentityN", [[v("float32", [2]), v("int32", [3]), v("string", [1])]]))
        f.case("EnsureShape", "float32")
        with f.scope():
            f.run([f.node("EnsureShape", [v("float32", [2, 3])], dynamic=True, shape=s) for s in ([2, 3], [None, 3], None)])
        f.case("EnsureShape", "float32", tag="wrong", expect_error=True)
        with f.scope():
            f.run(f.node("EnsureShape", [v("float32", [2, 3])], dynamic=True, shape=[2, 4]))
    f.sweep("Range", lambda d: [([np.array(a, d), np.array(b, d), np.array(c, d)], {}) for a, b, c in ((0, 5, 1), (2, 11, 3), (3, 3, 1))]
            + ([([np.array(5, d), np.array(-4, d), np.array(-2, d)], {})] if not d.startswith("u") else [])
            + ([([np.array(0, d), np.array(1, d), np.array(0.125, d)], {})] if d.startswith("float") else []),
            dtypes=["float32", "float64", "int32", "int64"], attr="Tidx")
    f.sweep("LinSpace", lambda d: [([np.array(-2, d), np.array(3, d), np.array(n, I32)], {}) for n in (6, 1, 2)], relative(1e-6), dtypes=["float32", "float64"])
    f.sweep("Where", lambda d: [([v(d, s)], {}) for s in ([7], [3, 4], [2, 3, 2])], dtypes=[d for d in ALL if d not in ("bfloat16", "float16")])
    f.simple("Where", "bool", [([v("bool", s)], {}) for s in ([7], [3, 4], [0, 2])], tag="mask")
    f.simple("UnravelIndex", "int32", [([np.array([0, 5, 7, 11], I32), np.array([3, 4], I32)], {}), ([np.array(7, I32), np.array([3, 4], I32)], {})])


def joining(f):
    v = f.values
    f.sweep("ConcatV2", lambda d: [([[v(d, [2, n, 3], salt=n) for n in (1, 4, 2)], np.array(a, t)], {}) for a, t in ((1, I32), (-2, I64))]
            + [([[v(d, [n, 3], salt=n) for n in (2, 0, 1)], np.array(0, I32)], {}), ([[v(d, [3, n], salt=n) for n in (2, 5)], np.array(-1, I32)], {})], dtypes=SOME)
    f.sweep("Concat", lambda d: [([np.array(1, I32), [v(d, [2, n], salt=n) for n in (1, 4)]], {})], dtypes=SOME)
    f.sweep("Pack", lambda d: [([[v(d, [2, 3], salt=i) for i in range(3)]], {"axis": a}) for a in (0, 1, 2, -1)] + [([[v(d, []), v(d, [], salt=1)]], {"axis": 0})], dtypes=SOME)
    f.sweep("Unpack", lambda d: [([v(d, [2, 3, 4])], {"axis": a, "num": n}) for a, n in ((0, 2), (1, 3), (-1, 4))], dtypes=SOME)
    f.sweep("Split", lambda d: [([np.array(a, I32), v(d, [2, 6, 4])], {"num_split": n}) for a, n in ((1, 3), (-1, 2), (0, 1), (0, 2))], dtypes=SOME)
    f.sweep("SplitV", lambda d: [([v(d, [2, 6, 4]), np.array(sizes, t), np.array(a, I32)], {"num_split": len(sizes)}) for sizes, t, a in
                                 (([1, 3, 2], I32, 1), ([2, -1], I64, 2), ([0, 2], I32, 0))], dtypes=SOME)
    f.sweep("Tile", lambda d: [([v(d, s), np.array(m, t)], {}) for s, m, t in (([2, 3], [2, 1], I32), ([2, 3], [1, 3], I64), ([3], [0], I32), ([], [], I32), ([1, 2, 1], [2, 2, 3], I32))], dtypes=SOME)
    f.sweep("ReverseV2", lambda d: [([v(d, [2, 3, 4]), np.array(a, t)], {}) for a, t in (([0], I32), ([1, -1], I64), ([], I32))], dtypes=SOME)
    f.sweep("ReverseSequence", lambda d: [([v(d, [3, 5, 2]), np.array([2, 5, 0], t)], {"seq_dim": 1, "batch_dim": 0}) for t in (I32, I64)]
            + [([v(d, [4, 3]), np.array([1, 4, 3], I32)], {"seq_dim": 0, "batch_dim": 1})], dtypes=SOME)
    f.sweep("Roll", lambda d: [([v(d, [3, 4]), np.array(s, I32), np.array(a, I32)], {}) for s, a in ((1, 0), (-2, 1), ([1, 5], [0, 1]))], dtypes=SOME)
    f.sweep("Select", lambda d: [([v("bool", [2, 3]), v(d, [2, 3]), v(d, [2, 3], salt=1)], {}), ([v("bool", [2]), v(d, [2, 3]), v(d, [2, 3], salt=1)], {}),
                                 ([np.array(True), v(d, [2, 3]), v(d, [2, 3], salt=1)], {})], dtypes=SOME)
    f.sweep("SelectV2", lambda d: [([v("bool", a), v(d, b), v(d, c, salt=1)], {}) for a, b, c in
                                   (([2, 3], [2, 3], [2, 3]), ([3], [2, 3], []), ([2, 1], [], [3]), ([], [2], [2]))], dtypes=SOME)
    f.sweep("OneHot", lambda d: [([np.array([0, 2, -1, 5], t), np.array(4, I32), np.array(1).astype(npdtype(d)), np.array(0).astype(npdtype(d))], {"axis": a})
                                 for t, a in ((I32, -1), (I64, 0), (np.uint8, -1)) if t != np.uint8 or True][:2]
            + [([np.array([[0, 1], [2, 0]], I32), np.array(3, I32), np.array(3).astype(npdtype(d)), np.array(1).astype(npdtype(d))], {"axis": 1})],
            dtypes=[d for d in SOME if d not in ("string",)])


def slicing(f):
    v = f.values
    f.sweep("Slice", lambda d: [([v(d, [3, 4, 5]), np.array(b, t), np.array(s, t)], {}) for b, s, t in
                                (([1, 0, 2], [2, 4, 2], I32), ([0, 1, 0], [-1, 2, -1], I64), ([3, 0, 0], [0, 4, 5], I32))]
            + [([v(d, [6]), np.array([2], I32), np.array([3], I32)], {}), ([v(d, [4, 6]), np.array([0, 2], I32), np.array([4, 3], I32)], {})], dtypes=SOME)
    masks = [(([1, 0], [3, 4], [1, 1]), {}), (([0, 0], [3, 4], [2, -1]), {"begin_mask": 2, "end_mask": 3}), (([-1], [0], [1]), {"shrink_axis_mask": 1}),
             (([0, 1], [0, 2], [1, 1]), {"ellipsis_mask": 1}), (([0, 0, 1], [0, 0, 3], [1, 1, 1]), {"new_axis_mask": 2, "begin_mask": 1, "end_mask": 1}),
             (([2, 5], [-4, 0], [-1, -2]), {}), (([1], [1], [1]), {}), (([0, 0, -2], [0, 0, -1], [1, 1, 1]), {"ellipsis_mask": 1, "new_axis_mask": 2, "shrink_axis_mask": 4})]
    f.sweep("StridedSlice", lambda d: [([v(d, [4, 5, 3])] + [np.array(p, I64 if i % 3 == 2 else I32) for p in spec], attrs)
                                       for i, (spec, attrs) in enumerate(masks)], dtypes=SOME)
    f.sweep("StridedSliceGrad", lambda d: [([np.array([4, 5], I32), np.array([1, 0], I32), np.array([4, 5], I32), np.array([2, 2], I32), v(d, [2, 3])], {}),
                                           ([np.array([4, 5], I32), np.array([3], I32), np.array([0], I32), np.array([-1], I32), v(d, [3, 5])], {}),
                                           ([np.array([4, 5], I32), np.array([1], I32), np.array([2], I32), np.array([1], I32), v(d, [5])], {"shrink_axis_mask": 1})], dtypes=SOME[:-1])


def gathering(f):
    v = f.values
    f.sweep("GatherV2", lambda d: [([v(d, [5, 4, 3]), np.array(i, t), np.array(a, I32)], {"batch_dims": b}) for i, t, a, b in
                                   (([0, 4, 2], I32, 0, 0), ([[1, 0], [3, 3]], I64, 1, 0), (2, I32, 2, 0), ([0, 2], I32, -1, 0), ([], I32, 0, 0),
                                    ([[0, 1], [3, 2], [1, 1], [0, 0], [2, 3]], I32, 1, 1))], dtypes=SOME, attr="Tparams")
    f.sweep("Gather", lambda d: [([v(d, [5, 3]), np.array(i, t)], {}) for i, t in (([0, 4, 2], I32), ([[1, 0], [3, 3]], I64))], dtypes=SOME, attr="Tparams")
    f.sweep("GatherNd", lambda d: [([v(d, [5, 4, 3]), np.array(i, t)], {}) for i, t in (([[0, 1], [4, 3]], I32), ([[2]], I64), ([[[1, 1, 1]], [[0, 0, 2]]], I32))],
            dtypes=SOME, attr="Tparams")
    with f.graph.as_default():
        for op, index in (("GatherV2", [np.array([0, 9], I32), np.array(0, I32)]), ("GatherNd", [np.array([[9]], I32)])):
            f.case(op, "float32", tag="out_of_range", expect_error=True)
            with f.scope():
                f.run(f.node(op, [v("float32", [5, 3])] + index))
    f.sweep("DynamicPartition", lambda d: [([v(d, [6, 2]), np.array([0, 2, 1, 0, 2, 2], I32)], {"num_partitions": 3}),
                                           ([v(d, [2, 2]), np.array([[0, 1], [1, 1]], I32)], {"num_partitions": 3})], dtypes=SOME)
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        f.sweep(op, lambda d: [([[np.array([0, 2], I32), np.array([[1, 4], [3, 5]], I32)], [v(d, [2, 3]), v(d, [2, 2, 3], salt=1)]], {})], dtypes=SOME)
    f.simple("DynamicStitch", "float32", [([[np.array([0, 2], I32), np.array([2, 1], I32)], [v("float32", [2]), v("float32", [2], salt=1)]], {})], tag="overlap")


def scattering(f):
    v = f.values
    f.sweep("ScatterNd", lambda d: [([np.array(i, t), v(d, u), np.array(s, t)], {}) for i, u, s, t in
                                    (([[1], [3]], [2, 4], [5, 4], I32), ([[0, 1], [2, 2]], [2], [3, 3], I64), ([[1], [1]], [2], [3], I32))], dtypes=SOME[:-1])
    for op in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin"):
        f.sweep(op, lambda d: [([v(d, [5, 3]), np.array([[4], [1]], I32), v(d, [2, 3], salt=1)], {}), ([v(d, [5, 3]), np.array([[0, 2], [3, 1]], I64), v(d, [2], salt=1)], {})],
                dtypes=SOME if op == "TensorScatterUpdate" else SOME[:8])
    f.sweep("SparseToDense", lambda d: [([np.array([[0, 1], [2, 0]], t), np.array([3, 4], t), v(d, [2]), v(d, [], salt=1)], {}) for t in (I32, I64)]
            + [([np.array([1, 3], I32), np.array([5], I32), v(d, []), v(d, [], salt=1)], {})], dtypes=SOME)


def padding(f):
    v, p = f.values, np.array([[1, 0], [0, 2], [1, 1]], I32)
    f.sweep("Pad", lambda d: [([v(d, [2, 3, 4]), p.astype(t)], {}) for t in (I32, I64)] + [([v(d, [0, 2]), np.array([[1, 1], [0, 0]], I32)], {})], dtypes=SOME[:-1])
    f.sweep("PadV2", lambda d: [([v(d, [2, 3, 4]), p, v(d, [], salt=3)], {})], dtypes=SOME[:-1])
    for mode in ("REFLECT", "SYMMETRIC"):
        f.sweep("MirrorPad", lambda d: [([v(d, [3, 4]), np.array([[1, 2], [0, 3]], t)], {"mode": mode}) for t in (I32, I64)], dtypes=SOME, tag=mode)
        f.sweep("MirrorPadGrad", lambda d: [([v(d, [6, 7]), np.array([[1, 2], [0, 3]], I32)], {"mode": mode})], relative(1e-6, 16), dtypes=["float32", "float64", "int32"], tag=mode)
    f.sweep("SpaceToBatchND", lambda d: [([v(d, [2, 4, 5, 3]), np.array([2, 3], I32), np.array([[0, 0], [1, 0]], I32)], {})], dtypes=SOME[:-1], dynamic=False)
    f.sweep("SpaceToBatch", lambda d: [([v(d, [1, 4, 4, 2]), np.array([[0, 0], [0, 0]], I32)], {"block_size": 2})], dtypes=SOME[:-1])
    f.sweep("BatchToSpaceND", lambda d: [([v(d, [12, 2, 2, 3]), np.array([2, 3], I32), np.array([[0, 0], [1, 0]], I32)], {})], dtypes=SOME[:-1], dynamic=False)
    f.sweep("SpaceToDepth", lambda d: [([v(d, [2, 4, 6, 3])], {"block_size": 2})], dtypes=SOME[:-1])
    f.sweep("DepthToSpace", lambda d: [([v(d, [2, 2, 3, 12])], {"block_size": 2})], dtypes=SOME[:-1])


def matrices(f):
    v = f.values
    f.sweep("Diag", lambda d: [([v(d, s)], {}) for s in ([4], [2, 3])], dtypes=LIGHT + ["float16", "complex64"])
    f.sweep("DiagPart", lambda d: [([v(d, s)], {}) for s in ([4, 4], [2, 3, 2, 3])], dtypes=LIGHT + ["float16", "complex64"])
    f.sweep("MatrixBandPart", lambda d: [([v(d, [2, 4, 5]), np.array(a, t), np.array(b, t)], {}) for a, b, t in ((1, 1, I64), (-1, 0, I32), (0, -1, I64), (2, 0, I64))], dtypes=SOME[:-1])
    f.sweep("MatrixDiag", lambda d: [([v(d, s)], {}) for s in ([4], [2, 3])], dtypes=SOME[:-1])
    f.sweep("MatrixDiagPart", lambda d: [([v(d, s)], {}) for s in ([4, 4], [2, 3, 5])], dtypes=SOME[:-1])
    f.sweep("MatrixSetDiag", lambda d: [([v(d, [2, 3, 4]), v(d, [2, 3], salt=1)], {})], dtypes=SOME[:-1])
    for op in ("MatrixDiagPartV2", "MatrixDiagPartV3"):
        f.sweep(op, lambda d: [([v(d, [2, 4, 5]), np.array(k, I32), v(d, [], salt=1)], a) for k in (0, [-1, 2], 1)
                               for a in ([{"align": x} for x in ("RIGHT_LEFT", "LEFT_RIGHT")] if op.endswith("3") else [{}])], dtypes=SOME[:-1])
    f.sweep("MatrixDiagV3", lambda d: [([v(d, [2, 4]), np.array(0, I32), np.array(-1, I32), np.array(-1, I32), v(d, [], salt=1)], {}),
                                       ([v(d, [2, 3, 4]), np.array([-1, 1], I32), np.array(-1, I32), np.array(-1, I32), v(d, [], salt=1)], {"align": "LEFT_RIGHT"}),
                                       ([v(d, [2, 5]), np.array(1, I32), np.array(6, I32), np.array(6, I32), v(d, [], salt=1)], {})], dtypes=SOME[:-1])
    f.sweep("MatrixSetDiagV3", lambda d: [([v(d, [2, 4, 4]), v(d, [2, 4], salt=1), np.array(0, I32)], {}), ([v(d, [2, 4, 4]), v(d, [2, 3, 4], salt=1), np.array([-1, 1], I32)], {"align": "LEFT_LEFT"})], dtypes=SOME[:-1])


def sets(f):
    v = f.values
    x = lambda d: v(d, [12], 0, 4)
    f.sweep("Unique", lambda d: [([x(d)], {"out_idx": t}) for t in ("int32", "int64")] + [([v(d, [0])], {})], dtypes=SOME)
    f.sweep("UniqueWithCounts", lambda d: [([x(d)], {"out_idx": t}) for t in ("int32", "int64")], dtypes=LIGHT + ["string"])
    f.sweep("UniqueV2", lambda d: [([x(d), np.array([0], I32)], {}), ([v(d, [4, 3], 0, 1), np.array([0], I64)], {}), ([x(d), np.array([], I32)], {})], dtypes=LIGHT + ["string"])
    f.sweep("ListDiff", lambda d: [([x(d), v(d, [3], 0, 3, 1)], {"out_idx": t}) for t in ("int32", "int64")], dtypes=LIGHT + ["string"])
    # each has a tensor of its own, because TensorFlow writes to it
    for k, op in enumerate(("InplaceUpdate", "InplaceAdd", "InplaceSub")):
        for d in ("float32", "float64", "int32", "int64", "float16") + (("bool", "string") if k == 0 else ()):
            f.simple(op, d, [([f.values(d, [4, 3], salt=5 + k), np.array([3, 0], np.int32), f.values(d, [2, 3], salt=1)], {})], dynamic=False)
    f.simple("Empty", "float32", [([np.array(s, np.int32)], {"dtype": tf.float32, "init": True}) for s in ([2, 3], [0], [])])
