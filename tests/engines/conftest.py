"""Every test of the engines runs with the rows in NumPy and with those compiled by Numba."""

import pytest

import fitzpatrick as fp
from fitzpatrick.engines import _bind, find_kernel

COMPILED = {name for name in fp.loss_names() if find_kernel("numba", fp.get_loss(name).regularizer)}


@pytest.fixture(params=["numpy", "numba"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine that ``engine=None`` chooses, whatever the size of the problem."""
    least_size = {"numpy": 1 << 62, "numba": 0}[request.param]
    monkeypatch.setattr(_bind, "MIN_COMPILED_SIZE", least_size)
    return str(request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Losses that have no compiled rows are not tested twice."""

    def is_needless(item: pytest.Item) -> bool:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            return False
        params = item.callspec.params
        return params.get("engine") == "numba" and params.get("name", "sparsemax") not in COMPILED

    items[:] = [item for item in items if not is_needless(item)]
