"""Names of the losses: one line here puts a regulariser into every front end and every test."""

import difflib

from ..regularizers import Bernoulli, Indicator, Negentropy, Regularizer, SquaredNorm, Tsallis
from ..sets import Box, Orthant, Simplex
from ._base import FenchelYoungLoss, FitzpatrickLoss, Loss

# Fenchel-Young name → Ω; the Fitzpatrick loss has the same name with the prefix fitzpatrick_.
_PAIRS: dict[str, Regularizer] = {
    "squared": SquaredNorm(),
    "logistic": Negentropy(),
    "sparsemax": SquaredNorm(Simplex()),
    "entmax15": Tsallis(1.5),
    "sigmoid": Bernoulli(),
    "sparse_sigmoid": SquaredNorm(Box()),
    "poisson": Negentropy(Orthant()),
}

_LOSSES: dict[str, Loss] = {
    # its own Fitzpatrick loss
    "perceptron": FenchelYoungLoss(Indicator(Simplex())),
    **{name: FenchelYoungLoss(omega) for name, omega in _PAIRS.items()},
    **{f"fitzpatrick_{name}": FitzpatrickLoss(omega) for name, omega in _PAIRS.items()},
}


def loss_names() -> list[str]:
    """Names that :func:`get_loss` knows, sorted.

    Example:
        >>> loss_names()[:3]
        ['entmax15', 'fitzpatrick_entmax15', 'fitzpatrick_logistic']
    """
    return sorted(_LOSSES)


def get_loss(name: str | Loss) -> Loss:
    """The loss of that name; a loss object is returned as it is.

    Example:
        >>> get_loss("fitzpatrick_logistic")
        FitzpatrickLoss(regularizer=Negentropy(domain=Simplex()))
        >>> get_loss("logistics")
        Traceback (most recent call last):
        ...
        ValueError: unknown loss 'logistics'; did you mean ...'logistic'...
    """
    if isinstance(name, Loss):
        return name
    if str(name) in _LOSSES:
        return _LOSSES[str(name)]
    near = difflib.get_close_matches(str(name), loss_names(), n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}? The" if near else "the"
    raise ValueError(f"unknown loss {name!r}; {hint} names are {', '.join(loss_names())}")
