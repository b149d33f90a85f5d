"""Input pipelines: datasets, iterators over them, and training on what they give."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
D = tf.data.Dataset


def cases(f):
    with f.graph.as_default():
        for name, make in pipelines(f):
            one_shot(f, name, make)
        iterators(f)
        errors(f)
        loops(f)
        files(f)


def elements(make):
    """How many elements TensorFlow's own iterator gives."""
    with tf.Graph().as_default(), tf1.Session() as session:
        got, count = tf1.data.make_one_shot_iterator(make()).get_next(), 0
        try:
            while count < 24:
                session.run(tf.nest.flatten(got))
                count += 1
        except tf.errors.OutOfRangeError:
            pass
        return count


def one_shot(f, name, make, tolerance="exact"):
    """Element after element of an iterator, and what comes at the end."""
    count = elements(make)
    f.case("OneShotIterator", "int64", tolerance, tag=name)
    with f.scope():
        iterator = tf1.data.make_one_shot_iterator(make())
        got = tf.nest.flatten(iterator.get_next())
        optional = iterator.get_next_as_optional()
    for _ in range(count):
        f.run(got)
    if count < 24:
        with f.scope():
            f.run(optional.has_value())


def pipelines(f):
    """(name, function that makes the dataset)"""
    def pair():
        return D.from_tensor_slices((np.arange(10, dtype=np.float32).reshape(5, 2), np.array([b"a", b"bc", b"", b"def", b"g"], object)))
    def numbers(n=7):
        return D.range(n)
    return [
        ("slices", pair),
        ("tensors", lambda: D.from_tensors((np.array([1, 2]), {"a": np.array(b"x", object), "b": np.array(2.5)}))),
        ("nothing", lambda: D.from_tensor_slices(np.zeros([0, 3], np.float32))),
        ("range", lambda: D.range(2, 20, 5)),
        ("range_down", lambda: D.range(3, -4, -2)),
        ("range_empty", lambda: D.range(5, 2)),
        ("range_int32", lambda: D.range(1, 9, 3, output_type=tf.int32)),
        ("range_float", lambda: D.range(4, output_type=tf.float32)),
        ("batch", lambda: pair().batch(2)),
        ("batch_drop", lambda: pair().batch(2, drop_remainder=True)),
        ("batch_larger", lambda: numbers().batch(100)),
        ("batch_twice", lambda: numbers(10).batch(2).batch(2, drop_remainder=True)),
        ("take", lambda: numbers().take(3)),
        ("take_all", lambda: numbers(3).take(-1)),
        ("take_none", lambda: numbers().take(0)),
        ("take_more", lambda: numbers(2).take(5)),
        ("skip", lambda: numbers().skip(3)),
        ("skip_all", lambda: numbers().skip(-1)),
        ("skip_more", lambda: numbers().skip(50)),
        ("repeat", lambda: numbers(3).repeat(2)),
        ("repeat_for_ever", lambda: numbers(3).repeat()),
        ("repeat_nothing", lambda: numbers(0).repeat()),
        ("repeat_never", lambda: numbers(3).repeat(0)),
        ("zip", lambda: D.zip((pair(), numbers()))),
        ("concatenate", lambda: numbers(2).concatenate(D.range(10, 13)).concatenate(numbers(1))),
        ("shard", lambda: numbers(10).shard(3, 1)),
        ("prefetch", lambda: numbers(3).prefetch(2).prefetch(tf.data.AUTOTUNE)),
        ("map", lambda: pair().map(lambda x, s: (tf.reduce_sum(x * 2 + 1), tf.strings.length(s), s))),
        ("map_parallel", lambda: numbers().map(lambda i: i * i, num_parallel_calls=3)),
        ("map_captured", lambda: captured(numbers())),
        ("map_loop", lambda: numbers().map(lambda i: tf.while_loop(lambda j, s: j < i, lambda j, s: (j + 1, s + j * j), [tf.constant(0, tf.int64), tf.constant(0, tf.int64)])[1])),
        ("map_branch", lambda: numbers().map(lambda i: tf.cond(tf.equal(i % 2, 0), lambda: i * 10, lambda: -i))),
        ("filter", lambda: numbers(12).filter(lambda i: tf.equal(i % 3, 1))),
        ("filter_nothing", lambda: numbers(12).filter(lambda i: i < 0)),
        ("take_while", lambda: numbers(12).map(lambda i: i % 5).take_while(lambda i: i < 4)),
        ("chain", lambda: numbers(20).map(lambda i: (i, tf.cast(i, tf.float32) / 2)).filter(lambda i, x: tf.equal(i % 2, 0)).batch(3).repeat(2).prefetch(1)),
        ("shuffle", lambda: numbers(10).shuffle(4, seed=5)),
        ("shuffle_all", lambda: numbers(10).shuffle(100, seed=5)),
        ("shuffle_one", lambda: numbers(4).shuffle(1, seed=5)),
        ("shuffle_repeat", lambda: numbers(5).shuffle(3, seed=7).repeat(3)),
        ("shuffle_same", lambda: numbers(5).shuffle(3, seed=7, reshuffle_each_iteration=False).repeat(3)),
        ("shuffle_repeats", lambda: numbers(4).shuffle(9, seed=1).repeat(2).repeat(2)),
        ("repeat_shuffle", lambda: numbers(4).repeat(3).shuffle(5, seed=3)),
        ("shuffle_twice", lambda: twice(numbers(5).shuffle(4, seed=11))),
        ("shuffle_shuffled", lambda: numbers(9).shuffle(4, seed=1).shuffle(4, seed=2).batch(4)),
        ("shuffle_nothing", lambda: numbers(0).shuffle(4, seed=1)),
        ("shuffle_and_repeat", lambda: numbers(4).apply(tf.data.experimental.shuffle_and_repeat(6, 4, seed=2))),
        ("shuffle_and_repeat_small", lambda: numbers(5).apply(tf.data.experimental.shuffle_and_repeat(2, 3, seed=4))),
        ("flat_map", lambda: numbers(4).flat_map(lambda i: D.range(i, 2 * i))),
        ("flat_map_captured", lambda: pair().batch(2).flat_map(lambda x, s: D.zip((D.from_tensor_slices(s), D.from_tensors(x).repeat())))),
        ("interleave", lambda: numbers(6).interleave(lambda i: D.from_tensors(i).repeat(i), cycle_length=3, block_length=2)),
        ("interleave_one", lambda: numbers(4).interleave(lambda i: D.range(i), cycle_length=1)),
        ("interleave_wide", lambda: numbers(3).interleave(lambda i: D.range(i * 10, i * 10 + 4), cycle_length=8, block_length=3)),
        ("interleave_parallel", lambda: numbers(6).interleave(lambda i: D.from_tensors(i).repeat((i * 7) % 5), cycle_length=3, block_length=2, num_parallel_calls=2)),
        ("padded_batch", lambda: numbers(6).map(lambda i: (tf.fill([i % 4, 2], i), tf.strings.as_string(tf.range(i % 3)))).padded_batch(4, ([None, 3], [None]), (np.int64(-1), "none"))),
        ("padded_batch_drop", lambda: numbers(6).map(lambda i: tf.range(i)).padded_batch(4, [6], drop_remainder=True)),
        ("padded_batch_scalars", lambda: numbers(5).padded_batch(2, [])),
        ("cache", lambda: numbers(3).map(lambda i: i + 1).cache().repeat(3)),
        ("cache_shuffled", lambda: numbers(4).shuffle(4, seed=3).cache().repeat(3)),
        ("window", lambda: numbers(7).window(3).flat_map(lambda w: w.batch(3))),
        ("window_slides", lambda: numbers(9).window(3, shift=1, stride=2, drop_remainder=True).flat_map(lambda w: w.batch(3))),
        ("window_skips", lambda: numbers(9).window(2, shift=4).flat_map(lambda w: w.batch(2))),
        ("window_of_pairs", lambda: pair().window(2, shift=1).flat_map(lambda x, s: D.zip((x.batch(2), s.batch(2))))),
        ("scan", lambda: numbers(6).scan(np.int64(1), lambda state, i: (state + i, (state * i, i)))),
        ("reduce_inside", lambda: numbers(5).map(lambda i: D.range(i).reduce(np.int64(0), lambda s, j: s + j * i))),
        ("shuffle_in_map", lambda: numbers(3).map(lambda i: D.range(6).shuffle(6, seed=4).batch(6).get_single_element() + i)),
    ]


