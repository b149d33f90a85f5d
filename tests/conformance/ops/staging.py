"""Staging areas by key, and layouts of images by name."""

import numpy as np

I32, I64 = np.int32, np.int64


def cases(f):
    with f.graph.as_default():
        for prefix in ("", "Ordered"):
            maps(f, prefix)
        formats(f)


def maps(f, prefix):
    kinds = {"dtypes": ["float32", "int32"]}
    both, first, second = np.array([0, 1], I32), np.array([0], I32), np.array([1], I32)
    f.case(prefix + "MapStage", "float32")
    named = {"capacity": 0, "memory_limit": 0, "container": "", "shared_name": f.current["name"]}
    def put(key, a, b):
        return f.node(prefix + "MapStage", [np.array(key, I64), both, [np.array(a, np.float32), np.array(b, I32)]], **kinds, **named)
    def get(op, key, indices=both, dtypes=("float32", "int32")):
        return f.node(prefix + op, ([] if key is None else [np.array(key, I64)]) + [indices], dtypes=list(dtypes), **named)
    with f.scope():
        puts = [put(5, [1, 2], 3), put(-3, 4, [5]), put(9, [[7]], 8), put(5, 0, 0)]
        size = [f.node(prefix + "MapSize", **kinds, **named), f.node(prefix + "MapIncompleteSize", **kinds, **named)]
        clear = f.node(prefix + "MapClear", **kinds, **named)
        gets = [get("MapPeek", -3), get("MapPeek", 9, second, ["int32"]), get("MapPeek", 5), get("MapUnstage", 9), get("MapUnstage", 5, second, ["int32"]), get("MapUnstage", 5, first, ["float32"]), get("MapUnstageNoKey", None)]
    for p in puts:
        f.run(targets=[p])
        f.run(size)
    for g in gets:
        f.run(g)
        f.run(size)
    f.run(targets=[puts[0]])
    f.run(targets=[clear])
    f.run(size)
    if prefix:
        for p in puts[:3]:
            f.run(targets=[p])
        for _ in range(3):
            f.run(gets[-1])
    for tag, indices, values in (("order", [1, 0], [np.array(3, I32), np.array(1, np.float32)]), ("outside", [5], [np.array(1, np.float32)])):
        f.case(prefix + "MapStage", "float32", tag=tag, expect_error=True)
        with f.scope():
            bad = f.node(prefix + "MapStage", [np.array(1, I64), np.array(indices, I32), values], **kinds, **{**named, "shared_name": f.current["name"]})
        f.run(targets=[bad])


def formats(f):
    for d in ("int32", "int64"):
        to = lambda *v: np.array(v, d)
        f.simple("DataFormatDimMap", d, [([to(0, 1, 2, 3, -1, -2, -3, -4).reshape(2, 4)], {}), ([to(1)[0]], {}), ([to()], {}), ([to(0, 1, 2, 3, 4, -1)], {"src_format": "NDHWC", "dst_format": "NCDHW"}),
                                         ([to(0, 1, 2, 3)], {"src_format": "NHWC", "dst_format": "HWNC"}), ([to(0, 3, 2)], {"src_format": "NCHW", "dst_format": "NHWC"})])
        f.simple("DataFormatVecPermute", d, [([to(1, 2, 3, 4)], {}), ([to(7, 8)], {}), ([np.arange(8).reshape(4, 2).astype(d)], {}), ([np.arange(4).reshape(2, 2).astype(d)], {}),
                                             ([to(1, 2, 3, 4, 5)], {"src_format": "NDHWC", "dst_format": "NCDHW"}), ([to(1, 2, 3)], {"src_format": "NDHWC", "dst_format": "NCDHW"}),
                                             ([to(1, 2, 3, 4)], {"src_format": "NHWC", "dst_format": "HWNC"}), ([to(7, 8)], {"src_format": "NHWC", "dst_format": "NWHC"}), ([to(7, 8)], {"src_format": "NCHW", "dst_format": "NHWC"})])
    for op, tag, x, source, destination in (("VecPermute", "three", [1, 2, 3], "NHWC", "NCHW"), ("VecPermute", "scalar", 1, "NHWC", "NCHW"), ("VecPermute", "wide", [[1, 2, 3]] * 4, "NHWC", "NCHW"), ("VecPermute", "other", [1, 2, 3, 4], "NHWC", "ABCD"),
                                            ("VecPermute", "twice", [1, 2, 3, 4], "NHHC", "NHWC"), ("DimMap", "short", [0], "NHC", "NCH"), ("DimMap", "long", [0], "NHWC", "NCDHW"), ("DimMap", "other", [0], "NHWC", "NHWX")):
        f.case("DataFormat" + op, "int32", tag=tag, expect_error="InvalidArgumentError")
        with f.scope():
            f.run(f.node("DataFormat" + op, [np.array(x, I32)], src_format=source, dst_format=destination, dynamic=True))
