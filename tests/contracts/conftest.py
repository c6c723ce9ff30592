"""Which array libraries, engines and precisions the contracts run on."""

from pathlib import Path

import pytest

from fitzpatrick.engines.table import find_kernel
from tests.conftest import installed
from tests.helpers import LIBRARIES, TEST_ALL, Library

HERE = Path(__file__).parent


@pytest.fixture(params=["numpy", "numba", "torch", "jax"])
def xp(request: pytest.FixtureRequest) -> Library:
    """Each array library in turn; ``numba`` is NumPy arrays on the compiled rows."""
    if request.param == "numba":
        request.getfixturevalue("compiled_rows")
        return LIBRARIES["numpy"]
    return installed(request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out what would run the same code again, and what is for ``make test-all`` alone."""
    items[:] = [item for item in items if not _is_needless(item)]


def _is_needless(item: pytest.Item) -> bool:
    # pytest hands over the items of the whole run
    if item.path.parent != HERE or not isinstance(item, pytest.Function):
        return False
    if not hasattr(item, "callspec"):
        return False
    library, case, dtype = (item.callspec.params.get(name) for name in ("xp", "case", "dtype"))
    if library == "numba":  # divergences know no engine
        has_kernel = case is not None and find_kernel("numba", case.sample) is not None
        return not has_kernel or item.path.stem == "test_divergences"
    if TEST_ALL or library not in ("torch", "jax"):
        return False
    # test_libraries carries what holds for NumPy over to the other libraries. JAX compiles each
    # operation for each dtype: one dtype, its default, while the accuracy is tested in both.
    return item.path.stem != "test_libraries" or (library == "jax" and dtype == "float64")
