"""How time and memory of a training step grow with a net's sizes, beside PyTorch: growth.py BUILD_DIR FOLDER

Runs `tenon bench growth` (mlp, cnn, gpt) and the same nets, batches and optimizers in PyTorch (eager, on the CPU), each
size in a process of its own; a size whose best two rounds differ by more than a tenth is measured again, at most as
often as --retries says. What counts is the least of the rounds' medians, and the least peak. Writes into FOLDER
growth.json, growth.md (the growth of each curve from one size to twice it, as a power of the size, and what is above
the arithmetic) and a picture NET_AXIS.svg for each net and axis. --from draws what was measured before. Needs torch.

What the arithmetic says: time grows as the floating-point operations that PyTorch counts, memory of a wider net as its
parameters, of an image's side as its square, else in proportion; at least in proportion all of them. More than 0.15
above that is super-linear. Memory is judged from 8 MB on, time where the best two rounds agree."""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

NETS = {
    "mlp": {"batch": 64, "width": 512, "depth": 2, "length": 0},
    "cnn": {"batch": 64, "width": 32, "depth": 1, "length": 28},
    "gpt": {"batch": 8, "width": 256, "depth": 4, "length": 128},
}
SIDES = {"tenon": "Tenon", "torch": "PyTorch"}
ABOVE = 0.15
SMALL = 8e6  # bytes: where a net takes less, pages and pools say more than the net

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build")
parser.add_argument("folder")
parser.add_argument("--net", choices=list(NETS))
parser.add_argument("--axis", choices=["batch", "width", "depth", "length"])
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seconds", type=float, default=3, help="of each side at each size in each round")
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--retries", type=int, default=2)
parser.add_argument("--from", dest="rows", help="a growth.json that was written before: measure nothing")


def nets(torch):
    """The nets as PyTorch has them: a function of batch, width, depth and length to (model, x, y, loss, optimizer)."""
    from torch import nn
    import torch.nn.functional as F

    class Block(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.h, self.ln1, self.ln2 = h, nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (z.view(b, t, self.h, d // self.h).transpose(1, 2) for z in self.qkv(self.ln1(x)).split(d, 2))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self, t, d, n):
            super().__init__()
            self.tok, self.pos = nn.Embedding(256, d), nn.Embedding(t, d)
            self.blocks = nn.ModuleList(Block(d, 4) for _ in range(n))
            self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, 256, bias=False)

        def forward(self, ids):
            x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.ln(x))

    def mlp(batch, width, depth, length):
        layers, wide = [], 784
        for _ in range(depth):
            layers += [nn.Linear(wide, width), nn.ReLU()]
            wide = width
        m = nn.Sequential(*layers, nn.Linear(width, 10))
        x, y = torch.randn(batch, 784), torch.randint(10, (batch,))
        return m, x, y, F.cross_entropy, torch.optim.Adam(m.parameters(), 1e-3)

    def cnn(batch, width, depth, length):
        layers, channels = [], 1
        for wide in (width, 2 * width):
            for _ in range(depth):
                layers += [nn.Conv2d(channels, wide, 3, padding=1), nn.ReLU()]
                channels = wide
            layers.append(nn.MaxPool2d(2))
        side = length // 2 // 2
        m = nn.Sequential(
            *layers, nn.Flatten(), nn.Linear(channels * side * side, 4 * width), nn.ReLU(), nn.Linear(4 * width, 10)
        )
        x, y = torch.randn(batch, 1, length, length), torch.randint(10, (batch,))
        return m, x, y, F.cross_entropy, torch.optim.Adam(m.parameters(), 1e-3)

    def gpt(batch, width, depth, length):
        def loss(o, y):
            return F.cross_entropy(o.view(-1, 256), y.view(-1))

        m = Gpt(length, width, depth)
        x, y = torch.randint(256, (batch, length)), torch.randint(256, (batch, length))
        return m, x, y, loss, torch.optim.AdamW(m.parameters(), 3e-4, weight_decay=0.1)

    return {"mlp": mlp, "cnn": cnn, "gpt": gpt}


def peak_memory():
    """Of this program alone: getrusage() would tell the peak of the one that started it."""
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024


def measured_by_peer(torch, net, size):
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)

    def trainer(size):
        model, x, y, loss, optimizer = nets(torch)[net](**size)

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss(model(x), y).backward()
            optimizer.step()

        return step, model, lambda: loss(model(x), y)

    # What a first step loads and keeps whatever the net's size is no growth.
    trainer({"batch": 1, "width": 4, "depth": 1, "length": 4})[0]()
    before = peak_memory()
    step, model, loss_of = trainer(size)

    def steps(least, most):
        times, start = [], time.perf_counter()
        while len(times) < most and (len(times) < least or time.perf_counter() - start < args.seconds):
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
        return times

    steps(1, 3)  # warms up
    row = {"step_ms": statistics.median(steps(3, 100_000)), "peak_rss": peak_memory(), "rss_before": before}
    row["parameters"] = sum(p.numel() for p in model.parameters())
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):  # whose products are counted
        loss_of().backward()
    row["flop"] = counter.get_total_flops()
    return row


