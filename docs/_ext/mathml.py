"""Render formulas as MathML when the site is built, so that pages need no script, font or network.

Sphinx's own renderers load MathJax or make images with LaTeX.
"""

from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

MATHML = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", MATHML)
# what carries its condition below itself on a line of its own
LIMITS = ("inf", "max", "min", "sup")
PRIMES = ("\N{PRIME}", "\N{DOUBLE PRIME}", "\N{TRIPLE PRIME}")


def to_mathml(latex: str, display: str) -> str:
    """One formula; several lines, or lines aligned at ``&``, become one table."""
    if r"\\" in latex and r"\begin" not in latex:
        latex = rf"\begin{{align*}}{latex}\end{{align*}}"
    try:
        formula = ElementTree.fromstring(convert(latex, display=display))
    except Exception as error:
        raise ExtensionError(
            f"latex2mathml cannot read the formula {latex!r}: {error!r}"
        ) from error
    for element in list(formula.iter(f"{{{MATHML}}}msup")):
        if element[1].text in PRIMES:  # raised by itself; a superscript of it is too small to see
            element.tag, element[1].tag = f"{{{MATHML}}}mrow", f"{{{MATHML}}}mo"
            element[1].attrib.update(lspace="0", rspace="0")
    if display == "block":
        for element in list(formula.iter(f"{{{MATHML}}}msub")):
            if element[0].text in LIMITS:
                element.tag = f"{{{MATHML}}}munder"
    return ElementTree.tostring(formula, encoding="unicode")


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """A formula within a sentence."""
    translator.body.append(to_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    translator.body.append(f'<div class="formula">{to_mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
