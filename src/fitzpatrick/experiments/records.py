"""Finished fits in one SQLite file.

The fits of a path are one row: after a kill at any moment all of them are there, or none. A row
belongs to a run, whose key stands for the settings and the data. SQLite does not notice every
damage, so each row carries a checksum of its content and its place.
"""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import DataError
from .protocol import Experiment, FitPath, Protocol

FILE_NAME = "records.sqlite"
_WAIT_SECONDS = 60  # for another run that writes to the file
# what is wrong with the place of a file, not with its content
_OUTSIDE = re.compile("SQLITE_(FULL|IOERR|CANTOPEN|READONLY|PERM|AUTH|BUSY|LOCKED|NOMEM)")


@dataclass(frozen=True, eq=False)
class Record:
    """One finished fit."""

    setting: float  # penalty α of a linear model, rounds of a boosted one
    dev_error: float  # mean squared error on dev, summed over classes; NaN without dev rows
    test_errors: np.ndarray  # squared error of each test sample, float32
    accuracy: float  # share of test samples whose largest prediction is at their largest target
    log_loss: float  # mean of -Σ y log p over the test samples; infinite where p is 0 and y is not
    zeros: float  # share of exact zeros among the test predictions
    n_iter: int  # iterations of the solver, or rounds
    converged: bool
    seconds: float
    device: str  # what computed it

    @property
    def test_error(self) -> float:
        """Mean over the test samples."""
        return float(self.test_errors.mean(dtype=np.float64))


Grids = dict[FitPath, list[Record]]  # of each path, from the simplest model
# columns without a type keep the values as they are
_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (run PRIMARY KEY, settings);
CREATE TABLE IF NOT EXISTS paths (run, path, sha256, records, PRIMARY KEY (run, path));
"""


def to_json(records: list[Record]) -> str:
    """Records as text; test errors as the hexadecimal digits of little-endian float32."""
    errors = (record.test_errors.astype("<f4").tobytes().hex() for record in records)
    pairs = zip(records, errors, strict=True)
    return json.dumps([{**vars(record), "test_errors": digits} for record, digits in pairs])


def from_json(text: str) -> list[Record]:
    """The inverse of :func:`to_json`."""
    records = []
    for content in json.loads(text):
        errors = np.frombuffer(bytes.fromhex(content.pop("test_errors")), dtype="<f4")
        records.append(Record(test_errors=errors, **content))
    return records


def choose(records: list[Record]) -> Record:
    """The least dev error; among equals the simplest model, which comes first."""
    return min(records, key=lambda record: record.dev_error)


@dataclass(frozen=True)
class Store:
    """The records of one experiment under one protocol."""

    file: Path
    run: str

    @classmethod
    def of(cls, folder: Path, experiment: Experiment, protocol: Protocol) -> "Store":
        """The run for these settings on these data, in the file of the folder."""
        data = experiment.fingerprint
        store = cls(folder / FILE_NAME, protocol.key(data))
        about = {"name": experiment.name, "checksums": experiment.checksums, "data": data}
        folder.mkdir(parents=True, exist_ok=True)
        with _opened(store.file) as connection:
            connection.executescript(_SCHEMA)
            row = store.run, json.dumps(about | protocol.key_fields())
            connection.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", row)
        return store

    def read(self) -> dict[str, list[Record]]:
        """The fits of every finished path, by its name."""
        query = "SELECT path, sha256, records FROM paths WHERE run = ? ORDER BY path"
        with _opened(self.file) as connection:
            rows = connection.execute(query, (self.run,)).fetchall()
        if any(checksum != _checksum(self.run, path, text) for path, checksum, text in rows):
            raise _damaged(self.file)
        return {path: from_json(text) for path, _, text in rows}

    def add(self, path: FitPath, records: list[Record]) -> None:
        """Make a finished path durable."""
        text = to_json(records)
        row = self.run, path.name, _checksum(self.run, path.name, text), text
        with _opened(self.file) as connection:
            connection.execute("INSERT OR REPLACE INTO paths VALUES (?, ?, ?, ?)", row)


def stored_runs(file: Path) -> list[tuple[dict[str, Any], Store]]:
    """Settings and records of every run in a file."""
    with _opened(file) as connection:
        rows = connection.execute("SELECT run, settings FROM runs ORDER BY run").fetchall()
    return [(json.loads(settings), Store(file, run)) for run, settings in rows]


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection for one transaction; what goes wrong with the file is said in one line."""
    try:
        with closing(sqlite3.connect(file, timeout=_WAIT_SECONDS)) as connection, connection:
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of a damaged message
        if _OUTSIDE.match(getattr(error, "sqlite_errorname", "")):
            raise DataError(f"the records cannot be kept here: {error}", file) from None
        if str(error) == "no such table: paths":
            problem = "has the records of another version of fitzpatrick; move it to fit anew"
            raise DataError(problem, file) from None
        raise _damaged(file) from None


def _checksum(*values: Any) -> str:
    return hashlib.sha256(repr(values).encode(errors="surrogatepass")).hexdigest()


def _damaged(file: Path) -> DataError:
    return DataError("is damaged; delete it, and its fits are run again", file)


def final_models(grids: Grids) -> dict[FitPath, Record]:
    """The chosen model of each seed, or its refit to train and dev if that is on record."""
    whole = {
        (path.loss, record.setting): record
        for path, grid in grids.items()
        if path.seed is None
        for record in grid
    }
    chosen = {path: choose(grid) for path, grid in grids.items() if path.seed is not None}
    for path, final in chosen.items():
        if refitted := whole.get((path.loss, final.setting)):
            chosen[path] = replace(refitted, dev_error=final.dev_error)
    return chosen
