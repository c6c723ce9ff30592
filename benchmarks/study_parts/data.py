"""The data sets of the study, each with the SHA-256 of its files.

Files are read from the folder FITZPATRICK_DATA, Fashion-MNIST also from Debian's package
``dataset-fashion-mnist``. Other data sets come with scikit-learn.
"""

import functools
import gzip
import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import datasets
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from fitzpatrick.preprocessing import label_proportions

CHECKSUMS = Path(__file__).with_name("SHA256SUMS")
FASHION = Path("/usr/share/datasets/fashion-mnist")
DENSE, TEXT = (1e-3, 1e5), (1e-5, 1e2)  # ranges of the penalty; text has rows of length one
LDL = "label distributions"


class MissingDataError(Exception):
    """The files of a data set are missing, or differ from the files of the study."""


@dataclass(frozen=True, eq=False)
class Task:
    """A data set for learning.

    Attributes:
        name: as in the tables.
        kind: multi-label, label distributions, votes, proportions, classes or counts.
        X: features, dense or CSR.
        Y: proportions or counts (n, k), or labels (n,).
        alphas: the least and the largest penalty.
        standardize: True if features are brought to mean 0 and deviation 1.
        max_train: most rows to learn from.
        max_test: most rows to test on.
        n_official: rows of the official training part, which come first; 0 if there is none.
        refine: how often steps of the penalty, powers of ten at first, are halved.
    """

    name: str
    kind: str
    X: Any
    Y: np.ndarray
    alphas: tuple[float, float] = DENSE
    standardize: bool = True
    max_train: int = 2000
    max_test: int = 2000
    n_official: int = 0
    refine: int = 3

    @property
    def has_labels(self) -> bool:
        """True if targets are class labels."""
        return self.Y.ndim == 1

    @functools.cached_property
    def targets(self) -> np.ndarray:
        """Targets (n, k), one-hot for labels."""
        return np.eye(int(self.Y.max()) + 1)[self.Y] if self.has_labels else self.Y

    def split(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Random rows for training, and a random quarter of all rows for testing."""
        rows = np.random.default_rng(seed).permutation(self.X.shape[0])
        n_test = len(rows) // 4
        return rows[n_test:][: self.max_train], rows[:n_test][: self.max_test]


ONCE = ("delicious",)  # for the paper's table only, on one split: a cell takes 7 to 21 minutes
LOSSES = ("logistic", "sparsemax", "entmax15", "tsallis13")


def known_checksums() -> dict[str, str]:
    lines = CHECKSUMS.read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def check(name: str, content: bytes) -> None:
    if hashlib.sha256(content).hexdigest() != known_checksums().get(name):
        raise MissingDataError(f"{name} is not the file of the study: its SHA-256 differs")


def content_of(name: str, *folders: Path) -> bytes:
    """The bytes of a file in one of the folders, with a verified checksum."""
    own = os.environ.get("FITZPATRICK_DATA")
    for folder in (*([Path(own)] if own else []), *folders):
        if (folder / name).exists():
            content = (folder / name).read_bytes()
            check(name, content)
            return gzip.decompress(content)
    raise MissingDataError(f"{name} is not in FITZPATRICK_DATA ({own or 'not set'})")


def lines_of_labels(name: str, d: int, k: int) -> tuple[Any, np.ndarray]:
    """Features and labels (n, k) of a LIBSVM file, rows without a label left out."""
    content = io.BytesIO(content_of(name))
    X, labels = datasets.load_svmlight_file(
        content, multilabel=True, zero_based=False, n_features=d
    )
    Y = np.zeros((len(labels), k))
    for row, of_row in zip(Y, labels, strict=True):
        row[np.asarray(of_row, dtype=int)] = 1
    kept = Y.any(axis=1)
    return sparse.csr_array(X)[kept], Y[kept]


def multi_label(name: str, d: int, k: int) -> Task:
    """A set with an official split, its training rows first."""
    parts = [lines_of_labels(f"{name}_{part}.svm.gz", d, k) for part in ("train", "test")]
    X = np.vstack([part[0].toarray() for part in parts])
    Y = label_proportions(np.vstack([part[1] for part in parts]))
    refine = 0 if name in ONCE else 3
    return Task(name, "multi-label", X, Y, n_official=parts[0][1].shape[0], refine=refine)


def text_labels(name: str, d: int, k: int, max_train: int = 2000) -> Task:
    """Rows of words, of length one; classes that never occur are left out.

    If there are more features than rows, features are rotated into the span of the rows, which does
    not change a fit with a quadratic penalty.
    """
    X, Y = lines_of_labels(f"study/{name}.svm.gz", d, k)
    X, Y = normalize(X), label_proportions(Y[:, Y.any(axis=0)])
    if X.shape[0] < min(X.shape[1], 3000):
        left, values, _ = np.linalg.svd(X.toarray(), full_matrices=False)
        X = left * values
    return Task(name, "multi-label", X, Y, TEXT, standardize=False, max_train=max_train)


def table(name: str) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(content_of(name)))


def columns(frame: pd.DataFrame, letter: str) -> np.ndarray:
    """The columns of features, f1 and so on, or of targets, d1 and so on."""
    return np.asarray(frame.filter(regex=rf"^{letter}\d+$"), dtype=np.float64)


def distributions(name: str) -> Task:
    frame = table(f"label_distributions/{name}.csv.gz")
    return Task(name, LDL, columns(frame, "f"), columns(frame, "d"))


def counties() -> Task:
    frame = table("study/us_counties.csv.gz")
    X = frame.loc[:, "PST045214":"POP060210"].to_numpy(dtype=np.float64)
    return Task("us_counties", "proportions", np.sign(X) * np.log1p(np.abs(X)), columns(frame, "d"))


def budget() -> Task:
    frame = table("study/budget_uk.csv.gz")
    X = frame[["totexp", "income", "age", "children"]].to_numpy(dtype=np.float64)
    X[:, :2] = np.log(X[:, :2])
    return Task("budget_uk", "proportions", X, columns(frame, "d"))


def votes() -> Task:
    frame = table("study/cifar10h.csv.gz")
    return Task("cifar10h", "votes", columns(frame, "f"), label_proportions(columns(frame, "d")))


def words_of(texts: pd.Series) -> Any:
    """Texts by their TF-IDF, without rare words."""
    vectorizer = TfidfVectorizer(min_df=3, sublinear_tf=True, max_features=2000)
    return sparse.csr_array(vectorizer.fit_transform(texts))


def annotators(name: str) -> Task:
    """The share of annotators who said yes to a text."""
    frame = table(f"study/{name}.csv.gz")
    return Task(name, "votes", words_of(frame["text"]), columns(frame, "d"), TEXT, False)


def emotions_of_text() -> Task:
    frame = table("study/goemotions.csv.gz")
    Y = label_proportions(frame["labels"].str.get_dummies("|").to_numpy(dtype=np.float64))
    return Task("goemotions", "multi-label", words_of(frame["text"]), Y, TEXT, False)


def classes(name: str) -> Task:
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    check(
        f"sklearn/{name}",
        np.ascontiguousarray(X, dtype="<f8").tobytes() + y.astype("<i8").tobytes(),
    )
    return Task(name, "classes", X, y)


def digits_counts() -> Task:
    """Pixels of digits count the dots of 4 × 4 cells: those of the lower half from the upper."""
    X = classes("digits").X
    lower = X[:, 32:]
    return Task("digits_counts", "counts", X[:, :32], lower[:, lower.max(axis=0) > 0])


def fashion() -> Task:
    """The test images of Fashion-MNIST, at a quarter of their size."""
    content = [
        np.frombuffer(content_of(f"t10k-{part}-ubyte.gz", FASHION), dtype=np.uint8)
        for part in ("images-idx3", "labels-idx1")
    ]
    images = content[0][16:].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
    y = content[1][8:].astype(np.int64)
    return Task("fashion_mnist", "classes", images / 255, y, max_train=3000)


YEAST = ("spoem", "spo5", "cold", "dtt", "heat", "spo", "diau", "elu", "cdc", "alpha")
SETS: dict[str, Callable[[], Task]] = {  # roughly from small to large
    **{name: partial(classes, name) for name in ("iris", "wine", "breast_cancer")},
    "flags": partial(multi_label, "flags", 19, 7),
    "emotions": partial(multi_label, "emotions", 72, 6),
    "budget_uk": budget,
    **{name: partial(distributions, name) for name in ("music", "painting")},
    **{f"yeast_{name}": partial(distributions, f"yeast_{name}") for name in YEAST},
    "us_counties": counties,
    "cifar10h": votes,
    **{f"lewidi_{name}": partial(annotators, f"lewidi_{name}") for name in ("hs_brexit", "armis")},
    "digits_counts": digits_counts,
    "emotion6": partial(distributions, "emotion6"),
    "stackex_coffee": partial(text_labels, "stackex_coffee", 1763, 123),
    "yeast": partial(multi_label, "yeast", 103, 14),
    "digits": partial(classes, "digits"),
    "lewidi_md_agreement": partial(annotators, "lewidi_md_agreement"),
    "lewidi_convabuse": partial(annotators, "lewidi_convabuse"),
    "slashdot": partial(text_labels, "slashdot", 1079, 22),
    "scene": partial(multi_label, "scene", 294, 6),
    "fashion_mnist": fashion,
    "fg_net": partial(distributions, "fg_net"),
    "tmc2007-500": partial(multi_label, "tmc2007-500", 500, 22),
    "ng20": partial(text_labels, "ng20", 1006, 20),
    "ohsumed": partial(text_labels, "ohsumed", 1002, 23),
    "yahoo_arts": partial(text_labels, "yahoo_arts", 23146, 26),
    "goemotions": emotions_of_text,
    "yahoo_business": partial(text_labels, "yahoo_business", 21924, 30),
    "yahoo_education": partial(text_labels, "yahoo_education", 27534, 33),
    "yahoo_health": partial(text_labels, "yahoo_health", 30605, 32),
    "yahoo_reference": partial(text_labels, "yahoo_reference", 39679, 33),
    "yahoo_science": partial(text_labels, "yahoo_science", 37187, 40),
    "langlog": partial(text_labels, "langlog", 1004, 75),
    "reutersk500": partial(text_labels, "reutersk500", 500, 103, 1000),
    "rcv1sub1": partial(text_labels, "rcv1sub1", 47236, 101, 1000),
    "rcv1sub2": partial(text_labels, "rcv1sub2", 47236, 101, 1000),
    "corel16k001": partial(text_labels, "corel16k001", 500, 153, 1000),
    "stackex_chemistry": partial(text_labels, "stackex_chemistry", 540, 175, 1000),
    "stackex_chess": partial(text_labels, "stackex_chess", 585, 227, 1000),
    "stackex_philosophy": partial(text_labels, "stackex_philosophy", 842, 233, 1000),
    "stackex_cs": partial(text_labels, "stackex_cs", 635, 274, 1000),
    "stackex_cooking": partial(text_labels, "stackex_cooking", 577, 400, 1000),
    "delicious": partial(multi_label, "delicious", 500, 983),
}


@functools.lru_cache(4)
def load(name: str) -> Task:
    """Load a data set; MissingDataError if its files are missing or differ."""
    task = SETS[name]()
    if not sparse.issparse(task.X):  # constant columns have no information
        task = replace(task, X=task.X[:, np.ptp(task.X, axis=0) > 0])
    return task
