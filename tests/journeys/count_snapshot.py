"""Figures of a memory snapshot, by Python's own pickle and a plain walk over it. One JSON object on standard output."""
import collections
import json
import pickle
import sys

s = pickle.load(open(sys.argv[1], "rb"))
trace = s["device_traces"][0]
actions = collections.Counter(e["action"] for e in trace)
live, now, peak, peak_event = {}, 0, 0, 0
for i, e in enumerate(trace):
    if e["action"] == "alloc":
        live[e["addr"]] = e
        now += e["size"]
    elif e["action"] == "free_completed":
        now -= live.pop(e["addr"])["size"]
    if now > peak:
        peak, peak_event = now, i
print(json.dumps({"actions": actions, "peak": peak, "peak_event": peak_event, "live": len(live), "segments": len(s["segments"]),
                  "reserved": sum(g["total_size"] for g in s["segments"])}))
