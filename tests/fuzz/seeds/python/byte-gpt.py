import torch
from torch import nn


class LearnedPositions(nn.Module):
    """Adds a trained row of values for every position."""

    def __init__(self, max_length, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_length, features) * 0.02)

    def forward(self, x):
        return x + self.weight[: x.size(1)]


def causal_mask(x):
    """Minus infinity where a position would see a later one."""
    n = x.size(1)
    return torch.triu(torch.full((n, n), float("-inf"), dtype=x.dtype, device=x.device), diagonal=1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(128)
        self.attention = nn.MultiheadAttention(128, 4, batch_first=True)
        self.norm2 = nn.LayerNorm(128)
        self.up = nn.Linear(128, 512)
        self.act = nn.ReLU()
        self.down = nn.Linear(512, 128)

    def forward(self, x):
        norm1 = self.norm1(x)
        attention = self.attention(norm1, norm1, norm1, attn_mask=causal_mask(norm1), need_weights=False)[0]
        add1 = x + attention
        x = self.norm2(add1)
        x = self.up(x)
        x = self.act(x)
        x = self.down(x)
        add2 = add1 + x
        return add2


class ByteGpt(nn.Module):
    """byte-gpt"""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 128)
        self.positions = LearnedPositions(128, 128)
        self.blocks = nn.Sequential(*[Block() for _ in range(4)])
        self.norm = nn.LayerNorm(128)
        self.head = nn.Linear(128, 256)

    def forward(self, x):  # input: i64 [128]
        x = self.embed(x)
        x = self.positions(x)
        x = self.blocks(x)
        x = self.norm(x)
        x = self.head(x)
        return x


if __name__ == "__main__":
    model = ByteGpt()
    x = torch.zeros(2, 128, dtype=torch.int64)
    print(model(x).shape)
