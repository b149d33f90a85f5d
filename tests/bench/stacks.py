#!/usr/bin/env python3
"""tfc beside the other stacks that a user would pick on a CPU, in turns, on four models of equal shapes and weights. Run by
a Python that has TensorFlow 2.15 (`scripts/bench stacks` finds or makes one); the other stacks get virtual environments
of their own in ~/.cache/tfc/stacks.

    stacks.py [--short] [--cores N] [--priority] [--bench FILE] [--table FILE.md] [MODEL...]

A model is written once, over the layers of a class that each stack has; its weights are made once, and put into all.
Each side is a process of its own on the same cores. They run blocks of steps in turns while the others sleep; a time is
the wall time of a step. The outputs, or the losses of three steps, are compared with TensorFlow's.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import zlib

import numpy as np

import suite

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tfc", "stacks")
PACKAGES = {"jax": ["jax==0.10.2", "numpy"], "torch": ["torch==2.15.0", "numpy", "onnx"], "onnx": ["onnxruntime==1.32.0", "numpy"]}
SIDES = {  # what the table calls it: (environment, the word for `serve`); tfc's side is suite_bench
    "tfc `exact`": (None, "tfc"), "TensorFlow": ("tensorflow", "tensorflow"), "TensorFlow, XLA": ("tensorflow", "xla"),
    "JAX, jit": ("jax", "jax"), "PyTorch, eager": ("torch", "eager"), "PyTorch, compiled": ("torch", "compile"),
    "ONNX Runtime": ("onnx", "onnx")}
RATE, TOLERANCE, BLOCK_S, BLOCKS = 0.1, 1e-3, 0.4, 12


# --- The models --------------------------------------------------------------------------------------------------------
def lstm(n, x, labels, units=512, words=1000):
    """Two layers of nmt's cell, unrolled. x [batch, time, units], labels [time * batch]"""
    steps = n.unstack(x)
    for layer in ("lower", "upper"):
        kernel, bias = n.weight(layer + "/kernel", [2 * units, 4 * units], 0.05), n.weight(layer + "/bias", [4 * units], 0)
        steps = n.recurrent(steps, n.zeros(x.shape[0], units), kernel, bias)
    return n.cross_entropy(n.dense("words", n.joined(steps), units, words), labels)


def transformer(n, words, targets, width=512, heads=8, inner=2048, vocabulary=2000):
    """The shapes of examples/transformer: causal, normalised before each layer, the embedding is the last product, too."""
    table = n.weight("embedding/table", [vocabulary, width], 0.02)
    x = n.gather(table, words) + n.weight("position", [words.shape[1], width], 0.02)
    for layer in ("lower/", "upper/"):
        y = n.layer_norm(layer + "norm1", x, width)
        q, k, v = (n.dense(layer + name, y, width, width) for name in ("query", "key", "value"))
        x = x + n.dense(layer + "output", n.attention(q, k, v, heads), width, width)
        y = n.gelu(n.dense(layer + "inner", n.layer_norm(layer + "norm2", x, width), width, inner))
        x = x + n.dense(layer + "outer", y, inner, width)
    return n.cross_entropy(n.product(n.layer_norm("norm", x, width), table), targets)


def normed(n, name, x, channels, filters, size=1, stride=1, groups=1):
    y = n.conv(name + "/kernel", x, channels, filters, size, stride, groups)
    return n.batch_norm(name + "/norm", y, filters)


def resnet50(n, x):
    """Version 1.5: a block's stride is in its 3 x 3 convolution."""
    x, channels = n.max_pool(n.relu(normed(n, "first", x, 3, 64, 7, 2))), 64
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(count):
            name, stride = "stage%d/block%d/" % (stage, block), 2 if stage and not block else 1
            y = n.relu(normed(n, name + "reduce", x, channels, width))
            y = n.relu(normed(n, name + "middle", y, width, width, 3, stride))
            y = normed(n, name + "expand", y, width, 4 * width)
            x = n.relu(y + (x if block else normed(n, name + "short", x, channels, 4 * width, 1, stride)))
            channels = 4 * width
    return n.dense("classes", n.mean(x), 2048, 1000)


