"""Numbers as integers that stand for places in a range. Quantized tensors are looked at as the integers they are."""

import numpy as np

PLAIN = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32"}
RANGES = [(-2.0, 3.0), (0.0, 0.0), (1.0, 3.0), (-3.0, -1.0), (-1e-5, 1e-5), (-7.5, 0.25), (-100.0, 1000.0)]


def cases(f):
    with f.graph.as_default():
        for d in PLAIN:
            quantize(f, d)
            dequantize(f, d)
        refused(f)
        ranges(f)
        arithmetic(f)


def whole(f, outputs):
    return [f.node("Bitcast", [outputs[0]], type=PLAIN[outputs[0].dtype.name])] + list(outputs[1:])


def quantize(f, d):
    x = np.concatenate([f.values("float32", [37], -4, 4), np.array([0, -0.0, 0.5, -0.5, 1e30, -1e30, 2.5, 1 / 3], np.float32)])
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        f.case("QuantizeV2", d, tag=mode)
        with f.scope():
            made = [whole(f, f.node("QuantizeV2", [x, np.float32(a), np.float32(b)], T=d, mode=mode)) for a, b in RANGES]
            made += [whole(f, f.node("QuantizeV2", [x, np.float32(0), np.float32(0.001)], T=d, mode=mode, ensure_minimum_range=e)) for e in (0.5, 0.0, -1.0)]
            made.append(whole(f, f.node("QuantizeV2", [x[:0], np.float32(-2), np.float32(3)], T=d, mode=mode)))
            made.append(whole(f, f.node("QuantizeV2", [x, np.float32(-2), np.float32(3)], T=d, mode=mode, narrow_range=True, dynamic=True)))
            if mode == "SCALED":
                made += [whole(f, f.node("QuantizeV2", [x, np.float32(a), np.float32(b)], T=d, mode=mode, round_mode="HALF_TO_EVEN", narrow_range=n)) for a, b in RANGES for n in (False, True)]
            if mode != "MIN_FIRST":
                made += [whole(f, f.node("QuantizeV2", [x[:24].reshape(2, 3, 4), np.linspace(-3, 0.5, n).astype(np.float32), np.linspace(1, 7, n).astype(np.float32)], T=d, mode=mode, axis=axis)) for axis, n in enumerate((2, 3, 4))]
                made.append(whole(f, f.node("QuantizeV2", [x[:24].reshape(1, 24), np.array([-2], np.float32), np.array([3], np.float32)], T=d, mode=mode, axis=0)))
        for i in range(0, len(made), 8):
            f.run(made[i:i + 8])


def dequantize(f, d):
    plain = np.dtype(PLAIN[d])
    info = np.iinfo(plain)
    x = np.concatenate([f.values(PLAIN[d], [30], -100, 100), np.array([0, 1, info.min, info.max, info.min + 1, info.max - 1], plain)])
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        f.case("Dequantize", d, tag=mode)
        with f.scope():
            cast = lambda x: f.node("Bitcast", [x], type=d)
            made = [f.node("Dequantize", [cast(x), np.float32(a), np.float32(b)], mode=mode) for a, b in RANGES + [(3.0, -2.0)]]
            made += [f.node("Dequantize", [cast(x[:0]), np.float32(-2), np.float32(3)], mode=mode), f.node("Dequantize", [cast(x), np.float32(-7), np.float32(3)], mode=mode, narrow_range=True, dynamic=True)]
            if mode == "MIN_COMBINED":
                made += [f.node("Dequantize", [cast(x), np.float32(a), np.float32(b)], mode=mode, dtype="bfloat16") for a, b in RANGES]
            if mode != "MIN_FIRST":
                made += [f.node("Dequantize", [cast(x[-24:].reshape(2, 3, 4)), np.linspace(-3, 0.5, n).astype(np.float32), np.linspace(1, 7, n).astype(np.float32)], mode=mode, axis=axis) for axis, n in enumerate((2, 3, 4))]
        f.run(made)


