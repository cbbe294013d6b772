"""Records what torch.profiler makes of small programs, and what torch itself says of them: record_traces.py FOLDER [PROGRAM...]

Needs a torch that has Kineto; nothing else. For each program FOLDER/VERSION-PROGRAM.json.gz is the trace as export_chrome_trace() wrote it, and
FOLDER/VERSION-PROGRAM.figures.json what the same profile says in memory (key_averages(), the lengths of the steps), and what a plain reading of
the file gives: slices of each category, modules by the parents that Python's functions name, memory. The program "distributed" leaves a trace
for each of its two ranks. Files in tests/tracing/torch are of this script; tests/tracing/torch_traces_test.cpp holds the reader to them.
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def version():
    return torch.__version__.split("+")[0]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Doubled(torch.autograd.Function):
    """Ops that lie in an op with Python between."""

    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


def model(blocks=2):
    return nn.Sequential(*[Block(16) for _ in range(blocks)], nn.Linear(16, 4))


def train(net, optimizer, x, y):
    with record_function("forward and loss"):
        loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def steps():
    """A training loop as the manual writes it: schedule(), a DataLoader, shapes, memory."""
    torch.manual_seed(1)
    net = model(1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    data = torch.utils.data.TensorDataset(torch.randn(40, 16), torch.randint(0, 4, (40,)))
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=1), record_shapes=True, profile_memory=True) as p:
        for x, y in torch.utils.data.DataLoader(data, batch_size=8):
            train(net, optimizer, x, y)
            p.step()
    return p


def stacks():
    """Python's functions and modules, which with_stack records."""
    torch.manual_seed(2)
    net = model(1)
    x = torch.randn(4, 16)
    net(x)
    more = {}
    try:
        more["experimental_config"] = torch._C._profiler._ExperimentalConfig(verbose=True)
    except (AttributeError, TypeError):  # torch 1.12 and before
        pass
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, with_modules=True, **more) as p:
        with record_function("two passes"):
            net(x)
            Doubled.apply(net(x)).sum().backward()
    return p


def threads():
    """Ops of three threads at once, and of the backward passes that they start."""
    torch.manual_seed(3)
    nets = [model(1) for _ in range(2)]
    x = torch.randn(8, 16)
    [n(x).sum().backward() for n in nets]

    def work(n):
        for i in range(2):
            with record_function(f"pass {i}"):
                n(x).sum().backward()

    more = {}
    try:
        more["experimental_config"] = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    except (AttributeError, TypeError):
        pass
    with profile(activities=[ProfilerActivity.CPU], **more) as p:
        all = [threading.Thread(target=work, args=(n,)) for n in nets]
        [t.start() for t in all]
        work(nets[0])
        [t.join() for t in all]
    return p


@torch.jit.script
def scripted_branch(x: torch.Tensor, times: int):
    futures = [torch.jit.fork(torch.mm, x, x) for _ in range(2)]
    for _ in range(times):
        x = torch.tanh(x) + 1
    for f in futures:
        x = x + torch.jit.wait(f)
    return x


def script():
    """TorchScript: modules in the ops' arguments, forks on threads of their own."""
    torch.manual_seed(4)
    net = torch.jit.script(model(2).eval())
    x, s = torch.randn(4, 16), torch.randn(16, 16)
    for _ in range(3):
        net(x), scripted_branch(s, 2)
    with profile(activities=[ProfilerActivity.CPU], with_modules=True, record_shapes=True) as p:
        for _ in range(2):
            net(x), scripted_branch(s, 2)
    return p


def compiled():
    """torch.compile: regions of inductor, generated kernels."""
    torch.manual_seed(5)
    net = torch.compile(model(1))
    x = torch.randn(4, 16)
    for _ in range(3):
        net(x).sum().backward()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as p:
        for _ in range(2):
            net(x).sum().backward()
    return p


def rank(number, port, folder):
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=number, world_size=2)
    torch.manual_seed(number)
    net = nn.parallel.DistributedDataParallel(model(1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=2, repeat=1), record_shapes=True) as p:
        for _ in range(3):
            train(net, optimizer, x, y)
            dist.all_reduce(torch.ones(1000))
            p.step()
    write(p, folder, f"distributed-rank{number}")
    dist.barrier()
    dist.destroy_process_group()


