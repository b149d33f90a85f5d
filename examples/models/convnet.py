"""Building blocks of the image models: pictures, convolution with batch normalisation, the training operation."""

import numpy as np
import tensorflow as tf

from common import integers
from models import layers

tf1 = tf.compat.v1

channels_first = False  # make_graphs.py --channels-first


def inputs(size):
    """Placeholders of bytes [batch, size, size, 3] and labels; returns the pictures in [-1, 1) and the labels."""
    pictures = tf1.placeholder(tf.uint8, [None, size, size, 3], name="pictures")
    labels = tf1.placeholder(tf.int32, [None], name="labels")
    x = tf1.cast(pictures, tf.float32) * (1 / 128.0) - 1.0
    return tf1.transpose(x, [0, 3, 1, 2]) if channels_first else x, labels


def channels_of(x):
    return x.shape.as_list()[1 if channels_first else 3]


def layout():
    return "NCHW" if channels_first else "NHWC"


def mean(x):
    """Over the positions."""
    return tf1.reduce_mean(x, [2, 3] if channels_first else [1, 2])


def conv(name, x, units, kernel, stride=1, padding="SAME", relu=True, scale=1.0, offset=0.0):
    """Convolution without bias, batch normalisation, ReLU. kernel: a size or (height, width).

    scale, offset: what those of the normalisation start with. A deep net without shortcuts that starts with offset 0
    is chaotic (each layer amplifies rounding); with most units on (offset 1) training can be compared step by step.
    """
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    with tf1.variable_scope(name):
        channels = channels_of(x)
        w = layers.truncated("kernel", [height, width, channels, units], (2.0 / (height * width * channels)) ** 0.5)
        strides = [1, 1, stride, stride] if channels_first else [1, stride, stride, 1]
        x = tf1.nn.conv2d(x, w, strides, padding, data_format=layout())
        scale = tf1.get_variable("scale", [units], initializer=tf1.constant_initializer(scale))
        offset = tf1.get_variable("offset", [units], initializer=tf1.constant_initializer(offset))
        mean = tf1.get_variable("moving_mean", [units], initializer=tf1.zeros_initializer(), trainable=False)
        variance = tf1.get_variable("moving_variance", [units], initializer=tf1.ones_initializer(), trainable=False)
        x, batch_mean, batch_variance = tf1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3, is_training=True,
                                                               data_format=layout())
        for moving, value in ((mean, batch_mean), (variance, batch_variance)):
            with tf1.colocate_with(moving.op):
                update = tf1.assign_sub(moving, (moving - value) * 0.1)
            tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
        return tf1.nn.relu(x) if relu else x


def finish(logits, labels, learning_rate=0.001, decay=1e-4, colocate=False):
    """Loss with weight decay on the kernels, momentum, and the moving averages with the training operation."""
    cross_entropy = tf1.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    kernels = [v for v in tf1.trainable_variables() if "kernel" in v.op.name]
    loss = tf1.add(cross_entropy, decay * tf1.add_n([tf1.nn.l2_loss(v) for v in kernels]), name="loss")
    layers.train(loss, tf1.train.MomentumOptimizer(learning_rate, 0.9), colocate=colocate,
                 after=tf1.get_collection(tf1.GraphKeys.UPDATE_OPS))
    layers.finish()


def waves(batch, size, salt):
    """Pictures by a formula: triangular waves whose lengths and directions differ by picture and colour, as bytes."""
    i, y, x, c = np.meshgrid(*(np.arange(n) for n in (batch, size, size, 3)), indexing="ij")
    phase = ((3 * i + 2 * c + salt) % 7 + 1) * x + ((5 * i + 3 * c + salt) % 5 - 2) * y + 40 * i * c
    folded = phase % 256
    return np.where(folded < 128, 2 * folded, 511 - 2 * folded).astype(np.uint8)


def feeds(batch, size, classes, salt):
    return {"pictures:0": waves(batch, size, salt), "labels:0": integers([batch], classes, salt + 1)}
