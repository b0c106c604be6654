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
    """A table; columns from `left` on are flush right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


@dataclass(frozen=True)
class Image:
    """A picture by its file, relative to the folder of the page."""

    file: str
    caption: str


Block = Heading | Paragraph | Quote | Listing | Table | Image


def as_markdown(blocks: Sequence[Block]) -> str:
    """Return the page as Markdown; pictures are named, not held."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def as_html(blocks: Sequence[Block], folder: Path) -> str:
    """Return the page as one HTML document that needs no other file."""
    (title,) = [block.text for block in blocks if isinstance(block, Heading) and block.level == 1]
    contents = "".join(
        f'<li><a href="#{_anchor(block.text)}">{_inline(block.text)}</a></li>'
        for block in blocks
        if isinstance(block, Heading) and block.level == 2
    )
    body = "\n".join(_html(block, folder) for block in blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
        f"<nav><ul>{contents}</ul></nav>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Quote(text):
            return f"> “{text}”"
        case Listing(items):
            return "\n".join(f"- {item}" for item in items)
        case Table(head, rows, left):
            rule = [":--" if k < left else "--:" for k in range(len(head))]
            # A bar would end the cell.
            lines = [[cell.replace("|", "\\|") for cell in row] for row in (head, rule, *rows)]
            return "\n".join("| " + " | ".join(line) + " |" for line in lines)
        case Image(file, caption):
            return f"![{caption}]({file})\n\n*{caption}*"


def _html(block: Block, folder: Path) -> str:
    match block:
        case Heading(level, text):
            return f'<h{level} id="{_anchor(text)}">{_inline(text)}</h{level}>'
        case Paragraph(text):
            return f"<p>{_inline(text)}</p>"
        case Quote(text):
            return f"<blockquote>“{_inline(text)}”</blockquote>"
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
                f'<figure><img alt="{words}" src="data:image/svg+xml;base64,{data}">'
                f"<figcaption>{_inline(caption)}</figcaption></figure>"
            )


def _cells(tag: str, row: Sequence[str], left: int) -> str:
    def mark(k: int, cell: str) -> str:
        names = (["n"] if k >= left else []) + [_COLOURS[c] for c in cell[:1] if c in _COLOURS]
        return f' class="{" ".join(names)}"' if names else ""

    return "".join(f"<{tag}{mark(k, c)}>{_inline(c)}</{tag}>" for k, c in enumerate(row))


def _inline(text: str) -> str:
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def _anchor(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


#: Classes of cells by the sign that they begin with.
_COLOURS = {"✓": "yes", "✗": "no", "~": "mixed"}

_CSS = """
:root{color-scheme:light dark}
.yes{background:#2ca02c2e}
.no{background:#d6272838}
.mixed{background:#ffbf0038}
td.yes,td.no,td.mixed{white-space:nowrap}
@media(max-width:40rem){body{margin:1rem auto}nav ul{columns:1}table{font-size:.8rem}}
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
nav ul{columns:2;padding-left:1.2rem}
h2{margin-top:3rem;border-bottom:1px solid #8888}
blockquote{margin:1rem 0;padding:.2rem 1rem;border-left:4px solid #8888;font-style:italic}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem}
th,td{padding:.2rem .6rem;border-bottom:1px solid #8885;text-align:left;vertical-align:top}
.n{text-align:right;font-variant-numeric:tabular-nums}
figure{margin:1.5rem 0 .5rem}
img{max-width:100%;background:#fff}
figcaption{font-size:.88rem}
"""
