"""Timing of contenders in turns, so that noise affects all of them equally."""

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of each run, scaled to the whole problem."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The spread of the runs."""
        if len(self.seconds) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Line:
    """The comparison of two contenders, as it is printed and stored."""

    name: str
    against: str
    timing: Timing
    reference: Timing
    limit: float | None = None

    @property
    def ratio(self) -> float:
        """Median over median."""
        return self.timing.median / self.reference.median

    @property
    def is_missed(self) -> bool:
        """True if a promised ratio was exceeded."""
        return self.limit is not None and self.ratio > self.limit

    def __str__(self) -> str:
        low, high = self.timing.quartiles
        limit = "" if self.limit is None else f"<= {self.limit:g}"
        verdict = "" if self.limit is None else "MISSED" if self.is_missed else "kept"
        return (
            f"{self.name:55} {self.against:40} {self.ratio:7.3f} {limit:>9} {verdict:6}   "
            f"{1e3 * self.timing.median:.2f} ({1e3 * low:.2f} - {1e3 * high:.2f}) ms"
        )

    def record(self) -> dict[str, object]:
        """The entry of the JSON file."""
        return {
            "name": self.name,
            "against": self.against,
            "ratio": round(self.ratio, 4),
            "limit": self.limit,
            "median_ms": round(1e3 * self.timing.median, 4),
            "quartiles_ms": [round(1e3 * time, 4) for time in self.timing.quartiles],
        }


def print_lines(lines: Iterable[Line]) -> list[Line]:
    """Print each line at once, and finally the missed promises."""
    print(f"{'contender':55} {'against':40} {'ratio':>7} {'promise':>9}   median (quartiles)")
    found = []
    for line in lines:
        print(line, flush=True)
        found.append(line)
    promised = [line for line in found if line.limit is not None]
    missed = [line.name for line in promised if line.is_missed]
    print(f"\n{len(promised) - len(missed)} of {len(promised)} promises kept; missed: {missed}")
    return found


@dataclass(frozen=True)
class Contender:
    """Code to time; ``scale`` extrapolates from a part of the rows."""

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
