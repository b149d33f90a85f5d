"""Ops that few graphs have: sparse counts, fused padding, glimpses, peeking, generators that draw themselves."""

import gzip
import zlib

import numpy as np

from cases import relative
from ops.state import Variable

I32, I64 = np.int32, np.int64


def cases(f):
    with f.graph.as_default():
        counts(f)
        fused_padding(f)
        glimpses(f)
        peeks(f)
        generators(f)
        sound(f)
        regression(f)
        packed(f)
        bands(f)
        crops(f)


def refused(f, op, dtype, inputs, tag, dynamic=True, **attrs):
    f.case(op, dtype, tag=tag, expect_error="InvalidArgumentError")
    with f.scope():
        f.run(f.node(op, inputs, dynamic=dynamic, **attrs))


def counts(f):
    at = np.array([[0, 1], [0, 3], [2, 0], [2, 1], [2, 2]], I64)
    dims, splits = np.array([4, 5], I64), np.array([0, 2, 2, 5], I64)
    for index in ("int32", "int64"):
        to = lambda *v: np.array(v, index)
        values, dense = to(3, 1, 4, 1, 4), to(3, 1, 4, 1, 5, 1, 2, 6).reshape(2, 4)
        for d in ("float32", "int64") if index == "int64" else ("float64", "int32"):
            none, five, eight = np.zeros([0], d), f.values(d, [5]), f.values(d, [2, 4])
            some = [{}, {"minlength": 9}, {"maxlength": 4}, {"minlength": 2, "maxlength": 5}, {"maxlength": 0}]
            weighted = [({"binary_output": b, **a}, w) for a in some for b, w in ((False, False), (False, True), (True, False))]
            f.simple("DenseCountSparseOutput", d, [([dense, eight if w else none], a) for a, w in weighted], tag=index)
            f.simple("DenseCountSparseOutput", d, [([dense[0], eight[0] if w else none], a) for a, w in weighted], tag=index + ".vector")
            f.simple("SparseCountSparseOutput", d, [([at, values, dims, five if w else none], a) for a, w in weighted], tag=index)
            f.simple("SparseCountSparseOutput", d, [([at[:2, 1:], values[:2], dims[1:], five[:2] if w else none], a) for a, w in weighted], tag=index + ".vector")
            f.simple("RaggedCountSparseOutput", d, [([splits, values, five if w else none], a) for a, w in weighted], tag=index)
        f.simple("DenseCountSparseOutput", "float32", [([to().reshape(2, 0), np.zeros([0], np.float32)], {"binary_output": False})], tag=index + ".empty")
    one = np.zeros([0], np.float32)
    refused(f, "DenseCountSparseOutput", "float32", [np.zeros([2, 2, 2], I32), one], "rank", binary_output=False)
    refused(f, "DenseCountSparseOutput", "float32", [np.zeros([3], I32), np.ones([2], np.float32)], "weights", binary_output=False)
    refused(f, "RaggedCountSparseOutput", "float32", [np.array([0, 2], I64), np.zeros([3], I32), one], "splits", binary_output=False)


def fused_padding(f):
    """Images one by one: of several TensorFlow resizes and pads only the first as it should."""
    for d in ("float32", "float64", "float16"):
        x, w = f.values(d, [1, 5, 6, 3]), f.values(d, [3, 2, 3, 4], salt=1)
        pads = [np.array(p, I32) for p in ([[0, 0], [1, 2], [2, 1], [0, 0]], [[0, 0], [0, 0], [0, 3], [0, 0]])]
        kinds = [{"mode": m, "strides": s, "padding": p} for m in ("REFLECT", "SYMMETRIC") for s in ([1, 1, 1, 1], [1, 2, 2, 1]) for p in ("SAME", "VALID")]
        f.simple("FusedPadConv2D", d, [([x, p, w], k) for p in pads for k in kinds], relative(1e-5)(d), dynamic=False)
        sizes = [np.array(s, I32) for s in ([7, 9], [3, 4], [5, 6])]
        f.simple("FusedResizeAndPadConv2D", d, [([x, s, pads[0], w], {"resize_align_corners": a, **k}) for s in sizes for a in (False, True) for k in kinds[1::3]], relative(1e-5)(d), dynamic=False)
    x, w = f.values("float32", [1, 3, 3, 2]), f.values("float32", [1, 1, 2, 2])
    plain = {"mode": "REFLECT", "strides": [1, 1, 1, 1], "padding": "SAME"}
    refused(f, "FusedPadConv2D", "float32", [x, np.array([[0, 0], [3, 0], [0, 0], [0, 0]], I32), w], "wide", False, **plain)


