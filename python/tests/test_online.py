"""Steps without a plan stay inside an absolute budget too."""

import pytest
import torch

import tidemark

from models import Lstm, Transformer, assert_same, images, resnet, tokens, train


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
