"""Models of text and other sequences."""

import numpy as np
import tensorflow as tf

from .build import cross_entropy, feed, inference, integers, reals, training

tf1, keras = tf.compat.v1, tf.keras
layers = keras.layers


def encoder_layer(x, width, heads, mask=None, first=False, activation="gelu"):
    """first: normalisation before attention and product (as ViT has it), else after them (as BERT has it)."""
    attend = layers.MultiHeadAttention(heads, width // heads)
    if first:
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = layers.Add()([x, attend(y, y, attention_mask=mask)])
        y = layers.Dense(4 * width, activation=activation)(layers.LayerNormalization(epsilon=1e-6)(x))
        return layers.Add()([x, layers.Dense(width)(y)])
    x = layers.LayerNormalization(epsilon=1e-12)(layers.Add()([x, attend(x, x, attention_mask=mask)]))
    y = layers.Dense(width)(layers.Dense(4 * width, activation=activation)(x))
    return layers.LayerNormalization(epsilon=1e-12)(layers.Add()([x, y]))


def _bert(ids, kinds, mask, words, width, heads, depth):
    length = ids.shape[1]
    x = layers.Embedding(words, width)(ids) + layers.Embedding(2, width)(kinds)
    x = x + layers.Embedding(length, width)(tf.range(length))
    x = layers.LayerNormalization(epsilon=1e-12)(x)
    for _ in range(depth):
        x = encoder_layer(x, width, heads, mask=mask[:, tf.newaxis, :])
    return x


@inference(ids=integers(30522, 1, 128), kinds=integers(2, 1, 128), mask=np.array([[1] * 100 + [0] * 28], np.int32))
def bert_base():
    given = [layers.Input([128], dtype="int32", batch_size=1) for _ in range(3)]
    x = _bert(*given, words=30522, width=768, heads=12, depth=12)
    return keras.Model(given, layers.Dense(768, activation="tanh")(x[:, 0]))


@training
def bert_training():
    """A small one (4 layers of 256): masked words."""
    ids, words = feed("ids", integers(8000, 8, 128)), feed("words", integers(8000, 8, 128))
    kinds, mask = feed("kinds", integers(2, 8, 128)), feed("mask", np.ones([8, 128], np.int32))
    given = [layers.Input(tensor=t) for t in (ids, kinds, mask)]
    model = keras.Model(given, layers.Dense(8000)(_bert(*given, words=8000, width=256, heads=4, depth=4)))
    return cross_entropy(words, model.output), tf1.train.AdamOptimizer(1e-4)


@inference(x=reals(1, 224, 224, 3))
def vit_small():
    x = given = layers.Input([224, 224, 3])
    x = layers.Reshape([196, 384])(layers.Conv2D(384, 16, strides=16)(x))
    x = layers.Add()([x, layers.Embedding(196, 384)(tf.range(196)[tf.newaxis])])
    for _ in range(12):
        x = encoder_layer(x, 384, 6, first=True)
    return keras.Model(given, layers.Dense(1000)(layers.LayerNormalization()(x)[:, 0]))


@inference(token=integers(16000, 1, 1), position=np.array([255], np.int32), past=reals(6, 2, 1, 8, 255, 64))
def gpt_cached():
    """One token of a decoder whose keys and values of the 255 tokens before are fed."""
    width, heads, depth = 512, 8, 6
    embed, places = layers.Embedding(16000, width), layers.Embedding(1024, width)
    blocks = [[layers.LayerNormalization(), layers.Dense(3 * width), layers.Dense(width), layers.LayerNormalization(),
               layers.Dense(4 * width, activation="gelu"), layers.Dense(width)] for _ in range(depth)]
    last, head = layers.LayerNormalization(), layers.Dense(16000)

    def step(token, position, past):
        x, present = embed(token) + places(position)[tf.newaxis], []
        for i, (norm, qkv, out, norm2, up, down) in enumerate(blocks):
            parts = tf.transpose(tf.reshape(qkv(norm(x)), [1, 1, 3, heads, width // heads]), [2, 0, 3, 1, 4])
            keys, values = tf.concat([past[i, 0], parts[1]], 2), tf.concat([past[i, 1], parts[2]], 2)
            weights = tf.nn.softmax(tf.matmul(parts[0], keys, transpose_b=True) / 8.0)
            y = tf.reshape(tf.transpose(tf.matmul(weights, values), [0, 2, 1, 3]), [1, 1, width])
            x = x + out(y)
            x = x + down(up(norm2(x)))
            present.append(tf.stack([keys, values]))
        return head(last(x)), tf.stack(present)
    return step


@inference(x=reals(1, 100, 64))
def lstm_stack():
    x = given = layers.Input([100, 64])
    for _ in range(2):
        x = layers.LSTM(256, return_sequences=True)(x)
    return keras.Model(given, layers.Dense(20)(layers.LSTM(256)(x)))


@training
def gru_text():
    ids, labels = feed("ids", integers(20000, 32, 80)), feed("labels", integers(2, 32))
    given = layers.Input(tensor=ids)
    x = layers.Bidirectional(layers.GRU(128, return_sequences=True))(layers.Embedding(20000, 128)(given))
    model = keras.Model(given, layers.Dense(2)(layers.GRU(128)(x)))
    return cross_entropy(labels, model.output), tf1.train.RMSPropOptimizer(1e-3)


@training
def seq2seq():
    """Encoder in both directions, decoder with attention over its states; teacher forcing."""
    source, before, after = (feed(n, integers(8000, 32, k)) for n, k in (("source", 30), ("before", 25), ("after", 25)))
    embedded = layers.Embedding(8000, 256)(layers.Input(tensor=source))
    states = layers.Bidirectional(layers.LSTM(256, return_sequences=True))(embedded)
    x = layers.LSTM(256, return_sequences=True)(layers.Embedding(8000, 256)(layers.Input(tensor=before)))
    x = layers.Concatenate()([x, layers.Attention()([x, layers.Dense(256)(states)])])
    return cross_entropy(after, layers.Dense(8000)(layers.Dense(256, activation="tanh")(x))), tf1.train.AdamOptimizer(1e-3)


@training
def text_cnn():
    ids, labels = feed("ids", integers(20000, 64, 200)), feed("labels", integers(5, 64))
    x = layers.Embedding(20000, 128)(layers.Input(tensor=ids))
    parts = [layers.GlobalMaxPooling1D()(layers.Conv1D(100, size, activation="relu")(x)) for size in (3, 4, 5)]
    return cross_entropy(labels, layers.Dense(5)(layers.Dropout(0.5)(layers.Concatenate()(parts)))), tf1.train.AdamOptimizer(1e-3)
