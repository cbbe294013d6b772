"""Runs models as PyTorch source with the weights they are given, in double: PyTorch 1.13's gradient of the tanh GELU is
wrong in single precision where its input is permuted. See source_test.cpp for the format."""
import json
import re
import sys

import torch


def tensor(j):
    kind = {"f32": torch.float64, "i64": torch.int64, "bool": torch.bool}[j["dtype"]]
    return torch.tensor(j["values"], dtype=kind).reshape(j["shape"])


def run(case):
    names = {"__name__": "source"}
    exec(case["source"].replace("torch.float32", "torch.float64"), names)  # our own text, in double
    model = names[case["class"]]().double().eval()
    # A layer that is off is made there and not called, and has no weights here.
    found = model.load_state_dict({k: tensor(v) for k, v in case["state"].items()}, strict=False)
    off = [k for k in found.missing_keys if not any(k.startswith(o + ".") for o in case["off"])]
    if found.unexpected_keys or off:
        raise ValueError(f"unexpected {found.unexpected_keys}, missing {off}")
    x = tensor(case["input"])
    if x.is_floating_point():
        x.requires_grad_()
    y = model(x)
    out = {"output": y.detach()}
    if y.requires_grad:
        (y * tensor(case["towards"])).sum().backward()
        if x.is_floating_point() and x.grad is not None:
            out["input"] = x.grad
        for name, p in model.named_parameters():
            if p.grad is not None:
                out["gradient " + name] = p.grad
    return out


result = {}
for i, case in enumerate(json.load(sys.stdin)):
    lacking = [m for m in re.findall(r"nn\.(\w+)\(", case["source"]) if not hasattr(torch.nn, m)]
    if lacking:  # an older PyTorch
        result[f"{i} missing"] = torch.zeros(1)
        continue
    try:
        for name, t in run(case).items():
            result[f"{i} {name}"] = t.contiguous().float()
    except Exception as e:
        if "unexpected keyword argument" in str(e) or "is not implemented" in str(e):  # an older PyTorch, too
            result[f"{i} missing"] = torch.zeros(1)
            continue
        raise SystemExit(f"case {i}: {type(e).__name__}: {e}\n{case['source']}")
torch.save(result, sys.argv[-1])
