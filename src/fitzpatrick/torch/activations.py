"""Links as ``torch.nn.Module``, for layers that end in a distribution, such as attention.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import Sparsemax
    >>> Sparsemax()(torch.tensor([[2.0, 1.5, -1.0]]))
    tensor([[0.7500, 0.2500, 0.0000]])
"""

import math

import torch
from torch import Tensor, nn

from .._validation import check_order
from ._activations import budget, entmax

__all__ = ["Budget", "Entmax", "Entmax15", "Sparsemax"]


class Entmax(nn.Module):
    r"""α-entmax along an axis; see :func:`.functional.entmax`.

    A learnable α is kept between 1 and 2 by a sigmoid: the parameter is log((α − 1)/(2 − α)).

    Args:
        alpha: a number, or a tensor of them, that broadcasts to the scores with one entry in place
            of the classes: shape (heads, 1, 1) for scores (batch, heads, queries, keys).
        dim: axis of the classes.
        learnable: whether α is a parameter, which starts at ``alpha``.

    Example:
        >>> import torch
        >>> layer = Entmax(torch.full((8, 1, 1), 1.5), learnable=True)  # one α per head
        >>> attention = layer(torch.zeros(2, 8, 5, 5), mask=torch.ones(5, 5).tril().bool())
        >>> attention[0, 0, 1]
        tensor([0.5000, 0.5000, 0.0000, 0.0000, 0.0000], grad_fn=<SelectBackward0>)
        >>> layer.alpha.shape
        torch.Size([8, 1, 1])
    """

    fixed_alpha: Tensor

    def __init__(
        self, alpha: float | Tensor = 1.5, dim: int = -1, *, learnable: bool = False
    ) -> None:
        super().__init__()
        self.dim = dim
        self.learnable = learnable
        self._number: float | None = None
        if not learnable and not isinstance(alpha, Tensor):
            self._number = check_order(alpha)
            return
        start = alpha if isinstance(alpha, Tensor) else torch.tensor(check_order(alpha))
        if not learnable:
            self.register_buffer("fixed_alpha", start)
            return
        if not bool(((start > 1) & (start < 2)).all()):
            raise ValueError("a learnable alpha must start strictly between 1 and 2")
        self.logit_alpha = nn.Parameter(torch.logit(start.detach().clone() - 1))

    @property
    def alpha(self) -> float | Tensor:
        """α as it is now."""
        if self._number is not None:
            return self._number
        return 1 + torch.sigmoid(self.logit_alpha) if self.learnable else self.fixed_alpha

    def forward(self, input: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: A002
        """The predictions; entries where ``mask`` is False are 0."""
        return entmax(input, self.alpha, self.dim, mask=mask)

    def extra_repr(self) -> str:
        """The arguments."""
        alpha = self.alpha
        shown = f"{alpha:g}" if isinstance(alpha, float) else f"shape {tuple(alpha.shape)}"
        return f"alpha={shown}, dim={self.dim}" + (", learnable=True" if self.learnable else "")


class Sparsemax(Entmax):
    """Sparsemax along an axis: the distribution nearest to the scores."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(2.0, dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}"


class Entmax15(Entmax):
    """1.5-entmax along an axis."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(1.5, dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}"


class Budget(nn.Module):
    """Sparsemax with a budget; see :func:`.functional.budget`.

    Args:
        budget: what the entries sum to.
        dim: axis of the classes.

    Example:
        >>> import torch
        >>> Budget(2.0)(torch.tensor([2.0, 0.9, 0.6, -1.0]))
        tensor([1.0000, 0.6500, 0.3500, 0.0000])
    """

    def __init__(self, budget: float = 2.0, dim: int = -1) -> None:
        super().__init__()
        if not (budget >= 0 and math.isfinite(budget)):
            raise ValueError(f"budget must be a finite number that is not negative, got {budget}")
        self.budget = budget
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The predictions."""
        return budget(input, self.budget, self.dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"budget={self.budget:g}, dim={self.dim}"
