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

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "fitzpatrick.torch needs PyTorch, which is not installed; install it with "
        "pip install 'fitzpatrick[torch]'"
    ) from error

from . import _pages, _sparse_attention, _structured, activations, functional, modules
from ._pages import *  # noqa: F403
from ._sparse_attention import *  # noqa: F403
from ._sparse_targets import SparseTargets
from ._stats import RowStats
from ._structured import *  # noqa: F403 - all that its __all__ names
from .activations import *  # noqa: F403
from .modules import *  # noqa: F403

__all__ = ["RowStats", "SparseTargets", "functional"]
__all__ += _pages.__all__
__all__ += _sparse_attention.__all__
__all__ += _structured.__all__
__all__ += activations.__all__
__all__ += modules.__all__
