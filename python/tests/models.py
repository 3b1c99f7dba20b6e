"""Small models of the kinds that people train, and a loop that trains them with and without a budget."""

import torch
from torch import nn

import tidemark.torch as tide


class Block(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.short = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.short = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.short(x))


def resnet():
    """ResNet-18's structure, narrower."""
    layers, width = [nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)], 8
    for n_out, stride in ((8, 1), (8, 1), (16, 2), (16, 1), (32, 2), (32, 1)):
        layers.append(Block(width, n_out, stride))
        width = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def images(step):
    g = torch.Generator().manual_seed(step)
    return torch.randn(8, 3, 32, 32, generator=g), torch.randint(0, 10, (8,), generator=g)


class Transformer(nn.Module):
    """Three layers with dropout."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(32, 50)

    def forward(self, x):
        return self.head(self.layers(self.embed(x))).flatten(0, 1)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.lstm = nn.LSTM(32, 32, 2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(32, 50)

    def forward(self, x):
        return self.head(self.lstm(self.embed(x))[0]).flatten(0, 1)


def tokens(step):
    g = torch.Generator().manual_seed(step)
    return torch.randint(0, 50, (8, 24), generator=g), torch.randint(0, 50, (8 * 24,), generator=g)


def loss_fn(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def everything(model, optimizer):
    """All tensors that training leaves, by name."""
    found = {f"model.{name}": value for name, value in model.state_dict().items()}
    for i, state in optimizer.state_dict()["state"].items():
        found.update({f"optimizer.{i}.{name}": v for name, v in state.items() if isinstance(v, torch.Tensor)})
    return {name: value.clone() for name, value in found.items()}


def plain_step(model, optimizer):
    """What tide.fit does, without it."""

    def step(*batch):
        loss = loss_fn(model, *batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def train(make_model, make_optimizer, data, budget=None, steps=6, make_step=plain_step, **options):
    """Losses, everything that is left, and the report of a budgeted run."""
    torch.manual_seed(0)
    model = make_model()
    optimizer = make_optimizer(model.parameters())
    step = make_step(model, optimizer)
    if budget is not None:
        step = tide.step(budget=budget, modules=[model], optimizers=[optimizer], **options)(step)
    losses = [step(*data(i)).clone() for i in range(steps)]
    if budget is not None:
        step.close()
    return losses, everything(model, optimizer), step.report if budget is not None else None


def assert_same(want, got):
    """Losses and everything that is left, bit for bit."""
    assert all(torch.equal(a, b) for a, b in zip(want[0], got[0], strict=True))
    assert want[1].keys() == got[1].keys()
    assert [name for name in want[1] if not torch.equal(want[1][name], got[1][name])] == []
