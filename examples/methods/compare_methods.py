"""
The methods side by side
========================

What the command ``adasdca compare`` does, in a few lines: the same problem, one method after
another, and the relative duality gap of each.
"""

import matplotlib.pyplot as plt

import adasdca
from adasdca.plotting import Curve, convergence

X, y = adasdca.datasets.load_mushrooms()
methods = {
    "sdca": "sdca",
    "sdca-perm": "sdca-perm",
    "iprox-sdca": "iprox-sdca",
    "adasdca+ (II)": adasdca.AdaSDCAPlus(option="II"),
    "adasdca+ (I)": adasdca.AdaSDCAPlus(option="I"),
    "adasdca+ (III)": adasdca.AdaSDCAPlus(option="III"),
    "option I with m = 10": adasdca.AdaSDCAPlus(option="I", m=10),
    "auto": "auto",
}

# %%
# A method is a name or an object with parameters; nothing else of the call changes.

curves = []
for label, method in methods.items():
    solution = adasdca.solve(
        X, y, loss="smoothed_hinge", lam=1 / len(y), method=method, tol=1e-8, random_state=0
    )
    seen = solution.history
    curves.append(Curve(label, seen.epoch, seen.seconds, seen.relative_gap))
    print(f"{label:22}{solution.n_epochs:4} epochs  {solution.status.value}")

# %%
# Left: the work in epochs of n updates. Right: the clock, which also counts the evaluations of the
# gap.

convergence(curves, tol=1e-8, figure=plt.figure(figsize=(11, 4.4)))
plt.show()
