"""HolisticTraceAnalysis against `tenon trace`: compare_hta.py TENON [--steps N] [--big FILE...]

Runs where HolisticTraceAnalysis is installed, and only there. Makes the traces of two ranks that train together (a stream for kernels, one for
NCCL, one for copies; calls with correlation, waits of the CPU and of streams; whole microseconds, for HTA rounds finer ones), asks both programs
for the same figures, prints them side by side, and fails where two that mean the same differ. What means something else is printed beside the
reason. With --big the time and the memory that each takes to open a file and to list its kernels.
"""
import argparse
import gzip
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")


class Rank:
    """One process and its GPU, whose streams run what is queued in order."""

    def __init__(self, number, syncs):
        self.number, self.syncs = number, syncs
        self.random = random.Random(100 + number)
        self.cpu, self.free, self.correlation, self.external, self.events = 1000, {}, 0, 0, []
        self.pid = 4000 + number

    def slice(self, cat, name, tid, ts, dur, **args):
        gpu = cat in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync")
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": self.number if gpu else self.pid, "tid": tid, "ts": ts, "dur": dur, "args": args})

    def call(self, name, dur):
        self.correlation += 1
        self.slice("cuda_runtime", name, self.pid, self.cpu, dur, **{"External id": self.external, "cbid": 211, "correlation": self.correlation})
        self.cpu += dur
        return self.correlation

    def run(self, cat, name, stream, dur, correlation):
        start = max(self.cpu + 3, self.free.get(stream, 0) + self.random.choice((0, 1, 2)))
        self.slice(cat, name, stream, start, dur, **{"External id": self.external}, **self.on(stream, correlation))
        self.free[stream] = start + dur

    def on(self, stream, correlation):
        return {"correlation": correlation, "device": self.number, "context": 1, "stream": stream}

    def op(self, name, kernel, dur, cat="kernel", stream=7, call="cudaLaunchKernel"):
        self.external += 1
        begin, mine = self.cpu, self.external
        self.cpu += self.random.randint(3, 12)
        self.run(cat, kernel, stream, dur, self.call(call, self.random.randint(4, 9)))
        self.cpu += self.random.randint(2, 6)
        self.slice("cpu_op", name, self.pid, begin, self.cpu - begin, **{"External id": mine, "Ev Idx": mine})

    def wait(self, waiting, awaited):
        """Work of one stream that waits for what is queued on another."""
        record = self.call("cudaEventRecord", 2)
        told = self.call("cudaStreamWaitEvent", 2)
        self.free[waiting] = max(self.free.get(waiting, 0), self.free.get(awaited, 0))
        if self.syncs:
            self.slice("cuda_sync", "Stream Wait Event", waiting, self.cpu - 1, 1, **self.on(waiting, told), cuda_sync_kind="Stream Wait Event",
                       wait_on_stream=awaited, wait_on_cuda_event_record_corr_id=record, wait_on_cuda_event_id=record)

    def begin_collective(self, dur):
        self.external += 1
        self.wait(20, 7)
        begin = self.cpu
        self.cpu += 5
        self.pending = (begin, self.call("cudaLaunchKernelExC", 6), self.external, dur)
        return max(self.cpu + 3, self.free[20] + 1)

    def end_collective(self, start, end):
        begin, correlation, mine, _ = self.pending
        self.slice("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, start, end - start,
                   **{"External id": mine}, **self.on(20, correlation))
        self.free[20] = end
        self.cpu += 4
        self.slice("cpu_op", "record_param_comms", self.pid, begin, self.cpu - begin, **{"External id": mine, "Ev Idx": mine})

    def synchronise(self):
        begin, until = self.cpu, max(self.cpu, self.free[7]) + 4
        correlation = self.call("cudaStreamSynchronize", until - begin)
        if self.syncs:
            self.slice("cuda_sync", "Stream Sync", 7, begin + 1, until - begin - 2, **self.on(7, correlation), cuda_sync_kind="Stream Sync")
        self.cpu += 6

    def text(self):
        m = [{"ph": "M", "name": "process_name", "pid": self.pid, "tid": 0, "ts": 0, "args": {"name": "python"}}]
        job = {"backend": "nccl", "rank": self.number, "world_size": 2}
        return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": self.number, "name": "NVIDIA H100"}], "distributedInfo": job, "traceEvents": m + self.events})


