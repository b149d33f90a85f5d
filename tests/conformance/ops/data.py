"""Strings, lookup tables and queues."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
I32, I64 = np.int32, np.int64


def words(*values):
    return np.array([w.encode() if isinstance(w, str) else w for w in values], object)


def cases(f):
    strings(f)
    with f.graph.as_default():
        tables(f)
        queues(f)
        areas(f)


def strings(f):
    w = words("Hello World", "", "  spaced\t", "ÄÖÜ ß".encode(), "123", "a,b,,c")
    for op in ("StringLower", "StringUpper"):
        f.simple(op, "string", [([w], {"encoding": e}) for e in ("", "utf-8")])
    broken = np.array([b"\xff\xfe", b"a\xe4\xb8c", b"\xed\xa0\x80Z", b"\xc0\xafq", b"\xf0\x9f\x98", b"\xf5\x80\x80\x80a", b"\xe4b\xb8"], object)
    for op in ("StringLower", "StringUpper"):
        f.simple(op, "string", [([broken], {"encoding": e}) for e in ("", "utf-8")], tag="broken")
    f.simple("StringStrip", "string", [([w], {})])
    f.simple("StringLength", "string", [([w], {"unit": u}) for u in ("BYTE", "UTF8_CHAR")])
    f.simple("StringJoin", "string", [([[w, words(*"abcdef"), np.array(b"!", object)]], {"separator": s}) for s in ("", ", ")], dynamic=False)
    f.simple("ReduceJoin", "string", [([w.reshape(2, 3), np.array(a, I32)], {"separator": "-", "keep_dims": k}) for a, k in (([1], False), ([0], True), ([0, 1], False), ([1, 0], False))])
    f.case("ReduceJoin", "string", tag="matrix")
    with f.graph.as_default(), f.scope():  # the kernel accepts them in any shape
        f.run(f.node("ReduceJoin", [w.reshape(2, 3), np.array([[1], [0]], I32)], dynamic=True))
    f.simple("Substr", "string", [([w[:1], np.array([2], t), np.array([4], t)], {"unit": "BYTE"}) for t in (I32, I64)] + [([words("abcdef", "xyz123"), np.array([1, -3], I32), np.array([2, 9], I32)], {})])
    f.simple("Substr", "string", [([words("abcdef", "xyz123"), np.array(p, I32), np.array(n, I32)], {"unit": u}) for u, p, n in (("BYTE", [1, -3], [-1, -9]), ("UTF8_CHAR", [1, 6], [-1, -9]))], tag="negative")
    f.refused("Substr", "string", [words("abcdef"), np.array([-1], I32), np.array([-1], I32)], unit="UTF8_CHAR")
    f.simple("StringSplitV2", "string", [([w, np.array(s, object)], {"maxsplit": m}) for s, m in ((b"", -1), (b",", -1), (b" ", 1))])
    f.simple("StringSplitV2", "string", [([words(" a  b c ", "", "x", ",,y"), np.array(s, object)], {"maxsplit": m}) for s in (b"", b",") for m in (-2, 0, 1, 2)], tag="most")
    f.simple("StringToHashBucketFast", "string", [([w], {"num_buckets": n}) for n in (10, 2 ** 40)])
    f.simple("DecodePaddedRaw", "string", [([words(b"abcdefgh", b"xy", b""), np.array(4, I32)], {"out_type": o, "little_endian": e}) for o in ("uint8", "int16", "int32", "float32") for e in (True, False)])
    with f.graph.as_default():
        f.case("DecodePaddedRaw", "string", tag="odd", expect_error="InvalidArgumentError")
        with f.scope():
            f.run(f.node("DecodePaddedRaw", [w, np.array(3, I32)], dynamic=True, out_type="int16"))
    f.simple("UnsortedSegmentJoin", "string", [([w, np.array([0, 2, 0, 3, 2, 2], t), np.array(4, I32)], {"separator": "-"}) for t in (I32, I64)]
             + [([w.reshape(3, 2), np.array([1, 0, 1], I32), np.array(2, I64)], {}), ([w.reshape(3, 2), np.array([[1, 0], [1, 1], [0, 0]], I32), np.array(2, I32)], {"separator": ","})])
    for tag, wrong in (("range", 4), ("negative", -1)):
        f.simple("UnsortedSegmentJoin", "string", [([w, np.array([0, 2, 0, wrong, 2, 2], I32), np.array(4, I32)], {})], tag=tag, expect_error="InvalidArgumentError")
    numbers = words("1", "-2.5", "3e2", " 7 ", "inf")
    f.simple("StringToNumber", "float32", [([numbers], {"out_type": "float32"}), ([numbers], {"out_type": "float64"}), ([words("1", "-25")], {"out_type": "int32"}), ([words("1", "-25000000000")], {"out_type": "int64"})])
    f.simple("StringToNumber", "float32", [([words("x1")], {"out_type": "float32"})], tag="invalid", expect_error=True)
    f.simple("StaticRegexReplace", "string", [([w], {"pattern": "[aeiou]+", "rewrite": "_", "replace_global": g}) for g in (True, False)] + [([w], {"pattern": "(l+)(o)", "rewrite": "\\2\\1"})])
    f.simple("StaticRegexFullMatch", "string", [([w], {"pattern": p}) for p in ("[0-9]+", ".*o.*", "")])
    f.simple("DecodeBase64", "string", [([words("SGVsbG8", "", "-_-_")], {})])
    f.simple("EncodeBase64", "string", [([words("Hello", "", "\x00a")], {"pad": p}) for p in (False, True)])
    raw = np.array([b"\x01\x02\x03\x04\x05\x06\x07\x08", b"abcdefgh"], object)
    for t in ("uint8", "int32", "float64", "int16"):
        f.simple("DecodeRaw", t, [([raw], {"out_type": t, "little_endian": e}) for e in (True, False)])
    for d, a in (("float32", {}), ("float32", {"precision": 3}), ("int64", {"width": 8, "fill": "0"}), ("bool", {}), ("float64", {"scientific": True}), ("float32", {"shortest": True}), ("int32", {}), ("complex64", {})):
        f.simple("AsString", d, [([f.values(d, [5], -100, 100)], a)], tag="_".join(sorted(a)))
    f.simple("ShardedFilename", "string", [([np.array(b"model", object), np.array(3, I32), np.array(12, I32)], {})])
    name, number = np.array(b"model", object), np.array(3, I32)
    for tag, inputs in (("name", [words("model"), number, number]), ("number", [name, np.array([3], I32), number])):
        f.refused("ShardedFilename", "string", inputs, tag)
    f.refused("ShardedFilespec", "string", [name, np.array([3], I32)])


def tables(f):
    for key, value in (("string", "int64"), ("int64", "float32"), ("int64", "string"), ("string", "float32")):
        f.case("MutableHashTableV2", key, tag="to_" + value)
        with f.scope():
            table = f.node("MutableHashTableV2", key_dtype=key, value_dtype=value, shared_name=f.current["name"], container="", use_node_name_sharing=False)
            keys = words("a", "b", "c") if key == "string" else np.array([5, -1, 2 ** 40])
            values = f.values(value, [3])
            insert = f.node("LookupTableInsertV2", [table, keys, values])
            more = f.node("LookupTableInsertV2", [table, keys[1:2], f.values(value, [1], salt=3)])
            missing = words("zz") if key == "string" else np.array([99])
            find = f.node("LookupTableFindV2", [table, np.concatenate([keys, missing]), f.values(value, [], salt=2)])
            size = f.node("LookupTableSizeV2", [table])
        f.run(size)
        f.run(targets=[insert])
        f.run([find, size])
        f.run(targets=[more])
        f.run([find, size])
    for key, value in (("string", "int64"), ("int64", "float32")):
        reserved = [np.array(b"-", object), np.array(b"+", object)] if key == "string" else [np.array(-1), np.array(-2)]
        keys = words("a", "b", "c") if key == "string" else np.array([5, 7, 2 ** 40])
        for bad in (False, True):
            f.case("MutableDenseHashTableV2", key, tag="reserved" if bad else "to_" + value, expect_error="InvalidArgumentError" if bad else None)
            with f.scope():
                table = f.node("MutableDenseHashTableV2", reserved, value_dtype=value, value_shape=[], shared_name=f.current["name"], container="", use_node_name_sharing=False, initial_num_buckets=16)
                insert = f.node("LookupTableInsertV2", [table, keys, f.values(value, [3])])
                remove = f.node("LookupTableRemoveV2", [table, keys[1:2]])
                find = f.node("LookupTableFindV2", [table, np.concatenate([keys, reserved[1].reshape(1) if bad else keys[:1]]), f.values(value, [], salt=2)])
                size = f.node("LookupTableSizeV2", [table])
            f.run(targets=[insert])
            f.run([find, size])
            f.run(targets=[remove])
            f.run([find, size])


def areas(f):
    """Staging areas hand tuples from run to run; stacks named by two strings live for one."""
    v = f.values
    f.case("Stage", "float32")
    with f.scope():
        about = {"dtypes": ["float32", "string"], "capacity": 3, "shared_name": f.current["name"]}
        puts = [f.node("Stage", [[v("float32", [2, n]), words(b"w%d" % n)]], **{k: a for k, a in about.items() if k != "dtypes"}) for n in range(1, 4)]
        take, size, clear = f.node("Unstage", **about), f.node("StageSize", **about), f.node("StageClear", **about)
    for put in puts:
        f.run(targets=[put])
    f.run(size)
    f.run(take)
    f.run(size)
    f.run(take)
    f.run(targets=[clear])
    f.run(size)
    f.case("Stack", "float32")
    with f.scope():
        stack = f.node("Stack", elem_type="float32", stack_name="")
        pushed = f.node("StackPush", [stack, v("float32", [2])], swap_memory=False)
        with tf1.control_dependencies([pushed]):
            pushed = f.node("StackPush", [stack, v("float32", [3])], swap_memory=False)
        with tf1.control_dependencies([pushed]):
            first = f.node("StackPop", [stack], elem_type="float32")
        with tf1.control_dependencies([first]):
            second = f.node("StackPop", [stack], elem_type="float32")
        with tf1.control_dependencies([second]):
            close = f.node("StackClose", [stack])
    for _ in range(2):
        f.run([first, second], targets=[close])


def queues(f):
    v = f.values
    for op in ("FIFOQueueV2", "PaddingFIFOQueueV2", "RandomShuffleQueueV2", "PriorityQueueV2"):
        f.case(op, "float32")
        with f.scope():
            shared = {"capacity": 10, "container": "", "shared_name": f.current["name"]}
            if op == "PriorityQueueV2":
                queue = f.node(op, component_types=["float32"], shapes=[[2]], **shared)
            elif op == "RandomShuffleQueueV2":
                queue = f.node(op, component_types=["float32", "int32"], shapes=[[2], []], min_after_dequeue=0, seed=3, seed2=4, **shared)
            else:
                queue = f.node(op, component_types=["float32", "int32"], shapes=[[2], []], **shared)
            types = ["int64", "float32"] if op == "PriorityQueueV2" else ["float32", "int32"]
            def rows(n, salt):
                if op == "PriorityQueueV2":
                    return [np.array([5, 1, 3, 2][:n]), v("float32", [n, 2], salt=salt)]
                return [v("float32", [n, 2], salt=salt), np.arange(n).astype(I32) + 10 * salt]
            many = f.node("QueueEnqueueManyV2", [queue, rows(4, 1)], timeout_ms=-1)
            one = f.node("QueueEnqueueV2", [queue, [r[0] for r in rows(1, 2)]], timeout_ms=-1)
            size = f.node("QueueSizeV2", [queue])
            take = f.node("QueueDequeueV2", [queue], component_types=types, timeout_ms=-1)
            take_many = f.node("QueueDequeueManyV2", [queue, np.array(2, I32)], component_types=types, timeout_ms=-1)
            take_up_to = f.node("QueueDequeueUpToV2", [queue, np.array(5, I32)], component_types=types, timeout_ms=-1)
            close, closed = f.node("QueueCloseV2", [queue], cancel_pending_enqueues=False), f.node("QueueIsClosedV2", [queue])
        f.run(targets=[many])
        f.run(targets=[one])
        f.run(size)
        f.run(take)
        f.run(take_many)
        f.run([size, closed])
        f.run(targets=[close])
        f.run(closed)
        if op != "PriorityQueueV2":  # TensorFlow's priority queue fails instead of returning fewer
            f.run(take_up_to)
        f.run(size)
    f.case("QueueDequeueV2", "float32", tag="closed_and_empty", expect_error=True)
    with f.scope():
        queue = f.node("FIFOQueueV2", component_types=["float32"], shapes=[[2]], capacity=2, container="", shared_name=f.current["name"])
        close = f.node("QueueCloseV2", [queue], cancel_pending_enqueues=False)
        take = f.node("QueueDequeueV2", [queue], component_types=["float32"], timeout_ms=-1)
    f.run(targets=[close])
    f.run(take)
    f.case("PaddingFIFOQueueV2", "float32", tag="padded")
    with f.scope():
        queue = f.node("PaddingFIFOQueueV2", component_types=["float32"], shapes=[[None, 2]], capacity=5, container="", shared_name=f.current["name"])
        puts = [f.node("QueueEnqueueV2", [queue, [v("float32", [n, 2])]], timeout_ms=-1) for n in (1, 3, 2)]
        take = f.node("QueueDequeueManyV2", [queue, np.array(3, I32)], component_types=["float32"], timeout_ms=-1)
    for put in puts:
        f.run(targets=[put])
    f.run(take)
