#!/usr/bin/env python3
"""Several ranks on this machine: bits, bytes per rank, lent memory, lost ranks (docs/cluster.md). Every loop and every job is bounded.

usage: bench_cluster.py BUILD [--families LIST] [--ranks 1,2,4] [--budgets none,40%,min] [--kills N] [--faults N]
                        [--torch PYTHON [--networks resnet50,gpt2] [--rounds N]] [--only bytes,lent,hosts,faults,bits,kills,torch]
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
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


def bench_hosts(build: Path) -> bool:
    """Two network namespaces: lent memory, and steps whose sums of gradients go beside compute, measured and simulated."""
    here = Path(__file__).resolve()
    record = Path(tempfile.gettempdir(), f"tidemark-bench-{os.getpid()}.tide")
    train = [str(build / "tidemark"), "train", "resnet50", "--input", "3x96x96", "--batch", "16", "--micro", "8", "--threads", "1", "--steps", "3"]
    train += ["--samples", "64", "--test-samples", "1", "--optimizer", "momentum", "--quiet", "--record", str(record)]
    good = True
    for mbit in [0, 800, 1600]:
        on_hosts = [str(here.with_name("on_two_hosts.sh")), str(build.resolve()), str(here.parents[2]), str(mbit)]
        result = run([*on_hosts, str(build.resolve() / "bench_peer"), "192.0.2.2"])
        if result.returncode == 77:
            print(result.stdout.strip())
            return True
        print(f"two namespaces, {f'{mbit} Mbit/s each way' if mbit else 'no limit'}: lent memory: {result.stdout.strip() or result.stderr.strip()}")
        job = run([*on_hosts, *train])
        shown = run([str(build / "bench_ranks"), str(record)]) if job.returncode == 0 else job
        record.unlink(missing_ok=True)
        print(shown.stdout.strip() or shown.stderr.strip(), flush=True)
        good = good and result.returncode == 0 and shown.returncode == 0
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


# Two ranks, a thread each: options of ours, the network of torch_ranks.py and samples per rank.
BESIDE_TORCH = {
    "ResNet-50, 2 x 4 of 64 x 64": (["resnet50", "--input", "3x64x64", "--batch", "8", "--micro", "4", "--optimizer", "momentum"], "resnet50", 4),
    "GPT-2 small, 2 x 1 of 128": (["gpt2:12,768,12,128,50257", "--batch", "2", "--micro", "1", "--optimizer", "adamw"], "gpt2", 1),
}
TORCH_STEPS, TORCH_SECONDS = 5, 900


# Runs a command; the most KiB of resident memory that it had go to a file of its rank's name in a folder.
RESIDENT = """import os, pathlib, resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
pathlib.Path(sys.argv[1], os.environ["OMPI_COMM_WORLD_RANK"] + ".peak").write_text(str(peak))
sys.exit(code)"""


def our_step(build: Path, options: list[str], shard: str) -> tuple[float, list[int]]:
    """Seconds of the median step but for the first two, and bytes of resident memory per rank, all of the process."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        command = ["mpirun.openmpi", "--oversubscribe", "-n", "2", sys.executable, "-c", RESIDENT, folder, str(build / "tidemark"), "train", *options, "--threads", "1", "--samples", "64"]
        command += ["--test-samples", "1", "--steps", str(TORCH_STEPS), "--shard", shard, "--quiet", "--log", str(log)]
        result = run(command)
        if result.returncode != 0:
            raise SystemExit(result.stderr)
        steps = [json.loads(line)["step_ns"] / 1e9 for line in log.read_text().splitlines()[1:]]
        return statistics.median(steps[2:]), [1024 * int(file.read_text()) for file in Path(folder).glob("*.peak")]


def torch_step(python: str, how: str, network: str, samples: int) -> tuple[float, list[int]]:
    """The same of PyTorch, but for what the interpreter and the library have before there is a network."""
    script = str(Path(__file__).with_name("torch_ranks.py"))
    local = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29577", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    command = [python, script, how, network, str(samples), str(TORCH_STEPS)]
    ranks = [subprocess.Popen(command, env=dict(os.environ, RANK=str(i), **local), stdout=subprocess.PIPE, text=True) for i in range(2)]
    try:
        words = ranks[0].communicate(timeout=TORCH_SECONDS)[0].split()
        ranks[1].communicate(timeout=TORCH_SECONDS)
    finally:
        for rank in ranks:
            rank.kill()
    if any(rank.returncode for rank in ranks):
        raise SystemExit("torch_ranks.py has failed")
    return float(words[0]), [1024 * int(word) for word in words[1:]]


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def bench_torch(build: Path, python: str, networks: list[str], n_rounds: int) -> bool:
    """Beside DDP and FSDP over gloo on the same two ranks, in turns: no slower, and no more bytes per rank."""
    good = True
    for name, (options, network, samples) in BESIDE_TORCH.items():
        if network not in networks:
            continue
        ways = {
            "tidemark --shard none": lambda options=options: our_step(build, options, "none"),
            "DDP": lambda network=network, samples=samples: torch_step(python, "ddp", network, samples),
            "tidemark --shard all": lambda options=options: our_step(build, options, "all"),
            "FSDP": lambda network=network, samples=samples: torch_step(python, "fsdp", network, samples),
        }
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        peak, cpu = dict.fromkeys(ways, 0), dict.fromkeys(ways, 0.0)
        for _ in range(n_rounds):
            for way, measure in ways.items():
                before = cpu_seconds()
                took, peaks = measure()
                seconds[way].append(took)
                cpu[way] += (cpu_seconds() - before) / n_rounds
                peak[way] = max(peak[way], *peaks)
                print(f"    {way}: {took:.3f} s per step", file=sys.stderr, flush=True)
        print(f"{name}\n{'':24} {'s per step':>10} {'of rounds':>20} {'MiB per rank':>13} {'CPU s of a job':>15}")
        for way, rounds in seconds.items():
            listed = " ".join(f"{s:.3f}" for s in rounds)
            print(f"  {way:22} {statistics.median(rounds):10.3f} {listed:>20} {peak[way] / 2**20:13.1f} {cpu[way]:15.1f}", flush=True)
        ours, theirs = list(ways)[0::2], list(ways)[1::2]
        good = good and statistics.median(seconds[ours[0]]) <= statistics.median(seconds[theirs[0]])
        good = good and all(peak[a] <= peak[b] for a, b in zip(ours, theirs, strict=True))
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--budgets", default="none,40%,min")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter with PyTorch: compares with DDP and FSDP")
    parser.add_argument("--networks", default="resnet50,gpt2", help="of --torch")
    parser.add_argument("--rounds", type=int, default=3, help="of --torch")
    parser.add_argument("--only", default="bytes,lent,hosts,faults,bits,kills,torch", help="some of them")
    a = parser.parse_args()
    benches = {
        "bytes": lambda: bench_bytes(a.build),
        "lent": lambda: bench_lent(a.build),
        "hosts": lambda: bench_hosts(a.build),
        "faults": lambda: bench_faults(a.build, a.faults),
        "bits": lambda: bench_bits(a.build, a.families.split(","), [int(n) for n in a.ranks.split(",")], a.budgets.split(",")),
        "kills": lambda: bench_kills(a.build, a.kills),
        "torch": lambda: bench_torch(a.build, a.torch, a.networks.split(","), a.rounds) if a.torch else True,
    }
    good = True
    for name in a.only.split(","):
        good = benches[name]() and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
