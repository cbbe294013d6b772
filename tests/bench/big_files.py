"""How long large traces and snapshots take to open, and how much memory: big_files.py BUILD_DIR [--largest BYTES] [--folder DIR] [--plot F.svg]

Makes traces from 10 MB up and a snapshot of 1 GB (make_trace, make_snapshot), and prints for each the best of three openings with the file in
the disk cache, the second opening, the peak of memory, and beside them what reading the bytes takes and one plain pass of simdjson (where
BUILD_DIR has it: ninja simdjson_pass). --peers adds Python's json and pickle, --hta PYTHON HolisticTraceAnalysis in that interpreter. The plot has
both axes in powers of ten: cost in proportion to the file is a straight line of slope one, as the dotted one; --from draws what was printed before."""
import argparse
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--largest", type=int, default=1_000_000_000)
parser.add_argument("--folder", default=tempfile.gettempdir())
parser.add_argument("--plot")
parser.add_argument("--from", dest="rows", help="lines printed before: measure nothing")
parser.add_argument("--peers", action="store_true", help="also Python's json and pickle, which take minutes and gigabytes")
parser.add_argument("--hta", metavar="PYTHON", help="also HolisticTraceAnalysis, installed for this interpreter, on traces up to 1 GB")
args = parser.parse_args()
tenon = f"{args.build}/bin/tenon"
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(dir=args.folder)  # what is kept of the files goes with each


def timed(words):
    begin = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(words)} failed")
    return time.monotonic() - begin, usage.ru_maxrss * 1024


def read_bytes(path):
    begin = time.monotonic()
    with open(path, "rb", buffering=0) as f:
        while f.read(1 << 22):
            pass
    return time.monotonic() - begin


def child(f, *words):
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        f(*words)
        os._exit(0)
    _, status, usage = os.wait4(pid, 0)
    return time.monotonic() - begin, usage.ru_maxrss * 1024


def with_hta(path):
    """Its breakdown of kernels: what `trace kernels` answers. It wants a folder of the ranks' traces."""
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        os.link(path, f"{folder}/rank0.json")
        program = ("import sys; from hta.trace_analysis import TraceAnalysis\n"
                   "TraceAnalysis(trace_files={0: sys.argv[1]}).get_gpu_kernel_breakdown(visualize=False)")
        return timed([args.hta, "-c", program, f"{folder}/rank0.json"])


def measure(kind, path, words):
    size = os.path.getsize(path)
    raw = min(read_bytes(path) for _ in range(2))
    runs = [timed([tenon, *words, path, "--no-cache"]) for _ in range(3)]
    row = {"kind": kind, "bytes": size, "seconds": min(r[0] for r in runs), "memory": max(r[1] for r in runs), "read_seconds": raw}
    timed([tenon, *words, path])
    row["second_seconds"] = min(timed([tenon, *words, path])[0] for _ in range(3))
    shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)
    if kind == "trace" and size < 4_000_000_000 and os.path.exists(f"{args.build}/bin/simdjson_pass"):
        row["simdjson_seconds"], row["simdjson_memory"] = min(timed([f"{args.build}/bin/simdjson_pass", path]) for _ in range(2))
    if kind == "trace" and args.hta and size <= 1_100_000_000:
        row["hta_seconds"], row["hta_memory"] = with_hta(path)
    if args.peers and size <= 1_100_000_000:
        peer = (lambda: json.load(open(path))) if kind == "trace" else (lambda: pickle.load(open(path, "rb")))
        row["python_seconds"], row["python_memory"] = child(peer)
    print(json.dumps(row), flush=True)
    return row


rows = [json.loads(line) for line in open(args.rows)] if args.rows else []
size = 10_000_000
sizes = []
while size < args.largest:
    sizes.append(size)
    size *= 10
sizes.append(args.largest)
if args.rows:
    sizes = []
for size in sizes:
    path = f"{args.folder}/bench-{size}.json"
    subprocess.run([f"{args.build}/bin/make_trace", str(size), path], check=True)
    rows.append(measure("trace", path, ["trace", "kernels"]))
    os.remove(path)
for size in [s for s in sizes if s <= 1_000_000_000]:
    path = f"{args.folder}/bench-{size}.pickle"
    subprocess.run([f"{args.build}/bin/make_snapshot", str(size), path], check=True)
    rows.append(measure("snapshot", path, ["memory", "peak"]))
    os.remove(path)

if args.plot:
    import math

    def x(b): return 60 + 90 * (math.log10(b) - 7)
    def y(s): return 300 - 60 * (math.log10(max(s, 0.01)) + 2)
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="420" height="340" font-family="sans-serif" font-size="11">',
             '<rect width="420" height="340" fill="white"/>']
    for power in range(7, 11):
        lines.append(f'<line x1="{x(10**power)}" y1="20" x2="{x(10**power)}" y2="300" stroke="#ddd"/><text x="{x(10**power)}" y="315" text-anchor="middle">{["10 MB", "100 MB", "1 GB", "10 GB"][power - 7]}</text>')
    for power in range(-2, 3):
        lines.append(f'<line x1="60" y1="{y(10**power)}" x2="350" y2="{y(10**power)}" stroke="#ddd"/><text x="52" y="{y(10**power) + 4}" text-anchor="end">{10**power:g} s</text>')
    lines.append(f'<line x1="{x(1e7)}" y1="{y(0.02)}" x2="{x(1e10)}" y2="{y(20)}" stroke="#888" stroke-dasharray="2 4"/>')
    for kind, colour in (("trace", "#1668c7"), ("snapshot", "#c2571a")):
        mine = [r for r in rows if r["kind"] == kind]
        points = " ".join(f'{x(r["bytes"]):.1f},{y(r["seconds"]):.1f}' for r in mine)
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for r in mine:
            lines.append(f'<circle cx="{x(r["bytes"]):.1f}" cy="{y(r["seconds"]):.1f}" r="3" fill="{colour}"/>')
        last = mine[-1]
        lines.append(f'<text x="{x(last["bytes"]) - 6:.1f}" y="{y(last["seconds"]) - 8:.1f}" text-anchor="end" fill="{colour}">{kind}, {last["seconds"]:.1f} s</text>')
    lines.append('<text x="205" y="334" text-anchor="middle">size of the file; time to the first answer</text></svg>')
    open(args.plot, "w").write("\n".join(lines))
