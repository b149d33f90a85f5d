"""Building blocks: variables with seeded initialisers, the LSTM cell, the training operation."""

import tensorflow as tf

tf1 = tf.compat.v1


def uniform(name, shape, scale):
    return tf1.get_variable(name, shape, initializer=tf1.random_uniform_initializer(-scale, scale))


def normal(name, shape, stddev):
    return tf1.get_variable(name, shape, initializer=tf1.random_normal_initializer(stddev=stddev))


def truncated(name, shape, stddev):
    return tf1.get_variable(name, shape, initializer=tf1.truncated_normal_initializer(stddev=stddev))


def zeros(name, shape):
    return tf1.get_variable(name, shape, initializer=tf1.zeros_initializer())


def lstm_variables(inputs, hidden, scale=0.08):
    # kernel [inputs + hidden, 4 * hidden], with gates in the order input, candidate, forget, output
    return uniform("kernel", [inputs + hidden, 4 * hidden], scale), zeros("bias", [4 * hidden])


def lstm_cell(x, state, kernel, bias, forget_bias=1.0):
    """x [batch, inputs], state (c, h) each [batch, hidden]; returns h and the new state."""
    c, h = state
    gates = tf1.nn.bias_add(tf1.matmul(tf1.concat([x, h], 1), kernel), bias)
    i, j, f, o = tf1.split(gates, 4, axis=1)
    c = tf1.add(tf1.multiply(c, tf1.sigmoid(tf1.add(f, forget_bias))), tf1.multiply(tf1.sigmoid(i), tf1.tanh(j)))
    h = tf1.multiply(tf1.tanh(c), tf1.sigmoid(o))
    return h, (c, h)


def train(loss, optimizer, clip=None, dense=False, colocate=True, after=()):
    """Adds gradients, clipping and `train_op`. dense: gradients of gathered tables become dense tensors.

    With clipping, every update waits for all gradients. Without, gradients are gated and updates wait for the loss (and
    `after`), so that none overwrites a variable that the step still reads.
    """
    variables = tf1.trainable_variables()
    gradients = tf1.gradients(loss, variables, colocate_gradients_with_ops=colocate, gate_gradients=clip is None)
    if dense:
        made = []
        for g, v in zip(gradients, variables):
            with tf1.colocate_with(v.op):
                made.append(tf1.convert_to_tensor(g))
        gradients = made
    if clip is not None:
        gradients, _ = tf1.clip_by_global_norm(gradients, clip)
    with tf1.control_dependencies([] if clip is not None else [loss] + list(after)):
        return optimizer.apply_gradients(list(zip(gradients, variables)), name="train_op")


def finish():
    return tf1.group(*[v.initializer for v in tf1.global_variables()], name="init")
