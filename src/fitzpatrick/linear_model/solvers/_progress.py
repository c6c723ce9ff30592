"""Progress of a solver, for ``callback`` and ``verbose``."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Iteration:
    """The state of a fit, as callbacks receive it.

    Attributes:
        iteration: iterations of the fit so far, whichever solver made them; 0 is its start.
        objective: the objective here.
        gradient_norm: norm of its gradient, in the parameters as the solver sees them.
        seconds: since the fit began.
        alpha: the penalty. Where Newton steps stall at kinks, penalties that fall to the one asked
            for lead there.
    """

    iteration: int
    objective: float
    gradient_norm: float
    seconds: float
    alpha: float

    def __str__(self) -> str:
        return (
            f"{self.iteration:5d}  objective {self.objective:.12g}  "
            f"gradient {self.gradient_norm:.3e}  {self.seconds:.2f} s"
        )


IterationCallback = Callable[[Iteration], object]


@dataclass(frozen=True)
class Report:
    """Tells a callback of each iteration of a solver, and prints some."""

    alpha: float
    began: float  # when the fit did, by ``time.perf_counter``
    before: int = 0  # iterations of the fit before this solver's first
    callback: IterationCallback | None = None
    verbose: int = 0  # iterations from one printed line to the next; 0 is silent

    def __call__(self, iteration: int, objective: float, gradient_norm: float) -> None:
        if iteration == 0 and self.before > 0:
            return  # the solver before has told
        seconds = time.perf_counter() - self.began
        now = Iteration(self.before + iteration, objective, gradient_norm, seconds, self.alpha)
        if self.callback is not None:
            self.callback(now)
        if self.verbose and now.iteration % self.verbose == 0:
            print(now)
