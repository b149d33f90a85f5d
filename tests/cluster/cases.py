"""Training jobs as TensorFlow 2.15 writes them: for each a function that builds the graph of one task, and says what the
task's session runs. `generate.py` runs them in TensorFlow's own servers and keeps graphs, scripts and what came out.

A case is CASES[name] = (cluster, build): build(job, task, cluster) returns a list of entries of the task's script, after
building the default graph. An entry is barrier(name) or run(fetches, feeds, targets, check): `check` False where what
comes depends on who is faster.
"""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
CASES = {}


def case(cluster):
    def add(build):
        CASES[build.__name__] = (cluster, build)
        return build

    return add


def barrier(name):
    return {"barrier": name}


def name_of(thing):
    if hasattr(thing, "handle"):  # for a resource variable, its value
        return thing._graph_element.name
    return thing if isinstance(thing, str) else thing.name


def run(fetches=(), feeds=None, targets=(), check=True):
    return {"fetches": [name_of(f) for f in fetches], "targets": [name_of(t) for t in targets],
            "feeds": {name_of(k): v for k, v in (feeds or {}).items()}, "check": check}


def together(*runs):
    return {"together": list(runs)}


def batch(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def placed(cluster, job, task, **more):
    return v1.device(v1.train.replica_device_setter(cluster=cluster, worker_device="/job:%s/task:%d" % (job, task), **more))


def init(chief):
    """The chief initialises, the others wait."""
    ops = [run(targets=[v1.global_variables_initializer()])] if chief else []
    return ops + [barrier("initialised")]


def network(x, y, hidden=8):
    """Two layers: the loss."""
    v1.set_random_seed(1)
    w1 = v1.get_variable("w1", [x.shape[1], hidden], initializer=v1.random_uniform_initializer(-0.5, 0.5, seed=1))
    b1 = v1.get_variable("b1", [hidden], initializer=v1.zeros_initializer())
    w2 = v1.get_variable("w2", [hidden, 1], initializer=v1.random_uniform_initializer(-0.5, 0.5, seed=2))
    h = tf.tanh(tf.matmul(x, w1) + b1)
    return tf.reduce_mean(tf.square(tf.matmul(h, w2) - y))


def data(job_seed, step, rows=4, columns=3):
    x = batch(100 * job_seed + step, rows, columns)
    return x, np.sum(x, axis=1, keepdims=True).astype(np.float32)


def placeholders(rows=None, columns=3):
    return v1.placeholder(tf.float32, [rows, columns], "x"), v1.placeholder(tf.float32, [rows, 1], "y")


def turns(task, count, tasks, steps, name="turn"):
    """Entries in which one worker after the other takes a step, so that what comes is one thing only."""
    entries = []
    for step in range(steps):
        for who in range(tasks):
            if who == task:
                entries += steps_of(count, step)
            entries.append(barrier("%s" % name))
    return entries


def steps_of(make, step):
    made = make(step)
    return made if isinstance(made, list) else [made]


def train_in_turns(job, task, cluster, optimizer, resource=False, steps=4, workers=2, **more):
    """Between-graph replication, one worker after the other."""
    with placed(cluster, job, task, **more):
        v1.get_variable_scope().set_use_resource(resource)
        x, y = placeholders()
        loss = network(x, y)
        step = v1.train.get_or_create_global_step()
        train = optimizer().minimize(loss, global_step=step)

    def one(i):
        xs, ys = data(task + 1, i)
        return [run([loss], {x: xs, y: ys}, [train]), run([step])]

    return init(task == 0) + turns(task, one, workers, steps)


def turn_case(name, optimizer, cluster={"ps": 1, "worker": 2}, **more):
    def build(job, task, spec):
        return train_in_turns(job, task, spec, optimizer, workers=cluster["worker"], **more)

    build.__name__ = name
    case(cluster)(build)


turn_case("sgd", lambda: v1.train.GradientDescentOptimizer(0.1))
turn_case("sgd_resource", lambda: v1.train.GradientDescentOptimizer(0.1), resource=True)
turn_case("momentum", lambda: v1.train.MomentumOptimizer(0.05, 0.9))
turn_case("nesterov_resource", lambda: v1.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True), resource=True)
turn_case("adam", lambda: v1.train.AdamOptimizer(0.01))
turn_case("adam_resource_two_ps", lambda: v1.train.AdamOptimizer(0.01), {"ps": 2, "worker": 2}, resource=True)
turn_case("adagrad_two_ps", lambda: v1.train.AdagradOptimizer(0.1), {"ps": 2, "worker": 2})
turn_case("rmsprop", lambda: v1.train.RMSPropOptimizer(0.01))
turn_case("ftrl_three_workers", lambda: v1.train.FtrlOptimizer(0.1), {"ps": 1, "worker": 3}, steps=3)
turn_case("three_ps_one_worker", lambda: v1.train.GradientDescentOptimizer(0.1), {"ps": 3, "worker": 1})


