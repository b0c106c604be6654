"""The objective of the public benchmark of this name, stated anew to try the solver here."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "Ridge Regression"
    parameters = {"lmbd": [0.1], "fit_intercept": [False, True]}
    min_benchopt_version = "1.7"

    def set_data(self, X, y, X_test=None, y_test=None):
        self.X, self.y = X, y

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd, "fit_intercept": self.fit_intercept}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1] + self.fit_intercept)}

    def evaluate_result(self, beta):
        coef, intercept = (beta[:-1], beta[-1]) if self.fit_intercept else (beta, 0.0)
        residual = self.y - self.X @ coef - intercept
        return {"value": 0.5 * residual @ residual + 0.5 * self.lmbd * coef @ coef}
