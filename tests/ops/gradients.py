"""Gradients of single operations as TensorFlow computes them: writes golden/gradients/ for gradients_test.c.

    .venv/bin/python tests/ops/gradients.py

Each case is one operation on constants, differentiated by every floating input with a fixed weight on every floating
output: once with shapes known, once with inputs of unknown shape (placeholders with the constants as default), so that
both ways of building a gradient are checked.
"""

import gzip
import json
import os
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import op_def_library, op_def_registry  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf.get_logger().setLevel("ERROR")
HERE = os.path.dirname(os.path.abspath(__file__))


def f(*shape, lo=-2.0, hi=2.0, t=np.float64, salt=0):
    rng = np.random.RandomState(zlib.crc32(repr((shape, lo, hi, salt)).encode()) & 0x7FFFFFFF)
    return rng.uniform(lo, hi, size=shape).astype(t)


def c(*shape, salt=0):
    return (f(*shape, salt=salt) + 1j * f(*shape, salt=salt + 1)).astype(np.complex128)


def pos(*shape, **kw):
    return f(*shape, lo=0.2, hi=3.0, **kw)


def unit(*shape, **kw):
    return f(*shape, lo=-0.9, hi=0.9, **kw)


def i32(*v):
    return np.array(v if len(v) != 1 or isinstance(v[0], (list, tuple)) else v[0], np.int32).reshape(
        np.shape(v[0]) if len(v) == 1 else len(v))


def i64(v):
    return np.array(v, np.int64)


def spd(n, batch=()):
    a = f(*batch, n, n)
    return a @ np.swapaxes(a, -1, -2) + n * np.eye(n)


def tri(n):
    return np.tril(f(n, n)) + 3 * np.eye(n)


F32 = dict(t=np.float32)
PLAIN = tf1.ConfigProto()  # the graph as it stands
PLAIN.graph_options.rewrite_options.disable_meta_optimizer = True
CASES = []


def case(op, inputs, tag="", **attrs):
    CASES.append((op, tag, inputs, attrs))


def unary():
    for op in ["Neg", "Abs", "Square", "Exp", "Expm1", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Tanh",
               "Sigmoid", "Sign", "Erf", "Erfc", "BesselI0e", "BesselI1e", "BesselI0",
               "BesselI1", "BesselJ0", "BesselJ1", "Dawsn", "FresnelCos", "FresnelSin", "Floor", "Round", "Identity", "Snapshot"]:
        case(op, [f(3, 4)])
    for op in ["Sqrt", "Rsqrt", "Log", "Log1p", "Reciprocal", "Inv", "Lgamma", "Digamma", "BesselK0",
               "BesselK1", "BesselK0e", "BesselK1e", "BesselY0", "BesselY1", "Expint", "Spence"]:
        case(op, [pos(3, 4)])
    for op in ["Asin", "Acos", "Atanh", "Erfinv"]:
        case(op, [unit(3, 4)])
    case("Acosh", [f(5, lo=1.1, hi=4.0)])
    case("Ndtri", [f(5, lo=0.05, hi=0.95)])
    for op in ["ReciprocalGrad", "InvGrad", "SqrtGrad", "RsqrtGrad", "TanhGrad", "SigmoidGrad"]:
        case(op, [pos(3, 4), f(3, 4, salt=1)])
    for op in ["Neg", "Square", "Exp", "Log", "Tanh", "Sigmoid", "Sin", "Sqrt", "Reciprocal"]:
        case(op, [c(3, 4)], "complex")
    case("Conj", [c(3)])
    case("Real", [c(3)], Tout=tf.float64)
    case("Imag", [c(3)], Tout=tf.float64)
    case("Angle", [c(3)], Tout=tf.float64)
    case("ComplexAbs", [c(3)], Tout=tf.float64)
    case("Complex", [f(3, 4), f(4, salt=1)], Tout=tf.complex128)
    case("Cast", [f(3, 4)], DstT=tf.float32)
    case("Cast", [f(3, 4)], "int", DstT=tf.int32)
    case("CheckNumerics", [f(3)], message="m")
    case("EnsureShape", [f(3, 4)], shape=[None, 4])
    case("IdentityN", [[f(2), f(3)]])