def train(steps, syncs, one_stream=False):
    ranks = [Rank(r, syncs) for r in range(2)]
    gemm, relu = "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n", "void relu_kernel<float>(float*)"
    add = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
    for step in range(steps):
        begins = [r.cpu for r in ranks]
        for r in ranks:
            r.cpu += 40
            r.op("aten::copy_", "Memcpy HtoD (Pinned -> Device)", 55, "gpu_memcpy", 7 if one_stream else 24, "cudaMemcpyAsync")
            if not one_stream:
                r.wait(7, 24)
            r.op("aten::zero_", "Memset (Device)", 3, "gpu_memset", 7, "cudaMemsetAsync")
            for _ in range(12):
                r.op("aten::mm", gemm, r.random.randint(10, 60))
                r.op("aten::add", add, r.random.randint(2, 9))
                if r.random.random() < 0.3:
                    r.cpu += 60
        for bucket in range(3):
            for r in ranks:
                for _ in range(4):
                    r.op("aten::mm", gemm, r.random.randint(20, 70))
                    r.op("aten::threshold_backward", relu, r.random.randint(2, 8))
            if not one_stream:
                starts = [r.begin_collective(90 + 20 * bucket) for r in ranks]
                for r, start in zip(ranks, starts):
                    r.end_collective(start, max(starts) + 90 + 20 * bucket)
        for r, begin in zip(ranks, begins):
            if not one_stream:
                r.wait(7, 20)
            r.op("aten::_foreach_add_", add, 30)
            r.synchronise()
            r.slice("user_annotation", f"ProfilerStep#{step}", r.pid, begin, r.cpu - begin, **{"External id": 0})
            r.cpu += 10
    return ranks


def tenon(*words):
    out = subprocess.run([arguments.tenon, "trace", *words, "--json", "--top", "1000000", "--no-cache"], capture_output=True, text=True, check=True).stdout
    return json.loads(out.splitlines()[0])


failures = 0


def compare(what, hta, ours, same=True, why=""):
    """A line of the table. Figures that mean the same must be the same."""
    global failures
    equal = abs(hta - ours) <= 1e-6 * max(1, abs(hta))
    failures += same and not equal
    verdict = "equal" if equal else ("DIFFERENT" if same else "other: " + why)
    print(f"  {what:<58} {hta:>16,.2f} {ours:>16,.2f}  {verdict}")


def analysed(ranks, folder):
    from hta.trace_analysis import TraceAnalysis
    files = {}
    for r in ranks:
        files[r.number] = f"{folder}/rank{r.number}.json.gz"
        with gzip.open(files[r.number], "wt") as f:
            f.write(r.text())
    return files, TraceAnalysis(trace_files=files, include_last_profiler_step=True)


def kernels_and_breakdowns(ranks, folder):
    files, hta = analysed(ranks, folder)
    types, names = hta.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1.0, include_memory_kernels=True)
    temporal = hta.get_temporal_breakdown(visualize=False).set_index("rank")
    hidden = hta.get_comm_comp_overlap(visualize=False).set_index("rank")
    launches = hta.get_cuda_kernel_launch_stats(ranks=list(files), visualize=False)
    both = {row["kernel_type"]: row["sum"] for _, row in types.iterrows()}
    overlaps = []
    for rank, file in files.items():
        print(f"rank {rank}")
        ours = {k["name"]: k for k in tenon("kernels", file)["kernels"]}
        theirs = names[names["rank"] == rank]
        for _, row in theirs.iterrows():
            if row["name"] == "Stream Wait Event":
                continue  # no kernel
            for column, key in (("sum (us)", "total_ns"), ("min (us)", "min_ns"), ("max (us)", "max_ns")):
                compare(f"kernels: {row['name'][:38]} {column}", row[column], ours[row["name"]][key] / 1000)
        compare("kernels: names", len(theirs), len(ours))
        steps, idle = tenon("steps", file)["steps"], tenon("idle", file)
        of_rank = temporal.loc[rank]
        compare("temporal: GPU busy, us", of_rank["kernel_time(us)"] - of_rank["idle_time(us)"], sum(s["gpu_busy_ns"] for s in steps) / 1000)
        compare("temporal: idle, us", of_rank["idle_time(us)"], idle["idle_ns"] / 1000, False, "ours from the first step's begin to the last one's end")
        overlap = tenon("overlap", file)
        overlaps.append(overlap["ranks"][0])
        compare("temporal: compute, us", of_rank["compute_time(us)"], overlap["ranks"][0]["compute_ns"] / 1000)
        if overlap["ranks"][0]["communication_ns"]:
            compare("overlap: communication hidden, %", hidden.loc[rank]["comp_comm_overlap_pctg"], round(100 * overlap["ranks"][0]["overlap_share"], 2))
        launch, stats = tenon("launch", file), launches[rank]
        compare("launch: calls linked with their work", len(stats), launch["launches"])
        compare("launch: median length of a call, us", stats["cpu_duration"].median(), launch["median_call_ns"] / 1000, False, "ours the lower of two")
        compare("launch: work shorter than its call", int((stats["gpu_duration"] < stats["cpu_duration"]).sum()), launch["shorter_than_call"])
        compare("launch: median delay, us", stats["launch_delay"].median(), launch["median_delay_ns"] / 1000, False, "HTA from the call's end, ours its begin")
    exposed = sum(v for k, v in both.items() if k in ("COMMUNICATION", "COMMUNICATION overlapping MEMORY"))
    compare("kernel types: communication without computation, us", exposed, sum(o["exposed_ns"] for o in overlaps) / 1000)


