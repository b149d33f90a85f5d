"""Ops that few graphs have: sparse counts, fused padding, glimpses, peeking, generators that draw themselves."""

import gzip
import struct
import zlib

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

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
        bitmaps(f)
        partial_shapes(f)
        sequences(f)


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
    f.run(looks[1], targets=puts[2:])  # the look waits for the elements that are put


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
        tagged = op == "StatefulStandardNormal"  # the state contains the algorithm
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


def bmp(pixels, upside_down=False):
    high, wide, channels = pixels.shape
    rows = (pixels if upside_down else pixels[::-1])[..., [2, 1, 0] + [3] * (channels == 4)] if channels > 1 else pixels[::-1]
    body = b"".join(r.tobytes() + b"\0" * (-wide * channels % 4) for r in rows)
    return struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + len(body), 0, 0, 54, 40, wide, -high if upside_down else high, 1, 8 * channels, 0, len(body), 0, 0, 0, 0) + body


def lzw(indices, bits):
    """Packed as GIF packs them."""
    table, out, held, width = {(i,): i for i in range(1 << bits)}, 0, 0, bits + 1
    clear, data, word = 1 << bits, [], ()
    def put(code):
        nonlocal out, held
        out |= code << held
        held += width
        while held >= 8:
            data.append(out & 255)
            out >>= 8
            held -= 8
    put(clear)
    following = clear + 2
    for i in indices:
        if word + (i,) in table:
            word += (i,)
            continue
        put(table[word])
        if following < 4096:
            table[word + (i,)] = following
            following += 1
            if following - 1 == 1 << width and width < 12:
                width += 1
        word = (i,)
    put(table[word])
    put(clear + 1)
    data.append(out & 255)
    blocks = b"".join(bytes([len(data[k:k + 255])]) + bytes(data[k:k + 255]) for k in range(0, len(data), 255))
    return bytes([bits]) + blocks + b"\0"


def gif(size, frames, interlaced=False):
    """frames: (left, top, indices [height, width], transparent index or None); 16 colours."""
    colors = b"".join(bytes([16 * i, 255 - 9 * i, i * i]) for i in range(16))
    out = b"GIF89a" + struct.pack("<HHBBB", size[1], size[0], 0x80 | 3, 0, 0) + colors
    for left, top, x, clear in frames:
        if clear is not None:
            out += b"\x21\xf9\x04" + bytes([1, 0, 0, clear]) + b"\0"
        rows = [r for a, b in ((0, 8), (4, 8), (2, 4), (1, 2)) for r in range(a, len(x), b)] if interlaced else range(len(x))
        out += b"\x2c" + struct.pack("<HHHHB", left, top, x.shape[1], x.shape[0], 0x40 if interlaced else 0) + lzw([int(v) for r in rows for v in x[r]], 4)
    return out + b"\x3b"


def bitmaps(f):
    text = lambda v: np.array(v, object)
    color = np.random.RandomState(3).randint(0, 256, [5, 7, 4]).astype(np.uint8)
    for k in (1, 3, 4):
        f.simple("DecodeBmp", "uint8", [([text(bmp(color[..., :k]))], {"channels": c}) for c in (0, 3, 4)], tag="channels%d" % k)
    f.simple("DecodeBmp", "uint8", [([text(bmp(color[..., :3], True))], {})], tag="upside_down")
    for tag, broken in (("short", bmp(color)[:-20]), ("head", bmp(color)[:30])):
        refused(f, "DecodeBmp", "uint8", [text(broken)], tag)
    refused(f, "DecodeBmp", "uint8", [text(bmp(color))], "channels", channels=1)
    x = np.random.RandomState(4).randint(0, 16, [40, 60]) * (np.arange(60) % 7 > 1)
    films = [gif([40, 60], [(0, 0, x, None)]), gif([40, 60], [(0, 0, x, None), (5, 7, x[:20, :30] % 5, 0), (0, 0, x[::-1], None)]), gif([40, 60], [(0, 0, x, None)], True)]
    f.simple("DecodeGif", "uint8", [([text(g)], {}) for g in films])
    refused(f, "DecodeGif", "uint8", [text(films[0][:500])], "short")
    f.simple("DecodeImage", "float32", [([text(films[1])], {"dtype": "float32", "expand_animations": e}) for e in (True, False)] + [([text(bmp(color))], {"dtype": "float32"})], tag="bitmaps")


