"""Writes golden/registry.json.gz: what TensorFlow 2.15.1 has registered, operation by operation.

    .venv/bin/python tests/ops/registry.py

One line for each operation: its inputs and outputs as [name, type, type attribute, number attribute, list attribute,
reference], its attributes with kinds, allowed values, minimum and default, whether it is stateful, which types its CPU
kernels take for each type attribute (absent: there is no kernel, or one for all), and its gradient: a function, none
(declared so), or nothing registered.
"""
import gzip
import json
import math
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import op_def_pb2  # noqa: E402
from tensorflow.python.client import pywrap_tf_session  # noqa: E402
from tensorflow.python.framework import kernels, ops  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
GRADIENTS = ops.gradient_registry


def type_name(value):
    return tf.dtypes.as_dtype(value).base_dtype.name


def argument(a):
    return [a.name, type_name(a.type) if a.type else "", a.type_attr, a.number_attr, a.type_list_attr, bool(a.is_ref)]


def scalar(value):
    kind = value.WhichOneof("value")
    if kind == "s":
        return value.s.decode("latin-1")
    if kind in ("i", "b"):
        return getattr(value, kind)
    if kind == "f":
        return value.f if math.isfinite(value.f) else str(value.f)
    if kind == "type":
        return type_name(value.type)
    if kind == "shape":
        return None if value.shape.unknown_rank else [d.size for d in value.shape.dim]
    if kind == "list":
        x = value.list
        return ([s.decode("latin-1") for s in x.s] or list(x.i) or list(x.f) or list(x.b) or [type_name(t) for t in x.type]
                or [None if s.unknown_rank else [d.size for d in s.dim] for s in x.shape])
    return kind  # tensors and functions: that there is one


def attribute(a):
    out = {"name": a.name, "kind": a.type}
    if a.HasField("allowed_values"):
        out["allowed"] = scalar(a.allowed_values)
    if a.has_minimum:
        out["minimum"] = a.minimum
    if a.HasField("default_value"):
        out["default"] = scalar(a.default_value)
    return out


def kernel_types(name):
    types = {}
    rows = [k for k in kernels.get_registered_kernels_for_op(name).kernel if k.device_type == "CPU"]
    for k in rows:
        for c in k.constraint:
            if c.allowed_values.list.type:
                types.setdefault(c.name, set()).update(type_name(t) for t in c.allowed_values.list.type)
    for attr in list(types):  # a kernel without a constraint takes all
        if any(attr not in [c.name for c in k.constraint] for k in rows):
            del types[attr]
    return {a: sorted(t) for a, t in sorted(types.items())}, len(rows)


def main():
    assert tf.__version__ == "2.15.1", tf.__version__
    lines = []
    everything = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    for d in sorted(everything.op, key=lambda d: d.name):
        name = d.name
        types, count = kernel_types(name)
        try:
            gradient = "none" if GRADIENTS.lookup(name) is None else "function"
        except LookupError:
            gradient = ""
        lines.append(json.dumps({"op": name, "inputs": [argument(a) for a in d.input_arg],
                                 "outputs": [argument(a) for a in d.output_arg], "attrs": [attribute(a) for a in d.attr],
                                 "stateful": d.is_stateful, "types": types, "kernels": count > 0, "gradient": gradient},
                                separators=(",", ":"), sort_keys=True))
    text = '{"tensorflow":"%s","ops":[\n%s\n]}\n' % (tf.__version__, ",\n".join(lines))
    with open(os.path.join(HERE, "golden", "registry.json.gz"), "wb") as f:
        f.write(gzip.compress(text.encode(), mtime=0))


main()
