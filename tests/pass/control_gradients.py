"""Gradients through control flow as TensorFlow computes them: writes golden/control_gradients/ for the C test.

    .venv/bin/python tests/pass/control_gradients.py

A case is a function of float64 inputs, built with the control flow of both generations where it makes sense; it is
differentiated by its inputs (and variables). Inputs are placeholders with a default, of known and of unknown shape.
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
from tensorflow.python.framework import function  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf.get_logger().setLevel("ERROR")
HERE = os.path.dirname(os.path.abspath(__file__))
F64 = tf.float64


def f(*shape, salt=0):
    rng = np.random.RandomState(zlib.crc32(repr((shape, salt)).encode()) & 0x7FFFFFFF)
    return rng.uniform(-1.0, 1.0, size=shape)


CASES = []


def case(*inputs, modes="12", order=1):
    """A function of tensors that begin as `inputs`; of order 2, the gradient of its gradients' sum is wanted."""

    def keep(fn):
        CASES.append((fn.__name__, fn, inputs, modes, order))
        return fn

    return keep


def loop(n, body, *start, **kw):
    return tf1.while_loop(lambda i, *_: i < n, lambda i, *v: [i + 1] + list(body(i, *v)), [tf.constant(0)] + list(start), **kw)[1:]


@case(f(3), f(3, salt=1))
def plain(x, w):
    return loop(5, lambda i, v: [tf.tanh(v * w) + x], x)[0]


@case(f(2, 3), f(3, 3, salt=1))
def matmul(x, w):
    return loop(4, lambda i, v: [tf.tanh(tf.matmul(v, w))], x)[0]


@case(f(3), f(3, salt=1))
def no_iteration(x, w):
    return loop(0, lambda i, v: [v * w], x)[0]


@case(f(3), f(3, salt=1))
def unused_result(x, w):
    return loop(4, lambda i, a, b: [a + tf.sin(b), b * w], x, w)[0]


@case(f(3), f(3, salt=1))
def forgotten_value(x, w):
    return loop(4, lambda i, a, b: [b * x, b + w * a], x, w)[0]


@case(f(2), f(2, salt=1))
def swapped(x, w):
    a, b = loop(5, lambda i, a, b: [b, a * b], x, w)
    return a + 2.0 * b


@case(f(2), f(1, salt=1))
def growing(x, w):
    return loop(3, lambda i, v: [tf.concat([v, tf.sin(v) * w], 0)], x, shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])[0]


@case(f(3), f(3, salt=1))
def result_of_no_interest(x, w):
    a, _ = loop(3, lambda i, a, b: [a * w, b * a], x, w)
    return a


@case(f(5, 2), f(2, salt=1))
def gathered_rows(table, w):
    ids = tf.constant([[0, 1], [3, 3], [1, 4]])
    return loop(3, lambda i, v: [v + tf.reduce_sum(tf.gather(table, tf.gather(ids, i)) * w, 0)], w)[0]


@case(f(5, 2), f(2, salt=1))
def gathered_and_dense(table, w):
    ids = tf.constant([[0, 1], [3, 3], [1, 4]])
    return loop(3, lambda i, v: [v * tf.reduce_sum(tf.gather(table, tf.gather(ids, i)), 0) + tf.reduce_mean(table, 0)], w)[0]


@case(f(3), f(3, salt=1))
def nested(x, w):
    return loop(3, lambda i, v: [loop(2, lambda j, u: [tf.sin(u * w) + v], v)[0]], x)[0]


@case(f(3), f(3, salt=1))
def nested_of_varying_length(x, w):
    def body(i, v):
        u, = tf1.while_loop(lambda j, u: j < i, lambda j, u: [j + 1, tf.sin(u * w) * v], [tf.constant(0), v + 1.0])[1:]
        return [u + x]

    return loop(4, body, x)[0]


@case(f(2), f(2, salt=1))
def three_deep(x, w):
    def inner(v):
        return loop(2, lambda k, t: [tf.cos(t * w)], v)[0]

    return loop(2, lambda i, v: [v + loop(2, lambda j, u: [inner(u) * v], v)[0]], x)[0]


@case(f(3), f(3, salt=1))
def two_loops_in_one(x, w):
    def body(i, v):
        a = loop(2, lambda j, u: [u * w], v)[0]
        return [loop(3, lambda j, u: [tf.sin(u) + a], a)[0]]

    return loop(2, body, x)[0]


