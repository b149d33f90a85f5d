"""Two-layer LSTM language model, unrolled: small, so that a step takes at most 50 ms on one core."""

import tensorflow as tf

from common import Example, integers
from models import layers

tf1 = tf.compat.v1

BATCH, LENGTH, VOCABULARY, HIDDEN = 16, 16, 1000, 192


def build():
    words = tf1.placeholder(tf.int32, [BATCH, LENGTH], name="words")
    targets = tf1.placeholder(tf.int32, [BATCH, LENGTH], name="targets")
    with tf1.variable_scope("lm"):
        table = layers.uniform("embedding", [VOCABULARY, HIDDEN], 0.1)
        outputs = tf1.unstack(tf1.nn.embedding_lookup(table, words), axis=1)
        for layer in range(2):
            with tf1.variable_scope("layer%d" % (layer + 1)):
                kernel, bias = layers.lstm_variables(HIDDEN, HIDDEN, 0.1)
                state, made = (tf1.zeros([BATCH, HIDDEN]), tf1.zeros([BATCH, HIDDEN])), []
                for t, x in enumerate(outputs):
                    with tf1.name_scope("step%d" % t):
                        h, state = layers.lstm_cell(x, state, kernel, bias, 0.0)
                    made.append(h)
                outputs = made
        with tf1.variable_scope("softmax"):
            kernel, bias = layers.truncated("kernel", [HIDDEN, VOCABULARY], 0.1), layers.zeros("bias", [VOCABULARY])
            losses = []
            for t, (h, label) in enumerate(zip(outputs, tf1.unstack(targets, axis=1))):
                with tf1.name_scope("step%d" % t):
                    losses.append(tf1.nn.sparse_softmax_cross_entropy_with_logits(
                        labels=label, logits=tf1.nn.xw_plus_b(h, kernel, bias)))
    loss = tf1.identity(tf1.reduce_sum(tf1.add_n(losses)) / float(BATCH * LENGTH), name="loss")
    # The embedding's gradient stays sparse here (ScatterSub).
    layers.train(loss, tf1.train.GradientDescentOptimizer(1.0), clip=5.0, colocate=False)
    layers.finish()


def feeds(k):
    words = integers([BATCH, LENGTH + 1], VOCABULARY, 7 + k)
    return {"words:0": words[:, :-1].copy(), "targets:0": words[:, 1:].copy()}


def example():
    return Example("rnnlm", build, [feeds(0), feeds(1)])
