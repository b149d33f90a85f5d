"""Eigenvalues of any matrix, roots and logarithms of matrices."""

import numpy as np

DTYPES = ["float32", "float64", "complex64", "complex128"]


def cases(f):
    with f.graph.as_default():
        for d in DTYPES:
            eigen(f, d)
            functions(f, d)
        refused(f)


def rule(d, wide=1e-11, narrow=3e-5):
    return "relative:%g" % (narrow if d in ("float32", "complex64") else wide)


def matrices(f, d):
    """Eigenvalues far from each other."""
    made = []
    for n in (1, 2, 3, 5, 8):
        a = f.values(d, [2, n, n], -1, 1) * 0.2
        a[:, np.arange(n), np.arange(n)] += np.arange(1, n + 1) * (1.5 if d.startswith("f") else 1.5 - 0.5j)
        made.append(a)
    return made


def eigen(f, d):
    out = "complex64" if d in ("float32", "complex64") else "complex128"
    plain = matrices(f, d)
    if d.startswith("c"):
        if d == "complex128":  # in complex64 a step more or less turns the vectors
            f.simple("Eig", d, [([a], {"compute_v": True, "Tout": out}) for a in plain] + [([plain[3][0]], {"Tout": out})], rule(d))
        f.simple("Eig", d, [([plain[2][:0]], {"Tout": out}), ([plain[2][:, :0, :0]], {"Tout": out}), ([np.diag([3, -1, 2]).astype(d)], {"Tout": out})], tag="plain")
        f.case("Eig", d, rule(d), tag="values")
        with f.scope():
            f.run([f.node("Eig", [a], compute_v=False, Tout=out)[0] for a in plain + [np.array([[[v]] for v in (complex(np.nan, 1), np.inf, -2j)], d)]])  # TensorFlow leaves the vectors undefined
    else:  # the order is undefined, but sums of powers do not depend on it
        f.case("Eig", d, rule(d), tag="values")
        with f.scope():
            values = [f.node("Eig", [a], compute_v=False, Tout=out)[0] for a in plain]
            f.run([f.node("Sum", [x, np.array(-1, np.int32)]) for e in values for x in (e, f.node("Mul", [e, e]), f.node("ComplexAbs", [e], Tout=d))])
        f.simple("Eig", d, [([plain[2][:0]], {"Tout": out}), ([plain[2][:, :0, :0]], {"Tout": out})], tag="empty")
    # Pairs of conjugate values, and values that are not far apart: what must hold, as their order may be another.
    f.case("Eig", d, rule(d, 1e-9, 3e-4), tag="holds")
    with f.scope():
        made = []
        for n in (2, 4, 7, 20, 33):
            a = f.values(d, [n, n])
            e, v = f.node("Eig", [a], compute_v=True, Tout=out)
            x = f.node("Cast", [a], DstT=out)
            scaled = f.node("Mul", [v, f.node("ExpandDims", [e, np.array(0, np.int32)])])
            zero = f.node("Sub", [f.node("BatchMatMulV2", [x, v]), scaled])
            made += [f.node("AddV2", [zero, np.array(10, out)]), f.node("Sum", [f.node("Mul", [v, f.node("Conj", [v])]), np.array(0, np.int32)])]
    f.run(made)


def functions(f, d):
    plain = matrices(f, d)
    near = [np.eye(n).astype(d) + f.values(d, [n, n]) * 0.05 for n in (2, 6)]
    for op in ["MatrixSquareRoot"] + (["MatrixLogarithm"] if d.startswith("c") else []):
        f.simple(op, d, [([a], {}) for a in plain + near + [plain[2][:0], plain[2][:, :0, :0], np.eye(3).astype(d), np.triu(plain[3][1]), np.diag([1e-3, 1, 1e3]).astype(d)]], rule(d, 1e-10, 1e-4))
    if d.startswith("c"):
        turning = [f.values(d, [n, n]) for n in (2, 5, 12)]
        for op in ("MatrixSquareRoot", "MatrixLogarithm"):
            f.simple(op, d, [([a], {}) for a in turning], rule(d, 1e-9, 1e-3), tag="any")


def refused(f):
    for op, attrs in (("Eig", {"Tout": "complex64", "compute_v": True}), ("MatrixSquareRoot", {})):
        for tag, a in (("vector", np.zeros([3], np.float32)), ("wide", np.zeros([2, 3], np.float32))) + ((("nan", np.full([2, 2], np.nan, np.float32)),) if op == "Eig" else ()):
            f.case(op, "float32", tag=tag, expect_error=True)
            with f.scope():
                f.run(f.node(op, [a], dynamic=True, **attrs))
