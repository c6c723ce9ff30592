"""Losses by name: the one list that feeds every front end and every test."""

import difflib

from ..regularizers import Bernoulli, Indicator, Negentropy, Regularizer, SquaredNorm, Tsallis
from ..sets import Box, Orthant, Simplex
from ._base import FenchelYoungLoss, FitzpatrickLoss, Loss

# Each name stands for Ω, for its Fenchel-Young loss and for its link.
_REGULARIZERS: dict[str, Regularizer] = {
    "squared": SquaredNorm(),
    "perceptron": Indicator(Simplex()),
    "logistic": Negentropy(),
    "sparsemax": SquaredNorm(Simplex()),
    "entmax15": Tsallis(1.5),
    "sigmoid": Bernoulli(),
    "sparse_sigmoid": SquaredNorm(Box()),
    "poisson": Negentropy(Orthant()),
}


def _ends(name: str) -> dict[str, Loss]:
    """The named losses of a regularizer: tightness 0, and tightness 1 where that is another."""
    omega = _REGULARIZERS[name]
    if not omega.has_curvature:
        return {name: FenchelYoungLoss(omega)}
    return {name: FenchelYoungLoss(omega), f"fitzpatrick_{name}": FitzpatrickLoss(omega)}


_ENDS: dict[str, dict[str, Loss]] = {name: _ends(name) for name in _REGULARIZERS}
_LOSSES: dict[str, Loss] = {name: loss for ends in _ENDS.values() for name, loss in ends.items()}


def loss_names() -> list[str]:
    """Names that :func:`get_loss` knows, sorted.

    Example:
        >>> loss_names()[:3]
        ['entmax15', 'fitzpatrick_entmax15', 'fitzpatrick_logistic']
    """
    return sorted(_LOSSES)


def regularizers_by_name() -> dict[str, Regularizer]:
    """Every Ω of the registry, under the name of its Fenchel-Young loss and of its link."""
    return dict(_REGULARIZERS)


def ends(name: str) -> tuple[str, ...]:
    """The names of all losses that share the regularizer of ``name``, the tightest last.

    Example:
        >>> ends("fitzpatrick_logistic"), ends("perceptron")
        (('logistic', 'fitzpatrick_logistic'), ('perceptron',))
    """
    return next(tuple(group) for group in _ENDS.values() if name in group)


def name_of(loss: Loss) -> str | None:
    """The registry name of a loss; None where it has none.

    Example:
        >>> name_of(FitzpatrickLoss(Negentropy())), name_of(FitzpatrickLoss(Negentropy(), 0.5))
        ('fitzpatrick_logistic', None)
    """
    return next((name for name, known in _LOSSES.items() if known == loss), None)


def get_loss(name: str | Loss, tightness: float | None = None) -> Loss:
    """The loss of a name, at its own tightness or at another one; loss objects are passed through.

    Args:
        name: one of :func:`loss_names`, or a loss.
        tightness: a number that replaces 1, the tightness of a Fitzpatrick loss: 0 is the
            Fenchel-Young loss, and larger numbers lie beyond the Fitzpatrick loss.

    Example:
        >>> get_loss("fitzpatrick_logistic")
        FitzpatrickLoss(regularizer=Negentropy(domain=Simplex()))
        >>> get_loss("fitzpatrick_logistic", tightness=0.5).tightness
        0.5
        >>> get_loss("logistics")
        Traceback (most recent call last):
        ...
        ValueError: unknown loss 'logistics'; did you mean ...'logistic'...
    """
    loss = name if isinstance(name, Loss) else _find(str(name))
    if tightness is None:
        return loss
    if getattr(loss, "order", None) is not None and tightness != loss.tightness:
        raise ValueError(f"{loss!r} has an order, which excludes a tightness of {tightness!r}")
    other = FitzpatrickLoss(loss.regularizer, tightness)
    if other == loss or not loss.regularizer.has_curvature:
        return loss
    if isinstance(loss, FenchelYoungLoss):
        named = ends(name)[-1] if isinstance(name, str) else "FitzpatrickLoss"
        raise ValueError(
            f"{name!r} is a Fenchel-Young loss, of tightness 0; "
            f"for tightness={other.tightness:g} use {named!r}"
        )
    return other


def _find(name: str) -> Loss:
    if name in _LOSSES:
        return _LOSSES[name]
    near = difflib.get_close_matches(name, loss_names(), n=2, cutoff=0.85)
    hint = f"did you mean {' or '.join(map(repr, near))}? The" if near else "the"
    raise ValueError(f"unknown loss {name!r}; {hint} names are {', '.join(loss_names())}")
