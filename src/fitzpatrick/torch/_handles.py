"""Strings that stand for regularizers.

A PyTorch operator takes tensors, numbers and strings. A regularizer travels through one as a
string: its registry name, or a key made here for a regularizer of the user's own.
"""

import uuid
from typing import NamedTuple

import torch

from ..losses import regularizers_by_name
from ..regularizers import Regularizer

# A compiled graph keeps nothing but the string: a regularizer that was once used stays here.
_REGULARIZERS: dict[str, Regularizer] = regularizers_by_name()


class LossCall(NamedTuple):
    """What a loss of rows is told besides its tensors; Ω by its handle."""

    omega: str
    tightness: float
    engine: str
    ignore_index: int = -1


def _is_same(one: Regularizer, other: Regularizer) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    try:
        return hash(one) == hash(other) and one == other
    except TypeError:  # a regularizer without a hash is the same as itself alone
        return False


def handle_of(omega: Regularizer) -> str:
    """The string that stands for ``omega``; equal regularizers share one.

    Example:
        >>> import fitzpatrick as fp
        >>> handle_of(fp.regularizers.Negentropy())
        'logistic'
    """
    for handle, known in _REGULARIZERS.items():
        if _is_same(known, omega):
            return handle
    named: str = _name(omega)
    return named


# A compiler has to leave the graph for a regularizer that it meets first: under fullgraph=True, use
# the loss once before.
@torch.compiler.disable  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def _name(omega: Regularizer) -> str:
    handle = f"{type(omega).__name__}-{uuid.uuid4().hex}"
    _REGULARIZERS[handle] = omega
    return handle


def restore(handle: str, omega: Regularizer) -> Regularizer:
    """What ``handle`` stands for; ``omega``, its copy, where this process does not know it yet.

    So that copies share one regularizer, and a handle means the same in every process.
    """
    return _REGULARIZERS.setdefault(handle, omega)


def regularizer_of(handle: str) -> Regularizer:
    """The regularizer that ``handle`` stands for."""
    return _REGULARIZERS[handle]