PROGRAMS = {f.__name__: f for f in (steps, stacks, threads, script, compiled)}


def modules(events):
    """Modules by the path of modules around them, as the ids of Python's functions tell it."""
    functions = {e["args"]["Python id"]: e for e in events if e.get("cat") == "python_function"}

    def around(e):
        return functions.get(e["args"].get("Python parent id"))

    def outer(e):
        e = around(e)
        while e is not None and not e["name"].startswith("nn.Module: "):
            e = around(e)
        return e

    def path(e):
        o = outer(e)
        return (path(o) + "/" if o else "") + e["name"][len("nn.Module: "):]

    def ns(e):
        return round(e["dur"] * 1000)

    found = {}
    for e in functions.values():
        if not e["name"].startswith("nn.Module: "):
            continue
        m = found.setdefault(path(e), {"calls": 0, "total_ns": 0, "self_ns": 0})
        m["calls"] += 1
        m["total_ns"] += ns(e)
        m["self_ns"] += ns(e)
        if outer(e) is not None:
            found.setdefault(path(outer(e)), {"calls": 0, "total_ns": 0, "self_ns": 0})["self_ns"] -= ns(e)
    return found


def categories(slices):
    found = {}
    for e in slices:
        found.setdefault(e["cat"], []).append(round(e["dur"] * 1000))
    return found


def figures(p, text):
    """What the profile says of itself, microseconds as torch gives them, and what the file says when it is read plainly."""
    # Some versions write names that were overwritten meanwhile: bytes that are no UTF-8, control characters.
    events = json.loads(text.decode(errors="replace"), strict=False)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    memory = [e["args"] for e in events if e["name"] == "[memory]"]
    averages = p.key_averages()
    return {
        "torch": torch.__version__,
        "whole_microseconds": all(float(e["dur"]).is_integer() for e in slices),
        "ops": sorted([a.key, a.count, a.self_cpu_time_total, a.cpu_time_total] for a in averages),
        "ends_elsewhere": sorted({e.name for e in p.events() if e.is_async}),
        "python_is_nested": any(getattr(e, "is_python_function", False) for e in p.events()),
        "steps": sorted(round(e.time_range.elapsed_us() * 1000) for e in p.events() if e.name.startswith("ProfilerStep")),
        "categories": sorted([c, len(lengths), sum(lengths)] for c, lengths in categories(slices).items()),
        "modules": modules(slices),
        "memory": {"events": len(memory), "bytes": sum(m["Bytes"] for m in memory), "taken": sum(max(0, m["Bytes"]) for m in memory),
                   "peak": max((m["Total Allocated"] for m in memory), default=0), "bytes_of_torch": sum(a.self_cpu_memory_usage for a in averages)},
        "forward_backward": sum(e["ph"] == "s" and e.get("cat") == "fwdbwd" for e in events),
    }


def write(p, folder, name):
    path = f"{folder}/{version()}-{name}"
    with tempfile.TemporaryDirectory() as temporary:
        p.export_chrome_trace(f"{temporary}/t.json")
        text = open(f"{temporary}/t.json", "rb").read()
    # No time and no name inside the gzip: the same text makes the same bytes.
    with open(path + ".json.gz", "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as z:
        z.write(text)
    with open(path + ".figures.json", "w") as f:
        f.write("{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in figures(p, text).items()) + "}\n")
    print(path, len(text), os.path.getsize(path + ".json.gz"))


def main():
    folder, wanted = sys.argv[1], sys.argv[2:]
    if wanted and wanted[0].startswith("rank"):
        return rank(int(wanted[0][4:]), int(wanted[1]), folder)
    for name in wanted or [*PROGRAMS, "distributed"]:
        if name == "distributed":
            port = str(29500 + os.getpid() % 1000)
            ranks = [subprocess.Popen([sys.executable, __file__, folder, f"rank{r}", port]) for r in range(2)]
            assert [r.wait() for r in ranks] == [0, 0]
        elif len(wanted) == 1:
            write(PROGRAMS[name](), folder, name)
        else:  # each in a process of its own: what one leaves behind is not in the next one's trace
            subprocess.run([sys.executable, __file__, folder, name], check=False)


main()
