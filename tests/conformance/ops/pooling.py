"""Pools whose window is an input, fractional pools, patches of volumes."""

import numpy as np

from cases import ALL, FLOATS

I32, I64 = np.int32, np.int64
REALS = [d for d in ALL if d not in ("bool", "complex64")]
WIDE = ["float32", "float64", "int32", "int64"]


def cases(f):
    with f.graph.as_default():
        given(f)
        fractional(f)
        volumes(f)


def fails(f, op, tag, inputs, dtype="float32", kind=True, **attrs):
    f.case(op, dtype, tag=tag, expect_error=kind)
    with f.scope():
        f.run(f.node(op, inputs, dynamic=True, **attrs))


WINDOWS = [([1, 2, 2, 1], [1, 2, 2, 1], "SAME"), ([1, 3, 2, 1], [1, 1, 2, 1], "VALID"), ([1, 3, 3, 1], [1, 1, 1, 1], "SAME"), ([1, 1, 1, 1], [1, 1, 1, 1], "VALID"), ([1, 5, 5, 1], [1, 3, 4, 1], "SAME")]


def given(f):
    for d in [d for d in REALS if d not in ("uint32", "uint64")]:
        x = f.values(d, [2, 5, 6, 3], -40, 40)
        f.simple("MaxPoolV2", d, [([x, np.array(k, I32), np.array(s, I32)], {"padding": p}) for k, s, p in WINDOWS] + [([x, np.array([1, 1, 1, 3], I32), np.array([1, 1, 1, 3], I32)], {"padding": "VALID"})]
                 + [([x[:0], np.array(WINDOWS[0][0], I32), np.array(WINDOWS[0][1], I32)], {"padding": "SAME"})])
        for op, second in (("MaxPoolGradV2", False), ("MaxPoolGradGradV2", True)):
            f.case(op, d)
            with f.scope():
                made = []
                for i, (k, s, p) in enumerate(WINDOWS):
                    k, s = np.array(k, I32), np.array(s, I32)
                    y = f.node("MaxPoolV2", [x, k, s], padding=p)
                    shape = [x.shape[0]] + [-(-n // s[j + 1]) if p == "SAME" else (n - k[j + 1]) // s[j + 1] + 1 for j, n in enumerate(x.shape[1:3])] + [3]
                    g = f.values(d, list(x.shape) if second else shape, salt=i + 1)
                    made += [f.node(op, [x, y, g, k, s], padding=p), f.node(op, [x, y, g, k, s], padding=p, dynamic=True)]
            f.run(made)
    f.case("MaxPoolGradGradV2", "float32", tag="other")  # orig_output is not the output; NaN equals nothing
    with f.scope():
        k, s = (np.array(n, I32) for n in WINDOWS[0][:2])
        x = f.values("float32", [2, 5, 6, 3], -1, 1).round()
        made = [f.node("MaxPoolGradGradV2", [x, f.values("float32", [2, 3, 3, 3], -1, 1).round(), f.values("float32", [2, 5, 6, 3]), k, s], padding="SAME")]
        odd = np.array([np.nan, np.nan, -np.inf, -np.inf, np.nan, 1, -np.inf, -np.inf], np.float32).reshape(1, 2, 4, 1)
        made.append(f.node("MaxPoolGradGradV2", [odd, f.node("MaxPoolV2", [odd, k, s], padding="SAME"), f.values("float32", [1, 2, 4, 1]), k, s], padding="SAME"))
    f.run(made)
    deep = f.values("float32", [2, 5, 6, 3])
    for s in ([1, 2, 1, 3], [1, 100, 3, 3]):  # the strides of rows and columns have no effect there
        f.simple("MaxPoolV2", "float32", [([deep, np.array([1, 1, 1, 3], I32), np.array(s, I32)], {"padding": p}) for p in ("SAME", "VALID")], tag="deep%d" % s[1])
    special = f.special("float32")
    f.simple("MaxPoolV2", "float32", [([special.reshape(1, 3, 4, 1), np.array(k, I32), np.array(k, I32)], {"padding": "SAME"}) for k in ([1, 2, 2, 1], [1, 1, 1, 1], [1, 3, 1, 1])], tag="special")
    x = f.values("float32", [2, 5, 6, 3])
    for tag, k, s in (("few", [1, 2, 2], [1, 2, 2, 1]), ("batch", [2, 2, 2, 1], [1, 2, 2, 1]), ("stride_batch", [1, 2, 2, 1], [2, 2, 2, 1]), ("wide", [1, 9, 2, 1], [1, 2, 2, 1]),
                      ("depth", [1, 2, 2, 3], [1, 2, 2, 3])):
        fails(f, "MaxPoolV2", tag, [x, np.array(k, I32), np.array(s, I32)], padding="VALID")
    fails(f, "MaxPoolV2", "rank", [x[0], np.array([1, 2, 2, 1], I32), np.array([1, 2, 2, 1], I32)], padding="VALID")


def fractional(f):
    for d in WIDE:
        x = f.values(d, [2, 13, 11, 3], -40, 40)
        for op in ("FractionalMaxPool", "FractionalAvgPool"):
            f.simple(op, d, [([x], {"pooling_ratio": [1.0, r, c, 1.0], "pseudo_random": p, "overlapping": o, "deterministic": True, "seed": 5, "seed2": s})
                             for r, c, s in ((1.44, 1.73, 0), (2.5, 1.0, 9), (3.3, 6.0, 2 ** 40), (13.0, 11.0, 1)) for p in (False, True) for o in (False, True)])
        for o in (False, True):
            f.case("FractionalMaxPoolGrad", d, tag="overlapping" if o else "")
            with f.scope():
                made = []
                for i, p in enumerate((False, True)):
                    y, rows, columns = f.node("FractionalMaxPool", [x], pooling_ratio=[1.0, 1.44, 1.73, 1.0], pseudo_random=p, overlapping=o, deterministic=True, seed=3, seed2=4)
                    g = f.values(d, [2, 9, 6, 3], salt=i)
                    made.append(f.node("FractionalMaxPoolGrad", [x, y, g, rows, columns], overlapping=o))
            f.run(made)
            f.simple("FractionalAvgPoolGrad", d, [([np.array([2, 7, 9, 3], I64), f.values(d, [2, 3, 2, 3], -90, 90), np.array(r, I64), np.array(c, I64)], {"overlapping": o})
                                                  for r, c in (([0, 2, 4, 7], [0, 4, 9]), ([0, 3, 6, 7], [0, 1, 9]), ([1, 1, 4, 6], [2, 4, 5]))], "ulp:2", tag="overlapping" if o else "")
    f.simple("FractionalMaxPool", "float32", [([f.special("float32").reshape(1, 3, 4, 1)], {"pooling_ratio": [1.0, r, 2.0, 1.0], "deterministic": True, "seed": 1, "seed2": 1}) for r in (1.0, 1.5, 3.0)], tag="special")
    x = f.values("float32", [1, 7, 9, 1])
    for tag, op, value, attrs in (("large", "Max", x, {"pooling_ratio": [1, 8, 1, 1]}), ("rank", "Avg", x[0], {"pooling_ratio": [1, 1, 1, 1]}),
                                  ("seed", "Max", x, {"pooling_ratio": [1, 1.5, 1, 1], "deterministic": False}), ("empty", "Avg", x[:0], {"pooling_ratio": [1, 1.5, 1, 1]}), ("no_depth", "Max", x[..., :0], {"pooling_ratio": [1, 1.5, 1, 1]})):
        fails(f, "Fractional%sPool" % op, tag, [value], **{"deterministic": True, "seed": 1, "seed2": 2, **{k: [float(r) for r in v] if isinstance(v, list) else v for k, v in attrs.items()}})
    y, rows, columns = f.values("float32", [1, 2, 2, 1]), np.array([0, 3, 7], I64), np.array([0, 4, 9], I64)
    fails(f, "FractionalMaxPoolGrad", "other", [x, y, y, rows, columns])
    dims = np.array([1, 7, 9, 1], I64)
    fails(f, "FractionalAvgPoolGrad", "dims", [dims[:3], y, rows, columns])
    fails(f, "FractionalAvgPoolGrad", "negative", [dims, y, np.array([-3, 3, 7], I64), columns])



def volumes(f):
    boxes = [([1, 2, 3, 2, 1], [1, 2, 1, 2, 1]), ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1]), ([1, 3, 3, 3, 1], [1, 1, 2, 3, 1]), ([1, 4, 1, 5, 1], [1, 4, 4, 4, 1])]
    for d in REALS:
        x = f.values(d, [2, 4, 5, 6, 2])
        f.simple("ExtractVolumePatches", d, [([x], {"ksizes": k, "strides": s, "padding": p}) for k, s in boxes[:2 if d != "float32" else None] for p in ("SAME", "VALID")])
    x = f.values("float32", [2, 4, 5, 6, 2])
    f.simple("ExtractVolumePatches", "float32", [([x[:0]], {"ksizes": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}), ([x[:, :, :1]], {"ksizes": [1, 1, 3, 1, 1], "strides": [1, 1, 2, 1, 1], "padding": "VALID"})], tag="empty")
    fails(f, "ExtractVolumePatches", "rank", [x[0]], ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
    fails(f, "ExtractVolumePatches", "wide", [x], ksizes=[1, 9, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="VALID")
