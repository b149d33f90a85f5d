"""One input, one output of the same shape."""

import numpy as np

from cases import ALL, FLOATS, npdtype, relative, ulps


def domain(f, dtype, low, high):
    return [([f.values(dtype, [3, 5], low, high)], {}), ([f.values(dtype, [], low, high)], {}),
            ([f.values(dtype, [2, 0, 3])], {})]


def with_special(f, dtype, low=-4, high=4):
    return domain(f, dtype, low, high) + [([f.special(dtype)], {}), ([f.values(dtype, [67], low, high, 1)], {})]


def cases(f):
    exact = ["Abs", "Neg", "Sign", "Square", "Ceil", "Floor", "Rint", "Round", "Invert", "IsFinite", "IsInf", "IsNan",
             "LogicalNot", "Relu", "Relu6", "ZerosLike", "OnesLike", "Identity", "Snapshot", "StopGradient",
             "PreventGradient", "DeepCopy", "ComplexAbs", "Real", "Imag", "Conj"]
    for op in exact:
        rule = ulps(2) if op in ("ComplexAbs",) else ulps(0) if op != "Square" else ulps(1)
        f.sweep(op, lambda d: with_special(f, d), rule, dtypes=["bool"] if op == "LogicalNot" else None)
    f.sweep("Angle", lambda d: with_special(f, d), ulps(4), dtypes=["complex64"])
    smooth = {"Sin": 8, "Cos": 8, "Tan": 8, "Exp": 4, "Expm1": 8, "Sigmoid": 8, "Tanh": 8, "Atan": 8, "Asinh": 16,
              "Erf": 16, "Erfc": 32, "Sinh": 8, "Cosh": 8, "Softplus": 16, "Softsign": 2, "Elu": 8, "Selu": 8}
    for op, n in smooth.items():
        f.sweep(op, lambda d: with_special(f, d), ulps(n, narrow=2), dtypes=FLOATS)
        f.sweep(op, lambda d: domain(f, d, -2, 2), ulps(8), dtypes=["complex64"])
    positive = {"Log": 4, "Log1p": 8, "Sqrt": 1, "Rsqrt": 4, "Reciprocal": 1, "Inv": 1}
    for op, n in positive.items():
        f.sweep(op, lambda d: with_special(f, d, 0.0625, 6), ulps(n, narrow=1), dtypes=FLOATS)
        f.sweep(op, lambda d: domain(f, d, -2, 2), ulps(8), dtypes=["complex64"])
    for op, low, high in (("Acos", -1, 1), ("Asin", -1, 1), ("Atanh", -0.95, 0.95), ("Acosh", 1, 8)):
        f.sweep(op, lambda d: with_special(f, d, low, high), ulps(16, narrow=2), dtypes=FLOATS)
    for op, low, high in (("Lgamma", 0.25, 6), ("Digamma", 0.25, 6), ("Erfinv", -0.9, 0.9), ("Ndtri", 0.05, 0.95),
                          ("BesselI0e", -4, 4), ("BesselI1e", -4, 4)):
        f.sweep(op, lambda d: domain(f, d, low, high), relative(1e-5, 1), dtypes=FLOATS)
    for op, low, high in (("BesselI0", -4, 4), ("BesselI1", -4, 4), ("BesselJ0", -9, 9), ("BesselJ1", -9, 9), ("BesselK0", 0.05, 9), ("BesselK1", 0.25, 9), ("BesselK0e", 0.05, 60),
                          ("BesselK1e", 0.25, 60), ("BesselY0", 0.1, 20), ("BesselY1", 0.5, 20), ("Dawsn", -12, 12), ("Expint", 0.1, 50), ("FresnelCos", -6, 6), ("FresnelSin", -6, 6), ("Spence", 0, 9)):
        f.sweep(op, lambda d: domain(f, d, low, high), relative(2e-5, 1) if op.startswith(("Fresnel", "BesselJ", "BesselY")) else relative(1e-5), dtypes=FLOATS)
    f.sweep("LeakyRelu", lambda d: [([f.values(d, [3, 5])], {}), ([f.special(d)], {"alpha": 0.125}), ([f.values(d, [0])], {})],
            ulps(1), dtypes=FLOATS)
    f.sweep("CheckNumerics", lambda d: [([f.values(d, [3, 5])], {"message": "checked"})], "exact", dtypes=FLOATS)
    f.simple("CheckNumerics", "float32", [([np.array([1, np.nan], np.float32)], {"message": "checked"})], tag="nan",
             expect_error=True)
    # Casts between any two types; floats that become integers are within the integers' range (beyond it, C leaves the
    # result undefined).
    for source in ALL:
        low = 0 if source.startswith("uint") or source == "bool" else -100
        value = f.values(source, [3, 4], low, 100) if source != "bool" else f.values(source, [3, 4])
        for target in ALL:
            x = np.abs(np.real(value)).astype(npdtype(source)) if target.startswith("uint") and source != "bool" else value
            variants = [([x], {"DstT": target}), ([x[:0]], {"DstT": target})]
            if source in FLOATS and target in FLOATS + ["bool"]:
                variants.append(([f.special(source)], {"DstT": target}))
            if source.strip("u").startswith("int") and target.strip("u").startswith("int"):
                variants.append(([f.special(source)], {"DstT": target}))
            f.simple("Cast", source, variants, tag="to_" + target, dynamic=False)
    f.simple("Cast", "float64", [([np.array([1.0000001, 3.3e5, 65519.9, 70000.0, 1e-9])], {"DstT": t, "Truncate": True})
                                 for t in ("float16", "bfloat16", "float32")], tag="truncate")
    f.simple("Bitcast", "float32", [([f.special("float32")], {"type": t}) for t in ("int32", "uint8", "bfloat16", "float16")])
    f.simple("Bitcast", "uint8", [([np.arange(48, dtype=np.uint8).reshape(2, 3, 8)], {"type": t})
                                  for t in ("int64", "float64")] + [([np.arange(4, dtype=np.uint8)], {"type": "int32"})])
    gradients(f)


def gradients(f):
    """First input: the output (or the input), second: the incoming gradient."""
    of_output = {"SigmoidGrad": (0.05, 0.95), "TanhGrad": (-0.95, 0.95), "SqrtGrad": (0.25, 3), "RsqrtGrad": (0.25, 3),
                 "ReciprocalGrad": (0.25, 3), "InvGrad": (0.25, 3)}
    for op, (low, high) in of_output.items():
        f.sweep(op, lambda d: [([f.values(d, s, low, high), f.values(d, s, salt=2)], {}) for s in ([3, 5], [], [0, 2], [67])],
                ulps(4, narrow=2), dtypes=FLOATS)
    for op in ("ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad"):
        f.sweep(op, lambda d: [([f.values(d, s, salt=2), f.values(d, s, -2, 8)], {}) for s in ([3, 5], [], [0, 2], [67])],
                ulps(8, narrow=2), dtypes=FLOATS)
