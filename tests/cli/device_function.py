"""For device_function_long_test.sh: builds a model's graph with its own script, with and without a placement, and compares.

    device_function.py build MODEL GRAPH.pb            writes the graph
    device_function.py check MODEL PLACEMENT.py        compares devices and losses
"""

import contextlib
import importlib
import importlib.util
import sys

from common import Example, integers, reals, tf, tf1

STEPS, DEVICES = 3, 4


def build_keras():
    x = tf1.placeholder(tf.float32, [8, 16, 16, 3], name="x")
    labels = tf1.placeholder(tf.int32, [8], name="labels")
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPool2D(),
        layers.Conv2D(16, 3, padding="same", activation="relu"), layers.GlobalAveragePooling2D(),
        layers.Dense(32, activation="tanh"), layers.LayerNormalization(), layers.Dense(10)])
    logits = model(x, training=True)
    losses = tf.keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    loss = tf.reduce_mean(losses, name="loss")
    optimizer = tf1.train.AdamOptimizer(0.01)
    with tf1.control_dependencies(model.updates):
        train = optimizer.minimize(loss, var_list=model.trainable_variables)
    tf1.group(train, name="train_op")
    tf1.group(*[v.initializer for v in model.variables + optimizer.variables()], name="init")


def example_of(model):
    if model == "keras":
        feeds = {"x:0": reals([8, 16, 16, 3], 1), "labels:0": integers([8], 10, 2)}
        return Example("keras", build_keras, [feeds], resource_variables=True)
    return importlib.import_module("models." + model).example()


def build(example, device=None):
    (tf1.enable_resource_variables if example.resource_variables else tf1.disable_resource_variables)()
    tf1.disable_control_flow_v2()
    tf.keras.utils.set_random_seed(1)
    graph = tf.Graph()
    with graph.as_default():
        tf1.set_random_seed(1)
        with tf1.device(device) if device else contextlib.nullcontext():
            example.build()
    return graph


def run(example, graph):
    """The losses of a few steps, and where each operation of the last one ran."""
    config = tf1.ConfigProto(device_count={"CPU": DEVICES}, allow_soft_placement=False, intra_op_parallelism_threads=1,
                             inter_op_parallelism_threads=2)
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    losses, ran = [], {}
    with tf1.Session(graph=graph, config=config) as session:
        session.run(example.init)
        for step in range(STEPS):
            metadata = tf1.RunMetadata()
            options = tf1.RunOptions(trace_level=tf1.RunOptions.SOFTWARE_TRACE)
            feeds = example.feeds[step % len(example.feeds)]
            losses.append(session.run([example.loss] + example.train, feeds, options, metadata)[0])
    names = {op.name for op in graph.get_operations()}
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            if node.node_name in names:
                ran[node.node_name] = device.device
    return losses, ran


def check(model, path):
    spec = importlib.util.spec_from_file_location("placement", path)
    placement = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(placement)
    example = example_of(model)
    wanted = {name: placement.DEVICES[index] for name, index in placement.NODES.items()}
    plain = build(example)
    # nmt's script asks for devices itself, and TensorFlow adds up gradients device by device: under both, it would build
    # other sums than those that were placed.
    graph = build(example, placement.device if model != "nmt" else None)
    operations = {op.name: op for op in graph.get_operations()}

    def elsewhere(names):
        return [name for name in names if name in wanted and operations[name].device != wanted[name]]

    scoped = len([name for name in wanted if operations[name].device == wanted[name]])
    assert placement.apply(graph) == len(wanted)
    wrong = elsewhere(operations)
    assert not wrong, "%d operations have another device: %s" % (len(wrong), wrong[:5])
    assert len(set(wanted.values())) > 1, "the placement is one device: nothing is tested"
    assert set(wanted) <= set(operations), sorted(set(wanted) - set(operations))[:5]
    for op in plain.get_operations():  # without the placement; nmt's script asks for GPUs, which are not here
        op._set_device("")
    expected, _ = run(example, plain)
    losses, ran = run(example, graph)
    strayed = [name for name in ran if ran[name] != wanted.get(name, ran[name])]
    assert not strayed, "%d operations ran elsewhere: %s" % (len(strayed), strayed[:5])
    # tf.group makes a NoOp for each device on which its operations are: the placed graph has more of them.
    unknown = [name for name in ran if name not in wanted and operations[name].type != "NoOp"]
    assert not unknown, "%d operations of the step are not in the placement: %s" % (len(unknown), unknown[:5])
    assert losses == expected, (losses, expected)
    print("%s: all %d operations that are placed, of %d, have their device (%d by the scope alone); %d ran there; losses %s"
          % (model, len(wanted), len(operations), scoped, len(ran), ", ".join("%.7g" % x for x in losses)))


def main():
    command, model, path = sys.argv[1:]
    if command == "check":
        return check(model, path)
    example = example_of(model)
    graph = build(example)
    for op in graph.get_operations():
        op._set_device("")
    with open(path, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
