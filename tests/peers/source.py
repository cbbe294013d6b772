"""Runs models as PyTorch source with the weights they are given. See source_test.cpp for the format."""
import json
import sys

import torch


def tensor(j):
    kind = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool}[j["dtype"]]
    return torch.tensor(j["values"], dtype=kind).reshape(j["shape"])


def run(case):
    names = {"__name__": "source"}
    exec(case["source"], names)  # our own text, as a user would run it
    model = names[case["class"]]().eval()
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
    try:
        for name, t in run(case).items():
            result[f"{i} {name}"] = t.contiguous()
    except Exception as e:
        raise SystemExit(f"case {i}: {type(e).__name__}: {e}\n{case['source']}")
torch.save(result, sys.argv[-1])