def sequences(f):
    feature = {"floats": lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)), "ints": lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v)),
               "texts": lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v))}

    def message(steps, lacks=()):
        context = {"size": feature["ints"]([steps, -steps]), "tags": feature["texts"]([b"t%d" % k for k in range(steps)])}
        lists = {"points": [feature["floats"]([k, k + 0.5]) for k in range(steps)], "ids": [feature["ints"](range(k % 3)) for k in range(steps)], "words": [feature["texts"]([b"w%d" % k]) for k in range(steps)]}
        return tf.train.SequenceExample(context=tf.train.Features(feature={k: v for k, v in context.items() if k not in lacks}),
                                        feature_lists=tf.train.FeatureLists(feature_list={k: tf.train.FeatureList(feature=v) for k, v in lists.items() if k not in lacks})).SerializeToString()

    text = lambda *k: np.array(k, object)
    attrs = {"Ncontext_sparse": 1, "context_sparse_types": [tf.string], "Tcontext_dense": [tf.int64], "context_dense_shapes": [[2]], "Nfeature_list_sparse": 1, "feature_list_sparse_types": [tf.int64],
             "Nfeature_list_dense": 2, "feature_list_dense_types": [tf.float32, tf.string], "feature_list_dense_shapes": [[2], []], "Ncontext_dense": 1}
    named = {**attrs, "context_sparse_keys": ["tags"], "context_dense_keys": ["size"], "feature_list_sparse_keys": ["ids"], "feature_list_dense_keys": ["points", "words"]}
    default = [np.array([7, 8], I64)]
    for tag, batch in (("", [message(2), message(0), message(3)]), ("lacks", [message(1, ("size", "tags", "points")), message(2, ("ids",))])):
        f.simple("ParseSequenceExample", "string", [([text(*batch), text(), default], {**named, "feature_list_dense_missing_assumed_empty": ["points"]})], dynamic=False, tag=tag)
    f.simple("ParseSequenceExample", "string", [([text(message(1, ("points",))), text(), default], {**named, "feature_list_dense_missing_assumed_empty": ["words"]})], tag="missing", expect_error="InvalidArgumentError")

    def one(m, may_lack):
        return [np.array(m, object), text(*may_lack), [np.array(b"tags", object)], [np.array(b"size", object)], [np.array(b"ids", object)], [np.array(k, object) for k in (b"points", b"words")], default, np.array(b"", object)]

    f.simple("ParseSingleSequenceExample", "string", [(one(m, [b"points"]), attrs) for m in (message(3), message(0), message(2, ("size", "points", "ids")))], dynamic=False)
    f.simple("ParseSingleSequenceExample", "string", [(one(message(2, ("words",)), [b"points"]), attrs)], tag="missing", expect_error="InvalidArgumentError")


