"""Modules that PyTorch 1.13 does not have, in a few lines of it, for the cases of layers.json."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Fn(nn.Module):
    """A function without parameters."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *x):
        return self.f(*x)


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight
