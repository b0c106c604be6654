"""What a release is made of: one version everywhere, wheels of the stable ABI told from others."""

import importlib.util
import re
import runpy
import sys
import zipfile
from pathlib import Path

import pytest

import adasdca

ROOT = Path(__file__).resolve().parents[1]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_places_name_one_version(monkeypatch, capsys):
    version = tool("version")
    assert set(version.versions().values()) == {adasdca.__version__}
    monkeypatch.setattr(sys, "argv", ["version.py", f"v{adasdca.__version__}"])
    version.main()
    assert capsys.readouterr().out.strip() == adasdca.__version__
    monkeypatch.setattr(sys, "argv", ["version.py", "v99"])
    with pytest.raises(SystemExit, match="the tag: 99"):
        version.main()


@pytest.mark.parametrize(
    ("heading", "version"),
    [
        ("## 1.2.0 (unreleased)", "1.2.0.dev0"),
        ("## 1.2.0 (2026-01-31)", "1.2.0"),
        ("## Unreleased", "none"),
    ],
)
def test_the_changelog_begins_with_the_version(heading, version, monkeypatch):
    tool_ = tool("version")
    assert tool_.changelog(f"# Changelog\n\n{heading}\n\n## 1.1.0 (2025-01-31)\n") == version
    monkeypatch.setattr(sys, "argv", ["version.py"])
    monkeypatch.setattr(tool_, "changelog", lambda text: "99")
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md: 99"):
        tool_.main()


@pytest.mark.parametrize(
    ("name", "module", "shared"),
    [
        ("cp312-abi3-linux_x86_64", "_v2.abi3.so", True),
        ("cp312-abi3-win_amd64", "_base.pyd", True),
        ("cp312-abi3-linux_x86_64", "_v2.cpython-312-x86_64-linux-gnu.so", False),
        ("cp311-cp311-linux_x86_64", "_v2.cpython-311-x86_64-linux-gnu.so", False),
    ],
)
def test_wheels_of_the_stable_abi_are_told(tmp_path, name, module, shared):
    wheel = tmp_path / f"adasdca-1-{name}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"adasdca/_core/{module}", "")
    assert tool("wheels").stable(wheel) is shared


def test_interpreters_are_told_by_their_tags():
    wheels = tool("wheels")
    assert re.fullmatch(r"cp3\d+t?", wheels.tag_of(sys.executable))
    assert wheels.tag_of("python-of-nobody") is None


def test_what_the_workflows_run_is_there():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        for script in re.findall(r"tools/\w+\.py", text):
            assert (ROOT / script).is_file(), f"{path.name}: {script}"
        for target in re.findall(r"\bmake (\w+)", text):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


BREAKS = runpy.run_path(str(ROOT / "tools" / "mutations.py"))


@pytest.mark.parametrize(
    "mutation", BREAKS["MUTATIONS"], ids=lambda m: f"{m.file}: {m.old.strip()}"
)
def test_a_mutation_changes_one_place_and_leaves_python(mutation):
    text = BREAKS["broken"](mutation)
    assert text != BREAKS["path_of"](mutation).read_text("utf-8")
    if not BREAKS["in_core"](mutation):
        compile(text, mutation.file, "exec")
    for name in mutation.tests.split():
        file, _, test = name.partition("::")
        assert f"def {test}" in (ROOT / "tests" / f"test_{file}.py").read_text("utf-8")
