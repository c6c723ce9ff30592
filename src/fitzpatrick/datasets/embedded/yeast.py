"""The yeast data set, as river's wheel carries it, packed without loss.

river 0.26.1 holds ``river/datasets/yeast.csv.gz``: 2417 rows, 103 attributes with six decimals,
then 14 classes. Its first 917 rows are the official test set, the other 1500 the official training
set; :func:`load` returns the rows in that order. ``python yeast.py FILE`` packs that file anew.
"""

import csv
import gzip
import io
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np

FILE = "yeast.npz"
TEST_ROWS = 917
CLASSES = 14
_DECIMALS = 1_000_000  # six decimals: integers hold them exactly


def load() -> tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Features (2417, 103), indicators (2417, 14) and the names of both."""
    return unpack(files(__package__).joinpath(FILE).read_bytes())


def pack(X: np.ndarray, Y: np.ndarray, names: list[str]) -> bytes:
    """Integers column by column, their four bytes apart: what ZIP compresses best."""
    micro = np.round(X.T * _DECIMALS).astype("<i4")
    planes = np.ascontiguousarray(np.ascontiguousarray(micro).view(np.uint8).reshape(-1, 4).T)
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        shape=np.asarray(X.shape),
        planes=planes,
        labels=np.packbits(Y.astype(bool), axis=1),
        names=np.asarray(names),
    )
    return buffer.getvalue()


def unpack(content: bytes) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """The inverse of :func:`pack`."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        n, d = stored["shape"]
        micro = np.ascontiguousarray(stored["planes"].T).view("<i4").reshape(d, n)
        X = np.ascontiguousarray(micro.T) / _DECIMALS
        Y = np.unpackbits(stored["labels"], axis=1)[:, :CLASSES]
        names = tuple(str(name) for name in stored["names"])
    return X, Y, names[:d], names[d:]


def read_river(path: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Features, indicators and names of river's CSV file."""
    with gzip.open(path, "rt") as file:
        names, *rows = csv.reader(file)
    values = np.asarray(rows, dtype=np.float64)
    return values[:, :-CLASSES], values[:, -CLASSES:], names


if __name__ == "__main__":
    Path(__file__).with_name(FILE).write_bytes(pack(*read_river(Path(sys.argv[1]))))
