"""Shared code of the GPU benchmarks: timing, the memory floor, and a description of the machine."""

import argparse
import csv
import importlib
import importlib.metadata
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def version(package: str) -> str:
    """The version of a package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        module = sys.modules.get(package.replace("-", "_"))
        return str(getattr(module, "__version__", ""))


def peer(name: str) -> Any:
    """A module of another library; prints a message and returns None if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
        return None


def require_gpu() -> None:
    """Exit if there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA device")


def machine() -> dict[str, Any]:
    """GPU and versions, on which the times depend."""
    import torch

    return {
        "gpu": torch.cuda.get_device_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": version("triton"),
    }


def timed(step: Callable[[], Any], budget_ms: int) -> tuple[float, float, float]:
    """Median and quantiles of the time from an idle GPU."""
    from triton.testing import do_bench

    median, low, high = do_bench(step, warmup=25, rep=budget_ms, quantiles=[0.5, 0.2, 0.8])
    return median, low, high


def timed_behind_work(step: Callable[[], Any], runs: int) -> tuple[float, float, float]:
    """Times behind a millisecond of other queued work, which also flushes the cache."""
    import torch

    source = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    event: Any = torch.cuda.Event
    marks = []
    for _ in range(runs):
        for _ in range(2):
            target.copy_(source)
        start, end = (event(enable_timing=True) for _ in range(2))
        start.record()
        step()
        end.record()
        marks.append((start, end))
    torch.cuda.synchronize()
    times = sorted(start.elapsed_time(end) for start, end in marks)
    return times[runs // 2], times[runs // 5], times[4 * runs // 5]


def copy_rate() -> float:
    """Bytes read and written per millisecond by a large copy."""
    import torch

    source = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    median, _, _ = timed(lambda: target.copy_(source), 300)
    return 2 * source.numel() / median


def measure(
    step: Callable[[], Any], budget_ms: int = 100, *, with_idle: bool = False
) -> dict[str, float]:
    """Median time behind other work, and the peak of the memory that the step takes.

    ``with_idle`` times the step from an idle GPU as well.
    """
    import torch

    step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    peak = torch.cuda.max_memory_allocated() - before
    idle = timed(step, budget_ms) if with_idle else ()
    once = idle[0] if idle else timed_behind_work(step, 3)[0]
    fewest, most = (10, 100) if with_idle else (5, 50)
    runs = min(max(int(budget_ms / once), fewest), most)
    names = ("median_ms", "q20_ms", "q80_ms", "idle_ms", "idle_q20_ms", "idle_q80_ms")
    times = zip(names, (*timed_behind_work(step, runs), *idle), strict=False)
    rounded = {name: round(time, 4) for name, time in times}
    return {**rounded, "peak_extra_mib": round(peak / 2**20, 1)}


def write_rows(path: Path | None, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Collect rows, and append each row to a CSV file if a path is given."""
    if path is None:
        return list(rows)
    collected: list[dict[str, Any]] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        for row in rows:
            writer = csv.DictWriter(file, list(row))
            if not collected:
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            collected.append(row)
    return collected


def run_and_print(
    run: Callable[[], Iterable[dict[str, Any]]], doc: str | None, keys: list[str], contender: str
) -> None:
    """The command of a benchmark: measure, write a CSV file if requested, and print a table."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--csv", type=Path, help="write all numbers to this file")
    arguments = parser.parse_args()
    require_gpu()
    rows = write_rows(arguments.csv, run())
    for row in rows:
        if "rows" in row:
            row["scores"] = f"{row['rows']} × {row['classes']} {row['dtype']}"
        row["contender"] = contender.format_map(row)
    print_table(rows, keys, "contender")


def print_table(
    rows: list[dict[str, Any]], row_keys: list[str], column_key: str, value: str = "times_floor"
) -> None:
    """A Markdown table of the multiples of the floor."""
    columns = list(dict.fromkeys(row[column_key] for row in rows))
    print("| " + " | ".join([*row_keys, *columns]) + " |")
    print("|" + "---|" * (len(row_keys) + len(columns)))
    for place in dict.fromkeys(tuple(row[key] for key in row_keys) for row in rows):
        cells = {
            row[column_key]: f"{row[value]:.2f}"
            for row in rows
            if tuple(row[key] for key in row_keys) == place
        }
        print("| " + " | ".join([*map(str, place), *(cells.get(c, "–") for c in columns)]) + " |")