def binary():
    shapes = [("same", (3, 4), (3, 4)), ("row", (3, 4), (4,)), ("column", (3, 4), (3, 1)), ("both", (2, 1, 4), (3, 1)),
              ("scalar", (), (3, 2)), ("ones", (1, 1), (1,))]
    for tag, a, b in shapes:
        for op in ["Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "Atan2", "MulNoNan"]:
            case(op, [f(*a), f(*b, salt=1)], tag)
        for op in ["RealDiv", "Div", "DivNoNan", "FloorMod", "Xdivy", "Xlogy", "Xlog1py", "Pow"]:
            case(op, [pos(*a), pos(*b, salt=1)], tag)
        case("NextAfter", [f(*a), f(*b, salt=1)], tag)
    case("Pow", [f(4), i32(2, 3, 2, 1).astype(np.float64)], "negative_base")
    case("Xlogy", [np.array([0.0, 1.0, 2.0]), pos(3)], "zero")
    case("Mul", [c(3, 4), c(4, salt=2)], "complex")
    case("RealDiv", [c(3), c(3, salt=2)], "complex")
    case("Igamma", [pos(3, 4), pos(4, salt=1)])
    case("Igammac", [pos(3, 4), pos(4, salt=1)])
    case("Betainc", [pos(3, 4), pos(3, 4, salt=1), f(3, 4, lo=0.1, hi=0.9, salt=2)])
    case("Betainc", [pos(5), pos(5, salt=1), np.array(0.3)], "scalar")
    case("Polygamma", [np.array([1.0, 2.0, 3.0]), pos(2, 3)])
    case("Cross", [f(4, 3), f(4, 3, salt=1)])
    case("Select", [np.array([True, False, True]), f(3, 2), f(3, 2, salt=1)], "vector")
    case("Select", [np.array([[True, False], [False, True]]), f(2, 2), f(2, 2, salt=1)])
    case("SelectV2", [np.array([[True], [False], [True]]), f(3, 4), f(4, salt=1)])
    case("SelectV2", [np.array(True), f(2), f(3, 2, salt=1)], "scalar")
    case("AddN", [[f(3), f(3, salt=1), f(3, salt=2)]])


def transforms():
    for ta in (False, True):
        for tb in (False, True):
            case("SparseMatMul", [f(*((7, 5) if ta else (5, 7)), **F32), f(*((3, 7) if tb else (7, 3)), salt=1, **F32)], "%d%d" % (ta, tb), transpose_a=ta, transpose_b=tb)
    t = np.array([[1, 0, 0.5, 0, 1, -0.25, 0, 0], [0.5, 0, 1.25, 0, 2, -0.5, 0, 0]], np.float32)  # whose inverses are exact
    for tag, how, fill in (("nearest", "NEAREST", "CONSTANT"), ("bilinear", "BILINEAR", "REFLECT")):
        case("ImageProjectiveTransformV2", [f(2, 6, 5, 3), t, i32(7, 5)], tag, interpolation=how, fill_mode=fill)
        case("ImageProjectiveTransformV3", [f(2, 6, 5, 3), t[:1], i32(7, 5), np.float32(0.5)], tag, interpolation=how, fill_mode=fill)


def reductions():
    for op in ["Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"]:
        for tag, axes in [("all", [0, 1, 2]), ("last", [2]), ("first", [0]), ("middle", [-2]), ("two", [0, 2]), ("none", [])]:
            case(op, [f(2, 3, 4), np.array(axes, np.int32)], tag)
        case(op, [f(2, 3, 4), i32([1])], "keep", keep_dims=True)
        case(op, [f(3, 4), np.int32(1)], "axis_scalar")
    case("Prod", [np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]), i32([1])], "zeros")
    case("Max", [np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), i32([1])], "ties")
    case("L2Loss", [f(3, 4)])
    for exclusive in (False, True):
        for reverse in (False, True):
            tag = "%d%d" % (exclusive, reverse)
            case("Cumsum", [f(3, 4), np.int32(1)], tag, exclusive=exclusive, reverse=reverse)
            case("Cumprod", [f(3, 4), np.int32(0)], tag, exclusive=exclusive, reverse=reverse)
            if not exclusive:
                case("CumulativeLogsumexp", [f(3, 4), np.int32(1)], tag, exclusive=exclusive, reverse=reverse)
    case("TopKV2", [f(3, 5), np.int32(2)])
    case("NthElement", [f(3, 5), np.int32(2)])
    case("SegmentSum", [f(5, 3), i32(0, 0, 1, 3, 3)])
    case("SegmentMean", [f(5, 3), i32(0, 0, 1, 3, 3)])
    case("SegmentMax", [f(5, 3), i32(0, 0, 1, 2, 2)])
    case("SegmentMin", [f(5, 3), i32(0, 0, 1, 2, 2)])
    case("SegmentProd", [np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 1.0], [0.0, 4.0]]), i32(0, 0, 1, 1)])
    for op in ["UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin"]:
        case(op, [f(5, 3), i32(2, 0, 2, -1, 0), np.int32(4)])
        case(op, [f(2, 2, 3), i32([[1, 0], [0, 1]]), np.int32(2)], "matrix")
    case("UnsortedSegmentProd", [np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 1.0], [0.0, 4.0]]), i32(1, 1, 0, 0), np.int32(2)])
    for op in ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"]:
        case(op, [f(4, 3), i32(0, 3, 1, 3), i32(0, 0, 1, 3)])
        case(op, [f(4, 3), i32(0, 3, 1, 3), i32(0, 0, 1, 3)], "sparse", sparse_gradient=True)
        case(op + "WithNumSegments", [f(4, 3), i32(0, 3, 1, 3), i32(0, 0, 1, 3), np.int32(5)])


