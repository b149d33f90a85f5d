"""Features: messages parsed, crosses, n-grams."""

import numpy as np
import tensorflow as tf


def example(**features):
    made = {}
    for key, value in features.items():
        if isinstance(value[0], bytes) if value else False:
            made[key] = tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
        elif isinstance(value[0], float) if value else False:
            made[key] = tf.train.Feature(float_list=tf.train.FloatList(value=value))
        elif value is not None:
            made[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString(deterministic=True)


MESSAGES = [example(f=[1.0, -2.5], i=[3, -4, 5], s=[b"one", b""], d=[7, 8], d2=[4], f2=[0.5, -1.0, 2.0]), example(f=[0.5, 0.25], i=[], d=[9, 10], s=[b"x"]), example(f=[9.0, 8.0], s=[b"y", b"z", b"w"], d2=[1, 2, 3])]


def column(rows, dtype):
    """(indices, values, shape) of lists"""
    at = [[r, k] for r, row in enumerate(rows) for k in range(len(row))]
    values = [v for row in rows for v in row]
    return (np.array(at, np.int64).reshape(-1, 2), np.array(values, object if dtype == "string" else np.int64),
            np.array([len(rows), max(map(len, rows))], np.int64))


def cases(f):
    parsing(f)
    sequences(f)
    crosses(f)
    runs(f)
    counts(f)
    variants(f)
    unicode(f)
    tensors(f)
    records(f)


def tensors(f):
    """Tensors as messages and back."""
    for d in ("float32", "int8", "bool", "complex64", "float16", "bfloat16", "uint16", "int64", "string"):
        x = f.values(d, [2, 3])
        f.simple("SerializeTensor", d, [([v], {}) for v in (x, x[:0], x[:1, 0])], dynamic=d == "float32")
        made = [serialized(v, d) for v in (x, x[:0])]
        f.simple("ParseTensor", d, [([np.array(m, object)], {"out_type": d}) for m in made], dynamic=False)
    repeated = b"\x08\x01\x12\x04\x12\x02\x08\x03\x2a\x04\x00\x00\x80\x3f"  # one value in place of three
    f.simple("ParseTensor", "float32", [([np.array(repeated, object)], {"out_type": "float32"})], tag="repeated")
    for tag, message in (("type", repeated), ("broken", b"zzz")):
        f.simple("ParseTensor", "int32", [([np.array(message, object)], {"out_type": "int32"})], tag=tag, expect_error="InvalidArgumentError")
    f.refused("ParseTensor", "float32", [np.array([repeated], object)], "vector", out_type="float32")


def serialized(value, dtype):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(tf.io.serialize_tensor(tf.constant(value, dtype)))


def records(f):
    """Comma-separated values."""
    text = lambda *v: np.array(v, object)  # noqa: E731
    defaults = [np.array([5], np.int32), np.array([0.5], np.float32), text(b"none"), np.array([3], np.int64), np.array([], np.float64)]
    lines = text(b'1,2.5,abc,7,8e3', b'-4, 3 ,"x, ""q""",,1', b',1e-3,,9,inf')
    f.simple("DecodeCSV", "string", [([lines, defaults], {}), ([lines[0], defaults], {}), ([lines, [text(b"a"), defaults[3]]], {"select_cols": [2, 3]}), ([lines[:0], defaults], {}),
                                     ([text(b'NA|4|"a"|'), [np.array([7], np.int32), np.array(1, np.int32), text(b""), text(b"e")]], {"field_delim": "|", "na_value": "NA"}),
                                     ([text(b'1|"4|a'), [np.array([7], np.int32), text(b""), text(b"")]], {"field_delim": "|", "use_quote_delim": False})], dynamic=False)
    for tag, line in (("few", b"1,2"), ("many", b"1,2,a,4,5,6"), ("number", b"x,2,a,4,5"), ("missing", b"1,2,a,4,"), ("quote", b'1,2,a"b,4,5'), ("open", b'1,2,"a,4,5'), ("range", b"3000000000,2,a,4,5"), ("line", b"1,2,a,4,5\n")):
        f.simple("DecodeCSV", "string", [([text(line), defaults], {})], tag=tag, expect_error="InvalidArgumentError")


def parsing(f):
    some = np.array(MESSAGES, object)
    none = np.array([], object)
    keys = lambda *k: np.array(k, object)  # noqa: E731
    dense = {"dense_shapes": [[2], [2]], "Tdense": [tf.float32, tf.int64]}
    sparse = {"num_sparse": 2, "sparse_types": [tf.int64, tf.float32]}  # a key counts only once
    ragged = {"ragged_value_types": [tf.int64, tf.string], "ragged_split_types": [tf.int32, tf.int64]}
    default = [np.array([0.5, 1.5], np.float32), np.array([-1, -2], np.int64)]
    full = [keys(b"d2", b"f2"), keys(b"f", b"d"), keys(b"i", b"s"), default]
    f.simple("ParseExampleV2", "string", [([some, none] + full, {**dense, **sparse, **ragged}), ([some[:0], none] + full, {**dense, **sparse, **ragged})], dynamic=False)
    f.simple("ParseExampleV2", "string", [([np.array(m, object), none] + full, {**dense, **sparse, **ragged}) for m in some[1:]], dynamic=False, tag="one")
    padded = {"dense_shapes": [[None], [None]], "Tdense": [tf.int64, tf.string], "num_sparse": 0, "sparse_types": [], "ragged_value_types": [], "ragged_split_types": []}
    f.simple("ParseExampleV2", "string", [([some, none, keys(), keys(b"i", b"s"), keys(), [np.int64(-9), np.array(b"none", object)]], padded)], tag="padded", dynamic=False)
    missing = {**dense, **sparse, **ragged}
    f.simple("ParseExampleV2", "string", [([some, none, keys(b"d2", b"f2"), keys(b"g", b"d"), keys(b"i", b"s"), [np.zeros(0, np.float32), default[1]]], missing)], tag="missing", expect_error="InvalidArgumentError")
    f.simple("ParseExampleV2", "string", [([some, none, keys(b"d2", b"f2"), keys(b"i", b"d"), keys(b"f", b"s"), default], missing)], tag="type", expect_error="InvalidArgumentError")
    f.simple("ParseExampleV2", "string", [([np.array([MESSAGES[0][:-3]], object), none] + full, missing)], tag="broken", expect_error="InvalidArgumentError")
    one = [np.array(k, object) for k in (b"i", b"s", b"f", b"d")]
    f.simple("ParseExample", "string", [([some, none, one[:2], one[2:], default], {"dense_shapes": [[2], [2]], "sparse_types": [tf.int64, tf.string]})], dynamic=False)
    sparse_one = {"num_sparse": 0, "sparse_keys": [], "sparse_types": []}
    for tag, d, shape in (("few", [1], [2]), ("rank", [[1, 2]], [2]), ("scalar", 1, [1]), ("pads", [1, 2], [None]), ("no_pad", [], [None])):  # defaults that do not fit
        d = np.array(d, np.int64)
        f.refused("ParseSingleExample", "string", [np.array(MESSAGES[0], object), [d]], tag, dense_shapes=[shape], dense_keys=["d" if shape == [2] else "i"], **sparse_one)
        f.refused("ParseExampleV2", "string", [some, none, keys(), keys(b"d" if shape == [2] else b"i"), keys(), [d]], tag + "_default", **{**padded, "Tdense": [tf.int64], "dense_shapes": [shape]})
    f.simple("ParseSingleExample", "string", [([np.array(MESSAGES[0], object), [np.array(d, np.int64)]], {"dense_shapes": [[None]], "dense_keys": [k], **sparse_one}) for d in ([7], 7) for k in ("i", "absent")], tag="padded", dynamic=False)
    f.simple("ParseSingleExample", "string", [([np.array(m, object), default], {"dense_shapes": [[2], [2]], "sparse_keys": ["i", "s"], "dense_keys": ["f", "d"], "num_sparse": 2, "sparse_types": [tf.int64, tf.string]}) for m in some], dynamic=False)


def sequences(f):
    """SequenceExamples: contexts and lists of features, some of them absent."""
    floats = lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v))  # noqa: E731
    ints = lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v))  # noqa: E731
    texts = lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v))  # noqa: E731

    def message(steps, lacks=()):
        context = {"size": ints([steps, -steps]), "tags": texts([b"t%d" % k for k in range(steps)]), "name": texts([b"number %d" % steps])}
        lists = {"points": [floats([k, k + 0.5]) for k in range(steps)], "words": [texts([b"w", b"v" * k]) for k in range(steps)],
                 "ids": [ints(range(10 * k, 11 * k)) for k in range(steps)], "more": [ints(range(k % 3)) for k in range(steps)], "labels": [texts([b"x"] * (2 - k % 2)) for k in range(steps)]}
        return tf.train.SequenceExample(
            context=tf.train.Features(feature={k: v for k, v in context.items() if k not in lacks}),
            feature_lists=tf.train.FeatureLists(feature_list={k: tf.train.FeatureList(feature=v) for k, v in lists.items() if k not in lacks})).SerializeToString()

    strings = lambda *k: np.array(k, object)  # noqa: E731
    attrs = {"Ncontext_sparse": 1, "context_sparse_types": [tf.string], "Tcontext_dense": [tf.int64, tf.string], "context_dense_shapes": [[2], []],
             "context_ragged_value_types": [], "context_ragged_split_types": [], "Nfeature_list_sparse": 1, "feature_list_sparse_types": [tf.int64],
             "Nfeature_list_dense": 2, "feature_list_dense_types": [tf.float32, tf.string], "feature_list_dense_shapes": [[2], [2]],
             "feature_list_ragged_value_types": [tf.int64, tf.string], "feature_list_ragged_split_types": [tf.int32, tf.int64]}
    defaults = [np.array([7, 8], np.int64), np.array(b"none", object)]

    def inputs(serialized, dense=(b"points", b"words"), may_lack=(True, True)):
        return [serialized, strings(), strings(b"tags"), strings(b"size", b"name"), strings(), strings(b"ids"), strings(*dense),
                strings(b"more", b"labels"), np.array(may_lack), defaults]

    batches = [strings(message(2), message(0), message(3)), strings(message(1, ("size", "tags", "points", "more")), message(2, ("name", "ids", "labels"))),
               strings(message(0)), strings()]
    for i, b in enumerate(batches):
        f.simple("ParseSequenceExampleV2", "string", [(inputs(b), attrs)], dynamic=False, tag="batch%d" % i)
    # For a single message (no batch), TensorFlow returns old memory as splits, so there are none here.
    alone = {**attrs, "feature_list_ragged_value_types": [], "feature_list_ragged_split_types": []}
    f.simple("ParseSequenceExampleV2", "string", [(inputs(np.array(m, object))[:7] + [strings()] + inputs(m)[8:], alone) for m in (message(3), message(0), message(2, ("size", "words")))], dynamic=False, tag="one")
    context = {**attrs, "Ncontext_sparse": 0, "context_sparse_types": [], "context_ragged_value_types": [tf.string], "context_ragged_split_types": [tf.int32]}
    f.simple("ParseSequenceExampleV2", "string", [(inputs(b)[:2] + [strings(), strings(b"size", b"name"), strings(b"tags")] + inputs(b)[5:], context) for b in batches[:2]], dynamic=False, tag="ragged")
    for tag, given in (("missing", inputs(batches[1], may_lack=(False, True))), ("length", inputs(batches[0], dense=(b"points", b"other"), may_lack=(True, False))),
                       ("type", inputs(batches[0], dense=(b"words", b"points"))), ("broken", inputs(strings(message(2)[:-3])))):
        f.simple("ParseSequenceExampleV2", "string", [(given, attrs)], tag=tag, expect_error="InvalidArgumentError")


