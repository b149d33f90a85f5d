"""Models as users save them, made with TensorFlow: Keras models, modules with functions, tables with vocabulary files,
partitioned variables, Saver graphs, frozen graphs. Each gives (path, runs, expected): what tfc-run does, and what
TensorFlow computed for each run."""

import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


def signature(path, name="serving_default"):
    """({key: tensor name} of inputs, of outputs)"""
    from tensorflow.core.protobuf import saved_model_pb2
    saved = saved_model_pb2.SavedModel()
    with open(os.path.join(path, "saved_model.pb"), "rb") as f:
        saved.ParseFromString(f.read())
    s = saved.meta_graphs[0].signature_def[name]
    return {k: v.name for k, v in s.inputs.items()}, {k: v.name for k, v in s.outputs.items()}


def one_run(path, inputs, outputs):
    ins, outs = signature(path)
    return path, [{"feeds": {ins[k]: v for k, v in inputs.items()}, "fetches": [outs[k] for k in outputs]}], [{outs[k]: v for k, v in outputs.items()}]


def keras(path, layers, value):
    """Saves a Keras model, runs its signature."""
    net = tf.keras.Sequential(layers)
    net.save(path, save_format="tf")
    serve = tf.saved_model.load(path).signatures["serving_default"]
    return one_run(path, {list(serve.structured_input_signature[1])[0]: value}, {k: v.numpy() for k, v in serve(tf.constant(value)).items()})


@model
def keras_dense(path, rng):
    layer = tf.keras.layers
    return keras(path, [layer.Input([8]), layer.Dense(16, activation="relu"), layer.BatchNormalization(), layer.Dropout(0.3), layer.Dense(3, activation="softmax")], rng.randn(5, 8).astype("f"))


@model
def keras_convolution(path, rng):
    layer = tf.keras.layers
    return keras(path, [layer.Input([12, 12, 3]), layer.Conv2D(8, 3, padding="same", activation="relu"), layer.MaxPool2D(), layer.SeparableConv2D(8, 3), layer.BatchNormalization(),
                        layer.GlobalAveragePooling2D(), layer.Dense(3)], rng.randn(4, 12, 12, 3).astype("f"))


def recurrent(path, rng, cell):
    layer = tf.keras.layers
    return keras(path, [layer.Input([None], dtype="int32"), layer.Embedding(20, 6, mask_zero=True), cell, layer.Dense(2)], rng.randint(0, 20, [3, 9]).astype("int32"))


@model
def keras_lstm(path, rng):
    return recurrent(path, rng, tf.keras.layers.LSTM(7, return_sequences=True))


@model
def keras_gru(path, rng):
    return recurrent(path, rng, tf.keras.layers.GRU(7))


@model
def keras_bidirectional(path, rng):
    return recurrent(path, rng, tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(5)))


@model
def module_that_trains(path, rng):
    """Control flow in functions, variables of the same name, a second signature that updates."""
    class Module(tf.Module):
        def __init__(self):
            self.w = tf.Variable(rng.randn(4, 4).astype("f"), name="w")
            self.count = tf.Variable(0, dtype=tf.int64)
            self.parts = [tf.Variable(rng.randn(4).astype("f")) for _ in range(3)]

        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def serve(self, x):
            self.count.assign_add(1)
            y = tf.zeros_like(x)
            for _ in tf.range(3):
                if tf.reduce_sum(y) > 0:
                    y -= tf.tanh(x @ self.w)
                else:
                    y += x @ self.w
            for part in self.parts:
                y *= part
            return {"y": y, "count": self.count.read_value()}

        @tf.function(input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([])])
        def train(self, x, rate):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.tanh(x @ self.w) - 1))
            self.w.assign_sub(rate * tape.gradient(loss, self.w))
            return {"loss": loss}

    module, x, rate = Module(), rng.randn(3, 4).astype("f"), np.float32(0.1)
    tf.saved_model.save(module, path, signatures={"serving_default": module.serve, "train": module.train})
    ins, outs = signature(path)
    train_ins, train_outs = signature(path, "train")
    runs, expected = [], []
    for _ in range(3):
        served, trained = module.serve(tf.constant(x)), module.train(tf.constant(x), tf.constant(rate))
        runs += [{"feeds": {ins["x"]: x}, "fetches": list(outs.values())}, {"feeds": {train_ins["x"]: x, train_ins["rate"]: rate}, "fetches": [train_outs["loss"]]}]
        expected += [{outs[k]: v.numpy() for k, v in served.items()}, {train_outs["loss"]: trained["loss"].numpy()}]
    return path, runs, expected


