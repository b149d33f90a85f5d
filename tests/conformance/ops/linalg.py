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
