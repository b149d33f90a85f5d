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