@model
def vocabulary_file(path, rng):
    """A table filled from an asset; the file that it was made from is gone."""
    vocabulary = path + ".txt"
    with open(vocabulary, "w") as f:
        f.write("the\ncat\nsat\non\nmat\n")

    class Module(tf.Module):
        def __init__(self):
            file = tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
            self.table = tf.lookup.StaticVocabularyTable(file, 2)
            self.embedding = tf.Variable(rng.randn(7, 3).astype("f"))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, words):
            ids = self.table.lookup(words)
            return {"ids": ids, "rows": tf.gather(self.embedding, ids)}

    module, words = Module(), np.array([b"cat", b"mat", b"dog", b"the"])
    tf.saved_model.save(module, path, signatures=module.serve)
    expected = {k: v.numpy() for k, v in module.serve(tf.constant(words.tolist())).items()}
    os.remove(vocabulary)
    return one_run(path, {"words": words}, expected)


@model
def table_of_pairs(path, rng):
    class Module(tf.Module):
        def __init__(self):
            self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, words):
            return {"ids": self.table.lookup(words)}

    module, words = Module(), np.array([b"b", b"x", b"a"])
    tf.saved_model.save(module, path, signatures=module.serve)
    return one_run(path, {"words": words}, {"ids": module.serve(tf.constant(words.tolist()))["ids"].numpy()})


@model
def dense_table(path, rng):
    """A dense table saved with what it held: what is exported has its empty places too."""
    class Module(tf.Module):
        def __init__(self):
            self.table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, empty_key=-100, deleted_key=-200, initial_num_buckets=16)
            self.table.insert(tf.constant([3, 5, 8], tf.int64), tf.constant([0.5, 2.5, 4.5]))
            self.table.remove(tf.constant([5], tf.int64))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.float32)])
        def serve(self, keys, values):
            before = self.table.lookup(keys)
            self.table.insert(keys, values)
            return {"before": before, "after": self.table.lookup(keys), "size": self.table.size()}

    module, keys = Module(), np.array([8, 5, 1], np.int64)
    tf.saved_model.save(module, path, signatures=module.serve)
    served = tf.saved_model.load(path)
    ins, outs = signature(path)
    runs, expected = [], []
    for k in range(2):
        values = np.array([k + 1, k + 2, k + 3], np.float32)
        found = served.signatures["serving_default"](keys=tf.constant(keys), values=tf.constant(values))
        runs.append({"feeds": {ins["keys"]: keys, ins["values"]: values}, "fetches": list(outs.values())})
        expected.append({outs[n]: v.numpy() for n, v in found.items()})
    return path, runs, expected


@model
def ragged_words(path, rng):
    """Texts split into ragged rows, crossed, hashed, embedded; one step of training."""
    class Module(tf.Module):
        def __init__(self):
            self.rows = tf.Variable(rng.randn(20, 3).astype("f"))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, texts):
            words = tf.strings.split(texts)
            with tf.GradientTape() as tape:
                rows = tf.ragged.map_flat_values(tf.nn.embedding_lookup, self.rows, tf.strings.to_hash_bucket_fast(words, 20))
                loss = tf.reduce_sum(tf.square(tf.reduce_mean(rows, 1))) + tf.reduce_sum(rows.to_tensor() ** 3)
            gradient = tf.convert_to_tensor(tape.gradient(loss, self.rows))
            self.rows.assign_sub(0.1 * gradient)
            return {"loss": loss, "gradient": gradient, "pairs": tf.ragged.cross([words, words]).to_tensor(),
                    "buckets": tf.ragged.cross_hashed([words, words], num_buckets=100).to_tensor(), "two": tf.strings.ngrams(words, 2).to_tensor()}

    module, texts = Module(), np.array([b"the cat sat", b"a dog", b"x"])
    tf.saved_model.save(module, path, signatures=module.serve)
    ins, outs = signature(path)
    runs = [{"feeds": {ins["texts"]: texts}, "fetches": list(outs.values())} for _ in range(2)]
    return path, runs, [{outs[k]: v.numpy() for k, v in module.serve(tf.constant(texts.tolist())).items()} for _ in runs]


# -- TensorFlow 1 ------------------------------------------------------------------------------------------------------

def simple_save(path, inputs, outputs, feeds, init=None):
    """In the default graph: initialises, computes, saves."""
    with tf1.Session() as session:
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        values = session.run(outputs, {inputs[k]: v for k, v in feeds.items()})
        tf1.saved_model.simple_save(session, path, inputs, outputs, legacy_init_op=init)
    return one_run(path, feeds, values)