@case({"ps": 2, "worker": 2})
def greedy_load(job, task, cluster):
    loads = [0, 0]

    def greedy(op):  # the same as TensorFlow's GreedyLoadBalancingStrategy with byte_size_load_fn
        at = int(np.argmin(loads))
        shape = op.get_attr("shape")
        loads[at] += int(np.prod([d.size for d in shape.dim])) * 4
        return at

    with placed(cluster, job, task, ps_strategy=greedy):
        x, y = placeholders(columns=5)
        loss = network(x, y, hidden=16)
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    def one(i):
        xs, ys = data(task + 1, i, columns=5)
        return run([loss], {x: xs, y: ys}, [train])

    return init(task == 0) + turns(task, one, 2, 4)


def sync(job, task, cluster, workers, aggregate, steps, optimizer, resource=False, check=True):
    """SyncReplicasOptimizer: the chief's queue runner applies what the accumulators gathered, and gives out tokens."""
    chief = task == 0
    with placed(cluster, job, task):
        v1.get_variable_scope().set_use_resource(resource)
        x, y = placeholders()
        loss = network(x, y)
        step = v1.train.get_or_create_global_step()
        opt = v1.train.SyncReplicasOptimizer(optimizer(), replicas_to_aggregate=aggregate, total_num_replicas=workers)
        train = opt.minimize(loss, global_step=step)
        tokens = opt.get_init_tokens_op(num_tokens=0)
        local = opt.chief_init_op if chief else opt.local_step_init_op
        ready = opt.ready_for_local_init_op
        if chief:
            v1.train.add_queue_runner(opt.get_chief_queue_runner())
        initialise = v1.global_variables_initializer()
    entries = [run(targets=[initialise])] if chief else []
    entries += [barrier("initialised"), run([ready], check=False), run(targets=[local])]
    entries += ([run(targets=[tokens])] if chief else []) + [barrier("tokens")]
    for i in range(steps):
        xs, ys = data(task + 1, i)
        # Tokens are the same for all workers: without the barrier a fast worker would take those of a slow one.
        entries += [run([loss], {x: xs, y: ys}, [train], check=check), barrier("step")]
    entries.append(run([step]))
    if check:
        entries.append(run(v1.trainable_variables()))
    return entries


def sync_case(name, workers, aggregate, optimizer, steps=5, ps=1, **more):
    def build(job, task, cluster):
        return sync(job, task, cluster, workers, aggregate, steps, optimizer, **more)

    build.__name__ = name
    case({"ps": ps, "worker": workers})(build)


sync_case("sync_sgd", 2, 2, lambda: v1.train.GradientDescentOptimizer(0.1))
sync_case("sync_sgd_resource", 2, 2, lambda: v1.train.GradientDescentOptimizer(0.1), resource=True)
sync_case("sync_momentum_two_ps", 2, 2, lambda: v1.train.MomentumOptimizer(0.05, 0.9), ps=2)
sync_case("sync_adam_three_workers", 3, 3, lambda: v1.train.AdamOptimizer(0.01), steps=4)
sync_case("sync_backup", 3, 2, lambda: v1.train.GradientDescentOptimizer(0.1), steps=6, check=False)


