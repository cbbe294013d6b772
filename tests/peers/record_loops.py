"""Records the same training loop over and over, each time with one thing made slower: record_loops.py FOLDER

Needs a PyTorch with Kineto. Writes FOLDER/NAME.json.gz, one for each variant; trace_loops_test.cpp knows what was done to each."""
import gzip
import os
import sys
import tempfile
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset

folder = sys.argv[1]
torch.set_num_threads(1)


class Pictures(Dataset):
    def __init__(self, slow):
        self.slow = slow

    def __len__(self):
        return 1000

    def __getitem__(self, i):
        if self.slow:
            time.sleep(0.002)
        return torch.full((3, 16, 16), float(i % 7)), i % 10


class Network(nn.Module):
    def __init__(self, variant):
        super().__init__()
        self.variant = variant
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Linear(8 * 16 * 16, 10)

    def augment(self, x):
        with record_function("augment"):
            if self.variant == "sleep":
                time.sleep(0.01)
            return x + 1

    def forward(self, x):
        x = torch.relu(self.first(self.augment(x)))
        x = torch.relu(self.second(x))
        if self.variant == "twice":
            for _ in range(8):
                x = torch.relu(self.second(x))
        if self.variant == "python":
            sorted(range(1000000, 0, -1))
        return self.last(x.flatten(1))


def record(variant, stacks):
    torch.manual_seed(0)
    model = Network(variant)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    loss_of = nn.CrossEntropyLoss()
    batches = iter(DataLoader(Pictures(variant == "data"), batch_size=8))
    options = {"with_stack": True, "experimental_config": torch._C._profiler._ExperimentalConfig(verbose=True)} if stacks else {}
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=2, active=3), **options) as p:
        for _ in range(6):
            x, y = next(batches)
            loss = loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            p.step()
    with tempfile.TemporaryDirectory() as t:
        p.export_chrome_trace(f"{t}/t.json")
        with open(f"{t}/t.json", "rb") as f, open(f"{folder}/{variant}{'-stacks' if stacks else ''}.json.gz", "wb") as out:
            with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
                packed.write(f.read())


os.makedirs(folder, exist_ok=True)
for name in ("plain", "sleep", "twice", "data", "python"):
    record(name, False)
    record(name, True)
