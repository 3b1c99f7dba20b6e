"""Steps that repeat are replayed to the same bits; those that do not are driven by Python, and said to be."""

import pytest
import torch

import tidemark.torch as tide
from tidemark.torch import replay

from models import Lstm, Transformer, assert_same, everything, images, loss_fn, resnet, tokens


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-3)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def train(make_model, make_optimizer, data, budget=None, steps=10, between=lambda *_: None, loss_fn=loss_fn, **options):
    torch.manual_seed(0)
    model = make_model()
    optimizer = make_optimizer(model.parameters())
    step = tide.fit(model, optimizer, loss_fn, budget=budget or "100%", replay=budget is not None, **options)
    if budget is None:
        step.close()
    losses = []
    for i in range(steps):
        losses.append(step(*data(i)))
        between(i, model, optimizer)
    step.close()
    return losses, everything(model, optimizer), step.report


def check(*args, n_replayed=6, **options):
    want = train(*args, **{k: v for k, v in options.items() if k in ("between", "loss_fn", "steps")})
    got = train(*args, **{"budget": "100%", **options})
    assert_same(want, got)
    report = got[2]
    assert report.deviations == [] and report.replayed_steps == n_replayed, report.not_replayed
    assert report.outside_peak_bytes <= 64
    return report


slow = pytest.mark.slow


@pytest.mark.parametrize(
    "make_model, data, make_optimizer",
    [
        (resnet, images, sgd), (Transformer, tokens, adamw), (Lstm, tokens, adamw),
        pytest.param(resnet, images, adamw, marks=slow), pytest.param(Transformer, tokens, sgd, marks=slow),
        pytest.param(Lstm, tokens, sgd, marks=slow),
    ],
)  # fmt: skip
def test_same_bits(make_model, data, make_optimizer):
    check(make_model, make_optimizer, data)


@pytest.mark.parametrize("make_model, data", [(resnet, images), pytest.param(Transformer, tokens, marks=slow)])
def test_inside_a_budget(make_model, data):
    assert check(make_model, adamw, data, budget="50%").saved_bytes > 0


@pytest.mark.parametrize("make_model, data", [pytest.param(resnet, images, marks=slow), (Transformer, tokens)])
def test_reruns(make_model, data):
    assert check(make_model, sgd, data, budget="75%", disk_budget=0).reruns > 0


def test_a_schedule_and_groups():
    def groups(parameters):
        parameters = list(parameters)
        return torch.optim.AdamW([{"params": parameters[:5], "weight_decay": 0.0}, {"params": parameters[5:], "lr": 1e-2}])

    def between(i, model, optimizer):
        for group in optimizer.param_groups:
            group["lr"] *= 0.9

    check(resnet, groups, images, between=between)


def test_looking_between_steps():
    def between(i, model, optimizer):
        model.eval()
        model(images(99)[0])
        model.train()
        optimizer.state_dict()

    check(resnet, adamw, images, budget="60%", between=between)


def test_python_drives_while_something_is_different():
    def between(i, model, optimizer):
        model.train(i not in (5, 6))  # two steps without batch statistics

    want = train(resnet, sgd, images, steps=16, between=between)
    got = train(resnet, sgd, images, "100%", steps=16, between=between)
    assert_same(want, got)
    report = got[2]
    assert report.not_replayed is None and report.deviations == []  # they have a plan of their own
    assert 4 <= report.replayed_steps <= 9


def test_numbers_that_change_are_not_replayed():
    def changing(model, x, y, seen=[]):
        seen.append(1)
        return loss_fn(model, x, y) * (1 + len(seen) / 100)

    model = resnet()
    step = tide.fit(model, sgd(model.parameters()), changing, budget="100%", replay=True)
    for i in range(14):
        step(*images(i))
    step.close()
    assert step.report.replayed_steps == 0 and "numbers" in step.report.not_replayed


def test_a_change_without_a_sign_is_found_out(monkeypatch):
    monkeypatch.setattr(replay, "CHECK_EVERY", 3)
    scale = [1.0]
    model = resnet()
    step = tide.fit(
        model, sgd(model.parameters()), lambda m, x, y: loss_fn(m, x, y) * scale[0], budget="100%", replay=True
    )
    for i in range(6):
        step(*images(i))
    scale[0] = 2.0
    with pytest.warns(RuntimeWarning, match="has changed meanwhile"):
        for i in range(6):
            step(*images(i))
    step.close()
    assert step.report.not_replayed


def test_values_that_differ_are_not_replayed():
    def branching(model, x, y):
        loss = loss_fn(model, x, y)
        return loss * 2 if loss.item() > 1e9 else loss

    report = train(Transformer, sgd, tokens, "100%", steps=14, loss_fn=branching)[2]
    assert report.replayed_steps == 0 and "reads other values" in report.not_replayed
    report = train(resnet, sgd, images, "100%", loss_fn=branching)[2]
    assert report.replayed_steps == 0 and "after the state has changed" in report.not_replayed


def test_values_that_stay_are_looked_at_in_each_replay():
    """Step 7 takes another branch: the replay is given up before anything has changed."""

    def branching(model, x, y):
        return loss_fn(model, x, y) * (2 if (x == 49).all().item() else 1)

    def data(i):
        x, y = tokens(i)
        return (torch.full_like(x, 49), y) if i == 7 else (x, y)

    want = train(Transformer, adamw, data, steps=12, loss_fn=branching)
    got = train(Transformer, adamw, data, "60%", steps=12, loss_fn=branching)
    assert_same(want, got)
    assert got[2].deviations == ["a value that Python reads is another"] and got[2].replayed_steps >= 4


def test_an_exception_in_a_replay(monkeypatch):
    """Ctrl-C in mid-step: the state is in ordinary tensors, and training goes on."""
    model = resnet()
    optimizer = adamw(model.parameters())
    step = tide.fit(model, optimizer, loss_fn, budget="60%", replay=True)
    for i in range(6):
        step(*images(i))
    before = everything(model, optimizer)
    entries = step._replay._entries
    assert entries is not None

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    step(*images(6))
    expected = everything(model, optimizer)
    entries = step._replay._entries
    half = next(e for e in entries[20:] if e.func is not None)
    half.func = interrupt
    with pytest.raises(KeyboardInterrupt):
        step(*images(7))
    weights = {n: v for n, v in everything(model, optimizer).items() if "running" not in n and "num_batches" not in n}
    assert [n for n, v in weights.items() if not torch.equal(v, expected[n])] == []
    assert before.keys() == expected.keys()
    optimizer.zero_grad()
    for i in range(4):
        assert torch.isfinite(step(*images(i)))
    step.close()


def test_results_are_the_callers():
    model = resnet()
    step = tide.fit(model, sgd(model.parameters()), loss_fn, budget="100%", replay=True)
    losses = [step(*images(i)) for i in range(8)]
    values = [float(x) for x in losses]
    step.close()
    assert values == [float(x) for x in losses] and len(set(values)) == 8