def glimpses(f):
    x, size = f.values("float32", [4, 6, 7, 2]), np.array([3, 4], I32)
    offsets = np.array([[0, 0], [0.3, -0.4], [-1.5, 0.9], [5, -7]], np.float32)
    for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
        kinds = [{"centered": c, "normalized": n, "uniform_noise": False, "noise": "zero"} for c in (True, False) for n in (True, False)]
        f.simple(op, "float32", [([x, size, offsets * s], k) for k in kinds for s in (1, 3)] + [([x, np.array([9, 9], I32), offsets], k) for k in kinds])
        for noise in ("uniform", "gaussian"):
            f.simple(op, "float32", [([x, size, offsets], {"noise": noise, "uniform_noise": noise == "uniform"})], "shape", tag=noise)
            inside = {"centered": True, "normalized": True, "noise": noise, "uniform_noise": noise == "uniform"}
            f.simple(op, "float32", [([x, size, offsets[:1].repeat(4, 0)], inside)], tag=noise + ".inside")
        refused(f, op, "float32", [x, size, offsets[:2]], "offsets", noise="zero", uniform_noise=False)


def peeks(f):
    f.case("StagePeek", "float32")
    named = {"dtypes": ["float32", "int32"], "capacity": 0, "memory_limit": 0, "container": "", "shared_name": f.current["name"]}
    with f.scope():
        puts = [f.node("Stage", [[f.values("float32", [2], salt=i), np.array(i, I32)]], **{k: named[k] for k in named if k != "dtypes"}) for i in range(3)]
        looks = [f.node("StagePeek", [np.array(i, I32)], **named) for i in range(3)]
        taken = f.node("Unstage", **named)
    f.run(targets=puts[:1])
    f.run(looks[0])
    f.run(targets=puts[1:2])
    f.run(looks[1])
    f.run(looks[0])
    f.run(taken)
    f.run(looks[0])
    f.run(looks[1], targets=puts[2:])  # the one waits for the other


def generators(f):
    kinds = [("StatefulUniform", d) for d in ("float32", "float64", "float16", "bfloat16")]
    kinds += [("StatefulStandardNormalV2", d) for d in ("float32", "float64", "float16")]
    kinds += [("StatefulTruncatedNormal", d) for d in ("float32", "float64")]
    kinds += [(op, d) for op in ("StatefulUniformInt", "StatefulUniformFullInt") for d in ("int32", "int64", "uint32", "uint64")]
    drawn(f, kinds)
    for d in ("int32", "uint64"):
        f.simple("NonDeterministicInts", d, [([np.array([3, 2], I64)], {"dtype": d})], "shape")


def drawn(f, kinds):
    start = np.array([2 ** 62 + 2 ** 61 - 5, 7, 99], I64)
    for op, d in kinds:
        normal = "Normal" in op
        f.case(op, d, ("ulp:2" if d == "float64" else "ulp:1") if normal else "exact")
        tagged = op == "StatefulStandardNormal"  # the state says the algorithm
        with f.scope():
            state = Variable(f, "int64", [4 if tagged else 3], True)
            begin = state.assign(np.concatenate([np.array([1], I64), start]) if tagged else start)
            bounds = [np.array(3, d), np.array(1000, d)] if op == "StatefulUniformInt" else []
            numbers = [f.node(op, [state.handle] + ([] if tagged else [np.array(1, I64)]) + [np.array(s, I32)] + bounds, dtype=d) for s in ([3, 5], [300], [])]
            read = state.read()
        f.run(targets=[begin])
        for y in numbers:
            f.run(y)
            f.run(read)