@case(f(3), f(3, salt=1))
def one_after_the_other(x, w):
    a = loop(2, lambda i, v: [tf.sin(v * w)], x)[0]
    return loop(3, lambda i, v: [tf.cos(v + a)], w)[0] * a


@case(f(3), f(3, salt=1))
def cond_both(x, w):
    return tf1.cond(tf.reduce_sum(x) > 0, lambda: x * w, lambda: tf.sin(x) - w)


@case(f(3), f(3, salt=1))
def cond_one_uses(x, w):
    return tf1.cond(tf.reduce_sum(x) > -9, lambda: x * x, lambda: w * w)


@case(f(3), f(3, salt=1))
def cond_other_uses(x, w):
    return tf1.cond(tf.reduce_sum(x) < -9, lambda: x * x, lambda: w * w)


@case(f(3), f(3, salt=1))
def cond_nested(x, w):
    def inner():
        return tf1.cond(tf.reduce_sum(w) > 0, lambda: x * w, lambda: tf1.cond(tf.reduce_sum(w * w) > 0, lambda: tf.exp(w) * x, lambda: x))

    return tf1.cond(tf.reduce_sum(x) > -9, inner, lambda: x + w)


@case(f(3), f(3, salt=1))
def cond_several(x, w):
    a, b = tf1.cond(tf.reduce_sum(x) > -9, lambda: (x * w, x), lambda: (w, w + x))
    return a + tf.sin(b)


@case(f(5, 2), f(2, salt=1))
def cond_rows(table, w):
    v = tf1.cond(tf.reduce_sum(w) > -9, lambda: tf.reduce_sum(tf.gather(table, [1, 3, 1]), 0) * w, lambda: w)
    u = tf1.cond(tf.reduce_sum(w) < -9, lambda: tf.reduce_sum(tf.gather(table, [1, 3, 1]), 0) * w, lambda: w)
    return v + u


@case(f(3), f(3, salt=1))
def cond_in_loop(x, w):
    return loop(5, lambda i, v: [tf1.cond(tf.equal(i % 2, 0), lambda: tf.sin(v * w), lambda: v + x * v)], x)[0]


@case(f(3), f(3, salt=1))
def cond_in_loop_one_side(x, w):
    return loop(5, lambda i, v: [tf1.cond(i < 2, lambda: tf.sin(v) * tf.exp(w), lambda: v)], x)[0]


@case(f(3), f(3, salt=1))
def cond_in_loop_nested(x, w):
    def side(i, v):
        return tf1.cond(i < 3, lambda: tf.sin(v * w), lambda: tf1.cond(i < 4, lambda: v * v * x, lambda: v - w))

    return loop(6, lambda i, v: [tf1.cond(i < 1, lambda: v * x, lambda: side(i, v))], x)[0]


@case(f(3), f(3, salt=1))
def loop_in_cond(x, w):
    a = tf1.cond(tf.reduce_sum(x) > -9, lambda: loop(3, lambda i, v: [tf.sin(v * w)], x)[0], lambda: x)
    b = tf1.cond(tf.reduce_sum(x) < -9, lambda: loop(3, lambda i, v: [tf.sin(v * w)], x)[0], lambda: x * w)
    return a * b


@case(f(3), f(3, salt=1))
def loop_in_cond_in_loop(x, w):
    def body(i, v):
        return [tf1.cond(tf.equal(i % 2, 0), lambda: loop(i + 1, lambda j, u: [tf.sin(u * w) + v], v)[0], lambda: v * x)]

    return loop(4, body, x)[0]


@case(f(3), f(3, salt=1))
def decided_by_value(x, w):
    def body(i, v):
        return [tf1.cond(tf.reduce_sum(v) > 0.3, lambda: v * w - 0.5, lambda: v + 0.4 * tf.exp(x))]

    return loop(6, body, x)[0]


@case(f(4, 3), f(3, 3, salt=1))
def scan(x, w):
    return tf1.scan(lambda a, e: tf.tanh(tf.linalg.matvec(w, a) + e), x)


@case(f(4, 3), f(3, salt=1))
def scan_with_start(x, w):
    return tf1.scan(lambda a, e: a * e, x, initializer=w, reverse=True)