def crosses(f):
    a, b = column([[b"a", b"b"], [], [b"c"]], "string"), column([[1, 2], [3], [-4]], "int64")
    dense = np.array([[b"x", b"y"], [b"z", b""], [b"p", b"q"]], object)
    numbers = np.array([[5], [6], [7]], np.int64)
    columns = [[x[i] for x in (a, b)] for i in range(3)]
    for hashed in (True, False):
        for buckets in (0, 10) if hashed else (0,):
            if not hashed:  # texts alone
                columns[1][1] = column([[b"1", b"2"], [b"3"], [b"-4"]], "string")[1]
            attrs = {"hashed_output": hashed, "num_buckets": buckets, "hash_key": 956888297470, "out_type": tf.int64 if hashed else tf.string, "internal_type": tf.int64 if hashed else tf.string}
            inputs = columns + [[dense] + [numbers] * hashed]
            f.simple("SparseCross", "int64" if hashed else "string", [(inputs, attrs)], tag="%d" % buckets, dynamic=False)
    columns[1][1] = b[1]
    # Only the type decides whether values are hashed.
    f.simple("SparseCross", "int64", [(columns + [[dense, numbers]], {"hashed_output": False, "num_buckets": 10, "hash_key": 3, "out_type": tf.int64, "internal_type": tf.int64})], tag="by_type", dynamic=False)
    f.simple("SparseCrossHashed", "int64", [(columns + [[dense], np.int64(-5), np.array(False), np.array([137, 173], np.int64)], {})], tag="negative", dynamic=False)
    f.simple("SparseCrossV2", "string", [(columns + [[dense, numbers], np.array(b"--", object)], {})], dynamic=False)
    for strong in (False, True):
        for buckets in (0, 12):
            f.simple("SparseCrossHashed", "int64", [(columns + [[dense], np.int64(buckets), np.array(strong), np.array([137, 173], np.int64)], {})], tag="%d_%d" % (strong, buckets), dynamic=False)
    words, splits = np.array([b"a", b"b", b"c", b"dd", b""], object), np.array([0, 2, 2, 5], np.int64)
    ids, short = np.array([7, -3, 2 ** 40], np.int64), np.array([0, 1, 2, 3], np.int64)
    table = np.array([[1, 2], [3, 4], [5, 6]], np.int64)
    texts = np.array([[b"x"], [b"y"], [b"z"]], object)
    sparse_parts = [[np.array([[0, 0], [2, 0], [2, 1]], np.int64)], [np.array([b"p", b"q", b"r"], object)], [np.array([3, 2], np.int64)]]
    for out in ("string", "int64"):
        for buckets in (0, 10) if out == "int64" else (0,):
            common = {"hashed_output": out == "int64", "num_buckets": buckets, "hash_key": 956888297470, "out_values_type": out}
            f.simple("RaggedCross", out, [([[words, ids], [splits, short], *sparse_parts, [table]], dict(common, input_order="RSDR", out_row_splits_type="int64")),
                                          ([[words], [splits], [], [], [], [texts, table]], dict(common, input_order="DRD", Nsparse=0, out_row_splits_type="int64")),
                                          ([[words], [splits], *sparse_parts, []], dict(common, input_order="SR", out_row_splits_type="int64"))], tag="%d" % buckets, dynamic=False)
    for tag, values in (("order", ([words], [splits], "D")), ("splits", ([words], [np.array([0, 2, 2, 4], np.int64)], "R"))):
        f.simple("RaggedCross", "string", [([values[0], values[1], [], [], [], []], dict(input_order=values[2], Nsparse=0, hashed_output=False, num_buckets=0, hash_key=0, out_values_type="string", out_row_splits_type="int64"))],
                 tag=tag, dynamic=False, expect_error="InvalidArgumentError")