def partial_shapes(f):
    """What is told of results when only some dimensions of the inputs are known."""
    v = f.values

    def some(d, shape, known=None):
        return tf1.placeholder_with_default(v(d, shape), known and [n if k else None for n, k in zip(shape, known)])

    def case(op, *variants, d="float32", rule="relative:1e-5"):
        f.case(op, d, rule, "partial")
        with f.scope():
            f.run([f.node(op, inputs, name="v%d" % i, **attrs) for i, (inputs, attrs) in enumerate(variants)])

    ints = lambda *k: np.array(k, I32)
    loose = {"incompatible_shape_error": False}
    for op in ("Equal", "NotEqual"):
        case(op, ([some("float32", [2, 3], [0, 1]), np.float32(1)], loose), ([some("float32", [2, 3], [0, 1]), some("float32", [3], [1])], loose), ([some("float32", [2, 3], [0, 1]), some("float32", [2, 3], [0, 1])], loose),
             ([some("float32", [2], [0]), some("float32", [1], [1])], loose), ([some("float32", [3], [0]), some("float32", [3], [1])], loose), ([some("float32", [3]), np.float32(1)], loose), ([some("float32", [4], [1]), some("float32", [3], [1])], loose))
    case("SoftmaxCrossEntropyWithLogits", ([some("float32", [4, 5]), some("float32", [4, 5], [1, 1])], {}), ([some("float32", [1, 5], [0, 1]), some("float32", [1, 5], [1, 0])], {}), ([some("float32", [4, 5], [1, 1]), some("float32", [1, 5], [1, 1])], {}))
    case("BroadcastTo", ([v("float32", [3]), tf1.shape(some("float32", [3, 2], [0, 0]))[:1]], {}), ([v("float32", [1]), tf1.shape(some("float32", [3, 2], [0, 0]))], {}))
    case("CropAndResize", ([v("float32", [2, 4, 4, 1]), some("float32", [3, 4], [0, 1]), ints(0, 1, 1), ints(2, 3)], {}))
    case("Einsum", ([[some("float32", [2, 3, 4]), v("float32", [4, 5])]], {"equation": "btd,de->bte"}), ([[some("float32", [2, 3, 4]), v("float32", [4, 5])]], {"equation": "...d,de->...e"}))
    case("BatchMatMul", ([some("float32", [2, 3, 4]), some("float32", [2, 4, 5], [1, 0, 1])], {}), ([some("float32", [2, 3, 4], [1, 1, 0]), some("float32", [2, 4, 5])], {}))
    case("Conv2DBackpropInput", ([some("int32", [4]) * 0 + ints(1, 5, 5, 2), v("float32", [3, 3, 2, 5]), v("float32", [1, 5, 5, 5])], {"strides": [1, 1, 1, 1], "padding": "SAME"}))
    case("MatrixSetDiag", ([some("float32", [2, 3, 4], [0, 0, 1]), some("float32", [2, 3], [1, 0])], {}), ([some("float32", [2, 3, 4], [0, 1, 1]), v("float32", [2, 3])], {}))
    case("Tile", ([some("float32", [3], [0]), ints(0)], {}), ([some("float32", [3]), ints(0)], {}), ([some("float32", [3, 2], [0, 1]), ints(1, 2)], {}))
    case("Reshape", ([some("float32", [0, 3], [1, 0]), ints(3, -1)], {}), ([some("float32", [4, 6], [0, 1]), ints(-1, 3)], {}))
    case("UniqueV2", ([some("int32", [4], [1]), np.zeros([0], I64)], {}), ([v("int32", [4, 2]), np.array([0], I64)], {}), d="int32")
    case("FakeQuantWithMinMaxVarsPerChannelGradient", ([v("float32", [2, 3]), v("float32", [2, 3]), some("float32", [3]) - 9, some("float32", [3], [1]) + 9], {}))
    eye = np.eye(3, dtype=np.float32) * 2
    case("MatrixSolve", ([eye, some("float32", [3, 2])], {}), ([tf1.placeholder_with_default(eye, [None, 3]), some("float32", [3, 2], [0, 1])], {}))
    case("SparseConcat", ([[tf1.placeholder_with_default(np.array([[0, 1], [1, 0]], I64), [None, 2])] * 2, [v("float32", [2])] * 2, [np.array([2, 2], I64)] * 2], {"concat_dim": 0}))
    case("SparseFillEmptyRows", ([tf1.placeholder_with_default(np.array([[0, 1], [2, 0]], I64), [None, 2]), v("float32", [2]), np.array([3, 2], I64), np.float32(7)], {}))
    case("ReduceJoin", ([v("string", [2, 3]), tf1.placeholder_with_default(ints(1), [1])], {"keep_dims": True}), d="string")
    case("SparseCountSparseOutput", ([np.array([[0], [2]], I64), ints(3, 1), tf1.placeholder_with_default(np.array([4], I64), [None]), np.zeros([0], np.float32)], {"binary_output": False}))
    case("Qr", ([some("float32", [0, 3], [1, 0])], {}))
    case("Svd", ([some("float32", [0, 3], [1, 0])], {}))
