"""One network in PyTorch, a training step per line of input: what bench_train compares with.

    torch_step.py resnet50|gpt2 BATCH THREADS [channels_last] [checkpoint]

Prints "ready VERSION" after two steps, then "SECONDS CPU_SECONDS PEAK_KIB" for each line it reads. The peak is that of
resident memory since the network was made, less what the interpreter and the library had before.
"""

import math
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.shortcut is None else self.shortcut(x)
        return self.relu(y)


class ResNet50(nn.Module):
    def __init__(self, checkpointed):
        super().__init__()
        self.checkpointed = checkpointed
        relu = nn.ReLU(inplace=True)
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), relu, nn.MaxPool2d(3, 2, 1)
        )
        blocks, inputs = [], 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for i in range(count):
                width = 64 << stage
                blocks.append(Bottleneck(inputs, width, 2 if stage and i == 0 else 1))
                inputs = 4 * width
        self.blocks = nn.ModuleList(blocks)
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.fc(x.mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        n, t, width = x.shape
        q, k, v = (p.view(n, t, self.heads, -1).transpose(1, 2) for p in self.qkv(x).split(width, 2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            future = torch.ones(t, t, dtype=torch.bool).triu(1)
            y = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(n, t, width))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, checkpointed, width=768, heads=12, layers=12, vocabulary=50257, context=256):
        super().__init__()
        self.checkpointed = checkpointed
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointed else layer(x)
        return F.linear(self.ln(x), self.tokens.weight).flatten(0, 1)


def fastest(optimizer, parameters, **options):
    """The fused form, where the version has one for the CPU."""
    parameters = list(parameters)
    try:
        return optimizer(parameters, fused=True, **options)
    except (RuntimeError, TypeError):
        return optimizer(parameters, **options)


def make(name, batch, flags):
    checkpointed = "checkpoint" in flags
    torch.manual_seed(1)
    if name == "gpt2":
        model = GPT2(checkpointed)
        x = torch.randint(50257, (batch, 256))
        return model, x, torch.randint(50257, (batch * 256,)), fastest(torch.optim.AdamW, model.parameters(), lr=1e-4)
    model, x = ResNet50(checkpointed), torch.randn(batch, 3, 224, 224)
    if "channels_last" in flags:
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    sgd = fastest(torch.optim.SGD, model.parameters(), lr=1e-3, momentum=0.9)
    return model, x, torch.randint(1000, (batch,)), sgd


def memory_kib(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field + ":"))


def step(model, x, labels, optimizer):
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(model(x), labels).backward()
    optimizer.step()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    name, batch, threads, flags = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    torch.set_num_threads(threads)
    before = memory_kib("VmRSS")
    state = make(name, batch, flags)
    for _ in range(2):
        step(*state)
    print("ready", torch.__version__, flush=True)
    for _ in sys.stdin:
        start, cpu = time.perf_counter(), cpu_seconds()
        step(*state)
        seconds = time.perf_counter() - start
        print(f"{seconds:.6f} {cpu_seconds() - cpu:.6f} {memory_kib('VmHWM') - before}", flush=True)


if __name__ == "__main__":
    main()
