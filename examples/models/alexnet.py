"""AlexNet with local response normalisation and dropout, pictures of 227 x 227."""

import tensorflow as tf

from common import Example
from models import convnet, layers

tf1 = tf.compat.v1

SIZE, CLASSES = 227, 1000


def conv(name, x, units, kernel, stride=1, padding="SAME", lrn=False, pool=False):
    with tf1.variable_scope(name):
        channels = x.shape.as_list()[3]
        w = layers.truncated("kernel", [kernel, kernel, channels, units], (2.0 / (kernel * kernel * channels)) ** 0.5)
        x = tf1.nn.relu(tf1.nn.bias_add(tf1.nn.conv2d(x, w, [1, stride, stride, 1], padding), layers.zeros("bias", [units])))
        if lrn:
            x = tf1.nn.local_response_normalization(x, depth_radius=2, bias=2.0, alpha=1e-4, beta=0.75)
        return tf1.nn.max_pool2d(x, 3, 2, "VALID") if pool else x


def dense(name, x, size, units):
    with tf1.variable_scope(name):
        return tf1.nn.xw_plus_b(x, layers.truncated("kernel", [size, units], (2.0 / size) ** 0.5), layers.zeros("bias", [units]))


def build():
    x, labels = convnet.inputs(SIZE)
    with tf1.variable_scope("alexnet"):
        x = conv("conv1", x, 96, 11, 4, "VALID", lrn=True, pool=True)
        x = conv("conv2", x, 256, 5, lrn=True, pool=True)
        x = conv("conv3", x, 384, 3)
        x = conv("conv4", x, 384, 3)
        x = conv("conv5", x, 256, 3, pool=True)
        x = tf1.reshape(x, [-1, 6 * 6 * 256])
        x = tf1.nn.dropout(tf1.nn.relu(dense("fc6", x, 6 * 6 * 256, 4096)), rate=0.5)
        x = tf1.nn.dropout(tf1.nn.relu(dense("fc7", x, 4096, 4096)), rate=0.5)
        logits = dense("fc8", x, 4096, CLASSES)
    convnet.finish(logits, labels, learning_rate=2e-5, decay=5e-4)


def example():
    return Example("alexnet", build, [convnet.feeds(4, SIZE, CLASSES, 67)])