@model
def v1_simple_save(path, rng):
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 4], "x")
        y = tf.nn.softmax(x @ tf1.get_variable("w", [4, 3], use_resource=False) + tf1.get_variable("b", [3], use_resource=True))
        return simple_save(path, {"x": x}, {"y": y}, {"x": rng.randn(5, 4).astype("f")})


@model
def v1_partitioned(path, rng):
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.int64, [None], "x")
        e = tf1.get_variable("e", [11, 3], partitioner=tf1.fixed_size_partitioner(3), use_resource=False)
        return simple_save(path, {"x": x}, {"y": tf1.nn.embedding_lookup(e, x)}, {"x": np.array([0, 10, 5, 4, 3])})


@model
def v1_vocabulary_file(path, rng):
    vocabulary = path + ".txt"
    with open(vocabulary, "w") as f:
        f.write("x\ny\nz\n")
    with tf.Graph().as_default():
        words = tf1.placeholder(tf.string, [None], "words")
        file = tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
        ids = tf.lookup.StaticHashTable(file, -1).lookup(words)
        y = tf.gather(tf1.get_variable("w", [4], use_resource=False), tf.maximum(ids, 0))
        made = simple_save(path, {"words": words}, {"y": y, "ids": ids}, {"words": np.array([b"y", b"q", b"z"])}, tf1.tables_initializer())
    os.remove(vocabulary)
    return made


def saver_graph(path, rng, sharded, partitioner):
    """Restores TensorFlow's checkpoint with the graph's own nodes, saves with them, trains, restores what it saved."""
    os.makedirs(path)
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 4], "x")
        w = tf1.get_variable("w", [8, 4], partitioner=partitioner, use_resource=False)
        b = tf1.get_variable("b", [3], use_resource=True)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, tf.convert_to_tensor(w), transpose_b=True))) + tf.reduce_sum(tf.square(b))
        train = tf1.train.AdamOptimizer(0.1).minimize(loss, name="train", global_step=tf1.train.get_or_create_global_step())
        saver, value, losses = tf1.train.Saver(sharded=sharded), rng.randn(6, 4).astype("f"), []
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(train, {x: value})
            saver.save(session, os.path.join(path, "m"))
            for _ in range(3):
                losses.append(session.run(loss, {x: value}))
                session.run(train, {x: value})
        definition = saver.as_saver_def()
    file, restore, save = definition.filename_tensor_name, definition.restore_op_name, definition.save_tensor_name.split(":")[0]
    theirs, ours = (np.array(os.path.join(path, n).encode()) for n in ("m", "ours"))
    runs = [{"targets": [restore], "feeds": {file: theirs}}, {"targets": [save], "feeds": {file: ours}}]
    expected = [{}, {}]
    for one in losses:
        runs += [{"feeds": {"x:0": value}, "fetches": [loss.name]}, {"feeds": {"x:0": value}, "targets": ["train"]}]
        expected += [{loss.name: one}, {}]
    runs += [{"targets": [restore], "feeds": {file: ours}}, {"feeds": {"x:0": value}, "fetches": [loss.name]}]
    return os.path.join(path, "m.meta"), runs, expected + [{}, {loss.name: losses[0]}]


@model
def saver(path, rng):
    return saver_graph(path, rng, False, None)


@model
def saver_sharded(path, rng):
    return saver_graph(path, rng, True, tf1.fixed_size_partitioner(3))


@model
def frozen(path, rng):
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [None, 6, 6, 2], "x")
        h = tf.nn.relu(tf.nn.conv2d(x, tf1.get_variable("k", [3, 3, 2, 4]), 1, "VALID"))
        y = tf.identity(tf.reshape(h, [-1, 64]) @ tf1.get_variable("w", [64, 3]), "y")
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            value = rng.randn(2, 6, 6, 2).astype("f")
            expected = session.run(y, {x: value})
            definition = tf1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
    with open(path + ".pbtxt", "w") as f:
        f.write(str(definition))
    return path + ".pbtxt", [{"feeds": {"x:0": value}, "fetches": ["y:0"]}], [{"y:0": expected}]