@case({"ps": 1, "worker": 2})
def sync_inputs(job, task, cluster):
    """SyncReplicasOptimizer with inputs of each worker's own: rows that its queue runner shuffles, counting epochs in a
    local variable, an iterator whose dataset draws numbers, and dropout."""
    chief = task == 0
    with v1.device("/job:worker/task:%d" % task):
        source = tf.constant(batch(task, 6, 3))
        row = v1.train.slice_input_producer([source], shuffle=True, seed=7 + task, num_epochs=1000000, capacity=4)[0]
        numbers = tf.data.Dataset.range(20).shuffle(7, seed=3 + task).map(
            lambda i: tf.cast(i % 3, tf.float32) + tf.random.uniform([], seed=11 + task)).repeat()
        scale = v1.data.make_one_shot_iterator(numbers).get_next()
    with placed(cluster, job, task):
        x = tf.stack([row, row * scale])
        loss = network(tf.nn.dropout(x, rate=0.25, seed=5 + task), tf.reduce_sum(x, 1, keepdims=True))
        loss = tf.identity(loss, name="loss")
        step = v1.train.get_or_create_global_step()
        opt = v1.train.SyncReplicasOptimizer(v1.train.AdamOptimizer(0.01), replicas_to_aggregate=2, total_num_replicas=2)
        train = tf.group(opt.minimize(loss, global_step=step), name="train")
        tokens = opt.get_init_tokens_op(num_tokens=0)
        local = opt.chief_init_op if chief else opt.local_step_init_op
        if chief:
            v1.train.add_queue_runner(opt.get_chief_queue_runner())
    entries = init(chief) + [run(targets=[v1.local_variables_initializer()]), run(targets=[local])]
    entries += ([run(targets=[tokens])] if chief else []) + [barrier("tokens")]
    for _ in range(8):
        entries += [run([loss], targets=[train]), barrier("step")]
    return entries + [run([step]), run(v1.trainable_variables())]


@case({"ps": 1, "worker": 3})
def async_counts(job, task, cluster):
    """Everybody at once: each update counts once."""
    with placed(cluster, job, task):
        total = v1.get_variable("total", [64], initializer=v1.zeros_initializer())
        step = v1.train.get_or_create_global_step()
        add = v1.assign_add(total, tf.fill([64], float(task + 1)), use_locking=True)
        both = tf.group(add, v1.assign_add(step, 1, use_locking=True))
    entries = init(task == 0) + [run(targets=[both], check=False) for _ in range(40)]
    return entries + [barrier("all"), run([total, step])]


@case({"ps": 2, "worker": 2})
def async_training(job, task, cluster):
    """Everybody at once, with an optimizer: as many steps as were taken."""
    with placed(cluster, job, task):
        x, y = placeholders()
        loss = network(x, y)
        step = v1.train.get_or_create_global_step()
        train = v1.train.AdamOptimizer(0.01, use_locking=True).minimize(loss, global_step=step)
    entries = init(task == 0)
    for i in range(20):
        xs, ys = data(task + 1, i)
        entries.append(run([loss], {x: xs, y: ys}, [train], check=False))
    return entries + [barrier("all"), run([step])]


@case({"ps": 2, "worker": 2})
def embeddings(job, task, cluster):
    """A table partitioned over the ps; updates send rows alone."""
    with placed(cluster, job, task):
        table = v1.get_variable("table", [10, 4], partitioner=v1.fixed_size_partitioner(2),
                                initializer=v1.random_uniform_initializer(-1, 1, seed=3))
        ids = v1.placeholder(tf.int32, [None], "ids")
        rows = v1.nn.embedding_lookup(table, ids, partition_strategy="div")
        loss = tf.reduce_sum(tf.square(rows - 0.5))
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    def one(i):
        return run([loss], {ids: np.array([i, 7 - i, 3 + task, 9], np.int32)}, [train])

    return init(task == 0) + turns(task, one, 2, 4)


@case({"ps": 1, "worker": 2})
def embeddings_resource_adam(job, task, cluster):
    with placed(cluster, job, task):
        v1.get_variable_scope().set_use_resource(True)
        table = v1.get_variable("table", [12, 3], initializer=v1.random_uniform_initializer(-1, 1, seed=3))
        ids = v1.placeholder(tf.int64, [4], "ids")
        loss = tf.reduce_sum(tf.square(v1.nn.embedding_lookup(table, ids) - 0.5))
        train = v1.train.AdamOptimizer(0.05).minimize(loss)

    def one(i):
        return run([loss], {ids: np.array([i, 7 - i, 3 + task, 9], np.int64)}, [train])

    return init(task == 0) + turns(task, one, 2, 4)


