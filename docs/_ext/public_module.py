"""``.. public-module:: name``: the reference of a module, which is all that its ``__all__`` names.

An object that a package above the module exports as well is described there alone. Constants have
no docstring: the body of the directive describes them.
"""

import inspect
from importlib import import_module
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from public_names import described_names
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata, OptionSpec


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