def peer(torch, net, axis, at):
    """PyTorch was only imported so far, so that a fork is as good as a new process and takes no seconds."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(writes, json.dumps(measured_by_peer(torch, net, {**NETS[net], axis: at})).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writes)
    with os.fdopen(reads) as f:
        said = f.read()
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"PyTorch did not measure {net} with a {axis} of {at}")
    return json.loads(said)


def tenon(*words):
    command = [f"{args.build}/bin/tenon", "bench", "growth", "--json"]
    command += ["--threads", str(args.threads), "--seconds", str(args.seconds), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return [json.loads(line) for line in done.stdout.splitlines()]


def apart(rounds):
    """Whether the best two rounds differ by more than a tenth: other programs were in the way."""
    least = sorted(rounds)[:2]
    return least[-1] > 1.1 * least[0]


class Point:
    """One size of one net, and what each side measured there, round by round."""

    def __init__(self, row):
        self.net, self.axis, self.at, self.parameters = row["net"], row["axis"], row["at"], row["parameters"]
        self.tenon, self.torch = [row], []

    def measure(self, torch, ours=True):
        if ours:
            self.tenon += tenon("--net", self.net, "--axis", self.axis, "--at", str(self.at))
        self.torch.append(peer(torch, self.net, self.axis, self.at))
        if self.torch[-1]["parameters"] != self.parameters:
            sys.exit(f"{self.net} with a {self.axis} of {self.at} is not the same net in PyTorch")

    def scatters(self):
        return any(apart([r["step_ms"] for r in rows]) for rows in (self.tenon, self.torch))

    def row(self):
        def side(rows):
            return {
                "step_ms": min(r["step_ms"] for r in rows),
                "peak": min(r["peak_rss"] for r in rows),
                "net": max(min(r["peak_rss"] - r["rss_before"] for r in rows), 4096),
                "rounds_ms": [r["step_ms"] for r in rows],
            }

        return {
            "net": self.net,
            "axis": self.axis,
            "at": self.at,
            "parameters": self.parameters,
            "flop": self.torch[0]["flop"],
            "tenon": side(self.tenon),
            "torch": side(self.torch),
        }


def measured():
    import torch

    words = [w for o in ("net", "axis") if getattr(args, o) for w in ("--" + o, getattr(args, o))]
    points = [Point(row) for row in tenon(*words)]
    for p in points:
        p.measure(torch, ours=False)
    for _ in range(args.rounds - 1):
        for p in points:
            p.measure(torch)
    for _ in range(args.retries):
        for p in points:
            if p.scatters():
                p.measure(torch)
    return [p.row() for p in points]


def curves(rows):
    """Rows by (net, axis), in the order of the sizes."""
    found = {}
    for row in rows:
        found.setdefault((row["net"], row["axis"]), []).append(row)
    return found


def power(before, now):
    """How a figure grows from one size to twice it, as a power of the size."""
    return math.log2(now / before)


def memory_arithmetic(row):
    """What memory should be in proportion to: parameters where a net gets wider, else what is kept for backward."""
    if row["axis"] == "width":
        return row["parameters"]
    return row["at"] ** (2 if (row["net"], row["axis"]) == ("cnn", "length") else 1)


def growth_cells(before, now, value, arithmetic, scale):
    """Both sides' figures, their powers and the arithmetic's; and who is above it."""
    figures = [now[side][value] * scale for side in SIDES]
    cells = [f"{v:.0f}" if v >= 100 else f"{v:.3g}" for v in figures]
    if before is None:
        return cells + [""] * 3, []
    powers = [power(before[side][value], now[side][value]) for side in SIDES]
    due = max(1.0, power(arithmetic(before), arithmetic(now)))
    if value == "net":
        judged = [side for side in SIDES if before[side]["net"] >= SMALL]
    else:
        judged = [side for side in SIDES if not any(apart(row[side]["rounds_ms"]) for row in (before, now))]
    above = [SIDES[side] for side, p in zip(SIDES, powers) if side in judged and p > due + ABOVE]
    return cells + [f"{p:.2f}" for p in powers + [due]], above


def table(rows):
    head = ["net", "size", ""]
    for unit in ("ms", "MB"):
        head += [f"{unit}, Tenon", "PyTorch", "power, Tenon", "PyTorch", "arithmetic"]
    lines = [head + ["super-linear"], ["---", "---"] + ["--:"] * (len(head) - 2) + ["---"]]
    for (net, axis), line in curves(rows).items():
        for before, now in zip([None] + line, line):
            cells, above = [net, axis, str(now["at"])], []
            for what, value, arithmetic, scale in (
                ("time", "step_ms", lambda r: r["flop"], 1),
                ("memory", "net", memory_arithmetic, 1e-6),
            ):
                more, who = growth_cells(before, now, value, arithmetic, scale)
                cells += more
                above += [f"{what} of {w}" for w in who]
            scattered = [SIDES[side] for side in SIDES if apart(now[side]["rounds_ms"])]
            if scattered:
                above.append(f"({' and '.join(scattered)} scattered: time not judged)")
            lines.append(cells + [", ".join(above)])
    said = "Power: growth from one size to twice it, as a power of the size. MB: beyond those of the least net."
    return said + "\n\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


AXES = {
    ("mlp", "width"): "numbers of a hidden layer",
    ("mlp", "depth"): "hidden layers",
    ("cnn", "width"): "channels of the first convolution",
    ("cnn", "depth"): "convolutions at each resolution",
    ("cnn", "length"): "side of an image, pixels",
    ("gpt", "width"): "numbers of a token",
    ("gpt", "depth"): "blocks",
    ("gpt", "length"): "tokens of a sample",
}
# Of one lightness, so that they are read on white and on black alike.
INK, COLOURS = "#808080", {"tenon": "#2f81f7", "torch": "#d9730d"}
GRID = f'stroke="{INK}" stroke-opacity="0.3"'
DOTTED = f'fill="none" stroke="{INK}" stroke-dasharray="1 4" stroke-width="1.5"'


def ticks(least, most):
    """1, 2 and 5 times powers of ten that hold the values between them; powers of ten alone where those are many."""
    most = max(most, 1.01 * least)
    steps = (1, 2, 5) if most / least < 100 else (1,)
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    all_of = [s * 10.0**e for e in powers for s in steps]
    low = max(t for t in all_of if t <= least)
    high = min([t for t in all_of if t >= most] or [all_of[-1]])
    return [t for t in all_of if low <= t <= high]


def marker(side, x, y):
    """Round for Tenon and square for PyTorch, for those who do not see the colours."""
    radius = 4 if side == "tenon" else 0
    where = f'x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" rx="{radius}"'
    return f'<rect {where} fill="{COLOURS[side]}"/>'


def panel(line, left, title, value, due):
    """Both curves, and dotted what the arithmetic says, through Tenon's last point."""
    width, top, bottom = 258, 62, 262
    sizes = [r["at"] for r in line]
    values = {side: [value(r[side]) for r in line] for side in COLOURS}
    marks = ticks(min(map(min, values.values())), max(map(max, values.values())))

    def x(at):
        return left + width * (math.log2(at / sizes[0]) + 0.15) / (math.log2(sizes[-1] / sizes[0]) + 0.3)

    def y(v):
        return bottom - (bottom - top) * math.log(v / marks[0]) / math.log(marks[-1] / marks[0])

    def text(at, v, said, more=""):
        return f'<text x="{at:.1f}" y="{v:.1f}" fill="{INK}" {more}>{said}</text>'

    out = [text(left, top - 14, title)]
    for m in marks:
        out.append(f'<line x1="{left}" y1="{y(m):.1f}" x2="{left + width}" y2="{y(m):.1f}" {GRID}/>')
        out.append(text(left - 6, y(m) + 4, f"{m:g}" if m < 1e4 else f"{m:,.0f}", 'text-anchor="end"'))
    for at in sizes:
        out.append(f'<line x1="{x(at):.1f}" y1="{top}" x2="{x(at):.1f}" y2="{bottom}" {GRID}/>')
        out.append(text(x(at), bottom + 16, at, 'text-anchor="middle"'))
    guide = [(x(r["at"]), y(values["tenon"][-1] * due(r) / due(line[-1]))) for r in line]
    inside = [g for g in guide if g[1] <= bottom]
    dots = " ".join(f"{a:.1f},{b:.1f}" for a, b in inside)
    out.append(f'<polyline points="{dots}" {DOTTED}/>')
    for side, colour in COLOURS.items():
        places = [(x(at), y(v)) for at, v in zip(sizes, values[side])]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [marker(side, a, b) for a, b in places]
    return out


