"""A call of attention: its tensors and its numbers, checked and in the form of the operators.

Batches are one axis B, and the heads of queries are two, (K, G): G for each of the K heads of keys.
Importing this module loads no Triton.
"""

from typing import NamedTuple

from torch import Tensor


class Tensors(NamedTuple):
    """The tensors of a call, or of a block of its scores, or their gradients."""

    query: Tensor  # (B, K, G, L, E)
    key: Tensor  # (B, K, S, E)
    value: Tensor  # (B, K, S, D)
    mask: Tensor | None = None  # (B, K, G, L, S), with a size of one where it is broadcast
    alpha: Tensor | None = None  # (B, K, G)
    scale: Tensor | None = None  # (B, K, G)
    slopes: Tensor | None = None  # (B, K, G)
    # int32, (L,): the first key that a query sees, one after the last, and the one level with it
    starts: Tensor | None = None
    ends: Tensor | None = None
    levels: Tensor | None = None  # for slopes
    seed: Tensor | None = None  # of the dropout


class Numbers(NamedTuple):
    """What a call is told besides tensors; α and the scale are 0 if they are tensors."""

    scale: float
    dropout_p: float
    alpha: float
