"""The data sets of the paper: where they come from, under which terms, and what it says of them."""

from dataclasses import dataclass

_LIBSVM_DATA = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel"
_MULAN = "Mulan, a Java library for multi-label learning (data sets as RAR archives of ARFF files)"
_LEXGLUE = "LexGLUE benchmark, tf-idf features as in the LIBSVM Data collection"
_NOT_STATED = "not stated by the source"
_LEXGLUE_LICENCE = "CC BY 4.0 by LexGLUE's data card; the texts have sources of their own"


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
    """A file to download; without a checksum, the first one seen is recorded and enforced."""

    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """One data set.

    Attributes:
        name: the name to load it by.
        title: its name in the paper's tables.
        source: the project that publishes it.
        licence: under which terms, as far as it says so.
        format: format of the published files.
        published: the paper's statistics (Table 2), or the source's where the paper has none.
        n_features: width of the published files, where the paper's number is another.
        n_classes: classes of the published files, where the paper's number is another.
        paper: test errors of the paper's Table 1, by loss.
        train: the training file to download, if an address is known.
        test: the test file to download, if an address is known.
        note: what a reader of the numbers should know.
    """

    name: str
    title: str
    source: str
    licence: str
    format: str
    published: Statistics
    n_features: int | None = None
    n_classes: int | None = None
    paper: dict[str, float] | None = None
    train: Remote | None = None
    test: Remote | None = None
    note: str = ""

    @property
    def features(self) -> int:
        """Number of features in the files."""
        return self.n_features or self.published.features

    @property
    def classes(self) -> int:
        """Number of classes in the files."""
        return self.n_classes or self.published.classes


PAPER_LOSSES = ("sparsemax", "fitzpatrick_sparsemax", "logistic", "fitzpatrick_logistic")


def _errors(*values: float) -> dict[str, float]:
    return dict(zip(PAPER_LOSSES, values, strict=True))


def _libsvm(file: str) -> Remote:
    return Remote(f"{_LIBSVM_DATA}/{file}")


_ALL = (
    DatasetInfo(
        name="birds",
        title="Birds",
        source=_MULAN,
        licence=_NOT_STATED,
        format="arff",
        published=Statistics(134, 45, 172, 260, 19),
        paper=_errors(0.531, 0.513, 0.519, 0.522),
    ),
    DatasetInfo(
        name="cal500",
        title="Cal500",
        source=_MULAN,
        licence=_NOT_STATED,
        format="arff",
        published=Statistics(376, 126, 101, 68, 174),
        paper=_errors(0.035, 0.035, 0.034, 0.034),
        note="train and dev are the whole set already, so the paper's test rows overlap them",
    ),
    DatasetInfo(
        name="delicious",
        title="Delicious",
        source=_MULAN,
        licence=_NOT_STATED,
        format="arff",
        published=Statistics(9682, 3228, 3181, 500, 983),
        paper=_errors(0.051, 0.052, 0.056, 0.055),
    ),
    DatasetInfo(
        name="ecthr_a",
        title="Ecthr A",
        source=_LEXGLUE,
        licence=_LEXGLUE_LICENCE,
        format="libsvm",
        published=Statistics(6683, 228, 847, 92401, 10),
        paper=_errors(0.514, 0.514, 0.431, 0.423),
        note="the paper's dev size 228 is probably 2228",
    ),
    DatasetInfo(
        name="emotions",
        title="Emotions",
        source=_MULAN,
        licence=_NOT_STATED,
        format="arff",
        published=Statistics(293, 98, 202, 72, 6),
        paper=_errors(0.317, 0.318, 0.327, 0.320),
    ),
    DatasetInfo(
        name="flags",
        title="Flags",
        source=_MULAN,
        licence=_NOT_STATED,
        format="arff",
        published=Statistics(96, 33, 65, 19, 7),
        paper=_errors(0.186, 0.188, 0.184, 0.187),
    ),
    DatasetInfo(
        name="mediamill",
        title="Mediamill",
        source="LIBSVM Data, multi-label (mediamill, exp1)",
        licence=_NOT_STATED,
        format="libsvm",
        published=Statistics(22353, 7451, 12373, 120, 101),
        paper=_errors(0.191, 0.203, 0.207, 0.220),
        train=_libsvm("mediamill/train-exp1.svm.bz2"),
        test=_libsvm("mediamill/test-exp1.svm.bz2"),
    ),
    DatasetInfo(
        name="scene",
        title="Scene",
        source="LIBSVM Data, multi-label (scene-classification)",
        licence=_NOT_STATED,
        format="libsvm",
        published=Statistics(908, 303, 1196, 294, 6),
        paper=_errors(0.363, 0.355, 0.344, 0.368),
        train=_libsvm("scene_train.bz2"),
        test=_libsvm("scene_test.bz2"),
    ),
    DatasetInfo(
        name="tmc",
        title="Tmc",
        source="LIBSVM Data, multi-label (siam-competition2007)",
        licence=_NOT_STATED,
        format="libsvm",
        published=Statistics(16139, 5380, 7077, 48099, 896),
        n_features=30438,
        n_classes=22,
        paper=_errors(0.151, 0.152, 0.161, 0.160),
        note="the paper's 896 classes and 48099 features fit no published version of this set",
        train=_libsvm("tmc2007_train.svm.bz2"),
        test=_libsvm("tmc2007_test.svm.bz2"),
    ),
    DatasetInfo(
        name="tmc2007-500",
        title="tmc2007-500",
        source=_MULAN,
        licence=_NOT_STATED,
        format="arff",
        published=Statistics(16139, 5380, 7077, 500, 22),
        note="Tmc's samples with 500 selected features; not a row of the paper's tables",
    ),
    DatasetInfo(
        name="unfair",
        title="Unfair",
        source=_LEXGLUE,
        licence=_LEXGLUE_LICENCE,
        format="libsvm",
        published=Statistics(645, 215, 172, 6290, 8),
        paper=_errors(0.149, 0.148, 0.157, 0.158),
    ),
    DatasetInfo(
        name="yeast",
        title="Yeast",
        source="embedded, from river 0.26.1; published by Mulan and LIBSVM Data",
        licence="river: BSD 3-Clause (see embedded/LICENSE.river)",
        format="embedded",
        published=Statistics(1125, 375, 917, 103, 14),
        paper=_errors(0.186, 0.187, 0.183, 0.185),
    ),
)

DATASETS: dict[str, DatasetInfo] = {info.name: info for info in _ALL}