def fails(f, op, d, tag, inputs, **attrs):
    """Ranges of unknown shape; numbers of a known one, which TensorFlow wants where there is an axis."""
    f.case(op, d, tag=tag, expect_error=True)
    with f.scope():
        ranges = [f.const(r, True) for r in inputs[1:]]
        if op == "Dequantize":
            f.run(f.node(op, [f.node("Bitcast", [inputs[0]], type=d)] + ranges, **attrs))
        else:
            f.run(f.node(op, inputs[:1] + ranges, T=d, **attrs)[1:])


def refused(f):
    x, a, b = f.values("float32", [2, 4]), np.float32(-2), np.float32(3)
    pair = np.array([1, 2], np.float32)
    for tag, inputs, attrs in (("range", [x, b, a], {}), ("even", [x, a, b], {"round_mode": "HALF_TO_EVEN"}), ("vectors", [x, -pair, pair], {}), ("first", [x, -pair, pair], {"mode": "MIN_FIRST", "axis": 0}),
                               ("few", [x, -pair[:1], pair], {"axis": 0}), ("matrix", [x[:1], -pair[:1, None], pair[:1]], {"axis": 0})):
        fails(f, "QuantizeV2", "qint8", tag, inputs, **attrs)
    x = f.values("int8", [2, 4])
    for tag, inputs, attrs in (("vectors", [x, -pair, pair], {}), ("first", [x, -pair, pair], {"mode": "MIN_FIRST", "axis": 0}), ("few", [x, -pair[:1], pair], {"axis": 0}),
                               ("bfloat16", [x, a, b], {"mode": "SCALED", "dtype": "bfloat16"})):
        fails(f, "Dequantize", "qint8", tag, inputs, **attrs)


def integers(f, d, shape, low=None, high=None, salt=0):
    """Whole numbers as quantized ones, all of the type's range if none is given."""
    plain = np.dtype(PLAIN[d])
    info = np.iinfo(plain)
    x = f.rng(d, tuple(shape), salt).randint(info.min if low is None else low, (info.max if high is None else high) + 1, size=shape, dtype=np.int64).astype(plain)
    return f.node("Bitcast", [x], type=d)


def quantized(f, op, d, made, tag=""):
    """made: callables that add a node; what it gives is looked at as integers."""
    f.case(op, d, tag=tag)
    with f.scope():
        outputs = []
        for make in made:
            outputs += [f.node("Bitcast", [o], type=PLAIN[o.dtype.name]) if o.dtype.name in PLAIN else o for o in make()]
    for i in range(0, len(outputs), 9):
        f.run(outputs[i:i + 9])


def ranges(f):
    w = np.float32
    sums = [(None, None), (-70000, 90000), (0, 1000), (-5, -1)]
    some = [(-2.0, 3.0), (-1e6, 1e6), (0.0, 7.0), (-8.0, 0.5), (-1.0, -1.0)]
    quantized(f, "RequantizationRange", "qint32", [lambda s=s, r=r: f.node("RequantizationRange", [integers(f, "qint32", [37], *s), w(r[0]), w(r[1])]) for s in sums for r in some])
    for out in ("quint8", "qint8"):
        quantized(f, "Requantize", "qint32", [lambda s=s, r=r, t=t: f.node("Requantize", [integers(f, "qint32", [5, 7], *s), w(r[0]), w(r[1]), w(t[0]), w(t[1])], out_type=out) for s in sums for r in some for t in ((-1, 2), (0, 0.04), (-3e5, 1e5), (0, 0)) if t[0] == t[1] or r[1] - r[0] < 255 * (t[1] - t[0])], tag=out)  # beyond that TensorFlow's 64 bits overflow
    quantized(f, "QuantizeDownAndShrinkRange", "qint32", [lambda s=s, r=r: f.node("QuantizeDownAndShrinkRange", [integers(f, "qint32", [3, 11], *s), w(r[0]), w(r[1])], out_type="quint8") for s in sums for r in some])
    for d in ("quint8", "qint32"):
        for op in ("QuantizedRelu", "QuantizedRelu6"):
            quantized(f, op, d, [lambda r=r, n=n: f.node(op, [integers(f, d, [n, 3]), w(r[0]), w(r[1])], out_type=d) for r in some + [(-3.0, 20.0), (8.0, 9.0)] for n in (13, 0)])
        quantized(f, "QuantizedReshape", d, [lambda s=s: f.node("QuantizedReshape", [integers(f, d, [4, 6]), np.array(s, np.int32), w(-1), w(2)]) for s in ([24], [2, -1, 3], [4, 6, 1])])
        parts = lambda a: [integers(f, d, [2, n, 3][a:] if a else [n, 2], salt=n) for n in (2, 5, 1)]  # noqa: E731,B023
        quantized(f, "QuantizedConcat", d, [lambda a=a, lows=lows, highs=highs: f.node("QuantizedConcat", [np.array(a, np.int32), parts(a) if a == 0 else [integers(f, d, [2, n, 3], salt=n) for n in (2, 5, 1)], [w(v) for v in lows], [w(v) for v in highs]])
                                            for a in (0, 1) for lows, highs in (((-1, -1, -1), (2, 2, 2)), ((-1, -4, 0), (2, 1, 8.5)), ((1, 2, 3), (2, 3, 4)))])
    for op, inputs, attrs in (("Requantize", [w(-1), w(1), w(0.5), w(1)], {"out_type": "quint8"}), ("Requantize", [w(-1), w(1), w(-0.5), w(-1)], {"out_type": "quint8"})):
        f.case(op, "qint32", tag="refused_%g" % inputs[2], expect_error=True)
        with f.scope():
            f.run(f.node(op, [integers(f, "qint32", [3])] + [f.const(v, True) for v in inputs], **attrs)[1])


