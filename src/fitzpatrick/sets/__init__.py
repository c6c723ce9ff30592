"""Convex sets C, each with its projection, its linear oracle and its membership test."""

from ._base import ConvergenceError, ConvexSet, ProductSet
from .balls import L1Ball, L2Ball
from .blocks import Product
from .budget import Budget, CappedSimplex
from .flat import Flat
from .order_simplex import OrderSimplex
from .permutahedron import Permutahedron
from .polytope import Polytope
from .product import Box, Orthant, Reals
from .simplex import Simplex
from .transport import Birkhoff, Transport

__all__ = [
    "Birkhoff",
    "Box",
    "Budget",
    "CappedSimplex",
    "ConvergenceError",
    "ConvexSet",
    "Flat",
    "L1Ball",
    "L2Ball",
    "OrderSimplex",
    "Orthant",
    "Permutahedron",
    "Polytope",
    "Product",
    "ProductSet",
    "Reals",
    "Simplex",
    "Transport",
]
