"""Counts and sums of a trace, by an independent reader: Python's json, times as decimals. One JSON object on standard output."""
import collections
import decimal
import gzip
import json
import sys
import zipfile


def text_of(path):
    if path.endswith(".gz"):
        return gzip.open(path, "rt").read()
    if path.endswith(".zip"):
        archive = zipfile.ZipFile(path)
        return archive.read(archive.namelist()[0]).decode()
    return open(path).read()


trace = json.loads(text_of(sys.argv[1]), parse_float=decimal.Decimal, parse_int=decimal.Decimal)
events = trace if isinstance(trace, list) else trace["traceEvents"]
counts, sums, kernels, rows, memory = collections.Counter(), collections.Counter(), collections.Counter(), collections.Counter(), 0
for e in events:
    if e["ph"] == "X":
        ns = int(decimal.Decimal(e["dur"]) * 1000)
        counts[e["cat"]] += 1
        sums[e["cat"]] += ns
        rows[f'{e["pid"]} {e["tid"]}'] += 1
        if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            kernels[e["name"]] += ns
    elif e["ph"] == "i":
        counts[e["cat"]] += 1
        memory += e["name"] == "[memory]"
print(json.dumps({"counts": counts, "sums": sums, "kernels": kernels, "rows": len(rows), "memory": memory}))
