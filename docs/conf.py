"""Sphinx configuration. The build needs no network, and every warning is an error."""

import re
import sys
from pathlib import Path

import adasdca

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "adasdca"
author = "adasdca developers"
copyright = "adasdca developers, BSD-3-Clause"
release = version = adasdca.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax comes with the pages
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_promises", "_templates", "note"]
templates_path = ["_templates"]
default_role = "autolink"
nitpicky = True  # a reference to nothing is an error
nitpick_ignore_regex = [("py:obj", ".*")]  # but words in single backquotes need not be references

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
# Beside `path`, also where file names do not tell capitals apart.
autosummary_filename_map = {"adasdca.Path": "adasdca.Path_class"}
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc sections say it in words
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "subsection_order": [
        f"../examples/{part}" for part in ("basics", "classify", "regress", "methods", "large")
    ],
    "within_subsection_order": "ExampleTitleSortKey",
    "reset_modules": ("matplotlib", "gallery.set_style"),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 3600,
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_title = "adasdca"
html_theme_options = {
    "navbar_start": ["navbar-logo", "version"],
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
}
html_sidebars = {"index": []}
html_static_path = ["_static"]
html_css_files = ["adasdca.css"]
html_show_sourcelink = False


def write_signs_as_such(app, what, name, obj, options, lines):
    """Escape |x| and name_, which reStructuredText would take for substitutions and references."""
    sign_outside_code = re.compile(r"(`+.*?`+|\\[|_])|(\||(?<=\w)_(?!\w))")
    example = False  # up to the next empty line
    for k, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            lines[k] = sign_outside_code.sub(lambda found: found[1] or "\\" + found[2], line)


def end_at_the_last_line(app, docname, source):
    """Leave out the empty line that ends a session in the sources."""
    source[0] = re.sub(
        r"(^```pycon\n(?:(?!```).*\n)*?)\n(?=```$)", r"\1", source[0], flags=re.MULTILINE
    )


def setup(app):
    app.connect("source-read", end_at_the_last_line)
    app.connect("autodoc-process-docstring", write_signs_as_such)
