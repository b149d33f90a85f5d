"""Matrix products, factorisations and Einsum."""

import numpy as np

from cases import relative

I64 = np.int64


def cases(f):
    v = f.values
    everything = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "complex64"]
    def matmuls(d):
        made = []
        for m, k, n in ((3, 4, 5), (1, 7, 1), (33, 17, 40), (2, 0, 3), (0, 4, 2)):
            for ta in (False, True):
                for tb in (False, True):
                    if (m, k, n) == (3, 4, 5) or ta == tb:
                        made.append(([v(d, [k, m] if ta else [m, k], -2, 2), v(d, [n, k] if tb else [k, n], -2, 2, 1)], {"transpose_a": ta, "transpose_b": tb}))
        return made
    f.sweep("MatMul", matmuls, relative(1e-5), dtypes=everything)
    a, b, bias = v("float32", [6, 7], -2, 2), v("float32", [7, 40], -2, 2, 1), v("float32", [40], -2, 2, 2)
    f.simple("_FusedMatMul", "float32",
             [([a.T if t else a, b.T if t else b, [bias]], dict(fused_ops=["BiasAdd"] + activation, transpose_a=t, transpose_b=t, num_args=1, T="float32", leakyrelu_alpha=0.3))
              for activation in ([], ["Relu"], ["Relu6"], ["Elu"], ["LeakyRelu"]) for t in (False, True)], relative(1e-5)("float32"), dynamic=True)
    f.refused("_FusedMatMul", "float32", [a, b, [bias[None]]], "bias", fused_ops=["BiasAdd"], num_args=1, T="float32")
    f.refused("_FusedMatMul", "float32", [a, b, [bias]], "nothing", fused_ops=[], num_args=1, T="float32")
    for op in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
        attr = "Ta" if op.endswith("V3") else "T"
        def batches(d):
            extra = {"Tout": d} if op.endswith("V3") else {}
            shapes = [([2, 3, 4], [2, 4, 5], False, False), ([2, 4, 3], [2, 5, 4], True, True), ([2, 2, 3, 4], [2, 2, 4, 1], False, False), ([0, 3, 4], [0, 4, 5], False, False)]
            if op != "BatchMatMul":
                shapes += [([2, 1, 3, 4], [3, 4, 5], False, False), ([3, 4], [2, 4, 5], False, False)]
            return [([v(d, a, -2, 2), v(d, b, -2, 2, 1)], dict(adj_x=x, adj_y=y, **extra)) for a, b, x, y in shapes]
        f.sweep(op, batches, relative(1e-5), dtypes=everything, attr=attr)
    f.sweep("Einsum", lambda d: [([[v(d, s, -2, 2, i) for i, s in enumerate(shapes)]], {"equation": e}) for e, shapes in
                                 (("ij,jk->ik", ([3, 4], [4, 5])), ("bhqd,bhkd->bhqk", ([2, 2, 3, 4], [2, 2, 5, 4])), ("ij->ji", ([3, 4],)), ("ij->i", ([3, 4],)),
                                  ("i,j->ij", ([3], [4])), ("abc,cde->abde", ([2, 3, 4], [4, 2, 5])), ("...ij,jk->...ik", ([2, 3, 4], [4, 5])), ("ii->i", ([4, 4],)), ("ij,ij->", ([3, 4], [3, 4])))],
            relative(1e-5), dtypes=["float32", "float64", "bfloat16", "int32", "complex64"])
    def spd(d):
        a = v(d, [2, 4, 4], -2, 2)
        return (np.matmul(a, np.swapaxes(a, 1, 2).conj()) + 2 * np.eye(4)).astype(a.dtype)
    rest = ["float32", "float64", "complex64"]
    f.sweep("Cholesky", lambda d: [([spd(d)], {}), ([spd(d)[0]], {})], relative(1e-5), dtypes=rest)
    f.sweep("MatrixDeterminant", lambda d: [([spd(d)], {}), ([spd(d)[0, :3, :3].copy()], {})], relative(1e-4), dtypes=rest)
    f.sweep("MatrixInverse", lambda d: [([spd(d)], {"adjoint": a}) for a in (False, True)], relative(1e-4), dtypes=rest)
    f.sweep("MatrixSolve", lambda d: [([spd(d), v(d, [2, 4, 3])], {"adjoint": a}) for a in (False, True)], relative(1e-4), dtypes=rest)
    f.sweep("MatrixTriangularSolve", lambda d: [([spd(d), v(d, [2, 4, 3])], {"lower": l, "adjoint": a}) for l in (False, True) for a in (False, True)], relative(1e-4), dtypes=rest)
    tall, wide = lambda d: v(d, [2, 5, 3]), lambda d: v(d, [3, 5])
    f.sweep("Qr", lambda d: [([x], {"full_matrices": full}) for x in (tall(d), wide(d), spd(d), v(d, [1, 4]), v(d, [0, 3]), v(d, [0, 2, 2])) for full in (False, True)], relative(1e-5), dtypes=rest)
    f.sweep("Qr", lambda d: [([np.array(x, d)], {}) for x in ([[1, 2], [0, 3], [0, 0]], [[0, 0], [0, 1]], [[-2.0]])], relative(1e-5), dtypes=rest, tag="triangular")
    i = np.array([[0, 1], [2, 0], [2, 3]], I64)
    f.sweep("SparseTensorDenseMatMul", lambda d: [([i, v(d, [3]), np.array([3, 4], I64), v(d, [4, 2])], {}), ([i, v(d, [3]), np.array([3, 4], I64), v(d, [2, 3])], {"adjoint_a": True, "adjoint_b": True})],
            relative(1e-5), dtypes=["float32", "float64", "int32", "complex64"])
    square = lambda d: v(d, [2, 4, 4])
    f.sweep("LogMatrixDeterminant", lambda d: [([x], {}) for x in (square(d), spd(d)[0], v(d, [0, 3, 3]), v(d, [2, 0, 0]))], relative(1e-4), dtypes=rest)
    f.sweep("LogMatrixDeterminant", lambda d: [([np.array([[1, 2], [2, 4]], d)], {})], relative(1e-4), dtypes=rest, tag="singular")
    f.sweep("Lu", lambda d: [([x], {"output_idx_type": i}) for x in (square(d), spd(d)[0], v(d, [0, 3, 3])) for i in (np.int32, np.int64)], relative(1e-4), dtypes=rest)
    f.simple("Lu", "float32", [([np.array([[1, 2], [2, 4]], np.float32)], {})], tag="singular", expect_error="InvalidArgumentError")
    l2 = np.float64
    f.sweep("MatrixSolveLs", lambda d: [([a, v(d, list(a.shape[:-1]) + [2]), l2(l)], {"fast": True}) for a in (tall(d), wide(d), spd(d)) for l in (0.5, 0.0)], relative(1e-3), dtypes=rest)
    f.sweep("MatrixSolveLs", lambda d: [([a, v(d, list(a.shape[:-1]) + [2]), l2(0)], {"fast": False}) for a in (tall(d), wide(d), spd(d), np.array([[1, 2], [2, 4], [3, 6]], d))], relative(1e-3), dtypes=rest, tag="orthogonal")
    vectors(f, rest, square, tall, wide)