@case({"ps": 1, "worker": 2})
def clipped_with_decay(job, task, cluster):
    """Clipping by the global norm, a decayed rate and an average: much of it on the ps."""
    with placed(cluster, job, task):
        x, y = placeholders()
        loss = network(x, y)
        step = v1.train.get_or_create_global_step()
        rate = v1.train.exponential_decay(0.2, step, 2, 0.5, staircase=True)
        opt = v1.train.GradientDescentOptimizer(rate)
        pairs = opt.compute_gradients(loss)
        clipped, norm = tf.clip_by_global_norm([g for g, _ in pairs], 0.5)
        applied = opt.apply_gradients(zip(clipped, [v for _, v in pairs]), global_step=step)
        averages = v1.train.ExponentialMovingAverage(0.9, step)
        with tf.control_dependencies([applied]):
            train = averages.apply(v1.trainable_variables())
        average = averages.average(v1.trainable_variables()[0])

    def one(i):
        xs, ys = data(task + 1, i)
        return [run([loss, norm], {x: xs, y: ys}, [train]), run([average, rate])]

    return init(task == 0) + turns(task, one, 2, 3)


@case({"worker": 3})
def towers_in_one_graph(job, task, cluster):
    """In-graph replication: one session, a tower in each of the other tasks, variables in the first."""
    if task != 0:
        return None
    with v1.device("/job:worker/task:0"):
        xs, ys = placeholders(rows=8)
        opt = v1.train.MomentumOptimizer(0.05, 0.9)
    grads, losses = [], []
    for tower in range(2):
        with v1.device(v1.train.replica_device_setter(
                ps_tasks=1, ps_device="/job:worker/task:0", worker_device="/job:worker/task:%d" % (tower + 1))):
            with v1.variable_scope(v1.get_variable_scope(), reuse=tower > 0):
                loss = network(xs[4 * tower:4 * tower + 4], ys[4 * tower:4 * tower + 4])
                losses.append(loss)
                grads.append(opt.compute_gradients(loss))
    with v1.device("/job:worker/task:0"):
        mean = [(tf.add_n([g for g, _ in pair]) / 2, pair[0][1]) for pair in zip(*grads)]
        train = opt.apply_gradients(mean)
        total = tf.add_n(losses)
    entries = [run(targets=[v1.global_variables_initializer()])]
    for i in range(5):
        a, b = data(1, i, rows=8)
        entries.append(run([total], {xs: a, ys: b}, [train]))
    return entries


@case({"worker": 3})
def layers_by_task(job, task, cluster):
    """A model split over tasks: each layer, its variables and its gradients in one."""
    if task != 0:
        return None
    x, y = placeholders()
    h = x
    for layer in range(3):
        with v1.device("/job:worker/task:%d" % layer):
            w = v1.get_variable("w%d" % layer, [3, 3], initializer=v1.random_uniform_initializer(-1, 1, seed=layer))
            h = tf.sigmoid(tf.matmul(h, w))
    with v1.device("/job:worker/task:2"):
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(h, 1, keepdims=True) - y))
    train = v1.train.AdamOptimizer(0.05).minimize(loss, colocate_gradients_with_ops=True)
    entries = [run(targets=[v1.global_variables_initializer()])]
    for i in range(5):
        a, b = data(1, i)
        entries.append(run([loss], {x: a, y: b}, [train]))
    return entries


@case({"ps": 1, "worker": 2})
def queue_between_workers(job, task, cluster):
    """One worker puts what it makes into a queue on the ps, the other takes it."""
    with v1.device("/job:ps/task:0"):
        queue = v1.FIFOQueue(3, [tf.float32, tf.int32], [[2], []], shared_name="work")
    with v1.device("/job:worker/task:%d" % task):
        value = v1.placeholder(tf.float32, [2], "value")
        number = v1.placeholder(tf.int32, [], "number")
        put = queue.enqueue([value * 2, number + 1])
        got = queue.dequeue()
        twice = got[0] * 10.0
    if task == 0:
        return [run(feeds={value: batch(i, 2), number: np.int32(i)}, targets=[put]) for i in range(8)] + [
            run(targets=[queue.close()])]
    return [run([twice, got[1]]) for _ in range(8)]


@case({"ps": 1, "worker": 2})
def input_queue_runner(job, task, cluster):
    """A worker's own input queue, filled by its queue runner, feeds training on the ps."""
    with placed(cluster, job, task):
        w = v1.get_variable("w", [2], initializer=v1.ones_initializer())
    with v1.device("/job:worker/task:%d" % task):
        source = tf.constant(batch(task, 6, 2))
        row = v1.train.slice_input_producer([source], shuffle=False, capacity=4)[0]
        loss = tf.reduce_sum(tf.square(w - row))
    with placed(cluster, job, task):
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    local = v1.local_variables_initializer()

    def one(i):
        return run([loss], targets=[train])

    return init(task == 0) + [run(targets=[local])] + turns(task, one, 2, 4)


