"""How long each analysis of a trace takes once it is open, and how much memory: analyses.py BUILD_DIR [--bytes N] [--ops N] [--folder DIR]

Makes a trace of many short steps with stacks (make_trace), opens it once so that its store is kept, and runs every
analysis that `tenon trace` has on it; those that compare get a second copy. Prints one JSON object a line: analysis,
seconds, bytes of memory at the peak."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--bytes", type=int, default=1_000_000_000)
parser.add_argument("--ops", type=int, default=2, help="ops in each of a step's 24 blocks")
parser.add_argument("--folder", default=tempfile.gettempdir())
args = parser.parse_args()
tenon = f"{args.build}/bin/tenon"
caches = tempfile.TemporaryDirectory(dir=args.folder)  # what is kept goes with the measurement
os.environ["XDG_CACHE_HOME"] = caches.name


def measured(words):
    begin = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(words)} failed")
    return time.monotonic() - begin, usage.ru_maxrss * 1024


with tempfile.TemporaryDirectory(dir=args.folder) as folder:
    one, two = f"{folder}/a.json", f"{folder}/b.json"
    subprocess.run([f"{args.build}/bin/make_trace", str(args.bytes), one, "--ops", str(args.ops), "--stacks"], check=True)
    os.link(one, two)
    for path in (one, two):
        seconds, memory = measured([tenon, "trace", "info", path])
    print(json.dumps({"analysis": "(first opening)", "seconds": round(seconds, 2), "memory": memory}), flush=True)
    for name in ("info", "ops", "kernels", "modules", "steps", "idle", "overlap", "critical-path", "launch", "memory", "why", "diff", "ranks"):
        seconds, memory = measured([tenon, "trace", name, one] + ([two] if name in ("diff", "ranks") else []))
        print(json.dumps({"analysis": name, "seconds": round(seconds, 2), "memory": memory}), flush=True)
