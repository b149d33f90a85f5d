"""Two-layer LSTM language model of 1,024 cells with dropout, unrolled over 20 steps."""

import tensorflow as tf

from common import Example, integers
from models import layers

tf1 = tf.compat.v1

BATCH, LENGTH, VOCABULARY, HIDDEN, KEEP = 16, 20, 5000, 1024, 0.75


def dropout(x):
    return tf1.nn.dropout(x, rate=1 - KEEP)


def build():
    words = tf1.placeholder(tf.int32, [BATCH, LENGTH], name="words")
    targets = tf1.placeholder(tf.int32, [BATCH, LENGTH], name="targets")
    with tf1.variable_scope("lm"):
        table = layers.uniform("embedding", [VOCABULARY, HIDDEN], 0.04)
        outputs = tf1.unstack(dropout(tf1.nn.embedding_lookup(table, words)), axis=1)
        for layer in range(2):
            with tf1.variable_scope("layer%d" % (layer + 1)):
                kernel, bias = layers.lstm_variables(HIDDEN, HIDDEN, 0.04)
                state, made = (tf1.zeros([BATCH, HIDDEN]), tf1.zeros([BATCH, HIDDEN])), []
                for t, x in enumerate(outputs):
                    with tf1.name_scope("step%d" % t):
                        h, state = layers.lstm_cell(x, state, kernel, bias, 0.0)
                        made.append(dropout(h))
                outputs = made
        with tf1.variable_scope("softmax"):
            kernel, bias = layers.uniform("kernel", [HIDDEN, VOCABULARY], 0.04), layers.zeros("bias", [VOCABULARY])
            logits = tf1.nn.xw_plus_b(tf1.concat(outputs, 0), kernel, bias)         # [time * batch, vocabulary]
            labels = tf1.reshape(tf1.transpose(targets), [-1])
            losses = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf1.reduce_mean(losses, name="loss")
    layers.train(loss, tf1.train.GradientDescentOptimizer(1.0), clip=10.0, colocate=False)
    layers.finish()


def feeds(k):
    words = integers([BATCH, LENGTH + 1], VOCABULARY, 17 + k)
    return {"words:0": words[:, :-1].copy(), "targets:0": words[:, 1:].copy()}


def example():
    return Example("rnnlm_large", build, [feeds(0), feeds(1)])
