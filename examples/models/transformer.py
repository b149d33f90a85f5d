"""Causal Transformer language model: two layers, eight heads, pre-normalised, GELU, trained with Adam."""

import numpy as np
import tensorflow as tf

from common import Example, integers
from models import layers

tf1 = tf.compat.v1

LENGTH, VOCABULARY, WIDTH, HEADS, LAYERS, INNER = 64, 2000, 512, 8, 2, 2048


def norm(name, x):
    with tf1.variable_scope(name):
        scale = tf1.get_variable("scale", [WIDTH], initializer=tf1.ones_initializer())
        mean = tf1.reduce_mean(x, -1, keepdims=True)
        variance = tf1.reduce_mean(tf1.squared_difference(x, tf1.stop_gradient(mean)), -1, keepdims=True)
        return (x - mean) * tf1.rsqrt(variance + 1e-6) * scale + layers.zeros("offset", [WIDTH])


def dense(name, x, size, units):
    """x [tokens, size] -> [tokens, units]"""
    with tf1.variable_scope(name):
        return tf1.nn.bias_add(tf1.matmul(x, layers.truncated("kernel", [size, units], 0.02)), layers.zeros("bias", [units]))


def attention(x, batch, mask):
    def heads(y):  # [tokens, width] -> [batch, heads, time, width / heads]
        return tf1.transpose(tf1.reshape(y, [batch, LENGTH, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])
    q, k, v = (heads(dense(n, x, WIDTH, WIDTH)) for n in ("query", "key", "value"))
    scores = tf1.matmul(q, k, transpose_b=True) * (WIDTH // HEADS) ** -0.5 + mask        # [batch, heads, time, time]
    mixed = tf1.transpose(tf1.matmul(tf1.nn.softmax(scores), v), [0, 2, 1, 3])
    return dense("output", tf1.reshape(mixed, [-1, WIDTH]), WIDTH, WIDTH)


def gelu(x):
    return 0.5 * x * (1.0 + tf1.erf(x * 2 ** -0.5))


def build():
    words = tf1.placeholder(tf.int32, [None, LENGTH], name="words")
    targets = tf1.placeholder(tf.int32, [None, LENGTH], name="targets")
    batch = tf1.shape(words)[0]
    with tf1.variable_scope("transformer"):
        table = layers.normal("embedding", [VOCABULARY, WIDTH], 0.02)
        position = layers.normal("position", [LENGTH, WIDTH], 0.02)
        mask = tf1.constant(np.where(np.tri(LENGTH), 0, -1e9).astype(np.float32), name="mask")
        x = tf1.reshape(tf1.nn.embedding_lookup(table, words) + position, [-1, WIDTH])
        for layer in range(LAYERS):
            with tf1.variable_scope("layer%d" % (layer + 1)):
                with tf1.variable_scope("attention"):
                    x = x + attention(norm("norm", x), batch, mask)
                with tf1.variable_scope("feed_forward"):
                    x = x + dense("outer", gelu(dense("inner", norm("norm", x), WIDTH, INNER)), INNER, WIDTH)
        logits = tf1.matmul(norm("norm", x), table, transpose_b=True)                     # tied to the embedding
        losses = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=tf1.reshape(targets, [-1]), logits=logits)
    loss = tf1.reduce_mean(losses, name="loss")
    layers.train(loss, tf1.train.AdamOptimizer(1e-3, epsilon=1e-6), clip=1.0, dense=True, colocate=False)
    layers.finish()


def feeds(k):
    words = integers([8, LENGTH + 1], VOCABULARY, 37 + k)
    return {"words:0": words[:, :-1].copy(), "targets:0": words[:, 1:].copy()}


def example():
    return Example("transformer", build, [feeds(0), feeds(1)])
