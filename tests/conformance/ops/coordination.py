"""What steps coordinate with and report by: barriers, conditional accumulators, tables by reference, queues by
reference, summaries."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
I32, I64 = np.int32, np.int64


def words(*values):
    return np.array([w.encode() for w in values], object)


def cases(f):
    with f.graph.as_default():
        summaries(f)
        barriers(f)
        accumulators(f)
        sparse_accumulators(f)
        tables(f)
        queues(f)


def summaries(f):
    text = np.array(b"a/tag", object)
    for d in ("float32", "float64", "float16", "bfloat16", "int32", "uint8", "int64"):
        low = 0 if d.startswith("u") else -4
        f.simple("ScalarSummary", d, [([text, f.values(d, [], low)], {}), ([words("x", "y"), f.values(d, [2], low)], {})])
        f.simple("HistogramSummary", d, [([text, f.values(d, [5, 7], low)], {}), ([text, f.values(d, [0])], {}), ([text, np.zeros([3], f.values(d, [1], low).dtype)], {})])
        f.simple("TensorSummaryV2", d, [([text, f.values(d, [2, 3], low), np.array(b"\x0a\x03\x0a\x01p", object)], {}), ([text, f.values(d, [], low), np.array(b"", object)], {})])
        f.simple("TensorSummary", d, [([f.values(d, [2, 0, 3])], {})])
    f.simple("HistogramSummary", "float32", [([text, np.array([1e-13, -1e-13, 1e21, -1e21, 3, 3, 1e-12, 0], np.float32)], {})], tag="ends")
    f.simple("HistogramSummary", "float32", [([text, np.array([1, np.nan], np.float32)], {})], tag="nan", expect_error=True)
    f.simple("HistogramSummary", "float32", [([text, np.array([1, -np.inf], np.float32)], {})], tag="inf", expect_error=True)
    f.simple("ScalarSummary", "float32", [([words("x", "y"), np.zeros([3], np.float32)], {})], tag="shapes", expect_error=True)
    f.simple("TensorSummaryV2", "string", [([text, words("a", "", "bc"), np.array(b"", object)], {})])
    for same in (False, True):
        f.case("MergeSummary", "string", tag="same" if same else "", expect_error=same or None)
        with f.scope():
            a = f.node("ScalarSummary", [words("x", "y"), np.array([1, 2], np.float32)])
            b = f.node("ScalarSummary", [np.array(b"x" if same else b"z", object), np.array(3.0)])
            h = f.node("HistogramSummary", [np.array(b"h", object), np.array([1, 2], np.float32)])
            both = f.node("MergeSummary", [[a, b, h, words()]])
        f.run(both)


def barriers(f):
    v = f.values
    def barrier(tag, **more):
        f.case("Barrier", "float32", tag=tag, **more)
        with f.scope():
            return f.node("Barrier", component_types=["float32", "int32"], shapes=[[2], []], capacity=-1, container="", shared_name=f.current["name"])
    def put(b, component, keys, values):
        return f.node("BarrierInsertMany", [b, keys, values], component_index=component)
    def take(b, n, small=False):
        return f.node("BarrierTakeMany", [b, np.array(n, I32)], component_types=["float32", "int32"], allow_small_batch=small, wait_for_incomplete=False, timeout_ms=-1)
    b = barrier("order")
    with f.scope():
        puts = [put(b, 0, words("a", "b", "c"), v("float32", [3, 2])), put(b, 1, words("c", "d", "a"), np.array([7, 8, 9], I32)),
                put(b, 0, words("d"), v("float32", [1, 2], salt=1)), put(b, 1, words("b"), np.array([5], I32))]
        sizes = [f.node("BarrierReadySize", [b]), f.node("BarrierIncompleteSize", [b])]
        takes = [take(b, 2), take(b, 1)]
        close = f.node("BarrierClose", [b], cancel_pending_enqueues=False)
    f.run(sizes)
    for p in puts:
        f.run(targets=[p])
        f.run(sizes)
    f.run(takes[0])
    f.run(targets=[close])
    f.run(takes[1])
    f.run(takes[1])
    f.run(sizes)
    b = barrier("close")
    with f.scope():
        puts = [put(b, 0, words("a", "b", "", "d"), v("float32", [4, 2])), put(b, 1, words("", "b"), np.array([7, 8], I32))]
        last = put(b, 1, words("d", "a"), np.array([1, 2], I32))
        close = f.node("BarrierClose", [b], cancel_pending_enqueues=False)
        takes = take(b, 3), take(b, 5, True)
    for p in puts:
        f.run(targets=[p])
    f.run(targets=[close])
    f.run(targets=[last])  # keys that are already in it may still be completed
    f.run(takes[0])
    f.run(takes[1])
    for tag in ("new_key", "twice", "too_many", "cancel"):
        b = barrier(tag, expect_error=True)
        with f.scope():
            first = put(b, 0, words("a", "b"), v("float32", [2, 2]))
            second = put(b, 0, words("a"), v("float32", [1, 2])) if tag == "twice" else put(b, 1, words("z" if tag == "new_key" else "a"), np.array([7], I32))
            close = f.node("BarrierClose", [b], cancel_pending_enqueues=tag == "cancel")
            takes = take(b, 3)
        f.run(targets=[first])
        if tag != "twice":
            f.run(targets=[close])
        if tag == "too_many":
            f.run(takes)
        else:
            f.run(targets=[second])


def accumulators(f):
    v = f.values
    for op, prefix in (("ConditionalAccumulator", ""), ("ResourceConditionalAccumulator", "Resource")):
        for d in ("float32", "float64", "float16"):
            for reduction in ("MEAN", "SUM"):
                f.case(op, d, tag=reduction.lower())
                with f.scope():
                    a = f.node(op, dtype=d, shape=[2, 3], container="", shared_name=f.current["name"], reduction_type=reduction)
                    puts = [f.node(prefix + "AccumulatorApplyGradient", [a, np.array(s, I64), v(d, [2, 3], salt=i)]) for i, s in enumerate((0, 0, 5, -1, 1, 1, 2))]
                    size = f.node(prefix + "AccumulatorNumAccumulated", [a])
                    takes = [f.node(prefix + "AccumulatorTakeGradient", [a, np.array(n, I32)], dtype=d) for n in (1, 2, 3)]
                    step = f.node(prefix + "AccumulatorSetGlobalStep", [a, np.array(2, I64)])
                f.run(size)
                for p in puts[:4]:  # the last one of these is stale
                    f.run(targets=[p])
                f.run(size)
                f.run(takes[2])
                f.run(targets=[puts[0]])  # the gradient is stale: the accumulator is at step 1
                f.run(size)
                f.run(targets=[puts[4]])
                f.run(targets=[puts[5]])
                f.run(takes[1])
                f.run(targets=[step])
                f.run(targets=[puts[5]])
                f.run(targets=[puts[6]])
                f.run(takes[0])
                f.run(size)
    for tag in ("shape", "none"):
        f.case("ConditionalAccumulator", "float32", tag=tag, expect_error=True)
        with f.scope():
            a = f.node("ConditionalAccumulator", dtype="float32", shape=[2, 3], container="", shared_name=f.current["name"], reduction_type="MEAN")
            put = f.node("AccumulatorApplyGradient", [a, np.array(0, I64), v("float32", [3, 2])])
            take = f.node("AccumulatorTakeGradient", [a, np.array(0, I32)], dtype="float32")
        f.run(targets=[put]) if tag == "shape" else f.run(take)


def sparse_accumulators(f):
    v = f.values
    for d in ("float32", "float64"):
        for reduction in ("MEAN", "SUM"):
            f.case("SparseConditionalAccumulator", d, tag=reduction.lower())
            with f.scope():
                a = f.node("SparseConditionalAccumulator", dtype=d, shape=[10, 3], container="", shared_name=f.current["name"], reduction_type=reduction)
                rows = [[0, 4, 7], [4], [1, 4, 9], [], [2, 2]]
                puts = [f.node("SparseAccumulatorApplyGradient", [a, np.array(s, I64), np.array(r, I64), v(d, [len(r), 3], salt=i), np.array([10, 3] if i else [], I64)], has_known_shape=i > 0)
                        for i, (s, r) in enumerate(zip((0, 0, 0, 0, 1), rows)) if r]
                takes = [f.node("SparseAccumulatorTakeGradient", [a, np.array(n, I32)], dtype=d) for n in (1, 3)]
            for p in puts[:3]:
                f.run(targets=[p])
            f.run(takes[1])
            f.run(targets=[puts[3]])
            f.run(takes[0])


def tables(f):
    f.case("HashTable", "string")
    with f.scope():
        t = f.node("HashTable", key_dtype="string", value_dtype="int64", container="", shared_name=f.current["name"], use_node_name_sharing=False)
        fill = f.node("InitializeTable", [t, words("a", "b", ""), np.array([1, 2, 3])])
        find = f.node("LookupTableFind", [t, words("b", "", "x"), np.array(-1)])
        size = f.node("LookupTableSize", [t])
    f.run(targets=[fill])
    f.run([find, size])
    f.run(targets=[fill])
    f.case("HashTable", "string", tag="twice", expect_error=True)
    with f.scope():
        t = f.node("HashTable", key_dtype="string", value_dtype="int64", container="", shared_name=f.current["name"], use_node_name_sharing=False)
        fill = f.node("InitializeTable", [t, words("a", "b", "a"), np.array([1, 2, 3])])
    f.run(targets=[fill])
    f.case("HashTable", "string", tag="empty", expect_error=True)
    with f.scope():
        t = f.node("HashTable", key_dtype="string", value_dtype="int64", container="", shared_name=f.current["name"], use_node_name_sharing=False)
        find = f.node("LookupTableFind", [t, words("b"), np.array(-1)])
    f.run(find)
    f.case("MutableHashTable", "int64")
    with f.scope():
        t = f.node("MutableHashTable", key_dtype="int64", value_dtype="float32", container="", shared_name=f.current["name"], use_node_name_sharing=False)
        insert = f.node("LookupTableInsert", [t, np.array([3, 1]), np.array([0.5, 2], np.float32)])
        find = f.node("LookupTableFind", [t, np.array([[1, 2], [3, 4]]), np.array(-1, np.float32)])
        import_ = f.node("LookupTableImport", [t, np.array([4]), np.array([7], np.float32)])
        export = f.node("LookupTableExport", [t], Tkeys="int64", Tvalues="float32")
    f.run(find)
    f.run(targets=[insert])
    f.run(find)
    f.run(targets=[import_])
    f.run(find)
    f.run(export)


def queues(f):
    v = f.values
    for op in ("FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"):
        f.case(op, "float32")
        with f.scope():
            more = {"min_after_dequeue": 1, "seed": 3, "seed2": 5} if op == "RandomShuffleQueue" else {}
            priority = op == "PriorityQueue"
            q = f.node(op, component_types=["float32"] if priority else ["float32", "int32"], shapes=[[2]] if priority else [[2], []], capacity=20, container="", shared_name=f.current["name"], **more)
            values = [np.array([5, 1, 3, 2, 1]), v("float32", [5, 2])] if priority else [v("float32", [5, 2]), np.arange(5).astype(I32)]
            types = ["int64", "float32"] if priority else ["float32", "int32"]
            put = f.node("QueueEnqueueMany", [q, values], timeout_ms=-1)
            one = f.node("QueueEnqueue", [q, [x[1] for x in values]], timeout_ms=-1)
            take = f.node("QueueDequeue", [q], component_types=types, timeout_ms=-1)
            many = f.node("QueueDequeueMany", [q, np.array(3, I32)], component_types=types, timeout_ms=-1)
            size, closed = f.node("QueueSize", [q]), f.node("QueueIsClosed", [q])
            close = f.node("QueueClose", [q], cancel_pending_enqueues=True)
        f.run(targets=[put])
        f.run(targets=[one])
        f.run(take)
        f.run(many)
        f.run([size, closed])
        f.run(targets=[close])
        f.run([size, closed])
        f.run(take)
    for tag, op, capacity in (("many", "QueueDequeueManyV2", 4), ("enqueue", "QueueEnqueueV2", 4)):
        f.case(op, "float32", tag=tag + "_on_closed", expect_error=True)
        with f.scope():
            q = f.node("FIFOQueueV2", component_types=["float32"], shapes=[[2]], capacity=capacity, container="", shared_name=f.current["name"])
            put = f.node("QueueEnqueueV2", [q, [v("float32", [2])]], timeout_ms=-1)
            take = f.node("QueueDequeueManyV2", [q, np.array(2, I32)], component_types=["float32"], timeout_ms=-1)
            close = f.node("QueueCloseV2", [q], cancel_pending_enqueues=False)
        f.run(targets=[put])
        f.run(targets=[close])
        f.run(take) if tag == "many" else f.run(targets=[put])
    for tag, shape in (("shape", [3]), ("rank", [2, 1])):
        f.case("QueueEnqueueV2", "float32", tag=tag, expect_error=True)
        with f.scope():
            q = f.node("FIFOQueueV2", component_types=["float32"], shapes=[[2]], capacity=3, container="", shared_name=f.current["name"])
            put = f.node("QueueEnqueueV2", [q, [v("float32", shape)]], timeout_ms=-1)
        f.run(targets=[put])
