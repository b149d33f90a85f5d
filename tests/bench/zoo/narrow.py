"""Models whose arithmetic is narrower than float32."""

import numpy as np
import tensorflow as tf

from .build import cross_entropy, feed, inference, integers, reals, training

tf1, keras = tf.compat.v1, tf.keras
layers = keras.layers


def _encoder(x, depth=2):
    """Blocks of a transformer's encoder."""
    for _ in range(depth):
        x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(8, 32)(x, x)]))
        hidden = layers.Dense(256)(layers.Dense(1024, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, hidden]))
    return x


def _classifier(policy):
    keras.mixed_precision.set_global_policy(policy)
    given = layers.Input([128, 256])
    return keras.Model(given, layers.Dense(1000, activation="softmax")(_encoder(given)))


@inference(x=reals(4, 128, 256))
def mixed_bfloat16():
    return _classifier("mixed_bfloat16")


@inference(x=reals(4, 128, 256))
def mixed_float16():
    return _classifier("mixed_float16")


@training
def bfloat16_training():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    x, labels = feed("x", reals(4, 128, 256)), feed("labels", integers(1000, 4, 128))
    given = layers.Input(tensor=x)
    model = keras.Model(given, layers.Dense(1000)(_encoder(given)))
    return cross_entropy(labels, model.output), tf1.train.AdamOptimizer(1e-3)


@inference(x=np.abs(reals(8, 56, 56, 32)))
def int8():
    """Convolutions and a product of 8-bit integers, requantised between, as TensorFlow's quantised graphs have it."""
    random, raw = np.random.default_rng(5), tf.raw_ops

    def weights(*shape):
        return random.integers(0, 256, shape, dtype=np.uint8), -1.0, 1.0

    def narrow(y, low, high):
        least, most = raw.RequantizationRange(input=y, input_min=low, input_max=high)
        return raw.Requantize(input=y, input_min=low, input_max=high, requested_output_min=least, requested_output_max=most, out_type=tf.quint8)

    filters = [weights(3, 3, 32, 64), weights(3, 3, 64, 64), weights(1, 1, 64, 128)]
    dense = weights(128, 256)

    def run(x):
        y, low, high = raw.QuantizeV2(input=x, min_range=0.0, max_range=6.0, T=tf.quint8)
        for (w, a, b), stride in zip(filters, (1, 2, 2)):
            y, low, high = raw.QuantizedConv2D(input=y, filter=tf.bitcast(tf.constant(w), tf.quint8), min_input=low, max_input=high,
                                               min_filter=a, max_filter=b, strides=[1, stride, stride, 1], padding="SAME")
            y, low, high = narrow(y, low, high)
            y, low, high = raw.QuantizedRelu(features=y, min_features=low, max_features=high)
        flat, low, high = raw.QuantizedReshape(tensor=y, shape=[-1, 128], input_min=low, input_max=high)
        w, a, b = dense
        y, low, high = raw.QuantizedMatMul(a=flat, b=tf.bitcast(tf.constant(w), tf.quint8), min_a=low, max_a=high, min_b=a, max_b=b)
        y, low, high = narrow(y, low, high)
        return raw.Dequantize(input=y, min_range=low, max_range=high)
    return run
