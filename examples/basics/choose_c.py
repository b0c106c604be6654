"""
Choose C by cross-validation
============================

``AdaSDCAClassifierCV`` walks along C in every fold, each solve from the last one, and fits all rows
with the best. As every fit is certified, differences of scores are those of the models, and not of
solvers that stopped too early.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adasdca import AdaSDCAClassifierCV, PathDisplay

data = load_breast_cancer()
search = AdaSDCAClassifierCV(Cs=np.geomspace(1e-4, 1e4, 25), cv=5, scoring="neg_log_loss")
model = make_pipeline(StandardScaler(), search).fit(data.data, data.target)
print(f"C = {search.C_:.3g}, log loss {-search.scores_.mean(axis=0).max():.4f}")

# %%
# Left: the folds in grey, and their mean. Right: how the coefficients grow meanwhile; the largest
# are named. A data frame would have brought the names, and ``kind="coefs"`` drawn them.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4))
PathDisplay.from_estimator(search, ax=left)
left.set_ylabel("minus log loss of the fold")
PathDisplay(
    search.Cs_,
    coefs=search.coefs_paths_[:, 0, :, 0].mean(axis=0),
    best=search.C_,
    feature_names=data.feature_names,
).plot(right)
right.set_ylim(-6, 6)
right.legend(fontsize="x-small", loc="lower left")
plt.show()
