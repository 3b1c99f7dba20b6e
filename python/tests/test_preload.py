"""Plain PyTorch, not changed at all, with its large blocks from the pool of libtidemark-preload.so."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tidemark

TRAINING = """
import hashlib, torch
from models import images, loss_fn, resnet
torch.manual_seed(0)
torch.set_num_threads(1)
model = resnet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for i in range(12):
    loss = loss_fn(model, *(t.repeat_interleave(2, 0) for t in images(i)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
"""


def find_preload() -> Path:
    asked = os.environ.get("TIDEMARK_LIBRARY")
    folder = Path(asked).parent if asked else Path(tidemark.__file__).parent / "lib"
    return folder / "libtidemark-preload.so"


def train(**environment):
    done = subprocess.run(
        [sys.executable, "-c", TRAINING], cwd=Path(__file__).parent, capture_output=True, text=True, check=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout, done.stderr


def test_training_under_preload():
    preload = find_preload()
    if not preload.exists():
        pytest.fail(f"{preload} is not there")
    want, _ = train()
    got, said = train(LD_PRELOAD=str(preload), TIDEMARK_PRELOAD_STATS="-", TIDEMARK_PRELOAD_MIN="100000")
    assert got == want
    large, planned = map(int, re.search(r"(\d+) large blocks, (\d+) of them planned", said).groups())
    assert large > 500 and planned > large / 2
