"""``load_dataset``: from the data folder, the cache, the package or the network, and checked."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import _download
from ._download import DEFAULT_TRANSFER, Progress, Transfer
from ._errors import DataError, UnavailableError
from ._files import sha256
from ._registry import DATASETS, DatasetInfo
from ._table import Matrix, Table, split_table
from ._text import CHECKSUMS, read_checksums
from .embedded import yeast
from .libsvm import read_libsvm
from .options import ReadOptions
from .readers import format_of, read_table

FOLDER_VARIABLE = "FITZPATRICK_DATA"
_SUFFIXES = tuple(
    f"{suffix}{packed}" for suffix in (".svm", ".arff") for packed in ("", ".gz", ".bz2", ".xz")
)
# features and their number are the paper's; a nominal attribute is one of them
_AS_PUBLISHED = ReadOptions(missing="error", nominal="positions")


class DatasetMismatchWarning(UserWarning):
    """A data set that differs from the paper's Table 2."""


@dataclass(frozen=True, eq=False)
class Split:
    """One official part of a data set: features (n, d) and 0/1 indicators (n, k)."""

    X: Matrix
    Y: np.ndarray

    def __repr__(self) -> str:
        n, width = self.X.shape
        return f"Split({n} samples, {width} features, {self.Y.shape[1]} labels)"

    def labelled(self) -> "Split":
        """The samples with at least one label."""
        rows = self.Y.any(axis=1)
        return self if rows.all() else Split(self.X[rows], self.Y[rows])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set with its official split.

    Attributes:
        info: its line in the registry.
        train: the official training part, samples without a label included.
        test: the official test part.
        feature_names: one per column of X.
        label_names: one per column of Y.
        source: where this copy came from.
        checksums: SHA-256 of each file it was read from.
        mismatches: where it differs from the paper's statistics, in words.
    """

    info: DatasetInfo
    train: Split
    test: Split
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    source: str
    checksums: dict[str, str]
    mismatches: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Dataset({self.info.name!r}, train={self.train}, test={self.test})"


def cache_folder() -> Path:
    """Where downloads are kept: ``FITZPATRICK_CACHE``, or the user's cache folder."""
    given = os.environ.get("FITZPATRICK_CACHE")
    return Path(given or _download.find_pooch().os_cache("fitzpatrick"))


def dataset_names() -> list[str]:
    """The names that :func:`load_dataset` knows.

    Example:
        >>> dataset_names()[:3]
        ['birds', 'cal500', 'delicious']
    """
    return list(DATASETS)


def load_dataset(
    name: str,
    *,
    split: int | None = None,
    transfer: Transfer = DEFAULT_TRANSFER,
    progress: Progress | None = None,
) -> Dataset:
    """A data set of the paper, with its official split.

    It is taken from the folder that the environment variable ``FITZPATRICK_DATA`` names (files
    ``NAME_train.svm.gz`` and ``NAME_test.svm.gz``, or .arff, plain or compressed; verified against
    ``SHA256SUMS`` if that is there), else from the package (yeast), else from the cache, else it is
    downloaded. One file, ``NAME.arff`` or ``NAME.svm``, is divided at random: as many test samples
    as in the paper, and the rest to learn from.

    Args:
        name: one of :func:`dataset_names`.
        split: seed of that division; None refuses a set without an official split.
        transfer: time-outs, attempts and size cap of downloads.
        progress: called with bytes so far and in all while a download runs.

    Raises:
        ValueError: if no data set has that name.
        UnavailableError: if it is not on this machine and cannot be downloaded.
        DataError: if a file of it is damaged.

    Warns:
        DatasetMismatchWarning: if it is not as the paper's statistics say.

    Example:
        >>> data = load_dataset("yeast")
        >>> data.train.X.shape, data.train.Y.shape, data.test.X.shape
        ((1500, 103), (1500, 14), (917, 103))
    """
    if name not in DATASETS:
        raise ValueError(f"unknown data set {name!r}; the names are {', '.join(DATASETS)}")
    info = DATASETS[name]
    paths = _in_folder(info, split)
    if len(paths) == 2:
        parts = _read_parts(info, paths)
        data = _dataset(info, *parts, f"{FOLDER_VARIABLE}: {info.source}", paths)
    elif paths:
        data = _divided(info, paths[0], split)
    elif info.format == "embedded":
        data = _embedded(info)
    else:
        data = _downloaded(info, transfer, progress)
    for mismatch in data.mismatches:
        warnings.warn(f"{name}: {mismatch}", DatasetMismatchWarning, stacklevel=2)
    return data


def where() -> dict[str, str]:
    """Where :func:`load_dataset` would take each data set from, in a word.

    A copy that is there and cannot be used is ``"unusable: "`` and the reason.
    """
    return {name: _place(info) for name, info in DATASETS.items()}


def _place(info: DatasetInfo) -> str:
    try:
        if _in_folder(info):
            return FOLDER_VARIABLE
        if info.format == "embedded":
            return "embedded"
        if info.train is None:
            return "by hand (--details)"
        return "cache" if all(file.is_file() for file in _cached(info)) else "download"
    except (DataError, UnavailableError) as error:
        return f"unusable: {error}"


def _dataset(
    info: DatasetInfo, train: Table, test: Table, source: str, files: Sequence[Path], *said: str
) -> Dataset:
    parts = Split(train.X, train.Y), Split(test.X, test.Y)
    checksums = {path.name: sha256(path) for path in files}
    mismatches = (*said, *_mismatches(info, train, test))
    names = train.feature_names, train.target_names
    return Dataset(info, *parts, *names, source, checksums, mismatches)


