"""Formulas as MathML, which every browser draws by itself: the pages need no script from anywhere.

The translation is docutils' own. A formula it cannot read is a warning, and so fails the build.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

_log = logging.getLogger(__name__)

#: Commands the translator lacks, and what says the same.
_SAME = {"dots": "ldots", "lVert": "|", "rVert": "|"}
#: In braces, and not alone in them, an accented letter keeps the index that follows at its side.
_ACCENT = re.compile(r"\\(bar|hat|tilde|vec|dot)\s*(\{[^{}]*\}|[A-Za-z])")


def to_mathml(formula: str, *, block: bool) -> str:
    """Translate one LaTeX formula."""
    code = re.sub(r"\\([A-Za-z]+)", lambda command: "\\" + _SAME.get(command[1], command[1]), formula)
    code = _ACCENT.sub(r"{{}\g<0>}", code)
    if block and r"\\" in code:
        code = rf"\begin{{aligned}}{code}\end{{aligned}}"
    return latex2mathml.tex2mathml(code, as_block=block)


def _put(translator, node, *, block: bool) -> None:
    try:
        text = to_mathml(node.astext(), block=block)
    except MathError as error:
        _log.warning("formula cannot be translated: %s", error, location=node)
        text = node.astext()
    translator.body.append(f'<div class="math">{text}</div>' if block else text)
    raise nodes.SkipNode


def _inline(translator, node) -> None:
    _put(translator, node, block=False)


def _block(translator, node) -> None:
    _put(translator, node, block=True)


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
