"""Layers of neural networks: convolution, pooling, normalisation, losses, recurrent cells."""

import numpy as np

from cases import FLOATS, LIGHT, relative, ulps

I32, I64 = np.int32, np.int64
F3 = ["float32", "float64", "float16", "bfloat16"]


def cases(f):
    v = f.values
    f.sweep("BiasAdd", lambda d: [([v(d, s), v(d, [s[-1]], salt=1)], {"data_format": "NHWC"}) for s in ([4, 3], [2, 2, 3], [2, 2, 2, 3], [0, 3])]
            + [([v(d, s), v(d, [s[1]], salt=1)], {"data_format": "NCHW"}) for s in ([2, 3, 2, 2], [2, 3, 2])], ulps(1), dtypes=F3 + ["int32", "int64"])
    f.sweep("BiasAddV1", lambda d: [([v(d, [4, 3]), v(d, [3], salt=1)], {})], ulps(1), dtypes=F3)
    f.sweep("BiasAddGrad", lambda d: [([v(d, s)], {"data_format": "NHWC"}) for s in ([4, 3], [2, 5, 2, 3], [0, 3], [70, 5])]
            + [([v(d, [2, 3, 2, 5])], {"data_format": "NCHW"})], relative(1e-6, 60), dtypes=F3 + ["int32", "int64"])
    for op in ("Softmax", "LogSoftmax"):
        f.sweep(op, lambda d: [([v(d, s)], {}) for s in ([3, 5], [7], [2, 3, 4], [0, 4], [3, 67])]
                + [([np.array([[100, -100, 0], [-1e4, -1e4, -1e4]]).astype(v(d, [1]).dtype)], {})], relative(2e-6), dtypes=F3)
    f.sweep("SoftmaxCrossEntropyWithLogits", lambda d: [([v(d, [4, 5]), (np.abs(v(d, [4, 5], salt=1)) / 8).astype(v(d, [1]).dtype)], {}),
                                                        ([v(d, [4, 5]), (np.abs(v(d, [1, 5], salt=1)) / 8).astype(v(d, [1]).dtype)], {}), ([v(d, [0, 5]), v(d, [0, 5])], {})],
            relative(4e-6), dtypes=F3)
    for t in (I32, I64):
        f.sweep("SparseSoftmaxCrossEntropyWithLogits", lambda d: [([v(d, [4, 5]), np.array([0, 4, 2, 2], t)], {}), ([v(d, [3, 67]), np.array([66, 0, 30], t)], {}),
                                                                  ([v(d, [0, 5]), np.array([], t)], {})], relative(4e-6), dtypes=F3, tag="labels_" + np.dtype(t).name)
    with f.graph.as_default():
        f.case("SparseSoftmaxCrossEntropyWithLogits", "float32", tag="out_of_range", expect_error=True)
        with f.scope():
            f.run(f.node("SparseSoftmaxCrossEntropyWithLogits", [v("float32", [2, 3]), np.array([0, 3], I32)])[0])
    convolutions(f)
    pooling(f)
    normalisation(f)
    recurrent(f)
    f.sweep("Dilation2D", lambda d: [([v(d, [2, 6, 7, 3]), v(d, [3, 2, 3], salt=1)], a) for a in dilations()], ulps(2), dtypes=LIGHT + ["float16"])
    f.sweep("Dilation2DBackpropInput", lambda d: [([v(d, [2, 6, 7, 3], -90, 90), v(d, [3, 2, 3], salt=1), v(d, s, salt=2)], a) for a, s in zip(dilations(), ([2, 6, 7, 3], [2, 2, 3, 3]))], relative(1e-5), dtypes=["float32", "float64"])
    f.sweep("Dilation2DBackpropFilter", lambda d: [([v(d, [2, 6, 7, 3], -90, 90), v(d, [3, 2, 3], salt=1), v(d, s, salt=2)], a) for a, s in zip(dilations(), ([2, 6, 7, 3], [2, 2, 3, 3]))], relative(1e-5), dtypes=["float32", "float64"])
    for d in ("float32", "float64"):
        x, one, low, high = v(d, [3, 2, 5], -3, 3), lambda n, d=d: f.values(d, [], n, n), v(d, [2], -2, -1), v(d, [2], 1, 2.5)
        for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
            f.simple(op, d, [([x, one(-1), one(2)], {"range_given": g, "signed_input": s, "num_bits": b, "narrow_range": n, "round_mode": m})
                             for g in (False, True) for s, b, n, m in ((True, 8, False, "HALF_TO_EVEN"), (True, 4, True, "HALF_UP"), (False, 3, False, "HALF_TO_EVEN"))]
                     + [([x, low, high], {"range_given": g, "num_bits": 4, "axis": 1}) for g in (False, True)], "ulp:2")
        f.simple("QuantizeAndDequantizeV3", d, [([x, one(-1), one(2), np.array(b, I32)], {"range_given": g}) for g in (False, True) for b in (3, 8)], "ulp:2")
        f.simple("QuantizeAndDequantizeV4Grad", d, [([v(d, [3, 2, 5], salt=1), x, one(-1), one(2)], {}), ([v(d, [3, 2, 5], salt=1), x, low, high], {"axis": 1})])
    f.simple("QuantizeAndDequantizeV2", "float32", [([v("float32", [3]), np.float32(2), np.float32(1)], {"range_given": True})], tag="order", expect_error="InvalidArgumentError")
    f.simple("FakeQuantWithMinMaxArgs", "float32", [([v("float32", [3, 7], -8, 8)], {}), ([v("float32", [3, 7], -8, 8)], {"min": -1.0, "max": 3.0, "num_bits": 4, "narrow_range": True})], "ulp:2")
    f.simple("FakeQuantWithMinMaxArgsGradient", "float32", [([v("float32", [3, 7], salt=1), v("float32", [3, 7], -8, 8)], {})], "ulp:2")
    x, g, bounds = v("float32", [2, 3, 4], -8, 8), v("float32", [2, 3, 4], salt=1), [(np.float32(a), np.float32(b)) for a, b in ((-3, 5), (0, 6), (1, 4), (-5, -2), (0, 0))]
    for narrow in (False, True):
        for bits in (8, 3):
            attrs = {"num_bits": bits, "narrow_range": narrow}
            tag = "%d%s" % (bits, "narrow" * narrow)
            f.simple("FakeQuantWithMinMaxVars", "float32", [([x, a, b], attrs) for a, b in bounds], "ulp:2", tag)
            f.simple("FakeQuantWithMinMaxVarsGradient", "float32", [([g, x, a, b], attrs) for a, b in bounds], "relative:1e-5", tag)
            odd = np.array([np.nan, np.inf, -np.inf, 2, -2, 0], np.float32)
            strange = [(np.float32(a), np.float32(b)) for a, b in ((5, -3), (1, -1), (np.nan, 1), (-1, np.nan), (-1, np.inf), (-np.inf, np.inf), (-3, 5))]
            f.simple("FakeQuantWithMinMaxVars", "float32", [([odd, a, b], attrs) for a, b in strange], "ulp:2", tag + "strange")
            f.simple("FakeQuantWithMinMaxVarsGradient", "float32", [([odd[::-1] * 3, odd, a, b], attrs) for a, b in strange], "relative:1e-5", tag + "strange")
            low, high = np.array([-3, 0, 0, -7], np.float32), np.array([5, 6, 0, 0.5], np.float32)
            f.simple("FakeQuantWithMinMaxVarsPerChannel", "float32", [([x, low, high], attrs), ([x[0, 0], low, high], attrs)], "ulp:2", tag)
            f.simple("FakeQuantWithMinMaxVarsPerChannelGradient", "float32", [([g, x, low, high], attrs), ([g[0, 0], x[0, 0], low, high], attrs)], "relative:1e-5", tag)
    ctc(f)


