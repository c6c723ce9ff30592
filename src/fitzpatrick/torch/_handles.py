"""Strings that stand for loss objects.

A PyTorch operator takes tensors, numbers and strings, so that a loss travels through one as a
string: its registry name, or a key made here for a loss over a regulariser of the user's own.
"""

import uuid

from ..losses import Loss, get_loss, loss_names

__all__ = ["describe", "handle_of", "loss_of", "restore"]

# A compiled graph keeps nothing but the string, so that a loss that was once used stays here.
_LOSSES: dict[str, Loss] = {name: get_loss(name) for name in loss_names()}


def _is_same(one: Loss, other: Loss) -> bool:
    if one.tightness != other.tightness:
        return False
    if one.regularizer is other.regularizer:
        return True
    if type(one.regularizer) is not type(other.regularizer):
        return False
    try:
        return hash(one) == hash(other) and one == other
    except TypeError:  # a regulariser without a hash is the same as itself alone
        return False


def handle_of(loss: Loss) -> str:
    """The string that stands for ``loss``; equal losses share one.

    Example:
        >>> import fitzpatrick as fp
        >>> handle_of(fp.FitzpatrickLoss(fp.regularizers.Negentropy()))
        'fitzpatrick_logistic'
    """
    for handle, known in _LOSSES.items():
        if _is_same(known, loss):
            return handle
    handle = f"{type(loss).__name__}-{uuid.uuid4().hex}"
    _LOSSES[handle] = loss
    return handle


def restore(handle: str, loss: Loss) -> Loss:
    """The loss that ``handle`` stands for; ``loss``, its copy, where this process has none yet.

    So that copies share one loss, and a handle means the same in every process.
    """
    return _LOSSES.setdefault(handle, loss)


def loss_of(handle: str) -> Loss:
    """The loss that ``handle`` stands for."""
    return _LOSSES[handle]


def describe(handle: str) -> str:
    """What messages call the loss: its registry name, or the loss itself."""
    return repr(handle if handle in loss_names() else loss_of(handle))