def vectors(f, dtypes, square, tall, wide):
    """Vectors are one of many; what they multiply to is not. (Where none are asked for, TensorFlow hands out a scalar of anything.)"""
    import tensorflow as tf
    for d in dtypes:
        for op, attr, some in (("Svd", "compute_uv", (square(d), tall(d), wide(d), np.zeros([0, 3], d))), ("SelfAdjointEigV2", "compute_v", (square(d), np.zeros([0, 3, 3], d)))):
            with f.graph.as_default():
                f.case(op, d, relative(1e-5)(d), "values")
                with f.scope():
                    made = [f.node(op, [x], **{attr: False})[0] for x in some]
                f.run(made)
        for full in (False, True):
            with f.graph.as_default():
                f.case("Svd", d, relative(1e-4)(d), "vectors%d" % full)
                with f.scope():
                    made = []
                    for x in (square(d), tall(d), wide(d), np.zeros([3, 2], d), np.array([[1, 2], [2, 4], [3, 6]], d)):
                        s, u, w = f.node("Svd", [x], full_matrices=full)
                        k = min(x.shape[-2:])
                        thin = tf.matmul(u[..., :k] * tf.cast(s, u.dtype)[..., None, :], w[..., :k], adjoint_b=True)
                        made += [s, thin, tf.matmul(u, u, adjoint_a=True), tf.matmul(w, w, adjoint_a=True)]
                f.run(made)
        with f.graph.as_default():
            f.case("SelfAdjointEigV2", d, relative(1e-4)(d), "vectors")
            with f.scope():
                made = []
                for x in (square(d), np.zeros([2, 2], d), np.diag([3, 1, 2]).astype(d)):
                    e, w = f.node("SelfAdjointEigV2", [x])
                    made += [e, tf.matmul(w * e[..., None, :], w, adjoint_b=True), tf.matmul(w, w, adjoint_a=True)]
            f.run(made)
    banded(f)


