"""
Rows that stay on the disk
==========================

The same fit with less and less memory. ``memory_limit`` bounds what a solve adds to the memory of
the process; rows come from a mapped file, a block at a time, and the certificate stays the same.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import adasdca
from adasdca.plotting import COLORS

rng = np.random.default_rng(0)
n, d = 20_000, 200
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "X.npy"
np.save(file, rng.normal(size=(n, d)).astype(np.float32))
X = np.load(file, mmap_mode="r")
y = np.where(X @ np.linspace(-1, 1, d) + 4 * rng.normal(size=n) > 0, 1.0, -1.0)
print(f"{file.stat().st_size / 1e6:.0f} MB of rows")

# %%

problem = {"loss": "logistic", "lam": 1 / n, "tol": 1e-6}
limits = [16, 12, 10]
solutions, seconds = [], []
adasdca.solve(X, y, **problem)  # the first solve of a process wakes its threads
for limit in [None, *(f"{limit} MB" for limit in limits)]:
    start = time.process_time()
    solutions.append(adasdca.solve(X, y, memory_limit=limit, **problem))
    seconds.append(time.process_time() - start)
    print(f"{limit or 'all in memory':13} {solutions[-1].primal:.12f}, "
          f"relative gap {solutions[-1].relative_gap:.0e}")  # fmt: skip

# %%
# A file of this size stays in the cache of the system; from a disk, every pass costs its reading.

figure, axes = plt.subplots(figsize=(7, 3.6))
labels = ["in memory", *(f"{limit} MB" for limit in limits)]
bars = axes.barh(labels[::-1], seconds[::-1], color=[COLORS["sky"]] * 3 + [COLORS["blue"]])
axes.bar_label(bars, fmt="%.3f s", padding=3)
axes.set(xlabel="processor seconds, on the machine that built this page", ylabel="memory_limit")
axes.grid(axis="y", visible=False)
plt.show()
folder.cleanup()
