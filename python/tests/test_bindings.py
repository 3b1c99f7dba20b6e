"""The bindings over the public headers: programs, machines, plans, runs."""

import ctypes
import subprocess
from pathlib import Path

import pytest

import tidemark
from tidemark._abi import ffi
from tidemark.machine import TIER_KINDS
from tidemark.plan import KINDS


def chain(n=6, size=1 << 16):
    """n ops forward, n back that read what the first made, and a weight that is updated in place."""
    b = tidemark.ProgramBuilder("chain")
    weight = b.tensor("w", size, cls="weight", start="present")
    values = [b.tensor("x0", size, cls="activation")]
    b.op("load", [], [values[0]], cost_ns=1000)
    for i in range(n):
        values.append(b.tensor(f"x{i + 1}", size, cls="activation"))
        b.op(f"f{i}", [values[i], weight], [values[i + 1]], cost_ns=1000)
    gradient = values[n]
    for i in reversed(range(n)):
        out = b.tensor(f"g{i}", size, cls="activation-gradient")
        b.op(f"b{i}", [gradient, values[i]], [out], phase="backward", cost_ns=2000)
        gradient = out
    updated = b.tensor("w'", size, cls="weight")
    b.op("sgd", [weight, gradient], [updated], inplace=[(0, 0, True)], phase="update", cost_ns=500, rerunnable=False)
    b.keep(updated)
    b.carry(updated, weight)
    return b.finish()


def test_declarations_are_those_of_the_headers(tmp_path):
    include = Path(__file__).parents[2] / "include"
    lines = ["#include <stddef.h>", "#include <tidemark/tidemark.h>"]
    for name in ffi.list_types()[0]:
        type_ = ffi.typeof(name)
        if type_.kind == "struct" and type_.fields:
            lines.append(f'_Static_assert(sizeof({name}) == {ffi.sizeof(type_)}, "{name}");')
            lines += [
                f'_Static_assert(offsetof({name}, {field}) == {at.offset}, "{name}.{field}");' for field, at in type_.fields
            ]
    lines += [f'_Static_assert(TIDE_{kind.upper()} == {i}, "{kind}");' for i, kind in enumerate(KINDS)]
    lines += [f'_Static_assert(TIDE_TIER_{kind.upper()} == {i}, "{kind}");' for i, kind in enumerate(TIER_KINDS)]
    lines += [f"#define COUNT(...) +1\n_Static_assert(0 TIDE_TIER_TABLE(COUNT) == {len(TIER_KINDS)}, \"tiers\");"]
    assert len(lines) > 100
    (tmp_path / "layout.c").write_text("\n".join(lines))
    subprocess.run(["cc", "-fsyntax-only", f"-I{include}", str(tmp_path / "layout.c")], check=True)


def machine():
    return tidemark.Machine("cpu").without("ram").without("client")


def test_machines_with_other_figures():
    whole = tidemark.Machine("cpu")
    slow = whole.with_reading("client", bytes_per_s=7, latency_ns=8, drag_percent=9)

    def rates(m):
        return [(c.bytes_per_s, c.latency_ns, c.drag_percent) for c in m._struct.channel[0 : m._struct.n_channels]]

    assert [i for i, (a, b) in enumerate(zip(rates(whole), rates(slow))) if a != b] == [4]
    assert rates(slow)[4] == (7, 8, 9) and slow.tiers == whole.tiers


def test_program():
    p = chain()
    assert (p.name, p.n_ops, p.n_tensors) == ("chain", 14, 15)
    assert p.op(1).reads == (1, 0) and p.op(13).phase == "update" and not p.op(13).rerunnable
    assert p.tensor(0).start == "present" and p.tensor(14).keep
    assert p.liveness().peak_bytes > p.liveness().largest_op_bytes
    with pytest.raises(IndexError):
        p.tensor(99)


def test_program_files(tmp_path):
    p = chain()
    p.write(tmp_path / "chain.jsonl")
    again = tidemark.Program.read(tmp_path / "chain.jsonl")
    assert (again.n_ops, again.cost_ns) == (p.n_ops, p.cost_ns)
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(tidemark.FormatError):
        tidemark.Program.read(tmp_path / "bad.jsonl")


def test_builder_refuses():
    b = tidemark.ProgramBuilder()
    t = b.tensor("t", 8)
    with pytest.raises(tidemark.ArgumentError, match="t"):
        b.op("reader", [t], [])


