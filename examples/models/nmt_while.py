"""Translation with loops instead of unrolling: dynamic_rnn encoder, while_loop decoder with attention (frames)."""

import tensorflow as tf

from common import Example, integers
from models import layers

tf1 = tf.compat.v1

BATCH, LENGTH, VOCABULARY, EMBEDDING, HIDDEN = 16, 20, 4000, 128, 256


class Cell(tf1.nn.rnn_cell.RNNCell):
    """The LSTM of layers.py, with its variables made outside of the loop."""

    def __init__(self, inputs):
        super().__init__()
        self.kernel, self.bias_ = layers.lstm_variables(inputs, HIDDEN)

    @property
    def state_size(self):
        return (HIDDEN, HIDDEN)

    @property
    def output_size(self):
        return HIDDEN

    def __call__(self, x, state, scope=None):
        return layers.lstm_cell(x, state, self.kernel, self.bias_)


def decode(inputs, states, memory, mask, cells):
    """inputs [time, batch, embedding]; context goes into the lower layer; returns outputs [time, batch, hidden]."""
    query_kernel = layers.truncated("query_kernel", [HIDDEN, HIDDEN], 0.05)
    combine = layers.uniform("combine_kernel", [2 * HIDDEN, HIDDEN], 0.08)
    time = tf1.shape(inputs)[0]
    source = tf1.TensorArray(tf.float32, time, element_shape=[None, EMBEDDING]).unstack(inputs)
    made = tf1.TensorArray(tf.float32, time, element_shape=[None, HIDDEN])

    def step(t, context, lower, upper, made):
        h, lower = cells[0](tf1.concat([source.read(t), context], 1), lower)
        h, upper = cells[1](h, upper)
        query = tf1.expand_dims(tf1.matmul(h, query_kernel), 2)                           # [batch, hidden, 1]
        scores = tf1.squeeze(tf1.matmul(memory, query), [2]) + mask                       # [batch, source]
        found = tf1.squeeze(tf1.matmul(tf1.expand_dims(tf1.nn.softmax(scores), 1), memory), [1])
        output = tf1.tanh(tf1.matmul(tf1.concat([found, h], 1), combine))
        return t + 1, output, lower, upper, made.write(t, output)

    start = tf1.zeros_like(states[1][1])
    _, _, _, _, made = tf1.while_loop(lambda t, *_: t < time, step, [tf1.constant(0), start, states[0], states[1], made],
                                      parallel_iterations=4, swap_memory=True)
    return made.stack()


def build():
    source = tf1.placeholder(tf.int32, [None, None], name="source")
    lengths = tf1.placeholder(tf.int32, [None], name="source_length")
    target_in = tf1.placeholder(tf.int32, [None, None], name="target_in")
    target_out = tf1.placeholder(tf.int32, [None, None], name="target_out")
    with tf1.variable_scope("nmt"):
        tables = [layers.uniform(n, [VOCABULARY, EMBEDDING], 0.1) for n in ("source_embedding", "target_embedding")]
        x, states = tf1.nn.embedding_lookup(tables[0], source), []
        for layer in range(2):
            with tf1.variable_scope("encoder/layer%d" % (layer + 1)):
                x, state = tf1.nn.dynamic_rnn(Cell(EMBEDDING if layer == 0 else HIDDEN), x, sequence_length=lengths,
                                              dtype=tf.float32, swap_memory=True)
                states.append(state)
        mask = (1.0 - tf1.sequence_mask(lengths, tf1.shape(source)[1], dtype=tf.float32)) * -1e9
        with tf1.variable_scope("decoder"):
            cells = []
            for layer, size in enumerate((EMBEDDING + HIDDEN, HIDDEN)):
                with tf1.variable_scope("layer%d" % (layer + 1)):
                    cells.append(Cell(size))
            inputs = tf1.nn.embedding_lookup(tables[1], tf1.transpose(target_in))
            outputs = decode(inputs, states, x, mask, cells)
        with tf1.variable_scope("softmax"):
            logits = tf1.matmul(tf1.reshape(outputs, [-1, HIDDEN]), layers.uniform("kernel", [HIDDEN, VOCABULARY], 0.08))
        losses = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=tf1.reshape(tf1.transpose(target_out), [-1]), logits=logits)
    loss = tf1.reduce_mean(losses, name="loss")
    layers.train(loss, tf1.train.AdamOptimizer(0.002, epsilon=1e-6), clip=5.0)
    layers.finish()


def feeds(k):
    words = integers([BATCH, LENGTH + 1], VOCABULARY, 200 + k)
    return {"source:0": integers([BATCH, LENGTH], VOCABULARY, 20 + k), "source_length:0": 1 + integers([BATCH], LENGTH, 30 + k),
            "target_in:0": words[:, :-1].copy(), "target_out:0": words[:, 1:].copy()}


def example():
    return Example("nmt_while", build, [feeds(0), feeds(1)])