@case(f(4, 3), f(3, salt=1))
def map_fn(x, w):
    return tf1.map_fn(lambda e: tf.sin(e) * w, x)


@case(f(4, 3), f(3, salt=1))
def folds(x, w):
    return tf1.foldl(lambda a, e: a * w + e, x) + tf1.foldr(lambda a, e: tf.sin(a) * e, x)


@case(f(4, 3), f(3, salt=1))
def arrays(x, w):
    array = tf.TensorArray(F64, 4, clear_after_read=False).unstack(x)
    out = tf.TensorArray(F64, 4, clear_after_read=False)

    def body(i, v, out):
        v = tf.sin(v * array.read(i)) + array.read(3 - i)
        return i + 1, v, out.write(i, v * w)

    _, v, out = tf1.while_loop(lambda i, *_: i < 4, body, [0, w, out])
    return v + tf.reduce_sum(out.stack(), 0) * tf.reduce_sum(out.gather([1, 2]), 0)


@case(f(3, 2), f(2, salt=1), modes="1")
def array_concat(x, w):
    out = tf.TensorArray(F64, 3, infer_shape=False)
    _, out = tf1.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, tf.gather(x, tf.range(i + 1)) * w)), [0, out])
    y = out.concat()
    return tf.reduce_sum(tf.sin(tf.reshape(y, [6, 2])), 0)


@case(f(6, 2), f(2, salt=1))
def array_split(x, w):
    array = tf.TensorArray(F64, 3, infer_shape=False).split(x, [1, 3, 2])
    return loop(3, lambda i, v: [v * w + tf.reduce_sum(tf.sin(array.read(i)), 0)], w, shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])[0]


@case(f(2, 4, 3), f(7, 16, salt=1))
def dynamic_rnn(x, w):
    cell = tf1.nn.rnn_cell.LSTMCell(4, name="lstm", dtype=F64, initializer=lambda shape, dtype=None, partition_info=None: w)
    with tf1.variable_scope(tf1.get_default_graph().get_name_scope() + "/rnn", use_resource=False,
                            custom_getter=lambda getter, name, *a, **k: w if "kernel" in name else tf.zeros([16], F64)):
        y, state = tf1.nn.dynamic_rnn(cell, x, sequence_length=[4, 2], dtype=F64, swap_memory=True)
    return tf.reduce_sum(y * y, 1) + tf.concat([state.c], -1)


@case(f(3))
def variables(x):
    name = tf1.get_default_graph().get_name_scope() + "/v"
    v = tf1.get_variable(name, initializer=f(3, salt=5), use_resource=True)
    u = tf1.get_variable(name + "u", initializer=f(5, 3, salt=5), use_resource=True)
    y = loop(3, lambda i, a: [tf.sin(a * v) + tf.reduce_sum(tf.gather(u, [1, 2, 1]), 0)], x)[0]
    return tf1.cond(tf.reduce_sum(x) > -9, lambda: y * v, lambda: y), [v, u]


@case(f(3), modes="1")
def reference_variables(x):
    name = tf1.get_default_graph().get_name_scope() + "/v"
    v = tf1.get_variable(name, initializer=f(3, salt=5), use_resource=False)
    return loop(3, lambda i, a: [tf.sin(a * v)], x)[0], [v]


@case(f(3), f(3, salt=1))
def several_cases(x, w):
    return tf1.case([(tf.reduce_sum(x) > 9, lambda: x * w), (tf.reduce_sum(w) > -9, lambda: tf.sin(x) * w)], default=lambda: x)


@case(f(3), f(3, salt=1), modes="2")
def switch_case(x, w):
    return loop(4, lambda i, v: [tf.switch_case(i, [lambda: v * w, lambda: tf.sin(v), lambda: x + v])], x)[0]


@case(f(3), f(3, salt=1), modes="2")
def called(x, w):
    @tf.function
    def inner(a, b):
        return tf.sin(a) * b, a - b

    @tf.function
    def outer(a, b):
        c, d = inner(a, b)
        return tf.while_loop(lambda i, _: i < 3, lambda i, v: [i + 1, inner(v, c)[0]], [0, d])[1]

    return outer(x, w) * outer(w, x)


@case(f(3), f(3, salt=1), modes="2")
def called_in_loop(x, w):
    @tf.function
    def step(v):
        if tf.reduce_sum(v) > 0:
            return v * w
        return tf.exp(v) - x

    return loop(4, lambda i, v: [step(v)], x)[0]


