"""The worked examples of docs/pytorch.md run as they stand there."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import torch

TEXT = (Path(__file__).parents[2] / "docs" / "pytorch.md").read_text()


def example(heading):
    """The code below a heading."""
    return re.search(rf"^### {heading}\n.*?```python\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE)[1]


def run(heading, tmp_path, monkeypatch, **names):
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example(heading), heading, "exec"), names)
    return names, printed.getvalue()


def test_torchvision(tmp_path, monkeypatch):
    pytest.importorskip("torchvision")
    names, printed = run("A network of torchvision", tmp_path, monkeypatch)
    report = names["step"].report
    assert (report.steps, report.planned_steps, report.deviations) == (12, 10, [])
    assert report.arena_bytes <= report.budget_bytes and "budget" in printed
    assert (tmp_path / "checkpoint.pt").exists() and 0 <= names["right"] <= 48


def test_lora(tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("peft")
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    loader = [torch.randint(0, 256, (1, 16)) for _ in range(4)]
    names, _ = run("LoRA on a model.*?", tmp_path, monkeypatch, folder=tmp_path / "model", loader=loader)
    assert names["step"].report.planned_steps == 2 and names["step"].report.read_bytes > 0
    assert (tmp_path / "adapter" / "adapter_model.safetensors").exists()


def test_loop(tmp_path, monkeypatch):
    assert run("A model with a loop", tmp_path, monkeypatch)[1] == "9 []\n"
