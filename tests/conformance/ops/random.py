"""Random streams: the same seeds give the same numbers; each stateful op goes on with its stream from run to run."""

import numpy as np

from cases import FLOATS
from ops.state import Variable

I32, I64 = np.int32, np.int64


def stream(f, op, kind, inputs, tolerance, tag="", times=2, **attrs):
    before = len(f.cases)
    with f.graph.as_default():
        f.case(op, kind, tolerance, tag)
        try:
            with f.scope():
                out = f.node(op, inputs, **attrs)
            for _ in range(times):
                f.run(out)
        except Exception as error:
            f.problems.append("%s: %s" % (f.current["name"], str(error).splitlines()[0][:200]))
            del f.cases[before:]


def index_shuffle(f):
    for d in ("int32", "uint32", "int64", "uint64"):
        numbers = lambda *values: np.array(values, d)  # noqa: E731,B023
        seed = np.array([5, 11, 2 ** 31 - 1], d)
        variants = [([numbers(*range(n)), seed, np.array(n - 1, d)], dict(rounds=r)) for n, r in ((7, 4), (100, 4), (300, 8))]
        variants += [([np.array(3, d), seed, np.array(70000, d)], {}), ([np.array(3, d), seed, np.array(2 ** 31 - 1, d)], {})]
        variants += [([numbers(0, 1, 2), np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], d), numbers(9, 99, 999)], {})]
        f.simple("RandomIndexShuffle", d, variants)
    f.simple("RandomIndexShuffle", "int64", [([np.array([0, 2 ** 40, 5], np.int64), np.array([1, -2, 3]), np.array(2 ** 41 + 7)], {})], tag="large")


def cases(f):
    index_shuffle(f)
    shapes = {"": [3, 5], "scalar": [], "empty": [0, 4], "long": [2100], "longer": [9, 1031]}
    for d in FLOATS:
        near = "ulp:1" if d in ("float32", "float16", "bfloat16") else "ulp:2"
        for tag, s in shapes.items():
            if tag == "longer" and d != "float32":
                continue
            for op, rule in (("RandomUniform", "exact"), ("RandomStandardNormal", near), ("TruncatedNormal", near)):
                stream(f, op, d, [np.array(s, I32)], rule, tag=tag, seed=87654321, seed2=17, dtype=d)
    stream(f, "RandomUniform", "float32", [np.array([7], I64)], "exact", tag="seed2_only", seed=0, seed2=5, dtype="float32", times=3)
    stream(f, "RandomUniform", "float32", [np.array([7], I64)], "exact", tag="seed_only", seed=5, seed2=0, dtype="float32")
    stream(f, "RandomUniform", "float32", [np.array([7], I64)], "exact", tag="negative", seed=-3, seed2=-9, dtype="float32")
    for d in ("int32", "int64"):
        for low, high in ((0, 10), (-7, 1000003)):
            stream(f, "RandomUniformInt", d, [np.array([3, 70], I32), np.array(low, d), np.array(high, d)], "exact", tag="to_%d" % high, seed=1, seed2=2)
    for d in ("float32", "int32", "string"):
        stream(f, "RandomShuffle", d, [f.values(d, [9, 2])], "exact", seed=4, seed2=5)
    stream(f, "Multinomial", "float32", [f.values("float32", [3, 5]), np.array(40, I32)], "exact", seed=4, seed2=5, output_dtype="int64")
    stream(f, "Multinomial", "float64", [f.values("float64", [2, 4]), np.array(7, I32)], "exact", tag="int32", seed=4, seed2=5, output_dtype="int32")
    for d in ("float32", "float64"):
        stream(f, "RandomGamma", d, [np.array([20], I32), np.array([0.5, 1.0, 3.5], d)], "relative:1e-5", seed=4, seed2=5)
    stream(f, "RandomPoissonV2", "float32", [np.array([20], I32), np.array([0.5, 3.0, 25.0], np.float32)], "exact", seed=4, seed2=5, dtype="float32")
    stream(f, "RandomPoissonV2", "float64", [np.array([20], I32), np.array([0.5, 3.0, 25.0])], "exact", seed=4, seed2=5, dtype="int64")
    candidates(f)
    for op in ("RngReadAndSkip", "RngSkip"):
        f.case(op, "int64")
        with f.graph.as_default(), f.scope():
            state = Variable(f, "int64", [3], True)
            start = state.assign(np.array([2 ** 62 + 2 ** 61 - 5, 7, 99]))
            skips = [f.node(op, [state.handle, np.array(a, I32 if "Read" in op else I64), np.array(n, np.uint64 if "Read" in op else I64)]) for a in (1, 3) for n in (4, 2 ** 54)]
            read = state.read()
        f.run(targets=[start])
        for skip in skips:
            f.run([skip] if "Read" in op else [], targets=[skip])
            f.run(read)
    for d in ("float32", "float64", "int32", "int64", "float16"):
        f.case("StatefulRandomBinomial", d, tag="variable")
        with f.graph.as_default(), f.scope():
            state = Variable(f, "int64", [3], True)
            start = state.assign(np.array([5, 7, 99]))
            # otherwise the first draw would change the constant's memory, not the variable's
            own = f.node("RngSkip", [state.handle, np.array(1, I64), np.array(0, I64)])
            draws = [f.node("StatefulRandomBinomial", [state.handle, np.array(1, I64), np.array(s, I32), np.array(c, "float64"), np.array(p, "float64")], dtype=d)
                     for s, c, p in (([4], 9, 0.4), ([5, 2], [3, 50], 0.4), ([2, 2, 3], [[100], [1]], [0.1, 0.5, 0.9]), ([0], 1, 0.5), ([], 70, 0.7))]
            read = state.read()
        f.run(targets=[start])
        f.run(targets=[own])
        for draw in draws:
            f.run(draw)
            f.run(read)
    stateless(f)
    parts_of_images(f)


