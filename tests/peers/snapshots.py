"""Memory snapshots of the real CUDA caching allocator, recorded without a device.

    python snapshots.py fixtures FOLDER [NAME...]  the recordings that tests/tracing/data/snapshots keeps, or some of them
    python snapshots.py random FOLDER FIRST N      N seeded ones with settings drawn at random

Needs a PyTorch built for CUDA and a C compiler; pretend_cuda.c stands in for the runtime and the driver. Every recording is a program of
allocations and frees that is drawn from its seed and run by a process of its own. Beside NAME.pickle.gz there is what PyTorch itself says at the
end (and, where the program dumped on its way, NAME.at.pickle.gz): all in one figures.json.
"""
import ctypes, gzip, inspect, json, os, pickle, random, re, subprocess, sys, sysconfig

HERE = os.path.dirname(os.path.abspath(__file__))
MB = 1 << 20


def start_again_with_pretended_device():
    """Builds the library and replaces this process by one that has loaded it."""
    import glob, tempfile
    site = sysconfig.get_paths()["purelib"]
    headers = [h for h in glob.glob(site + "/nvidia/**/include/driver_types.h", recursive=True)]
    if not headers:
        sys.exit("this PyTorch was not built for CUDA: no driver_types.h beside it")
    version = "13000" if "cu13" in headers[0] else "12010"
    folder = tempfile.mkdtemp()
    library = folder + "/libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-I", os.path.dirname(headers[0]), HERE + "/pretend_cuda.c", "-o", library, "-Wl,-soname,libcuda.so.1"], check=True)
    os.symlink("libcuda.so.1", folder + "/libnvidia-ml.so.1")
    environment = dict(os.environ, LD_PRELOAD=library, LD_LIBRARY_PATH=folder, PRETEND_CUDA_VERSION=version, PRETENDED="1")
    os.execve(sys.executable, [sys.executable] + sys.argv, environment)


class Program:
    """Allocations, frees and what else asks something of the allocator, drawn from a seed."""

    def __init__(self, torch, seed, case):
        self.torch, self.random, self.case = torch, random.Random(seed), case
        self.live = []
        self.streams = [torch.cuda.current_stream()] + [torch.cuda.Stream() for _ in range(case.get("streams", 1) - 1)]
        self.pools = []
        self.cuda = ctypes.CDLL(None)
        self.failed = lambda: None

    def size(self):
        r, kind = self.random, self.random.random()
        if self.case.get("repeat") and kind < 0.5:  # a model's tensors come again and again
            return r.choice(self.sizes)
        if kind < 0.45:
            return int(2 ** r.uniform(0, 20))
        if kind < 0.8:
            return int(2 ** r.uniform(20, 23.5))
        if kind < 0.97 or "huge" not in self.case:
            return int(2 ** r.uniform(23, self.case.get("top", 26)))
        return self.case["huge"]

    # Places that allocate, so that stacks differ.
    def weights(self, n):
        return self.torch.empty(n, dtype=self.torch.uint8, device="cuda")

    def forward(self, n):
        return self.torch.empty(n, dtype=self.torch.uint8, device="cuda")

    def backward(self, n):
        return self.torch.empty((n + 3) // 4, device="cuda")

    def allocate(self):
        place = self.random.choice([self.weights, self.forward, self.forward, self.backward])
        stream = self.random.choice(self.streams)
        try:
            with self.torch.cuda.stream(stream):
                self.live.append([place(self.size()), stream])
        except RuntimeError as e:
            if "out of memory" not in str(e):
                raise
            self.failed()
            for _ in range(min(len(self.live), self.random.randrange(1, 12))):
                self.free()

    def free(self):
        if self.live:
            self.live.pop(self.random.randrange(len(self.live)))

    def step(self):
        r, case, torch = self.random, self.case, self.torch
        what = r.random()
        if what < 0.02 and case.get("empty_cache"):
            torch.cuda.empty_cache()
        elif what < 0.08 and len(self.streams) > 1 and self.live:
            tensor, _ = r.choice(self.live)
            tensor.record_stream(r.choice(self.streams))
        elif what < 0.10 and case.get("hold"):
            self.cuda.pretend_cuda_hold(r.randrange(2))
        elif what < 0.115 and case.get("pools"):
            self.use_pool()
        elif what < 0.12 and case.get("resize") and self.live:
            tensor, stream = r.choice(self.live)
            with torch.cuda.stream(stream):
                try:
                    tensor.untyped_storage().resize_(r.randrange(1, 4 * MB))
                except RuntimeError:
                    pass
        elif what < 0.12 + 0.88 * self.share():
            self.allocate()
        else:
            self.free()

    def share(self):
        """Allocations among what happens: the number that is alive swings, so that segments fill and empty."""
        full = len(self.live) / self.case.get("alive", 40)
        return 0.75 if full < self.target else 0.25

    def use_pool(self):
        torch, r = self.torch, self.random
        if self.pools and r.random() < 0.3:
            self.pools.pop(r.randrange(len(self.pools)))  # what was allocated in it lives on
            return
        if r.random() < 0.4 or not hasattr(torch.cuda, "MemPool"):
            graph = torch.cuda.CUDAGraph()
            kept = []
            with torch.cuda.graph(graph):
                for _ in range(r.randrange(1, 6)):
                    try:
                        kept.append(torch.empty(self.size(), dtype=torch.uint8, device="cuda"))
                    except RuntimeError as e:
                        if "out of memory" not in str(e):
                            raise
                    if kept and r.random() < 0.4:
                        kept.pop(0)
            self.pools.append((graph, kept))
            return
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            for _ in range(r.randrange(1, 6)):
                self.allocate()
        self.pools.append((pool, None))

    def run(self, steps):
        self.sizes = [int(2 ** self.random.uniform(8, 25)) for _ in range(12)]
        for i in range(steps):
            if i % 50 == 0:
                self.target = self.random.choice([0.2, 0.6, 1.0, 1.4])
            self.step()


class Training:
    """Some steps of a small network, as people record them: C++ and Python stacks, names for parts of the work, pinned memory."""

    def __init__(self, torch, seed, case):
        self.torch = torch
        self.failed = lambda: None
        self.losses = []

    def build(self):
        nn = self.torch.nn
        self.model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 10)).cuda()
        self.optimizer = self.torch.optim.Adam(self.model.parameters())

    def batch(self):
        try:
            return self.torch.zeros(1600, 256, pin_memory=True).cuda(non_blocking=True)
        except RuntimeError:
            return self.torch.zeros(1600, 256, device="cuda")

    def one_step(self):
        loss = self.model(self.batch()).sum()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(loss)  # with its graph: a leak

    def run(self, steps):
        if steps and not hasattr(self, "model"):
            self.build()
        for i in range(steps):
            if hasattr(self.torch.cuda.memory, "_set_memory_metadata"):
                self.torch.cuda.memory._set_memory_metadata(f"step {i}")
            with self.torch.autograd.set_detect_anomaly(i % 2 == 1):
                self.one_step()


