"""Runs 20 exported architectures in Tenon and in ONNX Runtime, in turns: onnx_runtime.py BUILD_DIR FOLDER [NAME...]

The models have random weights and are made with PyTorch and torchvision into FOLDER, where they stay for the next time.
Needs torch, torchvision, onnx and onnxruntime. Prints of each model the time to load, the first and the median run, the
memory at the peak, how many times as fast as ONNX Runtime Tenon is (above 1: faster) and the largest difference of the
outputs, by the largest output; then the geometric mean. Both sides run one after the other in processes of their own,
--rounds times; the figures are medians over the rounds."""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("folder")
parser.add_argument("names", nargs="*", help="some of the architectures; none: all")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seconds", type=float, default=1, help="of each side in each round")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--json", action="store_true", help="one JSON object a model")
parser.add_argument("--peer", metavar="FILE", help=argparse.SUPPRESS)  # ONNX Runtime's side, in a process of its own
args = parser.parse_args()

VISION = (
    "resnet18",
    "resnet50",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "efficientnet_b0",
    "densenet121",
    "shufflenet_v2_x1_0",
    "squeezenet1_1",
    "mnasnet1_0",
    "vgg11",
    "alexnet",
    "googlenet",
    "regnet_y_400mf",
    "convnext_tiny",
    "vit_b_32",
    "swin_t",
)
OWN = ("gpt", "bert", "lstm", "unet")


def own_model(name):
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Attention(nn.Module):
        def __init__(self, d, heads, causal, t):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)
            hidden = torch.triu(torch.full((t, t), float("-inf")), 1) if causal else torch.zeros(t, t)
            self.register_buffer("mask", hidden)

        def forward(self, x):
            n, t, d = x.shape
            q, k, v = (p.view(n, t, self.heads, d // self.heads).transpose(1, 2) for p in self.qkv(x).split(d, dim=2))
            scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads) + self.mask
            return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d))

    class Block(nn.Module):
        def __init__(self, d, heads, causal, t):
            super().__init__()
            self.norm1, self.norm2, self.attention = nn.LayerNorm(d), nn.LayerNorm(d), Attention(d, heads, causal, t)
            self.up, self.down, self.first = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), causal

        def forward(self, x):
            def mlp(y):
                return self.down(F.gelu(self.up(y), approximate="tanh" if self.first else "none"))

            if self.first:
                x = x + self.attention(self.norm1(x))
                return x + mlp(self.norm2(x))
            x = self.norm1(x + self.attention(x))
            return self.norm2(x + mlp(x))

    class Transformer(nn.Module):
        def __init__(self, causal, vocab=1000, t=128, d=256, heads=4, layers=4):
            super().__init__()
            self.token, self.position = nn.Embedding(vocab, d), nn.Parameter(torch.randn(t, d) * 0.02)
            self.blocks = nn.Sequential(*(Block(d, heads, causal, t) for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab if causal else 2)

        def forward(self, x):
            y = self.norm(self.blocks(self.token(x) + self.position))
            return self.head(y)

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.head = (
                nn.Embedding(256, 128),
                nn.LSTM(128, 256, 2, batch_first=True),
                nn.Linear(256, 256),
            )

        def forward(self, x):
            return self.head(self.rnn(self.embed(x))[0])

    def twice(a, b):
        return nn.Sequential(
            nn.Conv2d(a, b, 3, padding=1),
            nn.BatchNorm2d(b),
            nn.ReLU(),
            nn.Conv2d(b, b, 3, padding=1),
            nn.BatchNorm2d(b),
            nn.ReLU(),
        )

    class UNet(nn.Module):
        def __init__(self, c=(16, 32, 64, 128)):
            super().__init__()
            self.down = nn.ModuleList(twice(a, b) for a, b in zip((3,) + c, c))
            self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(c, c[1:]))
            self.join = nn.ModuleList(twice(2 * a, a) for a in c[:-1])
            self.head = nn.Conv2d(c[0], 4, 1)

        def forward(self, x):
            kept = []
            for i, block in enumerate(self.down):
                x = block(F.max_pool2d(x, 2) if i else x)
                kept.append(x)
            for i in reversed(range(len(self.up))):
                x = self.join[i](torch.cat((self.up[i](x), kept[i]), 1))
            return self.head(x)

    tokens = torch.arange(128).reshape(1, 128) * 7 % 256
    return {
        "gpt": lambda: (Transformer(True), tokens),
        "bert": lambda: (Transformer(False), tokens),
        "lstm": lambda: (Lstm(), tokens[:, :64]),
        "unet": lambda: (UNet(), torch.randn(1, 3, 128, 128)),
    }[name]()


