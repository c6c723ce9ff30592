"""Fenchel-Young and Fitzpatrick losses: convex losses in pairs, each pair with one link.

Reference: S. Rakotomandimby, J.-P. Chancelier, M. De Lara and M. Blondel, "Learning with
Fitzpatrick Losses", NeurIPS 2024.

Example:
    >>> import numpy as np
    >>> import fitzpatrick as fp
    >>> loss = fp.get_loss("fitzpatrick_logistic")
    >>> y = np.asarray([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> theta = np.asarray([[1.0, 0.0, -1.0], [0.0, 0.0, 3.0]])
    >>> value, gradient = loss.value_and_gradient(y, theta)
    >>> value.round(4), gradient.sum(axis=-1).round(12) + 0.0
    (array([0.0974, 0.0354]), array([0., 0.]))
    >>> loss.link(theta).argmax(axis=-1)
    array([0, 2])
"""

from . import divergences, regularizers, sets, special
from .divergences import fitzpatrick_function
from .losses import FenchelYoungLoss, FitzpatrickLoss, Loss, get_loss, loss_names

__version__ = "0.1.0"

__all__ = [
    "FenchelYoungLoss",
    "FitzpatrickLoss",
    "Loss",
    "__version__",
    "divergences",
    "fitzpatrick_function",
    "get_loss",
    "loss_names",
    "regularizers",
    "sets",
    "special",
]
