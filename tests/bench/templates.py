"""Trains templates of Tenon and their twins in PyTorch, in turns: templates.py BUILD_DIR FOLDER [NAME...]

A twin is the source that `tenon export --format python` writes, with the weights, batch size, loss and optimizer of the
template. Prints of each how many samples a second both train with, and how many times as fast Tenon is. With --compile
Tenon trains from a plan and the twin under torch.compile. Both sides run one after the other in processes of their own,
--rounds times; a ratio is the median over the rounds. Needs torch. Projects stay in FOLDER for the next time."""

import argparse
import importlib.util
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("folder")
parser.add_argument("names", nargs="*", help="templates; none: byte-gpt resnet18 byte-lstm u-net")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seconds", type=float, default=2, help="of each side in each round")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--twin", action="store_true", help=argparse.SUPPRESS)  # PyTorch's side, in a process of its own
args = parser.parse_args()


def ran(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed")
    return done.stdout


def project_of(name):
    """A project of the template with a run of one step, and its source."""
    project, source = f"{args.folder}/{name}.tenon", f"{args.folder}/{name.replace('-', '_')}.py"
    tenon = f"{args.build}/bin/tenon"
    if not os.path.exists(source):
        if not os.path.exists(project):
            ran([tenon, "new", project, "--template", name])
        ran([tenon, "train", project, "--max-steps", "1"])
        ran([tenon, "export", project, "--format", "python", "-o", source])
    return project, source


def recipe_of(project):
    [(recipe,)] = sqlite3.connect(project).execute("SELECT recipe FROM recipes ORDER BY id LIMIT 1").fetchall()
    return json.loads(recipe)


def ours(project):
    words = [f"{args.build}/bin/tenon", "bench", "loader", project, "--json"]
    words += ["--threads", str(args.threads), "--seconds", str(args.seconds)] + ["--compile"] * args.compile
    figures = {f["metric"]: f["value"] for f in map(json.loads, ran(words).splitlines())}
    return figures["trained_samples"]


def twin_model(source):
    import torch
    from torch import nn

    spec = importlib.util.spec_from_file_location("twin", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # The model is the last module of the file.
    model = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, nn.Module)][-1]()
    model.load_state_dict(torch.load(source.replace(".py", ".pt")))
    [said] = [line for line in open(source) if "# input: " in line][-1:]
    kind, size = said.split("# input: ")[1].strip().rstrip("]").split(" [")
    return model, kind, [int(n) for n in size.split(",")]


def twin_optimizer(settings, parameters):
    import torch

    kind, rate, decay = settings["type"], settings["lr"], settings["weight_decay"]
    if kind == "sgd":
        momentum, nesterov = settings["momentum"], settings["nesterov"]
        return torch.optim.SGD(parameters, rate, momentum, weight_decay=decay, nesterov=nesterov)
    if kind in ("adam", "adamw"):
        kind = torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
        return kind(parameters, rate, (settings["beta1"], settings["beta2"]), settings["eps"], decay)
    sys.exit(f"no twin of the optimizer {kind}")


def twin(project, source):
    """Samples a second, on random samples of the template's form."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    recipe = recipe_of(project)
    model, kind, size = twin_model(source)
    batch = recipe["data"]["batch_size"]
    x = torch.randint(256, [batch, *size]) if kind == "i64" else torch.randn(batch, *size)
    y = model(x)
    if recipe["loss"]["type"] != "cross_entropy":
        sys.exit(f"no twin of the loss {recipe['loss']['type']}")
    axis = -1 if kind == "i64" else 1
    target = torch.randint(y.shape[axis], y.movedim(axis, -1).shape[:-1])
    step_of, optimizer = model, twin_optimizer(recipe["optimizer"], model.parameters())
    if args.compile:
        step_of = torch.compile(model)
    clip = recipe["optimizer"]["clip_norm"]

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(step_of(x).movedim(axis, 1), target).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

    for _ in range(3):
        step()
    times, stop = [], time.perf_counter() + args.seconds
    while not times or time.perf_counter() < stop:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    print(batch / statistics.median(times))


def main():
    os.makedirs(args.folder, exist_ok=True)
    if args.twin:
        return twin(*args.names)
    flags = ["--threads", str(args.threads), "--seconds", str(args.seconds)] + ["--compile"] * args.compile
    print(f"{'':12}{'samples/s':>12}{'PyTorch':>12}{'times':>8}")
    ratios = []
    for name in args.names or ("byte-gpt", "resnet18", "byte-lstm", "u-net"):
        project, source = project_of(name)
        rounds = []
        for _ in range(args.rounds):
            peer = [sys.executable, __file__, args.build, args.folder, project, source, "--twin", *flags]
            rounds.append((ours(project), float(ran(peer))))
        ratios.append(statistics.median(a / b for a, b in rounds))
        a, b = (statistics.median(r[side] for r in rounds) for side in (0, 1))
        print(f"{name:12}{a:12.2f}{b:12.2f}{ratios[-1]:8.2f}", flush=True)
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, behind on {sum(r < 1 for r in ratios)}")


main()
