"""Fenchel-Young and Fitzpatrick losses, and the registry of their names."""

from ._base import FenchelYoungLoss, FitzpatrickLoss, Loss
from ._registry import get_loss, loss_names

__all__ = ["FenchelYoungLoss", "FitzpatrickLoss", "Loss", "get_loss", "loss_names"]
