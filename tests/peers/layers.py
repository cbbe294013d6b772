"""Ten SGD steps of every case of layers.json in PyTorch: see layers_test.cpp."""
import json
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn
import torch.nn.utils.prune  # noqa: F401  (cases name it)

from layers_extra import *  # noqa: F401,F403  modules that PyTorch 1.13 lacks, for the cases' expressions


def tensor(t):
    dtype = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool}[t["dtype"]]
    return torch.tensor(t["values"], dtype=dtype).reshape(t["shape"])


def run(case, out, prefix):
    module = eval(case["torch"])
    call = eval(case.get("call", "lambda m, *x: m(*x)"))
    state = {name: tensor(t) for name, t in case["state"].items()}
    missing, unexpected = module.load_state_dict(state, strict=False)
    missing = [m for m in missing if not m.endswith("num_batches_tracked")]
    if missing or unexpected:
        raise SystemExit(f"{case['layer']}: PyTorch's module misses {missing} and does not know {unexpected}")
    module.train(case["train"])
    inputs = [None if t is None else tensor(t) for t in case["inputs"]]
    for x in inputs:
        if x is not None and x.is_floating_point():
            x.requires_grad_()
    target = tensor(case["target"])
    optimizer = torch.optim.SGD(module.parameters(), lr=case["lr"]) if list(module.parameters()) else None
    for step in range(10):
        if optimizer:
            optimizer.zero_grad()
        for x in inputs:
            if x is not None:
                x.grad = None
        y = call(module, *inputs)
        if step == 0:
            out[prefix + "output"] = y.detach().clone()
        loss = ((y - target) ** 2).mean()
        if loss.requires_grad:
            loss.backward()
        if step == 0:
            for i, x in enumerate(inputs):
                if x is not None and x.grad is not None:
                    out[f"{prefix}input {i}"] = x.grad.clone()
        if optimizer:
            optimizer.step()
    for name, t in module.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            out[prefix + "state " + name] = t.detach().clone()


torch.set_num_threads(1)
results = {}
for index, case in enumerate(json.load(sys.stdin)):
    try:
        run(case, results, f"{index} ")
    except Exception as e:
        raise SystemExit(f"case {index}, {case['layer']}: {e}")
torch.save({k: v.contiguous() for k, v in results.items()}, sys.argv[-1])
