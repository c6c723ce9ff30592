"""Which array libraries, engines and precisions the contracts run on."""

import pytest

from fitzpatrick.engines import _bind
from tests.helpers import LIBRARIES, TEST_ALL, Library


@pytest.fixture(params=["numpy", "numba", "torch", "jax"])
def xp(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Library:
    """Each array library in turn; ``numba`` is NumPy arrays on the compiled rows."""
    name = request.param
    if not Library(name).is_installed:
        pytest.skip(f"{name} is not installed")
    if name == "numba":
        monkeypatch.setattr(_bind, "_MIN_COMPILED_SIZE", 0)  # whatever the size of the problem
    return LIBRARIES["numpy" if name == "numba" else name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out what would run the same code again, and what is for ``make test-all`` alone."""
    items[:] = [item for item in items if not _is_needless(item)]


def _is_needless(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return False
    library, case, dtype = (item.callspec.params.get(name) for name in ("xp", "case", "dtype"))
    if library == "numba":
        compiled = (_bind._LOGISTIC, _bind._SPARSEMAX, _bind._ENTMAX15)
        return case is None or case.sample not in compiled
    if TEST_ALL or library not in ("torch", "jax"):
        return False
    # test_libraries carries what holds for NumPy over to the other libraries. JAX compiles each
    # operation for each dtype: one dtype, its default, while the accuracy is tested in both.
    return item.path.stem != "test_libraries" or (library == "jax" and dtype == "float64")
