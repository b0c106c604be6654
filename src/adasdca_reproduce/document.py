"""A page as blocks, written as Markdown with image files or as one HTML file with all in it."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Text; `code` in backquotes and *emphasis* are known."""

    text: str


@dataclass(frozen=True)
class Quote:
    """Words of the paper."""

    text: str


@dataclass(frozen=True)
class Listing:
    """A list of points."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table; columns from `left` on are flush right. Cells that begin with a sign have colour."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


@dataclass(frozen=True)
class Image:
    """A picture by its file, relative to the folder of the page."""

    file: str
    caption: str


@dataclass(frozen=True)
class Line:
    """A line of a `Glance`: a verdict, the heading it leads to, its parts, and words for them."""

    verdict: str
    heading: str
    parts: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class Glance:
    """Verdicts of many sections on one screen; on a narrow one the cells of a line are stacked."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Details:
    """Blocks that are shown when they are asked for."""

    summary: str
    blocks: tuple[Block, ...]


Block = Heading | Paragraph | Quote | Listing | Table | Image | Glance | Details


def as_markdown(blocks: Sequence[Block]) -> str:
    """Return the page as Markdown; pictures are named, not held."""
    title, *rest = blocks
    wide = "---\nhtml_theme.sidebar_secondary.remove: true\n---"  # the first table leads on
    style = f"<style>{_VERDICTS}{_NARROW_SITE}</style>"
    return "\n\n".join([wide, _markdown(title), style, *map(_markdown, rest)]) + "\n"


def as_html(blocks: Sequence[Block], folder: Path) -> str:
    """Return the page as one HTML document that needs no other file."""
    (title,) = [block.text for block in blocks if isinstance(block, Heading) and block.level == 1]
    body = "\n".join(_html(block, folder) for block in blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_VERDICTS}{_PAGE}</style>\n</head>\n<body>\n"
        f"<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Quote(text):
            return f"> “{_without_emphasis(text)}”"
        case Listing(items):
            return "\n".join(f"- {item}" for item in items)
        case Table(head, rows, left):
            rule = [":--" if k < left else "--:" for k in range(len(head))]
            # A bar would end the cell.
            lines = [[_coloured(c.replace("|", "\\|")) for c in row] for row in (head, rule, *rows)]
            return "\n".join("| " + " | ".join(line) + " |" for line in lines)
        case Image(file, caption):
            return f"![{caption}]({file})\n\n*{caption}*"
        case Glance():
            return _glance(block)
        case Details(summary, blocks):
            inside = "\n\n".join(map(_markdown, blocks))
            return f"<details><summary>{_inline(summary)}</summary>\n\n{inside}\n\n</details>"


def _without_emphasis(text: str) -> str:
    """Escape the signs of a formula that Markdown would take for its own."""
    return re.sub(r"([*_])", r"\\\1", text)


def _html(block: Block, folder: Path) -> str:
    match block:
        case Heading(level, text):
            return f'<h{level} id="{_anchor(text)}">{_inline(text)}</h{level}>'
        case Paragraph(text):
            return f"<p>{_inline(text)}</p>"
        case Quote(text):
            return f"<blockquote>“{html.escape(text, quote=False)}”</blockquote>"
        case Listing(items):
            return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
        case Table(head, rows, left):
            top = _cells("th", head, left)
            lines = "".join(f"<tr>{_cells('td', row, left)}</tr>" for row in rows)
            return (
                f'<div class="wide"><table><thead><tr>{top}</tr></thead>'
                f"<tbody>{lines}</tbody></table></div>"
            )
        case Image(file, caption):
            data = base64.b64encode((folder / file).read_bytes()).decode()
            words = html.escape(caption, quote=True)
            return (
                f'<figure><div class="wide"><img alt="{words}" src="data:image/svg+xml;base64,'
                f'{data}"></div><figcaption>{_inline(caption)}</figcaption></figure>'
            )
        case Glance():
            return _glance(block)
        case Details(summary, blocks):
            inside = "\n".join(_html(b, folder) for b in blocks)
            return f"<details><summary>{_inline(summary)}</summary>\n{inside}\n</details>"


def _glance(block: Glance) -> str:
    """Return the verdicts as HTML, in either kind of page: Markdown has no such table."""
    lines = [
        f'<tr><td class="{_class(line.verdict)}">{line.verdict}</td>'
        f'<td><a href="#{_anchor(line.heading)}">{_inline(line.heading)}</a>'
        f"{f'<br>but {_inline(line.words)}' if line.words else ''}</td>"
        f"<td>{' '.join(_chip(part) for part in line.parts)}</td></tr>"
        for line in block.lines
    ]
    head = "".join(f"<th>{word}</th>" for word in ("verdict", block.title, "holds in"))
    return "\n".join(
        [
            f'<table class="glance"><thead><tr>{head}</tr></thead><tbody>',
            *lines,
            "</tbody></table>",
        ]
    )


def _chip(text: str) -> str:
    return f'<span class="chip {_class(text)}">{_inline(text)}</span>'


def _coloured(cell: str) -> str:
    name = _class(cell)
    return f'<span class="{name}">{cell}</span>' if name else cell


def _class(text: str) -> str:
    return _COLOURS.get(text[:1], "")


def _cells(tag: str, row: Sequence[str], left: int) -> str:
    def mark(k: int, cell: str) -> str:
        names = " ".join(filter(None, ("n" if k >= left else "", _class(cell))))
        return f' class="{names}"' if names else ""

    return "".join(f"<{tag}{mark(k, c)}>{_inline(c)}</{tag}>" for k, c in enumerate(row))


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
table.glance td:nth-child(3){width:48%}
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
.wide{overflow-x:auto}
.wide table{border-collapse:collapse;font-size:.88rem}
.wide th,.wide td{padding:.2rem .6rem;border-bottom:1px solid #8885;text-align:left}
.wide .n{text-align:right;font-variant-numeric:tabular-nums}
td.yes,td.no,td.mixed{white-space:nowrap}
figure{margin:1.2rem 0 .5rem}
img{max-width:100%;background:#fff}
figcaption{font-size:.88rem}
@media(max-width:44rem){body{margin:1rem auto}figure img{max-width:none}}
"""