def arithmetic(f):
    w = np.float32
    some = [((-1.0, 2.0), (-3.0, 0.5)), ((0.0, 6.0), (-1.0, 1.0)), ((-4.0, -1.0), (2.0, 9.0))]
    made = []
    for ra, rb in some:
        for m, k, n, ta, tb in ((3, 4, 5, False, False), (1, 9, 2, True, False), (4, 33, 3, False, True), (2, 3, 7, True, True)):
            made.append(lambda ra=ra, rb=rb, m=m, k=k, n=n, ta=ta, tb=tb: f.node("QuantizedMatMul", [integers(f, "quint8", [k, m] if ta else [m, k]), integers(f, "quint8", [n, k] if tb else [k, n], salt=1), w(ra[0]), w(ra[1]), w(rb[0]), w(rb[1])], transpose_a=ta, transpose_b=tb))
    quantized(f, "QuantizedMatMul", "quint8", made)
    made = []
    for (ra, rb), (size, window, stride) in zip(some[:2] * 5, ((5, 3, 1), (6, 3, 2), (7, 1, 1), (8, 2, 3), (9, 1, 4), (9, 2, 5), (4, 4, 1), (11, 3, 4), (5, 2, 2), (3, 3, 3))):
        for padding in ("SAME", "VALID"):
            made.append(lambda ra=ra, rb=rb, size=size, window=window, stride=stride, padding=padding: f.node("QuantizedConv2D", [integers(f, "quint8", [2, size, size + 1, 3]), integers(f, "quint8", [window, window, 3, 4], salt=1), w(ra[0]), w(ra[1]), w(rb[0]), w(rb[1])], strides=[1, stride, stride, 1], padding=padding))
    quantized(f, "QuantizedConv2D", "quint8", made)
    for d in ("quint8", "qint8"):
        quantized(f, "QuantizedBiasAdd", d, [lambda ra=ra, rb=rb, s=s: f.node("QuantizedBiasAdd", [integers(f, d, s), integers(f, d, s[-1:], salt=1), w(ra[0]), w(ra[1]), w(rb[0]), w(rb[1])], out_type="qint32") for ra, rb in some + [((-1e-3, 1e-3), (-100.0, 3.0))] for s in ([5, 7], [2, 3, 4], [0, 3])])
        for op in ("QuantizedMaxPool", "QuantizedAvgPool"):
            quantized(f, op, d, [lambda k=k, s=s, p=p: f.node(op, [integers(f, d, [2, 7, 6, 3]), w(-1), w(2)], ksize=[1, k, k, 1], strides=[1, s, s, 1], padding=p) for k, s in ((2, 2), (3, 1), (3, 2), (1, 1)) for p in ("SAME", "VALID")])