def twice(numbers):
    return D.zip((numbers, numbers)).repeat(2)


def captured(numbers):
    factor = tf.constant([2, 3], tf.int64)
    return D.zip((numbers, D.from_tensors(factor).repeat())).map(lambda i, v: i * v)


def iterators(f):
    f.case("MakeIterator", "int64")
    with f.scope():
        limit = f.const(np.array(4, np.int64), dynamic=True)
        iterator = tf1.data.make_initializable_iterator(D.range(limit).map(lambda i: i + limit))
        got = iterator.get_next()
    for _ in range(2):  # the second time it starts again from the beginning
        f.run(targets=[iterator.initializer])
        f.run(got)
        f.run(got)
    f.case("MakeIterator", "int64", tag="of_two_datasets")
    with f.scope():
        first, second = D.range(3), D.range(10, 20)
        iterator = tf1.data.Iterator.from_structure(tf1.data.get_output_types(first), tf1.data.get_output_shapes(first))
        begin = [iterator.make_initializer(d) for d in (first, second)]
        got = iterator.get_next()
    for i in (0, 1, 0):
        f.run(targets=[begin[i]])
        f.run(got)
        f.run(got)
    f.case("IteratorGetNextAsOptional", "float32")
    with f.scope():
        iterator = tf1.data.make_initializable_iterator(D.from_tensor_slices(np.array([1.5, 2.5], np.float32)))
        optional = iterator.get_next_as_optional()
        some = optional.get_value()
        is_there = iterator.get_next_as_optional().has_value()
    f.run(targets=[iterator.initializer])
    f.run(some)
    for _ in range(3):
        f.run(is_there)
    f.case("IteratorFromStringHandleV2", "int64")
    with f.scope():
        made = [tf1.data.make_initializable_iterator(d) for d in (D.range(5), D.range(100, 105))]
        handles = [i.string_handle() for i in made]
        which = tf1.get_variable("which", initializer=0, use_resource=True)
        handle = tf.stack(handles)[which]
        got = tf1.data.Iterator.from_string_handle(handle, tf1.data.get_output_types(made[0]), tf1.data.get_output_shapes(made[0])).get_next()
        switch = [which.assign(i) for i in (0, 1)]
    f.run(targets=[i.initializer for i in made])
    for i in (0, 1, 0, 0, 1):
        f.run(targets=[switch[i].op])
        f.run(got)
    f.case("OneShotIterator", "int64", tag="asked_twice_in_a_step")
    with f.scope():
        iterator = tf1.data.make_one_shot_iterator(D.range(20))
        a = iterator.get_next()
        with tf1.control_dependencies([a]):
            b = iterator.get_next()
        f.run([a * 100, b * 7])
        f.run([a * 100, b * 7])


    f.case("ReduceDataset", "float32")
    with f.scope():
        total, count = D.from_tensor_slices(np.arange(6, dtype=np.float32)).reduce((0.0, np.int64(0)), lambda s, x: (s[0] * 0.5 + x, s[1] + 1))
        nothing = D.range(0).reduce(np.int64(4), lambda s, i: s + i)
        f.run([total, count, nothing])
        f.run([total, count, nothing])
    f.case("DatasetToSingleElement", "int64")
    with f.scope():
        f.run(D.range(7, 8).batch(3).get_single_element())
    f.case("ShuffleDataset", "int64", tag="begun_again")
    with f.scope():
        iterator = tf1.data.make_initializable_iterator(D.range(8).shuffle(5, seed=9).batch(8))
        got = iterator.get_next()
    for _ in range(3):
        f.run(targets=[iterator.initializer])
        f.run(got)


