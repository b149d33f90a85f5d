"""Two inputs with broadcasting, and sums of many."""

import numpy as np

from cases import ALL, COMPLEX, FLOATS, INTS, npdtype, relative, ulps

PAIRS = [([3, 5], [3, 5]), ([2, 3, 5], [5]), ([4, 1], [1, 6]), ([], [2, 3]), ([1], [7]), ([2, 1, 3, 1], [4, 1, 5]),
         ([0, 3], [1, 3]), ([67], [67])]


def pairs(f, dtype, low=-4, high=4, low2=None, high2=None, special=True):
    made = [([f.values(dtype, a, low, high), f.values(dtype, b, low if low2 is None else low2,
                                                      high if high2 is None else high2, 1)], {}) for a, b in PAIRS]
    if special:
        edge = f.special(dtype)
        made.append(([edge[:, None].copy(), edge[None, :].copy()], {}))
    return made


def cases(f):
    for op in ("Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "Equal", "NotEqual", "Less", "LessEqual", "Greater",
               "GreaterEqual", "SquaredDifference", "MulNoNan"):
        f.sweep(op, lambda d: pairs(f, d, special=not (op in ("Mul", "SquaredDifference") and d in COMPLEX)),
                ulps(1) if op in ("Mul", "SquaredDifference", "MulNoNan") else ulps(0))
    f.simple("Add", "string", [([np.array([b"a", b"bc"], object), np.array(b"z", object)], {})])
    for op in ("Equal", "NotEqual"):
        f.simple(op, "string", [([np.array([b"a", b"bc"], object), np.array([b"a", b"b"], object)], {})])
        f.simple(op, "float32", [([f.values("float32", [2]), f.values("float32", [3])], {"incompatible_shape_error": False})],
                 tag="other_shapes")
    for op in ("RealDiv", "Div", "DivNoNan", "Xdivy"):
        f.sweep(op, lambda d: pairs(f, d), ulps(1), dtypes=FLOATS)
    f.sweep("RealDiv", lambda d: pairs(f, d, 1, 4, special=False), ulps(4), dtypes=COMPLEX)
    for op in ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Div", "Mod"):
        f.sweep(op, lambda d: pairs(f, d, -20, 20, 1, 7, special=False)
                + [([f.values(d, [40], -20, 20), -f.values(d, [40], 1, 7)], {})] * (not d.startswith("uint")),
                "exact", dtypes=INTS)
        f.simple(op, "int32", [([np.array([1, 2], np.int32), np.array([1, 0], np.int32)], {})], tag="by_zero", expect_error=True)
    for op in ("FloorDiv", "FloorMod", "TruncateMod", "Mod"):
        f.sweep(op, lambda d: pairs(f, d, -20, 20, 0.5, 7, special=False)
                + [([f.values(d, [40], -20, 20), -f.values(d, [40], 1, 7)], {})], ulps(1), dtypes=FLOATS)
    for op in ("LogicalAnd", "LogicalOr"):
        f.simple(op, "bool", pairs(f, "bool"))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        f.sweep(op, lambda d: pairs(f, d), "exact", dtypes=INTS)
    for op in ("LeftShift", "RightShift"):
        f.sweep(op, lambda d: pairs(f, d, 0, 100, 0, 6, special=False), "exact", dtypes=INTS)
    f.sweep("RightShift", lambda d: [([f.values(d, [9], -100, -1), f.values(d, [9], 0, 6)], {})], "exact",
            dtypes=["int8", "int16", "int32", "int64"], tag="negative")
    f.sweep("Pow", lambda d: pairs(f, d, 0.25, 4, -3, 3, special=False), ulps(16, narrow=2), dtypes=FLOATS)
    f.sweep("Pow", lambda d: pairs(f, d, -3, 3, 0, 4, special=False), "exact", dtypes=INTS)
    f.simple("Pow", "float32", [([f.special("float32")[:, None].copy(), np.array([[0, 1, 2, -1, 0.5, 3]], np.float32)], {})],
             "ulp:16", tag="special")
    f.simple("Pow", "int32", [([np.array([2], np.int32), np.array([-1], np.int32)], {})], tag="negative_power", expect_error=True)
    f.sweep("Pow", lambda d: pairs(f, d, 0.5, 2, special=False), relative(1e-4), dtypes=COMPLEX)
    f.sweep("Atan2", lambda d: pairs(f, d), ulps(8, narrow=2), dtypes=FLOATS)
    f.sweep("NextAfter", lambda d: pairs(f, d, special=False), "exact", dtypes=["float32", "float64"])
    for op in ("Xlogy", "Xlog1py"):
        f.sweep(op, lambda d: pairs(f, d, -4, 4, 0.25, 5, special=False)
                + [([np.zeros(2, np.float32).astype(f.values(d, [1]).dtype), np.zeros(2).astype(f.values(d, [1]).dtype)], {})],
                ulps(16, narrow=2), dtypes=FLOATS)
    for op in ("Igamma", "Igammac"):
        f.sweep(op, lambda d: pairs(f, d, 0.25, 5, special=False), relative(1e-5, 1), dtypes=["float32", "float64"])
    f.sweep("RandomGammaGrad", lambda d: pairs(f, d, 0.25, 5, 0.25, 5, special=False), relative(1e-5, 1), dtypes=["float32", "float64"])
    tails = [np.array([-1, 0, 0.125, 0.5, 1, 2, 30, 1e5, np.inf, np.nan]), np.array([[np.inf], [1e30], [0], [-1], [np.nan]])]
    for d in ("float32", "float64"):
        f.simple("RandomGammaGrad", d, [([t.astype(d) for t in tails], {})], tag="tails")
    one = lambda d, v: np.array(v, npdtype(d))  # noqa: E731
    f.sweep("Betainc", lambda d: [([f.values(d, s, 0.25, 5), f.values(d, s, 0.25, 5, 1), f.values(d, s, 0, 1, 2)], {}) for s in ([3, 5], [], [0, 2])]
            + [([one(d, 2.5), f.values(d, [7], 0.25, 9), one(d, 0.25)], {}), ([one(d, -1), one(d, 2), f.values(d, [3], 0, 1)], {})], relative(1e-5, 1), dtypes=["float32", "float64"])
    f.sweep("Polygamma", lambda d: [([f.values(d, [4], 1, 3).round(), f.values(d, [4], 0.5, 4)], {})], relative(1e-5, 1),
            dtypes=["float32", "float64"])
    f.sweep("ApproximateEqual", lambda d: [([f.values(d, [3, 5]), f.values(d, [3, 5], salt=1)], {"tolerance": 1.0})], "exact",
            dtypes=FLOATS + INTS[:4])
    f.simple("Complex", "complex64", pairs(f, "float32", special=False))
    f.sweep("Cross", lambda d: [([f.values(d, s), f.values(d, s, salt=1)], {}) for s in ([3], [4, 3], [0, 3])], relative(1e-6, 16))
    f.sweep("AddN", lambda d: [([[f.values(d, [3, 4], salt=i) for i in range(n)]], {}) for n in (1, 2, 3, 9, 12)],
            relative(1e-6, 30), dtypes=[d for d in ALL if d != "bool"])
    for d in ("float32", "float64", "int32"):
        f.simple("AccumulateNV2", d, [([[f.values(d, [3, 4], salt=i) for i in range(n)]], {"shape": [3, 4]}) for n in (1, 2, 5)], relative(1e-6, 30)(d), dynamic=False)
    f.sweep("BroadcastGradientArgs", lambda d: [([np.array(a, d), np.array(b, d)], {}) for a, b in
                                                (([2, 3, 5], [1]), ([2, 3], [3]), ([4, 1], [1, 6]), ([], [2]), ([2, 1], [2, 1]))],
            "exact", dtypes=["int32", "int64"])
    f.sweep("BroadcastArgs", lambda d: [([np.array(a, d), np.array(b, d)], {}) for a, b in
                                        (([2, 3, 5], [1]), ([2, 3], [3]), ([4, 1], [1, 6]), ([], [2]))],
            "exact", dtypes=["int32", "int64"])
    with f.graph.as_default():
        f.case("AddV2", "float32", tag="bad_shapes", expect_error=True)
        with f.scope():
            f.run(f.node("AddV2", [f.values("float32", [2]), f.values("float32", [3])], dynamic=True))
    x = {d: np.concatenate([f.values(d, [6], -9, 9), f.special(d)[-3:]]) for d in FLOATS + INTS}
    f.sweep("ClipByValue", lambda d: [([x[d], np.array(1, npdtype(d)), np.array(4, npdtype(d))], {}), ([x[d], np.array(5, npdtype(d)), np.array(2, npdtype(d))], {}), ([x[d], x[d][::-1].copy(), np.array(4, npdtype(d))], {}),
                                      ([x[d], np.array(1, npdtype(d)), x[d][::-1].copy()], {}), ([x[d], x[d][::-1].copy(), np.roll(x[d], 2)], {}), ([x[d][:0], np.array(1, npdtype(d)), np.array(4, npdtype(d))], {})],
            "exact", dtypes=FLOATS + INTS)
