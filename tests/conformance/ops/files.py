"""Image files and summaries of images and sounds; mutexes; sparse sums that stay sparse; readers of files."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def pictures():
    noise = np.random.RandomState(3).randint(0, 256, (7, 9, 3)).astype(np.uint8)
    smooth = (np.add.outer(np.arange(7), np.arange(9))[:, :, None] * np.array([3, 5, 7]) % 256).astype(np.uint8)
    return noise, smooth


def text(value):
    return np.array(value, object)


def encoded():
    """{name: bytes} as TensorFlow writes them."""
    noise, smooth = pictures()
    four = np.concatenate([noise, smooth[:, :, :1]], 2)
    with tf.Graph().as_default(), tf1.Session(config=tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)) as session:
        png = {"png%d" % c: tf.io.encode_png(four[:, :, :c]) for c in (1, 2, 3, 4)}
        png["png16"] = tf.io.encode_png((np.arange(60).reshape(5, 4, 3) * 1000).astype(np.uint16))
        png["jpeg"] = tf.io.encode_jpeg(noise)
        png["progressive"] = tf.io.encode_jpeg(smooth, quality=40, progressive=True, chroma_downsampling=False)
        png["gray"] = tf.io.encode_jpeg(noise[:, :, :1])
        return session.run(png)


def cases(f):
    with f.graph.as_default():
        images(f)
        summaries(f)
        sparse_sums(f)
        mutexes(f)
        unique(f)
        paths(f)
        readers(f)


def images(f):
    files = encoded()
    noise, smooth = pictures()
    for name, data in files.items():
        is_png = name.startswith("png")
        if is_png:
            for d in ("uint8", "uint16"):
                f.simple("DecodePng", d, [([text(data)], {"channels": c, "dtype": tf.as_dtype(d)}) for c in (0, 1, 3, 4)], tag=name, dynamic=False)
        else:
            f.simple("DecodeJpeg", "uint8", [([text(data)], {"channels": c}) for c in (0, 1, 3)] + [([text(data)], {"ratio": 2}), ([text(data)], {"fancy_upscaling": False, "dct_method": "INTEGER_ACCURATE"})], tag=name, dynamic=False)
            f.simple("ExtractJpegShape", "int32", [([text(data)], {"output_type": t}) for t in (tf.int32, tf.int64)], tag=name, dynamic=False)
        for d in ("uint8", "uint16", "float32"):
            f.simple("DecodeImage", d, [([text(data)], {"dtype": tf.as_dtype(d), "expand_animations": False})], tag=name, dynamic=False)
    f.simple("DecodePng", "uint8", [([text(files["png3"][:60])], {})], tag="cut", expect_error="InvalidArgumentError")
    f.simple("DecodeJpeg", "uint8", [([text(files["jpeg"][:100])], {})], tag="cut", expect_error="InvalidArgumentError")
    f.simple("DecodeImage", "uint8", [([text(b"GIF or what")], {})], tag="unknown", expect_error="InvalidArgumentError")
    f.simple("DecodeJpeg", "uint8", [([text(files["jpeg"])], {"channels": 4})], tag="channels", expect_error="InvalidArgumentError")
    for ratio in (0, 3, 16):
        f.refused("DecodeJpeg", "uint8", [text(files["jpeg"])], "ratio%d" % ratio, ratio=ratio)
    for op, name in (("DecodePng", "png3"), ("DecodeImage", "png3"), ("DecodeJpeg", "jpeg"), ("ExtractJpegShape", "jpeg")):
        f.refused(op, "uint8", [np.array([files[name]], object)], "vector")
    f.refused("EncodeJpegVariableQuality", "uint8", [noise, np.array([30], np.int32)])
    f.simple("EncodePng", "uint8", [([noise], {}), ([np.stack([noise, smooth])], {"compression": 1}), ([noise[:, :, :1]], {"compression": 0})], dynamic=False)
    f.simple("EncodePng", "uint16", [([(noise[:, :, :2].astype(np.uint16) * 250)], {})], dynamic=False)
    f.simple("EncodeJpeg", "uint8", [([noise], {}), ([smooth], {"quality": 50, "progressive": True, "optimize_size": True}), ([noise[:, :, :1]], {"format": "grayscale"}), ([smooth], {"chroma_downsampling": False, "density_unit": "cm", "x_density": 100, "xmp_metadata": "<x/>"})], dynamic=False)
    f.simple("EncodeJpegVariableQuality", "uint8", [([noise, np.array(30, np.int32)], {})], dynamic=False)
    f.simple("EncodeJpeg", "uint8", [([noise], {"format": "grayscale"})], tag="format", expect_error="InvalidArgumentError")


def summaries(f):
    tag = text(b"some/tag")
    x = (np.random.RandomState(5).randint(-64, 65, (3, 5, 4, 3)) / 64).astype(np.float32)
    far = x.copy()
    far[0, 1, 2, 0], far[1, 0, 0, 1] = np.nan, np.inf
    for d in ("float32", "float64", "float16"):
        v = [([tag, a.astype(d)], {"max_images": n}) for a, n in ((x, 2), (np.abs(x), 1), (far, 3), (x[..., :1] * 0, 3), (x[:0], 3))]
        f.simple("ImageSummary", d, v, dynamic=False)
    f.simple("ImageSummary", "uint8", [([tag, (np.abs(x) * 255).astype(np.uint8)], {})], dynamic=False)
    f.simple("ImageSummary", "float32", [([tag, x[..., :2]], {})], tag="channels", expect_error="InvalidArgumentError")
    for name, a in (("rows", x[:0, :0]), ("columns", x[:, :, :0])):
        f.refused("ImageSummary", "float32", [tag, a], name)
    f.refused("ImageSummary", "float32", [np.array([b"a"], object), x], "tag")
    sound = x.reshape(3, 20, 3) * 1.5
    f.refused("AudioSummaryV2", "float32", [np.array([b"a"], object), sound, np.float32(1)], "tag")
    f.refused("AudioSummaryV2", "float32", [tag, sound, np.float32(2 ** 32)], "fast")
    f.simple("AudioSummaryV2", "float32", [([tag, sound[:1], np.float32(r)], {}) for r in (0.25, 4.2e9)] + [([tag, sound[:0], np.float32(np.inf)], {})], tag="rates", dynamic=False)
    f.simple("AudioSummaryV2", "float32", [([tag, sound, np.float32(8000)], {"max_outputs": 2}), ([tag, sound[:, :, 0], np.float32(44100.5)], {"max_outputs": 1}), ([tag, sound[:, :0], np.float32(1)], {})], dynamic=False)
    f.simple("AudioSummaryV2", "float32", [([tag, sound, np.float32(0)], {})], tag="rate", expect_error="InvalidArgumentError")


def sparse_sums(f):
    at = np.array([[0, 1, 0], [0, 1, 1], [0, 2, 1], [1, 0, 0], [1, 2, 1]], np.int64)
    shape = np.array([2, 3, 2], np.int64)
    for d in ("float32", "float64", "int32", "int64", "float16", "complex64"):
        for op in ("SparseReduceSumSparse", "SparseReduceMaxSparse"):
            if d == "complex64" and "Max" in op:
                continue
            v = f.values(d, [5])
            f.simple(op, d, [([at, v, shape, np.array(a, np.int32)], {"keep_dims": k}) for a in ([0], [1], [2, 0], [-1], [0, 1, 2], []) for k in (False, True)] + [([at[:0], v[:0], shape, np.array([1], np.int32)], {})], "relative:1e-6" if d == "complex64" else "exact", dynamic=False)
    f.simple("SparseReduceSumSparse", "float32", [([at, f.values("float32", [5]), shape, np.array([3], np.int32)], {})], tag="axis", expect_error="InvalidArgumentError")


def mutexes(f):
    f.case("MutexLock", "float32")
    with f.scope():
        mutex = f.node("MutexV2", shared_name=f.current["name"], container="")
        v = tf1.Variable(np.float32(1), use_resource=True, name="v")
        first = f.node("MutexLock", [mutex], name="first")
        add = v.assign_add(2, read_value=False)
        with tf1.control_dependencies([add]):
            done = f.node("ConsumeMutexLock", [first], name="done")
        with tf1.control_dependencies([done]):
            second = f.node("MutexLock", [mutex], name="second")
        with tf1.control_dependencies([second]):
            change = v.assign(v.read_value() * 10, read_value=False)
        with tf1.control_dependencies([change]):
            again = f.node("ConsumeMutexLock", [second], name="again")
        read = v.read_value()
    f.run(targets=[v.initializer])
    for _ in range(2):
        f.run(targets=[done])
        f.run(targets=[again])
        f.run(read)
    f.case("DeviceIndex", "int32")
    with f.scope():
        f.run([f.node("DeviceIndex", device_names=names, name="n%d" % i) for i, names in enumerate((["GPU", "CPU"], ["CPU"], ["TPU"]))])


def unique(f):
    for d in ("float32", "int64", "string"):
        x = f.values(d, [5, 2], low=0, high=1)
        f.simple("UniqueWithCountsV2", d, [([x, np.array([0], np.int64)], {}), ([x, np.array([1], np.int32)], {"out_idx": tf.int64}), ([x[:, 0], np.array([], np.int64)], {})])


def paths(f):
    f.simple("MatchingFiles", "string", [([text(b"/dev/nul[l]")], {}), ([text([b"/dev/zero", b"/dev/null", b"/no/such/*"])], {})], dynamic=False)
    f.simple("ReadFile", "string", [([text(b"/no/such/file")], {})], tag="absent", expect_error="NotFoundError")
    f.refused("ReadFile", "string", [text([b"/dev/null"])], "vector")


def records(*texts):
    """A TFRecord file."""
    from tensorflow.python.lib.io import tf_record
    import tempfile
    with tempfile.NamedTemporaryFile() as file:
        with tf_record.TFRecordWriter(file.name) as writer:
            for one in texts:
                writer.write(one)
        return open(file.name, "rb").read()


def readers(f):
    """Readers of files that each case writes first."""
    folder = b"/tmp/tfc-conformance-readers/"
    lines, tail, bytes_ = b"one\r\ntwo\n\nfour", b"head\nx\ry\n\r", bytes(range(48, 71))
    framed = records(b"abc", b"", b"x" * 30)
    fixed = lambda **sizes: dict({"header_bytes": 0, "footer_bytes": 0, "hop_bytes": 0, "record_bytes": 5}, **sizes)

    def case(reads, reader, tag, contents, attrs=(), many=None):
        """One reader over files of these contents: records until there are none, counts after each, and after a reset."""
        names = [folder + ("%s.%s.%d" % (reader, tag, i)).encode() for i in range(len(contents))]
        f.case(reader + "V2", "string", tag=tag)
        with f.scope():
            writes = [f.node("WriteFile", [text(n), text(c)], name="write%d" % i) for i, (n, c) in enumerate(zip(names, contents))]
            r = f.node(reader + "V2", shared_name=f.current["name"], container="", name="reader", **dict(attrs))
            q = f.node("FIFOQueueV2", component_types=[tf.string], shapes=[[]], shared_name=f.current["name"] + ".q", name="queue")
            put = f.node("QueueEnqueueManyV2", [q, [text(names)]], name="put")
            end = f.node("QueueCloseV2", [q], name="end")
            read = f.node("ReaderReadUpToV2", [r, q, np.int64(many)], name="read") if many else f.node("ReaderReadV2", [r, q], name="read")
            counts = [f.node("ReaderNumRecordsProducedV2", [r], name="records"), f.node("ReaderNumWorkUnitsCompletedV2", [r], name="units")]
            reset = f.node("ReaderResetV2", [r], name="reset")
        f.run(targets=writes)
        f.run(targets=[put])
        f.run(targets=[end])
        for _ in range(reads):
            f.run(read)
            f.run(counts)
        f.run(targets=[reset])
        f.run(counts)

    three = [lines, b"", tail]
    for reads, arguments in ((6, ("TextLineReader", "lines", three)), (4, ("TextLineReader", "header", three, {"skip_header_lines": 1})),
                             (3, ("WholeFileReader", "files", three)), (2, ("IdentityReader", "names", [b"", b""])), (3, ("TFRecordReader", "records", [framed])),
                             (4, ("FixedLengthRecordReader", "records", [bytes_], fixed(header_bytes=2, footer_bytes=1))),
                             (8, ("FixedLengthRecordReader", "hops", [bytes_, bytes_], fixed(header_bytes=2, footer_bytes=1, hop_bytes=3))),
                             (3, ("FixedLengthRecordReader", "gaps", [b"", bytes_], fixed(hop_bytes=7)))):
        case(reads, *arguments)
    for reads, arguments in ((3, ("TextLineReader", "some", [lines, tail, lines], {}, 4)), (3, ("TextLineReader", "all", [lines, tail, lines], {}, 100)),
                             (2, ("WholeFileReader", "two", [lines, tail], {}, 2)), (2, ("TFRecordReader", "four", [framed, framed], {}, 4)),
                             (4, ("FixedLengthRecordReader", "three", [bytes_, bytes_], fixed(), 3))):
        case(reads, *arguments)
    for tag, name, content in (("absent", "TextLineReader", None), ("damaged", "TFRecordReader", lines), ("closed", "TextLineReader", b"")):
        f.case(name + "V2", "string", tag=tag, expect_error="DataLossError" if tag == "damaged" else "NotFoundError" if tag == "absent" else "OutOfRangeError")
        with f.scope():
            path = text(folder + tag.encode())
            r = f.node(name + "V2", shared_name=f.current["name"], container="", name="reader")
            q = f.node("FIFOQueueV2", component_types=[tf.string], shapes=[[]], shared_name=f.current["name"] + ".q", name="queue")
            put = f.node("QueueEnqueueV2", [q, [path]], name="put")
            end = f.node("QueueCloseV2", [q], name="end")
            read = f.node("ReaderReadV2", [r, q], name="read")
            if content is not None:
                f.run(targets=[f.node("WriteFile", [path, text(content)], name="write")])
        f.run(targets=[put])
        f.run(targets=[end])
        f.run(read)
