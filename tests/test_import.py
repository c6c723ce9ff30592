"""What importing the package loads, what it exports, and which module may import which."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fitzpatrick

SOURCE = Path(fitzpatrick.__file__).parent
HEAVY = ("torch", "jax", "dask", "sklearn", "matplotlib", "numba")

# The direction of the data flow: a module imports from its own layer or from lower ones.
LAYERS = (
    ("_array",),
    ("special", "_root"),
    ("sets",),
    ("_validation",),
    ("regularizers",),
    ("losses", "divergences", "engines"),
    ("_weights", "metrics", "preprocessing"),
    ("linear_model", "torch", "jax"),
    ("dask",),
    ("datasets", "_page"),
    ("experiments", "explorer"),
    ("cli",),
    ("__main__",),
)
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light() -> None:
    code = f"import fitzpatrick, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run(code).strip() == "[]"


@pytest.mark.parametrize("name", ["torch", "jax", "dask"])
def test_missing_libraries_are_named_with_the_remedy(name: str) -> None:
    code = f"""
import sys
sys.modules[{name!r}] = None
try:
    import fitzpatrick.{name}
except ImportError as error:
    print(error)
"""
    assert f"pip install 'fitzpatrick[{name}]'" in run(code)


def test_numpy_results_need_no_other_library() -> None:
    """A loss of NumPy arrays loads nothing else either."""
    code = f"""
import sys
import numpy as np
import fitzpatrick as fp
for name in fp.loss_names():
    loss = fp.get_loss(name)
    loss.value_and_gradient(np.asarray([0.5, 0.5]), np.asarray([1.0, 0.0]))
print([m for m in {HEAVY!r} if m in sys.modules])
"""
    assert run(code).strip() == "[]"


@pytest.mark.parametrize(
    "module", ["", ".divergences", ".losses", ".regularizers", ".sets", ".special"]
)
def test_all_names_exist(module: str) -> None:
    loaded = importlib.import_module("fitzpatrick" + module)
    assert len(set(loaded.__all__)) == len(loaded.__all__)
    for name in loaded.__all__:
        assert getattr(loaded, name) is not None
        documented = getattr(loaded, name)
        assert isinstance(documented, str) or documented.__doc__


def test_the_public_names_are_there() -> None:
    expected = {
        "FenchelYoungLoss",
        "FitzpatrickLoss",
        "fitzpatrick_function",
        "get_loss",
        "loss_names",
    }
    assert expected <= set(fitzpatrick.__all__)


def component(path: Path) -> str:
    """The part of the package that a file belongs to: a module or a folder right under it."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_components(path: Path) -> Iterator[tuple[int, str]]:
    """Line and component of each import from within the package, deferred imports included."""
    package = ["fitzpatrick", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # "from . import x" may name modules, "from .x import y" names what is in one
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "fitzpatrick" and len(parts) > 1:
                yield node.lineno, parts[1]


def sources() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def test_every_module_has_a_place() -> None:
    """A new part of the package says here where in the flow it stands."""
    assert {component(path) for path in sources()} <= set(LEVEL)


def test_nothing_imports_against_the_flow_of_data() -> None:
    against = [
        f"{path.relative_to(SOURCE)}:{line} imports {target}"
        for path in sources()
        for line, target in imported_components(path)
        if target in LEVEL and LEVEL[target] > LEVEL[component(path)]
    ]
    assert against == []


def test_the_check_sees_imports() -> None:
    """Relative, absolute and deferred imports are all found."""
    found = {target for path in sources() for _, target in imported_components(path)}
    assert {"_array", "special", "sets", "regularizers", "_validation"} <= found
    assert {t for _, t in imported_components(SOURCE / "divergences.py")} >= {"regularizers"}


def test_modules_import_on_their_own() -> None:
    """Each module of the core can be the first to be imported: there is no hidden cycle."""
    core = {name for layer in LAYERS[:6] for name in layer} - {"engines"}
    names = [m.name for m in pkgutil.iter_modules([str(SOURCE)]) if m.name in core]
    assert set(names) == core
    code = f"""
import importlib, subprocess, sys
for name in {sorted(names)!r}:
    for loaded in [m for m in sys.modules if m.split(".")[0] == "fitzpatrick"]:
        del sys.modules[loaded]
    importlib.import_module("fitzpatrick." + name)
print("ok")
"""
    assert run(code).strip() == "ok"
