"""``.. public-module:: name``: the reference of a module, which is all that its ``__all__`` names.

An object that a package above the module exports as well is described there alone. Constants have
no docstring: the body of the directive describes them.
"""

import inspect
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata, OptionSpec

import fitzpatrick


def public_modules() -> list[str]:
    """The modules with an ``__all__`` whose names have no underscore in front."""
    found = walk_packages(fitzpatrick.__path__, "fitzpatrick.")
    names = [info.name for info in found if "._" not in info.name and ".triton" not in info.name]
    return ["fitzpatrick", *(name for name in names if hasattr(import_module(name), "__all__"))]


def described_names(module: str) -> list[str]:
    """What the page of a module describes: no modules, and nothing that a package above exports."""
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


def _directive(thing: object) -> str | None:
    if inspect.isclass(thing):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction" if inspect.isfunction(thing) else None


class PublicModule(SphinxDirective):
    """What the module says of itself, a table of its names, and each of them in full."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[OptionSpec] = {"inherited-members": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Let autodoc and autosummary do it."""
        (module,) = self.arguments
        exported = import_module(module)
        kinds = {name: _directive(getattr(exported, name)) for name in described_names(module)}
        kinds = {name: kind for name, kind in kinds.items() if kind is not None}
        lines = [f".. automodule:: {module}", "   :no-members:", ""]
        lines += [".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in kinds]
        for name, kind in kinds.items():
            lines += ["", f".. {kind}:: {module}.{name}"]
            if kind != "autofunction":
                lines.append("   :members:")
            if kind == "autoclass" and "inherited-members" in self.options:
                lines.append(f"   :inherited-members: {self.options['inherited-members']}")
        lines += ["", *self.content]
        return self.parse_text_to_nodes("\n".join([*lines, ""]))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive."""
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.autosummary")
    app.add_directive("public-module", PublicModule)
    return {"parallel_read_safe": True}
