"""Models of pictures and volumes."""

import tensorflow as tf

from .build import cross_entropy, feed, inference, integers, reals, training

tf1, keras = tf.compat.v1, tf.keras
layers, applications = keras.layers, keras.applications
PICTURE = dict(x=reals(1, 224, 224, 3))
# the models return logits, because a softmax of random weights tells little
HEADLESS = dict(weights=None, classifier_activation=None)


@inference(**PICTURE)
def mobilenet_v1():
    return applications.MobileNet(**HEADLESS)


@inference(**PICTURE)
def mobilenet_v2():
    return applications.MobileNetV2(**HEADLESS)


@inference(**PICTURE)
def mobilenet_v3():
    return applications.MobileNetV3Large(**HEADLESS)


@inference(**PICTURE)
def efficientnet_b0():
    return applications.EfficientNetB0(**HEADLESS)


@inference(**PICTURE)
def densenet121():
    return applications.DenseNet121(weights=None, classes=1000, classifier_activation=None)


@inference(**PICTURE)
def convnext_tiny():
    return applications.ConvNeXtTiny(**HEADLESS)


@inference(**PICTURE)
def resnet50_v2():
    return applications.ResNet50V2(**HEADLESS)


def _down(x, filters, norm=True):
    x = layers.Conv2D(filters, 4, strides=2, padding="same", use_bias=not norm)(x)
    return layers.LeakyReLU(0.2)(layers.BatchNormalization()(x) if norm else x)


def _up(x, filters):
    x = layers.Conv2DTranspose(filters, 4, strides=2, padding="same", use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization()(x))


def _unet(x, filters, depth):
    """The classical one: two convolutions a level, pooling down, transposed convolutions up."""
    skips = []
    for level in range(depth):
        for _ in range(2):
            x = layers.Conv2D(filters << level, 3, padding="same", activation="relu")(x)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    for _ in range(2):
        x = layers.Conv2D(filters << depth, 3, padding="same", activation="relu")(x)
    for level in reversed(range(depth)):
        x = layers.Concatenate()([skips[level], layers.Conv2DTranspose(filters << level, 2, strides=2, padding="same")(x)])
        for _ in range(2):
            x = layers.Conv2D(filters << level, 3, padding="same", activation="relu")(x)
    return x


@inference(x=reals(1, 256, 256, 3))
def unet():
    given = layers.Input([256, 256, 3])
    return keras.Model(given, layers.Conv2D(2, 1)(_unet(given, 32, 4)))


@training
def unet_training():
    x, masks = feed("x", reals(2, 128, 128, 1)), feed("masks", integers(2, 2, 128, 128))
    logits = layers.Conv2D(2, 1)(_unet(layers.Input(tensor=x), 32, 3))
    return cross_entropy(masks, logits), tf1.train.AdamOptimizer(1e-3)


def _leaky(x, filters, size, strides=1):
    x = layers.Conv2D(filters, size, strides=strides, padding="same", use_bias=False)(x)
    return layers.LeakyReLU(0.1)(layers.BatchNormalization()(x))


@inference(x=reals(1, 416, 416, 3))
def yolo():
    """As YOLOv3-tiny: two heads, boxes decoded in the graph."""
    x = given = layers.Input([416, 416, 3])
    for filters in (16, 32, 64, 128):
        x = layers.MaxPooling2D()(_leaky(x, filters, 3))
    x = early = _leaky(x, 256, 3)
    x = layers.MaxPooling2D(2, strides=1, padding="same")(_leaky(layers.MaxPooling2D()(x), 512, 3))
    x = _leaky(_leaky(x, 1024, 3), 256, 1)
    large = layers.Conv2D(255, 1)(_leaky(x, 512, 3))
    x = layers.Concatenate()([layers.UpSampling2D()(_leaky(x, 128, 1)), early])
    small = layers.Conv2D(255, 1)(_leaky(x, 256, 3))

    def decode(head, cells):
        head = tf.reshape(head, [1, cells * cells, 3, 85])
        return tf.reshape(tf.concat([tf.sigmoid(head[..., :2]), tf.exp(tf.clip_by_value(head[..., 2:4], -5, 5)), tf.sigmoid(head[..., 4:])], -1), [1, -1, 85])
    boxes = layers.Lambda(lambda heads: tf.concat([decode(heads[0], 13), decode(heads[1], 26)], 1))([large, small])
    return keras.Model(given, boxes)


@training
def pix2pix():
    """Generator and discriminator on a pair of pictures of 256², both updated."""
    source, target = feed("source", reals(1, 256, 256, 3)), feed("target", reals(1, 256, 256, 3))
    given = layers.Input([256, 256, 3])
    x, skips = given, []
    for filters in (32, 64, 128, 256, 256, 256, 256):
        x = _down(x, filters, norm=bool(skips))
        skips.append(x)
    for filters, skip in zip((256, 256, 256, 128, 64, 32), reversed(skips[:-1])):
        x = layers.Concatenate()([_up(x, filters), skip])
    generator = keras.Model(given, layers.Conv2DTranspose(3, 4, strides=2, padding="same", activation="tanh")(x))
    pair = layers.Input([256, 256, 6])
    x = _down(_down(_down(pair, 32, norm=False), 64), 128)
    discriminator = keras.Model(pair, layers.Conv2D(1, 4, padding="same")(x))
    made = generator(source)
    real, fake = (discriminator(tf.concat([source, y], -1)) for y in (target, made))

    def judged(logits, value):
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(tf.shape(logits), value), logits=logits))
    of_generator = judged(fake, 1.0) + 100 * tf.reduce_mean(tf.abs(target - made))
    of_discriminator = judged(real, 1.0) + judged(fake, 0.0)
    adam = tf1.train.AdamOptimizer
    updates = [adam(2e-4, 0.5).minimize(of_discriminator, var_list=discriminator.trainable_weights)]
    return of_generator, adam(2e-4, 0.5).minimize(of_generator, var_list=generator.trainable_weights), updates