def array():
    case("Reshape", [f(3, 4), i32(2, 6)])
    case("ExpandDims", [f(3, 4), np.int32(1)])
    case("Squeeze", [f(3, 1, 4)], squeeze_dims=[1])
    case("Fill", [i32(2, 3), np.float64(0.5)])
    case("BroadcastTo", [f(3, 1), i32(2, 3, 4)])
    for axis in (0, 1, -1):
        case("ConcatV2", [[f(2, 3), f(2, 3, salt=1), f(2, 3, salt=2)], np.int32(axis)], "axis%d" % axis)
        case("Concat", [np.int32(axis % 2), [f(2, 3), f(2, 3, salt=1)]], "axis%d" % axis)
    case("ConcatV2", [[f(2, 1, salt=k) for k in range(18)], np.int32(1)], "many")
    case("Split", [np.int32(1), f(2, 6)], num_split=3)
    case("SplitV", [f(2, 6), i32(1, 2, 3), np.int32(1)], num_split=3)
    case("Pack", [[f(2, 3), f(2, 3, salt=1)]], axis=1)
    case("Unpack", [f(2, 3)], num=3, axis=1)
    case("Slice", [f(3, 4), i32(1, 0), i32(2, -1)])
    case("StridedSlice", [f(3, 4), i32(0, 1), i32(3, 4), i32(2, 1)])
    case("StridedSlice", [f(3, 4, 2), i32(-1, 0, 0), i32(0, 0, 0), i32(1, 1, -1)], "masks", begin_mask=4, end_mask=6,
         shrink_axis_mask=1)
    case("StridedSlice", [f(3, 4), i32(0, 0, 1), i32(0, 0, 3), i32(1, 1, 1)], "newaxis", new_axis_mask=1, ellipsis_mask=2)
    case("StridedSliceGrad", [i32(3, 4), i32(0, 1), i32(3, 4), i32(2, 1), f(2, 3)])
    case("TensorStridedSliceUpdate", [f(3, 4), i32(0, 1), i32(3, 4), i32(2, 1), f(2, 3, salt=1)])
    case("Transpose", [f(2, 3, 4), i32(2, 0, 1)])
    case("ConjugateTranspose", [c(2, 3), i32(1, 0)])
    case("Tile", [f(2, 3), i32(2, 3)])
    case("Pad", [f(2, 3), i32([[1, 0], [0, 2]])])
    case("PadV2", [f(2, 3), i32([[1, 0], [0, 2]]), np.float64(0.5)])
    case("MirrorPad", [f(3, 4), i32([[1, 2], [0, 3]])], mode="REFLECT")
    case("MirrorPad", [f(3, 4), i32([[1, 2], [0, 3]])], "symmetric", mode="SYMMETRIC")
    case("MirrorPadGrad", [f(6, 7), i32([[1, 2], [0, 3]])], mode="REFLECT")
    case("ReverseV2", [f(3, 4), i32([1])])
    case("ReverseSequence", [f(3, 4, 2), i64([1, 4, 0])], seq_dim=1, batch_dim=0)
    case("Roll", [f(3, 4), i32(1, -2), i32(0, 1)])
    for axis in (0, 1, -1):
        case("GatherV2", [f(3, 5, 2), i32([[0, 2], [1, 1]]), np.int32(axis)] if axis == 0 else
             [f(3, 5, 2), i32([[0, 1], [1, 1]]), np.int32(axis)], "axis%d" % axis)
    case("GatherV2", [f(2, 5, 3), i32([[0, 4, 0], [1, 1, 2]]), np.int32(1)], "batch1", batch_dims=1)
    case("GatherV2", [f(2, 4, 5), i32([[0, 4, 0], [1, 1, 2]]), np.int32(2)], "batch1_axis2", batch_dims=1)
    case("Gather", [f(5, 3), i32(0, 4, 0)])
    case("GatherNd", [f(4, 3), i32([[0, 1], [3, 2], [0, 1]])])
    case("GatherNd", [f(4, 3), i32([[0], [3], [0]])], "rows")
    case("ScatterNd", [i32([[0], [3], [0]]), f(3, 2), i32(5, 2)])
    for op in ["TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub"]:
        case(op, [f(5, 2), i32([[0], [3]]), f(2, 2, salt=1)])
    for op in ["TensorScatterMax", "TensorScatterMin"]:
        case(op, [f(5, 2), i32([[0], [3], [0]]), f(3, 2, salt=1)])
    case("DynamicPartition", [f(4, 2), i32(1, 0, 1, 1)], num_partitions=3)
    case("DynamicStitch", [[i32(0, 2), i32([1])], [f(2, 3), f(1, 3, salt=1)]])
    case("ParallelDynamicStitch", [[i32(0, 2), i32([1])], [f(2, 3), f(1, 3, salt=1)]])
    case("SparseToDense", [i64([[0, 1], [2, 0]]), i64([3, 2]), f(2), np.float64(0.5)])
    case("Diag", [f(2, 3)])
    case("DiagPart", [f(3, 3)])
    case("MatrixBandPart", [f(2, 3, 4), i64(1), i64(-1)])
    case("MatrixDiag", [f(2, 3)])
    case("MatrixDiagPart", [f(2, 3, 4)])
    case("MatrixSetDiag", [f(2, 3, 4), f(2, 3, salt=1)])
    for align in ("LEFT_RIGHT", "RIGHT_LEFT"):
        case("MatrixDiagV3", [f(2, 3), i32(0, 1), np.int32(-1), np.int32(-1), np.float64(0)], align, align=align)
        case("MatrixDiagPartV3", [f(2, 3, 4), i32(-1, 1), np.float64(0)], align, align=align)
        case("MatrixSetDiagV3", [f(2, 3, 4), f(2, 3, 3, salt=1), i32(-1, 1)], align, align=align)
    case("SpaceToBatchND", [f(2, 4, 6, 3), i32(2, 3), i32([[0, 0], [1, 2]])])
    case("BatchToSpaceND", [f(4, 2, 3, 1), i32(2, 2), i32([[0, 1], [1, 0]])])
    case("SpaceToBatch", [f(1, 4, 4, 2), i32([[0, 0], [1, 1]])], block_size=2)
    case("BatchToSpace", [f(4, 2, 2, 2), i32([[0, 0], [1, 0]])], block_size=2)
    case("SpaceToDepth", [f(1, 4, 4, 2)], block_size=2)
    case("DepthToSpace", [f(1, 2, 2, 8)], block_size=2)


