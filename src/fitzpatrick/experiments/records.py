"""Finished fits on the disk: one file each, whole or not there, never written twice.

::

    FOLDER/DATASET/KEY/settings.json
    FOLDER/DATASET/KEY/LOSS-seedS/00.json …     one per α, in the order of the grid
    FOLDER/DATASET/KEY/LOSS-seedS/00.state.npz  coefficients of the last finished fit
    FOLDER/DATASET/KEY/LOSS-whole/00.json …     the same on train and dev together
    FOLDER/DATASET/KEY/LOSS-whole-alpha10.0/00.json    one α alone

KEY stands for the settings and the data. A fit's state is written before its record,
and the state before it is removed afterwards: after a kill at any moment the last record's state is
there, and the path goes on from it, bit by bit as if nothing had happened. Paths that may stop
before the end of the grid have no states: they are short, and begin again.

Every record carries a checksum of its content and of its place, every state the checksums of its
arrays and its place: a file that was changed, or copied from elsewhere, is refused.
"""

import base64
import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import DataError
from ..datasets._files import remove_leftovers, write_atomically
from ..linear_model import has_risen
from .model_archive import open_archive, pack
from .protocol import Experiment, FitPath, Protocol

_CHECKSUM = "sha256"
_STATE = ("coef", "intercept")

Coefficients = tuple[np.ndarray, np.ndarray]  # and intercepts


