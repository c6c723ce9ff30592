"""The engines that the contracts run on."""

from pathlib import Path

import pytest

from fitzpatrick.engines.table import find_kernel
from tests.conftest import installed
from tests.contracts.draws import Batch, draw_batch
from tests.helpers import LIBRARIES, Library

HERE = Path(__file__).parent


@pytest.fixture(params=["numpy", "numba"])
def xp(request: pytest.FixtureRequest) -> Library:
    """NumPy arrays on the engine that their size chooses, and on the compiled rows.

    A test may ask for another library, as test_libraries does.
    """
    if request.param == "numba":
        request.getfixturevalue("compiled_rows")
        return LIBRARIES["numpy"]
    return installed(request.param)


@pytest.fixture
def batch(request: pytest.FixtureRequest, xp: Library, dtype: str) -> Batch:
    """Targets and scores of the test's own, as ``every_batch`` asks for them."""
    case, seed, scales = request.param
    return draw_batch(case, xp, dtype, seed, request.function.__name__, scales)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave compiled rows out where there are none: they would be those of NumPy again."""
    items[:] = [item for item in items if item.path.parent != HERE or _has_rows(item)]


def _has_rows(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if parameters.get("xp") != "numba":
        return True
    if "batch" not in parameters or item.path.stem == "test_divergences":  # which know no engine
        return False
    return find_kernel("numba", parameters["batch"][0].sample) is not None
