"""Classifier of 28 x 28 pictures with two hidden layers, momentum, and a batch of any size."""

import tensorflow as tf

from common import Example, integers, reals
from models import layers

tf1 = tf.compat.v1


def build():
    x = tf1.placeholder(tf.float32, [None, 784], name="x")
    labels = tf1.placeholder(tf.int32, [None], name="labels")
    h, size = x, 784
    for i, units in enumerate((256, 128)):
        with tf1.variable_scope("hidden%d" % (i + 1)):
            h = tf1.nn.relu(tf1.matmul(h, layers.truncated("kernel", [size, units], 0.05)) + layers.zeros("bias", [units]))
            size = units
    with tf1.variable_scope("output"):
        logits = tf1.add(tf1.matmul(h, layers.uniform("kernel", [size, 10], 0.1)), layers.zeros("bias", [10]), name="logits")
    tf1.argmax(logits, 1, name="prediction", output_type=tf.int32)
    loss = tf1.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
    layers.train(loss, tf1.train.MomentumOptimizer(0.05, 0.9), colocate=False)
    layers.finish()


def feeds(k):
    return {"x:0": reals([32, 784], 3 + k), "labels:0": integers([32], 10, 5 + k)}


def example():
    return Example("mlp", build, [feeds(0), feeds(1)])