@dataclass(frozen=True, eq=False)
class Record:
    """One finished fit.

    Attributes:
        alpha: strength of the penalty.
        dev_error: mean squared error on dev, summed over classes; NaN where there is no dev.
        test_errors: squared error of each test sample, float32.
        accuracy: share of test samples whose largest prediction is at their largest target.
        log_loss: mean of -Σ y log p over the test samples; infinite where p is 0 and y is not.
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
    accuracy: float
    log_loss: float
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

    def to_json(self, place: str = "") -> str:
        """One line of JSON; the errors of the samples as base64 of little-endian float32.

        Args:
            place: where the record lies, which its checksum vouches for.
        """
        packed = base64.b64encode(self.test_errors.astype("<f4").tobytes()).decode()
        content = {**asdict(self), "test_errors": packed}
        return json.dumps({**content, _CHECKSUM: _checksum(content, place)}) + "\n"

    @classmethod
    def from_json(cls, text: str, place: str = "") -> "Record":
        """The inverse of :meth:`to_json`; raises a ValueError for everything else."""
        try:
            content = json.loads(text)
            checksum = content.pop(_CHECKSUM)
        except (TypeError, KeyError, AttributeError, RecursionError):
            raise ValueError("not a record") from None
        if checksum != _checksum(content, place):
            raise ValueError("not the content that its checksum is of")
        errors = np.frombuffer(base64.b64decode(content["test_errors"]), dtype="<f4")
        return cls(**{**content, "test_errors": errors})

    @classmethod
    def read(cls, file: Path) -> "Record":
        """The record in a file, which only a damaged disk or another hand can have changed."""
        try:
            return cls.from_json(file.read_text(encoding="utf-8"), _place(file))
        except ValueError:
            raise _damaged(file, "the fit is run again") from None


def _checksum(content: dict[str, Any], place: str) -> str:
    text = json.dumps([place, content], sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _place(file: Path) -> str:
    """KEY/PATH/NAME: the same wherever the folder of the records is moved."""
    return "/".join(file.absolute().parts[-3:])


def _damaged(file: Path, then: str) -> DataError:
    return DataError(f"is damaged; delete it, and {then}", file)


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
        content = {
            "name": experiment.name,
            "checksums": experiment.checksums,
            "data": experiment.fingerprint,
            **protocol.key_fields(),
        }
        settings = folder / "settings.json"
        if settings.is_file():
            _check_settings(settings, content)
            remove_leftovers(folder)
        else:
            write_atomically(settings, json.dumps(content, indent=1) + "\n")
        return cls(folder, protocol)

    def grid(self, path: FitPath) -> tuple[float, ...]:
        """The alphas of a path."""
        return self.protocol.alphas if path.alpha is None else (path.alpha,)

    def finished(self, path: FitPath) -> list[Record]:
        """The records of a path so far, in the order of the grid."""
        records: list[Record] = []
        for index in range(len(self.grid(path))):
            file = self._record(path, index)
            if not file.is_file() or self.has_ended(path, records):
                break
            records.append(Record.read(file))
        return records

    def has_ended(self, path: FitPath, records: list[Record]) -> bool:
        """Whether nothing of the path is left to fit after these."""
        if len(records) == len(self.grid(path)):
            return True
        may_stop = not self.protocol.whole_grid and path.seed is not None
        return may_stop and bool(records) and has_risen([one.dev_error for one in records])

    def count(self, paths: list[FitPath]) -> int:
        """How many fits are finished."""
        return sum(
            self._record(path, index).is_file()
            for path in paths
            for index in range(len(self.grid(path)))
        )

    def add(self, path: FitPath, index: int, record: Record, state: Coefficients) -> None:
        """Make a finished fit durable."""
        file = self._record(path, index)
        if self.protocol.is_resumable and index + 1 < len(self.grid(path)):
            kept = self._state(path, index)
            write_atomically(kept, pack(_place(kept), dict(zip(_STATE, state, strict=True))))
        write_atomically(file, record.to_json(_place(file)))
        self.discard_states(path, index)

    def state(self, path: FitPath, index: int) -> Coefficients | None:
        """The coefficients that fit ``index`` ended with, if they are still there."""
        file = self._state(path, index)
        if not file.is_file():
            return None
        with file.open("rb") as stream:
            try:
                archive = open_archive(stream, _STATE)
                if archive.text() == _place(file) and all(map(archive.shape, _STATE)):
                    coef, intercept = map(archive.array, _STATE)
                    return coef, intercept
            except Exception:  # of any type, where zipfile or NumPy meets what it never wrote
                raise _damaged(file, "the path is fitted again") from None
        raise _damaged(file, "the path is fitted again")

    def discard_states(self, path: FitPath, before: int) -> None:
        """Remove the states of earlier fits, which nobody will ask for."""
        for index in range(before):
            self._state(path, index).unlink(missing_ok=True)

    def _record(self, path: FitPath, index: int) -> Path:
        return self.folder / path.name / f"{index:02d}.json"

    def _state(self, path: FitPath, index: int) -> Path:
        return self.folder / path.name / f"{index:02d}.state.npz"


def _check_settings(file: Path, expected: dict[str, Any]) -> None:
    """The key stands for the settings: another file can only be a damaged one."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        # the same data may come from other files
        is_same = {**found, "checksums": expected["checksums"]} == json.loads(json.dumps(expected))
    except (ValueError, TypeError, RecursionError):
        is_same = False
    if not is_same:
        raise _damaged(file, "it is written anew")


def all_records(store: Store, paths: list[FitPath]) -> dict[FitPath, list[Record]]:
    """The records of every path; an unfinished one is an error."""
    found = {path: store.finished(path) for path in paths}
    for path, records in found.items():
        if not store.has_ended(path, records):
            raise RuntimeError(f"{store.folder / path.name} is not finished")
    return found


def final_models(grids: dict[FitPath, list[Record]]) -> dict[FitPath, PathRecords]:
    """For each seed the model to test: the chosen one, or its namesake on train and dev.

    The latter wherever the paths on train and dev are among the records.
    """
    found: dict[FitPath, PathRecords] = {}
    for path, grid in grids.items():
        if path.seed is None:
            continue
        final = choose(grid)
        whole = grids.get(FitPath(path.loss, None)) or grids.get(
            FitPath(path.loss, None, final.alpha), []
        )
        for record in whole:
            if record.alpha == final.alpha:
                final = replace(record, dev_error=final.dev_error)
        found[path] = PathRecords(grid, final)
    return found
