"""The registry of models, and how one becomes files.

    @inference(x=reals(1, 224, 224, 3))
    def mobilenet_v2():                     # returns a Keras model, or a function of the feeds
        return applications.MobileNetV2(weights=None, classifier_activation=None)

    @training
    def cifar():                            # builds a graph with `feed`, returns (loss, optimizer)
        x, labels = feed("x", reals(64, 32, 32, 3)), feed("labels", integers(10, 64))
        ...
        return loss, tf1.train.AdamOptimizer(1e-3)
"""

import hashlib
import inspect
import json
import os
import shutil

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
tf1 = tf.compat.v1
keras = tf.keras
SEED = 1
MODELS = {}  # name: Model
_feeds = {}  # feeds of the training graph that is being built: {tensor name: value}


class Model:
    def __init__(self, maker, feeds):
        self.name, self.maker, self.feeds = maker.__name__, maker, feeds  # feeds: None for a training graph
        self.kind = "training" if feeds is None else "inference"

    def digest(self):
        """Changes whenever a source file changes that says what the model is."""
        sources = [__file__, inspect.getsourcefile(self.maker)]
        return hashlib.sha256(b"".join(open(f, "rb").read() for f in sources)).hexdigest()


def inference(**feeds):
    def register(maker):
        MODELS[maker.__name__] = Model(maker, feeds)
        return maker
    return register


def training(maker):
    MODELS[maker.__name__] = Model(maker, None)
    return maker


def _random(shape):
    return np.random.default_rng(int(np.prod(shape)) + 7 * len(shape))


def reals(*shape):
    """Normally distributed values, the same for the same shape."""
    return _random(shape).standard_normal(shape, dtype=np.float32)


def integers(below, *shape):
    return _random(shape).integers(0, below, shape, dtype=np.int32)


def feed(name, value):
    """A placeholder of a training graph, with the value that every step is fed."""
    given = tf1.placeholder(value.dtype, value.shape, name=name)
    _feeds[given.name] = value
    return given


def cross_entropy(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.cast(logits, tf.float32)))


def _vary(model):
    """Biases, scales and statistics that start as zeros and ones get values that make a difference."""
    random = np.random.default_rng(SEED)
    for w in model.weights:
        kind = w.name.split("/")[-1].split(":")[0]
        if kind in ("bias", "beta", "moving_mean"):
            w.assign(0.1 * random.standard_normal(w.shape))
        elif kind in ("gamma", "moving_variance"):
            w.assign(random.uniform(0.7, 1.3, w.shape))


def _freeze(model):
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    keras.backend.clear_session()  # one process makes all models
    keras.utils.set_random_seed(SEED)
    keras.mixed_precision.set_global_policy("float32")
    made = model.maker()
    if isinstance(made, keras.Model):
        _vary(made)
        call = lambda *feeds: made(feeds[0] if len(feeds) == 1 else list(feeds), training=False)  # noqa: E731
    else:
        call = made
    names = list(model.feeds)
    specs = [tf.TensorSpec(v.shape, v.dtype, name=k) for k, v in model.feeds.items()]
    function = tf.function(call).get_concrete_function(*specs)
    frozen = convert_variables_to_constants_v2(function)
    feeds = {t.name: model.feeds[k] for k, t in zip(names, frozen.inputs)}
    about = {"fetches": [t.name for t in frozen.outputs], "targets": [], "init": []}
    return frozen.graph.as_graph_def(), feeds, about


def _train(model):
    _feeds.clear()
    keras.backend.clear_session()
    keras.mixed_precision.set_global_policy("float32")
    graph = tf.Graph()
    with graph.as_default():
        tf1.set_random_seed(SEED)
        keras.backend.set_learning_phase(1)
        made = model.maker()
        loss, optimizer = made[:2]
        updates = list(made[2]) if len(made) > 2 else []
        if callable(getattr(optimizer, "minimize", None)):
            updates.append(optimizer.minimize(loss))
        elif optimizer is not None:
            updates.append(optimizer)
        loss = tf.identity(loss, name="loss")
        train = tf.group(*updates, name="train_op")
        init = tf.group(tf1.global_variables_initializer(), tf1.tables_initializer(), name="init")
    about = {"fetches": [loss.name], "targets": [train.name], "init": [init.name]}
    return graph.as_graph_def(), dict(_feeds), about


def make(name, folder):
    """Writes the model into `folder`, unless what is there was made by the same sources. Returns what is in its
    model.json: feeds {tensor: file}, fetches, targets, init (operations), kind, batch."""
    model, there = MODELS[name], os.path.join(folder, "model.json")
    try:
        with open(there) as f:
            about = json.load(f)
        if about["digest"] == model.digest():
            return about
    except (OSError, ValueError, KeyError):
        pass
    graph_def, feeds, about = _freeze(model) if model.kind == "inference" else _train(model)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.pb"), "wb") as f:
        f.write(graph_def.SerializeToString(deterministic=True))
    files = {}
    for i, (tensor, value) in enumerate(feeds.items()):
        files[tensor] = "feed%d.npy" % i
        np.save(os.path.join(folder, files[tensor]), value)
    about.update(feeds=files, kind=model.kind, digest=model.digest(), nodes=len(graph_def.node),
                 batch=int(next(iter(feeds.values())).shape[0]) if feeds else 0)
    with open(there, "w") as f:
        json.dump(about, f, indent=1)
    return about