def linalg():
    for ta in (False, True):
        for tb in (False, True):
            tag = "%d%d" % (ta, tb)
            a, b = f(*((4, 3) if ta else (3, 4))), f(*((5, 4) if tb else (4, 5)))
            case("MatMul", [a, b], tag, transpose_a=ta, transpose_b=tb)
            for op in ["BatchMatMul", "BatchMatMulV2"]:
                case(op, [np.stack([a, 2 * a]), np.stack([b, -b])], tag, adj_x=ta, adj_y=tb)
            case("BatchMatMulV2", [np.stack([a, 2 * a])[:, None], np.stack([b, -b, 3 * b])], "bcast" + tag, adj_x=ta, adj_y=tb)
            case("MatMul", [c(*a.shape), c(*b.shape, salt=3)], "complex" + tag, transpose_a=ta, transpose_b=tb)
            case("SparseTensorDenseMatMul", [i64([[0, 1], [2, 0], [2, 3]]), f(3), i64([3, 4]),
                                             f(*((3 if ta else 4, 5) if not tb else (5, 3 if ta else 4)))], tag,
                 adjoint_a=ta, adjoint_b=tb)
    case("BatchMatMulV3", [f(2, 3, 4), f(4, 5)], Tout=tf.float64)
    for eq, shapes in [("ij,jk->ik", [(2, 3), (3, 4)]), ("abc,cd->abd", [(2, 3, 4), (4, 5)]), ("ij->ji", [(2, 3)]),
                       ("ij->i", [(2, 3)]), ("ij->", [(2, 3)]), ("ii->i", [(3, 3)]), ("ii->", [(3, 3)]),
                       ("ij,ij->i", [(2, 3), (2, 3)]), ("ij,kl->jl", [(2, 3), (4, 5)]), ("i->ii", [(3,)]),
                       ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]), ("...ij,jk->...ik", [(2, 3, 4), (4, 5)]),
                       ("...ij,...jk->...ik", [(2, 1, 3, 4), (3, 4, 5)]), ("b...d->...db", [(2, 3, 4)]),
                       ("i,->i", [(3,), ()]), ("aijb,bjic->aic", [(2, 3, 4, 2), (2, 4, 3, 5)])]:
        case("Einsum", [[f(*s, salt=k) for k, s in enumerate(shapes)]], eq.replace(",", "_").replace("->", "_to_").replace("...", "E") +
             ("_%d" % len(shapes[0])), equation=eq)
    case("Cholesky", [spd(3)])
    case("Cholesky", [spd(3, (2,))], "batch")
    case("MatrixInverse", [spd(3)])
    case("MatrixInverse", [f(2, 3, 3) + 3 * np.eye(3)], "adjoint", adjoint=True)
    case("MatrixDeterminant", [f(2, 3, 3) + 2 * np.eye(3)])
    for adjoint in (False, True):
        case("MatrixSolve", [f(3, 3) + 3 * np.eye(3), f(3, 2)], "%d" % adjoint, adjoint=adjoint)
        for lower in (False, True):
            a = tri(3) if lower else tri(3).T
            case("MatrixTriangularSolve", [a, f(3, 2)], "%d%d" % (adjoint, lower), adjoint=adjoint, lower=lower)
    case("MatrixTriangularSolve", [np.stack([tri(3), 2 * tri(3)]), f(3, 2)], "bcast")


