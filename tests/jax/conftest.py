import jax
import pytest


@pytest.fixture(autouse=True)
def _double_precision():
    """float64 is there to be asked for, whatever the rest of the suite has set."""
    with jax.enable_x64(True):
        yield
