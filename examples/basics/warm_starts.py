"""
Warm starts
===========

Weigh the classes, then solve for a sequence of regularisation strengths, each solve starting from
the dual variables of the one before.
"""

import matplotlib.pyplot as plt
import numpy as np

import adasdca
from adasdca.plotting import draw_coefficients, series

rng = np.random.default_rng(0)
n, d = 4000, 60
X = rng.normal(size=(n, d)) * np.geomspace(1, 0.05, d)
y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 2.0, 1.0, -1.0)
print(f"{np.mean(y > 0):.1%} of the rows are positive")

# %%
# A weight is a repeated row: here each class counts as much as the other.

weight = np.where(y > 0, 0.5 / np.mean(y > 0), 0.5 / np.mean(y < 0))

# %%
# From strong to weak regularisation. The dual variables of a larger ``lam`` are a good start for
# the next.

lams = np.geomspace(1.0, 1e-4, 25)
problem = {"loss": "squared_hinge", "sample_weight": weight, "l1_ratio": 0.5, "tol": 1e-5}
problem["method"] = "adasdca+"
cold, warm, coefficients, previous = [], [], [], None
for lam in lams:
    cold.append(adasdca.solve(X, y, lam=lam, random_state=0, **problem).n_epochs)
    previous = adasdca.solve(X, y, lam=lam, random_state=0, warm_start=previous, **problem)
    warm.append(previous.n_epochs)
    coefficients.append(previous.coef)
    assert previous.converged, previous.status.message
print(f"epochs for the whole path: {sum(cold)} cold, {sum(warm)} warm")

# %%
# Left: what each start costs. Right: with the L1 term, coefficients enter one after another.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.loglog(lams, cold, **series(2)[1], label="from zero")
left.loglog(lams, warm, **series(2)[0], label="from the last solution")
left.invert_xaxis()
left.set(xlabel="lam", ylabel="epochs")
left.legend()
draw_coefficients(right, lams, np.array(coefficients))
right.set(xlabel="lam", xscale="log")
right.invert_xaxis()
plt.show()

# %%
# A state can be kept in a file and continued later, also with more rows: new ones begin at 0.

more = rng.normal(size=(200, d)) * np.geomspace(1, 0.05, d)
labels = np.where(more[:, 0] > 0.5, 1.0, -1.0)
grown = adasdca.solve(
    np.vstack([X, more]),
    np.concatenate([y, labels]),
    loss="squared_hinge",
    lam=lams[-1],
    sample_weight=np.concatenate([weight, np.ones(200)]),
    warm_start=previous.state,
    random_state=0,
)
print(grown)
