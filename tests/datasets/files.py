"""What the tests of the readers share: files of a few lines, and what is to come of them."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick.datasets import DataError, read_table


def write(folder, content, name="data.csv", encoding="utf-8"):
    """A file of a text or of bytes."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def check_table(path, targets, expected, **how):
    """Read a file, and compare what ``expected`` names: X, Y and attributes of the table."""
    table = read_table(path, targets, **how)
    for name, value in expected.items():
        found = getattr(table, name)
        if name in ("X", "Y", "lines"):
            found = found.toarray() if sparse.issparse(found) else found
            np.testing.assert_allclose(found, value, rtol=1e-14, atol=0)  # a division or two
        else:
            assert found == value, name
    return table


def check_refusal(read, path, line, problem):
    """One line that names the file, its line and the problem, a pattern."""
    with pytest.raises(DataError, match=problem) as caught:
        read()
    where = str(path) if line is None else f"{path}, line {line}: "
    assert str(caught.value).startswith(where)
    assert caught.value.line == line
    assert len(str(caught.value).splitlines()) == 1
    named = DataError(**vars(caught.value))
    for error in (caught.value, named):
        again = pickle.loads(pickle.dumps(error))  # as worker processes send it
        assert (
            (str(again), vars(again)) == (str(error), vars(error)) == (again.args[0], vars(named))
        )
    return caught.value
