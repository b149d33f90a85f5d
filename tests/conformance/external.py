"""A training graph from elsewhere: its input pipeline is cut by feeding, random operations get seeds, losses compared."""

import os

import numpy as np

import common
from tool import last_line

tf, tf1 = common.tf, common.tf1
STEPS, BATCH, TIME = 20, 7, 7  # TIME = BATCH, for graphs that put time first and for those that put the batch first
SOURCES = ("IteratorGetNext", "Placeholder", "LookupTableFindV2", "LookupTableFind", "QueueDequeueManyV2", "QueueDequeueV2")
RANDOM = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")


def read_graph(path):
    """(GraphDef, MetaGraphDef or None) of a .meta or .pb file"""
    with open(path, "rb") as f:
        data = f.read()
    meta = tf1.MetaGraphDef()
    try:
        meta.ParseFromString(data)
        if meta.graph_def.node:
            return meta.graph_def, meta
    except Exception:
        pass
    graph_def = tf1.GraphDef()
    graph_def.ParseFromString(data)
    return graph_def, None


def loss_of(graph, options):
    if options.loss:
        return options.loss if ":" in options.loss else options.loss + ":0"
    shown = [op for op in graph.get_operations() if op.type == "ScalarSummary" and "train_loss" in op.name]
    if shown:
        return shown[0].inputs[1].name
    return "loss:0"


def sources(graph, names):
    """Tensors where the step's input pipeline is cut, in the graph's order."""
    todo, seen, cut = [graph.get_operation_by_name(n) for n in names], set(), []
    while todo:
        op = todo.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type in SOURCES:
            cut.append(op)
        else:
            todo += [t.op for t in op.inputs] + list(op.control_inputs)
    used = {t for op in seen if op.type not in SOURCES for t in op.inputs}
    return [t for op in sorted(cut, key=lambda o: o.name) for t in op.outputs if t in used], seen


def feeds_for(tensors, vocabulary, k):
    """Ids below the vocabulary for rank 2 and more, lengths for rank 1, zero for scalars."""
    made = {}
    for i, t in enumerate(tensors):
        known = t.shape.as_list() if t.shape.rank is not None else []
        if t.op.type.startswith("LookupTableFind"):
            made[t.name] = np.zeros([d or 1 for d in known], t.dtype.as_numpy_dtype)
        elif len(known) == 1 and t.dtype.is_integer:
            lengths = 1 + common.integers([BATCH], TIME, 7 * k + i)
            lengths[0] = TIME
            made[t.name] = lengths.astype(t.dtype.as_numpy_dtype)
        elif t.dtype.is_integer:
            shape = [d or (BATCH if j == 0 else TIME) for j, d in enumerate(known)]
            made[t.name] = common.integers(shape, vocabulary, 7 * k + i).astype(t.dtype.as_numpy_dtype)
        else:
            made[t.name] = common.reals([d or BATCH for d in known], 7 * k + i).astype(t.dtype.as_numpy_dtype)
    return made


def seeded(path, directory):
    """A copy of the file in which every random operation has a seed; returns (path, GraphDef, MetaGraphDef or None).

    Loops run one iteration at a time there: a random operation in a loop takes its numbers in the order in which it
    runs, which TensorFlow leaves open where iterations overlap (tfc takes them in the order of the iterations).
    """
    graph_def, meta = read_graph(path)
    for node in graph_def.node:
        if "parallel_iterations" in node.attr:
            node.attr["parallel_iterations"].i = 1
    for i, node in enumerate(n for n in graph_def.node if n.op in RANDOM):
        if not node.attr["seed"].i and not node.attr["seed2"].i:
            node.attr["seed"].i, node.attr["seed2"].i = 7, i + 1
    os.makedirs(directory, exist_ok=True)
    copy = os.path.join(directory, os.path.basename(path))
    with open(copy, "wb") as f:
        f.write((meta or graph_def).SerializeToString())
    return copy, graph_def, meta


def prepare(path, directory, options):
    path, graph_def, meta = seeded(path, directory)
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(graph_def, name="")
    train = list(meta.collection_def["train_op"].node_list.value) if meta and "train_op" in meta.collection_def else ["train_op"]
    train = [t.split(":")[0] for t in train]
    loss = loss_of(graph, options)
    cut, needed = sources(graph, train + [loss.split(":")[0]])
    tables = [op.inputs[0].shape for op in needed if op.type in ("GatherV2", "Gather", "ResourceGather")]
    vocabulary = min([s[0] for s in tables if s.rank == 2 and s[0]] or [100])
    steps = [feeds_for(cut, vocabulary, k % 3) for k in range(STEPS)]
    init = [op.name for op in graph.get_operations() if op.name in ("init", "init_op")]
    if not init:
        init = [v.name + "/Assign" for v in common.variables_of(graph)]
    return path, graph, init, train, loss, steps


def compare(path, options, program, report, compare_losses):
    name = "graph." + os.path.basename(path)
    directory = os.path.join(options.directory, name)
    path, graph, init, train, loss, steps = prepare(path, directory, options)
    # Operations run one at a time, because a random operation in a loop takes its numbers in the order of the
    # iterations. If training amplifies rounding so much that TensorFlow differs from itself, tfc may differ as much.
    losses = []
    for threads in (1, 2, 4):
        with common.plain_session(graph, threads, 1) as session:
            session.run(init)
            losses.append([float(session.run([loss] + train, feeds)[0]) for feeds in steps])
    losses = np.array(losses)
    expected, spread = losses[0], (losses.max(0) - losses.min(0)) / np.abs(losses).min(0)
    runs = [{"targets": init}] + [{"feeds": feeds, "fetches": [loss], "targets": train} for feeds in steps]
    code, outputs, errors = program.script(path, runs, directory)
    if code != 0:
        return report.fail(name, "tfc-run ended with %s: %s" % (code, last_line(errors)))
    print("        %s: TensorFlow's losses %.6g ... %.6g, of three sessions up to %.2g apart" % (name, expected[0], expected[-1], spread.max()))
    compare_losses(name + ".losses", expected, [float(o[loss]) for o in outputs[1:] if loss in o], report, 3 * spread)
