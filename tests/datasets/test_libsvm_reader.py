"""The LIBSVM multi-label reader against scikit-learn's, and against broken files."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from fitzpatrick.datasets import read_libsvm
from tests.helpers import seeded

from .files import check_refusal, write


def random_file(tmp_path, n=60, d=40, k=7, density=0.2, seed=0):
    generator = seeded(seed)
    lines = []
    for _ in range(n):
        labels = np.flatnonzero(generator.random(k) < 0.3)
        features = np.flatnonzero(generator.random(d) < density)
        values = generator.normal(size=features.size)
        head = ",".join(map(str, labels)) or " "
        tail = " ".join(f"{i + 1}:{v!r}" for i, v in zip(features, values.tolist(), strict=True))
        lines.append(f"{head} {tail}".replace("  ", " "))
    return write(tmp_path, "\n".join(lines) + "\n", "data.svm")


def test_agrees_with_scikit_learn(tmp_path):
    path = random_file(tmp_path)
    table = read_libsvm(path, n_features=40, n_classes=7)
    X, labels = load_svmlight_file(str(path), multilabel=True, zero_based=False, n_features=40)
    assert sparse.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), X.toarray())
    expected = np.zeros((60, 7), dtype=np.uint8)
    for row, marks in enumerate(labels):
        expected[row, np.asarray(marks, dtype=int)] = 1
    np.testing.assert_array_equal(table.Y, expected)
    assert (expected.sum(axis=1) == 0).any()  # samples without a label are among them


def test_widths_without_being_told(tmp_path):
    table = read_libsvm(write(tmp_path, "0,3 5:1 2:3\n 5:1 # no label\n\n1 1:2\n"))
    assert table.X.tolist() == [[0, 3, 0, 0, 1], [0, 0, 0, 0, 1], [2, 0, 0, 0, 0]]
    assert table.Y.tolist() == [[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert table.feature_names[0] == "feature_1"
    assert table.target_names[-1] == "label_3"
    wide = read_libsvm(tmp_path / "data.csv", n_features=100)
    assert wide.X.indices.tolist() == [1, 4, 4, 0]  # in order in each row


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (" 0 1:1\n", 1, "'0' is not a feature of the form index:value"),
        ("0 1:1\n0 2\n", 2, "'2' is not a feature of the form index:value"),
        ("0 1:1:2\n", 1, "has no value after a colon|not a feature"),
        ("0 1:1\n\nx 1:1\n", 3, "label 'x' is not a whole number from 0"),
        ("-1 1:1\n", 1, "label '-1' is not a whole number"),
        ("0 0:1\n", 1, "feature index 0 is out of range, expected 1 to"),
        ("0 99999999999999:1\n", 1, "feature index 99999999999999 is out of range"),
        ("99999999 1:1\n", 1, "label '99999999' is out of range"),
        ("9" * 5000 + " 1:1\n", 1, "label '999.*' is out of range"),
        ("0 1:1 1:2\n", 1, "a feature index occurs twice"),
        ("0,0 1:1\n", 1, "a label occurs twice"),
        ("0 1:1_0\n", 1, "'1:1_0' is not a feature"),
        ("0 1_0:1\n", 1, "'1_0:1' is not a feature"),
        ("0 1:nan\n", 1, "not a finite number"),
        ("# nothing\n", None, "no sample"),
        (" 1:1\n", None, "no label"),
        ("0 1:1\n1 3:1\n", 2, "feature index 3 is out of range, expected 1 to 2"),
        ("0 1:1\n2 1:1\n", 2, "label '2' is out of range, expected 0 to 1"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path, text, line, problem):
    path = write(tmp_path, text)
    widths = {"n_features": 2, "n_classes": 2} if problem.endswith(("to 1", "to 2")) else {}
    check_refusal(lambda: read_libsvm(path, **widths), path, line, problem)
