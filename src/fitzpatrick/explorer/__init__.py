"""The explorer: a page on which a reader drags scores and targets, and sees the losses change.

It computes everything itself (``losses.js``) and draws it (``view.js``). The tests hold its numbers
to those of the package.
"""

import os
import sys
import webbrowser
from pathlib import Path

from .._page import read_asset, render_document

__all__ = ["page", "show_in_browser"]

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
        scripts=[read_asset(__name__, "losses.js"), read_asset(__name__, "view.js")],
    )


def show_in_browser(file: Path) -> bool:
    """Open a file in the user's browser, and say whether there was one to open it in."""
    has_windows = sys.platform in ("darwin", "win32") or any(map(os.environ.get, _DISPLAYS))
    return has_windows and webbrowser.open(file.absolute().as_uri())
