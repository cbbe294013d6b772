import torch
from torch import nn


class ByteLstm(nn.Module):
    """byte-lstm"""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 64)
        self.lstm = nn.LSTM(64, 256, batch_first=True)
        self.head = nn.Linear(256, 256)

    def forward(self, x):  # input: i64 [128]
        x = self.embed(x)
        x = self.lstm(x)[0]
        x = self.head(x)
        return x


if __name__ == "__main__":
    model = ByteLstm()
    x = torch.zeros(2, 128, dtype=torch.int64)
    print(model(x).shape)
