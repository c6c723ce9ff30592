"""What the rows of a loss are asked for, besides its value."""

from enum import IntEnum


class Output(IntEnum):
    """An array of shape (n, k)."""

    GRADIENT = 0  # y* − y
    Y_STAR = 1
    SLOPE = 2  # d = ∂y*/∂s
