"""
Your own loss
=============

Most losses of the package are four numbers. A new one of that family is a class of a few lines,
and runs at the speed of the others: here the pinball loss with its corner rounded, for smooth
quantile regression.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import adasdca
from adasdca import losses
from adasdca.plotting import series

# %%
# The family has the conjugate φ*(−β) = −yβ + ε|β| + γβ²/2 on an interval. The pinball loss of
# level τ is γ = ε = 0 on [τ − 1, τ]; a positive γ rounds the corner.


@dataclass(frozen=True)
class SmoothQuantile(losses.PiecewiseQuadratic):
    """The pinball loss of level τ, rounded over a length of about γ."""

    quantile: float = 0.5
    gamma: float = 0.1
    name = "smooth_quantile"
    kind = "regression"

    @property
    def smoothness(self):
        return self.gamma

    @property
    def domain(self):
        return (self.quantile - 1.0, self.quantile)


# %%
# Value, conjugate, slope and exact step follow from these numbers. The Fenchel–Young inequality
# is an equality at β = −φ′, as it must be.

loss = SmoothQuantile(0.9)
score, target = np.linspace(-2, 2, 9), np.zeros(9)
beta = -loss.slope(score, target)
excess = loss.value(score, target) + loss.conjugate(beta, target) + score * beta
print("Fenchel–Young, largest difference from equality:", np.abs(excess).max())

# %%
# Data whose spread grows with x, and three quantiles of them.

rng = np.random.default_rng(0)
x = rng.uniform(0, 1, 2000)
y = 1 + x + (0.1 + x) * rng.normal(size=x.size)
X = np.column_stack([x, x**2])

figure, axes = plt.subplots(figsize=(7.5, 4.2))
axes.plot(x, y, ".", color="0.75", markersize=3)
grid = np.linspace(0, 1, 50)
for quantile, style in zip((0.1, 0.5, 0.9), series(3), strict=True):
    solution = adasdca.solve(
        X, y, loss=SmoothQuantile(quantile), lam=1e-4, fit_intercept=True, tol=1e-4, random_state=0
    )
    fitted = np.column_stack([grid, grid**2]) @ solution.coef + solution.intercept
    axes.plot(grid, fitted, **{**style, "marker": ""}, linewidth=2, label=f"τ = {quantile}")
    below = np.mean(y <= X @ solution.coef + solution.intercept)
    print(f"τ = {quantile}: {below:.3f} of the data below, gap {solution.relative_gap:.0e}")
axes.legend()
plt.show()
