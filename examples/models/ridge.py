"""Ridge regression with its gradients as fetches of their own: the smallest training graph."""

import tensorflow as tf

from common import Example, reals
from models import layers

tf1 = tf.compat.v1


def build():
    x = tf1.placeholder(tf.float32, [None, 16], name="x")
    y = tf1.placeholder(tf.float32, [None, 1], name="y")
    w = layers.uniform("w", [16, 1], 0.5)
    b = layers.zeros("b", [1])
    residual = tf1.subtract(tf1.matmul(x, w) + b, y, name="residual")
    loss = tf1.add(tf1.reduce_mean(tf1.square(residual)), 0.01 * tf1.nn.l2_loss(w), name="loss")
    grad_w, grad_b = tf1.gradients(loss, [w, b])
    grad_w, grad_b = tf1.identity(grad_w, "grad_w"), tf1.identity(grad_b, "grad_b")
    with tf1.control_dependencies([loss]):
        tf1.train.GradientDescentOptimizer(0.1).apply_gradients([(grad_w, w), (grad_b, b)], name="train_op")
    layers.finish()


def feeds(k):
    x = reals([64, 16], 11 + k)
    return {"x:0": x, "y:0": (x @ reals([16, 1], 4)).astype("float32")}


def example():
    return Example("ridge", build, [feeds(0)], gradients=["grad_w:0", "grad_b:0"])
