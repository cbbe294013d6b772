import torch
from torch import nn


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv0 = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False)
        self.bn0 = nn.BatchNorm2d(out_channels)
        self.relu0 = nn.ReLU()
        self.conv1 = nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.relu1 = nn.ReLU()

    def forward(self, x):
        x = self.conv0(x)
        x = self.bn0(x)
        x = self.relu0(x)
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu1(x)
        return x


class Up(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.up = nn.ConvTranspose2d(in_channels, out_channels, kernel_size=2, stride=2)
        self.conv0 = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False)
        self.bn0 = nn.BatchNorm2d(out_channels)
        self.relu0 = nn.ReLU()
        self.conv1 = nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.relu1 = nn.ReLU()

    def forward(self, x, x1):
        x = self.up(x)
        join = torch.cat([x, x1], dim=1)
        x = self.conv0(join)
        x = self.bn0(x)
        x = self.relu0(x)
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu1(x)
        return x


class UNet(nn.Module):
    """u-net"""

    def __init__(self):
        super().__init__()
        self.down0 = Down(1, 16)
        self.pool0 = nn.MaxPool2d(2)
        self.down1 = Down(16, 32)
        self.pool1 = nn.MaxPool2d(2)
        self.middle = Down(32, 64)
        self.up1 = Up(64, 32)
        self.up0 = Up(32, 16)
        self.head = nn.Conv2d(16, 4, kernel_size=1)

    def forward(self, x):  # input: f32 [1, 32, 32]
        x = self.down0(x)
        pool0 = self.pool0(x)
        down1 = self.down1(pool0)
        pool1 = self.pool1(down1)
        middle = self.middle(pool1)
        up1 = self.up1(middle, down1)
        x = self.up0(up1, x)
        x = self.head(x)
        return x


if __name__ == "__main__":
    model = UNet()
    x = torch.randn(2, 1, 32, 32)
    print(model(x).shape)
