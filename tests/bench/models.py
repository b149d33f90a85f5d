#!/usr/bin/env python3
"""Models that users have, made from Keras with random weights and frozen, and their time in TensorFlow.

    models.py make FAMILY FILE.pb    writes the inference graph: feed x:0, fetch Identity:0
    models.py time FILE.pb           median and quartiles of 30 runs of it after 5 to warm up, in ms

Both need a Python that has TensorFlow 2.15. tfc's time of the same file:
    tfc-run --graph FILE.pb --fetch Identity:0 --batch 1 --steps 30 --warmup 5
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

keras = tf.keras
layers = keras.layers


def mixed_bfloat16():
    """Two blocks of a transformer's encoder with a classifier of each position."""
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    x = given = layers.Input([128, 256])
    for _ in range(2):
        x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(8, 32)(x, x)]))
        hidden = layers.Dense(256)(layers.Dense(1024, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, hidden]))
    return keras.Model(given, layers.Dense(1000, activation="softmax")(x))


# family: (its maker, the shape of x)
FAMILIES = {
    "mobilenet_v2": (lambda: keras.applications.MobileNetV2(weights=None), [1, 224, 224, 3]),
    "efficientnet_b0": (lambda: keras.applications.EfficientNetB0(weights=None), [1, 224, 224, 3]),
    "mixed_bfloat16": (mixed_bfloat16, [4, 128, 256]),
}


def make(family, path):
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    tf.random.set_seed(1)
    maker, shape = FAMILIES[family]
    model = maker()
    function = tf.function(lambda x: model(x, training=False)).get_concrete_function(tf.TensorSpec(shape, tf.float32))
    graph = convert_variables_to_constants_v2(function).graph.as_graph_def()
    with open(path, "wb") as f:
        f.write(graph.SerializeToString())


def time_of(path):
    tf1 = tf.compat.v1
    definition, graph = tf1.GraphDef(), tf.Graph()
    with open(path, "rb") as f:
        definition.ParseFromString(f.read())
    with graph.as_default():
        tf1.import_graph_def(definition, name="")
    step = tf1.Session(graph=graph).make_callable(["Identity:0"], ["x:0"])
    shape = graph.get_tensor_by_name("x:0").shape
    x, times = np.random.default_rng(1).random(shape, dtype=np.float32), []
    for _ in range(35):
        begin = time.perf_counter()
        step(x)
        times.append((time.perf_counter() - begin) * 1e3)
    low, median, high = np.percentile(times[5:], [25, 50, 75])
    print("step: median %.2f ms, quartiles %.2f ms to %.2f ms, 30 steps" % (median, low, high))


def main():
    words = sys.argv[1:]
    if len(words) == 3 and words[0] == "make" and words[1] in FAMILIES:
        return make(words[1], words[2])
    if len(words) == 2 and words[0] == "time":
        return time_of(words[1])
    sys.exit(__doc__ + "\nFamilies: " + ", ".join(FAMILIES))


if __name__ == "__main__":
    main()
