"""What hostile inputs found: rounding, NaN, empties, attributes at their defaults, and what TensorFlow refuses at run time."""

import numpy as np

from cases import relative


def cases(f):
    nan, inf = np.nan, np.inf
    small = -np.logspace(-6, 1, 60)
    for dtype, rule in (("float32", "relative:1e-6:1"), ("float64", "relative:1e-14:1"), ("float16", "ulp:1"), ("bfloat16", "ulp:1")):
        x = small.astype(np.float32).astype(f_type(dtype))
        grads = f.values(dtype, [60])
        for op in ("Elu", "Selu", "Softplus", "Softsign"):
            f.simple(op, dtype, [([x], {})], rule, tag="small")
        for op in ("EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"):
            f.simple(op, dtype, [([grads, x], {})], rule, tag="small")
    window = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        images = [np.array(v, np.float32).reshape(1, 2, 2, 1).astype(f_type(dtype))
                  for v in ([1, nan, 3, 2], [nan, 1, 3, 2], [nan] * 4, [-inf] * 4, [1, 3, 2, nan])]
        f.simple("MaxPool", dtype, [([x], window) for x in images], tag="nan")
        f.simple("MaxPoolWithArgmax", dtype, [([x], dict(window, Targmax=9)) for x in images[:2]], tag="nan")
    image = f.values("float32", [2, 3, 3, 4])
    stats = [f.values("float32", [4], 0.5, 2, salt=i) for i in range(4)]
    f.simple("FusedBatchNormGrad", "float32", [([image, np.where(image > 3, np.float32(inf), image)] + stats[:3], dict(is_training=False))],
             relative(1e-5)("float32"), tag="frozen")
    f.simple("SoftmaxCrossEntropyWithLogits", "float32",
             [([f.values("float32", [5]), f.values("float32", [4, 5], 0, 1)], {}), ([f.values("float32", [4, 1]), f.values("float32", [1, 5], 0, 1)], {})],
             relative(1e-5)("float32"), tag="broadcast")
    f.simple("BiasAdd", "float32", [([f.values("float32", [4, 3]), f.values("float32", [3])], dict(data_format="NHWC"))], tag="matrix")
    f.simple("Conv2D", "float32", [([f.values("float32", [1, 4, 4, 2]), np.zeros([3, 3, 2, 0], np.float32)], dict(strides=[1, 1, 1, 1], padding="SAME"))],
             tag="no_filters")
    f.simple("CTCLoss", "float32", [([f.values("float32", [6, 1, 5]), np.array([[0, 0], [0, 1]], np.int64), np.array([1, 5], np.int32),
                                      np.array([6], np.int32)], {})], relative(1e-4)("float32"), tag="null_label")
    f.simple("RGBToHSV", "float32", [([np.array([[nan, .5, .2], [.5, nan, .2], [.3, .3, .3]], np.float32)], {})], "ulp:4", tag="nan")
    half = [np.array(v, np.float32) for v in ([[4, 1, 0], [1, nan, .5], [0, .5, 2]], np.eye(3))]
    f.simple("Cholesky", "float32", [([half[0]], {}), ([half[1]], {})], "ulp:4", tag="nan", dynamic=False)
    f.simple("MatrixTriangularSolve", "float32", [([np.array([[1, 0], [2, 0]], np.float32), np.ones([2, 1], np.float32)], {})], tag="singular")
    upper = np.array([[1, 0], [0, 0]], np.float32)  # the product multiplies 0 by infinity
    f.simple("MatrixTriangularSolve", "float32", [([upper, np.ones([2, 2], np.float32)], {"lower": False, "adjoint": g}) for g in (False, True)], tag="upper")
    f.simple("SparseTensorDenseMatMul", "float32", [([np.array([[0, 1]], np.int64), np.ones([1], np.float32), np.array([0, 2], np.int64),
                                                     f.values("float32", [2, 3])], {})], tag="no_rows")
    ids = np.array([0, 1, 2], np.int32)
    f.simple("Exp", "float32", [([np.array([-100, -88, -87, 88.7, 89], np.float32)], {})], "ulp:2", tag="denormal")
    f.simple("ResizeNearestNeighborGrad", "float32", [([f.values("float32", [1, 4, 4, 2]), np.array([2, 2], np.int32)],
                                                       dict(align_corners=True, half_pixel_centers=True))], tag="both")

    matrix, cube = f.values("float32", [3, 4]), f.values("float32", [2, 3, 4])
    f.refused("Reshape", "float32", [np.zeros([0], np.float32), np.array([3, 3], np.int32)])
    f.refused("MatMul", "float32", [cube, f.values("float32", [4, 5])])
    f.refused("BatchMatMul", "float32", [cube, f.values("float32", [1, 4, 5])])
    f.refused("ReverseV2", "float32", [matrix, np.array([[1]], np.int32)])
    f.refused("ReverseSequence", "float32", [matrix, np.array([1, 2, 3], np.int64)], seq_dim=-1, batch_dim=0)
    f.refused("UniqueV2", "int32", [np.array([1, 2, 1], np.int32), np.array(0, np.int64)])
    f.refused("Where", "bool", [np.array(True)])
    f.refused("Cumsum", "float32", [matrix, np.array([1], np.int32)])
    f.refused("InTopKV2", "int32", [matrix, np.array([0, 1, 2], np.int32), np.array([2], np.int32)])
    f.refused("HistogramFixedWidth", "float32", [matrix, np.array([0, 1], np.float32), np.array([4], np.int32)])
    f.refused("Bincount", "float32", [np.array([1, 2], np.int32), np.array([4], np.int32), np.zeros([0], np.float32)])
    f.refused("SparseSegmentSumGrad", "float32", [f.values("float32", [3, 2]), ids, ids, np.array([4], np.int32)])
    f.refused("BroadcastGradientArgs", "int32", [np.array(2, np.int32), np.array([2, 3], np.int32)])
    f.refused("DynamicStitch", "float32", [[np.array([2147483647], np.int32)], [np.ones([1], np.float32)]])
    f.refused("CropAndResize", "float32", [f.values("float32", [1, 4, 4, 2]), np.array([[0, 0, inf, 1]], np.float32), np.array([0], np.int32),
                                            np.array([2, 2], np.int32)])
    f.refused("NonMaxSuppressionV3", "float32", [np.array([[0, 0, 1, 1]], np.float32), np.array([.5], np.float32), np.array([1], np.int32),
                                                  np.array(.5, np.float32), np.array(0, np.float32)])
    f.refused("ResizeBilinearGrad", "float32", [f.values("float32", [1, 4, 4, 2]), np.zeros([1, 0, 2, 2], np.float32)])
    f.refused("MaxPoolWithArgmax", "float32", [np.zeros([0, 4, 4, 2], np.float32)], Targmax=9, **window)
    f.refused("FusedBatchNorm", "float32", [image] + stats[:2] + [stats[2].reshape(1, 4), stats[3]])
    f.refused("CTCLoss", "float32", [f.values("float32", [6, 1, 5]), np.array([[0, 0]], np.int64), np.array([1], np.int32), np.array([0], np.int32)])
    f.refused("StridedSlice", "float32", [matrix, np.array([0], np.int32), np.array([1], np.int32), np.array([1], np.int32)], ellipsis_mask=6)
    f.refused("ComplexAbs", "complex64", [np.array([1 + 1j], np.complex64)], Tout=2)
    f.refused("MatrixInverse", "float32", [np.array([[nan, 1], [2, 3]], np.float32)], tag="nan")
    f.refused("MatrixSolve", "float64", [np.array([[nan, 1], [2, 3]]), np.ones([2, 1])], tag="nan")
    row = np.array([.5, 1, inf, 2, 3, .25, 4, 1], np.float32).reshape(1, 1, 1, 8)
    for dtype in ("float32", "float16"):
        for beta in (.5, 1., .3):
            f.simple("LRN", dtype, [([np.where(np.isinf(row), x, row).astype(f_type(dtype))], dict(depth_radius=1, beta=beta)) for x in (inf, nan, -inf)],
                     relative(1e-5)(dtype), tag="inf_%g" % beta)
    f.refused("OneHot", "float32", [ids, np.array(3, np.int32), np.ones([1], np.float32), np.array(0, np.float32)])
    f.refused("ArgMax", "float32", [matrix, np.array([1], np.int32)])
    f.refused("TopKV2", "float32", [matrix, np.array([1], np.int32)])
    f.refused("UnsortedSegmentSum", "float32", [matrix, ids, np.array([4], np.int32)])
    f.refused("BroadcastArgs", "int32", [np.array(2, np.int32), np.array([2, 3], np.int32)])
    f.refused("CropAndResizeGradBoxes", "float32", [np.zeros([1, 0, 2, 2], np.float32), f.values("float32", [1, 4, 4, 2]), np.array([[0, 0, 1, 1]], np.float32), np.array([0], np.int32)])
    f.refused("CTCLoss", "float32", [f.values("float32", [6, 1, 5]), np.array([[0, -1]], np.int64), np.array([1], np.int32), np.array([6], np.int32)], tag="index")
    f.simple("Bincount", "float32", [([np.array([1, 2, 1], np.int32), np.array(4, np.int32), np.ones([1, 3], np.float32)], {})], tag="weights", dynamic=False)
    f.refused("MatrixSolve", "float32", [np.array([[1, 2], [2, 4]], np.float32), np.ones([2, 1], np.float32)])
    two, logits = np.array([[0, 0], [0, 1]], np.int64), f.values("float32", [6, 1, 5])
    f.simple("CTCLoss", "float32", [([logits, two, np.array([1, 1], np.int32), np.array([2], np.int32)], {})], relative(1e-4)("float32"), tag="no_path")
    f.refused("CTCLoss", "float32", [logits, two, np.array([1, 5], np.int32), np.array([1], np.int32)], tag="null_too_long")
    zeros, not_finite = np.array([[0, 1, 0], [2, 0, 3]], np.float32), np.array([[inf, 1], [2, nan], [1, -inf]], np.float32)
    f.simple("SparseMatMul", "float32", [([zeros, not_finite], dict(a_is_sparse=x, b_is_sparse=y)) for x in (False, True) for y in (False, True)]
             + [([not_finite.T.copy(), zeros.T.copy()], dict(b_is_sparse=True))], tag="infinite")
    for op in ("BesselJ0", "BesselJ1"):
        f.simple(op, "float32", [([np.array([inf, -inf, nan], np.float32)], {})], relative(1e-6, 1)("float32"), tag="infinite")
    real = [np.array(v, np.float32) for v in (inf, 0, 1, 3, nan, -1)]
    f.simple("RaggedRange", "float32", [([real[0], real[1], real[2]], {}), ([real[3], real[0], real[5]], {}), ([real[1], real[3], real[0]], {})], tag="infinite")
    for i, bounds in enumerate(((1, 0, 2), (0, 0, 2), (1, 2, 4))):
        f.refused("RaggedRange", "float32", [real[k] for k in bounds], tag="infinite_%d" % i)
    f.refused("DenseCountSparseOutput", "int32", [np.array([1, -1], np.int32), np.zeros([0], np.int32)], tag="negative", binary_output=False)
    f.refused("PadV2", "float32", [matrix, np.zeros([2, 2], np.int32), np.ones([1], np.float32)])
    f.refused("MatrixBandPart", "float32", [matrix, np.array([1]), np.array(1)])
    grams = dict(separator=" ", ngram_widths=[1], left_pad="<", right_pad=">", pad_width=1, preserve_short_sequences=False)
    f.simple("StringNGrams", "string", [([np.array([b"a", b"b"], object), np.zeros([0], np.int64)], grams), ([np.array([], object), np.zeros([3], np.int64)], grams)],
             tag="empty", dynamic=False)
    f.simple("EncodePng", "uint8", [([np.zeros([0, 1, 9, 3], np.uint8)], {})], tag="no_images", dynamic=False)
    f.simple("IsotonicRegression", "float32", [([np.array(3, np.float32)], {})], tag="scalar")
    f.refused("FractionalAvgPoolGrad", "float32", [np.array([1, 4, 4, 1], np.int64), np.zeros([1, 0, 2, 1], np.float32), np.array([0, 2, 4], np.int64), np.array([0, 2, 4], np.int64)])
    counts = dict(minlength=-1, maxlength=-1, binary_output=False)
    for d in ("float32", "float64"):
        f.simple("ApproximateEqual", d, [([np.array(a, d), np.array(b, d)], dict(tolerance=t)) for a, b, t in
                                         (([1, 2, nan, inf], [1.5, 2.5, nan, inf], .5), ([0, 1, 1e-5], [1e-5, 1.00001, 0], 1e-5))], tag="bound")
    for d in ("float16", "uint64", "complex64"):
        f.refused("ToBool", d, [np.array(1, np.dtype(d))])
    for op, shape in (("SpaceToBatch", [4, 4, 1]), ("BatchToSpace", [4, 2, 2])):
        f.refused(op, "float32", [np.ones(shape, np.float32), np.zeros([2, 2], np.int32)], block_size=2)
    f.refused("GatherV2", "float32", [matrix, np.array([0, 1]), np.array([0])])
    f.refused("BroadcastTo", "float32", [matrix, np.array(6, np.int32)])
    for i, level in enumerate((-2, 10)):
        f.refused("EncodePng", "uint8", [np.zeros([0, 1, 9, 3], np.uint8)], tag="level_%d" % i, compression=level)
    for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
        f.simple(op, "float32", [([f.values("float32", [2, 4, 5, 1]), np.array(size, np.int32), f.values("float32", [2, 2], -1, 1)],
                                  dict(centered=False, normalized=False, uniform_noise=False, noise="zero")) for size in ([0, 2], [2, 0], [0, 0])], tag="nothing")
    sparse = [[np.array([[0, 0], [1, 0]], np.int64)], [np.array([3, 4], np.int64)], [np.array([2, 1], np.int64)], []]
    f.refused("SparseCross", "int64", sparse, hashed_output=True, num_buckets=10, hash_key=1, out_type="int64", internal_type="string", sparse_types=["int64"], dense_types=[])
    f.simple("SparseSoftmax", "float32", [([np.array(at, np.int64), np.array([1, 2, 3], np.float32), np.array([2, 2], np.int64)], {})
                                          for at in ([[0, 1], [0, 0], [1, 1]], [[1, 1], [0, 0], [0, 1]], [[0, 0], [0, 0], [1, 1]])], "ulp:2", tag="unsorted", dynamic=False)
    for i, (bands, rhs) in enumerate((([2, 0], [0, 2]), ([2, 4], [4, 0]))):
        f.refused("BandedTriangularSolve", "float32", [np.ones(bands, np.float32), np.ones(rhs, np.float32)], tag="nothing_%d" % i)
    f.refused("BandedTriangularSolve", "float32", [np.array([[1, 2, 0], [1, 1, 1]], np.float32), np.ones([3, 1], np.float32)], tag="singular")
    f.simple("IsotonicRegression", "float64", [([np.array(x)], dict(output_dtype="float64")) for x in ([1, nan, 3], [nan, 1, 2], [3, 2, nan], [3, nan, 1, 2])], tag="nan")
    f.refused("MatrixSolve", "float32", [np.array([[1, -inf], [0, 1]], np.float32), np.ones([2, 1], np.float32)], tag="adjoint_singular", adjoint=True)
    f.refused("DenseCountSparseOutput", "int64", [np.zeros([0, 2], np.int64), np.zeros([0], np.float32)], tag="no_rows", **counts)
    f.simple("RaggedCountSparseOutput", "int64", [([np.array(splits, np.int64), np.array([1, 2, 1]), np.zeros([0], np.float32)], counts)
                                                  for splits in ([0, 3, 2, 3], [0, -1, 3], [0, 3, 3])], tag="falling", dynamic=False)
    responses = np.array([1, 2, inf, 3, 0, 1, 2, 4], np.float32).reshape(1, 1, 2, 4)
    for d in ("float32", "float16"):
        f.simple("LRN", d, [([responses.astype(d)], dict(depth_radius=1, beta=b, alpha=a)) for b in (0., .5, 1., .3) for a in (1., 0., -1.)], relative(1e-5)(d), tag="power")
    f.simple("BesselY1", "float32", [([np.array([inf, nan, 1], np.float32)], {})], relative(1e-6, 1)("float32"), tag="infinite")
    f.simple("StatelessRandomPoisson", "int64", [([np.array([6, 0], np.int32), np.array([1, 2], np.int64), np.ones([4], np.float16)], dict(dtype="int64"))], tag="nothing", dynamic=False)
    f.simple("StatelessRandomGammaV2", "float32", [([np.array([0, 3], np.int32), np.array([1, 2], np.int64), np.ones([4], np.float32)], {})], tag="nothing", dynamic=False)
    for d in ("complex64", "complex128"):
        f.simple("TridiagonalSolve", d, [([np.zeros([3, 4], d), np.ones([4, 1], d)], {"partial_pivoting": p}) for p in (True, False)], tag="singular")
        f.simple("Mean", d, [([np.zeros(s, d), np.array([0])], dict(keep_dims=False)) for s in ([0, 2], [0])], tag="nothing")
    f.simple("ResizeArea", "float32", [([f.values("float32", s), np.array([3, 3], np.int32)], dict(align_corners=True)) for s in ([1, 4, 1, 2], [1, 1, 4, 2], [1, 1, 1, 2])],
             relative(1e-5)("float32"), tag="one_pixel")
    near = np.array([0, 1e-6, 1e-4, 9.9e-6, 1.1e-5, 2, 2.000005, inf], np.float32).reshape(1, 2, 2, 2, 1)
    for d in ("float32", "bfloat16"):
        f.simple("MaxPool3DGrad", d, [([near.astype(f_type(d)), np.full([1] * 5, m, np.float32).astype(f_type(d)), np.ones([1] * 5, f_type(d))],
                                       dict(ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")) for m in (0, 1e-6, 2, 1e-30, inf)], tag="near")
    none, some = np.zeros([0, 3], object), np.array([b"a", b"b", b"c"], object)
    for op in ("Add", "Equal", "NotEqual"):
        f.simple(op, "string", [([none, some], {}), ([some, none], {}), ([none[:, 0], none[:, 0]], {})], tag="nothing", dynamic=False)
    scalar = np.array(7, np.float32)
    for op in ("TensorScatterAdd", "TensorScatterUpdate", "TensorScatterMax"):
        f.refused(op, "float32", [np.zeros([5, 2], np.float32), np.array([0, 1], np.int32), scalar])
    f.refused("ScatterNd", "float32", [np.array([0, 1], np.int32), scalar, np.array([5, 2], np.int32)])
    f.refused("Conv3D", "float32", [np.ones([1, 4, 4, 4, 1], np.float32), np.ones([2, 2, 2, 1, 0], np.float32)], tag="no_filters", strides=[1] * 5, padding="SAME")
    f.refused("CTCLoss", "float32", [logits, np.array([[0, 0], [0, 2 ** 63 - 1]], np.int64), np.array([0, 1], np.int32), np.array([2], np.int32)], tag="far")
    f.case("QuantizeAndDequantizeV4", "float32", tag="one")
    with f.scope():
        f.run(f.node("QuantizeAndDequantizeV4", [matrix, np.array([-1], np.float32), np.array([1], np.float32)], dynamic=True, range_given=True))
    f.simple("Dilation2D", "float32", [([f.values("float32", [1, 4, 4, 1]), np.zeros([0, 2, 1], np.float32)], dict(strides=[1] * 4, rates=[1] * 4, padding="SAME"))], tag="no_window")
    f.simple("UnicodeDecode", "string", [([np.array([text], object)], dict(input_encoding="UTF-16-BE")) for text in (b"\0aN-\xd8=\xde", b"\0a\xd8=\xde\0", b"\0a\xd8")], tag="cut", dynamic=False)


def f_type(dtype):
    from cases import npdtype
    return npdtype(dtype)