@case({"ps": 1, "worker": 2})
def branches(job, task, cluster):
    """tf.cond with its sides in other tasks than its predicate."""
    with placed(cluster, job, task):
        w = v1.get_variable("w", [3], initializer=v1.ones_initializer())
        x = v1.placeholder(tf.float32, [3], "x")

        def far():
            with v1.device("/job:ps/task:0"):
                return w * x + 1.0

        def near():
            return w - x

        v1.disable_control_flow_v2()
        out = tf.cond(tf.reduce_sum(x) > 0, far, near)
        train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(out)))

    def one(i):
        return run([out], {x: batch(10 * task + i, 3)}, [train])

    return init(task == 0) + turns(task, one, 2, 4)


@case({"ps": 1, "worker": 1})
def loop_on_worker(job, task, cluster):
    """A loop in the worker over weights of the ps, with gradients through it."""
    v1.disable_control_flow_v2()
    with placed(cluster, job, task):
        w = v1.get_variable("w", [3, 3], initializer=v1.random_uniform_initializer(-0.5, 0.5, seed=4))
        x = v1.placeholder(tf.float32, [2, 3], "x")
    with v1.device("/job:worker/task:0"):
        here = tf.identity(w)
        _, out = v1.while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, here))), [0, x])
        loss = tf.reduce_sum(out)
    with placed(cluster, job, task):
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    return init(True) + [run([loss], {x: batch(i, 2, 3)}, [train]) for i in range(4)]


@case({"ps": 1, "worker": 2})
def strings(job, task, cluster):
    """Strings between tasks."""
    with v1.device("/job:ps/task:0"):
        w = v1.get_variable("w", [4], initializer=v1.ones_initializer())
        words = tf.constant(["a", "bb", "ccc", "dddd"])
    with v1.device("/job:worker/task:%d" % task):
        i = v1.placeholder(tf.int32, [], "i")
        word = tf.strings.join([words[i], tf.as_string(tf.reduce_sum(w))], "-")
        length = tf.strings.length(word)
    with v1.device("/job:ps/task:0"):
        add = v1.assign_add(w, tf.fill([4], tf.cast(length, tf.float32)))

    def one(k):
        return run([word, length], {i: np.int32((k + task) % 4)}, [add])

    return init(task == 0) + turns(task, one, 2, 3)


@case({"ps": 1, "worker": 2})
def random_and_dropout(job, task, cluster):
    """Seeded random operations in two tasks."""
    with placed(cluster, job, task):
        v1.set_random_seed(5)
        x, y = placeholders(rows=4)
        loss = network(tf.nn.dropout(x, rate=0.3, seed=7) + v1.random_normal([4, 3], seed=8), y)
        with v1.device("/job:ps/task:0"):
            noise = v1.random_uniform([2], seed=9)
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    def one(i):
        xs, ys = data(task + 1, i)
        return [run([loss, noise], {x: xs, y: ys}, [train]), run([noise])]

    return init(task == 0) + turns(task, one, 2, 3)


@case({"chief": 1, "ps": 1, "worker": 1})
def chief_and_container(job, task, cluster):
    """Another job's name, and a container: the same name twice, two variables."""
    with v1.device("/job:ps/task:0"):
        a = v1.get_variable("a", [2], initializer=v1.zeros_initializer())
        with v1.container("other"), v1.variable_scope("in"):
            b = v1.get_variable("a", [2], initializer=v1.ones_initializer())
        add = tf.group(v1.assign_add(a, [1.0, 2.0]), v1.assign_add(b, [10.0, 20.0]))
    if job == "chief":
        return init(True) + [run(targets=[add]), barrier("one"), barrier("two"), run([a, b])]
    return init(False) + [barrier("one"), run(targets=[add]), barrier("two"), run([a, b])]


@case({"ps": 1, "worker": 2})
def steps_together(job, task, cluster):
    """A client that runs several steps at once."""
    with placed(cluster, job, task):
        total = v1.get_variable("total", [], initializer=v1.zeros_initializer())
        add = v1.assign_add(total, 1.0, use_locking=True)
    entries = init(task == 0)
    entries += [together(*[run(targets=[add], check=False) for _ in range(4)]) for _ in range(5)]
    return entries + [barrier("all"), run([total])]


