"""Tests that use the engine run with the rows in NumPy and with those compiled by Numba."""

import pytest

from fitzpatrick.engines import table


@pytest.fixture(params=["numpy", "numba"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine that ``engine=None`` chooses, whatever the size of the problem."""
    least_size = {"numpy": 1 << 62, "numba": 0}[request.param]
    monkeypatch.setattr(table, "MIN_COMPILED_SIZE", least_size)
    return str(request.param)