def figures(torch):
    stats = torch.cuda.memory_stats()
    keys = ["requested_bytes.all.peak", "requested_bytes.all.current", "reserved_bytes.all.peak", "allocated_bytes.all.peak", "active_bytes.all.current", "num_alloc_retries", "num_ooms"]
    return dict({k: stats.get(k, -1) for k in keys}, allocated=torch.cuda.memory_allocated(), reserved=torch.cuda.memory_reserved())


def record(folder, name, seed, case):
    """In a child process, since an allocator's settings and state stay."""
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{name}: the recording failed")
        return
    import torch
    os.environ["PRETEND_CUDA_TOTAL"] = str(case.get("total", 8 << 30))
    if case.get("conf"):
        torch.cuda.memory._set_allocator_settings(case["conf"])
    torch.cuda.init()
    if "fraction" in case:
        torch.cuda.set_per_process_memory_fraction(case["fraction"])
    entries = case.get("entries", sys.maxsize)
    program = (Training if case.get("training") else Program)(torch, seed, case)
    steps = case.get("steps", 600)
    program.run(case.get("before", 0))
    more = {"record_pinned_host_memory": True} if case.get("training") and "record_pinned_host_memory" in inspect.signature(torch.cuda.memory._record_memory_history).parameters else {}
    torch.cuda.memory._record_memory_history(stacks="all" if case.get("training") else "python", max_entries=entries, **more)
    said = {"seed": seed, "torch": torch.__version__, "case": {k: v for k, v in case.items() if k != "entries"}}

    def dump(path):
        with gzip.GzipFile(path, "wb", mtime=0) as f:
            pickle.dump(slim(torch.cuda.memory._snapshot()), f, protocol=4)

    def dump_on_the_way():
        said["middle"] = figures(torch)
        dump(f"{folder}/{name}.at.pickle.gz")

    if case.get("at_failure"):  # the last one stays
        program.failed = dump_on_the_way
    program.run(steps // 2)
    if case.get("middle"):
        dump_on_the_way()
    program.run(steps - steps // 2)
    said.update(figures(torch))
    said["dropped"] = entries != sys.maxsize
    dump(f"{folder}/{name}.pickle.gz")
    with open(f"{folder}/{name}.json", "w") as f:
        json.dump(said, f)
    os._exit(0)


def slim(snapshot):
    """Without where this file lies, and with equal frames shared, as _dump_snapshot has them."""
    kept = {}

    def short(path):
        return "torch" + path.split("/torch", 1)[1] if "/torch/" in path else os.path.basename(path)

    def share(frames):
        def one(f):
            key = (f["filename"], f["line"], f["name"])
            if key not in kept:
                kept[key] = dict(f, filename=short(f["filename"]))
            return kept[key]
        key = tuple((f["filename"], f["line"], f["name"]) for f in frames)
        if key not in kept:
            kept[key] = [one(f) for f in frames]
        return kept[key]

    for events in snapshot["device_traces"] + [snapshot.get("host_traces", [])]:
        for e in events:
            if "frames" in e:
                e["frames"] = share(e["frames"])
            if "forward_frames" in e:
                e["forward_frames"] = [re.sub(r'File "([^"]*)"', lambda m: f'File "{short(m[1])}"', f) for f in e["forward_frames"]]
    for segment in snapshot["segments"] + snapshot.get("host_segments", []):
        segment["frames"] = share(segment.get("frames", []))
        for b in segment["blocks"]:
            b["frames"] = share(b.get("frames", []))
    return snapshot


FIXTURES = {
    "default": dict(repeat=True, middle=True, empty_cache=True),
    "expandable": dict(conf="expandable_segments:True", repeat=True, middle=True, empty_cache=True),
    "expandable_streams": dict(conf="expandable_segments:True", streams=3, hold=True, empty_cache=True, total=600 * MB, alive=50),
    "split": dict(conf="max_split_size_mb:32", top=27, total=900 * MB, alive=30, middle=True),
    "roundup": dict(conf="roundup_power2_divisions:8", resize=True),
    "roundup_list": dict(conf="roundup_power2_divisions:[1:4,4:2,16:8,>:1]", top=27),
    "garbage": dict(conf="garbage_collection_threshold:0.5", total=2 << 30, fraction=0.5, alive=40),
    "streams": dict(streams=3, hold=True, empty_cache=True, middle=True),
    "pools": dict(pools=True, empty_cache=True, steps=500, middle=True),
    "out_of_memory": dict(total=300 * MB, alive=60, huge=120 * MB, middle=True),
    "out_of_memory_expandable": dict(conf="expandable_segments:True", total=300 * MB, alive=60, huge=120 * MB, streams=2, hold=True),
    "failure": dict(total=400 * MB, alive=45, top=25, huge=90 * MB, steps=500, at_failure=True, streams=2),
    "failure_expandable": dict(conf="expandable_segments:True", total=400 * MB, alive=45, top=25, huge=90 * MB, steps=500, at_failure=True),
    "fraction": dict(total=2 << 30, fraction=0.125, alive=50, huge=100 * MB),
    "late": dict(before=400, repeat=True, empty_cache=True, streams=2),
    "late_expandable": dict(conf="expandable_segments:True", before=400, repeat=True, empty_cache=True),
    "training": dict(training=True, steps=4),
    "ring": dict(entries=500, repeat=True, empty_cache=True),
}


def random_case(seed):
    r = random.Random(seed * 7919 + 1)
    conf = []
    case = {"alive": r.choice([10, 30, 60]), "top": r.choice([24, 26, 27]), "steps": r.choice([300, 800]), "middle": True}
    if r.random() < 0.4:
        conf.append("expandable_segments:True")
    if r.random() < 0.3:
        conf.append(f"max_split_size_mb:{r.choice([20, 21, 32, 64, 200])}")
    if r.random() < 0.3:
        conf.append("roundup_power2_divisions:" + r.choice(["2", "4", "16", "[1:2,8:4]", "[4:8,>:2]", "[16:1,32:16,>:4]", "[2:4,8:0,>:8]"]))
    if r.random() < 0.25:
        conf.append(f"garbage_collection_threshold:{r.choice([0.3, 0.6, 0.9])}")
        case["fraction"] = r.choice([0.2, 0.5, 0.9])
        case["total"] = r.choice([600 * MB, 2 << 30])
    if r.random() < 0.4:
        case["total"] = r.choice([150 * MB, 400 * MB, 1 << 30])
        case["huge"] = r.choice([60 * MB, 130 * MB])
        if r.random() < 0.3:
            case["fraction"] = r.choice([0.4, 0.75])
    for flag, share in [("repeat", 0.5), ("empty_cache", 0.5), ("hold", 0.4), ("pools", 0.25), ("resize", 0.3)]:
        if r.random() < share:
            case[flag] = True
    case["streams"] = r.choice([1, 1, 2, 4])
    if r.random() < 0.3:
        case["before"] = r.choice([100, 500])
    if r.random() < 0.15:
        case["entries"] = r.choice([100, 400])
    if conf:
        case["conf"] = ",".join(conf)
    return case


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if "PRETENDED" not in os.environ:
        start_again_with_pretended_device()
    what, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    import torch
    if what == "fixtures":
        wanted = sys.argv[3:] or FIXTURES
        version = ".".join(torch.__version__.split(".")[:2])
        todo = [(f"{name}-{version}", 1 + i, FIXTURES[name]) for i, name in enumerate(FIXTURES) if name in wanted]
    else:
        first, n = int(sys.argv[3]), int(sys.argv[4])
        todo = [(f"r{seed}", seed, random_case(seed)) for seed in range(first, first + n)]
    for name, seed, case in todo:
        record(folder, name, seed, case)
    figures_path = f"{folder}/figures.json"
    said = json.load(open(figures_path)) if os.path.exists(figures_path) else {}
    said.update({name: json.load(open(f"{folder}/{name}.json")) for name, _, _ in todo})
    for name, _, _ in todo:
        os.remove(f"{folder}/{name}.json")
    with open(figures_path, "w") as f:
        json.dump(said, f, indent=1, sort_keys=True)
    print(len(todo), "recordings by PyTorch", torch.__version__)


if __name__ == "__main__":
    main()