# --- Collective operations -------------------------------------------------------------------------------------------
raw = tf.raw_ops


def reduced(value, size, instance, group=1, merge_op="Add", final_op="Id"):
    return raw.CollectiveReduceV2(input=value, group_size=size, group_key=group, instance_key=instance, ordering_token=[],
                                  merge_op=merge_op, final_op=final_op)


def on_worker(task, device=0):
    return v1.device("/job:worker/replica:0/task:%d/device:CPU:%d" % (task, device))


def own_init(task):
    return [run(targets=[v1.global_variables_initializer()]), barrier("initialised")]


@case({"worker": 3})
def collective_kinds(job, task, cluster):
    """Every kind, of several types and sizes; larger ones in pieces."""
    with on_worker(task):
        small = v1.placeholder(tf.float32, [2, 3], "small")
        large = v1.placeholder(tf.float32, [7001], "large")
        whole = tf.cast(large[:5] * 100, tf.int32)
        fetches = [reduced(small, 3, 1), reduced(small, 3, 2, final_op="Div"), reduced(small, 3, 3, merge_op="Mul"),
                   reduced(small, 3, 4, merge_op="Min"), reduced(large, 3, 5, merge_op="Max"), reduced(large, 3, 6),
                   reduced(large, 3, 7, final_op="Div"), reduced(whole, 3, 8), reduced(whole, 3, 9, merge_op="Max"),
                   reduced(tf.cast(large, tf.float64), 3, 10),
                   reduced(tf.zeros([0, 4]), 3, 11)]
        fetches = [f[::97] if f.shape[0] == 7001 else f for f in fetches]
        gathered = raw.CollectiveGatherV2(input=small, group_size=3, group_key=1, instance_key=20, ordering_token=[])
        if task == 1:
            sent = raw.CollectiveBcastSendV2(input=small * 2, group_size=3, group_key=1, instance_key=21)
            old = raw.CollectiveBcastSend(input=small - 1, group_size=3, group_key=1, instance_key=22, shape=[2, 3])
        else:
            sent = raw.CollectiveBcastRecvV2(group_size=3, group_key=1, instance_key=21, shape=[2, 3], T=tf.float32)
            old = raw.CollectiveBcastRecv(group_size=3, group_key=1, instance_key=22, shape=[2, 3], T=tf.float32)
        oldest = raw.CollectiveReduce(input=small, group_size=3, group_key=1, instance_key=23, merge_op="Add", final_op="Div",
                                      subdiv_offsets=[0])
        older = raw.CollectiveGather(input=small, group_size=3, group_key=1, instance_key=24, shape=[6, 3])
        fetches += [gathered, sent, old, oldest, older]
    return [run(fetches, {small: batch(10 * task + i, 2, 3), large: 2 + batch(100 + 10 * task + i, 7001)}) for i in range(2)]


@case({"worker": 3})
def collective_all_to_all(job, task, cluster):
    """Every worker gives each one a row, or several, and gets one of each."""
    with on_worker(task):
        rows = v1.placeholder(tf.float32, [3, 2], "rows")
        large = v1.placeholder(tf.float32, [3, 2, 7], "large")
        exchanged = [raw.CollectiveAllToAllV2(input=t, group_size=3, group_key=1, instance_key=30 + k, ordering_token=[])
                     for k, t in enumerate([rows, large, tf.cast(rows * 100, tf.int32), tf.cast(large, tf.float64)])]
        # TensorFlow's sessions do not know that this operation is collective, so the graph needs another one that is
        fetches = [reduced(rows, 3, 1), exchanged[0], exchanged[1], exchanged[2], exchanged[3]]
    return [run(fetches, {rows: batch(10 * task + i, 3, 2), large: batch(100 + 10 * task + i, 3, 2, 7)}) for i in range(2)]


@case({"worker": 2})
def collective_subgroups(job, task, cluster):
    """Two groups of one pair, and a group of each worker alone."""
    with on_worker(task):
        x = v1.placeholder(tf.float32, [4], "x")
        both = reduced(x, 2, 1, group=1)
        other = reduced(both * (task + 1.0), 2, 1, group=2, final_op="Div")
        alone = reduced(x, 1, 1, group=10 + task, final_op="Div")
    return [run([both, other, alone], {x: batch(10 * task + i, 4)}) for i in range(2)]


