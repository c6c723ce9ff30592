"""``.. public-module:: name``: the reference of all names in the ``__all__`` of a module.

An object that a parent package also exports is described only there. Constants have no docstring,
so the body of the directive describes them.
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
    """The docstring of the module, a table of its names, and the documentation of each name."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[OptionSpec] = {"inherited-members": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Render the module with autodoc and autosummary."""
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
