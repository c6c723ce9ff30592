"""HTML pages in one file, light and dark, of the explorer and the reports of the experiments.

A page names the checksums of its style sheet and its script, so that a browser runs no other
script and fetches nothing, whatever stands in its text.
"""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files


def read_asset(package: str, name: str) -> str:
    """The text of a style sheet, a script or a piece of HTML that belongs to a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def render_document(
    title: str, body: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = ()
) -> str:
    """A whole page: a body of HTML, and style sheets and scripts that follow the theme's."""
    style = "\n".join([read_asset(__name__, "theme.css"), *styles])
    script = "\n".join([read_asset(__name__, "theme.js"), *scripts])
    policy = f"default-src 'none'; style-src {_checksum(style)}; script-src {_checksum(script)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style></head>\n"
        f"<body>{body}<script>{script}</script></body></html>\n"
    )


def _checksum(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
