"""The losses in PyTorch: functions, modules, and the links as activation functions.

Example:
    One line changes, ``CrossEntropyLoss`` → ``FitzpatrickLogisticLoss``:

    >>> import torch
    >>> from fitzpatrick.torch import FitzpatrickLogisticLoss
    >>> model = torch.nn.Linear(5, 3)
    >>> criterion = FitzpatrickLogisticLoss()
    >>> criterion(model(torch.ones(4, 5)), torch.tensor([0, 1, 2, 2])).backward()
    >>> model.weight.grad.shape
    torch.Size([3, 5])
"""

# Written by tools/write_torch.py: change that and run it again.

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "fitzpatrick.torch needs PyTorch, which is not installed; install it with "
        "pip install 'fitzpatrick[torch]'"
    ) from error

from . import functional
from .modules import (
    Entmax15Loss,
    FenchelYoungLoss,
    FitzpatrickEntmax15Loss,
    FitzpatrickLogisticLoss,
    FitzpatrickLoss,
    FitzpatrickPoissonLoss,
    FitzpatrickSigmoidLoss,
    FitzpatrickSparsemaxLoss,
    FitzpatrickSparseSigmoidLoss,
    FitzpatrickSquaredLoss,
    LogisticLoss,
    LossModule,
    PerceptronLoss,
    PoissonLoss,
    SigmoidLoss,
    SparsemaxLoss,
    SparseSigmoidLoss,
    SquaredLoss,
)

__all__ = [
    "Entmax15Loss",
    "FenchelYoungLoss",
    "FitzpatrickEntmax15Loss",
    "FitzpatrickLogisticLoss",
    "FitzpatrickLoss",
    "FitzpatrickPoissonLoss",
    "FitzpatrickSigmoidLoss",
    "FitzpatrickSparseSigmoidLoss",
    "FitzpatrickSparsemaxLoss",
    "FitzpatrickSquaredLoss",
    "LogisticLoss",
    "LossModule",
    "PerceptronLoss",
    "PoissonLoss",
    "SigmoidLoss",
    "SparseSigmoidLoss",
    "SparsemaxLoss",
    "SquaredLoss",
    "functional",
]