def runs(f):
    words = np.array([b"a", b"b", b"c", b"d", b"e", b"f"], object)
    for t in (np.int32, np.int64):
        splits = np.array([0, 4, 4, 5, 6], t)
        for w in ([1], [2], [2, 4], [5]):
            variants = [{"ngram_widths": w, "pad_width": p, "preserve_short_sequences": k} for p in (-1, 0, 1) for k in (False, True) if not (k and p < 0)]
            f.simple("StringNGrams", "string", [([words, splits], {"separator": " ", "left_pad": "<", "right_pad": ">>", **a}) for a in variants], tag="%s.%d" % (np.dtype(t).name, sum(w)), dynamic=False)


def counts(f):
    at, values, dims = column([[1, 2, 1], [], [0, 5]], "int64")
    for t in ("int32", "int64", "float32", "float64"):
        for index in (np.int32, np.int64):
            weights = [np.zeros(0, t), f.values(t, [5], 1, 5)]
            tag = np.dtype(index).name
            some = [({"binary_output": b}, w) for b in (False, True) for w in weights if not (b and len(w))]
            f.simple("SparseBincount", t, [([at, values.astype(index), dims, index(5), w], a) for a, w in some], tag=tag)
            f.simple("SparseBincount", t, [([at[:3, 1:], values[:3].astype(index), dims[1:], index(4), w[:3]], a) for a, w in some], tag=tag + ".vector")
            f.simple("RaggedBincount", t, [([np.array([0, 3, 3, 5], np.int64), values.astype(index), index(5), w], a) for a, w in some], tag=tag)
    falls = [([np.array(s, np.int64), values.astype(np.int32), np.int32(5), np.zeros(0, np.float32)], {}) for s in ([0, 5, 3, 5], [0, 2, -1, 4, 5], [0, 9, 5])]
    f.simple("RaggedBincount", "float32", falls, tag="falling")
    f.refused("RaggedBincount", "float32", [np.array([0, 5], np.int64), values.astype(np.int32), np.array([5], np.int32), np.zeros(0, np.float32)], "size")
    f.refused("SparseBincount", "float32", [at, values.astype(np.int32), dims, np.array([5], np.int32), np.zeros(0, np.float32)], "size")


