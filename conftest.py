"""Tests for packages that are not installed are skipped; those of pages run in other folders."""

import os
from importlib.util import find_spec

if folder := os.environ.get("FITZPATRICK_DATA"):
    os.environ["FITZPATRICK_DATA"] = os.path.abspath(folder)

# what imports each of them
DEPENDENTS = {
    "torch": [
        "src/fitzpatrick/engines/triton",
        "src/fitzpatrick/sets/_isotonic_torch.py",
        "src/fitzpatrick/torch",
        "tests/torch",
    ],
    "triton": ["src/fitzpatrick/engines/triton"],
    "jax": ["src/fitzpatrick/jax", "tests/jax"],
    "lightgbm": ["src/fitzpatrick/boosting"],
    "dask": ["src/fitzpatrick/dask", "tests/dask"],
    "keras": ["src/fitzpatrick/keras.py"],
    "numba": ["src/fitzpatrick/engines/compiled"],
    "typer": ["src/fitzpatrick/cli.py", "tests/experiments", "tests/test_cli.py"],
}

collect_ignore = [
    path for package, paths in DEPENDENTS.items() if find_spec(package) is None for path in paths
]


def pytest_report_header() -> list[str]:
    """Name them."""
    missing = [package for package in DEPENDENTS if find_spec(package) is None]
    return [f"not installed, tests skipped: {', '.join(missing)}"] if missing else []
