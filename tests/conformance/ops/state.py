"""Variables of both styles and what updates them: each case has variables of its own and several runs in order."""

import numpy as np
import tensorflow as tf

from cases import FLOATS, kernel_dtypes, relative

tf1 = tf.compat.v1
I32, I64 = np.int32, np.int64


class Variable:
    """A variable of either style in the open case's scope."""

    def __init__(self, f, dtype, shape, resource, name="var"):
        self.f, self.dtype, self.shape, self.resource = f, dtype, shape, resource
        if resource:
            scope = f.current["name"]
            self.handle = f.node("VarHandleOp", name=name, dtype=dtype, shape=shape, container="", shared_name=scope + "/" + name, debug_name="", allowed_devices=[])
        else:
            self.handle = f.node("VariableV2", name=name, dtype=dtype, shape=shape)

    def assign(self, value):
        if self.resource:
            return self.f.node("AssignVariableOp", [self.handle, value], dtype=self.dtype)
        return self.f.node("Assign", [self.handle, value])

    def read(self):
        if self.resource:
            return self.f.node("ReadVariableOp", [self.handle], dtype=self.dtype)
        return self.f.node("Identity", [self.handle])


def stateful(f, op, dtype, shapes, make, tolerance, tag="", resource=False, times=2, low=-4, high=4, expect_error=None):
    """Assign, then `times` times: run make(variables) -> the updating op, and fetch all variables."""
    if op.startswith(("Scatter", "Sparse", "Apply")) and dtype == "uint8" or dtype not in kernel_dtypes(op, "dtype" if "Resource" in op and "Scatter" in op and "Nd" not in op else "T"):
        return
    before = len(f.cases)
    with f.graph.as_default():
        f.case(op, dtype, tolerance, tag, expect_error)
        try:
            with f.scope():
                variables = [Variable(f, dtype, list(s), resource, "var%d" % i) for i, s in enumerate(shapes)]
                starts = [x.assign(f.values(dtype, s, low if i == 0 else 0.25, high if i == 0 else 3, 40 + i)) for i, (x, s) in enumerate(zip(variables, shapes))]
                update = make([x.handle for x in variables])
                reads = [x.read() for x in variables]
            f.run(targets=starts)
            for _ in range(times):
                f.run(targets=[update.op if isinstance(update, tf.Tensor) else update])
                f.run(reads)
        except Exception as error:
            f.problems.append("%s: %s" % (f.current["name"], str(error).splitlines()[0][:200]))
            del f.cases[before:]


def cases(f):
    v = f.values
    everything = FLOATS + ["int32", "int64", "uint8", "bool", "complex64", "string"]
    for d in everything:
        with f.graph.as_default():
            f.case("Assign", d)
            with f.scope():
                x = Variable(f, d, [2, 3], False)
                out = x.assign(v(d, [2, 3]))
                again = f.node("Assign", [x.handle, v(d, [2, 3], salt=1)])
            f.run(targets=[out])
            f.run(x.read())
            f.run(again)
            f.run(x.read())
            f.case("AssignVariableOp", d)
            with f.scope():
                x = Variable(f, d, [2, 3], True)
                first, second, read = x.assign(v(d, [2, 3])), x.assign(v(d, [2, 3], salt=1)), x.read()
                initialized = f.node("VarIsInitializedOp", [x.handle])
                shape = f.node("VariableShape", [x.handle], out_type="int64")
            f.run(initialized)
            f.run(targets=[first])
            f.run([initialized, read, shape])
            f.run(targets=[second])
            f.run(read)
    with f.graph.as_default():
        f.case("IsVariableInitialized", "float32")
        with f.scope():
            x = Variable(f, "float32", [2], False)
            is_set, start = f.node("IsVariableInitialized", [x.handle], dtype="float32"), x.assign(v("float32", [2]))
        f.run(is_set)
        f.run(targets=[start])
        f.run(is_set)
        for resource in (False, True):
            f.case("VarHandleOp" if resource else "VariableV2", "float32", tag="uninitialized", expect_error=True)
            with f.scope():
                x = Variable(f, "float32", [2], resource)
                f.run(f.node("Neg", [x.read()]))
        f.case("CountUpTo", "int32")
        with f.scope():
            x = Variable(f, "int32", [], False)
            start, count = x.assign(np.array(1, I32)), f.node("CountUpTo", [x.handle], limit=3)
        f.run(targets=[start])
        f.run(count)
        f.run(count)
        f.run(x.read())
        f.case("ResourceCountUpTo", "int64")
        with f.scope():
            x = Variable(f, "int64", [], True)
            start, count = x.assign(np.array(1, np.int64)), f.node("ResourceCountUpTo", [x.handle], limit=3, T="int64")
        f.run(targets=[start])
        f.run(count)
        f.run(count)
        f.run(x.read())
        # A read before and a read after an update, as control edges say.
        for resource in (False, True):
            f.case("AssignAddVariableOp" if resource else "AssignAdd", "float32", tag="order")
            with f.scope():
                x = Variable(f, "float32", [3], resource)
                start = x.assign(v("float32", [3]))
                before = f.node("Mul", [x.read(), np.array(2, np.float32)])
                with tf1.control_dependencies([before]):
                    add = f.node("AssignAddVariableOp", [x.handle, v("float32", [3], salt=2)], dtype="float32") if resource else f.node("AssignAdd", [x.handle, v("float32", [3], salt=2)])
                with tf1.control_dependencies([add]):
                    after = f.node("Mul", [x.read(), np.array(3, np.float32)])
            f.run(targets=[start])
            f.run([before, after])
            f.run([before, after])
    for d in FLOATS + ["int32", "int64", "uint8", "complex64"]:
        for op in ("AssignAdd", "AssignSub"):
            stateful(f, op, d, [[2, 3]], lambda h, op=op, d=d: f.node(op, [h[0], v(d, [2, 3], salt=1)]), relative(1e-6)(d))
            stateful(f, op + "VariableOp", d, [[2, 3]], lambda h, op=op, d=d: f.node(op + "VariableOp", [h[0], v(d, [2, 3], salt=1)], dtype=d), relative(1e-6)(d), resource=True)
    scatters(f)


