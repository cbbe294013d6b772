"""Ten SGD steps of every case of losses.json in PyTorch: see losses_test.cpp."""
import json
import math
import sys

import torch
import torch.nn.functional as F


def tensor(t):
    dtype = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool}[t["dtype"]]
    return torch.tensor(t["values"], dtype=dtype).reshape(t["shape"])


# PyTorch has these two in torchvision, or not at all.
def focal(x, y, alpha, gamma):
    p = torch.sigmoid(x)
    ce = F.binary_cross_entropy_with_logits(x, y, reduction="none")
    p_t = p * y + (1 - p) * (1 - y)
    loss = ce * (1 - p_t) ** gamma
    return (loss * (alpha * y + (1 - alpha) * (1 - y))).mean() if alpha >= 0 else loss.mean()


def dice(x, y, smooth):
    p, t = torch.sigmoid(x).flatten(1), y.flatten(1)
    return (1 - (2 * (p * t).sum(1) + smooth) / (p.sum(1) + t.sum(1) + smooth)).mean()


READY = {
    "sigmoid": torch.sigmoid,
    "log_softmax": lambda x: F.log_softmax(x, 1 if x.dim() == 2 else -1),
    "exp": torch.exp,
    "": lambda x: x,
}
torch.set_num_threads(1)
out = {}
for index, case in enumerate(json.load(sys.stdin)):
    loss, ready = eval(case["torch"]), READY[case.get("ready", "")]
    inputs, trained = [tensor(t) for t in case["inputs"]], case.get("trained", 1)
    for x in inputs[:trained]:
        x.requires_grad_()
    optimizer = torch.optim.SGD(inputs[:trained], lr=0.2)
    for step in range(10):
        optimizer.zero_grad()
        y = loss(*[ready(x) if i < trained else x for i, x in enumerate(inputs)])
        if step == 0:
            out[f"{index} loss"] = y.detach().clone()
        y.sum().backward()
        if step == 0:
            out[f"{index} gradient"] = inputs[0].grad.clone()
        optimizer.step()
    for k in range(trained):
        out[f"{index} input {k}"] = inputs[k].detach().clone()
torch.save({k: v.contiguous() for k, v in out.items()}, sys.argv[-1])
