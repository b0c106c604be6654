"""The solvers for benchopt reach, in benchopt's own hands, the objective that scikit-learn does."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchopt", reason="benchopt is not installed: pip install 'adasdca[benchopt]'")
pd = pytest.importorskip("pandas")

SOLVER = Path(__file__).resolve().parents[1] / "benchmarks" / "benchopt" / "adasdca.py"

#: What stands for the public benchmarks: their data and objectives, stated anew.
DATASET = """
import sys
from benchopt import BaseDataset
sys.path.append({tests!r})
from test_benchopt import simulated

class Dataset(BaseDataset):
    name = "Simulated"
    parameters = {{"n_samples, n_features": [(500, 20), (100, 300)]}}

    def get_data(self):
        X, y = simulated(self.n_samples, self.n_features, {regression})
        return {{"X": X, "y": y}}
"""
OBJECTIVE = """
import numpy as np
from benchopt import BaseObjective

class Objective(BaseObjective):
    name, min_benchopt_version = "Objective", "1.7"
    parameters = {parameters}

    def set_data(self, X, y, X_test=None, y_test=None):
        self.X, self.y = X, y

    def get_objective(self):
        return {{"X": self.X, "y": self.y, **{{k: getattr(self, k) for k in {parameters}}}}}

    def get_one_result(self):
        return {{"beta": np.zeros(self.X.shape[1] + getattr(self, "fit_intercept", False))}}

    def evaluate_result(self, beta):
        coef, intercept = beta[: self.X.shape[1]], beta[self.X.shape[1] :].sum()
        y, score, square = self.y, self.X @ coef + intercept, 0.5 * coef @ coef
        return {{"value": {value}}}
"""


def simulated(n, d, regression):
    rng = np.random.default_rng(27)
    w = rng.standard_normal(d)
    X = rng.standard_normal((n, d))
    y = X @ w + rng.standard_normal(n)
    return X, y if regression else np.where(y > 0, 1.0, -1.0)


def ridge(X, y, lmbd, fit_intercept):
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=lmbd, fit_intercept=fit_intercept, tol=1e-12).fit(X, y)
    return 0.5 * np.sum((y - model.predict(X)) ** 2) + 0.5 * lmbd * np.sum(model.coef_**2)


def logistic(X, y, lmbd, fit_intercept):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=1 / lmbd, fit_intercept=fit_intercept, tol=1e-10, solver="newton-cg", max_iter=1000
    ).fit(X, y)
    margin = y * model.decision_function(X)
    return np.logaddexp(0, -margin).sum() + 0.5 * lmbd * np.sum(model.coef_**2)


def svm(X, y, C):
    from sklearn.svm import LinearSVC

    model = LinearSVC(
        C=C, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=1_000_000, random_state=0
    ).fit(X, y)
    margin = y * model.decision_function(X)
    return C * np.maximum(1 - margin, 0).sum() + 0.5 * np.sum(model.coef_**2)


PENALISED = {"lmbd": [0.1], "fit_intercept": [False, True]}
CASES = {
    "benchmark_ridge": (
        ridge,
        PENALISED,
        "0.5 * np.square(y - score).sum() + self.lmbd * square",
    ),
    "benchmark_logreg_l2": (
        logistic,
        PENALISED,
        "np.logaddexp(0.0, -y * score).sum() + self.lmbd * square",
    ),
    "benchmark_linear_svm_binary_classif_no_intercept": (
        svm,
        {"C": [0.1]},
        "self.C * np.maximum(1.0 - y * score, 0.0).sum() + square",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_reached(name, tmp_path):
    reference, parameters, value = CASES[name]
    benchmark = tmp_path / name  # benchopt writes beside the benchmark
    regression = name == "benchmark_ridge"
    for folder in ("datasets", "solvers"):
        (benchmark / folder).mkdir(parents=True)
    shutil.copy(SOLVER, benchmark / "solvers")
    stated = DATASET.format(tests=str(Path(__file__).parent), regression=regression)
    (benchmark / "datasets" / "simulated.py").write_text(stated)
    (benchmark / "objective.py").write_text(OBJECTIVE.format(parameters=parameters, value=value))
    command = [sys.executable, "-m", "benchopt", "run", str(benchmark), "-n", "25", "-r", "1"]
    done = subprocess.run(
        [*command, "-s", "adasdca[method=auto]", "--no-plot"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (results,) = (benchmark / "outputs").glob("*.parquet")
    table = pd.read_parquet(results)
    sizes = ["p_dataset_n_samples", "p_dataset_n_features"]
    keys = [*sizes, *(f"p_obj_{parameter}" for parameter in parameters)]
    groups = table.groupby(keys)
    assert len(groups) == (2 if name.endswith("no_intercept") else 4)
    for (n, d, *values), runs in groups:
        X, y = simulated(int(n), int(d), regression)
        best = reference(X, y, *(v.item() if hasattr(v, "item") else v for v in values))
        reached = runs["objective_value"].min()
        assert reached == pytest.approx(best, rel=1e-7)
        assert runs["objective_value"].iloc[0] > 1.01 * best  # the curve has a beginning