def mirrored(task, workers, optimizer, steps=5, fused=False, resource=True):
    """Data parallelism without parameter servers: every worker has all variables, begins with the first one's, and adds the
    gradients up."""
    v1.get_variable_scope().set_use_resource(resource)
    with on_worker(task):
        x, y = placeholders()
        loss = network(x, y)
        variables = v1.trainable_variables()
        begin = []
        for k, v in enumerate(variables):
            value = v.initial_value + float(task)  # the other workers lose their own values
            if task == 0:
                value = raw.CollectiveBcastSendV2(input=value, group_size=workers, group_key=1, instance_key=50 + k)
            else:
                value = raw.CollectiveBcastRecvV2(group_size=workers, group_key=1, instance_key=50 + k, shape=v.shape.as_list(), T=tf.float32)
            begin.append(v1.assign(v, value))
        opt = optimizer()
        grads = [g for g, _ in opt.compute_gradients(loss)]
        if fused:
            flat = reduced(tf.concat([tf.reshape(g, [-1]) for g in grads], 0), workers, 1, final_op="Div")
            means = [tf.reshape(p, g.shape) for p, g in zip(tf.split(flat, [g.shape.num_elements() for g in grads]), grads)]
        else:
            means = [reduced(g, workers, k + 1, final_op="Div") for k, g in enumerate(grads)]
        train = opt.apply_gradients(zip(means, variables))
        mean = reduced(loss, workers, 40, final_op="Div")
    entries = own_init(task) + [run(targets=begin)]
    for i in range(steps):
        xs, ys = data(task + 1, i)
        entries.append(run([loss, mean], {x: xs, y: ys}, [train]))
    return entries + [run(variables)]


def mirrored_case(name, workers, optimizer, **more):
    def build(job, task, cluster):
        return mirrored(task, workers, optimizer, **more)

    build.__name__ = name
    case({"worker": workers})(build)


# a fifth step would bring a weight close to 0
mirrored_case("collective_sgd", 2, lambda: v1.train.GradientDescentOptimizer(0.1), steps=4)
mirrored_case("collective_adam_three_workers", 3, lambda: v1.train.AdamOptimizer(0.01), fused=True)
mirrored_case("collective_momentum_references", 2, lambda: v1.train.MomentumOptimizer(0.05, 0.9), resource=False)