def dilations():
    return [{"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}, {"strides": [1, 2, 2, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}]


CONV = [  # input, filter, strides (height, width), padding, dilations, explicit paddings
    ([2, 5, 6, 3], [3, 3, 3, 4], (1, 1), "SAME", (1, 1), []), ([2, 5, 6, 3], [3, 2, 3, 4], (1, 1), "VALID", (1, 1), []),
    ([1, 7, 7, 2], [3, 3, 2, 5], (2, 2), "SAME", (1, 1), []), ([1, 8, 7, 2], [3, 3, 2, 5], (2, 2), "VALID", (1, 1), []),
    ([2, 4, 4, 8], [1, 1, 8, 3], (1, 1), "SAME", (1, 1), []), ([1, 9, 9, 2], [3, 3, 2, 3], (1, 1), "SAME", (2, 2), []),
    ([1, 6, 6, 2], [3, 3, 2, 3], (2, 1), "EXPLICIT", (1, 1), [0, 0, 2, 1, 0, 3, 0, 0]), ([1, 5, 5, 2], [2, 2, 2, 3], (3, 3), "SAME", (1, 1), []),
    ([0, 5, 5, 2], [3, 3, 2, 3], (1, 1), "SAME", (1, 1), []), ([1, 6, 6, 4], [3, 3, 2, 6], (1, 1), "SAME", (1, 1), [])]


def conv_attrs(spec):
    _, _, (sh, sw), padding, (dh, dw), explicit = spec
    return {"strides": [1, sh, sw, 1], "padding": padding, "dilations": [1, dh, dw, 1], "explicit_paddings": explicit, "data_format": "NHWC"}


def conv_output(spec):
    (n, h, w, _), (kh, kw, _, o), (sh, sw), padding, (dh, dw), e = spec
    def size(i, k, s, d, before, after):
        k = (k - 1) * d + 1
        return -(-i // s) if padding == "SAME" else (i + before + after - k) // s + 1
    p = e[2:6] if e else [0] * 4
    return [n, size(h, kh, sh, dh, *p[:2]), size(w, kw, sw, dw, *p[2:]), o]


def convolutions(f):
    v, rule = f.values, relative(1e-5)
    f.sweep("Conv2D", lambda d: [([v(d, c[0]), v(d, c[1], -1, 1, 1)], conv_attrs(c)) for c in CONV], rule, dtypes=F3)
    plain = [c for c in CONV if c[0][3] == c[1][2]]
    f.sweep("Conv2DBackpropInput", lambda d: [([np.array(c[0], I32), v(d, c[1], -1, 1, 1), v(d, conv_output(c), salt=2)], conv_attrs(c)) for c in plain if c[4] == (1, 1)], rule, dtypes=F3)
    f.sweep("Conv2DBackpropFilter", lambda d: [([v(d, c[0]), np.array(c[1], I32), v(d, conv_output(c), salt=2)], conv_attrs(c)) for c in plain if c[4] == (1, 1)], rule, dtypes=F3)
    depth = [([2, 5, 6, 3], [3, 3, 3, 2], (1, 1), "SAME"), ([1, 7, 7, 2], [3, 2, 2, 1], (2, 2), "VALID"), ([1, 7, 7, 2], [3, 3, 2, 1], (2, 2), "SAME")]
    def attrs(c):
        return {"strides": [1, *c[2], 1], "padding": c[3], "data_format": "NHWC"}
    def out(c):
        o = conv_output((c[0], c[1], c[2], c[3], (1, 1), []))
        return o[:3] + [c[1][2] * c[1][3]]
    f.sweep("DepthwiseConv2dNative", lambda d: [([v(d, c[0]), v(d, c[1], -1, 1, 1)], attrs(c)) for c in depth], rule, dtypes=F3)
    f.sweep("DepthwiseConv2dNativeBackpropInput", lambda d: [([np.array(c[0], I32), v(d, c[1], -1, 1, 1), v(d, out(c), salt=2)], attrs(c)) for c in depth], rule, dtypes=F3)
    f.sweep("DepthwiseConv2dNativeBackpropFilter", lambda d: [([v(d, c[0]), np.array(c[1], I32), v(d, out(c), salt=2)], attrs(c)) for c in depth], rule, dtypes=F3)
    three = [([1, 4, 5, 4, 2], [2, 3, 2, 2, 3], [1, 1, 1, 1, 1], "SAME", [1, 4, 5, 4, 3]), ([1, 4, 5, 4, 2], [2, 2, 2, 2, 3], [1, 2, 2, 1, 1], "VALID", [1, 2, 2, 3, 3])]
    f.sweep("Conv3D", lambda d: [([v(d, a), v(d, b, -1, 1, 1)], {"strides": s, "padding": p}) for a, b, s, p, _ in three], rule, dtypes=F3[:3])
    f.sweep("Conv3DBackpropInputV2", lambda d: [([np.array(a, I32), v(d, b, -1, 1, 1), v(d, o, salt=2)], {"strides": s, "padding": p}) for a, b, s, p, o in three], rule, dtypes=F3[:3])
    f.sweep("Conv3DBackpropFilterV2", lambda d: [([v(d, a), np.array(b, I32), v(d, o, salt=2)], {"strides": s, "padding": p}) for a, b, s, p, o in three], rule, dtypes=F3[:3])


POOL = [([2, 5, 6, 3], [2, 2], [2, 2], "VALID", [2, 2, 3, 3]), ([2, 5, 6, 3], [3, 3], [2, 2], "SAME", [2, 3, 3, 3]), ([1, 4, 4, 2], [3, 2], [1, 1], "SAME", [1, 4, 4, 2])]


def pooling(f):
    v = f.values
    def a(c):
        return {"ksize": [1, *c[1], 1], "strides": [1, *c[2], 1], "padding": c[3]}
    f.sweep("MaxPool", lambda d: [([v(d, c[0], -90, 90)], dict(a(c), data_format="NHWC", explicit_paddings=[])) for c in POOL], dtypes=F3 + ["int32", "int64", "uint8"])
    f.sweep("AvgPool", lambda d: [([v(d, c[0])], dict(a(c), data_format="NHWC")) for c in POOL], relative(1e-6, 4), dtypes=F3)
    f.sweep("AvgPoolGrad", lambda d: [([np.array(c[0], I32), v(d, c[4])], dict(a(c), data_format="NHWC")) for c in POOL], relative(1e-6, 4), dtypes=F3)
    f.sweep("MaxPoolWithArgmax", lambda d: [([v(d, c[0], -90, 90)], dict(a(c), Targmax=t, include_batch_in_index=b)) for c, t, b in zip(POOL, ("int64", "int32", "int64"), (False, True, False))], dtypes=F3 + ["int32"])
    with f.graph.as_default():
        for d in F3:
            if d in ("float32", "float64", "float16", "bfloat16"):
                f.case("MaxPoolGrad", d, relative(1e-6, 4)(d))
                with f.scope():
                    made = []
                    for c in POOL:
                        x = v(d, c[0], -90, 90)
                        y = f.node("MaxPool", [x], **dict(a(c), data_format="NHWC", explicit_paddings=[]))
                        made.append(f.node("MaxPoolGrad", [x, y, v(d, c[4], salt=2)], **dict(a(c), data_format="NHWC", explicit_paddings=[])))
                f.run(made)
    three = dict(ksize=[1, 2, 3, 2, 1], strides=[1, 2, 1, 2, 1], padding="SAME")
    f.sweep("MaxPool3D", lambda d: [([v(d, [1, 4, 4, 5, 2], -90, 90)], three), ([v(d, [1, 4, 4, 5, 2], -90, 90)], dict(three, padding="VALID"))], dtypes=["float32", "float16", "bfloat16"])
    f.sweep("AvgPool3D", lambda d: [([v(d, [1, 4, 4, 5, 2])], three), ([v(d, [1, 4, 4, 5, 2])], dict(three, padding="VALID"))], relative(1e-6, 4), dtypes=["float32", "float64", "float16"])
    f.sweep("AvgPool3DGrad", lambda d: [([np.array([1, 4, 4, 5, 2], I32), v(d, [1, 2, 4, 3, 2])], three)], relative(1e-6, 4), dtypes=["float32", "float64"])
    with f.graph.as_default():
        f.case("MaxPool3DGrad", "float32", "relative:1e-6:4")
        with f.scope():
            x = v("float32", [1, 4, 4, 5, 2], -90, 90)
            f.run(f.node("MaxPool3DGrad", [x, f.node("MaxPool3D", [x], **three), v("float32", [1, 2, 4, 3, 2], salt=1)], **three))
    # There are many equal maxima, and orig_output is not the output.
    for d in ("float32", "bfloat16"):
        f.case("MaxPool3DGrad", d, "relative:1e-6:4" if d == "float32" else "relative:1.6e-2:4", tag="equal")
        with f.graph.as_default(), f.scope():
            x, g = v(d, [1, 4, 4, 5, 2], -1, 1).round(), v(d, [1, 2, 4, 3, 2], salt=1)
            f.run([f.node("MaxPool3DGrad", [x, y, g], **three) for y in (f.node("MaxPool3D", [x], **three), v(d, [1, 2, 4, 3, 2], -1, 1, salt=2).round())])
    for op, a, x, s in (("MaxPoolGradGrad", dict(ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding="SAME"), [2, 5, 4, 3], [2, 3, 2, 3]), ("MaxPool3DGradGrad", three, [1, 4, 4, 5, 2], [1, 2, 4, 3, 2])):
        pool = "MaxPool3D" if "3D" in op else "MaxPool"
        for d in ("float32", "bfloat16"):
            f.case(op, d)
            with f.graph.as_default(), f.scope():
                few, g = v(d, x, -1, 1).round(), v(d, x, salt=1)
                f.run([f.node(op, [few, y, g], **a) for y in (f.node(pool, [few], **a), v(d, s, -1, 1, salt=2).round())])
    f.sweep("ExtractImagePatches", lambda d: [([v(d, [1, 5, 6, 2])], {"ksizes": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "rates": [1, r, 1, 1], "padding": p})
                                              for r, p in ((1, "VALID"), (2, "SAME"))], dtypes=LIGHT + ["uint8"])


def normalisation(f):
    v = f.values
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        for training in (True, False):
            def make(d):
                u = "float32" if d in ("float16", "bfloat16") else d
                moving = [v(u, [3], salt=4), v(u, [3], 0.5, 2)] if not training else [v(u, [0]), v(u, [0])]
                return [([v(d, [2, 4, 3, 3]), v(u, [3], 0.5, 2), v(u, [3], salt=3)] + moving, {"epsilon": 1e-3, "is_training": training, "data_format": "NHWC", "exponential_avg_factor": 1.0})]
            with f.graph.as_default():
                for d in ["float32"] if op == "FusedBatchNorm" else ["float32", "float16", "bfloat16"]:
                    inputs, attrs = make(d)[0]
                    f.case(op, d, relative(1e-5, 2)(d), tag="training" if training else "inference")
                    with f.scope():
                        y = f.node(op, inputs, **attrs)
                    f.run(list(y[:3]))  # the reserved outputs are internal to TensorFlow
    for op in ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"):
        for training in (True, False):
            with f.graph.as_default():
                for d in ["float32"] if op == "FusedBatchNormGrad" else ["float32", "float16", "bfloat16"]:
                    f.case(op, d, relative(2e-5, 2)(d), tag="training" if training else "inference")
                    with f.scope():
                        x, scale, offset = v(d, [2, 4, 3, 3]), v("float32", [3], 0.5, 2), v("float32", [3], salt=3)
                        forward = {"FusedBatchNormGrad": "FusedBatchNorm", "FusedBatchNormGradV2": "FusedBatchNormV2", "FusedBatchNormGradV3": "FusedBatchNormV3"}[op]
                        moving = [v("float32", [3], salt=4), v("float32", [3], 0.5, 2)] if not training else [v("float32", [0]), v("float32", [0])]
                        made = f.node(forward, [x, scale, offset] + moving, epsilon=1e-3, is_training=training, data_format="NHWC", exponential_avg_factor=1.0)
                        # In inference the gradient uses the moving averages, in training those of the batch.
                        reserve = [made[3], made[4]] if training else moving
                        inputs = [v(d, [2, 4, 3, 3], salt=9), x, scale] + reserve + ([made[5]] if op.endswith("V3") else [])
                        y = f.node(op, inputs, epsilon=1e-3, is_training=training, data_format="NHWC")
                    f.run(list(y[:3]))
    f.sweep("LRN", lambda d: [([v(d, [2, 3, 2, 7])], a) for a in ({}, {"depth_radius": 2, "bias": 2.0, "alpha": 0.5, "beta": 0.75})], relative(1e-5), dtypes=["float32", "float16", "bfloat16"])
    with f.graph.as_default():
        f.case("LRNGrad", "float32", "relative:1e-5")
        with f.scope():
            x, a = v("float32", [2, 3, 2, 7]), {"depth_radius": 2, "bias": 2.0, "alpha": 0.5, "beta": 0.75}
            f.run(f.node("LRNGrad", [v("float32", [2, 3, 2, 7], salt=1), x, f.node("LRN", [x], **a)], **a))


def recurrent(f):
    v, n, i, h = f.values, 3, 4, 5
    for d in ("float32", "float16"):
        rule = relative(1e-5, 1)(d)
        for peephole in (False, True):
            f.simple("LSTMBlockCell", d, [([v(d, [n, i]), v(d, [n, h], salt=1), v(d, [n, h], -1, 1), v(d, [i + h, 4 * h], -1, 1), v(d, [h], salt=5), v(d, [h], salt=6), v(d, [h], salt=7), v(d, [4 * h], -1, 1)],
                                           {"forget_bias": 1.0, "cell_clip": 3.0 if peephole else -1.0, "use_peephole": peephole})], rule, tag="peephole" if peephole else "")
        f.simple("BlockLSTM", d, [([np.array(t, I64), v(d, [4, n, i]), v(d, [n, h], salt=1), v(d, [n, h], -1, 1), v(d, [i + h, 4 * h], -1, 1), v(d, [h], salt=5), v(d, [h], salt=6), v(d, [h], salt=7), v(d, [4 * h], -1, 1)],
                                   {"forget_bias": 1.0, "cell_clip": 3.0, "use_peephole": False}) for t in (4,)], rule, dynamic=False)
    d = "float32"
    for k in ("float32", "float16"):
        # Each float16 is rounded at every step; a chain of such roundings adds up to 2e-3 of the largest value.
        saved = [v(k, [n, h], 0.05, 0.95, 20 + s) for s in range(6)]
        gate = "relative:1e-5" if k == "float32" else "relative:4e-3"
        f.simple("LSTMBlockCellGrad", k, [([v(k, [n, i]), v(k, [n, h], salt=1), v(k, [n, h], -1, 1), v(k, [i + h, 4 * h], -1, 1), v(k, [h], salt=5), v(k, [h], salt=6), v(k, [h], salt=7), v(k, [4 * h], -1, 1),
                                            *saved, v(k, [n, h], salt=8), v(k, [n, h], salt=9)], {"use_peephole": p}) for p in (False, True)], gate)
    over = [v(d, [4, n, h], 0.05, 0.95, 30 + s) for s in range(7)]
    for op in ("BlockLSTMGrad", "BlockLSTMGradV2"):
        f.simple(op, d, [([np.array(t, I64), v(d, [4, n, i]), v(d, [n, h], salt=1), v(d, [n, h], -1, 1), v(d, [i + h, 4 * h], -1, 1), v(d, [h], salt=5), v(d, [h], salt=6), v(d, [h], salt=7), v(d, [4 * h], -1, 1),
                           *over, v(d, [4, n, h], salt=8), v(d, [4, n, h], salt=9)], {"use_peephole": p}) for t in (4,) for p in (False, True)], "relative:1e-5", tag="saved", dynamic=False)
    f.simple("GRUBlockCellGrad", d, [([v(d, [n, i]), v(d, [n, h], -1, 1), v(d, [i + h, 2 * h], -1, 1), v(d, [i + h, h], -1, 1), v(d, [2 * h], -1, 1), v(d, [h], -1, 1), *[v(d, [n, h], 0.05, 0.95, 40 + s) for s in range(3)],
                                       v(d, [n, h], salt=9)], {})], "relative:1e-5")
    f.simple("GRUBlockCell", d, [([v(d, [n, i]), v(d, [n, h], -1, 1), v(d, [i + h, 2 * h], -1, 1), v(d, [i + h, h], -1, 1), v(d, [2 * h], -1, 1), v(d, [h], -1, 1)], {})], "relative:1e-5:1")


def ctc(f):
    logits = f.values("float32", [6, 2, 5], -2, 2)
    indices, labels = np.array([[0, 0], [0, 1], [1, 0]], I64), np.array([1, 1, 3], I32)
    f.simple("CTCLoss", "float32", [([logits, indices, labels, np.array([6, 4], I32)], {}), ([logits, indices, np.array([0, 2, 3], I32), np.array([5, 6], I32)], {"ctc_merge_repeated": False})],
             "relative:1e-5:1", dynamic=False)