def sound(f):
    x = f.values("float32", [400, 2])
    f.simple("AudioSpectrogram", "float32", [([x], {"window_size": w, "stride": s, "magnitude_squared": q}) for w, s in ((16, 16), (25, 10), (200, 80), (401, 1)) for q in (False, True)], "relative:1e-5")
    power = np.square(f.values("float32", [2, 3, 129]))
    f.simple("Mfcc", "float32", [([power, np.array(16000, I32)], a) for a in ({}, {"upper_frequency_limit": 7600.0, "lower_frequency_limit": 125.0, "filterbank_channel_count": 20, "dct_coefficient_count": 20}, {"filterbank_channel_count": 60})] + [([power[:, :, :33] * 0, np.array(44100, I32)], {})], "relative:1e-5")
    f.simple("Mfcc", "float32", [([power, np.array(4000, I32)], {})], tag="limit")
    wave = f.node("EncodeWav", [x * np.float32(0.4), np.array(8000, I32)], name="wave")
    f.case("EncodeWav", "float32")
    with f.scope():
        f.run([f.node("EncodeWav", [v, np.array(r, I32)]) for v, r in ((x * np.float32(0.4), 8000), (x[:3, :1] * 9, 44100))])
    f.case("DecodeWav", "float32")
    with f.scope():
        f.run([t for a in ({}, {"desired_channels": 1}, {"desired_channels": 3, "desired_samples": 500}, {"desired_samples": 10}) for t in f.node("DecodeWav", [wave], **a)])
    for tag, contents in (("letters", b"RIFX0000WAVE"), ("short", b"RIFF\x10\0\0\0WAVEfmt \x10\0\0\0"), ("empty", b"")):
        refused(f, "DecodeWav", "float32", [np.array(contents, object)], tag)


def regression(f):
    for d, to in (("float32", "float32"), ("float64", "float64"), ("int32", "float64")):
        f.simple("IsotonicRegression", d, [([x], {"output_dtype": to}) for x in ((9 * np.sin(np.arange(27) ** 2)).reshape(3, 9).astype(d), f.values(d, [1]), np.array([3, 3, 2, 2, 5, 5, 1], d))], "relative:1e-6")


def packed(f):
    text = [b"hello hello hello", b"", b"\0\1\2" * 50]
    for kind, pack in (("ZLIB", zlib.compress), ("GZIP", lambda t: gzip.compress(t, mtime=0)), ("", bytes)):
        f.simple("DecodeCompressed", "string", [([np.array([pack(t) for t in text], object)], {"compression_type": kind})], tag=kind.lower())


def bands(f):
    for d in ("float32", "float64"):
        wide = [np.abs(f.values(d, [k, 5], salt=k)) + 1 for k in (1, 2, 3, 5)]
        kinds = [{"lower": low, "adjoint": a} for low in (True, False) for a in (True, False)]
        f.simple("BandedTriangularSolve", d, [([b.astype(d), f.values(d, [5, 2])], k) for b in wide for k in kinds], relative(1e-4)(d))
        f.simple("BandedTriangularSolve", d, [([np.stack([wide[1]] * 2).astype(d), f.values(d, [2, 5, 2])], kinds[0]), ([wide[1].astype(d), f.values(d, [2, 5, 2])], kinds[3])], relative(1e-4)(d), tag="batch")


def crops(f):
    x = (np.add.outer(np.arange(33) * 5, np.arange(41) * 3)[..., None] + np.array([0, 40, 90])).astype(np.uint8)
    for shape, name in ((x, "colour"), (x[..., :1], "grey")):
        file = f.node("EncodeJpeg", [shape], name=name)
        f.case("DecodeAndCropJpeg", "uint8", tag=name)
        with f.scope():
            f.run([f.node("DecodeAndCropJpeg", [file, np.array(w, I32)]) for w in ([0, 0, 33, 41], [3, 16, 9, 11], [8, 8, 16, 16])])
        f.case("DecodeAndCropJpeg", "uint8", tag=name + ".outside", expect_error="InvalidArgumentError")
        with f.scope():
            f.run(f.node("DecodeAndCropJpeg", [file, np.array([20, 20, 20, 20], I32)]))
