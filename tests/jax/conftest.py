import pytest

from .cases import enable_x64, second_order


@pytest.fixture(autouse=True)
def _double_precision():
    """float64 is there to be asked for, whatever the rest of the suite has set."""
    with enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def _forget(_bounded_memory):
    """Compiled functions that the tests hold on to go before JAX's caches are emptied."""
    yield
    second_order.cache_clear()
