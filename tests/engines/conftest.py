"""Every test of the engines runs with the rows in NumPy and with those compiled by Numba."""

import pytest

from fitzpatrick.engines import _bind


@pytest.fixture(params=["numpy", "numba"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine that ``engine=None`` chooses, whatever the size of the problem."""
    if request.param == "numba":
        pytest.importorskip("numba")
    least_size = {"numpy": 1 << 62, "numba": 0}[request.param]
    monkeypatch.setattr(_bind, "MIN_COMPILED_SIZE", least_size)
    return str(request.param)
