"""
Classify text
=============

Which library is a docstring from? The documents are those of NumPy, SciPy and scikit-learn as they
are installed, less the names of the libraries; the model is a multinomial logistic regression on
counts of words.
"""

import importlib
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from adasdca import AdaSDCAClassifier

MODULES = {
    "NumPy": ("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.polynomial"),
    "SciPy": ("scipy.optimize", "scipy.linalg", "scipy.signal", "scipy.stats", "scipy.sparse"),
    "scikit-learn": ("sklearn.linear_model", "sklearn.metrics", "sklearn.cluster", "sklearn.svm"),
}
NAMES = re.compile(r"numpy|scipy|scikit-learn|sklearn|\b(np|sp)\b|[0-9_]+")

documents, labels = [], []
for library, modules in MODULES.items():
    found = set()
    for module in map(importlib.import_module, modules):
        for name in dir(module):
            text = inspect.getdoc(getattr(module, name))
            if not name.startswith("_") and text and len(text) > 300:
                found.add(NAMES.sub(" ", text))
    documents += sorted(found)
    labels += [library] * len(found)
print({library: labels.count(library) for library in MODULES})

# %%
# A pipeline as any other. The certificate is that of the objective on the training rows.

train, test, y_train, y_test = train_test_split(
    documents, labels, test_size=0.3, stratify=labels, random_state=0
)
model = make_pipeline(
    TfidfVectorizer(min_df=3, sublinear_tf=True), AdaSDCAClassifier(C=10.0, tol=1e-6)
).fit(train, y_train)
classifier = model[-1]
print(
    f"{classifier.n_features_in_} words, accuracy on new documents {model.score(test, y_test):.3f}"
)
print(classifier.certificate_)

# %%
# The words that speak most for each library, and what is mistaken for what.

words = model[0].get_feature_names_out()
figure, axes = plt.subplots(1, 4, figsize=(11, 4), width_ratios=(1, 1, 1, 1.6))
for ax, library, weights in zip(axes, classifier.classes_, classifier.coef_, strict=False):
    top = np.argsort(weights)[-12:]
    ax.barh(words[top], weights[top], color="C0")
    ax.set_title(library)
    ax.grid(visible=False)
ConfusionMatrixDisplay.from_predictions(
    y_test, model.predict(test), ax=axes[3], cmap="Blues", colorbar=False
)
axes[3].grid(visible=False)
axes[3].set_title("test documents")
plt.show()

# %%
# Few documents are close calls. Where the certified margin is above 0, the exact optimum of the
# objective gives the same answer: a tighter ``tol`` cannot change it.

margins = classifier.certified_margin(model[:-1].transform(test))
print(f"{(margins > 0).sum()} of {len(test)} predictions are those of the exact optimum")
