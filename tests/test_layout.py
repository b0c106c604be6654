"""The map of the package: imports run one way, from room to room, and never in a circle.

All imports count, those inside functions and those for type checkers included.
"""

import ast
import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src"
CORE = SOURCES.parent / "core"

#: The rooms of `adasdca`, each importing only from those before it. A room is a folder or a module;
#: the longest name that fits a module is its room.
ROOMS = (
    "_core",
    "names",
    "errors",
    "storage",
    "frames",
    "plotting",
    "problem",
    "duality",
    "solution",
    "ascent",
    "backends",
    "newton",
    "auto",
    "engine",
    "methods",
    "solver",
    "certification",
    "predictor",
    "screening",
    "paths",
    "multinomial",
    "calibration",
    "files",
    "datasets",
    "registration",
    "plugins",
    "models",
    "estimators",
    "sklearn",
    "onnx",
    "dask",
    "",  # adasdca/__init__.py: the public names
    "cli",
    "__main__",
)
#: The folders of the core, each including only from those before it.
CORE_ROOMS = (
    "system",
    "math",
    "rows",
    "duality",
    "sampling",
    "ascent",
    "newton",
    "io",
    "bindings",
)
REPRODUCE = "adasdca_reproduce"

#: Importer, imported, line.
Edge = tuple[str, str, int]


def read_sources() -> dict[str, str]:
    """Return the text of every module, by its name."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text("utf-8")
    return found


def edges_of(sources: dict[str, str], around: bool = False) -> list[Edge]:
    """Return all imports among these modules; if asked, of the packages around them as well."""
    packages = {name.rpartition(".")[0] for name in sources}
    edges = []
    for module, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    own = module.split(".")
                    above = own[: len(own) - node.level + (module in packages)]
                    base = ".".join([*above, *filter(None, [node.module])])
                inner = [f"{base}.{alias.name}" for alias in node.names]
                # `from package import module` imports the module, `... import name` the package.
                named = [name if name in sources else base for name in inner]
            else:
                continue
            for name in dict.fromkeys(named):
                loaded = [*(_around(module, name) if around else ()), name]
                edges += [
                    (module, each, node.lineno)
                    for each in loaded
                    if each in sources and each != module
                ]
    return edges


def _around(module: str, name: str) -> list[str]:
    """Return the packages that an import of a name loads first, but for the module's own.

    The outermost package gathers the public names; it counts only where it is imported itself.
    """
    parts = name.split(".")
    packages = [".".join(parts[:k]) for k in range(2, len(parts))]
    return [package for package in packages if not f"{module}.".startswith(f"{package}.")]


def room_of(module: str, rooms: tuple[str, ...]) -> int:
    """Return the place of a module's room."""
    inner = module.partition(".")[2]
    fitting = [room for room in rooms if f"{inner}.".startswith(f"{room}.")] if inner else [""]
    assert fitting, f"{module} is in no room of tests/test_layout.py; add it where it belongs"
    return rooms.index(max(fitting, key=len))


def backward(edges: list[Edge], rooms: tuple[str, ...]) -> list[str]:
    """Return the imports of `adasdca` from a room that comes later."""
    return [
        f"{module}, line {line}: imports {imported}, which comes later"
        for module, imported, line in edges
        if not module.startswith(REPRODUCE)
        and not imported.startswith(REPRODUCE)
        and room_of(imported, rooms) > room_of(module, rooms)
    ]


def cycles(edges: list[Edge]) -> list[str]:
    """Return the imports that close a circle, with the circle; one for each module closing it."""
    graph: dict[str, dict[str, int]] = {}
    for module, imported, line in edges:
        graph.setdefault(module, {}).setdefault(imported, line)
    found, done = [], set()

    def walk(module: str, trail: list[str]) -> None:
        for imported, line in graph.get(module, {}).items():
            if imported in trail:
                circle = " -> ".join([*trail[trail.index(imported) :], imported])
                found.append(f"{module}, line {line}: imports {imported}: {circle}")
            elif imported not in done:
                walk(imported, [*trail, imported])
        done.add(module)

    for module in sorted(graph):
        if module not in done:
            walk(module, [module])
    return found


@pytest.fixture(scope="module")
def edges() -> list[Edge]:
    return edges_of(read_sources())


def test_rooms_import_only_from_rooms_before_them(edges):
    wrong = backward(edges, ROOMS)
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_in_a_circle():
    wrong = cycles(edges_of(read_sources(), around=True))
    assert not wrong, "\n".join(wrong)


def test_only_its_command_imports_the_reproduction(edges):
    wrong = [
        f"{module}, line {line}: imports {imported}"
        for module, imported, line in edges
        if imported.startswith(REPRODUCE)
        and not module.startswith(REPRODUCE)
        and module != "adasdca.cli.reproduce"
    ]
    assert not wrong, "\n".join(wrong)


