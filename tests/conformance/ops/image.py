"""Resizing, cropping, colours, boxes."""

import numpy as np

from cases import relative

I32 = np.int32
MODES = ({"align_corners": False, "half_pixel_centers": False}, {"align_corners": True, "half_pixel_centers": False}, {"align_corners": False, "half_pixel_centers": True})


def cases(f):
    v, x = f.values, ["float32", "float64", "float16", "uint8", "int32"]
    sizes = [np.array(s, I32) for s in ([7, 9], [3, 2], [4, 5])]
    for op in ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"):
        f.sweep(op, lambda d: [([v(d, [2, 4, 5, 3], 0, 100), s], m) for s in sizes for m in MODES], relative(1e-5), dtypes=x)
    f.sweep("ResizeArea", lambda d: [([v(d, [2, 4, 5, 3], 0, 100), s], {"align_corners": a}) for s in sizes for a in (False, True)], relative(1e-5), dtypes=x)
    for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
        f.sweep(op, lambda d: [([v("float32", [2, 7, 9, 3]), v(d, [2, 4, 5, 3])], m) for m in MODES], relative(1e-5), dtypes=["float32"])
    f.sweep("ResizeNearestNeighborGrad", lambda d: [([v(d, [2, 7, 9, 3]), np.array([4, 5], I32)], m) for m in MODES], relative(1e-5), dtypes=["float32", "float64", "int32"])
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [0.5, 0.5, 1.5, 1.25], [0.9, 0.1, 0.1, 0.9]], np.float32)
    index, size = np.array([0, 1, 0], I32), np.array([3, 4], I32)
    f.sweep("CropAndResize", lambda d: [([v(d, [2, 5, 6, 2], 0, 100), boxes, index, size], {"method": m, "extrapolation_value": 1.5}) for m in ("bilinear", "nearest")], relative(1e-5), dtypes=x)
    f.simple("CropAndResizeGradBoxes", "float32", [([v("float32", [3, 3, 4, 2]), v("float32", [2, 5, 6, 2], 0, 100), boxes, index], {})], "relative:1e-5")
    f.simple("CropAndResizeGradImage", "float32", [([v("float32", [3, 3, 4, 2]), boxes, index, np.array([2, 5, 6, 2], I32)], {"T": "float32", "method": m}) for m in ("bilinear", "nearest")], "relative:1e-5", dynamic=False)
    f.sweep("RGBToHSV", lambda d: [([v(d, [2, 4, 3], 0, 1)], {})], relative(1e-5, 1), dtypes=["float32", "float64"])
    f.sweep("HSVToRGB", lambda d: [([v(d, [2, 4, 3], 0, 1)], {})], relative(1e-5, 1), dtypes=["float32", "float64"])
    b = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]], np.float32)
    f.simple("NonMaxSuppressionV3", "float32", [([b, np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32), np.array(n, I32), np.array(0.5, np.float32), np.array(s, np.float32)], {})
                                                for n, s in ((3, 0.0), (10, 0.4))])
    for op, factors in (("AdjustContrastv2", (0.5, 2.0, -1.0)), ("AdjustHue", (0.1, -0.7, 1.9, 0.0)), ("AdjustSaturation", (0.5, 3.0, 0.0))):
        f.simple(op, "float32", [([x, np.float32(by)], {}) for x in (v("float32", [2, 4, 5, 3], 0, 1), v("float32", [3, 3, 3], -1, 1), np.full([1, 2, 3], 0.5, np.float32), np.zeros([0, 2, 3, 3], np.float32)) for by in factors], relative(1e-5, 1)("float32"))
    for op in ("AdjustHue", "AdjustSaturation"):
        f.case(op, "float32", tag="channels", expect_error="InvalidArgumentError")
        with f.graph.as_default(), f.scope():
            f.run(f.node(op, [v("float32", [2, 4, 4]), np.float32(0.5)], dynamic=True))
    sampled(f)
    suppressed(f)
    projected(f)