def mobilenet_v2(n, x):
    x, channels = n.relu6(normed(n, "first", x, 3, 32, 3, 2)), 32
    stages = (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    for stage, (times, filters, count, stride) in enumerate(stages):
        for block in range(count):
            name, inner = "stage%d/block%d/" % (stage, block), times * channels
            y = n.relu6(normed(n, name + "expand", x, channels, inner)) if times > 1 else x
            y = n.relu6(normed(n, name + "depthwise", y, inner, inner, 3, 1 if block else stride, inner))
            y = normed(n, name + "project", y, inner, filters)
            x, channels = (x + y if block else y), filters
    return n.dense("classes", n.mean(n.relu6(normed(n, "last", x, 320, 1280))), 1280, 1000)


def feeds(name):
    random = np.random.RandomState(1)
    if name == "lstm":
        return {"x": random.standard_normal([32, 20, 512]).astype(np.float32), "labels": random.randint(0, 1000, [640]).astype(np.int32)}
    if name == "transformer":
        words = random.randint(0, 2000, [8, 65]).astype(np.int32)
        return {"words": words[:, :-1].copy(), "targets": words[:, 1:].copy()}
    return {"x": random.standard_normal([1, 224, 224, 3]).astype(np.float32)}


MODELS = {"lstm": lstm, "transformer": transformer, "resnet50": resnet50, "mobilenet_v2": mobilenet_v2}
ABOUT = {"lstm": "training: two layers of nmt's cell, 20 steps, batch 32, 512 units, 1,000 words", "transformer": "training: the shapes of examples/transformer, batch 8",
         "resnet50": "inference, batch 1, 224²", "mobilenet_v2": "inference, batch 1, 224²"}
TRAINED = ("lstm", "transformer")


class Layers:
    """What the stacks have in common. A stack's `weight(name, shape, spread)` gives the weight of that name."""

    def dense(self, name, x, size, units):
        return self.affine(x, self.weight(name + "/kernel", [size, units], size ** -0.5), self.weight(name + "/bias", [units], 0.1))

    def recurrent(self, steps, state, kernel, bias):
        h, c, outputs = state, state, []
        for step in steps:
            h, c = self.cell(step, h, c, kernel, bias)
            outputs.append(h)
        return outputs

    def scale(self, name, size):
        return self.weight(name + "/gamma", [size], "positive"), self.weight(name + "/beta", [size], 0.1)

    def statistics(self, name, size):
        return self.weight(name + "/mean", [size], 0.1), self.weight(name + "/variance", [size], "positive")


def drawn(name, shape, spread):
    random = np.random.RandomState(zlib.crc32(name.encode()))
    return (random.uniform(0.7, 1.3, shape) if spread == "positive" else spread * random.standard_normal(shape)).astype(np.float32)


def kernel_shape(channels, filters, size, groups):
    """As TensorFlow has it: depthwise kernels end in [channels, 1]."""
    return [size, size, channels, 1 if groups > 1 else filters], (2 / (size * size * channels / groups)) ** 0.5


# --- TensorFlow, which makes the files of a model ----------------------------------------------------------------------
def make(name, folder):
    import tensorflow as tf
    tf1, nn, weights, variables = tf.compat.v1, tf.nn, {}, []

    class TensorFlow(Layers):
        relu, relu6, gelu, gather = map(staticmethod, (nn.relu, nn.relu6, nn.gelu, tf.gather))

        def weight(self, name, shape, spread):
            weights[name] = drawn(name, shape, spread)
            if NAME not in TRAINED:
                return tf.constant(weights[name], name=name)
            variables.append(tf1.get_variable(name, initializer=weights[name], use_resource=True))
            return variables[-1]

        def zeros(self, *shape): return tf.zeros(shape)
        def unstack(self, x): return tf.unstack(x, axis=1)
        def joined(self, steps): return tf.concat(steps, 0)
        def product(self, x, table): return tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), table, transpose_b=True)
        def mean(self, x): return tf.reduce_mean(x, [1, 2])

        def affine(self, x, kernel, bias):
            y = nn.bias_add(tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), kernel), bias)
            return tf.reshape(y, x.shape[:-1] + kernel.shape[1:])

        def cell(self, x, h, c, kernel, bias):
            i, j, f, o = tf.split(nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias), 4, axis=1)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            return tf.tanh(c) * tf.sigmoid(o), c

        def layer_norm(self, name, x, size):
            gamma, beta = self.scale(name, size)
            mean, variance = nn.moments(x, [-1], keepdims=True)
            return nn.batch_normalization(x, mean, variance, beta, gamma, 1e-6)

        def attention(self, q, k, v, heads):
            batch, time, width = q.shape
            q, k, v = (tf.transpose(tf.reshape(y, [batch, time, heads, width // heads]), [0, 2, 1, 3]) for y in (q, k, v))
            mask = tf.constant(np.where(np.tri(time), 0, -1e9).astype(np.float32))
            scores = nn.softmax(tf.matmul(q, k, transpose_b=True) * (width // heads) ** -0.5 + mask)
            return tf.reshape(tf.transpose(tf.matmul(scores, v), [0, 2, 1, 3]), [batch, time, width])

        def cross_entropy(self, logits, labels):
            return tf.reduce_mean(nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=logits))

        def conv(self, name, x, channels, filters, size, stride, groups):
            if stride > 1 and size > 1:  # as Keras' applications have it
                x = tf.pad(x, [[0, 0], [size // 2] * 2, [size // 2] * 2, [0, 0]])
            kernel, padding = self.weight(name, *kernel_shape(channels, filters, size, groups)), "VALID" if stride > 1 else "SAME"
            return (nn.depthwise_conv2d if groups > 1 else nn.conv2d)(x, kernel, [1, stride, stride, 1], padding)

        def batch_norm(self, name, x, size):
            (gamma, beta), (mean, variance) = self.scale(name, size), self.statistics(name, size)
            return tf1.nn.fused_batch_norm(x, gamma, beta, mean, variance, epsilon=1e-3, is_training=False)[0]

        def max_pool(self, x):
            return nn.max_pool2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID")

    NAME, values, graph, about = name, feeds(name), tf.Graph(), {"kind": "inference", "targets": [], "init": []}
    with graph.as_default():
        given = [tf1.placeholder(v.dtype, v.shape, name=k) for k, v in values.items()]
        result = tf.identity(MODELS[name](TensorFlow(), *given), name="result")
        if name in TRAINED:
            train = tf1.train.GradientDescentOptimizer(RATE).minimize(result, var_list=variables)
            about = {"kind": "training", "targets": [train.name], "init": [tf1.global_variables_initializer().name]}
    os.makedirs(folder, exist_ok=True)
    for k, v in values.items():
        np.save(os.path.join(folder, k + ".npy"), v)
    np.savez(os.path.join(folder, "weights.npz"), **{k.replace("/", "|"): v for k, v in weights.items()})
    with open(os.path.join(folder, "model.pb"), "wb") as f:
        f.write(graph.as_graph_def().SerializeToString(deterministic=True))
    about.update(feeds={k + ":0": k + ".npy" for k in values}, fetches=["result:0"], name=name, batch=int(next(iter(values.values())).shape[0]),
                 parameters=sum(v.size for v in weights.values()))
    with open(os.path.join(folder, "model.json"), "w") as f:
        json.dump(about, f)


def loaded(folder):
    """(model.json, feeds, weights) of a folder that make() wrote."""
    with open(os.path.join(folder, "model.json")) as f:
        about = json.load(f)
    with np.load(os.path.join(folder, "weights.npz")) as kept:
        weights = {k.replace("|", "/"): kept[k] for k in kept.files}
    return about, [np.load(os.path.join(folder, file)) for file in about["feeds"].values()], weights


# --- The other stacks: each function returns a step without arguments, which returns the output or the loss ---------------
def jax_step(folder, _):
    import jax
    import jax.numpy as jnp
    from jax import lax, nn
    about, values, weights = loaded(folder)
    model = MODELS[about["name"]]

    class Jax(Layers):
        relu, relu6 = map(staticmethod, (nn.relu, nn.relu6))

        def __init__(self, weights): self.weights = weights
        def weight(self, name, *_): return self.weights[name]
        def zeros(self, *shape): return jnp.zeros(shape)
        def unstack(self, x): return x.swapaxes(0, 1)
        def joined(self, steps): return steps.reshape(-1, steps.shape[-1])
        def gelu(self, x): return nn.gelu(x, approximate=False)
        def gather(self, table, ids): return table[ids]
        def product(self, x, table): return x @ table.T
        def affine(self, x, kernel, bias): return x @ kernel + bias
        def mean(self, x): return x.mean((1, 2))

        def cell(self, x, h, c, kernel, bias):
            i, j, f, o = jnp.split(jnp.concatenate([x, h], 1) @ kernel + bias, 4, axis=1)
            c = c * nn.sigmoid(f + 1.0) + nn.sigmoid(i) * jnp.tanh(j)
            return jnp.tanh(c) * nn.sigmoid(o), c

        def recurrent(self, steps, state, kernel, bias):  # unrolled is slower by a quarter, and compiles for 20 s
            def step(state, x):
                state = self.cell(x, *state, kernel, bias)
                return state, state[0]
            return lax.scan(step, (state, state), steps)[1]

        def layer_norm(self, name, x, size):
            gamma, beta = self.scale(name, size)
            return nn.standardize(x, epsilon=1e-6) * gamma + beta

        def attention(self, q, k, v, heads):
            split = [y.reshape(y.shape[:2] + (heads, -1)) for y in (q, k, v)]
            return nn.dot_product_attention(*split, is_causal=True).reshape(q.shape)

        def cross_entropy(self, logits, labels):
            logits = logits.reshape(-1, logits.shape[-1])
            chosen = jnp.take_along_axis(logits, labels.reshape(-1, 1), axis=1)[:, 0]
            return (nn.logsumexp(logits, axis=1) - chosen).mean()

        def conv(self, name, x, channels, filters, size, stride, groups):
            kernel = self.weight(name)
            return lax.conv_general_dilated(x, kernel.swapaxes(2, 3) if groups > 1 else kernel, (stride, stride), [(size // 2, size // 2)] * 2,
                                            dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)

        def batch_norm(self, name, x, size):
            (gamma, beta), (mean, variance) = self.scale(name, size), self.statistics(name, size)
            factor = gamma * lax.rsqrt(variance + 1e-3)
            return x * factor + (beta - mean * factor)

        def max_pool(self, x):
            return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))

    values, state = [jnp.asarray(v) for v in values], {k: jnp.asarray(w) for k, w in weights.items()}
    if about["kind"] == "inference":
        infer = jax.jit(lambda weights, *given: model(Jax(weights), *given))  # weights as constants were slower
        return lambda: infer(state, *values).block_until_ready()

    def train(weights, *given):
        loss, gradients = jax.value_and_grad(lambda w: model(Jax(w), *given))(weights)
        return {k: w - RATE * gradients[k] for k, w in weights.items()}, loss
    train = jax.jit(train, donate_argnums=0)

    def step():
        nonlocal state
        state, loss = train(state, *values)
        return jax.block_until_ready((state, loss))[1]
    return step


def torch_model(folder):
    import torch
    import torch.nn.functional as F
    about, values, weights = loaded(folder)

    def lstm_layer(kernel, bias):
        """TensorFlow's gates i, j, f + 1, o as those of torch.nn.LSTM, whose second bias stays 0."""
        units = bias.size // 4
        layer, order = torch.nn.LSTM(units, units), np.r_[0:units, 2 * units:3 * units, units:2 * units, 3 * units:4 * units]
        bias[2 * units:3 * units] += 1
        with torch.no_grad():
            for there, here in ((layer.weight_ih_l0, kernel[:units, order].T), (layer.weight_hh_l0, kernel[units:, order].T), (layer.bias_ih_l0, bias[order])):
                there.copy_(torch.from_numpy(here.copy()))
            layer.bias_hh_l0.zero_().requires_grad_(False)
        return layer

    class Torch(torch.nn.Module, Layers):
        relu, relu6, gelu = map(staticmethod, (F.relu, F.relu6, F.gelu))

        def __init__(self):
            super().__init__()
            if about["name"] == "lstm":
                self.layers = torch.nn.ModuleDict({k: lstm_layer(weights.pop(k + "/kernel"), weights.pop(k + "/bias")) for k in ("lower", "upper")})
            for name, w in weights.items():
                w = torch.from_numpy(w)
                if w.dim() == 4:
                    w = w.permute(2, 3, 0, 1) if "depthwise" in name else w.permute(3, 2, 0, 1)
                    w = w.contiguous(memory_format=torch.channels_last)
                elif name.endswith("kernel"):
                    w = w.t().contiguous()  # [out, in], as torch.nn.Linear has it
                if name.endswith(("/mean", "/variance")):
                    self.register_buffer(name.replace("/", "_"), w)
                else:
                    self.register_parameter(name.replace("/", "_"), torch.nn.Parameter(w))

        def forward(self, *given): return MODELS[about["name"]](self, *given)
        def weight(self, name, *_):
            layer = name.partition("/")[0]
            return self.layers[layer] if about["name"] == "lstm" and layer in self.layers else getattr(self, name.replace("/", "_"))

        def zeros(self, *shape): return torch.zeros(shape)
        def unstack(self, x): return x.transpose(0, 1)
        def joined(self, steps): return steps.flatten(0, 1)
        def gather(self, table, ids): return F.embedding(ids, table)
        def product(self, x, table): return F.linear(x, table)
        def affine(self, x, kernel, bias): return F.linear(x, kernel, bias)
        def mean(self, x): return x.mean((2, 3))

        def recurrent(self, steps, state, kernel, bias):  # cells one by one took twice as long
            return kernel(steps)[0]

        def layer_norm(self, name, x, size):
            return F.layer_norm(x, [size], *self.scale(name, size), 1e-6)

        def attention(self, q, k, v, heads):
            split = [y.unflatten(2, (heads, -1)).transpose(1, 2) for y in (q, k, v)]
            return F.scaled_dot_product_attention(*split, is_causal=True).transpose(1, 2).flatten(2)

        def cross_entropy(self, logits, labels):
            return F.cross_entropy(logits.flatten(0, -2), labels.flatten())

        def conv(self, name, x, channels, filters, size, stride, groups):
            return F.conv2d(x, self.weight(name), None, stride, size // 2, 1, groups)

        def batch_norm(self, name, x, size):
            (gamma, beta), (mean, variance) = self.scale(name, size), self.statistics(name, size)
            return F.batch_norm(x, mean, variance, gamma, beta, False, 0.0, 1e-3)

        def max_pool(self, x): return F.max_pool2d(x, 3, 2, 1)

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    given = [torch.from_numpy(v.astype(np.int64) if v.dtype == np.int32 else v) for v in values]
    given = [v.permute(0, 3, 1, 2) if v.dim() == 4 else v for v in given]  # this is channels_last
    return about, Torch(), given


def torch_step(folder, word):
    import torch
    about, model, given = torch_model(folder)
    if about["kind"] == "inference":
        model.eval()
        if word == "compile":
            import torch._inductor.config
            torch._inductor.config.freezing = True
            model = torch.compile(model)

        def infer():
            with torch.no_grad() if word == "compile" else torch.inference_mode():
                return model(*given)
        return infer
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, fused=True)
    if word == "compile":
        model = torch.compile(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(*given)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def export(folder):
    import torch
    _, model, given = torch_model(folder)
    torch.onnx.export(model.eval(), (given[0].contiguous(),), os.path.join(folder, "model.onnx"), input_names=["x"], dynamo=False)


def onnx_step(folder, _):
    import onnxruntime
    _, values, _ = loaded(folder)
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), settings, providers=["CPUExecutionProvider"])
    given = {"x": np.ascontiguousarray(values[0].transpose(0, 3, 1, 2))}
    return lambda: session.run(None, given)[0]


def serve(word, folder):
    """A side other than tfc's and TensorFlow's: answers as suite_bench does."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    step = {"jax": jax_step, "eager": torch_step, "compile": torch_step, "onnx": onnx_step}[word](folder, word)
    print("ready", file=answer, flush=True)
    for line in sys.stdin:
        what, count, *rest = line.rstrip("\n").split(" ", 2)
        if what == "first":
            for k in range(int(count)):
                np.save(os.path.join(rest[0], "%d_0.npy" % k), np.asarray(step()))
            print("ready", file=answer, flush=True)
        else:
            times, cpu = [], time.process_time()
            for _ in range(int(count)):
                begin = time.perf_counter()
                step()
                times.append((time.perf_counter() - begin) * 1e6)
            print(*("%.3f" % t for t in times), (time.process_time() - cpu) * 1e6, file=answer, flush=True)


# --- The run -----------------------------------------------------------------------------------------------------------
def environment(name):
    """The Python of a stack's environment, made when it is absent."""
    if name == "tensorflow":
        return sys.executable
    folder = os.path.join(CACHE, name)
    mark = os.path.join(folder, "-".join(PACKAGES[name]))
    if not os.path.exists(mark):
        print("stacks: making %s with %s (once)" % (folder, ", ".join(PACKAGES[name])), file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([os.path.join(folder, "bin", "pip"), "install", "--quiet"] + PACKAGES[name], check=True)
        open(mark, "w").close()
    return os.path.join(folder, "bin", "python")


def start(side, folder, options, on):
    where, word = SIDES[side]
    if word == "tfc":
        return suite.Side([options.bench, folder, "exact"], on)
    flags = ["env", "XLA_FLAGS=", "TF_XLA_FLAGS=" + ("--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit" if word == "xla" else ""), "OMP_NUM_THREADS=%d" % len(on),
             "TORCHINDUCTOR_CACHE_DIR=" + os.path.join(CACHE, "inductor"), "JAX_PLATFORMS=cpu", environment(where)]
    if where == "tensorflow":
        started = suite.Side(flags + [os.path.join(HERE, "models.py"), "serve"], on)
        started.tell("load " + folder)
        return started
    return suite.Side(flags + [os.path.abspath(__file__), "serve", word, folder], on)


def difference(kept, side, steps):
    """The largest distance from TensorFlow's, relative to TensorFlow's largest value."""
    worst = 0.0
    for k in range(steps):
        a, b = (np.load(os.path.join(kept, s, "%d_0.npy" % k)).astype(np.float64) for s in (SIDES[side][1], "tensorflow"))
        worst = max(worst, float(np.abs(a - b).max() / np.abs(b).max())) if a.shape == b.shape and np.isfinite(a).all() else math.inf
    return worst


def real_time(side):
    for thread in os.listdir("/proc/%d/task" % side.process.pid):
        os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(10))


def measure(name, options):
    """{side: quartiles in microseconds, steps, difference} of one model."""
    folder = os.path.join(CACHE, "models", name)
    make(name, folder)
    training, on = name in TRAINED, set(sorted(os.sched_getaffinity(0))[-options.cores:])
    if not training:
        subprocess.run([environment("torch"), os.path.abspath(__file__), "export", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sides, rows = {s: start(s, folder, options, on) for s in SIDES if not (training and s == "ONNX Runtime")}, {}
    try:
        with tempfile.TemporaryDirectory() as kept:
            for s, side in sides.items():  # one after the other: some compile, and need gigabytes for it
                try:
                    side.hear()
                except suite.Refused as e:
                    sys.exit("stacks: %s: %s did not start: %s" % (name, s, e))
                if options.priority:  # from here on: what tfc measures when it warms up should be as later, too
                    real_time(side)
                os.mkdir(os.path.join(kept, SIDES[s][1]))
                side.ask("first %d %s" % (3 if training else 1, os.path.join(kept, SIDES[s][1])))
            rows = {s: {"difference": difference(kept, s, 3 if training else 1)} for s in sides}
        for side in sides.values():
            side.run(5)
        guess, times = {s: min(side.run(3)) for s, side in sides.items()}, {s: [] for s in sides}
        for _ in range(5 if options.short else BLOCKS):
            for s, side in sides.items():
                times[s] += side.run(max(1, int(BLOCK_S * 1e6 / guess[s])))
        for s, t in times.items():
            rows[s].update(zip(("q1", "median", "q3"), np.percentile(t, [25, 50, 75])), steps=len(t))
        return rows
    finally:
        for side in sides.values():
            side.close()


def table(results):
    out = ["| step of | side | median, ms | quartiles, ms | / tfc | from TensorFlow | steps |", "|---|---|---|---|---|---|---|"]
    said = []
    for name, rows in results.items():
        ours, wrong = rows["tfc `exact`"]["median"], [s for s in rows if not rows[s]["difference"] <= TOLERANCE]
        for s, r in rows.items():
            ratio = r["median"] / ours
            out.append("| %s | %s | %.2f | %.2f to %.2f | %s | %s | %d |" % (name, s, r["median"] / 1e3, r["q1"] / 1e3, r["q3"] / 1e3, "**%.2f**" % ratio if ratio < 1 else "%.2f" % ratio,
                       "–" if s == "TensorFlow" else "**%.1g**" % r["difference"] if s in wrong else "%.1g" % r["difference"], r["steps"]))
        fastest = min(rows, key=lambda s: rows[s]["median"])
        said.append("- %s: %s" % (name, "tfc is the fastest" if rows[fastest]["median"] == ours else
                                  "**%s is the fastest: %.2f of tfc's time**" % (fastest, rows[fastest]["median"] / ours))
                    + ("; **other results than TensorFlow's: %s**" % ", ".join(wrong) if wrong else "") + ".")
    return "\n".join(out + [""] + said) + "\n"


PAGE = """# tfc beside TensorFlow, JAX, PyTorch and ONNX Runtime

Made by `%(command)s` at `%(commit)s`

On %(cores)d of %(all)d cores (%(processor)s)%(priority)s.
%(versions)s; tfc with `--rewrites exact`.
Each side is a process of its own on the same %(which)s; they run %(blocks)d blocks of %(block)s s each (at least a step) in turns while the
others sleep, after everything was compiled and eight steps or more. All have the same weights and inputs. "/ tfc": medians, above 1 tfc is
faster. "From TensorFlow": the largest distance of the losses of the first three steps, or of the output, from
TensorFlow's, relative to its largest value (at most %(tolerance)g, else bold).

%(about)s

Each stack is used as its documentation recommends for a CPU: TensorFlow with oneDNN and grappler, and with
`TF_XLA_FLAGS='--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit'`; JAX with the whole step in one `jit`, weights donated
in training, inputs on the device; PyTorch with as many threads as cores, `inference_mode`, channels last, its fused
attention and SGD, and `nn.LSTM`, compiled by `torch.compile` (inference: with freezing, which folds batch
normalisation); ONNX Runtime with all optimisations and as many threads as cores, of a model that PyTorch exported. The
LSTM of tfc and TensorFlow is unrolled; JAX has `lax.scan` instead, because that was faster (0.5 s against 0.8 s).

"""
WHY = "## Why"  # what stands from here on is written by hand, and kept


def versions():
    import tensorflow
    found = ["TensorFlow " + tensorflow.__version__]
    for where, package in (("jax", "jax"), ("torch", "torch"), ("onnx", "onnxruntime")):
        found.append(subprocess.run([environment(where), "-c", "from importlib.metadata import version; print('%s', version('%s'))" % (package, package)],
                                    capture_output=True, text=True, check=True).stdout.strip())
    return ", ".join(found)


def page(results, options):
    about = []
    for name in results:
        with open(os.path.join(CACHE, "models", name, "model.json")) as f:
            about.append("- %s: %s; %.1f million weights" % (name, ABOUT[name], json.load(f)["parameters"] / 1e6))
    text = PAGE % {"command": " ".join(["scripts/bench stacks"] + ["--short"] * options.short + ["--cores %d" % options.cores] * (options.cores > 1) + ["--priority"] * options.priority + options.models), "commit": suite.commit()[:8], "cores": options.cores, "all": os.cpu_count(), "processor": suite.processor(),
                   "priority": ", all sides with real-time priority (`chrt -f 10`), because\nother programs used the cores all the time" if options.priority else "",
                   "versions": versions(), "which": "core" if options.cores == 1 else "cores", "block": BLOCK_S, "blocks": 5 if options.short else BLOCKS, "tolerance": TOLERANCE,
                   "about": "\n".join(about)}
    try:
        with open(options.table) as f:
            why = f.read().partition(WHY)
    except OSError:
        why = ("", "", "")
    with open(options.table, "w") as f:
        f.write(text + table(results) + ("\n" + why[1] + why[2] if why[1] else ""))


def main():
    if sys.argv[1:2] == ["serve"]:
        return serve(*sys.argv[2:])
    if sys.argv[1:2] == ["export"]:
        return export(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="5 blocks of 0.4 s of each side instead of 12")
    parser.add_argument("--cores", type=int, default=1, help="the last N that this process may use (default 1)")
    parser.add_argument("--priority", action="store_true", help="real-time priority while steps are timed, for a busy machine (needs the right to set it)")
    parser.add_argument("--bench", default=os.path.join(ROOT, "build", "release", "tests", "suite_bench"), help="tfc's side")
    parser.add_argument("--table", metavar="FILE.md", help="where the page is written (default, with all models: docs/measurements/stacks.md)")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: " + ", ".join(MODELS))
    options, results = parser.parse_args(), {}
    unknown = [m for m in options.models if m not in MODELS]
    if unknown:
        sys.exit("stacks: no model named '%s'; there are: %s" % (unknown[0], ", ".join(MODELS)))
    if not 1 <= options.cores <= len(os.sched_getaffinity(0)):
        sys.exit("stacks: --cores %d: this process may use %d" % (options.cores, len(os.sched_getaffinity(0))))
    try:  # if it may not be set, that is said before anything is made
        if options.priority:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        sys.exit("stacks: --priority: this process may not set real-time priorities (root may, or ulimit -r 10)")
    for name in options.models or MODELS:
        begin = time.monotonic()
        try:
            results[name] = measure(name, options)
        except (OSError, suite.Refused, subprocess.CalledProcessError) as e:
            sys.exit("stacks: %s: %s" % (name, e))
        print("%s (%.0f s)\n%s" % (name, time.monotonic() - begin, table({name: results[name]})), flush=True)
    options.table = options.table or (None if options.models else os.path.join(ROOT, "docs", "measurements", "stacks.md"))
    if options.table:
        page(results, options)
    return None


if __name__ == "__main__":
    main()
