"""What the module offers follows from the registry, and stands in its source."""

import ast
import inspect
import re
import runpy
from pathlib import Path

import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from fitzpatrick.jax import _projections
from fitzpatrick.losses import _registry, regularizers_by_name

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
    assert all(name.removeprefix("kl_").startswith("projection_") for name in projections)
    types = {"LinkFunction", "LossFunction", "SparseTargets"}
    assert sorted(fj.__all__) == sorted(generated | makers | projections | types)
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
    endings = ("loss", "loss_with_integer_labels", "probabilities")
    expected = {"tsallis17", *(f"{name}_{ending}" for name in losses for ending in endings)}
    assert new - set(fj.__all__) == expected


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_documented(name):
    loss = fp.get_loss(name)
    functions = {"targets": function(name)}
    if name in SIMPLEX:
        functions["labels"] = on_labels(name)
    for second, f in functions.items():
        arguments = ["scores", second, "axis", "where", *["tightness"] * (loss.tightness > 0)]
        assert list(inspect.signature(f).parameters) == arguments
        doc = inspect.getdoc(f)
        assert repr(loss.regularizer) in doc.splitlines()[0]
        assert doc.startswith("Fitzpatrick" if loss.tightness else "Fenchel-Young")
        assert ".. math::" in doc
        elsewhere = re.search("are explained in :func:`(.*)`", doc)
        explained = inspect.getdoc(getattr(fj, elsewhere[1])) if elsewhere else doc
        for part in ("Args:", "Returns:", *(f"{argument}:" for argument in arguments)):
            assert part in explained
