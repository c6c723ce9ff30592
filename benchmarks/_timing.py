"""Timing of contenders side by side: in turns, so that noise hits all of them alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of each run, already scaled to the whole problem."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """The middle run."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The spread of the runs."""
        if len(self.seconds) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Contender:
    """Something to time; ``scale`` where it works on a part of the rows only."""

    name: str
    run: Callable[[], object]
    scale: float = 1.0
    repeats: int | None = None


def race(contenders: list[Contender], repeats: int, *, cpu_time: bool = False) -> dict[str, Timing]:
    """Time all contenders in turns, after a warm-up of each; by the clock, or in CPU time."""
    clock = time.process_time if cpu_time else time.perf_counter
    seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for contender in contenders:
        contender.run()
    for turn in range(repeats):
        for contender in contenders:
            if contender.repeats is not None and turn >= contender.repeats:
                continue
            start = clock()
            contender.run()
            seconds[contender.name].append((clock() - start) * contender.scale)
    return {name: Timing(times) for name, times in seconds.items()}
