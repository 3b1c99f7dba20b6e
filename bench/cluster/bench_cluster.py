#!/usr/bin/env python3
"""Several ranks on this machine: bits, bytes per rank, lent memory, lost ranks (docs/cluster.md). Every loop and every job is bounded.

usage: bench_cluster.py BUILD [--families LIST] [--ranks 1,2,4] [--budgets none,40%,min] [--kills N] [--faults N]
"""
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

# Small members of each family: options of `tidemark train`.
FAMILIES = {
    "mlp": ["mlp:784,64,10"],
    "lenet": ["lenet"],
    "alexnet": ["alexnet", "--input", "3x67x67", "--classes", "10"],
    "vgg": ["vgg11", "--input", "3x32x32", "--classes", "10"],
    "resnet-cifar": ["resnet-cifar:1"],
    "resnet": ["resnet18", "--input", "3x32x32", "--classes", "10"],
    "unet": ["unet:4", "--input", "1x32x32"],
    "lstm": ["lstm:1,16,4,256"],
    "gpt2": ["gpt2:1,16,2,6,256"],
}
SHARDS = ["none", "optimizer", "all"]
JOB_SECONDS = 300


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.run(command, capture_output=True, text=True, timeout=JOB_SECONDS, env=environment, check=False)


def train(build: Path, family: str, ranks: int, budget: str, shard: str) -> dict | str:
    command = [str(build / "tidemark"), "train", *FAMILIES[family], "--batch", "8", "--micro", "2", "--samples", "64", "--test-samples", "2"]
    command += ["--threads", "1", "--steps", "3", "--optimizer", "adam", "--json", "--quiet"]
    if budget != "none":
        command += ["--budget", budget, "--effort", "low"]
    if ranks > 1:
        command = ["mpirun.openmpi", "--oversubscribe", "-n", str(ranks), *command, "--shard", shard]
    result = run(command)
    if result.returncode != 0:
        return f"exit code {result.returncode}: {result.stderr.strip().splitlines()[0] if result.stderr.strip() else ''}"
    return json.loads(result.stdout)["runs"][0]


def bench_bits(build: Path, families: list[str], ranks: list[int], budgets: list[str]) -> bool:
    """One hash per family, whatever the number of ranks, the budget and the shard."""
    good = True
    print(f"{'family':14} {'jobs':>5} {'hashes':>7} {'refused':>8}  seconds")
    for family in families:
        hashes, jobs, refused, begin = set(), 0, [], time.monotonic()
        for n in ranks:
            for budget in budgets:
                for shard in SHARDS if n > 1 else ["none"]:
                    outcome = train(build, family, n, budget, shard)
                    jobs += 1
                    if isinstance(outcome, dict):
                        hashes.add(outcome["bits"])
                    else:
                        refused.append(f"{n} ranks, budget {budget}, shard {shard}: {outcome}")
        print(f"{family:14} {jobs:5} {len(hashes):7} {len(refused):8}  {time.monotonic() - begin:.0f}", flush=True)
        for line in refused:
            print(f"    {line}")
        # A step that cannot be had in so few bytes is refused with code 4; everything else is a fault of ours.
        good = good and len(hashes) == 1 and all("exit code 4" in line for line in refused)
    return good


def bench_bytes(build: Path) -> bool:
    """States of one rank, with Adam, beside 12, 4 + 8 / R and 12 / R bytes per parameter; of the first rank."""
    good = True
    print(f"{'model':12} {'ranks':>5} {'shard':10} {'states MiB':>11} {'formula':>11} {'off':>7} {'arena MiB':>11} {'hidden':>7}")
    for model in ["resnet50", "vgg11", "vgg16", "gpt2:small"]:
        for ranks in [2, 4, 8]:
            command = [str(build / "tidemark"), "plan", model, "--micro", "4", "--optimizer", "adam", "--cluster", "8xa100-nvlink"]
            plans = json.loads(run([*command, "--ranks", str(ranks), "--json"]).stdout)["plans"]
            whole = plans[0]["states_bytes"]
            for plan, share in zip(plans, [1, 1 / 3 + 2 / 3 / ranks, 1 / ranks], strict=True):
                off = plan["states_bytes"] / (whole * share) - 1
                print(f"{model:12} {ranks:5} {plan['shard']:10} {plan['states_bytes'] / 2**20:11.1f} {whole * share / 2**20:11.1f} "
                      f"{100 * off:6.1f}% {plan['arena_bytes'] / 2**20:11.1f} {100 * plan['hidden']:6.0f}%")
                good = good and abs(off) <= 0.02
    return good


def bench_lent(build: Path) -> bool:
    """Memory of another rank beside a raw socket between the same processes, over shared memory and over TCP."""
    good = True
    for transport, options in {"shared memory": [], "TCP loopback": ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]}.items():
        result = run(["mpirun.openmpi", "--oversubscribe", *options, "-n", "2", str(build / "bench_peer")])
        print(f"lent memory over {transport}: {result.stdout.strip() or result.stderr.strip()}")
        good = good and result.returncode == 0
    return good


def bench_faults(build: Path, faults: int) -> bool:
    """Frames and bytes that are damaged, lost, doubled, late, swapped or cut off: half of them hit messages, half lent memory."""
    good, begin = True, time.monotonic()
    for test in ["net_test_net", "tier_test_lent"]:
        environment = dict(os.environ, TIDE_TEST_FAULTS=str(faults // 2))
        result = subprocess.run([str(build / "tests" / test)], capture_output=True, text=True, timeout=900, env=environment, check=False)
        good = good and result.returncode == 0
    print(f"{faults} faults in {time.monotonic() - begin:.0f} s: {'no hang, no wrong byte' if good else 'FAILED'}")
    return good


def bench_kills(build: Path, kills: int) -> bool:
    """Ranks killed at random under --supervise: the bits of a training that nobody touched."""
    test = Path(__file__).resolve().parents[2] / "tests/cli/test_supervise.sh"
    begin = time.monotonic()
    environment = dict(os.environ, TIDE_TEST_KILLS=str(kills), TIDE_TEST_STEPS="3000")
    result = subprocess.run(["bash", str(test), str(build)], capture_output=True, text=True, timeout=900, env=environment, check=False)
    print(f"{kills} kills in {time.monotonic() - begin:.0f} s: {'the same bits' if result.returncode == 0 else result.stderr}")
    return result.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--budgets", default="none,40%,min")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--faults", type=int, default=1000)
    a = parser.parse_args()
    good = bench_bytes(a.build)
    good = bench_lent(a.build) and good
    good = bench_faults(a.build, a.faults) and good
    good = bench_bits(a.build, a.families.split(","), [int(n) for n in a.ranks.split(",")], a.budgets.split(",")) and good
    good = bench_kills(a.build, a.kills) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
