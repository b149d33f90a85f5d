"""Recommenders, which look up many rows of large tables, and the heads of reinforcement learning."""

import tensorflow as tf

from .build import cross_entropy, feed, inference, integers, reals, training

tf1, keras = tf.compat.v1, tf.keras
layers = keras.layers


def _table(name, rows, width):
    return tf1.get_variable(name, [rows, width], initializer=tf1.random_uniform_initializer(-0.05, 0.05))


def _tower(x, units, last=None):
    for n in units:
        x = tf.nn.relu(tf1.layers.dense(x, n))
    return x if last is None else tf1.layers.dense(x, last)


def _judged(labels, logits):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(labels, tf.float32), logits=logits[:, 0]))


@training
def wide_deep():
    """A linear model of crossed features beside a network of embedded ones, each with its optimizer."""
    ids, numbers, labels = feed("ids", integers(100000, 256, 20)), feed("numbers", reals(256, 13)), feed("labels", integers(2, 256))
    wide = tf.reduce_sum(tf.nn.embedding_lookup(_table("wide", 100000, 1), ids), 1)
    with tf1.variable_scope("deep"):
        embedded = tf.reshape(tf.nn.embedding_lookup(_table("embedding", 100000, 32), ids), [256, 20 * 32])
        deep = _tower(tf.concat([embedded, numbers], 1), (512, 256, 128), 1)
    loss = _judged(labels, wide + deep)
    linear = tf1.train.FtrlOptimizer(0.05).minimize(loss, var_list=[v for v in tf1.trainable_variables() if v.name.startswith("wide")])
    return loss, tf1.train.AdagradOptimizer(0.05).minimize(loss, var_list=tf1.trainable_variables("deep")), [linear]


@training
def dlrm():
    """26 large tables looked up sparsely, products of all pairs of rows."""
    ids, numbers, labels = feed("ids", integers(200000, 512, 26)), feed("numbers", reals(512, 13)), feed("labels", integers(2, 512))
    rows = [tf.nn.embedding_lookup(_table("table%d" % i, 200000, 16), ids[:, i]) for i in range(26)]
    bottom = _tower(numbers, (256, 64, 16))
    x = tf.stack(rows + [bottom], 1)
    pairs = tf.linalg.band_part(tf.matmul(x, x, transpose_b=True), -1, 0)
    top = _tower(tf.concat([tf.reshape(pairs, [512, 27 * 27]), bottom], 1), (512, 256), 1)
    return _judged(labels, top), tf1.train.AdagradOptimizer(0.01)


@training
def two_tower():
    """Users and items, each of several embedded features; the other items of the batch are the negatives."""
    users, items = feed("users", integers(50000, 512, 10)), feed("items", integers(50000, 512, 10))

    def tower(name, ids):
        with tf1.variable_scope(name):
            mean = tf.reduce_mean(tf.nn.embedding_lookup(_table("embedding", 50000, 64), ids), 1)
            return tf.nn.l2_normalize(_tower(mean, (256, 128), 64), -1)
    logits = tf.matmul(tower("user", users), tower("item", items), transpose_b=True) / 0.1
    return cross_entropy(tf.range(512), logits), tf1.train.AdamOptimizer(1e-3)


@training
def dqn():
    """The network of Atari players: values of the actions taken, towards those of a target network."""
    now, after = feed("now", reals(32, 84, 84, 4)), feed("after", reals(32, 84, 84, 4))
    actions, rewards = feed("actions", integers(6, 32)), feed("rewards", reals(32))

    def network(name, x):
        with tf1.variable_scope(name):
            for filters, size, strides in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
                x = tf1.layers.conv2d(x, filters, size, strides, activation=tf.nn.relu)
            return _tower(tf1.layers.flatten(x), (512,), 6)
    wanted = tf.stop_gradient(rewards + 0.99 * tf.reduce_max(network("target", after), 1))
    taken = tf.reduce_sum(network("online", now) * tf.one_hot(actions, 6), 1)
    optimizer = tf1.train.RMSPropOptimizer(2.5e-4, 0.95, epsilon=0.01)
    loss = tf1.losses.huber_loss(wanted, taken)
    return loss, optimizer.minimize(loss, var_list=tf1.trainable_variables("online"))


@training
def ppo():
    """Policy and value of a continuous control task: the clipped objective, gradients clipped together."""
    states, actions = feed("states", reals(2048, 64)), feed("actions", reals(2048, 8))
    old, advantages, returns = feed("old", -10 + reals(2048)), feed("advantages", reals(2048)), feed("returns", reals(2048))

    def tower(x, last):
        for _ in range(2):
            x = tf1.layers.dense(x, 256, activation=tf.nn.tanh)
        return tf1.layers.dense(x, last)
    spread = tf1.get_variable("spread", [8], initializer=tf1.zeros_initializer())
    likely = tf.reduce_sum(-0.5 * tf.square((actions - tower(states, 8)) * tf.exp(-spread)) - spread - 0.919, 1)
    ratio = tf.exp(likely - old)
    policy = -tf.reduce_mean(tf.minimum(ratio * advantages, tf.clip_by_value(ratio, 0.8, 1.2) * advantages))
    loss = policy + 0.5 * tf.reduce_mean(tf.square(returns - tower(states, 1)[:, 0])) - 0.01 * tf.reduce_sum(spread)
    optimizer, variables = tf1.train.AdamOptimizer(3e-4), tf1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
    return loss, optimizer.apply_gradients(zip(gradients, variables))


@inference(ids=integers(100000, 512, 26), numbers=reals(512, 13))
def ranking():
    """A cross network beside a deep one (DCN), scoring 512 candidates."""
    tables = [layers.Embedding(100000, 16) for _ in range(26)]
    crosses = [layers.Dense(429) for _ in range(3)]
    deep = [layers.Dense(n, activation="relu") for n in (512, 256, 128)]
    head = layers.Dense(1)

    def score(ids, numbers):
        first = x = tf.concat([t(ids[:, i]) for i, t in enumerate(tables)] + [numbers], 1)
        for cross in crosses:
            x = first * cross(x) + x
        y = first
        for d in deep:
            y = d(y)
        return tf.sigmoid(head(tf.concat([x, y], 1)))
    return score