def image():
    for op in ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"]:
        case(op, [f(2, 4, 5, 2, **F32), i32(6, 3)])
        case(op, [f(2, 4, 5, 2, **F32), i32(6, 3)], "corners", align_corners=True)
        case(op, [f(2, 4, 5, 2, **F32), i32(6, 3)], "half", half_pixel_centers=True)
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9]], np.float32)
    case("CropAndResize", [f(2, 5, 5, 2, **F32), boxes, i32(0, 1), i32(3, 4)])
    case("CropAndResize", [f(2, 5, 5, 2, **F32), boxes, i32(0, 1), i32(3, 4)], "nearest", method="nearest")
    case("ExtractImagePatches", [f(2, 5, 6, 2)], ksizes=[1, 3, 2, 1], strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding="SAME")
    for padding in ("SAME", "VALID"):
        case("ExtractVolumePatches", [f(2, 4, 5, 3, 2)], padding, ksizes=[1, 2, 3, 2, 1], strides=[1, 2, 1, 1, 1], padding=padding)
    for kernel in ("triangle", "lanczos3"):
        case("ScaleAndTranslate", [f(2, 4, 5, 2, **F32), i32(6, 3), np.float32([1.5, 0.6]), np.float32([0, 0.5])], kernel, kernel_type=kernel)
    case("RGBToHSV", [f(4, 5, 3, lo=0.05, hi=1.0)])


