"""
Certify a scikit-learn model
============================

How close to the optimum is a model that something else has trained? ``certify`` needs its
coefficients and the objective they were meant to minimise.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import adasdca

X, y = adasdca.datasets.load_mushrooms()

# %%
# scikit-learn's ``C`` multiplies a sum of losses; here they are a mean: ``lam = 1/(C·n)``.

C = 1.0
model = LogisticRegression(C=C).fit(X, y)
certificate = adasdca.certify(
    X,
    y,
    model.coef_[0],
    intercept=model.intercept_[0],
    fit_intercept=True,
    loss="logistic",
    lam=1 / (C * len(y)),
)
print(certificate)

# %%
# The certificate follows the trainer: the more iterations it is given, the smaller the gap. The
# bound is valid at every stage, and asks the trainer for nothing.

iterations = [5, 10, 20, 40, 80, 160, 320]
gaps = []
for limit in iterations:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
        model = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=limit).fit(X, y)
    certificate = adasdca.certify(X, y, model.coef_[0], loss="logistic", lam=1 / (C * len(y)))
    gaps.append(certificate.relative_gap)

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.loglog(iterations, gaps, "k-o")
axes.set_xlabel("iterations of L-BFGS")
axes.set_ylabel("relative gap, certified")
plt.show()
