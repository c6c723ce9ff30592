"""Losses: one family with one number for each regularizer, and the registry of their names."""

from ._base import FenchelYoungLoss, FitzpatrickLoss, Loss
from ._registry import ends, get_loss, loss_names, name_of, regularizers_by_name

__all__ = [
    "FenchelYoungLoss",
    "FitzpatrickLoss",
    "Loss",
    "ends",
    "get_loss",
    "loss_names",
    "name_of",
    "regularizers_by_name",
]
