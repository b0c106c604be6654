"""
Ten classes: handwritten digits
===============================

One multinomial model of ten classes, and what it looks at. The certificate covers all classes at
once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from adasdca import AdaSDCAClassifier

X, y = load_digits(return_X_y=True)
X = X / 16.0
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

model = AdaSDCAClassifier(C=0.3, tol=1e-6).fit(X_train, y_train)
print(model.certificate_)
print(f"accuracy on new digits {model.score(X_test, y_test):.3f}")

# %%
# The coefficients of a class are a picture: ink in the blue places speaks for the digit, ink in the
# red ones against it.

limit = np.abs(model.coef_).max()
figure, axes = plt.subplots(2, 5, figsize=(9, 4))
for ax, digit, weights in zip(axes.flat, model.classes_, model.coef_, strict=True):
    image = ax.imshow(weights.reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
    ax.set_title(digit)
    ax.set_axis_off()
figure.colorbar(image, ax=axes, shrink=0.8, label="coefficient")
plt.show()

# %%
# The digits about which the model is least sure, by the lead of the first class over the second.

probabilities = np.sort(model.predict_proba(X_test), axis=1)
lead = probabilities[:, -1] - probabilities[:, -2]
figure, axes = plt.subplots(2, 6, figsize=(9, 3.6))
for ax, k in zip(axes.flat, np.argsort(lead), strict=False):
    ax.imshow(X_test[k].reshape(8, 8), cmap="Greys")
    said, right = model.predict(X_test[[k]])[0], y_test[k]
    ax.set_title(f"{said}" if said == right else f"{said}, is {right}", fontsize="medium")
    ax.set_axis_off()
plt.show()