def nn():
    for op in ["Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu", "Softmax", "LogSoftmax"]:
        case(op, [3 * f(3, 4)])
    for op in ["ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad", "LeakyReluGrad"]:
        case(op, [f(3, 4), 3 * f(3, 4, salt=1)])
    case("LeakyRelu", [3 * f(3, 4)], "alpha", alpha=0.3)
    for op in ["Rint", "Ceil"]:
        case(op, [f(3)])
    case("BiasAdd", [f(2, 3, 4), f(4, salt=1)])
    case("BiasAdd", [f(2, 4, 3, 2), f(4, salt=1)], "channels_first", data_format="NCHW")
    case("BiasAddV1", [f(2, 4), f(4, salt=1)])
    case("BiasAddGrad", [f(2, 3, 4)])
    case("SoftmaxCrossEntropyWithLogits", [f(3, 4), np.abs(f(3, 4, salt=1))])
    case("SparseSoftmaxCrossEntropyWithLogits", [f(3, 4), i32(1, 0, 3)])
    x, w, b = f(2, 5, 6, 3), f(3, 2, 3, 4, salt=1), f(2, 3, 3, 4, salt=2)
    for padding in ("SAME", "VALID"):
        out = f(2, 3, 3, 4, salt=2) if padding == "SAME" else f(2, 2, 3, 4, salt=2)
        case("Conv2D", [x, w], padding, strides=[1, 2, 2, 1], padding=padding)
        case("Conv2DBackpropInput", [i32(2, 5, 6, 3), w, out], padding, strides=[1, 2, 2, 1], padding=padding)
        case("Conv2DBackpropFilter", [x, i32(3, 2, 3, 4), out], padding, strides=[1, 2, 2, 1], padding=padding)
        d, dout = f(3, 2, 3, 2, salt=1), f(2, 5, 6, 6, salt=2) if padding == "SAME" else f(2, 3, 5, 6, salt=2)
        case("DepthwiseConv2dNative", [x, d], padding, strides=[1, 1, 1, 1], padding=padding)
        case("DepthwiseConv2dNativeBackpropInput", [i32(2, 5, 6, 3), d, dout], padding, strides=[1, 1, 1, 1], padding=padding)
        case("DepthwiseConv2dNativeBackpropFilter", [x, i32(3, 2, 3, 2), dout], padding, strides=[1, 1, 1, 1], padding=padding)
        window = dict(ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding=padding)
        pooled = (2, 3, 3, 3) if padding == "SAME" else (2, 2, 3, 3)
        case("MaxPool", [x], padding, **window)
        case("AvgPool", [x], padding, **window)
        case("MaxPoolV2", [x, i32(1, 3, 2, 1), i32(1, 2, 2, 1)], padding, padding=padding)
        case("AvgPoolGrad", [i32(2, 5, 6, 3), f(*pooled)], padding, **window)
        case("MaxPoolWithArgmax", [x], padding, Targmax=tf.int64, **window)
        case("Dilation2D", [x, f(2, 3, 3, salt=3)], padding, strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding=padding)
    case("Conv2D", [x, w], "explicit", strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0])
    case("Conv3D", [f(1, 3, 4, 4, 2), f(2, 2, 2, 2, 3, salt=1)], strides=[1, 1, 2, 1, 1], padding="SAME")
    for op in ["MaxPool3D", "AvgPool3D"]:
        case(op, [f(1, 4, 4, 4, 2, **F32)], ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 1, 1], padding="SAME")
    for op in ["FractionalMaxPool", "FractionalAvgPool"]:
        for overlapping in (False, True):
            case(op, [f(2, 7, 9, 3)], "overlapping" if overlapping else "", pooling_ratio=[1.0, 1.44, 1.73, 1.0], overlapping=overlapping, deterministic=True, seed=3, seed2=4)
    case("LRN", [f(1, 2, 2, 7, **F32)], depth_radius=2, bias=1.0, alpha=0.3, beta=0.6)
    for op in ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"]:
        n = lambda k: f(3, salt=k, **F32)  # noqa: E731
        p = lambda k: pos(3, salt=k, **F32)  # noqa: E731
        case(op, [f(2, 3, 2, 3, **F32), p(1), n(2), np.zeros(0, np.float32), np.zeros(0, np.float32)], "training", epsilon=0.01)
        case(op, [f(2, 3, 2, 3, **F32), p(1), n(2), n(3), p(4)], "inference", epsilon=0.01, is_training=False)
    for op in ["FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"]:
        given = [f(2, 3, 2, 3, **F32, salt=5), f(2, 3, 2, 3, **F32), p(1), n(3), p(4)] + ([p(4)] if op[-1] == "3" else [])
        for training in (True, False):
            case(op, given, "training" if training else "inference", epsilon=0.01, is_training=training)
    case("FakeQuantWithMinMaxArgs", [4 * f(5, **F32)], min=-3.0, max=5.0)
    case("Zeta", [f(4, lo=1.5, hi=3.0), pos(4, salt=1)])
    case("FloorDiv", [pos(3), pos(3, salt=1)])
    case("TruncateDiv", [pos(3), pos(3, salt=1)])
    case("PreventGradient", [f(3)], message="m")
    for op in ["MatrixDiagV2", "MatrixDiagPartV2", "MatrixSetDiagV2"]:
        case(op, {"MatrixDiagV2": [f(2, 3), np.int32(1), np.int32(-1), np.int32(-1), np.float64(0)],
                  "MatrixDiagPartV2": [f(2, 3, 4), i32(-1, 1), np.float64(0)],
                  "MatrixSetDiagV2": [f(2, 3, 4), f(2, 3, 3, salt=1), i32(-1, 1)]}[op])


def factors():
    for tag, shape in (("deep", (4, 3)), ("square", (3, 3)), ("wide", (3, 5)), ("batch", (2, 4, 3))):
        case("Qr", [f(*shape)], tag)
        case("Svd", [f(*shape)], tag, compute_uv=False)
    case("Qr", [c(4, 3)], "complex")
    case("SelfAdjointEigV2", [spd(3)], compute_v=False)
    case("SelfAdjointEigV2", [spd(3, (2,))], "batch", compute_v=False)
    apart = f(2, 3, 3, salt=5) * 0.3 + np.diag([1.0, 2.5, 4.0])
    for compute_v in (True, False):
        case("Eig", [apart + 0.3j * f(2, 3, 3)], "vectors" if compute_v else "", compute_v=compute_v, Tout=tf.complex128)
    case("MatrixSquareRoot", [apart])
    case("MatrixSquareRoot", [apart[0] + 0.2j * f(3, 3)], "complex")
    case("LogMatrixDeterminant", [f(2, 3, 3) + 2 * np.eye(3)])
    case("MatrixSolveLs", [f(4, 3), f(4, 2), np.float64(0.5)], "deep", fast=True)
    case("MatrixSolveLs", [f(3, 5), f(3, 2), np.float64(0.5)], "wide", fast=True)


