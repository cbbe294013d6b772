"""Replays chains of view ops, and programs of in-place writes into views, in PyTorch. See views_test.cpp for the format."""
import json
import sys

import torch


def step(x, op, a):
    if op == "permute": return x.permute(a)
    if op == "transpose": return x.transpose(a[0], a[1])
    if op == "expand": return x.expand(a)
    if op == "narrow": return x.narrow(a[0], a[1], a[2])
    if op == "slice":
        index = [slice(None)] * a[0] + [slice(a[1], a[2], a[3])]
        return x[tuple(index)]
    if op == "select": return x.select(a[0], a[1])
    if op == "squeeze": return x.squeeze(a[0])
    if op == "unsqueeze": return x.unsqueeze(a[0])
    if op == "view": return x.view(a)
    if op == "reshape": return x.reshape(a)
    if op == "diagonal": return x.diagonal(a[0], a[1], a[2])
    if op == "unfold": return x.unfold(a[0], a[1], a[2])
    if op == "movedim": return x.movedim(a[0], a[1])
    if op == "flatten": return x.flatten(a[0], a[1])
    if op == "as_strided": return x.as_strided(a[: len(a) // 2], a[len(a) // 2 : -1], a[-1])
    raise SystemExit(f"no op {op}")


def chain(case):
    """[-1] where an op refused; else ndim, sizes, strides, offset, values."""
    n = 1
    for s in case["size"]: n *= s
    x = torch.arange(n).view(case["size"])
    try:
        for op, a in case["ops"]: x = step(x, op, a)
    except (RuntimeError, IndexError):
        return [-1]
    return [x.dim(), *x.shape, *x.stride(), x.storage_offset(), *x.flatten().tolist()]


def program(case):
    """The gradients after writes into views: every view is taken from an earlier tensor of the list."""
    n = 1
    for s in case["size"]: n *= s
    x = (torch.arange(n, dtype=torch.float64).view(case["size"]) * 0.01 + 0.5).requires_grad_()
    tensors = [x * 1.0]
    for line in case["lines"]:
        t = tensors[line[1]]
        if line[0] == "take": tensors.append(step(t, line[2], line[3]))
        elif line[0] == "scale": t.mul_(line[2])
        elif line[0] == "shift": t.add_(line[2])
        elif line[0] == "put": t.copy_(tensors[line[2]].sum() * 0.1)
        elif line[0] == "sine": t.sub_(t.sin())
        else: raise SystemExit(f"no line {line}")
    total = sum((t * (i + 1)).sum() for i, t in enumerate(tensors))
    total.backward()
    return torch.cat([total.detach().view(1), x.grad.flatten()])


given = json.load(sys.stdin)
rows = [chain(c) for c in given["chains"]]
grads = [program(c) for c in given["programs"]]
torch.save({
    "chains": torch.tensor([v for r in rows for v in r], dtype=torch.int64),
    "lengths": torch.tensor([len(r) for r in rows], dtype=torch.int64),
    "programs": torch.cat(grads),
}, sys.argv[-1])