@training
def mobilenet_training():
    # RMSProp's first steps move every weight by the same amount in its gradient's direction, however small the gradient
    # is. With a rate of 0.001 TensorFlow's own third loss differs by 0.01 between one core and two.
    x, labels = feed("x", reals(16, 128, 128, 3)), feed("labels", integers(100, 16))
    model = applications.MobileNet(input_tensor=layers.Input(tensor=x), classes=100, **HEADLESS)
    return cross_entropy(labels, model.output), tf1.train.RMSPropOptimizer(1e-5, momentum=0.9), model.updates


@training
def efficientnet_training():
    x, labels = feed("x", reals(4, 160, 160, 3)), feed("labels", integers(100, 4))
    model = applications.EfficientNetB0(input_tensor=layers.Input(tensor=x), classes=100, **HEADLESS)
    return cross_entropy(labels, model.output), tf1.train.RMSPropOptimizer(1e-3, momentum=0.9), model.updates


@training
def cifar():
    x, labels = feed("x", reals(64, 32, 32, 3)), feed("labels", integers(10, 64))
    y = given = layers.Input(tensor=x)
    for filters in (32, 64, 128):
        for _ in range(2):
            y = layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same", activation="elu")(y))
        y = layers.Dropout(0.2)(layers.MaxPooling2D()(y))
    model = keras.Model(given, layers.Dense(10)(layers.Flatten()(y)))
    return cross_entropy(labels, model.output), tf1.train.AdamOptimizer(1e-3), model.updates


@training
def resnet20():
    x, labels = feed("x", reals(64, 32, 32, 3)), feed("labels", integers(10, 64))

    def conv(y, filters, strides=1, size=3, relu=True):
        y = layers.BatchNormalization()(layers.Conv2D(filters, size, strides=strides, padding="same", use_bias=False)(y))
        return layers.ReLU()(y) if relu else y
    given = layers.Input(tensor=x)
    y = conv(given, 16)
    for stage, filters in enumerate((16, 32, 64)):
        for block in range(3):
            strides = 2 if stage and not block else 1
            short = conv(y, filters, strides, 1, relu=False) if strides == 2 else y
            y = layers.ReLU()(layers.Add()([short, conv(conv(y, filters, strides), filters, relu=False)]))
    model = keras.Model(given, layers.Dense(10)(layers.GlobalAveragePooling2D()(y)))
    return cross_entropy(labels, model.output), tf1.train.MomentumOptimizer(0.01, 0.9), model.updates


@inference(x=reals(1, 16, 112, 112, 3))
def video_3d():
    """As C3D: convolutions and pools over time and space."""
    x = given = layers.Input([16, 112, 112, 3])
    for i, filters in enumerate((32, 64, 128, 128)):
        x = layers.Conv3D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling3D((1, 2, 2) if i == 0 else 2)(x)
    return keras.Model(given, layers.Dense(101)(layers.Flatten()(x)))


@training
def volumes_3d():
    x, labels = feed("x", reals(4, 32, 32, 32, 1)), feed("labels", integers(10, 4))
    y = layers.Input(tensor=x)
    for filters in (16, 32, 64):
        y = layers.MaxPooling3D()(layers.Conv3D(filters, 3, padding="same", activation="relu")(y))
    return cross_entropy(labels, layers.Dense(10)(layers.Flatten()(y))), tf1.train.AdamOptimizer(1e-3)


@inference(x=reals(1, 10, 64, 64, 1))
def conv_lstm():
    x = given = layers.Input([10, 64, 64, 1])
    for _ in range(2):
        x = layers.ConvLSTM2D(32, 3, padding="same", return_sequences=True)(x)
    return keras.Model(given, layers.Conv3D(1, 3, padding="same", activation="sigmoid")(x))


@training
def conv_autoencoder():
    """A variational one on pictures of 64²."""
    x = feed("x", 0.25 * reals(32, 64, 64, 3))
    y = layers.Input(tensor=x)
    for filters in (32, 64, 128):
        y = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(y)
    mean, spread = tf.split(layers.Dense(64)(layers.Flatten()(y)), 2, axis=-1)
    y = layers.Dense(8 * 8 * 128, activation="relu")(mean + tf.exp(0.5 * spread) * tf.random.normal(tf.shape(mean), seed=3))
    y = layers.Reshape([8, 8, 128])(y)
    for filters in (128, 64, 32):
        y = layers.Conv2DTranspose(filters, 3, strides=2, padding="same", activation="relu")(y)
    y = layers.Conv2D(3, 3, padding="same")(y)
    divergence = -0.5 * tf.reduce_mean(1 + spread - tf.square(mean) - tf.exp(spread))
    return tf.reduce_mean(tf.square(y - x)) + divergence, tf1.train.AdamOptimizer(1e-3)