def candidates(f):
    """Samplers of classes, run twice; how many draws unique ones took shows in the expected counts."""
    truth = np.array([[1, 2], [3, 19], [0, 1]], I64)
    for op in ("UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler"):
        for unique in (False, True):
            stream(f, op, "int64", [truth], "ulp:4", tag="unique" if unique else "", num_true=2, num_sampled=11, unique=unique, range_max=20, seed=4, seed2=5)
    stream(f, "UniformCandidateSampler", "int64", [truth], "ulp:4", tag="power", num_true=2, num_sampled=7, unique=True, range_max=32, seed=1, seed2=2)
    for tag, more in (("flat", dict(distortion=1.0)), ("root", dict(distortion=0.5)), ("reserved", dict(num_reserved_ids=3))):
        weights = [float(1 + i * i % 7) for i in range(20 - more.get("num_reserved_ids", 0))]
        stream(f, "FixedUnigramCandidateSampler", "int64", [truth], "ulp:4", tag=tag, num_true=2, num_sampled=9, unique=True, range_max=20, unigrams=weights, seed=4, seed2=5, **more)
    stream(f, "AllCandidateSampler", "int64", [truth], "exact", num_true=2, num_sampled=20, unique=True, seed=4, seed2=5)
    f.simple("ComputeAccidentalHits", "int64", [([truth, np.array(s, I64)], {"num_true": 2}) for s in ([3, 5, 1, 7, 1], [8, 9], [])])
    for tag, inputs, attrs in (("range", [truth], dict(num_true=2, num_sampled=21, unique=True, range_max=20)), ("columns", [truth], dict(num_true=3, num_sampled=2, unique=True, range_max=20))):
        f.case("LogUniformCandidateSampler", "int64", tag=tag, expect_error="InvalidArgumentError")
        with f.graph.as_default(), f.scope():
            f.run(f.node("LogUniformCandidateSampler", inputs, dynamic=True, **attrs))


def stateless(f):
    with f.graph.as_default():
        f.case("StatelessRandomGetKeyCounter", "uint64")
        with f.scope():
            f.run([f.node("StatelessRandomGetKeyCounter", [np.array(s, t)]) for s, t in (([1, 2], I32), ([0, 0], I64), ([-5, 2 ** 40], I64))])
        key, counter = np.array([2 ** 63 + 12345], np.uint64), np.array([7, 2 ** 64 - 1], np.uint64)
        for op, rule in (("StatelessRandomUniformV2", "exact"), ("StatelessRandomNormalV2", "ulp:2"), ("StatelessTruncatedNormalV2", "ulp:2")):
            for d in FLOATS:
                f.case(op, d, rule)
                with f.scope():
                    f.run([f.node(op, [np.array(s, I32), key, counter, np.array(a, I32)], dtype=d) for s in ([3, 5], [], [1025]) for a in (1, 3)])
        f.case("StatelessRandomUniformIntV2", "int32")
        with f.scope():
            f.run(f.node("StatelessRandomUniformIntV2", [np.array([30], I32), key, counter, np.array(1, I32), np.array(-5, I32), np.array(11, I32)]))
        for op, rule in (("StatelessRandomUniform", "exact"), ("StatelessRandomNormal", "ulp:2"), ("StatelessTruncatedNormal", "ulp:2")):
            f.case(op, "float32", rule)
            with f.scope():
                f.run([f.node(op, [np.array([3, 5], I32), np.array([3, 4], t)], dtype="float32") for t in (I32, I64)])
        f.case("StatelessMultinomial", "float32")
        with f.scope():
            f.run([f.node("StatelessMultinomial", [f.values("float32", [3, 5]), np.array(n, I32), np.array(s, t)], output_dtype=o) for n in (7, 20) for s, t in (([1, 2], I32), ([-5, 2 ** 40], I64)) for o in ("int32", "int64")])
    parametrised(f)
    bounded(f)


