"""Sparse tensors as messages, in variants, and kept by number; what TensorFlow refuses of them."""

import numpy as np

from cases import ALL

I32, I64 = np.int32, np.int64
AT = np.array([[0, 1], [1, 0], [1, 2], [3, 1]], I64)
DEEP = np.array([[0, 1, 2], [0, 2, 0], [2, 0, 1], [2, 2, 2]], I64)
DIMS, DEPTHS, NONE = np.array([4, 3], I64), np.array([3, 3, 4], I64), np.zeros([0, 2], I64)


def cases(f):
    with f.graph.as_default():
        for d in ALL + ["complex128", "string"]:
            serialized(f, d)
            kept(f, d)
        refused(f)
        kept_refused(f)


def serialized(f, d):
    v = f.values(d, [4])
    f.simple("SerializeSparse", d, [([AT, v, DIMS], {"out_type": "string"}), ([NONE, v[:0], DIMS], {"out_type": "string"}), ([AT[:3], v, DIMS[:1]], {"out_type": "string"}),
                                    ([np.zeros([2, 0], I64), v[:2], DIMS[:0]], {"out_type": "string"}), ([-AT, v, -DIMS], {"out_type": "string"})])
    f.simple("SerializeManySparse", d, [([AT, v, DIMS], {"out_type": "string"}), ([DEEP, v, DEPTHS], {"out_type": "string"}), ([NONE, v[:0], DIMS], {"out_type": "string"}),
                                        ([NONE, v[:0], np.array([0, 3], I64)], {"out_type": "string"})])
    for form in ("string", "variant"):
        f.case("DeserializeSparse", d, tag=form)
        with f.scope():
            one = f.node("SerializeSparse", [AT, v, DIMS], out_type=form)
            other = f.node("SerializeSparse", [AT[[2, 1]], f.values(d, [2], salt=1), np.array([2, 5], I64)], out_type=form)
            empty = f.node("SerializeSparse", [NONE, v[:0], np.array([7, 0], I64)], out_type=form)
            scalar = f.node("SerializeSparse", [np.zeros([2, 0], I64), v[:2], DIMS[:0]], out_type=form)
            rows = f.node("SerializeManySparse", [DEEP, v, DEPTHS], out_type=form, dynamic=True)
            lists = [one, f.node("Pack", [[one, other, empty]], axis=0), f.node("Pack", [[f.node("Pack", [[one, empty]], axis=0), f.node("Pack", [[empty, other]], axis=0)]], axis=0),
                     f.node("Pack", [[empty]], axis=0), f.node("Pack", [[scalar, scalar]], axis=0), rows]
            made = [f.node("DeserializeSparse", [x], dtype=d) for x in lists]
            if form == "string":
                made += [f.node("DeserializeManySparse", [x], dtype=d) for x in (lists[1], rows)]
        f.run(made)


def kept(f, d):
    v = f.values(d, [4])
    f.case("TakeManySparseFromTensorsMap", d)
    name = {"container": "", "shared_name": f.current["name"]}
    with f.scope():
        adds = [f.node("AddSparseToTensorsMap", [AT, v, DIMS], **name), f.node("AddSparseToTensorsMap", [NONE, v[:0], np.array([2, 9], I64)], **name),
                f.node("AddManySparseToTensorsMap", [DEEP, v, DEPTHS], **name), f.node("AddManySparseToTensorsMap", [NONE, v[:0], np.array([0, 3], I64)], **name)]
        take = [f.node("TakeManySparseFromTensorsMap", [np.array(h, I64)], dtype=d, **name) for h in ([1, 0], [4, 3, 2], [5])]
    for a in adds + [adds[0]] + take:
        f.run(a)
    f.case("AddManySparseToTensorsMap", d)
    with f.scope():
        many = f.node("AddManySparseToTensorsMap", [AT, v, DIMS], container="", shared_name="")
        take = f.node("TakeManySparseFromTensorsMap", [many], dtype=d, container="", shared_name=many.op.name)
    f.run([many] + list(take))
    f.run([many] + list(take))


def fails(f, op, tag, *inputs, dtype="float32", kind="InvalidArgumentError", **attrs):
    f.case(op, dtype, tag=tag, expect_error=kind)
    with f.scope():
        f.run(f.node(op, list(inputs), dynamic=True, **attrs))


