"""Attentional sequence-to-sequence translation, unrolled, with an expert's placement over four GPUs.

Encoder and decoder have two LSTM layers; the decoder's upper layer attends to the encoder's upper layer (additive
attention); the output layer's 8,000 words are split in four shards, one per device, with one projection per time step.
The expert places by layer: layer 1 (and the embeddings) on GPU 0, layer 2 on GPU 1, attention on GPU 2, one shard of
the output layer on each, the loss on GPU 3; gradients and optimizer slots go with their forward operations.
"""

import tensorflow as tf

from common import Example, integers
from models import layers

tf1 = tf.compat.v1

BATCH, LENGTH, VOCABULARY, EMBEDDING, HIDDEN, SHARDS, DEVICES = 32, 20, 8000, 256, 512, 4, 4
LAYER_DEVICE, ATTENTION_DEVICE, LOSS_DEVICE = (0, 1), 2, 3


def gpu(i):
    return tf1.device("/gpu:%d" % (i % DEVICES))


def embed(name, ids):
    """ids [batch, time] -> list over time of [batch, embedding]"""
    with gpu(LAYER_DEVICE[0]), tf1.variable_scope(name):
        table = layers.normal("table", [VOCABULARY, EMBEDDING], 0.1)
        return tf1.unstack(tf1.nn.embedding_lookup(table, ids), axis=1)


def stack(name, inputs, states):
    """Two LSTM layers over a list of inputs; returns the upper layer's outputs and the last states."""
    size, outputs, last = EMBEDDING, inputs, []
    for layer in range(2):
        with gpu(LAYER_DEVICE[layer]), tf1.variable_scope("%s/layer%d" % (name, layer + 1)):
            kernel, bias = layers.lstm_variables(size, HIDDEN)
            state = states[layer] if states else (tf1.zeros([BATCH, HIDDEN]), tf1.zeros([BATCH, HIDDEN]))
            made = []
            for t, x in enumerate(outputs):
                with tf1.name_scope("step%d" % t):
                    h, state = layers.lstm_cell(x, state, kernel, bias)
                made.append(h)
            size, outputs = HIDDEN, made
            last.append(state)
    return outputs, last


def attend(memory, queries):
    """memory [batch, source, hidden], queries: list of [batch, hidden] -> list of [batch, hidden]"""
    with gpu(ATTENTION_DEVICE), tf1.variable_scope("attention"):
        memory_kernel = layers.truncated("memory_kernel", [HIDDEN, HIDDEN], 0.05)
        query_kernel = layers.truncated("query_kernel", [HIDDEN, HIDDEN], 0.05)
        score = layers.uniform("score", [HIDDEN], 0.08)
        combine = layers.uniform("combine_kernel", [2 * HIDDEN, HIDDEN], 0.08)
        keys = tf1.reshape(tf1.matmul(tf1.reshape(memory, [-1, HIDDEN]), memory_kernel), [BATCH, LENGTH, HIDDEN])
        outputs = []
        for t, query in enumerate(queries):
            with tf1.name_scope("step%d" % t):
                projected = tf1.expand_dims(tf1.matmul(query, query_kernel), 1)           # [batch, 1, hidden]
                scores = tf1.reduce_sum(score * tf1.tanh(keys + projected), [2])          # [batch, source]
                weights = tf1.expand_dims(tf1.nn.softmax(scores), 1)                      # [batch, 1, source]
                context = tf1.squeeze(tf1.matmul(weights, memory), [1])                   # [batch, hidden]
                outputs.append(tf1.tanh(tf1.matmul(tf1.concat([context, query], 1), combine)))
        return outputs


def loss_of(outputs, labels):
    """One projection per time step, its columns in four shards; mean cross entropy over all words."""
    shards = []
    for s in range(SHARDS):
        with gpu(s), tf1.variable_scope("softmax/shard%d" % s):
            shards.append((layers.uniform("kernel", [HIDDEN, VOCABULARY // SHARDS], 0.08),
                           layers.zeros("bias", [VOCABULARY // SHARDS])))
    losses = []
    for t, output in enumerate(outputs):
        with tf1.name_scope("softmax/step%d" % t):
            logits = []
            for s, (kernel, bias) in enumerate(shards):
                with gpu(s):
                    logits.append(tf1.nn.bias_add(tf1.matmul(output, kernel), bias))
            with gpu(LOSS_DEVICE):
                losses.append(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels[t], logits=tf1.concat(logits, 1)))
    with gpu(LOSS_DEVICE):
        return tf1.divide(tf1.reduce_sum(tf1.add_n(losses)), float(BATCH * LENGTH))


def build():
    source = tf1.placeholder(tf.int32, [BATCH, LENGTH], name="source")
    target_in = tf1.placeholder(tf.int32, [BATCH, LENGTH], name="target_in")
    target_out = tf1.placeholder(tf.int32, [BATCH, LENGTH], name="target_out")
    with tf1.variable_scope("nmt"):
        encoded, states = stack("encoder", embed("source_embedding", source), None)
        decoded, _ = stack("decoder", embed("target_embedding", target_in), states)
        with gpu(ATTENTION_DEVICE):
            memory = tf1.stack(encoded, axis=1, name="memory")
        with gpu(LOSS_DEVICE):
            labels = tf1.unstack(target_out, axis=1)
        outputs = attend(memory, decoded)
    loss = tf1.identity(loss_of(outputs, labels), name="loss")
    with gpu(LOSS_DEVICE):
        optimizer = tf1.train.AdamOptimizer(0.001)
        layers.train(loss, optimizer, clip=5.0, dense=True)
    layers.finish()


def feeds(k):
    words = integers([BATCH, LENGTH + 1], VOCABULARY, 100 + k)
    return {"source:0": integers([BATCH, LENGTH], VOCABULARY, 10 + k), "target_in:0": words[:, :-1].copy(),
            "target_out:0": words[:, 1:].copy()}


def example():
    return Example("nmt", build, [feeds(0), feeds(1)])
