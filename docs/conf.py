"""Configuration of Sphinx; ``make docs`` builds the site, with warnings as errors."""

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tools"), str(HERE / "_ext")]
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from sphinx.application import Sphinx

import fitzpatrick
from fitzpatrick import explorer

project = "fitzpatrick"
author = "the fitzpatrick developers"
release = fitzpatrick.__version__

extensions = [
    "mathml",
    "myst_parser",
    "public_module",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery", "results"]
html_math_renderer = "mathml"
nitpicky = True
# The site is built without a network, so no inventories of other projects are loaded. Private types
# in signatures have no page either.
nitpick_ignore_regex = [
    (r"py:.*", r"(abc|collections|enum|jax|numpy|pathlib|scipy|sklearn|torch|typing)(\..*)?"),
    (r"py:class", r"fitzpatrick\.(.*\._.*|datasets\.columns\.Column)"),
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False

autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
napoleon_numpy_docstring = False
# attributes get no entries in the index
napoleon_custom_sections = [("Attributes", "params_style")]
autosummary_generate = False
viewcode_follow_imported_members = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": "plot_",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "write_computation_times": False,
    "thumbnail_size": (640, 448),  # sharp on dense screens
}

html_theme = "pydata_sphinx_theme"
html_title = f"fitzpatrick {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}  # follows the system
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_sidebars: dict[str, list[str]] = {"explorer": [], "performance": []}  # in no section
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_persistent": ["search-button"],
    "show_nav_level": 1,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = "2026, the fitzpatrick developers"  # noqa: A001 - Sphinx's name
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


# of every module of PyTorch: a call, with the arguments of the function that the class names
OF_EVERY_MODULE = ("extra_repr", "forward")


def leave_out(app: object, what: str, name: str, *_: object) -> bool | None:
    """Skip methods that scikit-learn and PyTorch document themselves."""
    is_routing = name == "get_metadata_routing" or (
        name.startswith("set_") and name.endswith("_request")
    )
    return True if is_routing or name in OF_EVERY_MODULE else None


def drop_back_links(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Remove links from source pages to the reference: viewcode mixes modules that share a file."""
    if page.startswith("_modules/") and "body" in context:
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", context["body"])


def write_explorer(app: Sphinx) -> None:
    """Write the page of ``fitzpatrick explore``, to which the site links."""
    (HERE / "_static" / "explorer.html").write_text(explorer.page(), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("builder-inited", write_explorer)
    app.connect("autodoc-skip-member", leave_out)
    app.connect("html-page-context", drop_back_links)
