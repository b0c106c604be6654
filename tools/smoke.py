"""Try an installed adasdca as its users first would: smoke.py, from outside of a checkout.

Nothing but the package itself is needed; the command line is tried where its extra is installed.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from importlib import metadata, resources
from pathlib import Path

START = time.perf_counter()

import numpy as np  # noqa: E402
from sklearn.datasets import dump_svmlight_file, load_breast_cancer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.preprocessing import scale  # noqa: E402

import adasdca  # noqa: E402

IMPORTED = time.perf_counter()


def check(holds: bool, what: str) -> None:
    """End with a sentence unless it holds."""
    if not holds:
        sys.exit(f"smoke.py: {what}")


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `adasdca`, which must succeed."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "adasdca", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    check(run.returncode == 0, f"adasdca {' '.join(words)} failed:\n{run.stdout}{run.stderr}")
    return run


def main() -> None:
    """Import, fit, certify, use the command line; say how long the first fit took."""
    place = Path(adasdca.__file__).resolve()
    check(Path(sys.prefix).resolve() in place.parents, f"{place} is no installed package")
    check(adasdca.__version__ == metadata.version("adasdca"), "the versions differ")

    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = adasdca.AdaSDCAClassifier(tol=1e-8, random_state=0).fit(X, y)
    fitted = time.perf_counter()
    check(model.converged_ and model.score(X, y) > 0.97, "the first fit is wrong")

    peer = LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, y)
    check(np.allclose(model.coef_, peer.coef_, atol=1e-3), "scikit-learn's coefficients differ")
    check(adasdca.certify(peer, X, y).relative_gap < 1e-8, "scikit-learn's model is not certified")
    solution = adasdca.solve(*adasdca.datasets.load_mushrooms(), loss="smoothed_hinge", lam=1e-4)
    check(solution.converged, f"mushrooms: {solution.status}")

    package = resources.files("adasdca")
    check((package / "py.typed").is_file(), "py.typed is missing")
    losses = (package / "backends/cuda/kernels/loss.hpp").read_text(encoding="utf-8")
    check("struct PiecewiseQuadratic" in losses, "the text of the kernels is missing")
    check(importlib.util.find_spec("adasdca_reproduce") is not None, "adasdca_reproduce is missing")

    if importlib.util.find_spec("typer") is not None:
        with tempfile.TemporaryDirectory() as folder:
            file, saved = (str(Path(folder, name)) for name in ("rows.svm", "m.model"))
            dump_svmlight_file(X, y, file, zero_based=False)
            told = command("fit", file, "--tol", "1e-8", "--model", saved, "--json")
            check(json.loads(told.stdout)["status"] == "converged", told.stdout)
            labels = command("predict", saved, file, "--quiet").stdout.split()
            check(labels == model.predict(X).astype(str).tolist(), "the command line differs")
            command("certify", saved, file)
    print(
        f"adasdca {adasdca.__version__}, level {adasdca._core.LEVEL}, Python "
        f"{sys.version.split()[0]}: imported after {IMPORTED - START:.1f} s, first fit after "
        f"{fitted - START:.1f} s, all is well"
    )


if __name__ == "__main__":
    main()
