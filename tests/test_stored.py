"""Files that earlier versions wrote: they are read, and predict what they predicted.

``python tests/test_stored.py FOLDER`` writes such files anew: for a new kind of file, or a new
version of a format. Those that are there are never rewritten.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import adasdca
from adasdca import models
from adasdca.solution import State

STORED = Path(__file__).with_name("stored")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((60, 4))
SCORES = X @ RNG.standard_normal((4, 3)) + 0.3 * RNG.standard_normal((60, 3))
#: The rows that are predicted: written out, for generators may change.
ROWS = np.array([[0.5, -1.0, 2.0, 0.25], [-3.0, 0.125, 0.0, 1.0], [1.0, 1.0, -1.0, -1.0]])


def fitted(kind):
    """Return a model of that kind."""
    labels = SCORES.argmax(axis=1)
    binary, many = np.where(labels == 0, -1.0, 1.0), np.array(["a", "b", "ü"])[labels]
    estimator, y, loss, more = {
        "binary": (
            adasdca.AdaSDCAClassifier(tol=1e-8),
            binary,
            adasdca.Logistic(),
            {"fit_intercept": True},
        ),
        "one_versus_rest": (
            adasdca.AdaSDCAClassifier(multi_class="ovr", loss="squared_hinge", tol=1e-8),
            many,
            adasdca.SquaredHinge(),
            {"fit_intercept": True, "feature_names": ["p", "q", "r", "s"]},
        ),
        "multinomial": (
            adasdca.AdaSDCAClassifier(multi_class="multinomial", tol=1e-8),
            labels,
            adasdca.Logistic(),
            {
                "fit_intercept": True,
                "provenance": {"multi_class": "multinomial"},
                "multinomial": True,
                "columns": {
                    "target": "kind",
                    "names": ["p", "town"],
                    "categories": {"town": ["Bern", "Köln", "Ulm"]},
                    "fill": {"p": 0.5},
                },
            },
        ),
        "regression": (
            adasdca.AdaSDCARegressor(loss=adasdca.Huber(delta=0.5), l1_ratio=0.5, tol=1e-8),
            SCORES[:, 0],
            adasdca.Huber(delta=0.5),
            {"fit_intercept": True, "l1_ratio": 0.5},
        ),
        "intercept_scaling": (
            adasdca.AdaSDCAClassifier(loss="hinge", intercept_scaling=2.0, tol=1e-8),
            binary,
            adasdca.Hinge(),
            {"bias": 2.0, "class_weight": np.array([1.0, 1.0])},
        ),
    }[kind]
    estimator.fit(X, y)
    coef = np.atleast_2d(estimator.coef_)
    return models.Model(
        coef=coef,
        intercept=np.broadcast_to(estimator.intercept_, len(coef)).astype(np.float64),
        classes=getattr(estimator, "classes_", None),
        loss=loss,
        lam=1 / len(X),
        **more,
    )


KINDS = ("binary", "one_versus_rest", "multinomial", "regression", "intercept_scaling")


def store(folder):
    """Write the files and what is expected of them."""
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    for kind in KINDS:
        model = fitted(kind)
        models.save(model, folder / f"{kind}.model")
        expected[kind] = {
            "scores": [[float(s).hex() for s in row] for row in model.decision(ROWS)],
            "predictions": model.predict(ROWS).tolist(),
            "classes": None if model.classes is None else model.classes.tolist(),
            "loss": repr(model.loss),
            "facts": [model.lam, model.l1_ratio, model.bias, model.fit_intercept],
            "feature_names": model.feature_names,
        }
    models.write_liblinear(fitted("binary"), folder / "liblinear.txt")
    y = np.where(SCORES[:, 0] > 0, 1.0, -1.0)
    state = adasdca.solve(X, y, loss="hinge", lam=0.1, fit_intercept=True, random_state=3).state
    state.save(folder / "state.npz")
    expected["state"] = {
        "beta": [float(b).hex() for b in state.beta],
        "multiplier": state.multiplier.hex(),
        "counts": [state.epoch, state.seed],
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", "utf-8")


VERSIONS = sorted(path.name for path in STORED.iterdir())


@pytest.fixture(params=VERSIONS)
def stored(request):
    folder = STORED / request.param
    return folder, json.loads((folder / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize("kind", KINDS)
def test_models_predict_what_they_did(stored, kind):
    folder, expected = stored[0], stored[1][kind]
    model = models.load(folder / f"{kind}.model")
    scores = np.array([[float.fromhex(s) for s in row] for row in expected["scores"]])
    # The order of a sum of four products is the library's of linear algebra.
    np.testing.assert_allclose(model.decision(ROWS), scores, rtol=1e-14, atol=1e-14)
    if model.classes is not None:
        assert model.predict(ROWS).tolist() == expected["predictions"]
    classes = None if model.classes is None else model.classes.tolist()
    assert classes == expected["classes"]
    assert repr(model.loss) == expected["loss"]
    assert [model.lam, model.l1_ratio, model.bias, model.fit_intercept] == expected["facts"]
    assert model.feature_names == expected["feature_names"]


def test_the_second_version_of_the_format_keeps_what_it_has_more():
    model = models.load(STORED / "format-2" / "multinomial.model")
    assert model.multinomial
    assert model.columns["categories"] == {"town": ["Bern", "Köln", "Ulm"]}
    assert not models.load(STORED / "0.1.0" / "multinomial.model").multinomial


def test_models_of_liblinear_predict_what_they_did(stored):
    folder, expected = stored
    model = models.load(folder / "liblinear.txt")
    scores = [[float.fromhex(s) for s in row] for row in expected["binary"]["scores"]]
    np.testing.assert_allclose(model.decision(ROWS), scores, rtol=1e-14, atol=1e-14)
    assert model.predict(ROWS).tolist() == expected["binary"]["predictions"]


def test_states_are_what_they_were(stored):
    folder, expected = stored[0], stored[1]["state"]
    state = State.load(folder / "state.npz")
    assert [b.hex() for b in state.beta.tolist()] == expected["beta"]
    assert state.multiplier.hex() == expected["multiplier"]
    assert [state.epoch, state.seed] == expected["counts"]


def test_every_version_has_every_kind(stored):
    names = {f"{kind}.model" for kind in KINDS} | {"liblinear.txt", "state.npz", "expected.json"}
    assert {path.name for path in stored[0].iterdir()} == names


if __name__ == "__main__":
    store(Path(sys.argv[1]))