def parametrised(f):
    """Samples of each parameter: stateless gamma, Poisson and binomial numbers."""
    seed, shape, key, counter = np.array([7, -2], I64), np.array([6, 4], I32), np.array([2 ** 63 + 12345], np.uint64), np.array([7, 9], np.uint64)
    for d in ("float32", "float64", "float16"):
        number = lambda *v: np.array(v, d)  # noqa: E731,B023
        near = "relative:2e-3" if d == "float16" else "relative:1e-5"
        f.simple("StatelessRandomGammaV2", d, [([shape, seed, number(0.25, 1, 3.5, 60)], {}), ([np.array([5], I32), seed, np.array(0.5, d)], {})], near)
        f.simple("StatelessRandomGammaV3", d, [([shape, key, counter, np.array(1, I32), number(0.25, 1, 3.5, 60)], {})], near)
        f.simple("StatelessRandomPoisson", d, [([shape, seed, number(0.25, 9.5, 11, 60)], {"dtype": o}) for o in (d, "int32", "int64")])
        f.simple("StatelessRandomBinomial", d, [([shape, seed, number(0, 7, 50, 200), number(0.5, 0.125, 0.75, 0.5)], {"dtype": o}) for o in (d, "int32", "int64")]
                 + [([shape, seed, np.array(90, d), number(0.125, 0.875, 0, 1)], {"dtype": d})])
    for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        f.refused(op, "float32", [np.array(5, I32), seed])
        f.refused(op + "V2", "float32", [np.array(5, I32), key, counter, np.array(1, I32)])
    f.simple("StatelessRandomPoisson", "float32", [([shape, seed, np.ones(3, np.float32)], {"dtype": "float32"})], tag="shape", expect_error="InvalidArgumentError")
    for d in ("float32", "int32", "string"):
        f.simple("StatelessShuffle", d, [([f.values(d, s), key, counter, np.array(1, I32)], {}) for s in ([9, 2], [1], [0, 3], [130])])


def bounded(f):
    """Normal numbers within bounds: proposals of all three kinds, bounds on one side, mirrored ones, many batches."""
    inf = np.inf
    ranges = [(0, 1, -1, 4), (0, 1, -0.5, 0.25), (0, 2, 3, inf), (1, 0.5, -inf, -1), (5, 1, -2, 0), (0, 1, 1, 1.125), (-3, 4, -inf, 2), (0, 1, 0.5, 9), (2, 0.25, -7, 2)]
    for d in ("float32", "float64", "float16"):
        near = "ulp:2" if d == "float32" else "ulp:1" if d == "float16" else "ulp:4"
        number = lambda v: np.array(v, d)  # noqa: E731,B023
        for k, r in enumerate(ranges):
            stream(f, "ParameterizedTruncatedNormal", d, [np.array([9, 25], I32 if k % 2 else I64)] + [number(v) for v in r], near, tag="range%d" % k, seed=87654321, seed2=17, dtype=d)
        columns = [number(c) for c in zip(*ranges)]
        stream(f, "ParameterizedTruncatedNormal", d, [np.array([len(ranges), 3, 7], I32)] + columns, near, tag="batches", seed=5, seed2=0, dtype=d, times=3)
        for tag, shape, inputs in (("scalar_bounds", [9, 2], columns[:1] + [number([2.0]), number(-20), number(20)]), ("one", [1], [number([0]), number([1]), number([-1]), number([1])]),
                                   ("empty", [0, 3], [number(0), number(1), number(-1), number(1)]), ("none", [3, 0], [number(0), number(1), number(-1), number(1)]), ("long", [1031], [number([0]), number(1), number(-1), number(1)])):
            stream(f, "ParameterizedTruncatedNormal", d, [np.array(shape, I32)] + inputs, near, tag=tag, seed=0, seed2=9, dtype=d)
        f.simple("StatelessParameterizedTruncatedNormal", d,
                 [([np.array(shape, t), np.array(seed, t2)] + inputs, {}) for t, t2, seed in ((I32, I64, [7, -2]), (I64, I32, [-5, 3]))
                  for shape, inputs in (([6, len(ranges)], columns), ([31], [number(v) for v in ranges[0]]), ([4, len(ranges)], [number(0), number(1), columns[2], columns[3]]),
                                        ([5, 2, 3], [number([[0], [4]]), number([1, 2, 3]), number(-2), number([[9], [6]])]), ([0, 3], [number([0, 1, 2]), number(1), number(-1), number(1)]),
                                        ([2, 1, 3, 1], [number(np.zeros([1, 1])), number(1), number(-1), number(np.ones([1, 3, 1]))]), ([0], [number(0), number(-1), number(3), number(1)]))], near)
    for tag, shape, inputs in (("deviation", [3], [0, -1, -1, 1]), ("order", [3], [0, 1, 1, 1]), ("infinite", [3], [0, 1, -inf, inf]), ("nan", [3], [0, 1, -1, np.nan]), ("lengths", [3, 2], [[0, 1], 1, -1, 1]), ("rank", [3, 1], [[[0]], 1, -1, 1])):
        inputs = [np.array(v, np.float32) for v in inputs]
        f.refused("ParameterizedTruncatedNormal", "float32", [np.array(shape, I32)] + inputs, tag="refused_" + tag)
        if tag not in ("rank", "lengths"):
            f.refused("StatelessParameterizedTruncatedNormal", "float32", [np.array(shape, I32), np.array([1, 2], I64)] + inputs, tag="refused_" + tag)
    for tag, shape, means, low in (("ends", [3, 2], [0, 1, 2], -1), ("pairs", [2, 3], [0, 1, 2], [-1, -2])):
        f.refused("StatelessParameterizedTruncatedNormal", "float32", [np.array(shape, I32), np.array([1, 2], I64)] + [np.array(v, np.float32) for v in (means, 1, low, 4)], tag="refused_" + tag)
    f.refused("ParameterizedTruncatedNormal", "float32", [np.zeros([0], I32)] + [np.array(v, np.float32) for v in (0, 1, -1, 1)], tag="refused_scalar")