def errors(f):
    for tag, make in (("of_none", lambda: D.range(0)), ("of_two", lambda: D.range(2))):
        f.case("DatasetToSingleElement", "int64", tag=tag, expect_error="InvalidArgumentError")
        with f.scope():
            f.run(make().get_single_element())
    f.case("IteratorGetNext", "int64", tag="padded_to_less", expect_error="InvalidArgumentError")
    with f.scope():
        f.run(tf1.data.make_one_shot_iterator(D.range(5, 7).map(lambda i: tf.range(i)).padded_batch(2, [5])).get_next())
    f.case("IteratorGetNext", "int64", tag="not_initialised", expect_error="FailedPreconditionError")
    with f.scope():
        f.run(tf1.data.make_initializable_iterator(D.range(3)).get_next())
    f.case("IteratorGetNext", "int64", tag="at_the_end", expect_error="OutOfRangeError")
    with f.scope():
        f.run(tf1.data.make_one_shot_iterator(D.range(0)).get_next())
    f.case("IteratorGetNext", "float32", tag="unequal_batch", expect_error="InvalidArgumentError")
    with f.scope():
        f.run(tf1.data.make_one_shot_iterator(D.range(1, 4).map(lambda i: tf.zeros([i])).batch(2)).get_next())
    f.case("IteratorGetNext", "float32", tag="failing_function", expect_error="InvalidArgumentError")
    with f.scope():
        f.run(tf1.data.make_one_shot_iterator(D.range(3).map(lambda i: tf1.debugging.check_numerics(1.0 / tf.cast(i, tf.float32), "zero"))).get_next())
    for tag, make in (("batch_of_none", lambda n: D.range(3).batch(n)), ("shard_of_none", lambda n: D.range(3).shard(n + 1, n + 4)), ("step_of_none", lambda n: D.range(0, 3, n))):
        f.case("MakeIterator", "int64", tag=tag, expect_error="InvalidArgumentError")
        with f.scope():
            iterator = tf1.data.make_initializable_iterator(make(f.const(np.array(0, np.int64), dynamic=True)))
        f.run(targets=[iterator.initializer])


