"""Sums, extrema and scans over axes, segments, histograms and order statistics."""

import numpy as np

from cases import ALL, FLOATS, INTS, LIGHT, relative

I32, I64 = np.int32, np.int64


def axes(f, dtype, low=-4, high=4):
    x = f.values(dtype, [3, 4, 5], low, high)
    made = [([x, np.array(a, t)], {"keep_dims": k}) for a, t, k in
            ((1, I32, False), ([0], I32, True), ([0, 2], I32, False), ([-1], I64, False), ([1, 2], I32, True),
             ([0, 1, 2], I32, False), ([], I32, False), ([2, 0], I64, True))]
    made += [([f.values(dtype, [], low, high), np.array([], I32)], {"keep_dims": False}),
             ([f.values(dtype, [130, 3], low, high), np.array([0], I32)], {"keep_dims": False}),
             ([f.values(dtype, [3, 130], low, high), np.array([1], I32)], {"keep_dims": False})]
    return made


def empties(f, dtype):
    return [([f.values(dtype, [2, 0, 3]), np.array(a, I32)], {"keep_dims": k}) for a, k in (([1], False), ([0], True), ([0, 1, 2], False))]


def cases(f):
    numeric = [d for d in ALL if d != "bool"]
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"):
        low, high = (0.5, 1.5) if op == "Prod" else (-4, 4)
        f.sweep(op, lambda d: axes(f, d, *((low, high) if d in FLOATS else (-2, 2) if op == "Prod" else (-4, 4)))
                + ([] if op == "Mean" and d not in FLOATS else empties(f, d)),
                relative(2e-6, None if op != "Sum" else 60), dtypes=numeric)
    for op in ("Max", "Min", "Sum"):
        x = np.array([[1, np.nan, 2], [np.inf, -np.inf, 0], [-np.inf, -np.inf, -np.inf]], np.float32)
        f.simple(op, "float32", [([x, np.array([1], I32)], {"keep_dims": False}), ([x, np.array([0], I32)], {"keep_dims": False})], tag="special")
    for op in ("All", "Any"):
        f.simple(op, "bool", axes(f, "bool") + empties(f, "bool"))
    with f.graph.as_default():
        f.case("Sum", "float32", tag="bad_axis", expect_error=True)
        with f.scope():
            f.run(f.node("Sum", [f.values("float32", [2, 3]), np.array([2], I32)], dynamic=True, keep_dims=False))
    for op in ("ArgMax", "ArgMin"):
        f.sweep(op, lambda d: [([f.values(d, [3, 4, 5]), np.array(a, t)], {"output_type": o}) for a, t, o in
                               ((0, I32, "int64"), (1, I32, "int32"), (-1, I64, "int64"))], "exact")
    f.sweep("L2Loss", lambda d: [([f.values(d, s)], {}) for s in ([3, 5], [], [0], [200])], relative(2e-6), dtypes=FLOATS)
    for op in ("Cumsum", "Cumprod"):
        f.sweep(op, lambda d: [([f.values(d, [3, 4, 5], 0.5 if op == "Cumprod" else -4, 1.5 if op == "Cumprod" else 4), np.array(a, t)],
                                {"exclusive": e, "reverse": r}) for a, t, e, r in
                               ((0, I32, False, False), (1, I32, True, False), (-1, I64, False, True), (2, I32, True, True))],
                relative(2e-6, 20), dtypes=numeric)
    n, i = np.nan, np.inf
    odd = np.array([[n, 1, 2, 3], [1, n, 2, 3], [1, 2, n, n], [-i, n, 1, 2], [i, n, 1, -i], [n, n, n, n], [-i, -i, 1, 2], [i, i, 1, i], [1, i, -i, 2], [1, -i, i, n]])
    nans = np.array([[n, 1, 3, 2], [n, n, 2, 1], [1, n, 3, 0], [3, n, 1, n], [n, n, n, n], [n, 3, 3, n]])
    for op in ("ArgMax", "ArgMin"):
        for d in ("float32", "float64", "float16"):
            f.simple(op, d, [([nans.astype(d), np.array(a, I32)], {"output_type": "int64"}) for a in (0, 1)], "exact", tag="special")
    for d in ("float32", "float64", "float16"):
        f.simple("CumulativeLogsumexp", d, [([odd.astype(d), np.array(a, I32)], {"exclusive": e}) for a in (0, 1) for e in (False, True)], relative(1e-5, 1)(d), tag="special")
    f.sweep("CumulativeLogsumexp", lambda d: [([f.values(d, [3, 4]), np.array(a, I32)], {"exclusive": e, "reverse": r})
                                              for a, e, r in ((0, False, False), (1, True, False), (-1, False, True), (1, True, True))],
            relative(4e-6, 4), dtypes=["float32", "float64"])
    segments(f, numeric)
    sparse_segments(f)
    counting(f)


