"""
Elastic net: which features enter, and when
===========================================

Coefficients along C, from none to all, for three mixtures of the L1 and the L2 penalty. Every point
of the path is certified, and features are left out on the way by rules that are proved safe.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import adasdca
from adasdca.plotting import series

data = load_diabetes()
X = StandardScaler().fit_transform(data.data)
y = data.target - data.target.mean()

figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True)
for ax, l1_ratio in zip(axes, (0.0, 0.5, 0.99), strict=True):
    path = adasdca.path(
        X, y, loss="squared", l1_ratio=l1_ratio, Cs=np.geomspace(2e-5, 0.05, 60), tol=1e-6
    )
    assert path.converged.all()
    for name, coefs, style in zip(data.feature_names, path.coefs.T, series(10), strict=True):
        ax.plot(path.Cs, coefs, **{**style, "marker": ""}, label=name)
    ax.set(xscale="log", xlabel="C", title=f"l1_ratio = {l1_ratio}")
    ax.label_outer()
    middle = len(path) // 2
    used = (path.coefs != 0).sum(axis=1)
    print(f"l1_ratio {l1_ratio:4}: {used[middle]:2} of 10 features at C = {path.Cs[middle]:.2g}")
axes[0].legend(fontsize="small", ncols=2)
axes[0].set_ylabel("coefficient")
plt.show()
