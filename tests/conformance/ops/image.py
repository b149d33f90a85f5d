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
