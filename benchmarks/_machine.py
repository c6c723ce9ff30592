"""Describe the machine of a benchmark, and store its figures."""

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "torch", "entmax", "jax", "optax", "dask")


def cpu_model() -> str:
    """The name of the processor, from the system."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def describe() -> dict[str, object]:
    """Processor, cores and versions."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def write_record(path: Path, **figures: Any) -> None:
    """Write figures and the machine to a JSON file."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": describe(), **figures}, indent=2) + "\n")