@case(f(3), f(3, salt=1), modes="1")
def function_with_gradient(x, w):
    @function.Defun(F64, F64, F64, func_name="MyGradient")
    def grad(a, b, dy):
        return 3.0 * dy * b, dy * tf.cos(a)

    @function.Defun(F64, F64, grad_func=grad, func_name="MyFunction")
    def fn(a, b):
        return tf.sin(a) * b

    y = fn(x, w)
    y.set_shape([3])
    return y * 2.0


@case(f(3), f(3, salt=1), modes="1")
def function_without(x, w):
    @function.Defun(F64, F64, func_name="PlainFunction")
    def fn(a, b):
        return tf.sin(a) * b + a

    y = fn(x, w)
    y.set_shape([3])
    return y * y


@case(f(4), f(4, salt=1))
def pieces(x, w):
    def body(i, v):
        a, b = tf.split(v, 2)
        c, _ = tf.unstack(tf.reshape(v * w, [2, 2]))
        return [tf.concat([a * b, tf.cumsum(c)], 0) + v[::-1]]

    return loop(3, body, x)[0]


@case(f(3, 4), f(4, salt=1))
def broadcasts(x, w):
    return loop(3, lambda i, v: [tf.nn.log_softmax(v * w + tf.cast(i, F64)) / (1.0 + v * v) + tf.reduce_max(v, 1, keepdims=True)], x)[0]


@case(f(3), f(3, salt=1))
def in_parallel(x, w):
    return loop(20, lambda i, v, u: [tf.sin(v * w) + 0.1 * u, u * 0.9 + tf.cast(i, F64) * v], x, w, parallel_iterations=4)[0]


@case(f(3), f(3, salt=1))
def one_at_a_time(x, w):
    return loop(6, lambda i, v: [tf.sin(v * w)], x, parallel_iterations=1)[0]


@case(f(3), f(3, salt=1))
def rows_in_branch(x, w):
    def body(i, v):
        table = tf.reshape(tf.tile(w, [4]), [4, 3]) * 0.5
        return [tf1.cond(i < 1, lambda: v * w, lambda: v + tf.reduce_sum(tf.gather(table, [1, 1, 3]), 0))]

    return loop(3, body, x)[0]


@case(f(4, 3), f(3, salt=1), modes="2")
def rows_of_constant_in_branch(x, w):
    return loop(3, lambda i, v: [tf1.cond(i < 1, lambda: v * w, lambda: v + tf.reduce_sum(tf.gather(x, [1, 1, 3]), 0))], w)[0]


@case(f(3), f(3, salt=1), modes="2")
def list_grows_in_branch(x, w):
    array = tf.TensorArray(F64, size=0, dynamic_size=True, element_shape=[3]).write(0, x)
    array = tf.cond(tf.reduce_sum(w) > -9.0, lambda: array.write(1, x * w), lambda: array)
    return tf.reduce_sum(array.stack() ** 2, 0)


@case(f(4, 3), f(3, salt=1), modes="2")
def list_grows_in_branches_of_loop(x, w):
    array = tf.TensorArray(F64, size=0, dynamic_size=True, element_shape=[3])
    _, array = tf.while_loop(
        lambda i, a: i < 4,
        lambda i, a: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a.write(a.size(), x[i] * w), lambda: a)), [0, array])
    return tf.reduce_sum(array.stack() ** 2, 0)


@case(f(3), f(3, salt=1), modes="2", order=2)
def second_of_loop(x, w):
    return loop(3, lambda i, v: [tf.sin(v * w) + x], x)[0]


@case(f(3), f(3, salt=1), modes="2", order=2)
def second_of_loop_in_loop(x, w):
    return loop(3, lambda i, v: [loop(2, lambda j, u: [tf.sin(u * w) + v], v)[0] * x], x)[0]


@case(f(3), f(3, salt=1), modes="2", order=2)
def second_of_branches_in_loop(x, w):
    return loop(4, lambda i, v: [tf1.cond(tf.equal(i % 2, 0), lambda: tf.sin(v * w) * v, lambda: v * x)], x)[0]


