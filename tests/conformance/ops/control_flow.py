"""Switch and Merge, frames, functional If/While, calls; TensorArray, TensorList, stacks, optionals."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import cond_v2, while_v2  # noqa: F401

tf1 = tf.compat.v1
I32 = np.int32


def cases(f):
    with f.graph.as_default():
        primitives(f)
        tf1.disable_control_flow_v2()
        loops(f, "frames")
        tf1.enable_control_flow_v2()
        loops(f, "functional")
        tf1.disable_control_flow_v2()
        functions(f)
        gradients_in_loops(f)
        updates_in_loops(f)
        tensor_arrays(f)
        tensor_lists(f)
        tensor_maps(f)
        stacks(f)
        optionals(f)


def primitives(f):
    v = f.values
    for d in ("float32", "int64", "string", "bool"):
        f.case("Switch", d)
        with f.scope():
            for p in (True, False):
                off, on = f.node("Switch", [v(d, [2]), np.array(p)], dynamic=True)
                f.run(f.node("Merge", [[f.node("Identity", [off]), f.node("Identity", [on])]]))
    f.case("Switch", "float32", tag="dead_fetch", expect_error=True)
    with f.scope():
        off, on = f.node("Switch", [v("float32", [2]), np.array(True)], dynamic=True)
        f.run(f.node("Neg", [off]))
    f.case("Switch", "float32", tag="several_outputs")
    with f.scope():
        for index in (0, 1, 2, 3, -1):  # the last two indices select the last output
            outs = f.node("_SwitchN", [v("float32", [2]), np.array(index, np.int32)], dynamic=True, num_outs=3)
            f.run(f.node("Merge", [[f.node("Neg", [outs[0]]), f.node("Identity", [outs[1]]), f.node("Sin", [outs[2]])]]))
    f.case("ControlTrigger", "bool")
    with f.scope():
        trigger = f.node("ControlTrigger")
        with tf1.control_dependencies([trigger]):
            f.run(f.node("Neg", [v("float32", [2])]))
    f.case("Assert", "bool", tag="passes")
    with f.scope():
        with tf1.control_dependencies([f.node("Assert", [np.array(True), [v("float32", [2])]])]):
            f.run(f.node("Neg", [v("float32", [2])]))
    f.case("Assert", "bool", tag="fails", expect_error=True)
    with f.scope():
        with tf1.control_dependencies([f.node("Assert", [np.array(False), [v("float32", [2])]])]):
            f.run(f.node("Neg", [v("float32", [2])]))
    f.case("RefSwitch", "float32")
    with f.scope():
        var = f.node("VariableV2", name="var", dtype="float32", shape=[2])
        start = f.node("Assign", [var, v("float32", [2])])
        off, on = f.node("RefSwitch", [var, np.array(True)])
        f.run(targets=[start])
        f.run(f.node("Neg", [on]))
    f.case("NoOp", "none")
    with f.scope():
        f.run(targets=[f.node("NoOp")])
    f.case("PlaceholderWithDefault", "float32")
    with f.scope():
        f.run(f.node("PlaceholderWithDefault", [v("float32", [2, 3])], shape=[None, 3]))


def loops(f, style):
    """Through TensorFlow's own builders, with gradients."""
    def case(name):
        f.case("While" if style == "functional" else "Enter", "float32", "relative:1e-5", tag=style + "." + name)
    def const(value):
        return f.const(np.asarray(value, np.float32))
    case("count")
    with f.scope():
        f.run(tf1.while_loop(lambda i, x: i < 7, lambda i, x: (i + 1, x * 1.5 + 1), [tf1.constant(0), const([1, 2])]))
    case("none")  # the loop has no iteration at all
    with f.scope():
        f.run(tf1.while_loop(lambda i, x: i < 0, lambda i, x: (i + 1, x * 1.5), [tf1.constant(0), const([1, 2])]))
    case("nested")
    with f.scope():
        def outer(i, x):
            _, x = tf1.while_loop(lambda j, y: j < i, lambda j, y: (j + 1, y + tf1.cast(i * j, tf.float32)), [tf1.constant(0), x])
            return i + 1, x
        f.run(tf1.while_loop(lambda i, x: i < 5, outer, [tf1.constant(0), const([0.5])]))
    case("parallel_1")
    with f.scope():
        f.run(tf1.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, tf1.tanh(x)), [tf1.constant(0), const([0.5])], parallel_iterations=1))
    case("gradient")
    with f.scope():
        x, w = const([0.5, -1]), const([[0.3, 0.2], [-0.4, 0.9]])
        _, y = tf1.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, tf1.tanh(tf1.matmul(h, w))), [tf1.constant(0), tf1.reshape(x, [1, 2])], shape_invariants=[tf.TensorShape([]), tf.TensorShape([1, 2])])
        f.run([y] + tf1.gradients(y, [x, w]))
    case("cond_in_loop")
    with f.scope():
        x = const([2.0])
        _, y = tf1.while_loop(lambda i, h: i < 6, lambda i, h: (i + 1, tf1.cond(tf1.equal(i % 2, 0), lambda: h * 1.5, lambda: h - 0.5)), [tf1.constant(0), x], shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])
        f.run([y] + tf1.gradients(y, [x]))
    f.case("If" if style == "functional" else "Merge", "float32", "relative:1e-5", tag=style + ".cond")
    with f.scope():
        x = const([2.0, 3.0])
        made = []
        for p in (True, False):
            y = tf1.cond(f.const(np.array(p), dynamic=True), lambda: tf1.square(x), lambda: tf1.exp(-x))
            made += [y] + tf1.gradients(y, [x])
        f.run(made)
    f.case("Switch" if style == "frames" else "StatelessIf", "float32", "relative:1e-5", tag=style + ".case")
    with f.scope():
        i = f.const(np.array(2, I32), dynamic=True)
        x = const([2.0, 3.0])
        f.run(tf1.case([(tf1.equal(i, 1), lambda: x), (tf1.equal(i, 2), lambda: x * 2)], default=lambda: x * 3))
    case("tensor_array")
    with f.scope():
        x = const([[1, 2], [3, 4], [5, 6]])
        source = tf1.TensorArray(tf.float32, 3, element_shape=[2], clear_after_read=False).unstack(x)
        made = tf1.TensorArray(tf.float32, 3, element_shape=[2])
        _, _, made = tf1.while_loop(lambda i, s, a: i < 3, lambda i, s, a: (i + 1, s + source.read(i), a.write(i, tf1.tanh(s) * source.read(i))), [tf1.constant(0), tf1.zeros([2]), made])
        y = made.stack()
        f.run([y] + tf1.gradients(y, [x]))
    case("dynamic_rnn")
    with f.scope():
        x, w = const(f.values("float32", [2, 5, 3])), const(f.values("float32", [7, 4], -1, 1))
        class Cell(tf1.nn.rnn_cell.RNNCell):
            state_size = output_size = 4
            def __call__(self, inputs, state, scope=None):
                h = tf1.tanh(tf1.matmul(tf1.concat([inputs, state], 1), w))
                return h, h
        x.set_shape([2, 5, 3])
        y, state = tf1.nn.dynamic_rnn(Cell(), x, sequence_length=f.const(np.array([5, 2], I32)), dtype=tf.float32)
        f.run([y, state] + tf1.gradients(tf1.reduce_sum(y) + tf1.reduce_sum(state), [x, w]))
    case("scan")
    with f.scope():
        x = const([1, 2, 3, 4])
        y = tf1.scan(lambda a, b: a * 0.5 + b, x)
        f.run([y] + tf1.gradients(y, [x]))


