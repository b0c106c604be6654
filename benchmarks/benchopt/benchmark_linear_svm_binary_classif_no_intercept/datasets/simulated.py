"""A small random problem."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "Simulated"
    parameters = {"n_samples, n_features": [(500, 20), (100, 300)]}

    def get_data(self):
        rng = np.random.default_rng(27)
        w = rng.standard_normal(self.n_features)
        X = rng.standard_normal((self.n_samples, self.n_features))
        y = np.where(X @ w + rng.standard_normal(self.n_samples) > 0, 1.0, -1.0)
        return {"X": X, "y": y}
