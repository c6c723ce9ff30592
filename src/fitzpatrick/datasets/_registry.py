"""The data sets of the paper: where they come from, under which terms, and what it says of them."""

from dataclasses import dataclass
from typing import Any

_LIBSVM_DATA = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel"
_MULAN = "Mulan, a Java library for multi-label learning (data sets as RAR archives of ARFF files)"
_LEXGLUE = "LexGLUE benchmark, tf-idf features as in the LIBSVM Data collection"
_RIVER = "embedded, from river 0.26.1; published by Mulan and LIBSVM Data"
_LICENCES = {
    _LEXGLUE: "CC BY 4.0 by LexGLUE's data card; the texts have sources of their own",
    _RIVER: "river: BSD 3-Clause (see embedded/LICENSE.river)",
}


@dataclass(frozen=True)
class Statistics:
    """Samples with a label in each part, and the widths."""

    train: int
    dev: int
    test: int
    features: int
    classes: int


@dataclass(frozen=True)
class Remote:
    """A file to download; without a checksum, the first good download sets it."""

    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set: source, license, sizes, the paper's errors.

    Attributes:
        title: its name in the paper's tables.
        source: the project that publishes it.
        format: format of the published files.
        published: the paper's statistics (Table 2), or the source's where the paper has none.
        paper: test errors of the paper's Table 1, by loss.
        train: the training file to download, if an address is known.
        test: the test file to download, if an address is known.
        n_features: width of the published files, where the paper's number is another.
        n_classes: classes of the published files, where the paper's number is another.
        note: what a reader of the numbers should know.
    """

    title: str
    source: str
    format: str
    published: Statistics
    paper: dict[str, float] | None = None
    train: Remote | None = None
    test: Remote | None = None
    n_features: int | None = None
    n_classes: int | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """The name to load it by."""
        return self.title.lower().replace(" ", "_")

    @property
    def licence(self) -> str:
        """Under which terms it is published, as far as the source says so."""
        return _LICENCES.get(self.source, "not stated by the source")

    @property
    def features(self) -> int:
        """Number of features in the files."""
        return self.n_features or self.published.features

    @property
    def classes(self) -> int:
        """Number of classes in the files."""
        return self.n_classes or self.published.classes


PAPER_LOSSES = ("sparsemax", "fitzpatrick_sparsemax", "logistic", "fitzpatrick_logistic")


def _info(
    title: str, source: str, kind: str, statistics: tuple[int, int, int, int, int],
    errors: tuple[float, ...] = (), files: tuple[str, ...] = (), **more: Any,
) -> DatasetInfo:  # fmt: skip
    """A line of the table below; ``files`` are names at LIBSVM Data."""
    train, test = (Remote(f"{_LIBSVM_DATA}/{file}") for file in files) if files else (None, None)
    paper = dict(zip(PAPER_LOSSES, errors, strict=True)) if errors else None
    return DatasetInfo(title, source, kind, Statistics(*statistics), paper, train, test, **more)


# fmt: off
_ALL = (
    _info("Birds", _MULAN, "arff", (134, 45, 172, 260, 19), (.531, .513, .519, .522)),
    _info("Cal500", _MULAN, "arff", (376, 126, 101, 68, 174), (.035, .035, .034, .034),
          note="train and dev are the whole set already, so the paper's test rows overlap them"),
    _info("Delicious", _MULAN, "arff", (9682, 3228, 3181, 500, 983), (.051, .052, .056, .055)),
    _info("Ecthr A", _LEXGLUE, "libsvm", (6683, 228, 847, 92401, 10), (.514, .514, .431, .423),
          note="the paper's dev size 228 is probably 2228"),
    _info("Emotions", _MULAN, "arff", (293, 98, 202, 72, 6), (.317, .318, .327, .320)),
    _info("Flags", _MULAN, "arff", (96, 33, 65, 19, 7), (.186, .188, .184, .187)),
    _info("Mediamill", "LIBSVM Data, multi-label (mediamill, exp1)", "libsvm",
          (22353, 7451, 12373, 120, 101), (.191, .203, .207, .220),
          ("mediamill/train-exp1.svm.bz2", "mediamill/test-exp1.svm.bz2")),
    _info("Scene", "LIBSVM Data, multi-label (scene-classification)", "libsvm",
          (908, 303, 1196, 294, 6), (.363, .355, .344, .368),
          ("scene_train.bz2", "scene_test.bz2")),
    _info("Tmc", "LIBSVM Data, multi-label (siam-competition2007)", "libsvm",
          (16139, 5380, 7077, 48099, 896), (.151, .152, .161, .160),
          ("tmc2007_train.svm.bz2", "tmc2007_test.svm.bz2"), n_features=30438, n_classes=22,
          note="the paper's 896 classes and 48099 features fit no published version of this set"),
    _info("tmc2007-500", _MULAN, "arff", (16139, 5380, 7077, 500, 22),
          note="Tmc's samples with 500 selected features; not a row of the paper's tables"),
    _info("Unfair", _LEXGLUE, "libsvm", (645, 215, 172, 6290, 8), (.149, .148, .157, .158)),
    _info("Yeast", _RIVER, "embedded", (1125, 375, 917, 103, 14), (.186, .187, .183, .185)),
)
# fmt: on

DATASETS: dict[str, DatasetInfo] = {info.name: info for info in _ALL}
