"""Steps of all kinds: the same bits as without a budget, whatever the step does, and inside the budget also beside a plan."""

import sys

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional

import tidemark
import tidemark.torch as tide
from tidemark.torch.allocator import RELEASED
from tidemark.torch.capture import Call, Recording

from models import everything


def numbers(*shape, high=None):
    """Batches: the same numbers in every run."""

    def data(i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(shape, generator=g) if high is None else torch.randint(0, high, shape, generator=g)

    return data


def run(make, budget, steps=8, **options):
    """What steps return, what is left and the report. make: modules, optimizers, the step and its data."""
    torch.manual_seed(0)
    modules, optimizers, step, data = make()
    if budget is not None:
        step = tide.step(budget=budget, modules=modules, optimizers=optimizers, **options)(step)
    torch.manual_seed(1)
    found = [step(*data(i)) for i in range(steps)]
    if budget is not None:
        step.close()
    left = [v for m in modules for v in m.state_dict().values()]
    left += [v for m, o in zip(modules, optimizers) for v in everything(m, o).values()]
    return found, left, step.report if budget is not None else None


def check(make, budget, planned=None, steps=8, **options):
    want, got = run(make, None, steps), run(make, budget, steps, **options)
    for a, b in zip(want[0], got[0], strict=True):
        assert torch.equal(torch.as_tensor(a), torch.as_tensor(b))
    assert all(torch.equal(a, b) for a, b in zip(want[1], got[1], strict=True))
    report = got[2]
    assert report.arena_bytes <= report.budget_bytes and report.online_peak_bytes <= report.budget_bytes
    if planned is not None:
        assert (report.planned_steps, report.deviations, report.outside_count) == (planned, [], 0)
    return report


def usual(model, optimizer, loss_fn):
    def step(*batch):
        loss = loss_fn(model, *batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return [model], [optimizer], step


def adamw(model):
    return torch.optim.AdamW(model.parameters(), 1e-3)


def mlp(*widths):
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


def classify(model, x, y):
    return functional.cross_entropy(model(x), y)


def labelled(n, width, classes):
    x, y = numbers(n, width), numbers(n, high=classes)
    return lambda i: (x(i), y(i))


def test_an_op_that_runs_out_of_room_begins_again():
    """The attempt must not be in the recording: addresses of its allocations came up twice."""

    def make():
        layers = []
        for _ in range(2):
            layers += [nn.Conv2d(16, 16, 7, padding=3, groups=16), nn.GELU(), nn.Conv2d(16, 16, 1)]
        model = nn.Sequential(nn.Conv2d(3, 16, 4, 4), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
        x, y = numbers(2, 3, 32, 32), numbers(2, high=10)
        return *usual(model, adamw(model), classify), lambda i: (x(i), y(i))

    want = run(make, "100%", 3)[2].unconstrained_bytes
    for percent in 60, 70, 80, 90:
        try:
            check(make, want * percent // 100, 6)
        except tidemark.FitError:
            continue
        break
    else:
        pytest.fail("no budget is enough")


def check_smallest(make):
    """In the smallest budget that the recorded step has a plan for. With other costs it may be a little more, but steps without a
    plan must not want more than that."""
    report = run(make, "100%", 3)[2]
    size = tidemark.smallest(report.plan.program, report.plan.machine, effort="low").works_bytes
    size += report.arena_bytes - report.plan.arena_bytes  # what no plan can place
    for _ in range(5):
        try:
            return check(make, size, 6)
        except tidemark.FitError as error:
            assert error.needed_bytes > size, error
            size = error.needed_bytes
    pytest.fail("no budget is enough")


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_what_is_enough_for_a_plan_is_enough_to_learn_it(kind):
    """Numbers that never leave, and blocks that are no whole pages, must not take room from steps without a plan."""

    def make():
        model = mlp(64, 128, 121, 10)
        return *usual(model, getattr(torch.optim, kind)(model.parameters()), classify), labelled(32, 64, 10)

    check_smallest(make)


def test_random_numbers_of_own_generators_come_again():
    """Where ops run again, with and without a plan."""

    def make():
        layers, generator = nn.ModuleList(nn.Linear(64, 64) for _ in range(6)), torch.Generator().manual_seed(3)

        def loss_fn(layers, x):
            for layer in layers:
                x = torch.tanh(layer(x)) * torch.rand(x.shape, generator=generator)
            return x.pow(2).mean()

        model = nn.ModuleList(layers)
        return *usual(model, torch.optim.SGD(model.parameters(), 0.1), loss_fn), lambda i: (numbers(256, 64)(i),)

    assert check(make, "60%", 6, disk_budget=0).reruns > 0
    check_smallest(make)


@pytest.mark.parametrize("reentrant", [True, False])
def test_states_of_random_numbers_that_checkpoints_keep(reentrant):
    """Python allocates them, no op, 5 KB for each block: they are inside the budget, too."""

    def make():
        blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Dropout(0.2)) for _ in range(5))
        first = nn.Linear(16, 64)

        def loss_fn(model, x):
            x = model[0](x)
            for block in model[1]:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=reentrant)
            return x.pow(2).mean()

        model = nn.ModuleList([first, blocks])
        return *usual(model, adamw(model), loss_fn), lambda i: (numbers(256, 16)(i),)

    whole = check(make, "100%", 6).unconstrained_bytes
    check(make, whole * 6 // 10, 6)


def test_numbers_that_ops_make_now_and_then():
    """For each row that is too long."""

    def make():
        model = nn.Sequential(nn.Embedding(100, 16, max_norm=1.0), nn.Flatten(), nn.Linear(128, 4))
        words = numbers(16, 8, high=100)
        return *usual(model, adamw(model), classify), lambda i: (words(i), numbers(16, high=4)(i))

    check(make, "100%", 6)


def test_zeros_that_autograd_makes_without_bytes():
    def make():
        model, data = mlp(8, 16, 1), numbers(16, 8)

        def loss_fn(model, x):
            value = lambda row: torch.func.functional_call(model, dict(model.named_parameters()), (row,)).squeeze()  # noqa: E731
            return torch.func.vmap(torch.func.hessian(value))(x).pow(2).mean()

        return *usual(model, adamw(model), loss_fn), lambda i: (data(i),)

    want = check(make, "100%", 6).unconstrained_bytes
    check(make, want * 7 // 10, 6)


@pytest.mark.parametrize("fixed", [True, False])
def test_packed_sequences(fixed):
    """PyTorch reads the sizes of packed batches without an op; with other lengths shapes are others in every step."""

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.head = nn.Embedding(50, 16), nn.GRU(16, 24, batch_first=True), nn.Linear(24, 50)

        def forward(self, words, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(self.embed(words), lengths, True, enforce_sorted=False)
            out, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], True, total_length=words.shape[1])
            return self.head(out).flatten(0, 1)

    def make():
        model = Tagger()
        words, lengths = numbers(6, 8, high=50), numbers(6, high=8)
        loss = lambda m, w, n: functional.cross_entropy(m(w, n), w.flatten())  # noqa: E731
        return *usual(model, adamw(model), loss), lambda i: (words(i), 1 + lengths(0 if fixed else i))

    assert (check(make, "80%").deviations == []) == fixed


def selecting():
    """A mask chooses rows, two experts work on the rows that they are given, gradients of words are sparse."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.gate = nn.Embedding(500, 32, sparse=True), nn.Linear(32, 2)
            self.experts, self.head = nn.ModuleList(nn.Linear(32, 32) for _ in range(2)), nn.Linear(32, 10)

        def forward(self, words):
            x = self.embed(words)
            chosen, found = self.gate(x).argmax(1), torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                rows = torch.where(chosen == i)[0]
                found = found.index_add(0, rows, expert(x[rows]).relu())
            return self.head(found[found.sum(1) > 0]).logsumexp(1).sum()

    model = Model()
    first, second = torch.optim.SparseAdam([model.embed.weight]), torch.optim.SGD([*model.parameters()][1:], 0.01)

    def step(words):
        loss = model(words)
        loss.backward()
        for optimizer in first, second:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return [model], [first, second], step, lambda i: (numbers(64, high=500)(i),)


@pytest.mark.parametrize("budget", ["100%", "80%"])
def test_sizes_that_depend_on_values(budget):
    """Two recordings show which, and the plan has room for more."""
    report = check(selecting, budget, steps=12)
    assert report.planned_steps >= 7 and report.outside_count == 0, report


def test_what_no_plan_can_place_has_room_for_other_sizes():
    def recorded(key, size):
        call = Call(torch.ops.aten.nonzero.default, [], [], allocations=[(key, size)])
        return Recording(calls=[call], loose=[(key, size), (key, RELEASED)])

    now = recorded(1, 6400)
    now.take_room(recorded(2, 12800))
    assert now.room == {1: 16000} and now.loose == [(1, 16000), (1, RELEASED)]


def test_sizes_are_remembered_of_a_few_steps_and_state_of_none(monkeypatch):
    """However many shapes come once."""
    monkeypatch.setattr(sys.modules["tidemark.torch.step"], "MAX_PLANS", 2)
    modules, optimizers, step, _ = selecting()
    step = tide.step(budget="16MiB", modules=modules, optimizers=optimizers)(step)
    for n in range(60, 66):
        step(numbers(n, high=500)(n))
    assert len(step._outgrown) == 2 and step._sized == step._outgrown.keys()
    assert not any(recording.before for recording in step._outgrown.values())
    step.close()


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_scripted_models_can_be_used_between_steps():
    """They take no hooks, so their state is at home after each step."""

    def make():
        model = torch.jit.script(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)))
        optimizer, data = adamw(model), labelled(8, 32, 10)

        def look(i):
            assert all(torch.isfinite(p).all() for p in model.parameters())
            return data(i)

        return *usual(model, optimizer, classify)[:3], look

    with torch.jit.optimized_execution(False):  # which learns in its first runs, and changes bits with that
        assert check(make, "60%", 6).homecomings > 0


def test_without_room_for_other_sizes_there_is_no_plan():
    """But the step goes on in what it takes with its own."""

    def make():
        model = nn.ModuleList([nn.Embedding(100, 16), nn.AdaptiveLogSoftmaxWithLoss(16, 100, [10, 40])])
        words = numbers(64, high=100)
        return *usual(model, adamw(model), lambda m, x: m[1](m[0](x), (x + 1) % 100).loss), lambda i: (words(i),)

    report = check(make, "44%")
    assert report.planned_steps == 0 and report.plan is None
    assert 0 < report.online_peak_bytes <= report.budget_bytes < report.unconstrained_bytes


def test_a_deviating_step_that_does_not_fit_is_refused_and_leaves_ordinary_tensors():
    model = mlp(32, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    rows = [64]

    @tide.step(budget="90%", disk_budget=4096, modules=[model], optimizers=[optimizer])
    def step(x):
        loss = model(x.repeat(rows[0] // 64, 1)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    for i in range(4):
        step(numbers(64, 32)(i))
    assert step.report.planned_steps == 2
    rows[0] = 4096
    with pytest.raises(tidemark.FitError):
        step(numbers(64, 32)(5))
    assert all(torch.isfinite(p).all() for p in model.parameters())
    step.close()


def test_gradients_over_several_calls():
    def make():
        model = mlp(32, 64, 64, 10)
        optimizer, calls = adamw(model), [0]

        def step(x, y):
            loss = classify(model, x, y) / 3
            loss.backward()
            calls[0] += 1
            if calls[0] % 3 == 0:
                optimizer.step()
                optimizer.zero_grad()
            return loss.detach()

        return [model], [optimizer], step, labelled(64, 32, 10)

    check(make, "80%")


def test_values_that_outlive_their_step():
    """Lists of losses, arrays, lists of numbers: what people do beside training."""

    def make():
        model = mlp(32, 64, 64, 10)
        optimizer, losses, arrays, counts = adamw(model), [], [], []

        def step(x, y):
            out = model(x)
            loss = functional.cross_entropy(out, y)
            guess = out.argmax(1)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            counts.append(sum(guess.tolist()))
            losses.append(loss.detach())
            arrays.append(out.detach().numpy())
            model.last = out.detach()
            return loss.detach()

        def data(i):
            if i == 7:  # all of them are as they were
                seen = [*losses, *map(torch.tensor, arrays), torch.tensor(counts), model.last]
                model.register_buffer("seen", torch.cat([s.flatten().float() for s in seen]))
            return labelled(64, 32, 10)(i)

        return [model], [optimizer], step, data

    check(make, "70%", 6)


@pytest.mark.parametrize("budget", ["100%", "70%"])
def test_a_look_now_and_then_at_what_the_step_still_holds(budget):
    """No op of the recorded step needs it any more."""

    def make():
        model = mlp(32, 64, 64, 64, 64, 64, 10)
        optimizer, calls = adamw(model), [0]

        def step(x, y):
            hidden = model[:4](x)
            out = model[4:](hidden)
            loss = functional.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            calls[0] += 1
            if calls[0] % 4 == 0:
                return (out.argmax(1) == y).float().mean() + hidden.norm()
            return loss.detach()

        return [model], [optimizer], step, labelled(64, 32, 10)

    report = check(make, budget)
    assert (report.planned_steps, len(report.deviations)) == (4, 2)


def step_by_closure(model, optimizer):
    def step(x, y):
        def closure():
            optimizer.zero_grad()
            loss = classify(model, x, y)
            loss.backward()
            return loss

        return optimizer.step(closure).detach()

    return step


def test_a_line_search_that_takes_as_long_as_it_takes():
    def make():
        model = mlp(16, 32, 3)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=4, line_search_fn="strong_wolfe")

        return [model], [optimizer], step_by_closure(model, optimizer), labelled(32, 16, 3)

    check(make, "100%")


def test_values_that_each_step_replaces():
    """Hidden states from batch to batch, averages by hand, masks made by others: no state with a place of its own."""

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.head = nn.Embedding(50, 16), nn.LSTM(16, 24, 2), nn.Linear(24, 50)

    def make():
        model = Reader()
        optimizer, kept = adamw(model), {"hidden": None, "average": torch.zeros(50, 24)}

        def step(words, answers):
            out, hidden = model.rnn(model.embed(words), kept["hidden"])
            mask = torch.from_numpy(numpy.arange(out.numel(), dtype="float32").reshape(out.shape) % 3 > 0)
            loss = functional.cross_entropy(model.head(out * mask).flatten(0, 1), answers)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            kept["hidden"] = tuple(h.detach() for h in hidden)
            kept["average"] = 0.9 * kept["average"] + 0.1 * model.head.weight.detach()
            return loss.item() + kept["average"].sum()

        words, answers = numbers(12, 8, high=50), numbers(96, high=50)
        return [model], [optimizer], step, lambda i: (words(i), answers(i))

    whole = check(make, "100%", 5).unconstrained_bytes
    replaced = 4 * 50 * 24 + 12 * 8 * 24 + 2 * 4 * 2 * 8 * 24  # the average, the mask and the hidden states
    assert check(make, whole * 9 // 10, 5).arena_bytes + replaced <= whole * 9 // 10


def test_what_a_step_leaves_is_computed_again_at_its_end():
    """It was dropped in mid-step, and no op needs it any more."""

    def make():
        model = mlp(64, 64, 64, 64, 10)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step(x, y):
            wide = (x * 2).repeat(1, 4)
            classify(model, x, y).backward()
            optimizer.step()
            optimizer.zero_grad()
            return wide

        return [model], [optimizer], step, labelled(256, 64, 10)

    plan = check(make, "70%", 6, disk_budget=0).plan
    assert plan.actions()[-1].kind == "run" and plan.actions()[-1].op < plan.program.n_ops - 1


def test_two_optimizers_that_take_turns():
    def make():
        maker = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.LeakyReLU(0.2, inplace=True), nn.Linear(64, 32))
        judge = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(64, 1))
        first, second = torch.optim.Adam(maker.parameters()), torch.optim.RMSprop(judge.parameters())

        def step(real):
            made = maker(torch.randn(len(real), 8))
            judge.zero_grad()
            loss = functional.softplus(-judge(real)).mean() + functional.softplus(judge(made.detach())).mean()
            loss.backward()
            second.step()
            maker.zero_grad()
            functional.softplus(-judge(made)).mean().backward()
            first.step()
            return loss.detach()

        return [maker, judge], [first, second], step, lambda i: (numbers(64, 32)(i),)

    check(make, "70%", 6)


def test_sparse_gradients():
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(300, 16, sparse=True), nn.Linear(16, 10)

        def forward(self, x):
            return self.head(self.embed(x).mean(1))

    def make():
        model, x, y = Bag(), numbers(32, 8, high=300), numbers(32, high=10)
        return *usual(model, torch.optim.SGD(model.parameters(), 0.01), classify), lambda i: (x(i), y(i))

    check(make, "95%", 6)


def test_batches_and_results_in_mappings():
    def make():
        model = mlp(32, 64, 64, 10)
        optimizer = adamw(model)

        def step(batch):
            loss = classify(model, batch["x"], batch["more"]["y"])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return {"loss": loss.detach()}

        kept = []

        def plain(batch):
            kept.append(step(batch)["loss"])
            return kept[0]

        data = labelled(64, 32, 10)
        return [model], [optimizer], plain, lambda i: ({"x": data(i)[0], "more": {"y": data(i)[1]}},)

    check(make, "70%", 6)


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("Adagrad", "RMSprop", "NAdam", "Rprop", "LBFGS")]


@pytest.mark.parametrize("kind", ["Adafactor", *SLOW])
def test_optimizers(kind):
    def make():
        model = mlp(32, 64, 64, 10)
        optimizer = getattr(torch.optim, kind)(model.parameters(), **({"max_iter": 3} if kind == "LBFGS" else {}))

        return [model], [optimizer], step_by_closure(model, optimizer), labelled(64, 32, 10)

    check(make, "85%")
