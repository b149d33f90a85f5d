"""A SavedModel: GRU classifier of token sequences with a serving signature and a training function (saved_model/)."""

import os
import shutil

import numpy as np
import tensorflow as tf

import common

VOCABULARY, EMBEDDING, HIDDEN, CLASSES, LENGTH, BATCH = 200, 16, 32, 4, 12, 8
DIRECTORY = os.path.join(common.HERE, "saved_model")


class Classifier(tf.Module):
    def __init__(self):
        super().__init__(name="classifier")
        def start(shape, salt):
            return common.reals(shape, salt) * np.float32(0.25)
        self.table = tf.Variable(start([VOCABULARY, EMBEDDING], 1), name="table")
        self.gates = tf.Variable(start([EMBEDDING + HIDDEN, 2 * HIDDEN], 2), name="gates")
        self.gates_bias = tf.Variable(np.ones([2 * HIDDEN], np.float32), name="gates_bias")
        self.candidate = tf.Variable(start([EMBEDDING + HIDDEN, HIDDEN], 3), name="candidate")
        self.candidate_bias = tf.Variable(np.zeros([HIDDEN], np.float32), name="candidate_bias")
        self.classes = tf.Variable(start([HIDDEN, CLASSES], 4), name="classes")
        self.weights = [self.table, self.gates, self.gates_bias, self.candidate, self.candidate_bias, self.classes]
        self.slots = [tf.Variable(np.zeros(w.shape, np.float32), name="momentum_" + w.name.split(":")[0]) for w in self.weights]
        self.step = tf.Variable(np.int64(0), name="step")

    def logits(self, tokens):
        x = tf.transpose(tf.nn.embedding_lookup(self.table, tokens), [1, 0, 2])        # [time, batch, embedding]
        h = tf.zeros([tf.shape(tokens)[0], HIDDEN])
        for t in tf.range(tf.shape(x)[0]):
            z, r = tf.split(tf.sigmoid(tf.matmul(tf.concat([x[t], h], 1), self.gates) + self.gates_bias), 2, axis=1)
            c = tf.tanh(tf.matmul(tf.concat([x[t], r * h], 1), self.candidate) + self.candidate_bias)
            h = z * h + (1 - z) * c
        return tf.matmul(h, self.classes)

    @tf.function(input_signature=[tf.TensorSpec([None, LENGTH], tf.int32, "tokens")])
    def serve(self, tokens):
        logits = self.logits(tokens)
        return {"probabilities": tf.nn.softmax(logits), "class": tf.argmax(logits, 1)}

    @tf.function(input_signature=[tf.TensorSpec([None, LENGTH], tf.int32, "tokens"), tf.TensorSpec([None], tf.int32, "labels")])
    def train(self, tokens, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=self.logits(tokens)))
        for w, m, g in zip(self.weights, self.slots, tape.gradient(loss, self.weights)):
            g = tf.convert_to_tensor(g)
            tf.raw_ops.ResourceApplyMomentum(var=w.handle, accum=m.handle, lr=0.2, grad=g, momentum=0.9, use_nesterov=False, use_locking=False)
        self.step.assign_add(1)
        return {"loss": loss}


def feeds():
    return {"tokens": common.integers([BATCH, LENGTH], VOCABULARY, 77), "labels": common.integers([BATCH], CLASSES, 78)}


def make():
    model = Classifier()
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    tf.saved_model.save(model, DIRECTORY, signatures={"serving_default": model.serve, "train": model.train})
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(DIRECTORY) for f in files)
    return "%-16s %d files, %.2f MB" % ("saved_model", sum(len(files) for _, _, files in os.walk(DIRECTORY)), size / 1e6)


def golden():
    """What the loaded model answers, and the losses of 20 calls of its training signature."""
    directory = os.path.join(common.HERE, "golden", "saved_model")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    given = feeds()
    for name, value in given.items():
        np.save(os.path.join(directory, name + ".npy"), value)
    graph = tf.Graph()
    with graph.as_default(), common.plain_session(graph) as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], DIRECTORY)
        def names(signature):
            s = meta.signature_def[signature]
            return {k: v.name for k, v in s.inputs.items()}, {k: v.name for k, v in s.outputs.items()}
        inputs, outputs = names("serving_default")
        found = session.run(outputs, {inputs["tokens"]: given["tokens"]})
        for name, value in found.items():
            np.save(os.path.join(directory, "expected_%s.npy" % name), value)
        train_inputs, train_outputs = names("train")
        losses = [float(session.run(train_outputs["loss"], {train_inputs[k]: v for k, v in given.items()})) for _ in range(20)]
    runs = [{"feeds": {inputs["tokens"]: "tokens.npy"}, "fetches": sorted(outputs.values())}]
    runs += [{"feeds": {train_inputs[k]: k + ".npy" for k in sorted(given)}, "fetches": [train_outputs["loss"]]}] * 20
    common.write_json(os.path.join(directory, "script.json"), {"runs": runs})
    common.write_json(os.path.join(directory, "golden.json"), {
        "format": "tfc-golden", "version": 1, "graph": "../../saved_model", "tensorflow": tf.__version__, "losses": losses,
        "serving": {tensor: "expected_%s.npy" % name for name, tensor in outputs.items()}})
    return "saved_model      losses %.6g ... %.6g" % (losses[0], losses[-1])
