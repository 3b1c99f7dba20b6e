"""Selective checkpointing by a plan: the same bits as without, in fewer bytes."""

import pytest
import torch
from torch import nn

import tidemark
import tidemark.torch as tide
from tidemark.torch.policy import find_blocks

from models import Lstm, Transformer, assert_same, everything, images, loss_fn, plain_step, resnet, tokens


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def train(make_model, data, budget=None, **options):
    torch.manual_seed(0)
    model = make_model()
    optimizer = sgd(model)
    policy = tide.policy(model, optimizer, loss_fn, data(0), budget=budget, **options) if budget else None
    step = plain_step(model, optimizer)
    torch.manual_seed(1)
    if policy is None:
        losses = [step(*data(i)) for i in range(4)]
    else:
        with policy:
            losses = [step(*data(i)) for i in range(4)]
    return losses, everything(model, optimizer), policy


@pytest.mark.parametrize("make_model, data, budget", [(resnet, images, "75%"), (Transformer, tokens, "75%")], ids=str)
def test_same_bits_in_fewer_bytes(make_model, data, budget):
    want = train(make_model, data)
    got = train(make_model, data, budget)
    assert_same(want, got)
    policy = got[2]
    assert policy.predicted_bytes <= 0.75 * policy.unconstrained_bytes
    assert policy.decisions.blocks and policy.predicted_slowdown > 1
    model = make_model()
    model(data(0)[0])  # as it was
    assert not any("forward" in m.__dict__ for m in model.modules())


def test_what_the_plan_keeps_is_not_computed_again():
    """Between everything and nothing: some results of checkpointed blocks stay."""
    policy = train(resnet, images, "80%")[2]
    assert policy.decisions.saved
    assert "blocks are computed again" in str(policy)


def test_statistics_count_once():
    want, got = train(resnet, images), train(resnet, images, "65%")
    counts = [name for name in want[1] if "num_batches" in name or "running" in name]
    assert len(counts) > 20 and all(torch.equal(want[1][n], got[1][n]) for n in counts)


def test_all_of_it_is_nothing_to_do():
    assert not train(resnet, images, "100%")[2].decisions.blocks


def test_what_cannot_hold_is_refused():
    with pytest.raises(tidemark.FitError) as caught:
        train(resnet, images, "20%")
    assert caught.value.needed_bytes > 0
    with pytest.raises(ValueError, match="blocks="):
        train(Lstm, tokens, "90%")


def test_blocks():
    assert find_blocks(resnet()) == [str(i) for i in range(3, 9)]
    assert find_blocks(Transformer()) == [f"layers.layers.{i}" for i in range(3)]
    assert find_blocks(nn.Linear(1, 1)) == []
    pair = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    assert find_blocks(nn.ModuleDict({"down": nn.ModuleList([pair, pair, nn.Sequential(pair)])})) == ["down.0", "down.2.0"]
