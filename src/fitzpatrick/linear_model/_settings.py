"""What the parameters of the estimators ask of a fit."""

from dataclasses import KW_ONLY, dataclass

from ..losses import Loss
from .solvers import IterationCallback


@dataclass(eq=False, repr=False)
class FitParameters:
    """The parameters that all estimators share, apart from the loss."""

    _: KW_ONLY
    fit_intercept: bool = True
    standardize: bool = False
    solver: str = "auto"
    tol: float = 1e-8
    max_iter: int = 1000
    verbose: int = 0
    n_threads: int | None = None
    callback: IterationCallback | None = None


@dataclass(eq=False, repr=False)
class FitSettings(FitParameters):
    """The same with the loss, once they have been checked."""

    loss: Loss