def functions(f):
    x = f.const(f.values("float32", [2, 3]), dynamic=True)

    @tf.function
    def square_sum(a, b):
        return tf1.square(a) + b, tf1.reduce_sum(a)

    @tf.function
    def outer(a):
        y, s = square_sum(a, a)
        return square_sum(y, s)

    f.case("PartitionedCall", "float32", "relative:1e-5")
    with f.scope():
        y, s = outer(x)
        f.run([y, s] + tf1.gradients([y, s], [x]))
    var = None

    @tf.function
    def bump(handle, amount):
        tf.raw_ops.AssignAddVariableOp(resource=handle, value=amount)
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

    f.case("StatefulPartitionedCall", "float32", "relative:1e-6")
    with f.scope():
        var = f.node("VarHandleOp", name="var", dtype="float32", shape=[3], container="", shared_name=f.current["name"], debug_name="", allowed_devices=[])
        start = f.node("AssignVariableOp", [var, f.values("float32", [3])], dtype="float32")
        out = bump(var, f.const(f.values("float32", [3], salt=1)))
    f.run(targets=[start])
    f.run(out)
    f.run(out)

    @function.Defun(tf.float32, tf.float32)
    def product(a, b):
        return tf1.tanh(a) * b

    f.case("product", "float32", "relative:1e-5", tag="function_as_op")
    with f.scope():
        y = product(x, x)
        f.run([y] + tf1.gradients(y, [x]))  # SymbolicGradient


