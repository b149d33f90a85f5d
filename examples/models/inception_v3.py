"""Inception-v3, training, with an expert's placement: the network cut into four parts of similar work."""

import tensorflow as tf

from common import Example
from models import convnet, layers

tf1 = tf.compat.v1

SIZE, CLASSES = 192, 1000


def conv(*arguments):
    return convnet.conv(*arguments, offset=1.0)


def max_pool(x, padding="VALID", stride=2):
    return tf1.nn.max_pool2d(x, 3, stride, padding)


def average(x):
    return tf1.nn.avg_pool2d(x, 3, 1, "SAME")


def join(*branches):
    return tf1.concat(branches, 3)


def stem(x):
    x = conv("a", conv("b", conv("c", x, 32, 3, 2, "VALID"), 32, 3, 1, "VALID"), 64, 3)
    x = conv("e", conv("d", max_pool(x), 80, 1, 1, "VALID"), 192, 3, 1, "VALID")
    return max_pool(x)


def block_35(x, pool):
    return join(conv("one", x, 64, 1), conv("five_b", conv("five_a", x, 48, 1), 64, 5),
                conv("three_c", conv("three_b", conv("three_a", x, 64, 1), 96, 3), 96, 3), conv("pool", average(x), pool, 1))


def reduce_17(x):
    return join(conv("three", x, 384, 3, 2, "VALID"), conv("double_c", conv("double_b", conv("double_a", x, 64, 1), 96, 3), 96, 3, 2, "VALID"), max_pool(x))


def block_17(x, n):
    seven = conv("seven_c", conv("seven_b", conv("seven_a", x, n, 1), n, (1, 7)), 192, (7, 1))
    double = conv("double_a", x, n, 1)
    for i, kernel in enumerate(((7, 1), (1, 7), (7, 1))):
        double = conv("double_%d" % i, double, n, kernel)
    return join(conv("one", x, 192, 1), seven, conv("double_3", double, 192, (1, 7)), conv("pool", average(x), 192, 1))


def reduce_8(x):
    seven = conv("seven_c", conv("seven_b", conv("seven_a", x, 192, 1), 192, (1, 7)), 192, (7, 1))
    return join(conv("three_b", conv("three_a", x, 192, 1), 320, 3, 2, "VALID"), conv("seven_d", seven, 192, 3, 2, "VALID"), max_pool(x))


def block_8(x):
    a = conv("three", x, 384, 1)
    b = conv("double_b", conv("double_a", x, 448, 1), 384, 3)
    return join(conv("one", x, 320, 1), conv("three_1", a, 384, (1, 3)), conv("three_2", a, 384, (3, 1)),
                conv("double_1", b, 384, (1, 3)), conv("double_2", b, 384, (3, 1)), conv("pool", average(x), 192, 1))


def build():
    blocks = [(0, "stem", stem), (1, "mixed_35_1", lambda x: block_35(x, 32)), (1, "mixed_35_2", lambda x: block_35(x, 64)),
              (1, "mixed_35_3", lambda x: block_35(x, 64)), (1, "reduce_17", reduce_17), (2, "mixed_17_1", lambda x: block_17(x, 128)),
              (2, "mixed_17_2", lambda x: block_17(x, 160)), (2, "mixed_17_3", lambda x: block_17(x, 160)),
              (3, "mixed_17_4", lambda x: block_17(x, 192)), (3, "reduce_8", reduce_8), (3, "mixed_8_1", block_8), (3, "mixed_8_2", block_8)]
    with tf1.device("/gpu:0"):
        x, labels = convnet.inputs(SIZE)
    with tf1.variable_scope("inception"):
        for device, name, block in blocks:
            with tf1.device("/gpu:%d" % device), tf1.variable_scope(name):
                x = block(x)
        with tf1.device("/gpu:3"):
            x = tf1.reduce_mean(x, [1, 2])
            logits = tf1.nn.xw_plus_b(x, layers.truncated("classes/kernel", [2048, CLASSES], 0.02), layers.zeros("classes/bias", [CLASSES]))
    with tf1.device("/gpu:3"):
        convnet.finish(logits, labels, learning_rate=1e-5, colocate=True)


def example():
    return Example("inception_v3", build, [convnet.feeds(4, SIZE, CLASSES, 57)])
