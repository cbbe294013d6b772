import torch
from torch import nn


class FashionCnn(nn.Module):
    """fashion-cnn"""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.flatten = nn.Flatten()
        self.classifier = nn.Sequential(
            nn.Linear(3136, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )

    def forward(self, x):  # input: f32 [1, 28, 28]
        x = self.features(x)
        x = self.flatten(x)
        x = self.classifier(x)
        return x


if __name__ == "__main__":
    model = FashionCnn()
    x = torch.randn(2, 1, 28, 28)
    print(model(x).shape)