def gradients_in_loops(f):
    """A function called in a loop: the loop's gradient calls the function's, which nobody wrote out."""
    @function.Defun(tf.float32, tf.float32)
    def weighed(a, b):
        return tf.reduce_sum(tf.sin(a) * b)

    def body(i, z):
        step = z + 0.1 * weighed(z, 0.5 * z) * z
        step.set_shape([3, 4])
        return i + 1, step

    for kind in ("frames", "functional"):
        if kind == "functional":
            tf1.enable_control_flow_v2()
        f.case("SymbolicGradient", "float32", "relative:1e-5", kind)
        with f.scope():
            x = f.const(f.values("float32", [3, 4]))
            _, z = tf.while_loop(lambda i, _: i < 3, body, [0, x])
            f.run([z] + tf1.gradients(z, [x]))
    tf1.disable_control_flow_v2()


def updates_in_loops(f):
    """Updates that depend on nothing that the loop changes: as many as iterations, none when the loop ends."""
    @tf.function
    def bump(handle, amount):
        tf.raw_ops.AssignAddVariableOp(resource=handle, value=amount)
        return tf.random.uniform([2], seed=5)

    def plain(var, x, on):
        return tf.raw_ops.AssignAddVariableOp(resource=var, value=x)

    def branch(var, x, on):
        return tf.cond(on, lambda: bump(var, x), lambda: tf.zeros([2]))

    def inner_loop(var, x, on):
        def body(a):
            with tf1.control_dependencies([bump(var, x)]):
                return [a + 1.0]
        return tf.while_loop(lambda a: a < 3.0, body, [x[0]])[0]

    tf1.enable_control_flow_v2()
    for act in (plain, lambda var, x, on: bump(var, x), branch, inner_loop):
        f.case("While", "float32", "relative:1e-6", tag="update." + (act.__name__ if act.__name__ != "<lambda>" else "call"))
        with f.scope():
            x, on = f.const(np.array([1, 0.5], np.float32), dynamic=True), f.const(np.array(True), dynamic=True)
            x.set_shape([2])
            on.set_shape([])
            var = f.node("VarHandleOp", name="var", dtype="float32", shape=[2], container="", shared_name=f.current["name"], debug_name="", allowed_devices=[])
            start = f.node("AssignVariableOp", [var, f.values("float32", [2])], dtype="float32")

            def body(i, y):
                with tf1.control_dependencies([act(var, x, on)]):
                    return i + 1, y * 1.5 + tf.random.uniform(tf.shape(x), seed=3)
            i, y = tf.while_loop(lambda i, _: i < 4, body, [0, x], parallel_iterations=1)
            with tf1.control_dependencies([y]):
                left = tf.raw_ops.ReadVariableOp(resource=var, dtype=tf.float32)
        f.run(targets=[start])
        f.run([i, y, left])
        f.run([i, y, left])
    tf1.disable_control_flow_v2()


