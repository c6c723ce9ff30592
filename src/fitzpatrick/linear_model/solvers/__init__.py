"""Solvers, one file each, and how they report."""

from ._lbfgs import lbfgs
from ._newton_cg import newton_cg
from ._progress import Iteration, IterationCallback, Report
from ._status import Result, Status, Stopping

__all__ = [
    "Iteration",
    "IterationCallback",
    "Report",
    "Result",
    "Status",
    "Stopping",
    "lbfgs",
    "newton_cg",
]
