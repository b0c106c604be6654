"""Models on disk: nothing is lost on the way, and no bad file passes for a model."""

import dataclasses
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca import models
from adasdca.models import Model, ModelError, _file
from adasdca.problem.losses import LOSSES, PiecewiseQuadratic
from bundled import cancer, diabetes, iris


def example(**changes):
    fields = {
        "coef": np.array([[0.1, -2.5, 1e-300]]),
        "intercept": np.array([1 / 3]),
        "classes": np.array([-1.0, 1.0]),
        "loss": adasdca.SmoothedHinge(gamma=0.25),
        "lam": 1e-3,
        "l1_ratio": 0.5,
        "bias": 2.0,
        "fit_intercept": False,
        "positive": True,
        "class_weight": np.array([1.0, 3.0]),
        "certificates": [{"class": None, "primal": 1.0, "dual": 0.5, "gap": 0.5}],
        "provenance": {"data": {"source": "é.svm", "sha256": "00"}, "date": "2024-01-01"},
        "feature_names": ["a", "b", "ü"],
    }
    return Model(**(fields | changes))


def assert_same(a, b):
    for field in dataclasses.fields(Model):
        one, two = getattr(a, field.name), getattr(b, field.name)
        if isinstance(one, tuple):
            np.testing.assert_array_equal(one, two)
        elif isinstance(one, np.ndarray):
            assert one.tobytes() == two.tobytes()
            assert one.dtype == two.dtype
        else:
            assert one == two


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "coef": np.arange(9.0).reshape(3, 3),
            "intercept": np.zeros(3),
            "classes": np.array([0, 1, 2]),
            "loss": adasdca.Logistic(),
            "class_weight": None,
            "multinomial": True,
            "bounds": (np.array([0.0, -np.inf, 0.0]), np.full(3, 9.0)),
            "penalty_factors": np.array([1.0, 2.0, 3.0]),
            "columns": {
                "target": "t",
                "names": ["a", "b"],
                "categories": {"b": ["x", "y"]},
                "fill": {"a": 0.5},
            },
            "feature_names": ["a", "b=x", "b=y"],
        },
        {"classes": np.array(["edible", "poisonous"])},
        {"classes": None, "loss": adasdca.Huber(delta=2.0), "class_weight": None},
        {
            "coef": np.arange(12.0).reshape(4, 3),
            "intercept": np.zeros(4),
            "classes": np.array([0, 1, 2, 5]),
            "class_weight": None,
            "feature_names": None,
            "lam": None,
        },
    ],
)
def test_what_is_saved_is_loaded(changes, tmp_path):
    model = example(**changes)
    models.save(model, tmp_path / "m")
    assert_same(models.load(tmp_path / "m"), model)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_survives(name, tmp_path):
    loss = LOSSES[name]()
    classes = np.array([0.0, 1.0]) if loss.kind == "classification" else None
    models.save(example(loss=loss, classes=classes, class_weight=None), tmp_path / "m")
    assert models.load(tmp_path / "m").loss == loss


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        models.save(example(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numpy_reads_the_arrays_without_pickle(tmp_path):
    models.save(example(), tmp_path / "m")
    with np.load(tmp_path / "m", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["coef"], example().coef)
        assert json.loads(archive["header.json"])["format"] == "adasdca-model"


def test_no_flipped_byte_gives_another_model(tmp_path):
    path = tmp_path / "m"
    models.save(example(), path)
    whole = path.read_bytes()
    refused = 0
    for k in range(0, len(whole), 7):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ 0x55]) + whole[k + 1 :])
        try:
            model = models.load(path)
        except ModelError:
            refused += 1
        else:  # a byte that means nothing, such as the date of an entry
            assert_same(model, example())
    assert refused > 0.5 * len(whole) / 7


def rewritten(path, change, **arrays):
    """Rewrite the header of a saved model, and some of its arrays."""
    models.save(example(), path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(entries["header.json"])
    change(header)
    entries["header.json"] = json.dumps(header).encode()
    entries |= {f"{name}.npy": _file._as_npy(array) for name, array in arrays.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, contents in entries.items():
            archive.writestr(name, contents)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(version=3), r"version 3 .* reads versions 1 to 2"),
        (lambda h: h.pop("version"), "version None"),
        (lambda h: h.update(format="other"), "no model of adasdca"),
        (lambda h: h.pop("lam"), "damaged"),
        (lambda h: h.update(lam=-1), "lam = -1"),
        (lambda h: h.update(loss={"name": "smoothed_hinge", "gamma": -1}), "gamma"),
        (lambda h: h.update(loss={"name": "squared", "gamma": 1}), "regression"),
        (lambda h: h.update(feature_names=["a"]), "The number of names for 3 features is 1"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(change, message, tmp_path):
    with pytest.raises(ModelError, match=message):
        models.load(rewritten(tmp_path / "m", change))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"coef": np.zeros(3)}, "shape"),
        ({"coef": np.zeros((1, 3), complex)}, "complex128"),
        ({"coef": np.zeros((1, 3), "i4,f8")}, "neither numbers nor text"),
        ({"coef": np.zeros((1, 0))}, "no features"),
        ({"coef": np.full((1, 3), np.inf)}, "NaN or infinity"),
        ({"classes": np.array([1.0])}, "do not fit 1 classes"),
        ({"classes": np.arange(3.0)}, "do not fit 3 classes"),
        ({"classes": np.array([1.0, np.nan])}, "NaN or infinity"),
        ({"classes": np.array([1.0, 1.0])}, "comes twice"),
        ({"classes": np.array(["a", "a"])}, "comes twice"),
        ({"classes": np.array([[0, 1]])}, "do not fit"),
        ({"classes": np.array([0j, 1j])}, "numbers or text"),
        ({"intercept": np.zeros(2)}, "shape"),
        ({"intercept": np.array([["a"]])}, "real numbers"),
        ({"l1_ratio": 7}, "l1_ratio = 7"),
        ({"l1_ratio": float("nan")}, "l1_ratio"),
        ({"lam": "1"}, "lam = '1'"),
        ({"lam": 10**400}, "lam = 1000"),
        ({"bias": None}, "bias = None"),
        ({"positive": 1}, "positive = 1"),
        ({"class_weight": [1.0]}, "class_weight must hold 2"),
        ({"class_weight": [1.0, -1.0]}, "class_weight must hold 2"),
        ({"certificates": [{"gap": "small"}]}, "certificates"),
        ({"certificates": 3}, "certificates"),
        ({"provenance": []}, "provenance"),
        ({"feature_names": ["a", "b", "a"]}, "each of them once"),
        ({"feature_names": "abc"}, "names of the features"),
    ],
)
def test_no_model_that_makes_no_sense_is_loaded(changes, words, tmp_path):
    arrays = {name: value for name, value in changes.items() if isinstance(value, np.ndarray)}
    header = {name: value for name, value in changes.items() if name not in arrays}
    path = rewritten(tmp_path / "m", lambda found: found.update(header), **arrays)
    with pytest.raises(ModelError, match=words):
        models.load(path)