def tensor_arrays(f):
    v = f.values
    for d in ("float32", "int32", "string", "bool"):
        f.case("TensorArrayV3", d)
        with f.scope():
            handle, flow = f.node("TensorArrayV3", [np.array(3, I32)], dtype=d, element_shape=None, dynamic_size=True, clear_after_read=False, identical_element_shapes=True, tensor_array_name="")
            for i in (0, 2, 1, 3):
                flow = f.node("TensorArrayWriteV3", [handle, np.array(i, I32), v(d, [2, 2], salt=i), flow])
            read = f.node("TensorArrayReadV3", [handle, np.array(2, I32), flow], dtype=d)
            size = f.node("TensorArraySizeV3", [handle, flow])
            gathered = f.node("TensorArrayGatherV3", [handle, np.array([3, 0], I32), flow], dtype=d, element_shape=None)
            joined = f.node("TensorArrayConcatV3", [handle, flow], dtype=d, element_shape_except0=None)
        f.run([read, size, gathered, joined])
        f.case("TensorArrayScatterV3", d)
        with f.scope():
            handle, flow = f.node("TensorArrayV3", [np.array(3, I32)], dtype=d, element_shape=None, clear_after_read=False, tensor_array_name="")
            flow = f.node("TensorArrayScatterV3", [handle, np.array([2, 0, 1], I32), v(d, [3, 2]), flow])
            f.run(f.node("TensorArrayGatherV3", [handle, np.array([0, 1, 2], I32), flow], dtype=d, element_shape=None))
        f.case("TensorArraySplitV3", d)
        with f.scope():
            handle, flow = f.node("TensorArrayV3", [np.array(2, I32)], dtype=d, element_shape=None, clear_after_read=False, tensor_array_name="")
            flow = f.node("TensorArraySplitV3", [handle, v(d, [5, 2]), np.array([2, 3], np.int64), flow])
            f.run([f.node("TensorArrayReadV3", [handle, np.array(i, I32), flow], dtype=d) for i in (0, 1)])
    f.case("TensorArrayGradV3", "float32")
    with f.scope():
        handle, flow = f.node("TensorArrayV3", [np.array(2, I32)], dtype="float32", element_shape=None, clear_after_read=False, tensor_array_name="")
        flow = f.node("TensorArrayScatterV3", [handle, np.array([0, 1], I32), v("float32", [2, 3]), flow])
        grad, grad_flow = f.node("TensorArrayGradV3", [handle, flow], source="gradients")
        for i, salt in ((0, 1), (1, 2), (0, 3)):  # writing twice adds the values
            grad_flow = f.node("TensorArrayWriteV3", [grad, np.array(i, I32), v("float32", [3], salt=salt), grad_flow])
        f.run(f.node("TensorArrayGatherV3", [grad, np.array([0, 1], I32), grad_flow], dtype="float32", element_shape=None))
    f.case("TensorArrayReadV3", "float32", tag="twice", expect_error=True)
    with f.scope():
        handle, flow = f.node("TensorArrayV3", [np.array(2, I32)], dtype="float32", element_shape=None, tensor_array_name="")
        flow = f.node("TensorArrayWriteV3", [handle, np.array(0, I32), v("float32", [2]), flow])
        with tf1.control_dependencies([f.node("TensorArrayReadV3", [handle, np.array(0, I32), flow], dtype="float32")]):
            f.run(f.node("TensorArrayReadV3", [handle, np.array(0, I32), flow], dtype="float32"))


def tensor_lists(f):
    v, shape = f.values, np.array([2], I32)
    for d in ("float32", "int64", "string"):
        f.case("TensorListPushBack", d)
        with f.scope():
            made = f.node("EmptyTensorList", [shape, np.array(-1, I32)], element_dtype=d)
            for i in range(3):
                made = f.node("TensorListPushBack", [made, v(d, [2], salt=i)])
            popped, last = f.node("TensorListPopBack", [made, shape], element_dtype=d)
            f.run([f.node("TensorListLength", [made]), f.node("TensorListLength", [popped]), last,
                   f.node("TensorListStack", [made, shape], element_dtype=d, num_elements=-1), f.node("TensorListElementShape", [made], shape_type="int32")])
        f.case("TensorListPushBackBatch", d)
        with f.scope():
            lists = f.node("Pack", [[f.node("TensorListFromTensor", [v(d, [n, 2]), shape]) for n in (1, 3)]], axis=0)
            made = f.node("TensorListPushBackBatch", [lists, v(d, [2, 2], salt=5)])
            f.run([f.node("TensorListStack", [f.node("GatherV2", [made, np.array(i, I32), np.array(0, I32)], batch_dims=0), shape], element_dtype=d, num_elements=-1) for i in (0, 1)])
        f.case("TensorListReserve", d)
        with f.scope():
            made = f.node("TensorListReserve", [shape, np.array(3, I32)], element_dtype=d)
            made = f.node("TensorListSetItem", [made, np.array(1, I32), v(d, [2])], resize_if_index_out_of_bounds=False)
            f.run([f.node("TensorListGetItem", [made, np.array(i, I32), shape], element_dtype=d) for i in (1, 0)])
        f.case("TensorListFromTensor", d)
        with f.scope():
            made = f.node("TensorListFromTensor", [v(d, [4, 2]), shape])
            f.run([f.node("TensorListStack", [made, shape], element_dtype=d, num_elements=4), f.node("TensorListGather", [made, np.array([3, 0], I32), shape], element_dtype=d)]
                  + list(f.node("TensorListConcatV2", [made, shape, np.array([], np.int64)], element_dtype=d)))


