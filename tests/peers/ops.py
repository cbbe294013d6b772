"""Evaluates every case of ops_test.cpp in PyTorch: an expression on x[0], x[1], ..., its outputs, and the gradients of a fixed weighted sum of them."""
import json
import sys

import torch

torch.set_num_threads(1)
TYPES = {"f64": torch.float64, "i64": torch.int64, "bool": torch.bool}


def tensor(t):
    values = [float("nan") if v is None else v for v in t["values"]]
    return torch.tensor(values, dtype=TYPES[t["dtype"]]).reshape(t["shape"])


def assigned(x, index, values):
    y = x.clone()
    y[index] = values
    return y


def flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for r in result for t in flat(r)]


results = {}
for number, case in enumerate(json.load(sys.stdin)):
    x = [tensor(t) for t in case["inputs"]]
    for t in x:
        if t.is_floating_point():
            t.requires_grad_()
    try:
        outputs = flat(eval(case["torch"]))
        total = 0
        for i, y in enumerate(outputs):
            results[f"{number} output {i}"] = y.detach().clone()
            if y.is_floating_point() and y.requires_grad:
                total = total + (y * torch.cos(torch.arange(y.numel(), dtype=y.dtype)).reshape(y.shape)).sum()
        if case["gradient"] and isinstance(total, torch.Tensor) and total.requires_grad:
            total.backward()
            for i, t in enumerate(x):
                if t.grad is not None:
                    results[f"{number} grad {i}"] = t.grad.clone()
    except Exception as e:
        raise SystemExit(f"{case['torch']} on {[tuple(t.shape) for t in x]}: {e}")
torch.save(results, sys.argv[1])
