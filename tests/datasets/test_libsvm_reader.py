"""The LIBSVM multi-label reader against scikit-learn's writer, and against broken files."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from fitzpatrick.datasets import read_inputs, read_libsvm
from tests.helpers import seeded

from .files import check_refusal, write


def test_agrees_with_scikit_learn(tmp_path):
    generator = seeded(0)
    X = generator.normal(size=(60, 40)).round(6) * (generator.random((60, 40)) < 0.2)
    Y = generator.random((60, 7)) < 0.3
    assert not Y.any(axis=1).all()  # samples without a label are among them
    file = str(tmp_path / "data.svm")
    dump_svmlight_file(X, Y, file, zero_based=False, multilabel=True)
    table = read_libsvm(file, n_features=40, n_classes=7)
    assert sparse.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), X)
    np.testing.assert_array_equal(table.Y, Y)


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


def test_files_to_predict_need_no_labels(tmp_path):
    columns = read_libsvm(write(tmp_path, "0 1:3 3:1\n1 2:2\n", "a.svm")).columns
    table = read_inputs(write(tmp_path, " 1:3\n 2:1\n", "b.svm"), columns)
    assert table.X.tolist() == [[3, 0, 0], [0, 1, 0]]