def suppressed(f):
    """Boxes that overlap much, scores with ties."""
    n, size = 24, np.array(15, I32)
    corners = f.values("float32", [n, 2], 0, 1)
    boxes = np.concatenate([corners, corners + f.values("float32", [n, 2], 0.1, 0.8, 1)], 1)
    scores = np.round(f.values("float32", [n], 0, 1, 2) * 10) / 10
    for d in ("float32", "float16"):
        b, s, number = boxes.astype(d), scores.astype(d), lambda v, d=d: np.array(v, d)
        f.simple("NonMaxSuppressionV4", d, [([b, s, np.array(m, I32), number(t), number(0.15)], {"pad_to_max_output_size": p}) for t in (0.25, 0.625) for m, p in ((5, False), (40, True))])
        f.simple("NonMaxSuppressionV5", d, [([b, s, size, number(t), number(0.15), number(g)], {"pad_to_max_output_size": p}) for t in (0.25, 0.625) for g in (0, 0.5) for p in (False, True)], "relative:1e-5")
    f.simple("NonMaxSuppressionWithOverlaps", "float32", [([f.values("float32", [n, n], 0, 1), scores, size, np.float32(t), np.float32(0.15)], {}) for t in (0.5, 0.9)])
    several, classes = np.stack([boxes[:, None, :], boxes[::-1, None, :] * np.float32(0.75)]), f.values("float32", [2, n, 3], 0, 1, 3)
    f.simple("CombinedNonMaxSuppression", "float32", [([np.tile(several, [1, 1, q, 1]), classes, np.array(4, I32), np.array(m, I32), np.float32(0.4), np.float32(0.2)], {"pad_per_class": p, "clip_boxes": c})
                                                      for q in (1, 3) for m in (10, 20) for p in (False, True) for c in (False, True)])
    f.simple("NonMaxSuppressionV4", "float32", [([boxes, scores, size, np.float32(1.5), np.float32(0)], {})], tag="threshold", expect_error="InvalidArgumentError")


def projected(f):
    transforms = np.array([[0.9, 0.1, 0.3, -0.2, 1.1, 0.4, 0, 0], [1.5, 0, -2, 0.3, 0.5, 1, 0.02, -0.01]], np.float32)
    size = np.array([7, 5], I32)
    for d in ("float32", "float64", "float16", "uint8", "int32", "int64"):
        x = f.values(d, [2, 6, 5, 3], 0, 100)
        f.simple("ImageProjectiveTransformV2", d, [([x, transforms, size], {"interpolation": i, "fill_mode": m}) for i in ("NEAREST", "BILINEAR") for m in ("CONSTANT", "REFLECT", "WRAP", "NEAREST")], relative(1e-5)(d))
        f.simple("ImageProjectiveTransformV3", d, [([x, t, size, np.float32(7)], {"interpolation": i, "fill_mode": m}) for t in (transforms, transforms[:1]) for i in ("NEAREST", "BILINEAR") for m in ("CONSTANT", "WRAP")], relative(1e-5)(d))
    f.simple("ImageProjectiveTransformV2", "float32", [([f.values("float32", [2, 6, 5, 3]), transforms[:, :7], size], {"interpolation": "NEAREST"})], tag="seven", expect_error="InvalidArgumentError")


def sampled(f):
    v = f.values
    two = lambda a, b: np.array([a, b], np.float32)  # noqa: E731
    size = lambda a, b: np.array([a, b], np.int32)  # noqa: E731
    places = [(size(9, 3), two(1.5, 0.6), two(0, 0.5)), (size(4, 7), two(0.4, 1), two(0.25, -1.5)), (size(5, 6), two(1, 1), two(0, 0))]
    for kernel in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"):
        attrs = [{"kernel_type": kernel, "antialias": a} for a in (True, False)]
        f.simple("ScaleAndTranslate", "float32", [([v("float32", [2, 6, 5, 3]), *p], a) for p in places for a in attrs], "relative:1e-5:4", kernel)
        f.simple("ScaleAndTranslateGrad", "float32", [([v("float32", [2, *p[0], 3]), v("float32", [2, 6, 5, 3]), *p[1:]], a) for p in places for a in attrs], "relative:1e-5:4", kernel)
    for d in ("uint8", "int32", "float16", "float64"):
        f.simple("ScaleAndTranslate", d, [([v(d, [2, 6, 5, 3], 0, 200), *places[0]], {})], "relative:1e-5:200")
    f.simple("ScaleAndTranslate", "float32", [([v("float32", [2, 6, 5, 3]), size(2, 2), two(0, 1), two(0, 0)], {})], tag="no_scale", expect_error="InvalidArgumentError")
    boxes = np.array([[[0.1, 0.2, 0.8, 0.7], [-0.5, 0.3, 0.6, 1.5], [0.9, 0.9, 0.1, 0.1], [2, 2, 3, 3]], [[0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5], [-2, 0, 0.4, 1], [0.2, -0.01, 0.6, 0.99]]], np.float32)
    for d in ("float32", "float16"):
        images = [v(d, [2, 7, 9, c]) for c in (1, 3, 4)]
        f.simple("DrawBoundingBoxes", d, [([x, boxes], {}) for x in images])
        f.simple("DrawBoundingBoxesV2", d, [([x, boxes, v("float32", [3, 4], 0, 1)], {}) for x in images])