def scatters(f):
    v = f.values
    rows = np.array([4, 0, 0, 2], I32)
    for d in FLOATS + ["int32", "int64", "uint8"]:
        rule = relative(2e-6)(d)
        for kind in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update"):
            low, high = (1, 3) if kind in ("Mul", "Div") else (-4, 4)
            index = rows if kind != "Update" else np.array([4, 0, 2], I32)
            stateful(f, "Scatter" + kind, d, [[5, 3]], lambda h: f.node("Scatter" + kind, [h[0], index, v(d, [len(index), 3], low, high)]), rule, times=1)
            stateful(f, "Scatter" + kind, d, [[5, 3]], lambda h: f.node("Scatter" + kind, [h[0], index.astype(I64), v(d, [], low, high)]), rule, tag="scalar", times=1)
            stateful(f, "ResourceScatter" + kind, d, [[5, 3]], lambda h: f.node("ResourceScatter" + kind, [h[0], index, v(d, [len(index), 3], low, high)], dtype=d), rule, resource=True, times=1)
        for kind in ("Add", "Sub", "Update"):
            nd = np.array([[4, 1], [0, 2], [3, 0]], I32)
            stateful(f, "ScatterNd" + kind, d, [[5, 3]], lambda h: f.node("ScatterNd" + kind, [h[0], nd, v(d, [3])]), rule, times=1)
            stateful(f, "ResourceScatterNd" + kind, d, [[5, 3]], lambda h: f.node("ResourceScatterNd" + kind, [h[0], nd[:, :1].copy(), v(d, [3, 3])]), rule, resource=True, times=1)
        cut = [np.array(x, I32) for x in ([1, 0], [5, 3], [2, 2])]
        stateful(f, "StridedSliceAssign", d, [[5, 3]], lambda h: f.node("StridedSliceAssign", [h[0]] + cut + [v(d, [2, 2])]), "exact", times=1)
        stateful(f, "ResourceStridedSliceAssign", d, [[5, 3]], lambda h: f.node("ResourceStridedSliceAssign", [h[0]] + cut + [v(d, [2, 2])]), "exact", resource=True, times=1)
        with f.graph.as_default():
            f.case("ResourceGather", d)
            with f.scope():
                x = Variable(f, d, [5, 3], True)
                start = x.assign(v(d, [5, 3]))
                out = [f.node("ResourceGather", [x.handle, np.array([[0, 4], [2, 2]], t)], dtype=d) for t in (I32, I64)]
            f.run(targets=[start])
            f.run(out)
            f.case("ResourceGatherNd", d)
            with f.scope():
                x = Variable(f, d, [5, 3], True)
                start = x.assign(v(d, [5, 3]))
                out = f.node("ResourceGatherNd", [x.handle, np.array([[0, 1], [4, 2]], I32)], dtype=d)
            f.run(targets=[start])
            f.run(out)
    for op, resource in (("ScatterAdd", False), ("ResourceScatterAdd", True)):
        stateful(f, op, "float32", [[5, 3]], lambda h: f.node(op, [h[0], np.array([9], I32), v("float32", [1, 3])], **({"dtype": "float32"} if resource else {})),
                 "exact", tag="out_of_range", resource=resource, expect_error=True)