@case(f(3), f(3, salt=1), modes="2", order=2)
def second_of_loop_in_branch_in_loop(x, w):
    def body(i, v):
        return [tf1.cond(i > 0, lambda: loop(2, lambda j, u: [tf.sin(u * w) + v], v)[0] * x, lambda: v * v)]

    return loop(3, body, x)[0]


@case(f(3), f(3, salt=1), modes="2", order=2)
def second_of_loops(x, w):
    a = loop(3, lambda i, v: [tf.sin(v * w) * v], x)[0]
    return loop(2, lambda i, v: [tf.tanh(v * a) * x], w)[0] * a


def run_case(name, fn, inputs, mode, dynamic, order):
    """(forward GraphDef, record, values) of one case; None where TensorFlow has no gradient."""
    full = "%s.v%s%s" % (name, mode, ".dynamic" if dynamic else "")
    (tf1.enable_control_flow_v2 if mode == "2" else tf1.disable_control_flow_v2)()
    (tf1.enable_tensor_equality if mode == "2" else tf1.disable_tensor_equality)()
    with tf.Graph().as_default() as graph:
        xs = []
        with tf1.name_scope(full + "/"):
            for k, value in enumerate(inputs):
                shape = [None] * value.ndim if dynamic else value.shape
                xs.append(tf1.placeholder_with_default(tf.constant(value), shape, name="x%d" % k))
            y = fn(*xs)
            y, more = y if isinstance(y, tuple) else (y, [])
            y = tf.identity(y, name="y")
            init = tf.group([v.initializer for v in more], name="init")
        with tf1.Session() as session:
            session.run(init)
            w = tf.constant(f(*session.run(y).shape, salt=9), name=full + "/w")
        forward = graph.as_graph_def()
        try:
            grads = tf1.gradients([y], xs + more, grad_ys=[w])
            if order == 2:
                grads = tf1.gradients([g for g in grads if g is not None], xs + more)
            grads = [None if g is None else tf.identity(tf.convert_to_tensor(g)) for g in grads]
            with tf1.Session() as session:
                session.run(init)
                values = iter(session.run([g for g in grads if g is not None]))
        except Exception as error:
            print("TensorFlow has no gradient for %s: %s" % (full, " ".join(str(error).split())[-200:]))
            return None
    record = {"name": full, "order": order, "y": y.name, "weight": w.name, "init": init.name,
              "grads": [None if g is None else "%s/g%d" % (full, k) for k, g in enumerate(grads)],
              "xs": [x.name for x in xs] + [v.handle.name if hasattr(v, "handle") else v.op.name + ":0" for v in more]}
    return forward, record, [None if g is None else next(values) for g in grads]


def main():
    out = os.path.join(HERE, "golden", "control_gradients")
    os.makedirs(out, exist_ok=True)
    forward, expected, records, functions, expected_values = tf1.GraphDef(), tf.Graph(), [], set(), {}
    for name, fn, inputs, modes, order in CASES:
        for mode in modes:
            for dynamic in (False, True):
                if dynamic and name in ("dynamic_rnn", "function_with_gradient", "function_without"):
                    continue
                made = run_case(name, fn, inputs, mode, dynamic, order)
                if not made:
                    continue
                graph_def, record, values = made
                first = [expected_values.setdefault((name, k), v) for k, v in enumerate(values)]
                if any(a is not None and not np.allclose(a, b, 1e-9, 0) for a, b in zip(first, values)):
                    print("TensorFlow's two generations of loops disagree: %s left out" % record["name"])
                    continue
                forward.node.extend(graph_def.node)
                forward.versions.CopyFrom(graph_def.versions)
                for function_def in graph_def.library.function:
                    assert function_def.signature.name not in functions, function_def.signature.name
                    functions.add(function_def.signature.name)
                forward.library.MergeFrom(graph_def.library)
                records.append(record)
                with expected.as_default():
                    for target, value in zip(record["grads"], values):
                        if target:
                            tf1.constant(value, name=target)
    for name, graph_def in (("graph.pb.gz", forward), ("expected.pb.gz", expected.as_graph_def())):
        with open(os.path.join(out, name), "wb") as file:
            file.write(gzip.compress(graph_def.SerializeToString(deterministic=True), 9, mtime=0))
    with open(os.path.join(out, "cases.json"), "w") as file:
        json.dump({"cases": records}, file, indent=0)
    print("%d cases" % len(records))


main()
