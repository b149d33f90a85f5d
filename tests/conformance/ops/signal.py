"""Fourier transforms."""

import numpy as np

from cases import relative


def cases(f):
    v = f.values
    for d, c in (("float32", "complex64"), ("float64", "complex128")):
        for rank, suffix in ((1, ""), (2, "2D"), (3, "3D")):
            shapes = [[2] * (4 - rank) + s for s in ([4, 6, 8], [3, 5, 7], [2, 1, 131], [1, 2, 1])]
            shapes = [s[:len(s) - 3] + s[-rank:] if rank < 3 else s for s in shapes]
            for op in ("FFT", "IFFT"):
                f.simple(op + suffix, c, [([v(c, s)], {}) for s in shapes] + [([v(c, [0] + shapes[0])], {})], relative(1e-5)(c))
            types = {"Treal": np.dtype(d), "Tcomplex": np.dtype(c)}
            def length(s, less=0):
                return np.array(s[-rank:-1] + [s[-1] - less], np.int32)
            f.simple("RFFT" + suffix, d, [([v(d, s), length(s, l)], types) for s in shapes for l in (0, 1) if s[-1] > 1], relative(1e-5)(d))
            f.simple("IRFFT" + suffix, d, [([v(c, s), length(s[:-1] + [2 * (s[-1] - 1)], l)], types) for s in shapes for l in (0, 1) if s[-1] > 1], relative(1e-5)(d))
    for op, d, s, lengths in (("RFFT", "float32", [2, 5], [0]), ("RFFT2D", "float32", [2, 5, 5], [0, 0]), ("IRFFT", "complex64", [2, 5], [0]), ("IRFFT3D", "complex64", [2, 3, 4, 5], [3, 4, 0])):
        f.simple(op, d, [([v(d, s), np.array(lengths, np.int32)], {})], tag="none", expect_error="InternalError")
    for op, d, s, lengths in (("RFFT", "float32", [0, 8], [0]), ("RFFT2D", "float32", [2, 5, 5], [0, 5]), ("IRFFT", "complex64", [2, 0], [0]), ("IRFFT2D", "complex64", [2, 5, 5], [0, 0])):
        f.simple(op, d, [([v(d, s), np.array(lengths, np.int32)], {})], tag="empty")
    f.simple("RFFT", "float32", [([v("float32", [3, 4]), np.array([6], np.int32)], {})], tag="short", expect_error="InvalidArgumentError")
