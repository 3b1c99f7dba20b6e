"""One rank of a training in PyTorch over gloo: what bench_cluster compares with. As torch.distributed is started: RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT in the environment.

    torch_ranks.py ddp|fsdp resnet50|gpt2 SAMPLES STEPS

SAMPLES are per rank. Rank 0 prints a line: seconds per step (median), and per rank the most KiB of resident memory beyond what the
interpreter and the library had before there was a network.
"""

import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train"))
import torch_step  # noqa: E402

SIDE, TOKENS = 64, 128


def shard(model):
    """Weights, gradients and optimizer state in equal shares: blocks one by one, then the rest."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.modules():
        if isinstance(block, torch_step.Bottleneck | torch_step.Layer):
            fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def make(how, name, samples):
    torch.manual_seed(1)
    if name == "gpt2":
        model = torch_step.GPT2(False, context=TOKENS)
        x, labels = torch.randint(50257, (samples, TOKENS)), torch.randint(50257, (samples * TOKENS,))
    else:
        model = torch_step.ResNet50(False)
        x, labels = torch.randn(samples, 3, SIDE, SIDE), torch.randint(1000, (samples,))
    model = shard(model) if how == "fsdp" else torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    kind, options = (torch.optim.AdamW, {"lr": 1e-4}) if name == "gpt2" else (torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9})
    if how == "fsdp":  # has no fused form
        return model, x, labels, kind(model.parameters(), **options)
    return model, x, labels, torch_step.fastest(kind, model.parameters(), **options)


def main():
    how, name, samples, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    before = torch_step.memory_kib("VmRSS")
    state, seconds = make(how, name, samples), []
    for _ in range(steps):
        begin = time.perf_counter()
        torch_step.step(*state)
        seconds.append(time.perf_counter() - begin)
    mine = torch.tensor([torch_step.memory_kib("VmHWM") - before])
    peaks = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(peaks, mine)
    if dist.get_rank() == 0:
        print(statistics.median(seconds[2:]), *(int(p) for p in peaks), flush=True)
    dist.destroy_process_group()


main()
