"""
Certify a scikit-learn model
============================

How close to the optimum is a model that something else has trained? ``certify`` finds the objective
in the parameters of the estimator, and bounds how far it is from its minimum.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import adasdca
from adasdca.plotting import series

X, y = adasdca.datasets.load_mushrooms()
print(adasdca.certify(LogisticRegression(C=1.0).fit(X, y), X, y))

# %%
# For coefficients from anywhere else, state the objective. scikit-learn's ``C`` multiplies the sum
# of the losses; here the objective has their mean, so that ``lam = 1/(C·n)``.

model = LogisticRegression(C=1.0, fit_intercept=False).fit(X, y)
print(adasdca.certify(X, y, model.coef_[0], loss="logistic", lam=1 / len(y)))

# %%
# The more iterations the solver of scikit-learn makes, the smaller the gap. The bound is valid at
# every stage, and needs nothing but the coefficients.

iterations = [5, 10, 20, 40, 80, 160, 320]
figure, axes = plt.subplots(figsize=(7.5, 4.2))
for solver, style in zip(("lbfgs", "sag", "saga"), series(3), strict=True):
    gaps = []
    for limit in iterations:
        model = LogisticRegression(solver=solver, tol=1e-12, max_iter=limit, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
            model.fit(X, y)
        gaps.append(adasdca.certify(model, X, y).relative_gap)
    axes.loglog(iterations, gaps, **style, label=f"solver = {solver!r}")
axes.set(xlabel="iterations", ylabel="relative duality gap, certified")
axes.legend()
plt.show()

# %%
# The two stochastic solvers hardly move from 1e-3 on. It is the intercept, which they change by
# small steps where rows are sparse. Without it they arrive.

for fit_intercept in (True, False):
    model = LogisticRegression(
        solver="saga", tol=1e-12, max_iter=320, random_state=0, fit_intercept=fit_intercept
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    gap = adasdca.certify(model, X, y).relative_gap
    print(f"fit_intercept={fit_intercept!s:5} relative gap {gap:.1e}, intercept {model.intercept_}")
exact = adasdca.AdaSDCAClassifier(tol=1e-10).fit(X, y)
print(f"the optimum{'':27} intercept {exact.intercept_}")
