"""Progress of a solver, for ``verbose``."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """Prints one line every ``every`` iterations; 0 is silent."""

    every: int = 0

    def __call__(self, iteration: int, objective: float, gradient_norm: float) -> None:
        if self.every and iteration % self.every == 0:
            print(f"{iteration:5d}  objective {objective:.12g}  gradient {gradient_norm:.3e}")

    def note(self, sentence: str) -> None:
        if self.every:
            print(sentence)
