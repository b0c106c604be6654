"""
A method, a loss and a data set in a file each
==============================================

A new idea is one file of a dozen lines. The file registers a name, which can then be used in
``solve``, in the estimators, and at the command line.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import adasdca
from adasdca import plugins
from adasdca.plotting import METHODS, series

# %%
# A method picks the rows that the next epoch visits, from a survey of all rows and a seeded
# generator. This is the whole file:

folder = Path(sys.argv[0]).resolve().parent / "research"
print((folder / "active_shuffle.py").read_text(encoding="utf-8"))

# %%
# :func:`adasdca.plugins.load` imports a file by its path and returns what it registered. In a script
# of your own you would simply have the function in it.

for file in ("active_shuffle.py", "huber_insensitive.py", "rings.py"):
    plugin = plugins.load(folder / file)
    names = [*plugin.methods, *plugin.losses, *plugin.datasets]
    print(f"{file} registers {', '.join(names)}")

# %%
# The new method beside those of the package. The steps stay exact and the certificate valid
# whatever rows a method picks: a bad one is slow, but not wrong.

X, y = adasdca.datasets.load_mushrooms()
figure, axes = plt.subplots(figsize=(7.5, 4.2))
methods = {
    "sdca-perm": METHODS["sdca-perm"].line,
    "adasdca+": METHODS["adasdca+ (I)"].line,
    "active-shuffle": series(3)[2],
}
for method, style in methods.items():
    solution = adasdca.solve(
        X, y, loss="smoothed_hinge", lam=1 / len(y), method=method, tol=1e-8, random_state=0
    )
    history = solution.history
    gap = history.gap[1:] / history.primal[1:]
    axes.loglog(history.updates[1:] / len(y), gap, **style, markevery=0.1, label=method)
    print(f"{method:14} {solution.n_updates / len(y):6.1f} n updates, {solution.status.value}")
axes.set_xlabel("updates / n")
axes.set_ylabel("relative duality gap")
axes.legend()
plt.show()

# %%
# The loss works with every method, second-order steps of ``auto`` included, and the data set under
# its name.

rng = np.random.default_rng(0)
A = rng.normal(size=(1000, 5))
target = A @ np.arange(5) + rng.standard_t(1.5, size=1000)
fit = adasdca.solve(A, target, loss="huber_insensitive", lam=1e-4, method="auto", tol=1e-8)
print("coefficients", fit.coef.round(2), "gap", f"{fit.gap:.0e}")
X, y = adasdca.datasets.load("rings")
print("rings:", adasdca.solve(X, y, loss="logistic", lam=1e-4, method="auto").status.message)

# %%
# At the command line the same files are plug-ins:
#
# .. code-block:: console
#
#    $ adasdca compare mushrooms --plugin active_shuffle.py
#    $ adasdca compare rings --plugin active_shuffle.py --plugin rings.py
#    $ adasdca datasets fetch a9a --plugin rings.py
