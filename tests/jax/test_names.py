"""What the module offers follows from the registry."""

import inspect

import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from fitzpatrick.losses import _registry

from .cases import LINKS, NAMES, SIMPLEX, function, on_labels


def test_all_is_the_registry():
    generated = {f"{name}_loss" for name in NAMES}
    generated |= {f"{name}_loss_with_integer_labels" for name in SIMPLEX}
    generated |= {*LINKS, "softmax"}
    makers = {"make_fenchel_young_loss", "make_fitzpatrick_loss"}
    assert set(fj.__all__) == generated | makers | {"LinkFunction", "LossFunction"}
    assert len(fj.__all__) == len(set(fj.__all__))
    assert all(hasattr(fj, name) for name in fj.__all__)
    assert fj.softmax is fj.logistic


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_documented(name):
    f = function(name)
    assert f.__name__ == f"{name}_loss"
    assert f.__module__ == "fitzpatrick.jax"
    assert list(inspect.signature(f).parameters) == ["scores", "targets", "axis", "where"]
    doc = inspect.getdoc(f)
    loss = fp.get_loss(name)
    assert repr(loss.regularizer) in doc
    assert doc.startswith("Fitzpatrick" if name.startswith("fitzpatrick") else "Fenchel-Young")
    for section in ("Args:", "Returns:", "scores:", "targets:", "axis:", "where:"):
        assert section in doc
    assert "{{" not in doc
    assert not [line for line in doc.splitlines() if line != line.rstrip()]
    if name in SIMPLEX:
        assert list(inspect.signature(on_labels(name)).parameters)[1] == "labels"
        assert "labels:" in inspect.getdoc(on_labels(name))


def test_a_registry_line_is_enough(monkeypatch):
    tsallis = fp.FenchelYoungLoss(fp.regularizers.Tsallis(1.7))
    before = set(fj._registry_functions())
    monkeypatch.setitem(_registry._LOSSES, "tsallis17", tsallis)
    functions = fj._registry_functions()
    new = {"tsallis17", "tsallis17_loss", "tsallis17_loss_with_integer_labels"}
    assert set(functions) == before | new
    assert functions["tsallis17_loss"].__name__ == "tsallis17_loss"
