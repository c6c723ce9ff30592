"""Finished fits on the disk: one file each, whole or not there, never written twice.

::

    FOLDER/DATASET/KEY/settings.json
    FOLDER/DATASET/KEY/LOSS-seedS/00.json …     one per α, in the order of the grid
    FOLDER/DATASET/KEY/LOSS-seedS/00.state.npz  coefficients of the last finished fit
    FOLDER/DATASET/KEY/LOSS-whole/00.json …     the same on train and dev together

KEY stands for the settings and the data. A fit's state is written before its record,
and the state before it is removed afterwards: after a kill at any moment the last record's state is
there, and the path goes on from it, bit by bit as if nothing had happened.
"""

import base64
import io
import json
import zipfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from ..datasets import DataError
from ..datasets._files import write_atomically
from .protocol import Experiment, FitPath, Protocol


@dataclass(frozen=True, eq=False)
class Record:
    """One finished fit.

    Attributes:
        alpha: strength of the penalty.
        dev_error: mean squared error on dev, summed over classes.
        test_errors: squared error of each test sample, float32.
        zeros: share of exact zeros among the test predictions.
        objective: value at the end.
        gradient_norm: norm of its gradient.
        n_iter: iterations.
        status: how the solver ended.
        converged: whether it reached the tolerance.
        seconds: wall-clock time of the fit.
        device: what computed it.
    """

    alpha: float
    dev_error: float
    test_errors: np.ndarray
    zeros: float
    objective: float
    gradient_norm: float
    n_iter: int
    status: str
    converged: bool
    seconds: float
    device: str

    @property
    def test_error(self) -> float:
        """Mean over the test samples."""
        return float(self.test_errors.mean(dtype=np.float64))

    def to_json(self) -> str:
        """One line of JSON; the errors of the samples as base64 of little-endian float32."""
        packed = base64.b64encode(self.test_errors.astype("<f4").tobytes()).decode()
        return json.dumps({**asdict(self), "test_errors": packed}) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """The inverse of :meth:`to_json`."""
        fields = json.loads(text)
        errors = np.frombuffer(base64.b64decode(fields["test_errors"]), dtype="<f4")
        return cls(**{**fields, "test_errors": errors})

    @classmethod
    def read(cls, file: Path) -> "Record":
        """The record in a file, which only a damaged disk or another hand can have changed."""
        try:
            return cls.from_json(file.read_text())
        except (ValueError, KeyError, TypeError):
            raise DataError(
                "not a record of a fit; delete it to have the fit run again", file
            ) from None


@dataclass(frozen=True, eq=False)
class PathRecords:
    """A finished path: its fits over the grid, and the model that is tested."""

    grid: list[Record]
    final: Record

    @property
    def fits(self) -> list[Record]:
        """The grid, and the model that is tested unless it is among them."""
        return self.grid if self.final in self.grid else [*self.grid, self.final]


def choose(records: list[Record]) -> Record:
    """The least dev error; among equals the strongest penalty, which comes first."""
    return min(records, key=lambda record: record.dev_error)


@dataclass(frozen=True)
class Store:
    """The records of one experiment under one protocol."""

    folder: Path
    protocol: Protocol

    @classmethod
    def of(cls, root: Path, experiment: Experiment, protocol: Protocol) -> "Store":
        """The folder for these settings on these data, made if need be."""
        folder = root / experiment.name / protocol.key(experiment.fingerprint)
        settings = folder / "settings.json"
        if not settings.is_file():
            about = {
                "name": experiment.name,
                "checksums": experiment.checksums,
                "data": experiment.fingerprint,
            }
            content = {**about, **asdict(protocol)}
            del content["refit"]  # records of both kinds lie here
            write_atomically(settings, json.dumps(content, indent=1) + "\n")
        return cls(folder, protocol)

    def finished(self, path: FitPath) -> list[Record]:
        """The records of a path so far, in the order of the grid."""
        records = []
        for index in range(len(self.protocol.alphas)):
            file = self._record(path, index)
            if not file.is_file():
                break
            records.append(Record.read(file))
        return records

    def is_complete(self, path: FitPath) -> bool:
        """Whether nothing of the path is left to fit."""
        return self.count([path]) == len(self.protocol.alphas)

    def count(self, paths: list[FitPath]) -> int:
        """How many fits are finished."""
        grid = range(len(self.protocol.alphas))
        return sum(self._record(path, index).is_file() for path in paths for index in grid)

    def add(self, path: FitPath, index: int, record: Record, state: dict[str, np.ndarray]) -> None:
        """Make a finished fit durable."""
        if index + 1 < len(self.protocol.alphas):
            buffer = io.BytesIO()
            np.savez(buffer, **state)  # type: ignore[arg-type]  # every value is an array
            write_atomically(self._state(path, index), buffer.getvalue())
        write_atomically(self._record(path, index), record.to_json())
        self.discard_states(path, index)

    def state(self, path: FitPath, index: int) -> dict[str, np.ndarray] | None:
        """The coefficients that fit ``index`` ended with, if they are still there."""
        file = self._state(path, index)
        if not file.is_file():
            return None
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                return dict(stored)
        except (ValueError, EOFError, zipfile.BadZipFile):
            raise DataError("damaged; delete it to have the path fitted again", file) from None

    def discard_states(self, path: FitPath, before: int) -> None:
        """Remove the states of earlier fits, which nobody will ask for."""
        for index in range(before):
            self._state(path, index).unlink(missing_ok=True)

    def _record(self, path: FitPath, index: int) -> Path:
        return self.folder / path.name / f"{index:02d}.json"

    def _state(self, path: FitPath, index: int) -> Path:
        return self.folder / path.name / f"{index:02d}.state.npz"


def all_records(store: Store, paths: list[FitPath]) -> dict[FitPath, list[Record]]:
    """The records of every path; an unfinished one is an error."""
    for path in paths:
        if not store.is_complete(path):
            raise RuntimeError(f"{store.folder / path.name} is not finished")
    return {path: store.finished(path) for path in paths}


def final_models(grids: dict[FitPath, list[Record]]) -> dict[FitPath, PathRecords]:
    """For each seed the model to test: the chosen one, or its namesake on train and dev.

    The latter wherever the paths on train and dev are among the records.
    """
    found: dict[FitPath, PathRecords] = {}
    for path, grid in grids.items():
        if path.seed is None:
            continue
        final = choose(grid)
        for record in grids.get(FitPath(path.loss, None), []):
            if record.alpha == final.alpha:
                final = replace(record, dev_error=final.dev_error)
        found[path] = PathRecords(grid, final)
    return found
