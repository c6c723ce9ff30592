"""The public names, and the page of the reference that describes each of them."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages
from types import ModuleType, SimpleNamespace
from typing import Any

import fitzpatrick


def _import_keras_losses() -> None:
    """Import ``fitzpatrick.keras``, with a stand-in if Keras is not installed."""
    if find_spec("keras") is None:
        stand_in: Any = ModuleType("keras")
        stand_in.losses = SimpleNamespace(Loss=object)
        stand_in.saving = SimpleNamespace(register_keras_serializable=lambda package: _unchanged)  # noqa: ARG005
        sys.modules["keras"] = stand_in
        try:
            import_module("fitzpatrick.keras")
        finally:
            del sys.modules["keras"]


def _unchanged(thing: Any) -> Any:
    return thing


_import_keras_losses()


def public_modules() -> list[str]:
    """The modules with an ``__all__`` and without a leading underscore."""
    found = walk_packages(fitzpatrick.__path__, "fitzpatrick.")
    names = [info.name for info in found if "._" not in info.name and ".triton" not in info.name]
    return ["fitzpatrick", *(name for name in names if hasattr(import_module(name), "__all__"))]


def described_names(module: str) -> list[str]:
    """The names on the page of a module: no modules, and no names that a parent package exports."""
    exported = import_module(module)
    above = module.split(".")[:-1]
    packages = [import_module(".".join(above[: i + 1])) for i in range(len(above))]
    elsewhere = {id(getattr(package, name)) for package in packages for name in package.__all__}
    return [
        name
        for name in sorted(exported.__all__, key=str.lower)
        if not isinstance(getattr(exported, name), ModuleType)
        and not name.startswith("__")
        and id(getattr(exported, name)) not in elsewhere
    ]
