"""Formulas as MathML, made at build time by docutils.

Pages then show their mathematics without network or scripts, and a mistake in a formula is a
warning of the build instead of a red word on the page.
"""

import re

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError
from sphinx.util import logging

logger = logging.getLogger(__name__)

# What browsers space otherwise than TeX does.
SPACING = [
    # Bars are those of absolute values and norms, no infix operators.
    (re.compile(r"<mo[^>]*>([|‖])</mo>"), r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>'),
    # log n, but log(n).
    (re.compile(r"<mo>&ApplyFunction;</mo>(?=\s*<m[in])"), r'<mspace width="0.17em"></mspace>'),
    (re.compile(r'<mo movablelimits="true">(max|min)'), r'<mo movablelimits="true" lspace="0">\1'),
]


def _mathml(node, as_block):
    # docutils sets the index of an accented letter below it; an empty group puts it right.
    tex = re.sub(r"(\\(?:tilde|hat|bar)\\\w+)_", r"{{}\1}_", node.astext())
    try:
        formula = tex2mathml(tex, as_block=as_block)
    except MathError as error:
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        return "<span>?</span>"
    for pattern, replacement in SPACING:
        formula = pattern.sub(replacement, formula)
    return formula


def visit_inline(translator, node):
    translator.body.append(_mathml(node, as_block=False))
    raise SkipNode


def visit_block(translator, node):
    if node.get("number"):
        raise ExtensionError("Numbered formulas are not supported; refer to sections instead.")
    translator.body.append(f'<div class="formula">{_mathml(node, as_block=True)}</div>')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
