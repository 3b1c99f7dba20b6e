"""Tests run on one thread: other people's work beside them must not matter."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)
