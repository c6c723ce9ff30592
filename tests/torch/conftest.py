"""Inputs for the PyTorch tests; kernels run in Triton's interpreter where there is no GPU."""

import os

import pytest
import torch

# read when the kernels are defined, before any test imports them
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from interpreter import patch_language_once

from fitzpatrick import get_loss, loss_names
from fitzpatrick.torch._losses import Kind, kind_of

patch_language_once()

CLASS_LOSSES = [name for name in loss_names() if kind_of(get_loss(name)) is Kind.CLASSES]
ENTRY_LOSSES = [name for name in loss_names() if kind_of(get_loss(name)) is Kind.ENTRIES]


def targets_like(name: str, theta: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Targets strictly inside the domain of a loss, with the shape of theta."""
    u = torch.rand(theta.shape, dtype=theta.dtype, generator=generator) * 0.8 + 0.1
    return u / u.sum(-1, keepdim=True) if name in CLASS_LOSSES else u


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20241)


@pytest.fixture
def scores(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(5, 4, dtype=torch.float64, generator=generator)
