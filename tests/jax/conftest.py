import jax
import pytest

from .cases import TEST_ALL, enable_x64, forget


@pytest.fixture(autouse=True)
def _double_precision():
    """float64 is there to be asked for, whatever the rest of the suite has set."""
    with enable_x64(True):
        yield


@pytest.fixture(scope="module")
def quick_compilation():
    """For tests of what is computed, not of how well: XLA compiles faster if it optimizes less."""
    jax.config.update("jax_disable_most_optimizations", not TEST_ALL)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(autouse=True, scope="module")
def _forget(_bounded_memory):
    """Compiled functions that the tests hold on to go before JAX's caches are emptied."""
    yield
    forget()