def multi_worker_mirrored(job, task, cluster, workers, optimizer, steps=4, hidden=8):
    """tf.distribute's own multi-worker mirrored strategy, in graph mode."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type="worker", task_id=task, num_accelerators={"GPU": 0}, rpc_layer="grpc")
    strategy = v1.distribute.experimental.MultiWorkerMirroredStrategy if hasattr(
        v1.distribute.experimental, "MultiWorkerMirroredStrategy") else tf.distribute.MultiWorkerMirroredStrategy
    strategy = strategy(cluster_resolver=resolver)
    x = v1.placeholder(tf.float32, [4, 3], "x")
    y = v1.placeholder(tf.float32, [4, 1], "y")
    with strategy.scope():
        opt = optimizer()
        v1.set_random_seed(1)
        w1 = v1.get_variable("w1", [3, hidden], initializer=v1.random_uniform_initializer(-0.5, 0.5, seed=1))
        b1 = v1.get_variable("b1", [hidden], initializer=v1.zeros_initializer())
        w2 = v1.get_variable("w2", [hidden, 1], initializer=v1.random_uniform_initializer(-0.5, 0.5, seed=2))

        def replica():
            h = tf.tanh(tf.matmul(x, w1) + b1)
            loss = tf.reduce_mean(tf.square(tf.matmul(h, w2) - y))
            train = opt.minimize(loss)
            with tf.control_dependencies([train]):
                return tf.identity(loss)

        loss = strategy.experimental_local_results(strategy.run(replica))[0]
        mean = strategy.reduce(tf.distribute.ReduceOp.MEAN, loss, axis=None)
        values = [tf.identity(strategy.experimental_local_results(v)[0]) for v in (w1, b1, w2)]
    entries = own_init(task)
    for i in range(steps):
        xs, ys = data(task + 1, i)
        entries.append(run([loss, mean], {x: xs, y: ys}))
    return entries + [run(values)]


def strategy_case(name, workers, optimizer, **more):
    def build(job, task, cluster):
        return multi_worker_mirrored(job, task, cluster, workers, optimizer, **more)

    build.__name__ = name
    case({"worker": workers})(build)


strategy_case("strategy_sgd", 2, lambda: v1.train.GradientDescentOptimizer(0.1))
strategy_case("strategy_adam_three_workers", 3, lambda: v1.train.AdamOptimizer(0.01))


# --- Loops over several tasks ----------------------------------------------------------------------------------------
@case({"ps": 2, "worker": 1})
def loop_across_tasks(job, task, cluster):
    """Each iteration goes over three tasks, with weights in two of them; gradients go back through it."""
    v1.disable_control_flow_v2()
    with placed(cluster, job, task):
        w = v1.get_variable("w", [3, 3], initializer=v1.random_uniform_initializer(-0.5, 0.5, seed=4))
        u = v1.get_variable("u", [3, 3], initializer=v1.random_uniform_initializer(-0.5, 0.5, seed=5))
        x = v1.placeholder(tf.float32, [2, 3], "x")
        n = v1.placeholder(tf.int32, [], "n")

    def body(i, h):
        with v1.device("/job:ps/task:0"):
            h = tf.tanh(tf.matmul(h, w))
        with v1.device("/job:ps/task:1"):
            h = tf.matmul(h, u)
        with v1.device("/job:worker/task:0"):
            return i + 1, h + x

    with v1.device("/job:worker/task:0"):
        _, out = v1.while_loop(lambda i, h: i < n, body, [0, x])
        loss = tf.reduce_sum(tf.square(out))
    train = v1.train.GradientDescentOptimizer(0.05).minimize(loss)
    return init(True) + [run([loss, out], {x: batch(i, 2, 3), n: np.int32(i)}, [train]) for i in range(5)]


@case({"ps": 1, "worker": 2})
def nested_loops_across_tasks(job, task, cluster):
    """A loop in a loop, whose counters, conditions and bodies are in different tasks."""
    v1.disable_control_flow_v2()
    if task != 0:
        return None
    ps, far = "/job:ps/task:0", "/job:worker/task:1"
    with v1.device("/job:worker/task:0"):
        x = v1.placeholder(tf.float32, [4], "x")
        n = v1.placeholder(tf.int32, [], "n")

    def inner(i, h):
        def body(j, g):
            with v1.device(far):
                g = g * 0.9 + tf.cast(i, tf.float32)
            with v1.device(ps):
                return j + 1, tf.sin(g)

        def more(j, g):
            with v1.device(ps):
                return j < i

        with v1.device(ps):
            j, h = v1.while_loop(more, body, [0, h])
        with v1.device(far):
            return i + 1, h + tf.cast(j, tf.float32)

    def goes_on(i, h):
        with v1.device(far):
            return tf.logical_and(i < n, tf.reduce_sum(h) < 1000.0)

    with v1.device(far):
        i, out = v1.while_loop(goes_on, inner, [0, x])
    with v1.device("/job:worker/task:0"):
        total = out + tf.cast(i, tf.float32)
    return [run([total, i], {x: batch(k, 4), n: np.int32(k)}) for k in range(5)]


@case({"ps": 1, "worker": 1})
def branch_in_loop_across_tasks(job, task, cluster):
    """A branch in each iteration, its sides in two tasks; and a loop in a branch that may not be taken."""
    v1.disable_control_flow_v2()
    ps, here = "/job:ps/task:0", "/job:worker/task:0"
    with v1.device(here):
        x = v1.placeholder(tf.float32, [3], "x")

        def body(i, h):
            def far():
                with v1.device(ps):
                    return h * 2.0 - 1.0

            def near():
                with v1.device(here):
                    return h + 0.25

            return i + 1, tf.cond(tf.equal(i % 2, 0), far, near)

        _, out = v1.while_loop(lambda i, h: i < 5, body, [0, x])

        def loop():
            def step(i, h):
                with v1.device(ps):
                    return i + 1, h * 0.5

            return v1.while_loop(lambda i, h: i < 3, step, [0, out])[1]

        last = tf.cond(tf.reduce_sum(x) > 0, loop, lambda: out - 7.0)
        grad = v1.gradients(tf.reduce_sum(last), x)[0]
    return [run([out, last, grad], {x: batch(k, 3)}) for k in range(6)]