def signal():
    for op, x in (("FFT", c(2, 6)), ("FFT2D", c(2, 3, 4)), ("FFT3D", c(2, 3, 4))):
        case(op, [x])
        case("I" + op, [x])
    for n in (7, 8):
        half = n // 2 + 1
        case("RFFT", [f(2, n), i32([n])], "%d" % n, Tcomplex=tf.complex128)
        case("RFFT2D", [f(2, 3, n), i32(3, n)], "%d" % n, Tcomplex=tf.complex128)
        case("IRFFT", [c(2, half), i32([n])], "%d" % n, Treal=tf.float64)
        case("IRFFT2D", [c(2, 3, half), i32(3, n)], "%d" % n, Treal=tf.float64)


def quantized():
    x = 4 * f(3, 4, **F32)
    for low, high in ((-3, 5), (-1, 1)):
        case("FakeQuantWithMinMaxVars", [x, np.float32(low), np.float32(high)], "%d_%d" % (low, high))
    case("FakeQuantWithMinMaxVarsPerChannel", [x, np.float32([-1, -2, -3, 0]), np.float32([1, 2, 3, 4])])
    case("FakeQuantWithMinMaxVarsPerChannel", [x[0], np.float32([-1, -2, -3, 0]), np.float32([1, 2, 3, 4])], "vector")


def sparse():
    i, j = i64([[0, 1], [1, 0], [1, 2], [2, 3]]), i64([[0, 1], [1, 1], [2, 3]])
    x, y, dims = f(4), f(3, salt=1), i64([3, 4])
    case("SparseAdd", [i, x, dims, j, y, dims, np.float64(0.1)])
    case("SparseTensorDenseAdd", [i, x, dims, f(3, 4)])
    for op in ("SparseDenseCwiseMul", "SparseDenseCwiseAdd", "SparseDenseCwiseDiv"):
        case(op, [i, x, dims, pos(3, 4, salt=2)])
        if op != "SparseDenseCwiseAdd":
            case(op, [i, x, dims, pos(3, 1, salt=2)], "column")
    case("SparseReorder", [i[::-1].copy(), x, dims])
    case("SparseReduceSum", [i, x, dims, i32([1])])
    case("SparseReduceSum", [i, x, dims, i32([0])], "keep", keep_dims=True)
    case("SparseSoftmax", [i, x, dims])
    case("SparseConcat", [[i, j], [x, y], [dims, dims]], concat_dim=1)
    case("SparseSlice", [i, x, dims, i64([0, 0]), i64([2, 3])])
    case("SparseFillEmptyRows", [i64([[0, 1], [2, 0]]), f(2), i64([4, 4]), np.float64(0.5)])
    case("SparseSparseMaximum", [i, x, dims, j, y, dims])
    case("SparseSparseMinimum", [i, x, dims, j, y, dims])
    case("RaggedTensorToTensor", [i64([3, -1]), f(4), np.float64(0.5), [i64([0, 2, 2, 4])]], row_partition_types=["ROW_SPLITS"])
    case("RaggedTensorToTensor", [i64([2, 1, 2]), f(4, 2), f(2, salt=1), [i64([0, 2, 2, 4])]], "cut", row_partition_types=["ROW_SPLITS"])
    case("RaggedGather", [[i64([0, 2, 2, 4])], f(4, 2), i64([2, 0, 2])], OUTPUT_RAGGED_RANK=1)
    case("RaggedTensorToSparse", [[i64([0, 2, 2, 4])], f(4)])
    case("RaggedTensorToSparse", [[i64([0, 1, 2]), i64([0, 2, 3])], f(3, 2)], "deep")


def bands():
    for tag, make, batch in (("", f, ()), ("batch", f, (2, 3)), ("complex", c, (2,))):
        case("TridiagonalMatMul", [make(*batch, 1, 4), make(*batch, 1, 4, salt=2), make(*batch, 1, 4, salt=4), make(*batch, 4, 3, salt=6)], tag)
        diagonals = make(*batch, 3, 4) + np.array([[0], [5], [0]])
        for pivoting in (True, False):
            case("TridiagonalSolve", [diagonals, make(*batch, 4, 2, salt=2)], tag + ("" if pivoting else "plain"), partial_pivoting=pivoting)