def test_plans_within_budgets(tmp_path):
    p, m = chain(), machine()
    whole = tidemark.Plan.create(p, m, policy="liveness")
    plan = tidemark.Plan.create(p, m, budget=whole.arena_bytes * 6 // 10)
    assert plan.arena_bytes <= whole.arena_bytes * 6 // 10
    plan.verify(budget=plan.arena_bytes)
    with pytest.raises(tidemark.PlanError):
        plan.verify(budget=plan.arena_bytes - 1)
    timeline = plan.simulate()
    assert len(timeline.start_ns) == len(plan.actions()) and timeline.prediction == plan.prediction
    plan.write(tmp_path / "plan.jsonl")
    assert tidemark.Plan.read(tmp_path / "plan.jsonl", p, m).residencies() == plan.residencies()


def test_a_budget_too_small_says_what_would_do():
    with pytest.raises(tidemark.FitError) as caught:
        tidemark.Plan.create(chain(), machine(), budget=1000)
    assert caught.value.needed_bytes > 1000


def test_frontier_and_smallest():
    p, m = chain(), machine()
    whole = tidemark.Plan.create(p, m, policy="liveness").arena_bytes
    plans = tidemark.frontier(p, m, [1000, whole // 2, whole])
    assert plans[0] is None and plans[1].prediction.step_ns >= plans[2].prediction.step_ns
    least = tidemark.smallest(p, m)
    assert least.bound_bytes <= least.works_bytes <= whole


def test_memory_map():
    plan = tidemark.Plan.create(chain(), machine(), policy="liveness")
    page = plan._repr_html_()
    assert page.count("<rect") == len(plan.residencies()) and "x3" in page


def test_pulled_run_computes():
    """Each op adds up the first bytes of what it reads; the weight counts steps under any plan."""
    p, m = chain(), machine()
    whole = tidemark.Plan.create(p, m, policy="liveness").arena_bytes
    for budget in whole, whole // 2:
        plan = tidemark.Plan.create(p, m, budget=budget)
        run = tidemark.PulledRun(plan)
        uses = {}
        for a in plan.actions():
            if a.kind == "run":
                uses.setdefault(a.op, []).append(a.uses)
        residencies = plan.residencies()
        start = (ctypes.c_uint64 * (1 << 13))(7)
        run.write(0, ctypes.addressof(start), 1 << 16)
        for _ in range(3):
            turn = {op: iter(list_) for op, list_ in uses.items()}
            run.begin()
            while (op := run.pull()) != 0xFFFFFFFF:
                at = [run.address + residencies[u].offset_bytes for u in next(turn[op])]
                n = len(p.op(op).reads)
                values = [ctypes.c_uint64.from_address(a).value for a in at]
                ctypes.c_uint64.from_address(at[n]).value = (sum(values[:n]) + op) % 1000003
            run.end()
        end = (ctypes.c_uint64 * (1 << 13))()
        run.read(14, ctypes.addressof(end), 1 << 16)
        run.close()
        if budget == whole:
            want = end[0]
    assert end[0] == want


def test_placement(tmp_path):
    b = tidemark.Buffer
    placed = tidemark.place([b("a", 64, 0, 2), b("b", 32, 1, 3, align_bytes=32), b("c", 64, 2, 4), b("d", 8, 9, 9)])
    assert (placed.height_bytes, placed.lower_bound_bytes, placed.optimal) == (96, 96, True)
    assert placed.offsets[0] == placed.offsets[2] and placed.offsets[1] in (0, 64)
    assert placed._repr_html_().count("<rect") == 3
    fixed = tidemark.place([b("a", 64, 0, 2, fixed_offset=128), b("b", 64, 0, 1, second=(3, 4))])
    assert fixed.offsets[0] == 128 and fixed._repr_html_().count("<rect") == 3
    assert tidemark.place([]).height_bytes == 0
    (tmp_path / "in.csv").write_text("id,lower,upper,size,alignment\nx,0,3,100,64\n")
    assert tidemark.read_buffers(tmp_path / "in.csv") == [b("x", 100, 0, 3, 64)]


def test_placement_of_a_program_is_that_of_its_plan():
    p, m = chain(), machine()
    buffers = tidemark.buffers_of(p, m)
    assert tidemark.place(buffers).height_bytes == tidemark.Plan.create(p, m, policy="liveness").arena_bytes
    assert {"x3", "w"} <= {b.name for b in buffers}


def test_placement_refuses(tmp_path):
    with pytest.raises(tidemark.ArgumentError, match="ends before it begins"):
        tidemark.place([tidemark.Buffer("a", 1, 2, 1)])
    with pytest.raises(tidemark.ArgumentError, match="unknown algorithm"):
        tidemark.place([tidemark.Buffer("a", 1, 0, 1)], algorithm="luck")
    (tmp_path / "bad.csv").write_text("id,lower\n")
    with pytest.raises(tidemark.FormatError, match="bad.csv"):
        tidemark.read_buffers(tmp_path / "bad.csv")


def test_pool_learns_an_iteration():
    with tidemark.Pool(plan_seconds=0) as pool:
        for _ in range(40):
            blocks = [pool.malloc(size) for size in (1 << 16, 3 << 14, 1 << 12, 5 << 13)]
            assert len(set(blocks)) == 4
            ctypes.memset(blocks[0], 7, 1 << 16)
            for block in blocks:
                pool.free(block)
        stats = pool.stats
        assert stats.n_mallocs == stats.n_frees == 160 and stats.n_planned > 100
        assert stats.n_planned + stats.n_fallbacks == stats.n_watched
        assert stats.plan_bytes >= stats.plan_load_bytes > 0 and stats.plan_algorithm
        with pytest.raises(tidemark.ArgumentError):
            pool.free(blocks[0])
        pool.reset_peaks()
        assert pool.stats.peak_live_bytes == 0 and pool.malloc(0) == 0
    with pytest.raises(ValueError, match="closed"):
        pool.malloc(1)
    with pytest.raises(tidemark.ArgumentError):
        tidemark.Pool(alignment=3)


def test_reports_of_plans(tmp_path):
    p, m = chain(), machine()
    whole = tidemark.Plan.create(p, m, policy="liveness")
    assert tidemark.PlanReport(whole).absences() == []
    plan = tidemark.Plan.create(p, m, budget=whole.arena_bytes * 6 // 10)
    report = tidemark.PlanReport(plan, budget=whole.arena_bytes * 6 // 10)
    kinds = {a.kind for a in report.absences()}
    assert kinds and kinds <= {"swap", "recompute"} and any(a.at_peak for a in report.absences())
    assert all((a.tier is None) == (a.kind == "recompute") and a.to_ns >= a.from_ns for a in report.absences())
    assert 0 <= report.peak_action < len(plan.actions())
    for write in report.write_html, report.write_perfetto, report.write_memory_viz:
        write(tmp_path / "out")
        assert (tmp_path / "out").stat().st_size > 1000
    with pytest.raises(tidemark.StorageError):
        report.write_html(tmp_path / "no such folder" / "out")
