"""Makes the graphs here with TensorFlow 2.15: input functions whose queues a program feeds from threads of its own.

    python3 tests/pass/input_functions/make.py tests/pass/input_functions
"""
import os
import sys

import numpy as np
import pandas as pd
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
v1.disable_v2_behavior()
out = sys.argv[1]


def net(x, labels, inputs):
    weights = v1.get_variable("w", [inputs, 5], initializer=v1.zeros_initializer())
    logits = tf.matmul(x, weights, name="logits")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses, name="loss")
    train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train_op")
    v1.add_to_collection("train_op", train)
    v1.global_variables_initializer()


with tf.Graph().as_default() as graph:
    rows = {"x": np.zeros((64, 7), np.float32)}
    features, labels = v1.estimator.inputs.numpy_input_fn(
        rows, np.zeros(64, np.int32), batch_size=16, shuffle=True, num_epochs=None)()
    net(features["x"], labels, 7)
    v1.train.export_meta_graph(os.path.join(out, "numpy_input.meta"), graph=graph)
    with open(os.path.join(out, "numpy_input.pb"), "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())

with tf.Graph().as_default() as graph:
    table = pd.DataFrame({"a": np.zeros(64, np.float32), "b": np.zeros(64, np.float32)})
    features, labels = v1.estimator.inputs.pandas_input_fn(
        table, pd.Series(np.zeros(64, np.int64)), batch_size=16, shuffle=False, num_epochs=1)()
    net(tf.stack([features["a"], features["b"]], 1), labels, 2)
    v1.train.export_meta_graph(os.path.join(out, "pandas_input.meta"), graph=graph)
