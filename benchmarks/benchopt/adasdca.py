"""A solver by adasdca for benchmarks of benchopt, told apart by the names of their folders.

benchmark_ridge minimises ½ Σ (y − x·w − b)² + lmbd/2 ‖w‖², and benchmark_logreg_l2
Σ log(1 + exp(−y(x·w + b))) + lmbd/2 ‖w‖²: n times the objective of `adasdca.solve` with
lam = lmbd / n. benchmark_linear_svm_binary_classif_no_intercept minimises
C Σ max(0, 1 − y x·w) + ½ ‖w‖², which is C n times that with lam = 1 / (C n).
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

import adasdca

LOSSES = {
    "benchmark_ridge": "squared",
    "benchmark_logreg_l2": "logistic",
    "benchmark_linear_svm_binary_classif_no_intercept": "hinge",
}


class Solver(BaseSolver):
    name = "adasdca"
    sampling_strategy = "tolerance"
    # One epoch or Newton step may pass several tolerances: the same point more than once is no end.
    stopping_criterion = SufficientProgressCriterion(patience=8, strategy="tolerance")
    parameters = {"method": ["auto", "adasdca+", "sdca-perm"]}
    parameter_template = "{method}"
    install_cmd = "conda"
    requirements = ["pip::adasdca"]
    references = [
        "'Stochastic dual coordinate ascent with adaptive probabilities', D. Csiba et al. (2015)"
    ]

    def set_objective(self, X, y, lmbd=None, C=None, fit_intercept=False):
        # Columns first are read in rows here, and not in `run`, which is timed.
        self.X = sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)
        self.y = np.asarray(y, dtype=np.float64)
        self.lam = (1.0 / C if lmbd is None else lmbd) / X.shape[0]
        self.fit_intercept = bool(fit_intercept)

    @staticmethod
    def get_next(stop_val):
        return min(stop_val, 10.0) / 10

    def run(self, tolerance):
        self.solution = adasdca.solve(
            self.X,
            self.y,
            loss=LOSSES[Path(__file__).parents[1].name],
            lam=self.lam,
            fit_intercept=self.fit_intercept,
            method=self.method,
            tol=min(tolerance, 1e30),
            random_state=0,
        )

    def get_result(self):
        solution = self.solution
        tail = [solution.intercept] if self.fit_intercept else []
        return {"beta": np.append(solution.coef, tail)}