def rest():
    case("IsotonicRegression", [f(3, 6)], output_dtype=tf.float64)
    case("IsotonicRegression", [f(1, 5, t=np.float32)], "single")
    case("ClipByValue", [f(3, 4), np.float64(-0.5), np.float64(1.0)])
    case("ClipByValue", [f(3, 4), f(3, 4, lo=-1, hi=-0.5), f(3, 4, lo=0.5, hi=1)], "each")
    case("Print", [f(3), [f(2, salt=1)]], message="m", summarize=0, first_n=0)
    case("CTCLoss", [f(5, 2, 4, **F32), i64([[0, 0], [0, 1], [1, 0]]), i32(1, 2, 0), i32(5, 4)])


def attr_value(value):
    kind = value.WhichOneof("value")
    if kind == "list":
        return [v for field in (value.list.s, value.list.i, value.list.f, value.list.b, value.list.type) for v in field]
    return value.s if kind == "s" else getattr(value, kind)


def add(op, inputs, attrs, make):
    definition = op_def_registry.get(op)
    named, attrs = {}, dict(attrs)
    for arg, value in zip(definition.input_arg, inputs):
        named[arg.name] = [make(v) for v in value] if isinstance(value, list) else make(value)
    inferred = {a for arg in definition.input_arg for a in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    for attr in definition.attr:
        if attr.HasField("default_value") and attr.name not in attrs and attr.name not in inferred:
            attrs[attr.name] = attr_value(attr.default_value)
    return op_def_library.apply_op(op, name="y", **named, **attrs)


def flat(values):
    if isinstance(values, (list, tuple)):
        return [t for v in values for t in flat(v)]
    return [] if isinstance(values, tf.Operation) else [values]


def trainable(dtype):
    return dtype.is_floating or dtype.is_complex


def main():
    for family in (unary, binary, transforms, reductions, array, linalg, image, nn, factors, signal, quantized, sparse, bands, rest):
        family()
    out = os.path.join(HERE, "golden", "gradients")
    graph, expected, listed = tf.Graph(), tf.Graph(), []
    forward, built = None, []
    with graph.as_default():
        for op, tag, inputs, attrs in CASES:
            for dynamic in (False, True):
                name = op + ("." + tag if tag else "") + (".dynamic" if dynamic else "")
                assert name not in [n for n, _, _ in listed], name
                xs = []

                def make(value):
                    value = np.asarray(value)
                    with tf1.control_dependencies(None):
                        t = tf1.constant(value, name="x")
                        if dynamic and value.dtype.kind in "fc":
                            t = tf1.placeholder_with_default(t, None, name="d")
                    if trainable(t.dtype):
                        xs.append(t)
                    return t

                with tf1.name_scope(name + "/"):
                    ys = [y for y in flat(add(op, inputs, attrs, make)) if trainable(y.dtype)]
                listed.append((name, xs, (ys, [])))
        with tf1.Session(config=PLAIN) as session:  # one run for all: each run takes as long as the graph is large
            shapes = session.run([[tf.shape(y) for y in ys] for _, _, (ys, _) in listed])
        for (name, _, (ys, weights)), dims in zip(listed, shapes):
            for k, y in enumerate(ys):
                w = c(*dims[k], salt=9 + k) if y.dtype.is_complex else f(*dims[k], salt=9 + k)
                weights.append(tf1.constant(w, dtype=y.dtype, name=name + "/w"))
        forward = graph.as_graph_def()
        records = []
        for name, xs, (ys, weights) in listed:
            if not ys:
                continue
            try:
                grads = tf1.gradients(ys, xs, grad_ys=weights)
            except Exception as error:
                print("TensorFlow has no gradient for %s: %s" % (name, str(error).splitlines()[0][:120]))
                continue
            grads = [tf.convert_to_tensor(g) if g is not None else None for g in grads]
            built.append((name, xs, ys, weights, grads))
        with tf1.Session(config=PLAIN) as session:
            found = session.run([[g for g in grads if g is not None] for _, _, _, _, grads in built])
        for (name, xs, ys, weights, grads), values in zip(built, found):
            values = iter(values)
            record = {"name": name, "ys": [y.name for y in ys], "weights": [w.name for w in weights],
                      "xs": [x.name for x in xs], "grads": []}
            with expected.as_default():
                for k, g in enumerate(grads):
                    if g is None:
                        record["grads"].append(None)
                        continue
                    value = next(values)
                    record["grads"].append("%s/g%d" % (name, k))
                    tf1.constant(value, name="%s/g%d" % (name, k))
            records.append(record)
    for name, graph_def in (("graph.pb.gz", forward), ("expected.pb.gz", expected.as_graph_def())):
        with open(os.path.join(out, name), "wb") as file:
            file.write(gzip.compress(graph_def.SerializeToString(deterministic=True), 9, mtime=0))
    with open(os.path.join(out, "cases.json"), "w") as file:
        json.dump({"cases": records}, file, indent=0)
    print("%d cases" % len(records))


main()