def _embedded(info: DatasetInfo) -> Dataset:
    X, Y, feature_names, label_names = yeast.load()
    table = Table(X, Y, "indicators", feature_names, label_names)
    test, train = (table.rows(rows) for rows in np.split(np.arange(len(Y)), [yeast.TEST_ROWS]))
    file = Path(yeast.__file__).with_name(yeast.FILE)
    return _dataset(info, train, test, info.source, [file])


def _in_folder(info: DatasetInfo, seed: int | None = None) -> tuple[Path, ...]:
    """The files of the data folder: both parts of a set, or one file to divide, if there is a seed
    or no official split elsewhere; an error if one part is not there.
    """
    variable = os.environ.get(FOLDER_VARIABLE)
    if not variable:
        return ()
    folder = Path(variable)
    if not folder.is_dir():
        raise UnavailableError(f"{FOLDER_VARIABLE} names {folder}, which is not a folder")
    files = {file.name.lower(): file for file in sorted(folder.iterdir()) if file.is_file()}

    def find(*endings: str) -> Path | None:
        names = (f"{info.name}{ending}{suffix}" for suffix in _SUFFIXES for ending in endings)
        return next((files[name] for name in names if name in files), None)

    train, test = (
        find(f"_{part}", f"_{part}_sparse", f"-{part}", f"-{part}-sparse")
        for part in ("train", "test")
    )
    if train is None and test is None:
        has_official_split = info.format == "embedded" or info.train is not None
        whole = find("") if seed is not None or not has_official_split else None
        return () if whole is None else (whole,)
    if train is None or test is None:
        present, missing = ("train", "test") if test is None else ("test", "train")
        raise UnavailableError(f"{folder} has the {present} part of {info.name}, not the {missing}")
    first, second = format_of(train), format_of(test)
    if first != second:
        raise DataError(f"{second}, where {train.name} is {first}; expected one format", test)
    _verify(train, test)
    return train, test


def _divided(info: DatasetInfo, path: Path, seed: int | None) -> Dataset:
    """A data set of one file, divided at random; only samples with a label are counted."""
    if seed is None:
        problem = f"{path} is one file without an official split"
        raise UnavailableError(f"{problem}; --split SEED (in Python, split=) divides it at random")
    _verify(path)
    table = _read(path, info).labelled(path)
    n_test = min(info.published.test, table.X.shape[0] // 2)
    n_train = min(info.published.train + info.published.dev, table.X.shape[0] - n_test)
    train, test = split_table(table, (n_train, n_test), seed)
    source = f"{FOLDER_VARIABLE}: {info.source}; divided at random, seed {seed}"
    mismatch = f"no official split, divided at random with the seed {seed}"
    return _dataset(info, train, test, source, [path], mismatch)


def _verify(*paths: Path) -> None:
    """Compare files with the checksums beside them, if they are listed there."""
    sums = read_checksums(paths[0].with_name(CHECKSUMS))
    for path in paths:
        if path.name in sums and sha256(path) != sums[path.name]:
            raise DataError(f"its SHA-256 is not the one in {CHECKSUMS} beside it", path)


def _downloaded(info: DatasetInfo, transfer: Transfer, progress: Progress | None) -> Dataset:
    if info.train is None or info.test is None:
        folder = os.environ.get(FOLDER_VARIABLE)
        missing = f"{info.name} is not in {folder}" if folder else f"{FOLDER_VARIABLE} is not set"
        place = "that folder" if folder else f"a folder, and set {FOLDER_VARIABLE} to it"
        problem = f"{missing}, and no address to download {info.name} from is known. Source: "
        problem += f"{info.source}. Put {info.name}_train and {info.name}_test (.svm or .arff, "
        raise UnavailableError(f"{problem}plain or compressed) into {place} (docs/data.md)")
    paths = _cached(info)
    for remote, path in zip((info.train, info.test), paths, strict=True):
        _download.fetch(remote, path.name, path.parent, transfer, progress)
    try:
        train, test = _read_parts(info, paths)
    except DataError as error:
        _download.discard(paths)
        problem = f"{error.problem}: the download cannot be used, and the next one starts anew"
        problem += f"; if it is there, delete it and {paths[0].with_name(CHECKSUMS)}"
        raise DataError(problem, error.path, error.line) from None
    if not _mismatches(info, train, test, of_widths=False):
        _download.record(paths)
    return _dataset(info, train, test, f"downloaded from {info.source}", paths)


def _cached(info: DatasetInfo) -> tuple[Path, ...]:
    return tuple(cache_folder() / f"{info.name}_{part}.svm.bz2" for part in ("train", "test"))


def _read_parts(info: DatasetInfo, paths: Sequence[Path]) -> tuple[Table, Table]:
    train = _read(paths[0], info)
    return train, _read(paths[1], info, train)


def _read(path: Path, info: DatasetInfo, like: Table | None = None) -> Table:
    if format_of(path) == "arff":
        return read_table(path, like=like, options=_AS_PUBLISHED)
    return read_libsvm(path, n_features=info.features, n_classes=info.classes)


def _mismatches(
    info: DatasetInfo, train: Table, test: Table, *, of_widths: bool = True
) -> tuple[str, ...]:
    said = info.published
    n_train, n_test = (int(part.Y.any(axis=1).sum()) for part in (train, test))
    found = [
        ("training samples with a label", n_train, said.train + said.dev),
        ("test samples with a label", n_test, said.test),
        ("features", train.X.shape[1], said.features),
        ("classes", train.Y.shape[1], said.classes),
    ]
    return tuple(
        f"{count} {what}, where the paper has {expected}"
        for what, count, expected in found[: None if of_widths else 2]
        if count != expected
    )
