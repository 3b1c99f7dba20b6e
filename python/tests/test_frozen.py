"""Frozen weights are read from their files, inside the budget, and training leaves the same bits as without."""

import json
import struct

import pytest
import torch
from torch import nn

import tidemark
import tidemark.torch as tide
from tidemark.torch import allocator

from models import everything

peft = pytest.importorskip("peft")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

CONFIG = dict(
    vocab_size=256, hidden_size=64, intermediate_size=192, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
)  # fmt: skip


def llama(tied):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG, tie_word_embeddings=tied))


@pytest.fixture
def dtype():
    return torch.bfloat16


@pytest.fixture
def tied():
    return True


@pytest.fixture
def folder(tmp_path, dtype, tied):
    """A sharded checkpoint, as Hugging Face writes them."""
    torch.manual_seed(1)
    llama(tied).to(dtype).save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    return tmp_path


def in_memory(folder):
    """The usual way: all of it in float32."""
    return transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)


def in_files(folder, tied):
    with torch.device("meta"):
        model = llama(tied)
    return tide.load(model, folder)


def with_lora(model):
    torch.manual_seed(2)
    return peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.1))


def tokens(step):
    return (torch.randint(0, 256, (2, 32), generator=torch.Generator().manual_seed(step)),)


def loss_fn(model, ids):
    return model(input_ids=ids, labels=ids, use_cache=False).loss


def train(model, budget=None, steps=5, data=tokens, replay=False):
    """Losses, what is trained, and the report."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    step = tide.fit(model, optimizer, loss_fn, budget=budget or "100%", replay=replay)
    if budget is None:
        step.close()  # the same function, without a budget
    torch.manual_seed(3)
    losses = [step(*data(i)).clone() for i in range(steps)]
    step.close()
    left = everything(nn.ParameterList(p for p in model.parameters() if p.requires_grad), optimizer)
    return losses, left, step.report


def assert_same(want, got):
    assert all(torch.equal(a, b) for a, b in zip(want[0], got[0], strict=True))
    assert want[1].keys() == got[1].keys() and len(want[1]) > 8
    assert [name for name in want[1] if not torch.equal(want[1][name], got[1][name])] == []


def frozen_bytes(model):
    return sum(p.numel() * 4 for p in model.parameters() if not p.requires_grad)


@pytest.mark.parametrize(
    "dtype, tied",
    [(torch.bfloat16, True), *(pytest.param(*p, marks=pytest.mark.slow) for p in ((torch.float16, False), (torch.float32, True)))],
    ids=str,
)
def test_lora(folder, tied, dtype):
    want = train(with_lora(in_memory(folder)))
    for budget in "100%", "60%", 600 << 10:
        model = with_lora(in_files(folder, tied))
        got = train(model, budget)
        assert_same(want, got)
        report = got[2]
        assert (report.planned_steps, report.deviations) == (3, [])
        assert report.arena_bytes <= report.budget_bytes and report.outside_peak_bytes <= 64
        assert report.read_bytes >= frozen_bytes(model) * 0.9  # the rotary table is no parameter
        frozen = [p for p in model.parameters() if not p.requires_grad]
        assert not any(allocator.load().tidemark_torch_address(p.untyped_storage()._cdata) for p in frozen)


def test_replays_read_as_well(folder):
    want = train(with_lora(in_memory(folder)), steps=8)
    got = train(with_lora(in_files(folder, True)), 600 << 10, steps=8, replay=True)
    assert_same(want, got)
    assert got[2].replayed_steps == 4, got[2].not_replayed
    assert got[2].read_bytes > 0 and got[2].outside_peak_bytes <= 64


def test_a_step_that_deviates_reads_on(folder):
    def data(i):
        return (tokens(i)[0][:, : 16 if i == 9 else 32],)

    def deviating(model):
        calls = []

        def skip(module, args, output):
            calls.append(1)
            return output + 0 if len(calls) == 4 else output

        model.get_submodule("base_model.model.model.layers.1.mlp").register_forward_hook(skip)
        return model

    want = train(deviating(with_lora(in_memory(folder))), steps=6, data=data)
    got = train(deviating(with_lora(in_files(folder, True))), 700 << 10, steps=6, data=data)
    assert_same(want, got)
    assert len(got[2].deviations) == 1


def test_reading_outside_steps(folder):
    want, got = in_memory(folder).eval(), in_files(folder, True).eval()
    with torch.no_grad(), tide.reading():
        assert torch.equal(want(*tokens(0)).logits, got(*tokens(0)).logits)
    with torch.no_grad(), pytest.raises(RuntimeError, match="not in memory"):
        got(*tokens(0))


def test_weights_with_gradients_come_to_memory(folder):
    def unfreeze(model):
        for name, p in model.named_parameters():
            p.requires_grad = "layers.2." in name
        return model

    want = train(unfreeze(in_memory(folder)))
    got = train(unfreeze(in_files(folder, True)), "60%")
    assert_same(want, got)


def test_a_frozen_weight_is_not_written(folder):
    model = in_files(folder, True)

    @tide.step(budget="8MiB")
    def step():
        with torch.no_grad():
            model.model.norm.weight.add_(1)

    with pytest.raises(RuntimeError, match="lies in a file"):
        step()


def test_estimate(folder):
    model = with_lora(in_files(folder, True))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    guess = tide.estimate(model, optimizer, loss_fn, tokens(0))
    assert guess.state_bytes < frozen_bytes(model) / 2
    assert guess.fits("60%")


def test_what_the_files_do_not_have(folder):
    with torch.device("meta"):
        model = nn.ModuleDict({"extra": nn.Linear(2, 2)})
    with pytest.raises(ValueError, match="extra.weight"):
        tide.load(model, folder)
    with torch.device("meta"):
        other = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**CONFIG, "hidden_size": 32}))
    with pytest.raises(tidemark.FormatError, match="shape"):
        tide.load(other, folder)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x05", struct.pack("<Q", 1 << 60), struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 3) + b"{x}",
        *(
            struct.pack("<Q", len(text)) + text + b"\0" * 8
            for text in (
                json.dumps({"w": entry}).encode()
                for entry in (
                    7, {}, {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
                    {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]},
                    {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]},
                    {"dtype": "X", "shape": [2], "data_offsets": [0, 8]},
                    {"dtype": "F32", "shape": "2", "data_offsets": [8]},
                )
            )
        ),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(tidemark.FormatError, match="model.safetensors"):
        tide.load(nn.Linear(1, 1), tmp_path)
