"""The objective of the public benchmark of this name, stated anew to try the solver here."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "SVM Binary Classification (no intercept)"
    parameters = {"C": [0.1]}
    min_benchopt_version = "1.7"

    def set_data(self, X, y, X_test=None, y_test=None):
        self.X, self.y = X, y

    def get_objective(self):
        return {"X": self.X, "y": self.y, "C": self.C}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def evaluate_result(self, beta):
        margin = self.y * (self.X @ beta)
        return {"value": self.C * np.maximum(1.0 - margin, 0.0).sum() + 0.5 * beta @ beta}
