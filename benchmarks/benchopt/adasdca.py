"""Ridge regression by adasdca, for benchopt's benchmark_ridge.

The benchmark minimises ½ Σ (y − x·w − b)² + lmbd/2 ‖w‖², which is n times the objective of
`adasdca.solve` with lam = lmbd / n.
"""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

import adasdca


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

    def set_objective(self, X, y, lmbd, fit_intercept):
        # Columns first are read in rows here, and not in `run`, which is timed.
        self.X = sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)
        self.y = np.asarray(y, dtype=np.float64)
        self.lam, self.fit_intercept = lmbd / X.shape[0], bool(fit_intercept)

    @staticmethod
    def get_next(stop_val):
        return min(stop_val, 10.0) / 10

    def run(self, tolerance):
        self.solution = adasdca.solve(
            self.X,
            self.y,
            loss="squared",
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
