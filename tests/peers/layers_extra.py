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


def angles(length, width):
    rate = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.arange(length, dtype=torch.float64)[:, None] * rate


def sinusoidal(length, width):
    a = angles(length, width)
    return torch.stack([a.sin(), a.cos()], -1).reshape(length, width).float()


def rotary(x, interleaved):
    a = torch.polar(torch.ones(1, dtype=torch.float64), angles(x.shape[-2], x.shape[-1]))
    half = x.shape[-1] // 2
    pairs = x.unflatten(-1, (half, 2)) if interleaved else torch.stack([x[..., :half], x[..., half:]], -1)
    turned = torch.view_as_real(torch.view_as_complex(pairs.double().contiguous()) * a)
    return (turned.flatten(-2) if interleaved else torch.cat([turned[..., 0], turned[..., 1]], -1)).float()


def packed(m, x, state, lengths):
    y = m(nn.utils.rnn.pack_padded_sequence(x, lengths), state)[0]
    return nn.utils.rnn.pad_packed_sequence(y, total_length=x.shape[0])[0]
