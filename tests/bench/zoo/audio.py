"""Models of sound."""

import tensorflow as tf

from .build import inference, reals

keras = tf.keras
layers = keras.layers


@inference(x=reals(1, 16000, 1))
def wavenet():
    """Dilated causal convolutions with gates, two stacks of eight."""
    given = layers.Input([16000, 1])
    x, skips = layers.Conv1D(32, 2, padding="causal")(given), []
    for i in range(16):
        y = [layers.Conv1D(32, 2, dilation_rate=2 ** (i % 8), padding="causal", activation=a)(x) for a in ("tanh", "sigmoid")]
        y = layers.Multiply()(y)
        skips.append(layers.Conv1D(64, 1)(y))
        x = layers.Add()([x, layers.Conv1D(32, 1)(y)])
    y = layers.Conv1D(64, 1, activation="relu")(layers.ReLU()(layers.Add()(skips)))
    return keras.Model(given, layers.Conv1D(256, 1)(y))


@inference(x=reals(4, 48000))
def spectrogram():
    """Three seconds of sound: short-time Fourier transform, mel bands, logarithm, convolutions."""
    norms, convs = [], []
    for filters in (32, 64, 128):
        convs.append(layers.Conv2D(filters, 3, padding="same", activation="relu"))
        norms.append(layers.BatchNormalization())
    head = layers.Dense(35)
    bands = tf.signal.linear_to_mel_weight_matrix(64, 257, 16000, 60.0, 7600.0).numpy()

    def classify(x):
        power = tf.square(tf.abs(tf.signal.stft(x, 400, 160, 512)))
        y = tf.math.log(tf.tensordot(power, bands, 1) + 1e-6)[..., tf.newaxis]
        for conv, norm in zip(convs, norms):
            y = tf.nn.max_pool2d(norm(conv(y), training=False), 2, 2, "SAME")
        return head(tf.reduce_mean(y, [1, 2]))
    return classify


@inference(x=reals(2, 88200))
def source_separation():
    """Two seconds in two channels: a U-Net makes a mask of the spectrogram, and sound of what is left (as spleeter)."""
    down = [layers.Conv2D(f, 5, strides=2, padding="same") for f in (16, 32, 64, 128)]
    up = [layers.Conv2DTranspose(f, 5, strides=2, padding="same", activation="relu") for f in (64, 32, 16, 1)]
    mask = layers.Conv2D(1, 4, dilation_rate=2, padding="same", activation="sigmoid")

    def separate(x):
        spectrum = tf.signal.stft(x, 4096, 1024, 4096, pad_end=True)[:, :80, :1024]
        y, skips = tf.abs(spectrum)[..., tf.newaxis], []
        for conv in down:
            y = tf.nn.leaky_relu(conv(y), 0.2)
            skips.append(y)
        for conv, skip in zip(up, [None] + skips[-2::-1]):
            y = conv(y if skip is None else tf.concat([skip, y], -1))
        masked = spectrum * tf.cast(mask(y)[..., 0], tf.complex64)
        masked = tf.pad(masked, [[0, 0], [0, 0], [0, 1025]])
        return tf.signal.inverse_stft(masked, 4096, 1024, 4096)
    return separate