def variants(f):
    """Ragged tensors as variants and back, whole and row by row."""
    splits = [np.array([0, 2, 2, 3], np.int64), np.array([0, 1, 4, 6], np.int64)]
    for d in ("float32", "int64", "string"):
        for rows in (False, True):
            with f.graph.as_default():
                f.case("RaggedTensorToVariant", d, tag="rows" if rows else "")
                with f.scope():
                    made = []
                    for nested, values in ((splits, f.values(d, [6, 2])), (splits[1:], f.values(d, [6]))):
                        encoded = f.node("RaggedTensorToVariant", [nested, values], batched_input=rows)
                        made.append(f.node("RaggedTensorFromVariant", [encoded], input_ragged_rank=len(nested) - rows, output_ragged_rank=len(nested), Tvalues=tf.as_dtype(d), Tsplits=tf.int64))
                f.run(made)
    for d in ("float32", "float64", "int32"):
        with f.graph.as_default():
            f.case("RaggedTensorToVariantGradient", d)
            with f.scope():
                encoded = f.node("RaggedTensorToVariant", [splits[1:], f.values(d, [6, 2])], batched_input=True)
                grad = f.node("RaggedTensorToVariantGradient", [encoded, splits[1], np.array([6, 2], np.int32)], Tvalues=tf.as_dtype(d))
                whole = f.node("RaggedTensorToVariant", [splits[1:], f.values(d, [6, 2])], batched_input=False, name="whole")
                back = [f.node("RaggedTensorFromVariant", [t], input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.as_dtype(d), Tsplits=tf.int64, name="back%d" % i)
                        for i, t in enumerate((f.node("ZerosLike", [whole]), f.node("AddN", [[whole, whole]])))]
            f.run([grad, back])


