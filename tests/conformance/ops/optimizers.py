"""Optimizer updates: each twice, on variables and slots of either style, dense and sparse."""

import numpy as np

from cases import FLOATS, kernel_dtypes, relative, tf1
from ops.state import stateful

I32 = np.int32
COMPLEX = ["GradientDescent", "Momentum", "Adam", "Adagrad", "AdagradV2", "Adadelta", "RMSProp", "CenteredRMSProp", "KerasMomentum"]
S = [4, 3]
# op without prefix: number of variables (the first one is the weight), then the scalars and the gradient in order
DENSE = {  # "g" stands for the gradient
    "ApplyGradientDescent": (1, [0.1, "g"]), "ApplyMomentum": (2, [0.1, "g", 0.9]), "ApplyAdam": (3, [0.9, 0.999, 0.01, 0.9, 0.999, 1e-3, "g"]),
    "ApplyAdagrad": (2, [0.1, "g"]), "ApplyAdagradV2": (2, [0.1, 1e-3, "g"]), "ApplyAdadelta": (3, [0.5, 0.95, 1e-3, "g"]),
    "ApplyRMSProp": (3, [0.01, 0.9, 0.5, 1e-3, "g"]), "ApplyCenteredRMSProp": (4, [0.01, 0.9, 0.5, 10.0, "g"]), "ApplyFtrl": (3, ["g", 0.1, 0.01, 0.02, -0.5]),
    "ApplyFtrlV2": (3, ["g", 0.1, 0.01, 0.02, 0.03, -0.5]), "ApplyAdaMax": (3, [0.9, 0.01, 0.9, 0.999, 1e-3, "g"]), "ApplyAddSign": (2, [0.1, 1.5, 0.5, 0.9, "g"]),
    "ApplyPowerSign": (2, [0.1, 1.2, 0.5, 0.9, "g"]), "ApplyProximalGradientDescent": (1, [0.1, 0.2, 0.3, "g"]), "ApplyProximalAdagrad": (2, [0.1, 0.2, 0.3, "g"]),
    "ApplyKerasMomentum": (2, [0.1, "g", 0.9]), "ApplyAdagradDA": (3, ["g", 0.1, 0.2, 0.3, 3]), "ApplyAdamWithAmsgrad": (4, [0.9, 0.999, 0.01, 0.9, 0.999, 1e-3, "g"])}
SPARSE = {  # "g" the gradient rows, "i" their indices
    "SparseApplyAdagrad": (2, [0.1, "g", "i"]), "SparseApplyAdagradV2": (2, [0.1, 1e-3, "g", "i"]), "SparseApplyAdadelta": (3, [0.5, 0.95, 1e-3, "g", "i"]),
    "SparseApplyFtrl": (3, ["g", "i", 0.1, 0.01, 0.02, -0.5]), "SparseApplyMomentum": (2, [0.1, "g", "i", 0.9]), "SparseApplyProximalAdagrad": (2, [0.1, 0.2, 0.3, "g", "i"]),
    "SparseApplyProximalGradientDescent": (1, [0.1, 0.2, 0.3, "g", "i"]), "SparseApplyRMSProp": (3, [0.01, 0.9, 0.5, 1e-3, "g", "i"]),
    "SparseApplyCenteredRMSProp": (4, [0.01, 0.9, 0.5, 10.0, "g", "i"]), "SparseApplyKerasMomentum": (2, [0.1, "g", "i", 0.9]), "SparseApplyAdagradDA": (3, ["g", "i", 0.1, 0.2, 0.3, 3])}


def one(f, op, dtype, count, rest, tag="", resource=False, **attrs):
    if not hasattr(tf1.raw_ops, op) or dtype not in kernel_dtypes(op):
        return
    gradient = f.values(dtype, S if "i" not in rest else [3, 3], -2, 2, 7)
    kind = gradient.dtype
    inputs = [gradient if r == "g" else np.array([3, 0, 2], I32) if r == "i" else np.array(r).astype(np.int64 if op.endswith("AdagradDA") and r == 3 else kind) for r in rest]
    stateful(f, op, dtype, [S] * count, lambda h: f.node(op, h + inputs, **attrs), relative(2e-6)(dtype) if dtype in ("float32", "float64") else relative(4e-6)(dtype),
             tag=tag, resource=resource)


def cases(f):
    for table in (DENSE, SPARSE):
        for op, (count, rest) in table.items():
            for resource in (False, True):
                name = "Resource" + op if resource else op
                for dtype in FLOATS + (["complex64"] if op.split("Apply")[1] in COMPLEX else []):
                    one(f, name, dtype, count, rest, resource=resource)
                if op in ("ApplyAdam", "ApplyMomentum", "SparseApplyMomentum", "ApplyKerasMomentum", "SparseApplyKerasMomentum"):
                    one(f, name, "float32", count, rest, tag="nesterov", resource=resource, use_nesterov=True)
                if op in ("ApplyAdagrad", "SparseApplyAdagrad"):
                    one(f, name, "float32", count, rest, tag="no_slots", resource=resource, update_slots=False)
                if op in ("ApplyFtrlV2", "ApplyFtrl"):
                    one(f, name, "float32", count, rest, tag="linear", resource=resource, multiply_linear_by_lr=True)