def segments(f, numeric):
    ids, gaps = np.array([0, 0, 1, 1, 1, 2, 3], I32), np.array([0, 0, 2, 2, 5, 5, 5], I64)
    for op in ("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin"):
        low, high = (0.5, 1.5) if op == "SegmentProd" else (-4, 4)
        f.sweep(op, lambda d: [([f.values(d, [7, 3], low, high), ids], {}), ([f.values(d, [7], low, high), gaps], {}),
                               ([f.values(d, [0, 3]), ids[:0]], {})], relative(2e-6, 8),
                dtypes=[d for d in numeric if not d.startswith("complex")] + (["complex64"] if op in ("SegmentSum", "SegmentProd", "SegmentMean") else []))
    loose = np.array([3, 0, 2, 0, -1, 3, 1], I32)
    for op in ("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin"):
        low, high = (0.5, 1.5) if op == "UnsortedSegmentProd" else (-4, 4)
        f.sweep(op, lambda d: [([f.values(d, [7, 3], low, high), loose, np.array(5, I32)], {}),
                               ([f.values(d, [2, 2, 3], low, high), np.array([[0, 1], [1, 0]], I64), np.array(2, I64)], {}),
                               ([f.values(d, [7], low, high), loose, np.array(4, I32)], {}),
                               ([f.values(d, [0, 3]), loose[:0], np.array(2, I32)], {})], relative(2e-6, 8), dtypes=numeric)
    with f.graph.as_default():
        f.case("UnsortedSegmentSum", "float32", tag="out_of_range", expect_error=True)
        with f.scope():
            f.run(f.node("UnsortedSegmentSum", [f.values("float32", [3]), np.array([0, 1, 5], I32), np.array(3, I32)]))


def sparse_segments(f):
    indices, ids = np.array([4, 0, 1, 1, 3], I32), np.array([0, 0, 1, 2, 2], I32)
    for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
        f.sweep(op, lambda d: [([f.values(d, [5, 3]), indices, ids], {}), ([f.values(d, [5]), indices.astype(I64), ids], {})],
                relative(2e-6, 4), dtypes=FLOATS)
    for op in ("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"):
        f.sweep(op, lambda d: [([f.values(d, [3, 2]), indices, ids, np.array(6, I32)], {})], relative(2e-6, 4), dtypes=FLOATS)
    f.sweep("SparseSegmentSqrtNGradV2", lambda d: [([f.values(d, [3, 2]), indices, ids, np.array(6, I32)], {})],
            relative(2e-6, 4), dtypes=["float32", "float64"])


def counting(f):
    f.sweep("Bincount", lambda d: [([np.array([1, 2, 1, 5, 0], I32), np.array(n, I32), w], {}) for n in (6, 3)
                                   for w in (f.values(d, [5]), f.values(d, [0]))], "exact", dtypes=LIGHT)
    for t in (I32, I64):
        f.simple("DenseBincount", np.dtype(t).name, [
            ([np.array([1, 2, 1, 5, 0], t), np.array(6, t), f.values("float32", [5])], {"binary_output": False}),
            ([np.array([[1, 2, 1], [0, 0, 3]], t), np.array(4, t), f.values("float32", [0])], {"binary_output": False}),
            ([np.array([[1, 2, 1], [0, 0, 3]], t), np.array(4, t), f.values("float32", [0])], {"binary_output": True}),
            ([np.array([[1, 2, 1], [0, 0, 3]], t), np.array(4, t), f.values("float32", [2, 3])], {"binary_output": False})])
    f.sweep("Bucketize", lambda d: [([f.values(d, [3, 4], -10, 10)], {"boundaries": [-5.0, 0.0, 2.5, 8.0]}), ([f.values(d, [2])], {"boundaries": []})],
            "exact", dtypes=LIGHT)
    f.sweep("HistogramFixedWidth", lambda d: [([f.values(d, [30], -6, 6), f.values(d, [2], 0, 0) + np.array([-4, 4]).astype(f.values(d, [1]).dtype),
                                                np.array(5, I32)], {"dtype": t}) for t in ("int32", "int64")],
            "exact", dtypes=LIGHT)
    f.refused("NthElement", "float32", [f.values("float32", [3, 7]), np.array([2], I32)])
    f.refused("DenseBincount", "float32", [np.array([[1], [2]], I32), np.array(4, I32), f.values("float32", [2])])
    f.sweep("NthElement", lambda d: [([f.values(d, [3, 7]), np.array(n, I32)], {"reverse": r}) for n, r in ((0, False), (3, False), (1, True))],
            "exact", dtypes=[d for d in FLOATS + INTS])
    # Values without ties apart from one row: TensorFlow takes the lower index first.
    f.sweep("TopKV2", lambda d: [([f.values(d, [3, 9], -100, 100), np.array(k, I32)], {"sorted": True}) for k in (1, 4, 9, 0)]
            + [([f.values(d, [9]), np.array(2, I32)], {"sorted": True})], "exact", dtypes=FLOATS + INTS)
    # What cannot be compared, and what comes out where no order is asked for: which and where follow from the search.
    for d in FLOATS + ["int32"]:
        made = []
        for n, ks in ((5, (1, 2, 5)), (19, (1, 3, 19)), (45, (1, 7, 45)), (130, (1, 20, 130))):
            x = f.values(d, [4, n], -20, 20)
            if d in FLOATS:
                x[1, n // 2] = x[2, 0] = x[2, n - 1] = np.nan
                x[3, f.rng(n).uniform(size=n) < 0.4] = np.nan
            made += [([x, np.array(k, I32)], {"sorted": s}) for k in ks for s in (True, False)]
        f.simple("TopKV2", d, made, tag="order")
    x = f.values("float32", [5, 6], -10, 10)
    x[3, 2] = np.nan
    targets = np.array([0, 5, 2, 1, 9], I32)
    f.simple("InTopK", "float32", [([x, targets], {"k": k}) for k in (1, 3)] + [([x, targets.astype(I64)], {"k": 2})])
    f.simple("InTopKV2", "float32", [([x, targets, np.array(k, I32)], {}) for k in (1, 3)])
    for op in ("LowerBound", "UpperBound"):
        f.sweep(op, lambda d: [([np.sort(f.values(d, [2, 6], -10, 10), axis=1), f.values(d, [2, 4], -10, 10, 3)], {"out_type": t})
                               for t in ("int32", "int64")], "exact", dtypes=LIGHT)
