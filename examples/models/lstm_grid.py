"""Four LSTM layers by 20 time steps, softmax in four shards: the grid that is placed layer by layer over GPUs."""

import tensorflow as tf

from common import Example, integers
from models import layers

tf1 = tf.compat.v1

BATCH, LENGTH, VOCABULARY, HIDDEN, LAYERS, SHARDS = 32, 20, 8000, 512, 4, 4


def build():
    words = tf1.placeholder(tf.int32, [BATCH, LENGTH], name="words")
    targets = tf1.placeholder(tf.int32, [BATCH, LENGTH], name="targets")
    with tf1.variable_scope("lm"):
        with tf1.device("/gpu:0"):
            table = layers.uniform("embedding", [VOCABULARY, HIDDEN], 0.08)
            outputs = tf1.unstack(tf1.nn.embedding_lookup(table, words), axis=1)
        for layer in range(LAYERS):
            with tf1.device("/gpu:%d" % layer), tf1.variable_scope("layer%d" % (layer + 1)):
                kernel, bias = layers.lstm_variables(HIDDEN, HIDDEN)
                state, made = (tf1.zeros([BATCH, HIDDEN]), tf1.zeros([BATCH, HIDDEN])), []
                for t, x in enumerate(outputs):
                    with tf1.name_scope("step%d" % t):
                        h, state = layers.lstm_cell(x, state, kernel, bias)
                    made.append(h)
                outputs = made
        shards = []
        for s in range(SHARDS):
            with tf1.device("/gpu:%d" % s), tf1.variable_scope("softmax/shard%d" % s):
                shards.append((layers.uniform("kernel", [HIDDEN, VOCABULARY // SHARDS], 0.08), layers.zeros("bias", [VOCABULARY // SHARDS])))
        with tf1.device("/gpu:%d" % (LAYERS - 1)):
            labels = tf1.unstack(targets, axis=1)
        losses = []
        for t, h in enumerate(outputs):
            with tf1.name_scope("softmax/step%d" % t):
                logits = []
                for s, (kernel, bias) in enumerate(shards):
                    with tf1.device("/gpu:%d" % s):
                        logits.append(tf1.nn.bias_add(tf1.matmul(h, kernel), bias))
                with tf1.device("/gpu:%d" % (LAYERS - 1)):
                    losses.append(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels[t], logits=tf1.concat(logits, 1)))
    with tf1.device("/gpu:%d" % (LAYERS - 1)):
        loss = tf1.identity(tf1.reduce_sum(tf1.add_n(losses)) / float(BATCH * LENGTH), name="loss")
        layers.train(loss, tf1.train.AdagradOptimizer(0.1), clip=5.0, dense=True)
    layers.finish()


def feeds(k):
    words = integers([BATCH, LENGTH + 1], VOCABULARY, 27 + k)
    return {"words:0": words[:, :-1].copy(), "targets:0": words[:, 1:].copy()}


def example():
    return Example("lstm_grid", build, [feeds(0), feeds(1)])
