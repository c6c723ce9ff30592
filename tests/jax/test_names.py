"""What the module offers follows from the registry, and stands in its source."""

import ast
import inspect
import os
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from fitzpatrick.jax import _projections
from fitzpatrick.losses import _registry, regularizers_by_name
from tests.helpers import TEST_ALL

from .cases import NAMES, SIMPLEX, function, on_labels

ROOT = Path(__file__).parents[2]


def test_all_is_the_registry():
    generated = {f"{name}_loss" for name in NAMES}
    generated |= {f"{name}_loss_with_integer_labels" for name in SIMPLEX}
    generated |= {*regularizers_by_name(), "softmax", "entmax", "normmax", "budget"}
    orders = ("entmax_loss", "fitzpatrick_entmax_loss", "normmax_loss")
    generated |= {*orders, *(f"{name}_with_integer_labels" for name in orders)}
    proper = [name for name in NAMES if fp.get_loss(name).regularizer.has_probabilities]
    generated |= {f"{name}_probabilities" for name in proper}
    makers = {"make_fenchel_young_loss", "make_fitzpatrick_loss", "make_link"}
    projections = set(_projections.__all__)
    assert all(name.startswith("projection_") for name in projections)
    types = {"LinkFunction", "LossFunction", "SparseTargets"}
    assert set(fj.__all__) == generated | makers | projections | types
    assert len(fj.__all__) == len(set(fj.__all__))
    assert all(hasattr(fj, name) for name in fj.__all__)
    assert fj.softmax is fj.logistic


def test_a_registry_line_is_enough(monkeypatch):
    pytest.importorskip("torch")  # whose functions the tool writes, too
    tsallis = fp.regularizers.Tsallis(1.7)
    monkeypatch.setitem(_registry._REGULARIZERS, "tsallis17", tsallis)
    losses = _registry._ends("tsallis17")
    monkeypatch.setitem(_registry._ENDS, "tsallis17", losses)
    for name, loss in losses.items():
        monkeypatch.setitem(_registry._LOSSES, name, loss)
    files = runpy.run_path(str(ROOT / "tools" / "write_front_ends.py"))["files"]()
    tree = ast.parse(next(text for path, text in files.items() if "jax" in path.parts))
    new = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert new - set(fj.__all__) == {
        "tsallis17",
        *(f"{name}_loss" for name in losses),
        *(f"{name}_loss_with_integer_labels" for name in losses),
        *(f"{name}_probabilities" for name in losses),
    }


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_plain_documented_source(name):
    loss = fp.get_loss(name)
    functions = {"targets": function(name)}
    if name in SIMPLEX:
        functions["labels"] = on_labels(name)
    for second, f in functions.items():
        assert f"def {f.__name__}(" in inspect.getsource(f)
        assert getattr(fj, f.__name__) is f
        tightness = ["tightness"] if loss.tightness else []
        assert list(inspect.signature(f).parameters) == [
            "scores",
            second,
            "axis",
            "where",
            *tightness,
        ]
        doc = inspect.getdoc(f)
        assert repr(loss.regularizer) in doc.splitlines()[0]
        assert doc.startswith("Fitzpatrick" if loss.tightness else "Fenchel-Young")
        assert ".. math::" in doc
        elsewhere = re.search("are explained in :func:`(.*)`", doc)
        explained = inspect.getdoc(getattr(fj, elsewhere[1])) if elsewhere else doc
        arguments = [f"{name}:" for name in ("scores", second, "axis", "where", *tightness)]
        for part in ("Args:", "Returns:", *arguments):
            assert part in explained


def test_a_type_checker_sees_the_signatures(tmp_path):
    """mypy on a user's script, with errors exactly where the script is wrong.

    By default it reads this package alone; all that it imports counts as Any.
    """
    pytest.importorskip("mypy")
    user = tmp_path / "user.py"
    user.write_text(
        textwrap.dedent(
            """
            import jax
            import jax.numpy as jnp
            import fitzpatrick as fp
            import fitzpatrick.jax as fj
            from fitzpatrick.jax import sparsemax, sparsemax_loss

            scores = jnp.zeros((2, 3))
            loss: jax.Array = sparsemax_loss(scores, scores, axis=-1, where=None)
            loss = fj.fitzpatrick_sparsemax_loss(scores, scores, tightness=0.5)
            loss = fj.make_fitzpatrick_loss(fp.regularizers.Negentropy(), 0.5)(scores, scores)
            link: jax.Array = sparsemax(scores)
            sparsemax_loss(scores, scores, tightness=0.5)  # wrong
            sparsemax_loss(scores)  # wrong
            fj.fitzpatrick_sparsemax_loss(scores, scores, tightness="tight")  # wrong
            fj.fitzpatrick_logistic_loss_with_integer_labels(scores, targets=scores)  # wrong
            fj.sparsemax_los  # wrong
            """
        )
    )
    wrong = {i for i, line in enumerate(user.read_text().splitlines(), 1) if "# wrong" in line}
    package = ROOT / "src" / "fitzpatrick" / "jax"
    scope = [] if TEST_ALL else ["--follow-imports=skip", str(package)]
    arguments = ["--strict", "--config-file=", f"--cache-dir={os.devnull}", *scope, str(user)]
    # a process of its own, which takes along the memory that it needs
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *arguments],
        env={**os.environ, "MYPYPATH": str(package.parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    errors = [line for line in run.stdout.splitlines() if "user.py" in line and ": error:" in line]
    assert {int(line.split(":")[1]) for line in errors} == wrong, run.stdout + run.stderr
