"""α-entmax with an order of the user's choice, or one for each row that is learned."""

from torch import Tensor

from .._validation import check_order
from ..engines.triton.scale import working_dtype
from ..regularizers import Tsallis
from ._arguments import check_scores, check_weight, class_dim, looks_at_values, rows_along
from ._autograd import entmax_rows
from ._handles import handle_of
from ._losses import class_loss, link

__all__ = ["entmax", "entmax_loss"]


def entmax(input: Tensor, alpha: Tensor | float = 1.5, dim: int = -1) -> Tensor:  # noqa: A002
    r"""α-entmax: the link of ``Tsallis(alpha)``, sparse for α > 1.

    .. math:: \hat y(\theta) = \operatorname{argmax}_{y \in \triangle}\;
              \langle y, \theta\rangle - \frac{1}{\alpha(\alpha - 1)} \sum_i (y_i^\alpha - y_i),

    the soft argmax for α = 1 and :func:`sparsemax` for α = 2.

    Args:
        input: scores. Half precision is computed in float32.
        alpha: a number from 1 to 2, or a tensor of such numbers that broadcasts to ``input``, with
            one for all entries along ``dim``: an order of its own for each attention head, say.
        dim: axis of the classes.

    Returns:
        A tensor like ``input``, differentiable once, in a tensor ``alpha``, too.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores = torch.tensor([[1.0, 0.5, -3.0]]).repeat(2, 1)
        >>> alpha = torch.tensor([[1.0], [1.5]], requires_grad=True)
        >>> predictions = F.entmax(scores, alpha)
        >>> [[round(p, 4) for p in row] for row in predictions.tolist()]
        [[0.6154, 0.3733, 0.0113], [0.674, 0.326, 0.0]]
        >>> predictions[:, 0].sum().backward()
        >>> [[round(slope, 3) for slope in row] for row in alpha.grad.tolist()]
        [[0.153], [0.124]]
    """
    if not isinstance(alpha, Tensor):
        return link(handle_of(Tsallis(check_order(alpha))), input, dim)
    check_scores(input)
    check_weight(alpha, input, "alpha")
    axis = class_dim(input, dim)
    shape = (*input.shape[:axis], 1, *input.shape[axis + 1 :])
    try:
        orders = alpha.expand(shape)
    except RuntimeError as error:
        raise ValueError(
            f"alpha of shape {tuple(alpha.shape)} does not broadcast to {shape}, one order for "
            f"each row of input along dim={dim}"
        ) from error
    if looks_at_values(None, alpha):
        outside = ~((alpha >= 1) & (alpha <= 2))
        if bool(outside.any()):
            raise ValueError(f"alpha must be between 1 and 2, got {float(alpha[outside][0])}")
    if input.numel() == 0:
        return input.clone()
    moved = input.movedim(axis, -1)
    column = rows_along(orders.to(working_dtype(input)), axis)
    rows: Tensor = entmax_rows(rows_along(input, axis), column)
    return rows.reshape(moved.shape).movedim(-1, axis)


def entmax_loss(
    input: Tensor,  # noqa: A002
    target: Tensor,
    alpha: float = 1.5,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    tightness: float = 0.0,
    dim: int | None = None,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    """Loss of ``Tsallis(alpha)``, at class indices or proportions; its link is :func:`entmax`.

    Args:
        input: scores.
        target: class indices or proportions.
        alpha: a number from 1 to 2: the logistic loss at 1, the sparsemax loss at 2.
        weight: this and the other arguments are explained in :func:`fitzpatrick_logistic_loss`.
        ignore_index: likewise.
        reduction: likewise.
        label_smoothing: likewise.
        tightness: 0 for the Fenchel-Young loss, 1 for the Fitzpatrick loss.
        dim: axis of the classes.
        engine: as there.
        validate: as there.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.entmax_loss(scores, target, 1.3).item(), 4)
        0.6294
        >>> round(F.entmax_loss(scores, target, 1.3, tightness=1.0).item(), 4)
        0.2867
    """
    omega = handle_of(Tsallis(check_order(alpha)))
    options = weight, ignore_index, reduction, label_smoothing
    return class_loss(
        omega, tightness, input, target, *options, dim=dim, engine=engine, validate=validate
    )
