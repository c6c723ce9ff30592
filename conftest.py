"""What pytest leaves out where an optional package is not installed."""

from importlib.util import find_spec

# what imports each of them
DEPENDENTS = {
    "torch": [
        "src/fitzpatrick/engines/triton",
        "src/fitzpatrick/linear_model/_device.py",
        "src/fitzpatrick/torch",
        "tests/torch",
    ],
    "triton": ["src/fitzpatrick/engines/triton"],
    "jax": ["src/fitzpatrick/jax", "tests/jax"],
    "dask": ["src/fitzpatrick/dask", "tests/dask"],
    "numba": ["src/fitzpatrick/engines/compiled"],
    "typer": ["src/fitzpatrick/cli.py", "tests/experiments", "tests/test_cli.py"],
}

collect_ignore = [
    path for package, paths in DEPENDENTS.items() if find_spec(package) is None for path in paths
]


def pytest_report_header() -> list[str]:
    """Says so."""
    missing = [package for package in DEPENDENTS if find_spec(package) is None]
    return [f"not installed, and their tests left out: {', '.join(missing)}"] if missing else []