def loops(f):
    """Training on what a pipeline gives."""
    x = np.linspace(-1, 1, 24).reshape(8, 3).astype(np.float32)
    y = (x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25).astype(np.float32)
    f.case("OneShotIterator", "float32", "relative:1e-5", tag="training")
    with f.scope():
        w = tf1.get_variable("w1", initializer=tf.zeros([3, 1]), use_resource=True)
        a, b = tf1.data.make_one_shot_iterator(D.from_tensor_slices((x, y)).batch(4).repeat()).get_next()
        loss = tf.reduce_mean(tf.square(tf.matmul(a, w) - b))
        train = tf1.train.GradientDescentOptimizer(0.3).minimize(loss)
        f.run(targets=[w.initializer])
        for _ in range(5):
            f.run(loss, targets=[train])
        f.run(w.read_value())
    f.case("IteratorGetNext", "float32", "relative:1e-5", tag="training_in_a_loop")
    with f.scope():
        v = tf1.get_variable("w2", initializer=tf.zeros([3, 1]), use_resource=True)
        v_reset = v.initializer

        @tf.function
        def epoch():
            iterator = iter(D.from_tensor_slices((x, y)).batch(2).repeat(3))
            total = tf.constant(0.0)
            for _ in tf.range(12):
                a, b = next(iterator)
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(tf.matmul(a, v) - b))
                v.assign_sub(0.2 * tape.gradient(loss, v))
                total += loss
            return total
        total = epoch()
        f.run(targets=[v_reset])
        f.run(total)
        f.run(total)
        f.run(v.read_value())
    f.case("ReduceDataset", "float32", "relative:1e-5", tag="training_over_a_dataset")
    with f.scope():
        u = tf1.get_variable("w3", initializer=tf.zeros([3, 1]), use_resource=True)

        @tf.function
        def train():
            total = tf.constant(0.0)
            for a, b in D.from_tensor_slices((x, y)).shuffle(8, seed=3).batch(3).repeat(2):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(tf.matmul(a, u) - b))
                u.assign_sub(0.2 * tape.gradient(loss, u))
                total = total * 0.5 + loss
            return total
        total = train()
        f.run(targets=[u.initializer])
        f.run(total)
        f.run(total)
        f.run(u.read_value())
    f.case("ScanDataset", "float32", "relative:1e-5", tag="training_until_it_is_good")
    with f.scope():
        q = tf1.get_variable("w4", initializer=tf.zeros([3, 1]), use_resource=True)

        @tf.function
        def until():
            steps = tf.constant(0)
            for a, b in D.from_tensor_slices((x, y)).batch(4).repeat():
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(tf.matmul(a, q) - b))
                if loss < 0.05:
                    break
                q.assign_sub(0.2 * tape.gradient(loss, q))
                steps += 1
            return steps
        steps = until()
        f.run(targets=[q.initializer])
        f.run(steps)
        f.run(q.read_value())