def refused(f):
    v = f.values("float32", [4])
    for form in ("string", "variant"):
        fails(f, "SerializeSparse", "indices_" + form, AT[0], v, DIMS, out_type=form)
        fails(f, "SerializeSparse", "values_" + form, AT, v[:, None], DIMS, out_type=form)
        fails(f, "SerializeSparse", "shape_" + form, AT, v, DIMS[None], out_type=form)
        for tag, at, values, dims in (("count", AT[:3], v, DIMS), ("rank", AT, v, np.array([4, 3, 2], I64)), ("vectors", AT[:, :1], v, DIMS[:1]), ("outside", AT + 9, v, DIMS),
                                      ("column", AT, v, np.array([4, 1], I64)), ("negative", -AT, v, DIMS), ("order", AT[[2, 0, 1, 3]], v, DIMS), ("order_within", AT[[0, 2, 1, 3]], v, DIMS),
                                      ("twice", AT[[0, 0, 1, 3]], v, DIMS), ("dims", NONE, v[:0], -DIMS), ("huge", NONE, v[:0], np.array([2 ** 40, 2 ** 40], I64))):
            fails(f, "SerializeManySparse", tag + "_" + form, at, values, dims, out_type=form)
    f.case("DeserializeSparse", "float32", tag="good")
    with f.scope():
        good, flat = f.node("SerializeSparse", [AT, v, DIMS], out_type="string"), f.node("SerializeSparse", [AT[:, :1], v, DIMS[:1]], out_type="string")
        boxed = f.node("SerializeSparse", [AT, v, DIMS], out_type="variant")
        words = np.array([b"x", b"", b"\xff\xff\xff\xff\xff\xff\xff"], object)
        short = f.node("SerializeSparse", [AT[:3], v, DIMS], out_type="string")
        strings = f.node("SerializeSparse", [AT, np.array([b"a", b"", b"bcd", b"e"], object), DIMS], out_type="string")
    f.run([good, flat, strings])
    pick = lambda x, order: f.node("GatherV2", [x, f.const(np.array(order, I32), True), np.array(0, I32)], batch_dims=0)
    for tag, make, d in (("type", lambda: good, "float64"), ("type_of_text", lambda: strings, "float32"), ("text", lambda: good, "string"), ("variants", lambda: boxed, "int32"),
                         ("rows", lambda: f.node("Pack", [[good, flat]], axis=0), "float32"), ("order", lambda: pick(good, [1, 0, 2]), "float32"),
                         ("shape_first", lambda: pick(good, [2, 1, 0]), "float32"), ("two", lambda: pick(good, [0, 1]), "float32"), ("none", lambda: pick(f.node("Pack", [[good]], axis=0), []), "float32"),
                         ("words", lambda: f.const(words, True), "float32"), ("scalar", lambda: f.const(words[0], True), "float32"), ("count", lambda: short, "float32")):
        f.case("DeserializeSparse", d, tag=tag, expect_error="InvalidArgumentError")
        with f.scope():
            f.run(f.node("DeserializeSparse", [make()], dtype=d))


def kept_refused(f):
    v = f.values("float32", [4])
    for tag, op, at, values, dims in (("count", "", AT[:3], v, DIMS), ("rank", "", AT, v, np.array([4, 3, 2], I64)), ("dims", "", AT, v, -DIMS), ("indices", "", AT[0], v, DIMS), ("huge", "", AT, v, np.array([2 ** 40, 2 ** 40], I64)),
                                      ("count", "Many", AT[:3], v, DIMS), ("rank", "Many", AT, v, np.array([4, 3, 2], I64)), ("vectors", "Many", AT[:, :1], v, DIMS[:1]), ("outside", "Many", AT + 9, v, DIMS),
                                      ("order", "Many", AT[[2, 0, 1, 3]], v, DIMS), ("twice", "Many", AT[[0, 0, 1, 3]], v, DIMS), ("dims", "Many", NONE, v[:0], -DIMS)):
        fails(f, "Add%sSparseToTensorsMap" % op, tag, at, values, dims, container="", shared_name="")
    for tag, handles, d in (("type", [0], "float64"), ("nothing", [], "float32"), ("unknown", [9], "float32"), ("twice", [0, 0], "float32"), ("ranks", [0, 1], "float32"), ("matrix", [[0]], "float32")):
        f.case("TakeManySparseFromTensorsMap", d, tag=tag, expect_error="InvalidArgumentError")
        name = {"container": "", "shared_name": f.current["name"]}
        with f.scope():
            adds = [f.node("AddSparseToTensorsMap", [AT, v, DIMS], **name), f.node("AddSparseToTensorsMap", [AT[:, :1], v, DIMS[:1]], **name)]
            take = f.node("TakeManySparseFromTensorsMap", [np.array(handles, I64)], dtype=d, dynamic=True, **name)
        f.run(adds[0])
        f.run(adds[1])
        f.run(take)
