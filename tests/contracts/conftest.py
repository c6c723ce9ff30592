"""The inputs of the contracts."""

import pytest

from tests.conftest import installed
from tests.contracts.draws import Batch, draw_batch
from tests.helpers import Library


@pytest.fixture(params=["numpy"])
def xp(request: pytest.FixtureRequest) -> Library:
    """NumPy arrays, on the engine that their size chooses; tests/parity knows all engines.

    A test may ask for another library, as test_libraries does.
    """
    return installed(request.param)


@pytest.fixture
def batch(request: pytest.FixtureRequest, xp: Library, dtype: str) -> Batch:
    """Targets and scores of the test's own, as ``every_batch`` asks for them."""
    case, seed, scales = request.param
    return draw_batch(case, xp, dtype, seed, request.function.__name__, scales)
