"""
Non-negative coefficients: what is in the mixture?
==================================================

A spectrum is a sum of the spectra of its substances, in amounts that cannot be negative. With
``positive=True`` the model knows that; without, noise becomes amounts below zero.
"""

import matplotlib.pyplot as plt
import numpy as np

from adasdca import AdaSDCARegressor
from adasdca.plotting import COLORS

rng = np.random.default_rng(4)
wavelength = np.linspace(400, 700, 300)
centres = np.linspace(415, 685, 15)
library = np.exp(-(((wavelength[:, None] - centres) / 30.0) ** 2))
amounts = np.zeros(15)
amounts[[2, 3, 8, 13]] = 1.0, 0.6, 1.4, 0.8
spectrum = library @ amounts + rng.normal(scale=0.12, size=wavelength.size)

# %%
# The columns of X are the pure spectra, the coefficients the amounts.

options = {"C": 10.0, "fit_intercept": False, "tol": 1e-8}
free = AdaSDCARegressor(**options).fit(library, spectrum)
positive = AdaSDCARegressor(positive=True, **options).fit(library, spectrum)
for name, model in (("free", free), ("positive", positive)):
    print(f"{name:8} error of the amounts {np.linalg.norm(model.coef_ - amounts):.2f}, "
          f"below zero: {(model.coef_ < 0).sum()}")  # fmt: skip

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(1.3, 1))
left.plot(wavelength, spectrum, ".", color="0.6", markersize=3, label="measured")
left.plot(wavelength, positive.predict(library), color=COLORS["blue"], linewidth=2, label="model")
parts = library * positive.coef_
for k in np.flatnonzero(positive.coef_ > 0.05):
    left.fill_between(wavelength, parts[:, k], color=COLORS["sky"], alpha=0.3)
left.set(xlabel="wavelength", ylabel="intensity")
left.legend()
place = np.arange(15)
right.bar(place - 0.27, amounts, 0.27, color="0.3", label="truth")
right.bar(place, free.coef_, 0.27, color=COLORS["orange"], label="free")
right.bar(place + 0.27, positive.coef_, 0.27, color=COLORS["blue"], label="positive")
right.axhline(0, color="black", linewidth=0.8)
right.set(xlabel="substance", ylabel="amount", xticks=place[::2])
right.legend()
plt.show()