def test_a_pickle_is_never_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    (tmp_path / "plain").write_bytes(pickle.dumps(Trap()))
    np.savez(tmp_path / "inside.npz", coef=np.array([Trap()]))
    with zipfile.ZipFile(tmp_path / "inside.npz") as archive:
        trap = archive.read("coef.npy")
    models.save(example(), tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "trap", "w") as archive:
        for name, contents in (entries | {"coef.npy": trap}).items():
            archive.writestr(name, contents)
    for name in ("plain", "inside.npz", "trap"):
        with pytest.raises(ModelError):
            models.load(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_other_files_are_no_models(tmp_path):
    (tmp_path / "data.svm").write_text("+1 1:2\n")
    with pytest.raises(ModelError, match="neither"):
        models.load(tmp_path / "data.svm")
    with pytest.raises(FileNotFoundError):
        models.load(tmp_path / "nothing")


def test_a_loss_without_a_name_is_not_saved(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Own(PiecewiseQuadratic):
        name = "own"
        kind = "classification"
        domain = (0.0, 2.0)

    with pytest.raises(ModelError, match="not one of the losses"):
        models.save(example(loss=Own()), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_rows_of_other_features_are_refused():
    with pytest.raises(ModelError, match="X has 4 features, but the model was fitted on 3"):
        example().decision(np.zeros((2, 4)))


def test_a_loss_that_is_not_known_here_still_predicts(tmp_path):
    """A model of a plug-in's loss needs the plug-in for its certificate only."""
    path = rewritten(tmp_path / "m", lambda h: h.update(loss={"name": "nope", "width": 3.0}))
    model, X = models.load(path), np.eye(3)
    np.testing.assert_array_equal(model.predict(X), example().predict(X))
    with pytest.raises(ModelError, match="'nope', which is not known here; register it first"):
        models.certify(model, X, model.predict(X))
    with pytest.raises(ModelError, match="not one of the losses"):
        models.save(model, tmp_path / "n")


def test_an_estimator_is_no_model(tmp_path):
    with pytest.raises(TypeError, match=r"AdaSDCAClassifier, and not an .*pickle or joblib"):
        models.save(adasdca.AdaSDCAClassifier(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [cancer, iris])
def test_predictions_are_the_estimators(data):
    X, y = data()
    estimator = adasdca.AdaSDCAClassifier(multi_class="ovr", random_state=0).fit(X, y)
    model = Model(estimator.coef_, estimator.intercept_, estimator.classes_, adasdca.Logistic(), 1)
    for rows in (X, sp.csr_matrix(X), X.astype(np.float32)):
        scores = estimator.decision_function(rows)
        np.testing.assert_array_equal(model.decision(rows), scores.reshape(len(y), -1))
        np.testing.assert_array_equal(model.predict(rows), estimator.predict(rows))


def test_regression_predicts_scores():
    X, y = diabetes()
    estimator = adasdca.AdaSDCARegressor(random_state=0).fit(X, y)
    model = Model(estimator.coef_[None], np.array([estimator.intercept_]), None,
                  adasdca.Squared(), 1.0)  # fmt: skip
    np.testing.assert_array_equal(model.predict(X), estimator.predict(X))


def test_certifying_needs_lam_and_the_models_labels():
    X, y = cancer()
    model = Model(np.zeros((1, 30)), np.zeros(1), np.array([0, 1]), adasdca.Logistic(), None)
    with pytest.raises(ModelError, match="give lam or C"):
        models.certify(model, X, y)
    model = dataclasses.replace(model, lam=1.0)
    with pytest.raises(ModelError, match="label 2 is none of the model's classes"):
        models.certify(model, X, y + 1)
    with pytest.raises(ModelError, match="another kind"):
        models.certify(model, X, np.where(y, "a", "b"))