def one_stream(ranks, folder):
    files, hta = analysed(ranks, folder)
    print("one stream")
    for rank, file in files.items():
        idle, _ = hta.get_idle_time_breakdown(ranks=[rank], consecutive_kernel_delay=1, visualize=False)
        events = ranks[rank].events
        work = [e for e in events if "stream" in e["args"] and e["cat"] != "cuda_sync"]
        steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
        # HTA counts from the first kernel to the last, we the whole steps.
        edges = min(e["ts"] for e in work) - min(e["ts"] for e in steps) + max(e["ts"] + e["dur"] for e in steps) - max(e["ts"] + e["dur"] for e in work)
        between = sum(b["ts"] - (a["ts"] + a["dur"]) for a, b in zip(sorted(steps, key=lambda e: e["ts"]), sorted(steps, key=lambda e: e["ts"])[1:]))
        ours = tenon("idle", file)
        compare(f"idle: rank {rank}, gaps between kernels, us", idle["idle_time"].sum(), ours["idle_ns"] / 1000 - edges + between)
        host = idle[idle["idle_category"] == "host_wait"]["idle_time"].sum()
        waits = (ours["host_ns"] + ours["sync_ns"] + ours["data_ns"]) / 1000
        compare(f"idle: rank {rank}, waiting for the CPU, us", host, waits, False, "HTA the whole gap if the call came after its begin, ours until the call is done")
        queue = hta.get_queue_length_summary(ranks=[rank])
        compare(f"queue: rank {rank}, longest", float(queue[("queue_length", "max")].max()), tenon("launch", file)["queue_max"])


def critical_path(ranks, folder):
    files, hta = analysed(ranks, folder)
    print("critical path of step 2 of rank 0")
    graph, ok = hta.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=2)
    if not ok:
        return print("  HTA found none")
    table = graph.get_critical_path_breakdown()
    by = table.groupby("bound_by").duration.sum()
    ours = tenon("critical-path", files[0], "--step", "2")
    path = {p["name"]: p["total_ns"] / 1000 for p in ours["path"]}
    gpu = {"communication": sum(v for k, v in path.items() if k.startswith("nccl"))}
    gpu["compute"] = ours["gpu_ns"] / 1000 - gpu["communication"]
    for kind, time_us in gpu.items():
        compare(f"critical path: {kind} on the GPU, us", by.get(f"gpu_{kind}_bound", 0), time_us)
    between, launch = path.get("between two kernels", 0), path.get("between launch and start", 0)
    compare("critical path: between kernels, us", by.get("gpu_kernel_kernel_overhead", 0), between, False, "HTA gives no time to one stream's wait for another")
    compare("critical path: from launch to start, us", by.get("gpu_kernel_launch_overhead", 0), launch, False, "HTA from the call's begin, ours from its end")
    cpu = ours["total_ns"] / 1000 - sum(gpu.values()) - between - launch
    compare("critical path: on the CPU, us", by.get("cpu_bound", 0), cpu, False, "HTA leaves out what lies between ops, and calls that launch")
    compare("critical path: whole, us", table.duration.sum(), ours["total_ns"] / 1000, False, "ours is the step's length")


def child(work):
    """Seconds, those of them that a core worked, and peak bytes of what a process of its own does."""
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit("it failed")
    return round(time.monotonic() - begin, 3), round(usage.ru_utime + usage.ru_stime, 3), usage.ru_maxrss * 1024


def big(path):
    def by_hta():
        from hta.trace_analysis import TraceAnalysis
        TraceAnalysis(trace_files={0: path}, include_last_profiler_step=True).get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True)

    def by_tenon():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(arguments.tenon, [arguments.tenon, "trace", "kernels", path, "--no-cache"])

    row = {"bytes": os.path.getsize(path)}
    for who, (seconds, worked, memory) in (("hta", child(by_hta)), ("tenon", min(child(by_tenon) for _ in range(3)))):
        row |= {f"{who}_seconds": seconds, f"{who}_cpu_seconds": worked, f"{who}_memory": memory}
    print(json.dumps(row), flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("tenon")
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--big", nargs="*", default=[])
arguments = parser.parse_args()
try:
    import hta  # noqa: F401
except ImportError:
    sys.exit("HolisticTraceAnalysis is not installed here")
if arguments.big:
    for file in arguments.big:
        big(file)
else:
    print(f"  {'':<58} {'HTA':>16} {'Tenon':>16}")
    with tempfile.TemporaryDirectory() as folder:
        kernels_and_breakdowns(train(arguments.steps, syncs=False), folder)
        one_stream(train(arguments.steps, syncs=False, one_stream=True), folder)
        critical_path(train(arguments.steps, syncs=True), folder)
    print(f"{failures} figures differ that mean the same")
sys.exit(1 if failures else 0)
