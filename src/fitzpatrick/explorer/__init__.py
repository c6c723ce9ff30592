"""The explorer: a page on which a reader drags scores and targets, and sees the losses change.

It computes everything itself (``losses.js``), and the tests compare its numbers with the
package's. ``simplex.js`` and ``margin.js`` are its two views, which share the state in
``view.js``.
"""

import os
import sys
import webbrowser
from pathlib import Path

from .._page import read_asset, render_document

__all__ = ["page", "show_in_browser"]

_SCRIPTS = ("losses.js", "drawing.js", "simplex.js", "margin.js", "view.js")
# Without one of these a Unix system has no windows; only a browser for the terminal could open.
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def page() -> str:
    """The explorer as one HTML document that needs no server, network or library.

    Example:
        >>> page().startswith("<!doctype html>")
        True
    """
    return render_document(
        "Fitzpatrick losses: the explorer",
        read_asset(__name__, "page.html"),
        styles=[read_asset(__name__, "style.css")],
        scripts=[read_asset(__name__, name) for name in _SCRIPTS],
    )


def show_in_browser(file: Path) -> bool:
    """Open a file in the user's browser; False if there is none to open it in."""
    has_windows = sys.platform in ("darwin", "win32") or any(map(os.environ.get, _DISPLAYS))
    return has_windows and webbrowser.open(file.absolute().as_uri())
