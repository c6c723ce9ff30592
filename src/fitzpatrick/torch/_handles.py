"""Strings that stand for regularizers.

A PyTorch operator takes tensors, numbers and strings. A regularizer travels through one as a
string: its registry name, or a key made here for a regularizer of the user's own.
"""

import uuid
from collections.abc import Callable
from typing import NamedTuple

from ..losses import regularizers_by_name
from ..regularizers import Regularizer
from . import _graphs as graphs

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
    return _name(omega)


# A compiler has to leave the graph for a regularizer that it meets first: under fullgraph=True, use
# the loss once before.
@graphs.untraced
def _name(omega: Regularizer) -> str:
    handle = f"{type(omega).__name__}-{uuid.uuid4().hex}"
    _REGULARIZERS[handle] = omega
    return handle


def handle_at(kind: Callable[[float], Regularizer], order: float) -> str:
    """The string that stands for ``kind(order)``, such as Tsallis(1.25), in compiled graphs too.

    A graph may be the first to meet an order, and is made anew for each.
    """
    return _handle_at(kind, float(order).hex())


# a compiler calls it with what it knows; of a number that changes it knows the digits alone
@graphs.constant
def _handle_at(kind: Callable[[float], Regularizer], digits: str) -> str:
    return handle_of(kind(float.fromhex(digits)))


def restore(handle: str, omega: Regularizer) -> Regularizer:
    """What ``handle`` stands for; ``omega``, its copy, where this process does not know it yet.

    So that copies share one regularizer, and a handle means the same in every process.
    """
    return _REGULARIZERS.setdefault(handle, omega)


def regularizer_of(handle: str) -> Regularizer:
    return _REGULARIZERS[handle]
