"""check_formats.py TRACE SNAPSHOT: what `tidemark report` wrote for other viewers, read by Python's json and pickle.

The trace: every event has what its kind needs, slices of a queue do not overlap, lifetimes begin and end. The snapshot:
blocks tile their segment, and the trace of allocations and frees leads, without two blocks ever sharing a byte, to
exactly the blocks of the segment. Ends with an assertion when something is wrong.
"""
import bisect
import json
import pickle
import pickletools
import sys


def check_slices(events):
    last = {}
    for e in (e for e in events if e["ph"] == "X"):
        assert e["dur"] >= 0 and e["ts"] >= last.get(e["tid"], 0) - 1e-6, e
        last[e["tid"]] = e["ts"] + e["dur"]


def check_lifetimes(events):
    begun = {}
    for e in events:
        if e["ph"] == "b":
            assert e["id"] not in begun
            begun[e["id"]] = e
        if e["ph"] == "e":
            begin = begun.pop(e["id"])
            assert begin["ts"] <= e["ts"] and begin["name"] == e["name"] and begin["cat"] == e["cat"]
    assert not begun, "lifetimes without an end"


def check_trace(path):
    with open(path, encoding="utf-8") as f:
        trace = json.load(f)
    events = trace["traceEvents"]
    for e in events:
        assert e["ph"] in "MXCsfbe", e
        assert isinstance(e["name"], str) and isinstance(e["pid"], int), e
        assert e["ph"] == "M" or e["ts"] >= 0, e
    names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert "compute" in names, names
    threads = {e["tid"] for e in events if e["name"] == "thread_name"}
    assert all(e["tid"] in threads for e in events if e["ph"] == "X")
    starts, ends = ({e["id"] for e in events if e["ph"] == ph} for ph in "sf")
    assert starts == ends, "a wait without both of its ends"
    check_slices(events)
    check_lifetimes(events)
    assert all(e["args"]["bytes"] >= 0 for e in events if e["ph"] == "C")
    return len(events)


def check_segment(segment):
    at = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == at and block["size"] > 0, block
        assert block["state"] in ("active_allocated", "inactive"), block
        at += block["size"]
    assert at == segment["address"] + segment["total_size"], "blocks do not tile their segment"
    active = sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated")
    assert active == segment["active_size"] == segment["allocated_size"]


def replay(trace):
    """The blocks at the end, {address: size}; asserts that no two ever overlap."""
    live, addresses, segments, pending, t = {}, [], {}, None, 0
    for e in trace:
        assert e["time_us"] >= t, "time runs backwards"
        t = e["time_us"]
        assert all(set(f) == {"name", "filename", "line"} for f in e["frames"])
        if e["action"] == "segment_alloc":
            segments[e["addr"]] = e["size"]
        elif e["action"] == "alloc":
            i = bisect.bisect(addresses, e["addr"])
            assert i == 0 or addresses[i - 1] + live[addresses[i - 1]] <= e["addr"], e
            assert i == len(addresses) or e["addr"] + e["size"] <= addresses[i], e
            addresses.insert(i, e["addr"])
            live[e["addr"]] = e["size"]
        elif e["action"] == "free_requested":
            assert live[e["addr"]] == e["size"] and pending is None
            pending = e["addr"]
        else:
            assert e["action"] == "free_completed" and pending == e["addr"], e
            del live[e["addr"]]
            addresses.remove(e["addr"])
            pending = None
    return live, segments


def check_snapshot(path):
    with open(path, "rb") as f:
        data = f.read()
    assert next(pickletools.genops(data))[1] == 2, "not protocol 2"
    snapshot = pickle.loads(data)
    assert set(snapshot) == {"segments", "device_traces"} and len(snapshot["device_traces"]) == 1
    live, segments = replay(snapshot["device_traces"][0])
    for segment in snapshot["segments"]:
        check_segment(segment)
    assert segments == {s["address"]: s["total_size"] for s in snapshot["segments"]}
    blocks = {b["address"]: b["size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated"}
    assert blocks == live, "the trace does not lead to the blocks"
    return len(snapshot["device_traces"][0])


if __name__ == "__main__":
    print(check_trace(sys.argv[1]), "events,", check_snapshot(sys.argv[2]), "allocations and frees")
