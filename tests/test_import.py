"""What importing the package loads, what it exports, and which module may import which."""

import importlib
import pkgutil
import subprocess
import sys

import pytest
from tools import layers

HEAVY = ("torch", "jax", "dask", "sklearn", "matplotlib", "numba")


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_the_tests_of_the_core_share_loads_no_optional_library() -> None:
    shared = "import sys, tests.conftest, tests.helpers, tests.contracts.draws, tests.reference\n"
    assert run(f"{shared}print(*{{'jax', 'numba', 'torch'}} & sys.modules.keys())").strip() == ""


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
    """Neither does importing the package."""
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


def test_eager_losses_of_pytorch_load_no_compiler() -> None:
    """Dynamo takes longer to import than PyTorch; it waits for ``torch.compile``."""
    pytest.importorskip("torch")
    code = """
import sys, torch
from fitzpatrick.torch import FitzpatrickLogisticLoss, functional as F
scores = torch.zeros(2, 3, requires_grad=True)
loss = FitzpatrickLogisticLoss()(scores, torch.tensor([0, 1]))
loss = loss + F.entmax(scores, 1.3).square().sum()
loss.backward()
print("torch._dynamo" in sys.modules)
"""
    assert run(code).strip() == "False"


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


def test_every_module_has_a_place() -> None:
    """A new part of the package says here where in the flow it stands."""
    assert {layers.component(path) for path in layers.sources()} <= set(layers.LEVEL)


def test_nothing_imports_against_the_flow_of_data() -> None:
    against = [
        f"{path.relative_to(layers.SOURCE)}:{line} imports {target}"
        for path in layers.sources()
        for line, target in layers.imported_components(path)
        if target in layers.LEVEL and layers.LEVEL[target] > layers.LEVEL[layers.component(path)]
    ]
    assert against == []


def test_the_picture_of_the_layers_shows_the_imports() -> None:
    assert layers.PICTURE.read_text(encoding="utf-8") == layers.picture(), "run tools/layers.py"


def test_modules_import_on_their_own() -> None:
    """Each module of the core can be the first to be imported: there is no hidden cycle."""
    core = {name for _, layer in layers.LAYERS[:7] for name in layer} - {"engines"}
    names = [m.name for m in pkgutil.iter_modules([str(layers.SOURCE)]) if m.name in core]
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
