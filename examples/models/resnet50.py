"""ResNet-50, training with batch normalisation and momentum on pictures of 160 x 160."""

import tensorflow as tf

from common import Example
from models import convnet, layers

tf1 = tf.compat.v1

SIZE, CLASSES = 160, 1000
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def block(name, x, units, stride):
    with tf1.variable_scope(name):
        shortcut = x
        if stride != 1 or convnet.channels_of(x) != 4 * units:
            shortcut = convnet.conv("shortcut", x, 4 * units, 1, stride, relu=False)
        x = convnet.conv("reduce", x, units, 1)
        x = convnet.conv("middle", x, units, 3, stride)
        return tf1.nn.relu(convnet.conv("expand", x, 4 * units, 1, relu=False, scale=0.0) + shortcut)


def build():
    x, labels = convnet.inputs(SIZE)
    with tf1.variable_scope("resnet"):
        x = tf1.nn.max_pool2d(convnet.conv("stem", x, 64, 7, 2), 3, 2, "SAME", data_format=convnet.layout())
        for stage, (units, blocks, stride) in enumerate(STAGES):
            for i in range(blocks):
                x = block("stage%d/block%d" % (stage + 1, i + 1), x, units, stride if i == 0 else 1)
        x = convnet.mean(x)
        logits = tf1.nn.xw_plus_b(x, layers.truncated("classes/kernel", [2048, CLASSES], 0.02), layers.zeros("classes/bias", [CLASSES]))
    convnet.finish(logits, labels)


def example():
    return Example("resnet50", build, [convnet.feeds(4, SIZE, CLASSES, 47)])
