"""Convex sets C, each with its projection, its linear oracle and its membership test."""

from ._base import ConvexSet, ProductSet
from .balls import L1Ball, L2Ball
from .product import Box, Orthant, Reals
from .simplex import Simplex

__all__ = ["Box", "ConvexSet", "L1Ball", "L2Ball", "Orthant", "ProductSet", "Reals", "Simplex"]
