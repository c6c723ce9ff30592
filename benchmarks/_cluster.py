"""Shared clusters and data of the Dask benchmarks."""

import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"


@contextlib.contextmanager
def cluster(n_workers: int, memory: str | int = 0) -> Iterator[Any]:
    """A client with worker processes of one thread each."""
    with (
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as local,
        Client(local) as client,
    ):
        yield client


@dataclass(frozen=True)
class Rows:
    """Samples in memory-mapped files, from which workers read their chunks."""

    X: Path
    y: Path

    @classmethod
    def write(cls, folder: Path, n: int, d: int, k: int, seed: int = 0) -> "Rows":
        """Random features, and labels that depend on them linearly, with noise."""
        rng = np.random.default_rng(seed)
        rows = cls(folder / "X.npy", folder / "y.npy")
        X = np.lib.format.open_memmap(rows.X, "w+", np.float64, (n, d))
        y = np.lib.format.open_memmap(rows.y, "w+", np.int64, (n,))
        weights = rng.standard_normal((d, k)) / np.sqrt(d)
        for start in range(0, n, 10_000):
            part = rng.standard_normal((min(10_000, n - start), d))
            X[start : start + len(part)] = part
            noise = rng.gumbel(size=(len(part), k))
            y[start : start + len(part)] = (2 * part @ weights + noise).argmax(axis=1)
        X.flush()
        y.flush()
        return rows

    def in_memory(self) -> tuple[Any, Any]:
        """NumPy arrays."""
        return np.load(self.X), np.load(self.y)

    def chunked(self, rows: int) -> tuple[Any, Any]:
        """Dask arrays, whose chunks workers read from the files."""
        shape = np.load(self.X, mmap_mode="r").shape
        return tuple(
            da.map_blocks(
                _read,
                str(path),
                rows,
                chunks=((rows,) * (shape[0] // rows), *((size,) for size in more)),
                dtype=dtype,
                meta=np.empty((0,) * (1 + len(more)), dtype=dtype),
            )
            for path, more, dtype in ((self.X, shape[1:], np.float64), (self.y, (), np.int64))
        )


def _read(path: str, rows: int, block_id: tuple[int, ...] = (0,)) -> Any:
    """A copy of the rows of a chunk."""
    start = block_id[0] * rows
    return np.array(np.load(path, mmap_mode="r")[start : start + rows])


def write_table(name: str, rows: dict[str, str]) -> None:
    """Write figures between the marks with this name in docs/scaling.md."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    table = ["| | |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in rows.items())]
    text = before + begin + "\n".join(table) + "\n" + end + rest.split(end)[1]
    PAGE.write_text(text, encoding="utf-8")


def load() -> list[float]:
    """The load of the machine over 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]