def files(f):
    """Datasets over files that each case writes first."""
    import gzip
    import zlib

    import ops.files as readers

    folder = "/tmp/tfc-conformance-readers/"
    lines, tail, numbers = b"one\r\ntwo\n\nfour", b"head\nx\ry\n\r", bytes(range(48, 71))
    framed = readers.records(b"abc", b"", b"x" * 30)
    packed = {"": lambda b: b, "ZLIB": zlib.compress, "GZIP": lambda b: gzip.compress(b, mtime=0)}

    def case(op, tag, contents, dataset, count, error=None, batch=None):
        names = [folder + "%s.%s.%d" % (op, tag, i) for i in range(len(contents))]
        f.case(op, "string", tag=tag, expect_error=error)
        with f.scope():
            for i, (name, content) in enumerate(zip(names, contents)):
                if content is not None:
                    f.run(targets=[f.node("WriteFile", [np.array(name.encode(), object), np.array(content, object)], name="write%d" % i)])
            d = dataset(f.const(np.array([n.encode() for n in names], object), dynamic=True))
            iterator = tf1.data.make_initializable_iterator(d.batch(batch) if batch else d)
            got = iterator.get_next()
            optional = iterator.get_next_as_optional()
        f.run(targets=[iterator.initializer])
        for _ in range(count):
            f.run(got)
        if not error:
            with f.scope():
                f.run(optional.has_value())

    fixed = lambda **more: lambda names: tf.data.FixedLengthRecordDataset(names, 5, **more)
    for how, pack in packed.items():
        kind = how.lower() or "plain"
        three = [pack(lines), pack(b""), pack(tail)]
        case("TextLineDataset", kind, three, lambda n: tf.data.TextLineDataset(n, compression_type=how), 6)
        case("TFRecordDataset", kind, [pack(framed), pack(b""), pack(framed)], lambda n: tf.data.TFRecordDataset(n, compression_type=how), 6)
        case("FixedLengthRecordDatasetV2", kind, [pack(numbers), pack(b"abcdefgh"), pack(numbers)], fixed(header_bytes=2, footer_bytes=1, compression_type=how), 9)
        case("FixedLengthRecordDatasetV2", "not_whole_" + kind, [pack(numbers)], fixed(compression_type=how), 5, "InvalidArgumentError")
    case("TextLineDataset", "batched", [lines, tail], lambda n: tf.data.TextLineDataset(n), 2, batch=4)
    case("TextLineDataset", "twice", [lines], lambda n: tf.data.TextLineDataset(n).repeat(2), 8)
    case("TFRecordDataset", "interleaved", [framed, framed], lambda n: tf.data.Dataset.from_tensor_slices(n).interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=1), 6)
    case("TFRecordDataset", "damaged", [framed + b"x" * 40], lambda n: tf.data.TFRecordDataset(n), 4, "DataLossError")
    case("TFRecordDataset", "cut", [framed[:-3]], lambda n: tf.data.TFRecordDataset(n), 3, "DataLossError")
    case("TFRecordDataset", "not_packed", [lines], lambda n: tf.data.TFRecordDataset(n, compression_type="GZIP"), 1, "DataLossError")
    case("TextLineDataset", "absent", [None], lambda n: tf.data.TextLineDataset(n), 1, "NotFoundError")
    case("TextLineDataset", "unknown_compression", [lines], lambda n: tf.data.TextLineDataset(n, compression_type="LZMA"), 1, "InvalidArgumentError")