def test_every_room_is_there():
    modules = list(read_sources())
    places = {room_of(module, ROOMS) for module in modules if not module.startswith(REPRODUCE)}
    assert places == set(range(len(ROOMS)))


def backward_includes(headers: dict[str, str]) -> list[str]:
    """Return the includes of core files, by their paths, from a folder that comes later."""
    return [
        f"{path} includes {included}/, which comes later"
        for path, text in headers.items()
        for included in re.findall(r'#include "(\w+)/', text)
        if CORE_ROOMS.index(included) > CORE_ROOMS.index(path.partition("/")[0])
    ]


def test_the_core_includes_only_from_folders_before():
    files = sorted(path for path in CORE.rglob("*.[hc]pp"))
    assert {path.parent.relative_to(CORE).as_posix() for path in files} == set(CORE_ROOMS)
    texts = {path.relative_to(CORE).as_posix(): path.read_text("utf-8") for path in files}
    assert not backward_includes(texts)
    python = {path for path, text in texts.items() if "nanobind" in text or "Python.h" in text}
    assert all(path.startswith("bindings/") for path in python)


def test_the_checker_sees_a_backward_include():
    found = backward_includes({"math/a.hpp": '#include "rows/rows.hpp"\n#include "math/b.hpp"\n'})
    assert found == ["math/a.hpp includes rows/, which comes later"]


def test_the_checker_sees_a_backward_edge():
    sources = {
        "adasdca": "",
        "adasdca.low": "",
        "adasdca.low.a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
        "    from adasdca.high import b\n",
        "adasdca.high": "",
        "adasdca.high.b": "from adasdca.low.a import x\n",
    }
    edges = edges_of(sources)
    rooms = ("low", "high", "")
    assert backward(edges, rooms) == [
        "adasdca.low.a, line 3: imports adasdca.high.b, which comes later",
    ]
    assert backward(edges, ("high", "low", ""))[0].startswith("adasdca.high.b, line 1: imports")


def test_the_checker_sees_a_cycle_in_functions():
    sources = {
        "adasdca": "from adasdca import a\n",
        "adasdca.a": "def f():\n    from adasdca.b import g\n",
        "adasdca.b": "def g():\n    import adasdca.c\n",
        "adasdca.c": "from . import a\n",
    }
    assert cycles(edges_of(sources)) == [
        "adasdca.c, line 1: imports adasdca.a: adasdca.a -> adasdca.b -> adasdca.c -> adasdca.a"
    ]
    sources["adasdca.c"] = ""
    assert cycles(edges_of(sources)) == []
    sources["adasdca.c"] = "import adasdca\n"
    assert len(cycles(edges_of(sources))) == 1


def test_the_checker_sees_a_cycle_through_a_package():
    sources = {
        "adasdca": "",
        "adasdca.room": "from adasdca.room.a import x\n",
        "adasdca.room.a": "import adasdca.other\n",
        "adasdca.room.b": "",
        "adasdca.other": "from adasdca.room import b\n",
    }
    assert cycles(edges_of(sources)) == []
    assert len(cycles(edges_of(sources, around=True))) == 1


def names_asked_for(source: str) -> list[int]:
    """Return the lines that compare the name of a loss."""
    found = []
    for node in ast.walk(ast.parse(source)):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        found += [node.lineno for side in sides if re.search(r"loss\.name$", ast.unparse(side))]
    return found


#: Where the layout of rows decides which kernel is given their arrays, or which file they go to.
LAYOUTS = {
    "adasdca.backends.columns",
    "adasdca.backends.cpu_term",
    "adasdca.backends.digits",
    "adasdca.backends.kernel_matrix",
    "adasdca.backends.stored",
    "adasdca.files.svmlight",
}


def asks_for_a_layout(source: str) -> bool:
    """Whether a source asks rows for their type."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    asked = [ast.unparse(node) for node in calls if ast.unparse(node.func) == "isinstance"]
    return any(re.search(r"\b(Dense|Csr)Rows\b", text) for text in asked)


def test_rows_say_themselves_what_they_are():
    """Elsewhere another layout would have to change nothing."""
    assert asks_for_a_layout("isinstance(rows, (int, CsrRows))")
    asking = {name for name, text in read_sources().items() if asks_for_a_layout(text)}
    assert {name for name in asking if not name.startswith("adasdca.problem.")} == LAYOUTS


def test_nothing_asks_a_loss_for_its_name():
    """What a loss can do it says itself."""
    assert names_asked_for('if self.loss.name == "logistic":\n    pass') == [1]
    asked = {name: names_asked_for(text) for name, text in read_sources().items()}
    assert not {name: lines for name, lines in asked.items() if lines}
