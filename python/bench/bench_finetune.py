"""Fine-tuning a language model that is larger than its budget: LoRA by PEFT on a Llama of transformers, with the frozen weights
in their files, beside plain PEFT with everything in memory.

    bench_finetune.py [--shape tiny|1b|8b] [--tokens N] [--budget BYTES] [--steps N] [--folder DIR] [--only plain|files]

Weights are random, of the published configurations, in bfloat16, written once to the folder (2.5 GB for 1b, 16 GB for 8b).
Each side runs in a process of its own; bytes are the most that it had resident, times are of the processor (all threads).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROPE = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}  # fmt: skip
SHAPES = {
    "tiny": dict(vocab_size=4096, hidden_size=256, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8,
                 num_key_value_heads=2, tie_word_embeddings=True),
    "1b": dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
               num_key_value_heads=8, head_dim=64, tie_word_embeddings=True),
    "8b": dict(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
               num_key_value_heads=8, tie_word_embeddings=False),
}  # fmt: skip


def build(shape: str):
    """The model on the meta device."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.device("meta"):
        return LlamaForCausalLM(LlamaConfig(**SHAPES[shape], max_position_embeddings=131072, rope_parameters=ROPE))


def write_weights(shape: str, folder: Path) -> None:
    """One shard per layer, so that no more than one of them is ever in memory."""
    import torch
    from safetensors.torch import save_file

    model, shards, weight_map = build(shape), {}, {}
    for name, p in model.named_parameters():
        layer = name.split(".")[2] if ".layers." in name else name
        shards.setdefault(layer, []).append((name, p.shape))
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    for i, entries in enumerate(shards.values()):
        file = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        tensors = {}
        for name, size in entries:
            noise = torch.empty(size, dtype=torch.bfloat16).normal_(0, 0.02)
            tensors[name] = noise.add_(1) if "norm" in name else noise
        save_file(tensors, folder / file, metadata={"format": "pt"})
        weight_map |= {name: file for name in tensors}
    model.config.save_pretrained(folder)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def train(args: argparse.Namespace) -> dict:
    """One side, in this process."""
    import torch
    from peft import LoraConfig, get_peft_model

    import tidemark.torch as tide

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    base = resident()
    if args.only == "files":
        model = tide.load(build(args.shape), args.folder)
    else:
        from transformers import LlamaForCausalLM

        model = LlamaForCausalLM.from_pretrained(args.folder, dtype=torch.float32)
    torch.manual_seed(1)
    model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    loaded = resident()
    step = tide.fit(model, optimizer, lambda m, ids: m(input_ids=ids, labels=ids, use_cache=False).loss,
                    budget=args.budget or "100%", effort=args.effort)  # fmt: skip
    if args.only == "plain":
        step.close()
    losses, cpu, wall = [], [], []
    for i in range(args.steps):
        ids = torch.randint(0, SHAPES[args.shape]["vocab_size"], (1, args.tokens), generator=torch.Generator().manual_seed(i))
        begin = time.process_time(), time.perf_counter()
        losses.append(float(step(ids)))
        cpu.append(time.process_time() - begin[0])
        wall.append(time.perf_counter() - begin[1])
        print(f"  step {i}: loss {losses[-1]:.6f}, {wall[-1]:.1f} s, {cpu[-1]:.1f} s of the processor, "
              f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB at most", file=sys.stderr)  # fmt: skip
    step.close()
    digest = hashlib.sha256()
    for p in model.parameters():
        if p.requires_grad:
            digest.update(p.detach().numpy().tobytes())
    if args.only == "files":
        print(step.report, file=sys.stderr)
    return {
        "losses": losses, "sha256": digest.hexdigest(), "cpu_s": statistics.median(cpu[2:]),
        "wall_s": statistics.median(wall[2:]), "base_bytes": base, "loaded_bytes": loaded,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }  # fmt: skip


def run_side(args: argparse.Namespace, side: str) -> dict:
    command = [sys.executable, __file__, "--only", side, "--shape", args.shape, "--tokens", str(args.tokens), "--folder",
               str(args.folder), "--steps", str(args.steps), "--effort", args.effort]  # fmt: skip
    if side == "files":
        command += ["--budget", args.budget]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--budget", default="")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--effort", default="low")
    parser.add_argument("--only", choices=("plain", "files"))
    args = parser.parse_args()
    if args.only:
        print(json.dumps(train(args)))
        return
    args.budget = args.budget or {"tiny": "96MiB", "1b": "1450MiB", "8b": "6GiB"}[args.shape]
    args.folder = args.folder or Path(tempfile.gettempdir()) / f"tidemark-llama-{args.shape}"
    if not (args.folder / "model.safetensors.index.json").exists():
        subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r});"
                        f"from pathlib import Path; import bench_finetune;"
                        f"bench_finetune.write_weights({args.shape!r}, Path({str(args.folder)!r}))"], check=True)  # fmt: skip
    got, want = run_side(args, "files"), run_side(args, "plain")
    same = got["losses"] == want["losses"] and got["sha256"] == want["sha256"]
    for name, side in ("weights in files", got), ("plain PEFT", want):
        print(f"{name:<18} {side['peak_bytes'] / 2**30:6.2f} GiB resident at most ({side['base_bytes'] / 2**30:.2f} before "
              f"the model), {side['cpu_s']:7.2f} s of the processor a step, {side['wall_s']:7.2f} s")  # fmt: skip
    print(f"{got['cpu_s'] / want['cpu_s']:.3f} x the processor time; bits {'the same' if same else 'DIFFER'}")
    sys.exit(not same)


if __name__ == "__main__":
    main()