def make(name, path):
    import torch

    torch.manual_seed(1)
    torch.backends.mha.set_fastpath_enabled(False)  # its fused operator cannot be exported
    if name in OWN:
        model, x = own_model(name)
    else:
        import torchvision

        more = {"init_weights": True} if name == "googlenet" else {}
        model, x = getattr(torchvision.models, name)(weights=None, **more), torch.randn(1, 3, 224, 224)
    # Running statistics of real models are no zeros and ones.
    model.train()
    for m in model.modules():
        if isinstance(m, torch.nn.Dropout):
            m.eval()
    if name not in OWN:
        with torch.no_grad():
            model(torch.randn(4, 3, 224, 224))
    model.eval()
    for p in model.parameters():
        p.requires_grad_(False)
        if not p.any():  # a head of zeros would make every answer 0
            p.normal_(0, 0.02)
    torch.onnx.export(
        model, (x,), path + ".part", input_names=["x"], output_names=["y"], opset_version=17, dynamo=False
    )
    os.rename(path + ".part", path)


def peak_memory():
    """In MiB. getrusage() would tell that of this script, which has PyTorch in it."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def peer(path):
    """What ONNX Runtime takes; its outputs go beside the input that Tenon gets too."""
    import time
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
    begin = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    load = time.perf_counter() - begin
    feeds = {i.name: numpy.load(path + ".npy") for i in session.get_inputs()}
    times = []
    stop = time.perf_counter() + args.seconds
    while not times or time.perf_counter() < stop:
        begin = time.perf_counter()
        y = session.run(None, feeds)
        times.append(time.perf_counter() - begin)
    numpy.save(path + ".peer.npy", y[0])
    print(
        json.dumps(
            {
                "load": load * 1e3,
                "first": times[0] * 1e3,
                "run": statistics.median(times) * 1e3,
                "memory": peak_memory(),
            }
        )
    )


def ran(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed")
    return done.stdout


def tenon(path):
    figures = {}
    for line in ran(
        [
            f"{args.build}/bin/tenon",
            "bench",
            "onnx",
            path,
            "--threads",
            str(args.threads),
            "--seconds",
            str(args.seconds),
            "--batch",
            "1",
            "--json",
        ]
    ).splitlines():
        figure = json.loads(line)
        figures[figure["metric"]] = figure["value"]
    return {
        "load": figures["load"] / 1e3,
        "first": figures["first_1"] / 1e3,
        "run": figures["run_1"] / 1e3,
        "memory": figures["peak_rss"] / 2**20,
    }


def difference(path):
    import numpy

    with tempfile.TemporaryDirectory() as folder:
        ran(
            [
                f"{args.build}/bin/tenon",
                "exec",
                path,
                "--input",
                path + ".npy",
                "--output",
                folder,
                "--threads",
                str(args.threads),
            ]
        )
        ours, theirs = numpy.load(folder + "/output_0.npy"), numpy.load(path + ".peer.npy")
    return float(numpy.abs(ours - theirs).max() / numpy.abs(theirs).max())


def main():
    import numpy

    os.makedirs(args.folder, exist_ok=True)
    ratios = []
    if not args.json:
        print(f"{'':20}{'load ms':>16}{'first ms':>16}{'run ms':>16}{'MB':>14}{'times':>8}{'difference':>12}")
    for name in args.names or VISION + OWN:
        path = f"{args.folder}/{name}.onnx"
        if not os.path.exists(path):
            make(name, path)
        if not os.path.exists(path + ".npy"):
            draw = numpy.random.default_rng(2)
            tokens, size = name in ("gpt", "bert", "lstm"), 128 if name == "unet" else 224
            numpy.save(
                path + ".npy",
                (
                    draw.integers(0, 256, (1, 64 if name == "lstm" else 128))
                    if tokens
                    else draw.standard_normal((1, 3, size, size), numpy.float32)
                ),
            )
        rounds = []
        for _ in range(args.rounds):
            theirs = json.loads(
                ran(
                    [
                        sys.executable,
                        __file__,
                        args.build,
                        args.folder,
                        "--threads",
                        str(args.threads),
                        "--seconds",
                        str(args.seconds),
                        "--peer",
                        path,
                    ]
                )
            )
            rounds.append((tenon(path), theirs))
        ours, theirs = ({k: statistics.median(r[side][k] for r in rounds) for k in rounds[0][side]} for side in (0, 1))
        ratio = statistics.median(t["run"] / o["run"] for o, t in rounds)
        ratios.append(ratio)
        off = difference(path)
        if args.json:
            print(
                json.dumps({"model": name, "tenon": ours, "onnxruntime": theirs, "times": ratio, "difference": off}),
                flush=True,
            )
        else:
            pairs = "".join(f"{ours[k]:9.2f}{theirs[k]:7.1f}" for k in ("load", "first", "run"))
            print(f"{name:20}{pairs}{ours['memory']:7.0f}{theirs['memory']:7.0f}{ratio:8.2f}{off:12.1e}", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(
        json.dumps({"geometric_mean": mean, "least": min(ratios)})
        if args.json
        else f"geometric mean {mean:.2f}, least {min(ratios):.2f}, {args.threads} threads"
    )


if args.peer:
    peer(args.peer)
else:
    main()