def parts_of_images(f):
    """Random parts of images: drawn from a stream, and of a seed."""
    box, two = np.array([[[0.1, 0.2, 0.8, 0.9]]], np.float32), np.array([[[0.05, 0.1, 0.4, 0.3], [0.5, 0.5, 1, 1]]], np.float32)
    none, least, tall = np.zeros([1, 0, 4], np.float32), np.array(0.4, np.float32), dict(aspect_ratio_range=[0.2, 0.5], area_range=[0.3, 0.9], max_attempts=20)
    stream(f, "SampleDistortedBoundingBox", "int32", [np.array([40, 57, 3], I32), box], "exact", seed=3, seed2=4)
    stream(f, "SampleDistortedBoundingBox", "uint8", [np.array([200, 9, 3], np.uint8), two], "exact", seed=3, seed2=4, min_object_covered=0.9)
    for d, boxes, more in (("int32", box, {}), ("int64", two, tall), ("int16", none, dict(use_image_if_no_bounding_boxes=True, area_range=[1.0, 1.0], aspect_ratio_range=[1.0, 1.0]))):
        stream(f, "SampleDistortedBoundingBoxV2", d, [np.array([299, 180, 3], d), boxes, least], "exact", seed=5, seed2=6, **more)
    for d in ("int32", "int64"):
        f.simple("StatelessSampleDistortedBoundingBox", d, [([np.array([33, 64, 3], d), b, least, np.array(s, t)], m) for b, m in ((box, {}), (two, tall)) for s, t in (([1, 2], I32), ([-5, 2 ** 40], I64))])
    # only the last one contains objects
    turned = np.array([[[0.9, 0.8, 0.1, 0.2]], [[0.5, 0.25, 0.5, 0.75]], [[0.1, 0.9, 0.8, 0.2]], [[0.3, 0.3, 0.5, 0.6]]], np.float32)
    f.simple("StatelessSampleDistortedBoundingBox", "int32", [([np.array([33, 64, 3], I32), turned[i:j], np.array(c, np.float32), np.array([3, 1], I64)], {}) for i, j in ((0, 4), (0, 1), (1, 2), (2, 3)) for c in (0, 0.5)], tag="turned")
    for tag, inputs in (("none", [np.array([40, 57, 3], I32), none, least]), ("outside", [np.array([40, 57, 3], I32), box * 2, least]), ("sizes", [np.array([40, 57], I32), box, least])):
        f.case("SampleDistortedBoundingBoxV2", "int32", tag=tag, expect_error="InvalidArgumentError")
        with f.graph.as_default(), f.scope():
            f.run(f.node("SampleDistortedBoundingBoxV2", inputs, dynamic=True, seed=5))