def stacks(f):
    f.case("StackV2", "float32")
    with f.scope():
        handle = f.node("StackV2", [np.array(-1, I32)], elem_type="float32", stack_name="")
        one = f.node("StackPushV2", [handle, f.values("float32", [2])])
        with tf1.control_dependencies([one]):
            two = f.node("StackPushV2", [handle, f.values("float32", [3])])
        with tf1.control_dependencies([two]):
            first = f.node("StackPopV2", [handle], elem_type="float32")
        with tf1.control_dependencies([first]):
            second = f.node("StackPopV2", [handle], elem_type="float32")
        f.run([first, second])
    f.case("StackPopV2", "float32", tag="empty", expect_error=True)
    with f.scope():
        handle = f.node("StackV2", [np.array(-1, I32)], elem_type="float32", stack_name="")
        f.run(f.node("StackPopV2", [handle], elem_type="float32"))


def tensor_maps(f):
    v = f.values
    for d in ("float32", "int64", "string"):
        keys = [v(d, [2], salt=i) for i in range(3)]
        key = dict(key_dtype=d)
        f.case("TensorMapInsert", d)
        with f.scope():
            none = f.node("EmptyTensorMap")
            one = f.node("TensorMapInsert", [none, keys[0], v("float32", [3])])
            two = f.node("TensorMapInsert", [one, keys[1], v("float32", [2, 2])])
            again = f.node("TensorMapInsert", [two, keys[0], v("float32", [4])])
            less = f.node("TensorMapErase", [again, keys[0]], value_dtype="float32")
            f.run([f.node("TensorMapSize", [m]) for m in (none, one, two, again, less)] + [f.node("TensorMapHasKey", [m, k]) for m in (none, one, less) for k in keys]
                  + [f.node("TensorMapLookup", [m, k], value_dtype="float32") for m, k in ((one, keys[0]), (two, keys[0]), (two, keys[1]), (again, keys[0]), (less, keys[1]))]
                  + [f.node("TensorMapStackKeys", [m], **key) for m in (one, less)])
        for tag, op, of in (("erased", "TensorMapLookup", less), ("missing", "TensorMapErase", none)):
            f.case(op, d, tag=tag, expect_error=True)
            with f.scope():
                made = f.node(op, [of, keys[0]], value_dtype="float32")
                f.run(made if op == "TensorMapLookup" else f.node("TensorMapSize", [made]))
        f.case("TensorMapStackKeys", d, tag="empty", expect_error=True)
        with f.scope():
            f.run(f.node("TensorMapStackKeys", [none], **key))


def optionals(f):
    v = f.values
    f.case("FakeParam", "float32", "shape")
    with f.scope():
        f.run([f.node("FakeParam", dtype=d, shape=s) for d in ("float32", "int64", "bool") for s in ([2, 3], [None, 4], [], None)])
    f.case("OptionalFromValue", "float32")
    with f.scope():
        made = f.node("OptionalFromValue", [[v("float32", [2, 3])]])
        f.run([f.node("OptionalGetValue", [made], output_types=["float32"], output_shapes=[[2, 3]]), f.node("OptionalHasValue", [made]), f.node("OptionalHasValue", [f.node("OptionalNone")])])
    f.case("OptionalGetValue", "float32", tag="none", expect_error=True)
    with f.scope():
        f.run(f.node("OptionalGetValue", [f.node("OptionalNone")], output_types=["float32"], output_shapes=[[2]]))