def banded(f):
    v = f.values
    for d in ("float32", "float64", "complex64", "complex128"):
        rule = "relative:1e-5" if d in ("float32", "complex64") else "relative:1e-12"
        f.simple("TridiagonalMatMul", d, [([v(d, [*b, 1, 5]), v(d, [*b, 1, 5], salt=1), v(d, [*b, 1, 5], salt=2), v(d, [*b, 5, 3], salt=3)], {}) for b in ([], [2], [2, 3])], rule)
        f.simple("TridiagonalSolve", d, [([v(d, [*b, 3, 5], 1, 4), v(d, [*b, 5, 2], salt=3)], {"partial_pivoting": p}) for b in ([], [2, 3]) for p in (True, False)], "relative:1e-4" if rule == "relative:1e-5" else "relative:1e-10")
    for d in ("float32", "float64", "complex64", "complex128"):
        rule = "relative:1e-4" if d in ("float32", "complex64") else "relative:1e-10"
        whole = [np.array(m, d) for m in ([[1, 1, 0], [0, 0, 0], [0, 1, 1]], [[0] * 3] * 3, [[1, 1, 1, 9], [1, 1, 1, 1], [9, 1, 1, 1]], [[2, 2, 0, 1, 0], [2, 4, 0, 0, 1], [0, 4, 1, 0, 0]], [[0], [0], [0]], [[7], [-3], [7]], [[0, 0], [0, 0], [0, 0]], [[1e-3, 5], [1e-30, 2], [3, 0]])]
        f.simple("TridiagonalSolve", d, [([m, v(d, [m.shape[1], 2], 1, 4)], {"perturb_singular": True}) for m in whole] + [([v(d, [*b, 3, 5], 1, 4), v(d, [*b, 5, 2], salt=3)], {"perturb_singular": True}) for b in ([], [2, 3])], rule, tag="perturbed")
    f.refused("TridiagonalSolve", "float32", [np.ones([3, 4], np.float32), v("float32", [4, 1])], "perturbed_refused", partial_pivoting=False, perturb_singular=True)
    f.simple("TridiagonalSolve", "float32", [([np.zeros([3, 4], np.float32), v("float32", [4, 1])], {"partial_pivoting": p}) for p in (True, False)], tag="singular")
    for d in ("float32", "bfloat16"):
        a, b = np.where(v("float32", [5, 7]) > 0, v("float32", [5, 7], salt=1), 0).astype(v(d, []).dtype), v(d, [7, 3], salt=2)
        f.simple("SparseMatMul", d, [([a.T if s else a, b.T if t else b], {"transpose_a": s, "transpose_b": t, "a_is_sparse": True, "Ta": d, "Tb": d}) for s in (False, True) for t in (False, True)]
                 + [([a[:0], b], {"Ta": d, "Tb": d}), ([a[:, :0], b[:0]], {"Ta": d, "Tb": d})], "relative:1e-5")