def unicode(f):
    texts = np.array([b"abc", "h\u00e9\u4e2d\U0001f600".encode(), b"", b"a\xffb\xe4\xb8c\xf0\x9f\x98", b"\xed\xa0\x80\xc0\xaf", b"\x01\x7f\t"], object)
    wide = {"UTF-16-BE": np.array(["a\u4e2d\U0001f600".encode("utf-16-be"), b"\xd8\x00\x00a", b"\x00"], object), "UTF-32-BE": np.array(["a\U0001f600".encode("utf-32-be"), b"\x00\x11\x00\x00"], object)}
    good = texts[:3]
    for op in ("UnicodeDecode", "UnicodeDecodeWithOffsets"):
        f.simple(op, "string", [([texts], {"input_encoding": "UTF-8", "errors": e, "replace_control_characters": c, "replacement_char": 33}) for e in ("replace", "ignore") for c in (False, True)], dynamic=False)
        f.simple(op, "string", [([good], {"input_encoding": "UTF-8", "errors": "strict"})], tag="strict", dynamic=False)
        f.simple(op, "string", [([texts], {"input_encoding": "UTF-8", "errors": "strict"})], tag="refused", expect_error="InvalidArgumentError")
        for name, x in wide.items():
            f.simple(op, "string", [([x], {"input_encoding": name})], tag=name, dynamic=False)
    points = np.array([97, 0x4e2d, 0x1f600, 0xe9, 0x110000, 0xd800, 0x7f, -1, 0xfdd0, 0xfffe], np.int32)
    for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        f.simple("UnicodeEncode", "int32", [([points, np.array([0, 3, 3, 10], np.int64)], {"errors": e, "output_encoding": out}) for e in ("replace", "ignore")], tag=out, dynamic=False)
        f.simple("UnicodeTranscode", "string", [([texts], {"input_encoding": "UTF-8", "output_encoding": out, "errors": e}) for e in ("replace", "ignore")], tag=out, dynamic=False)
    f.simple("UnicodeEncode", "int32", [([points, np.array([0, 10], np.int64)], {"errors": "strict", "output_encoding": "UTF-8"})], tag="refused", expect_error="InvalidArgumentError")