def picture(net, axis, line):
    others = ", ".join(f"{k} {v}" for k, v in NETS[net].items() if v and k != axis)
    unit = AXES.get((net, axis), "samples of a batch")
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="680" height="306" font-family="sans-serif" font-size="12">',
        f'<text x="62" y="22" font-size="14" fill="{INK}">{net} by {axis} ({others})</text>',
    ]
    place = 450
    for side, name in SIDES.items():
        out += [marker(side, place, 18), f'<text x="{place + 11}" y="22" fill="{INK}">{name}</text>']
        place += 66
    out.append(f'<line x1="{place}" y1="18" x2="{place + 22}" y2="18" {DOTTED}/>')
    out.append(f'<text x="{place + 27}" y="22" fill="{INK}">arithmetic</text>')
    out += panel(line, 62, "time of a step, ms", lambda r: r["step_ms"], lambda r: r["flop"])
    out += panel(line, 406, "memory beyond that of the least net, MB", lambda r: r["net"] / 1e6, memory_arithmetic)
    for left in (62, 406):
        out.append(f'<text x="{left + 129}" y="298" fill="{INK}" text-anchor="middle">{unit}</text>')
    return "\n".join(out + ["</svg>\n"])


def main():
    os.makedirs(args.folder, exist_ok=True)
    if args.rows:
        rows = json.load(open(args.rows))
    else:
        rows = measured()
        with open(f"{args.folder}/growth.json", "w") as f:
            json.dump(rows, f, indent=1)
    said = table(rows)
    with open(f"{args.folder}/growth.md", "w") as f:
        f.write(said)
    for (net, axis), line in curves(rows).items():
        if len(line) > 1:
            with open(f"{args.folder}/{net}_{axis}.svg", "w") as f:
                f.write(picture(net, axis, line))
    print(said)


args = parser.parse_args()
main()
