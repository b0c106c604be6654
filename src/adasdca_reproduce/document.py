"""A page as blocks of Markdown, and the same as one HTML file with all that it shows in it."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt


def heading(level: int, text: str) -> str:
    """Return a heading; level 1 is the title."""
    return f"{'#' * level} {text}"


def quote(text: str) -> str:
    """Return words of the paper; Markdown would take signs of its formulas for its own."""
    escaped = re.sub(r"([*_])", r"\\\1", text)
    return f"> “{escaped}”"


def listing(items: Sequence[str]) -> str:
    """Return a list of points."""
    return "\n".join(f"- {item}" for item in items)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table; columns from `left` on are flush right.

    Cells that begin with a sign have its colour.
    """
    rule = [":--" if k < left else "--:" for k in range(len(head))]
    # A bar would end the cell.
    lines = [[_coloured(c.replace("|", "\\|")) for c in row] for row in (head, rule, *rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def image(file: str, caption: str) -> str:
    """Return a picture by its file, relative to the folder of the page."""
    return f"![{caption}]({file})\n\n*{caption}*"


def details(summary: str, blocks: Sequence[str]) -> str:
    """Return blocks that are shown when they are asked for."""
    inside = "\n\n".join(blocks)
    return f"<details><summary>{_inline(summary)}</summary>\n\n{inside}\n\n</details>"


@dataclass(frozen=True)
class Line:
    """A line of `glance`: a verdict, the heading it leads to, its parts, and words for them."""

    verdict: str
    heading: str
    parts: dict[str, list[str]]  #: By what they have in common; signs and few words each.
    words: str


def glance(title: str, lines: Sequence[Line]) -> str:
    """Return verdicts of many sections on one screen; a narrow one has the cells of a line stacked.

    As HTML: Markdown has no such table.
    """
    rows = [
        f'<tr><td class="{_class(line.verdict)}">{line.verdict}</td>'
        f'<td><a href="#{_anchor(line.heading)}">{_inline(line.heading)}</a>'
        f"{f'<br>but {_inline(line.words)}' if line.words else ''}</td>"
        f"<td>{'<br>'.join(_chips(*group) for group in line.parts.items())}</td></tr>"
        for line in lines
    ]
    head = "".join(f"<th>{word}</th>" for word in ("verdict", title, "holds in"))
    top = f'<table class="glance"><thead><tr>{head}</tr></thead><tbody>'
    return "\n".join([top, *rows, "</tbody></table>"])


def as_markdown(blocks: Sequence[str]) -> str:
    """Return the page as Markdown; pictures are named, not held."""
    title, *rest = blocks
    wide = "---\nhtml_theme.sidebar_secondary.remove: true\n---"  # the first table leads on
    style = f"<style>{_VERDICTS}{_NARROW_SITE}</style>"
    return "\n\n".join([wide, title, style, *rest]) + "\n"


def as_html(blocks: Sequence[str], folder: Path) -> str:
    """Return the page as one HTML document that needs no other file."""
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    body = reader.render("\n\n".join(blocks))
    body = re.sub(r"<h(\d)>(.*)</h", _with_anchor, body)

    def held(source: re.Match[str]) -> str:
        data = base64.b64encode((folder / source[1]).read_bytes()).decode()
        return f'src="data:image/svg+xml;base64,{data}"'

    body = re.sub(r'src="([^"]*)"', held, body)
    title = html.escape(blocks[0].removeprefix("# "))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_VERDICTS}{_PAGE}</style>\n</head>\n<body>\n"
        f"<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _with_anchor(found: re.Match[str]) -> str:
    level, text = found.groups()
    return f'<h{level} id="{_anchor(html.unescape(text))}">{text}</h'


def _chips(common: str, parts: Sequence[str]) -> str:
    chips = (f'<span class="chip {_class(part)}">{_inline(part)}</span>' for part in parts)
    return " ".join(([_inline(common)] if common else []) + list(chips))


def _coloured(cell: str) -> str:
    name = _class(cell)
    return f'<span class="{name}">{cell}</span>' if name else cell


def _class(text: str) -> str:
    return _COLOURS.get(text[:1], "")


def _inline(text: str) -> str:
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def _anchor(text: str) -> str:
    """Return the name of a heading, the same as Sphinx gives it."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


#: Classes of cells by the sign that they begin with.
_COLOURS = {"✓": "yes", "✗": "no", "~": "mixed"}

# Colours that differ for the colour-blind, too; the signs say the same.
_VERDICTS = """
.yes{background:#1a9e6e33}
.no{background:#d1495b47}
.mixed{background:#edae4947}
span.yes,span.no,span.mixed{padding:.05em .35em;border-radius:.3em}
table.glance{border-collapse:collapse;width:100%;font-size:.86rem;line-height:1.4}
table.glance th,table.glance td{padding:.2rem .5rem;border-bottom:1px solid #8885;text-align:left}
table.glance{margin-bottom:1rem}
table.glance td:first-child{white-space:nowrap;font-weight:600;width:6.6rem}
table.glance td:nth-child(3){width:53%}
.chip{display:inline-block;white-space:nowrap;margin:.05rem 0;font-size:.92em}
details{margin:.6rem 0}
summary{cursor:pointer}
@media(max-width:44rem){
table.glance thead{display:none}
table.glance tr{display:block;padding:.3rem 0;border-bottom:1px solid #8888}
table.glance tr td:nth-child(n){display:block;border:0;padding:.1rem .3rem;width:auto}
}
"""
_NARROW_SITE = """
@media(max-width:44rem){article p:has(>img){overflow-x:auto}article p>img{max-width:none}}
"""
_PAGE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:76rem;margin:1.5rem auto;padding:0 1rem}
p,blockquote,ul{max-width:50rem}
h1{margin:0}
h2{margin-top:3rem;border-bottom:1px solid #8888}
blockquote{margin:1rem 0;padding:.2rem 1rem;border-left:4px solid #8888;font-style:italic}
table:not(.glance){display:block;overflow-x:auto;border-collapse:collapse;font-size:.88rem}
table:not(.glance) :is(th,td){padding:.2rem .6rem;border-bottom:1px solid #8885;text-align:left}
td{font-variant-numeric:tabular-nums}
span.yes,span.no,span.mixed{white-space:nowrap}
p:has(>img){max-width:none;overflow-x:auto;margin:1.2rem 0 .5rem}
p:has(>img)+p{font-size:.88rem}
img{max-width:100%;background:#fff}
@media(max-width:44rem){body{margin:1rem auto}p>img{max-width:none}}
"""
