"""Ten steps of each optimizer on a small network, and twelve rates of each schedule, as PyTorch computes them."""
import json
import math
import sys
import warnings

import torch
from torch.optim import lr_scheduler

warnings.filterwarnings("ignore")


class Lion(torch.optim.Optimizer):
    """Chen et al. (2023), algorithm 2."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, wd=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["wd"])
                p.sub_(group["lr"] * torch.sign(b1 * m + (1 - b1) * p.grad))
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


class Lamb(torch.optim.Optimizer):
    """You et al. (2019), algorithm 2."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, wd=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s["t"], s["m"], s["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["t"] += 1
                s["m"] = b1 * s["m"] + (1 - b1) * p.grad
                s["v"] = b2 * s["v"] + (1 - b2) * p.grad ** 2
                r = (s["m"] / (1 - b1 ** s["t"])) / ((s["v"] / (1 - b2 ** s["t"])).sqrt() + group["eps"])
                u = r + group["wd"] * p
                ratio = p.norm() / u.norm() if p.norm() > 0 and u.norm() > 0 else 1.0
                p.sub_(group["lr"] * ratio * u)


class Muon(torch.optim.Optimizer):
    """Jordan et al. (2024) for matrices; AdamW for the rest."""

    def __init__(self, params, lr=1e-3, momentum=0.95, nesterov=True, ns_steps=5, weight_decay=0.1):
        super().__init__(params, dict(lr=lr, momentum=momentum, nesterov=nesterov, ns_steps=ns_steps, wd=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            rest = [p for p in group["params"] if p.dim() != 2]
            if not hasattr(self, "adamw"):
                self.adamw = torch.optim.AdamW(rest, lr=group["lr"], weight_decay=group["wd"])
            self.adamw.step()
            for p in group["params"]:
                if p.dim() != 2:
                    continue
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["momentum"])
                u = p.grad.lerp(m, group["momentum"]) if group["nesterov"] else m.clone()
                x = u.T if u.size(0) > u.size(1) else u
                x = x / (x.norm() + 1e-7)
                for _ in range(group["ns_steps"]):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
                x = x.T if u.size(0) > u.size(1) else x
                p.mul_(1 - group["lr"] * group["wd"])
                p.sub_(group["lr"] * math.sqrt(max(1, p.size(0) / p.size(1))) * x)


class Adafactor(torch.optim.Optimizer):
    """Shazeer and Stern (2018), algorithms 4 and 5 with relative steps; eps and rates as PyTorch 2.5 has them."""

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps2=1e-3, d=1.0, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, beta2_decay=beta2_decay, eps2=eps2, d=d, wd=weight_decay))

    @torch.no_grad()
    def step(self):
        def rms(x):
            return x.norm() / x.numel() ** 0.5

        for group in self.param_groups:
            for p in group["params"]:
                s, g, eps1 = self.state[p], p.grad, torch.finfo(p.dtype).eps
                s["t"] = s.get("t", 0) + 1
                fresh = s["t"] ** group["beta2_decay"]
                alpha = max(group["eps2"], rms(p).item()) * min(group["lr"], 1 / math.sqrt(s["t"]))
                p.mul_(1 - group["lr"] * group["wd"])
                if p.dim() > 1:
                    r = s.setdefault("r", torch.zeros_like(g[..., :1]))
                    c = s.setdefault("c", torch.zeros_like(g[..., :1, :]))
                    r.lerp_((g * g).mean(-1, keepdim=True), fresh)
                    c.lerp_((g * g).mean(-2, keepdim=True), fresh)
                    v = r @ c / r.mean(-2, keepdim=True).clamp(min=eps1)
                else:
                    v = s.setdefault("v", torch.zeros_like(g))
                    v.lerp_(g * g, fresh)
                u = v.clamp(min=eps1 * eps1).rsqrt() * g
                p.sub_(alpha / max(1.0, rms(u).item() / group["d"]) * u)


OWN = {"Lion": Lion, "Lamb": Lamb, "Muon": Muon, "Adafactor": Adafactor}


def train(case, start, x, y, dtype):
    w = {k: torch.tensor(v, dtype=dtype).requires_grad_() for k, v in start.items()}
    x, y = torch.tensor(x, dtype=dtype), torch.tensor(y, dtype=dtype)
    optimizer = (OWN.get(case["torch"]) or getattr(torch.optim, case["torch"]))(list(w.values()), **case["args"])

    def closure():
        optimizer.zero_grad()
        h = torch.tanh(x @ w["a.weight"].T + w["a.bias"])
        loss = torch.nn.functional.mse_loss(h @ w["b.weight"].T + w["b.bias"], y)
        loss.backward()
        return loss

    for _ in range(10):
        if case["torch"] == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return {k: v.detach() for k, v in w.items()}


def rates(case, losses):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    if "parts" in case:
        parts = [getattr(lr_scheduler, name)(optimizer, **args) for name, args in case["parts"]]
        if case["torch"] == "SequentialLR":
            schedule = lr_scheduler.SequentialLR(optimizer, parts, case["milestones"])
        else:
            schedule = lr_scheduler.ChainedScheduler(parts)
    else:
        schedule = getattr(lr_scheduler, case["torch"])(optimizer, **case["args"])
    out = []
    for i in range(12):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if i == 11:
            break
        if case["torch"] == "ReduceLROnPlateau":
            schedule.step(losses[i])
        else:
            schedule.step()
    return torch.tensor(out, dtype=torch.float64)


given, result = json.load(sys.stdin), {}
for n, case in enumerate(given["optimizers"]):
    for name, dtype in (("f32", torch.float32), ("f64", torch.float64)):
        for key, value in train(case, given["start"], given["x"], given["y"], dtype).items():
            result["%d %s %s" % (n, name, key)] = value
for n, case in enumerate(given["schedules"]):
    result["schedule %d" % n] = rates(case, given["losses"])
torch.save(result, sys.argv[-1])