def trained(path, feeds, loss, optimizer, steps=3):
    """A graph as written to train it: `steps` losses, then every variable."""
    train = optimizer.minimize(loss)
    variables = [tf.identity(v) for v in tf1.global_variables()]
    init = tf1.global_variables_initializer()
    with tf1.Session() as session:
        session.run(init)
        losses = [session.run([loss, train], feeds)[0] for _ in range(steps)]
        values = session.run(variables)
        with open(path + ".pb", "wb") as f:
            f.write(session.graph.as_graph_def().SerializeToString())
    named = {t.name: v for t, v in feeds.items()}
    runs = [{"targets": [init.name]}] + steps * [{"feeds": named, "fetches": [loss.name], "targets": [train.name]}] + [{"fetches": [v.name for v in variables]}]
    return path + ".pb", runs, [{}] + [{loss.name: v} for v in losses] + [{t.name: v for t, v in zip(variables, values)}]


@model
def v1_sampled_softmax(path, rng):
    with tf.Graph().as_default():
        tf1.set_random_seed(3)
        x, y = tf1.placeholder(tf.float32, [None, 8], "x"), tf1.placeholder(tf.int64, [None, 1], "y")
        w, b = tf1.get_variable("w", [50, 8]), tf1.get_variable("b", [50])
        loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(w, b, y, x, 10, 50, seed=7)) + tf.reduce_mean(tf.nn.nce_loss(w, b, y, x, 12, 50))
        return trained(path, {x: rng.randn(6, 8).astype("f"), y: rng.randint(0, 50, [6, 1])}, loss, tf1.train.AdagradOptimizer(0.3))


@model
def v1_wide_deep(path, rng):
    with tf.Graph().as_default():
        tf1.set_random_seed(3)
        ids, y = tf1.sparse_placeholder(tf.int64, [None, None], "ids"), tf1.placeholder(tf.float32, [None, 1], "y")
        e = tf1.get_variable("e", [30, 6], partitioner=tf1.fixed_size_partitioner(3))
        deep = tf1.nn.safe_embedding_lookup_sparse(e, ids, combiner="sqrtn")
        wide = tf1.nn.safe_embedding_lookup_sparse(tf1.get_variable("wide", [30, 1], initializer=tf1.zeros_initializer()), ids, combiner="sum")
        logits = tf.matmul(deep, tf1.get_variable("w", [6, 1], initializer=tf1.initializers.orthogonal(seed=4))) + wide
        feeds = {ids.indices: np.array([[0, 0], [0, 1], [2, 0], [3, 0], [3, 1], [3, 2]]), ids.values: np.array([1, 29, 5, -1, 7, 12]), ids.dense_shape: np.array([5, 3]),
                 y: np.array([[1], [0], [1], [0], [1]], "f")}
        return trained(path, feeds, tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)), tf1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01))


# -- running -----------------------------------------------------------------------------------------------------------

def make(directory):
    """Makes all models; pickles [(name, path, runs, expected)] into directory/models.pickle."""
    import pickle
    tf.keras.utils.set_random_seed(5)
    rows = [(name, *build(os.path.join(directory, name), np.random.RandomState(3))) for name, build in MODELS.items()]
    with open(os.path.join(directory, "models.pickle"), "wb") as f:
        pickle.dump(rows, f)


def made_elsewhere(directory):
    """The same in a process of its own: TensorFlow's two behaviours do not mix in one."""
    import pickle
    os.makedirs(directory, exist_ok=True)
    done = subprocess.run([sys.executable, os.path.abspath(__file__), directory], capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace")[-2000:])
    with open(os.path.join(directory, "models.pickle"), "rb") as f:
        return pickle.load(f)


def commit(directory, names):
    """Writes models with a script and what TensorFlow computed, for tests without TensorFlow."""
    import json
    tf.keras.utils.set_random_seed(5)
    for name in names:
        folder, here = os.path.join(directory, name), os.getcwd()
        os.makedirs(folder)
        os.chdir(folder)  # so that the written files contain no paths of this machine
        _, runs, expected = MODELS[name]("model", np.random.RandomState(3))
        os.chdir(here)
        for i, run in enumerate(runs):
            for kind, values in (("feeds", run.get("feeds", {})), ("expected", expected[i])):
                files = {t: "%s%d_%d.npy" % (kind[0], i, k) for k, t in enumerate(values)}
                for tensor, file in files.items():
                    value = np.asarray(values[tensor])
                    np.save(os.path.join(folder, file), value.astype("S") if value.dtype == object else value)
                run[kind] = files
        with open(os.path.join(folder, "script.json"), "w") as f:
            json.dump({"runs": runs}, f, indent=1)


if __name__ == "__main__":
    # models.py DIRECTORY: all of them; models.py --commit DIRECTORY NAME...: these, for tests
    make(sys.argv[1]) if sys.argv[1] != "--commit" else commit(sys.argv[2], sys.argv[3:])
