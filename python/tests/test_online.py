"""Steps without a plan stay inside an absolute budget too."""

import pytest
import torch
from torch import nn

import tidemark
import tidemark.torch as tide

from models import Lstm, Transformer, assert_same, images, loss_fn, resnet, tokens, train


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


@pytest.mark.parametrize("make_model, data", [(resnet, images), (Transformer, tokens), (Lstm, tokens)])
def test_learning_stays_inside(make_model, data):
    want = train(make_model, sgd, data)
    whole = train(make_model, sgd, data, "100%")[2].unconstrained_bytes
    budget = whole * 7 // 10
    got = train(make_model, sgd, data, budget)
    assert_same(want, got)
    report = got[2]
    assert (report.learning_steps, report.planned_steps, report.deviations) == (2, 4, [])
    assert 0 < report.online_peak_bytes <= budget


def test_an_online_step_that_cannot_fit_is_refused():
    with pytest.raises(tidemark.FitError, match="aten::.*heap"):
        train(resnet, sgd, images, 256 << 10)


def test_a_disk_that_is_full_leaves_ordinary_tensors():
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(60)))
    before = [p.detach().clone() for p in model.parameters()]
    step = tide.fit(model, sgd(model.parameters()), loss_fn, budget="192KiB", disk_budget="512KiB")
    with pytest.raises(tidemark.FitError, match="of disk"):
        step(torch.randn(64, 64), torch.randint(0, 64, (64,)))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    step.close()


def test_the_disk_is_large_by_default():
    """A step of many times its budget."""
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(60)))
    step = tide.fit(model, sgd(model.parameters()), loss_fn, budget="192KiB")
    g = torch.Generator().manual_seed(0)
    for _ in range(3):
        step(torch.randn(64, 64, generator=g), torch.randint(0, 64, (64,), generator=g))
    step.close()
    assert step.report.planned_steps == 1 and step.report.unconstrained_bytes > 6 * step.report.budget_bytes
