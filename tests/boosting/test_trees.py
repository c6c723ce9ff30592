"""Trees in the text of a library, which are checked before the library reads them."""

import json
import re
from functools import cache

import numpy as np
import pytest

from fitzpatrick.boosting import BoostedProportionRegressor, load_model, save_model
from fitzpatrick.boosting._libraries import LIBRARIES
from tests.helpers import seeded

pytest.importorskip("lightgbm")


def fitted(**options) -> tuple[BoostedProportionRegressor, np.ndarray]:
    """Trees that split by numbers, missing ones included, and by categories."""
    rng = seeded(8)
    X = rng.normal(size=(600, 3))
    X[:, 2] = rng.integers(0, 6, len(X))
    share = np.where(np.isin(X[:, 2], [1, 4]), 0.8, np.where(X[:, 0] > 0, 0.3, 0.1))
    share = np.where(X[:, 1] > 0, share, 0.9 * share)
    X[:20, 0] = np.nan
    Y = np.stack([share, 1 - share], axis=1)
    given = {"n_jobs": 1, "n_estimators": 3, "num_leaves": 6, "categorical_features": [2]}
    return BoostedProportionRegressor("logistic", **{**given, **options}).fit(X, Y), X


@cache
def text() -> str:
    return str(LIBRARIES["lightgbm"].to_text(fitted()[0].booster_[0]))


def edited(pattern: str, replacement: str) -> str:
    """The text with one field changed, and the size of its tree as it then is."""
    head, blank, rest = text().partition("\n\n")
    changed, count = re.subn(pattern, replacement, rest, count=1, flags=re.MULTILINE)
    assert count == 1
    assert changed != rest
    size = int(re.search(r"tree_sizes=(\d+)", head)[1]) + len(changed) - len(rest)
    return re.sub(r"tree_sizes=\d+", f"tree_sizes={size}", head) + blank + changed


def edited_outside(pattern: str, replacement: str) -> str:
    changed, count = re.subn(pattern, replacement, text(), count=1, flags=re.MULTILINE)
    assert count == 1
    assert changed != text()
    return changed


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ({}, "cat_boundaries"),
        ({"library_params": {"linear_tree": True}, "categorical_features": None}, "is_linear=1"),
        ({"library_params": {"monotone_constraints": [1, 0, 0]}}, "monotone_constraints="),
        ({"early_stopping_rounds": 1, "random_state": 0}, "end of trees"),
    ],
    ids=["categories", "linear", "monotone", "early stopping"],
)
def test_trees_that_lightgbm_wrote_are_read(tmp_path, options, holds: str) -> None:
    model, X = fitted(**options)
    assert holds in LIBRARIES["lightgbm"].to_text(model.booster_[0])
    save_model(model, tmp_path / "model.json")
    once = load_model(tmp_path / "model.json")
    save_model(once, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_scores(X), once.predict_scores(X))


IN_TREE = {  # what is changed in the first tree, to what, and the field that the error names
    "false number of leaves": (r"num_leaves=6", "num_leaves=7", "split_feature"),
    "endless leaves": (r"num_leaves=6", "num_leaves=999999999", "num_leaves"),
    "no leaves": (r"num_leaves=6", "num_leaves=0", "num_leaves"),
    "number that is none": (r"num_leaves=6", "num_leaves=6_0", "num_leaves"),
    "child out of range": (r"^left_child=-?\d+", "left_child=77", "left_child"),
    "leaf out of range": (r"^right_child=-?\d+", "right_child=-99", "right_child"),
    "cycle": (r"^left_child=\d+(.*)\nright_child=.*", r"left_child=0\1\nright_child=0\1", "_child"),
    "cycle apart": (
        r"^left_child=.*\nright_child=.*",
        "left_child=-1 2 1 -2 -3\nright_child=3 -5 -6 4 -4",
        "leads back",
    ),
    "feature out of range": (r"^split_feature=\d+", "split_feature=3", "split_feature"),
    "negative feature": (r"^split_feature=\d+", "split_feature=-1", "split_feature"),
    "threshold": (r"^threshold=\S+", "threshold=nan", "threshold"),
    "leaf": (r"^leaf_value=\S+", "leaf_value=1e999", "leaf_value"),
    "missing array": (r"^decision_type=.*\n", "", "decision_type"),
    "unknown field": (r"^shrinkage=", "other=1\nshrinkage=", "other"),
    "twice": (r"^shrinkage=", "num_cat=0\nshrinkage=", "twice"),
    "line": (r"^shrinkage=", "shrinkage ", "NAME=VALUE"),
    "kind of split": (r"^decision_type=\d+", "decision_type=99", "decision_type"),
    "linear": (r"is_linear=0", "is_linear=1", "leaf_coeff"),
    "categories": (r"^num_cat=\d+", "num_cat=0", "cat_boundaries"),
    "bounds": (r"^cat_boundaries=0 \d+", "cat_boundaries=0 0", "cat_boundaries"),
    "beyond the categories": (r"^cat_threshold=", "cat_threshold=1 ", "cat_threshold"),
}


@pytest.mark.parametrize("attack", IN_TREE)
def test_trees_that_are_inconsistent(attack: str) -> None:
    pattern, replacement, field = IN_TREE[attack]
    with pytest.raises(ValueError, match=field):
        LIBRARIES["lightgbm"].from_text(edited(pattern, replacement))


OUTSIDE = {
    "size of a tree": (r"^(tree_sizes=\d+)\d", r"\g<1>0", "tree_sizes"),
    "tree that is left out": (r"^(tree_sizes=\d+) \d+", r"\1", "tree_sizes"),
    "more outputs than classes": (r"^num_class=2", "num_class=1", "num_class"),
    "more features": (r"^max_feature_idx=2", "max_feature_idx=5", "feature_names"),
    "unknown field": (r"^label_index", "objective=lambdarank\nlabel_index", "objective"),
    "version": (r"^version=v4", "version=v9", "version"),
    "end of a line": (r"^version=v4", "version=v4\rx", "ends of lines"),
    "end": (r"^end of trees", "end of threes", "what follows"),
    "parameter": (r"^\[boosting: gbdt\]", "[boosting]", "what follows"),
}


@pytest.mark.parametrize("attack", OUTSIDE)
def test_what_does_not_fit_the_trees(attack: str) -> None:
    pattern, replacement, field = OUTSIDE[attack]
    with pytest.raises(ValueError, match=field):
        LIBRARIES["lightgbm"].from_text(edited_outside(pattern, replacement))


def test_the_place_of_a_category_is_in_range() -> None:
    """Without this check, LightGBM reads whatever memory is there."""
    lines = text().split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("decision_type="))
    kinds = [int(kind) for kind in lines[first].partition("=")[2].split(" ")]
    at = kinds.index(1)
    name, _, values = lines[first - 1].partition("=")
    thresholds = values.split(" ")
    assert name == "threshold"
    assert thresholds[at] == "0"
    thresholds[at] = "9"  # of the same length
    lines[first - 1] = f"{name}={' '.join(thresholds)}"
    with pytest.raises(ValueError, match="threshold of categories"):
        LIBRARIES["lightgbm"].from_text("\n".join(lines))


def of_first_tree(field: str, at: int, value) -> str:
    given = json.loads(xgboost_text())
    given["learner"]["gradient_booster"]["model"]["trees"][0][field][at] = value
    return json.dumps(given)


@cache
def xgboost_text() -> str:
    return str(LIBRARIES["xgboost"].to_text(fitted(library="xgboost")[0].booster_[0]))


@pytest.mark.parametrize(
    ("field", "at", "value"),
    [
        ("left_children", 0, 999),
        ("left_children", 0, -1),
        ("right_children", 1, 0),
        ("split_indices", 0, 77),
        ("split_indices", 0, 0.5),
        ("split_type", 0, 2),
        ("split_conditions", 0, "x"),
        ("categories", 0, -1),
        ("categories_nodes", 0, 99),
        ("categories_segments", 0, 99),
        ("categories_sizes", 0, 99),
    ],
)
def test_trees_of_xgboost_that_are_inconsistent(field: str, at: int, value) -> None:
    pytest.importorskip("xgboost")
    with pytest.raises(ValueError, match=field):
        LIBRARIES["xgboost"].from_text(of_first_tree(field, at, value))


@pytest.mark.parametrize("field", ["tree_info", "iteration_indptr"])
def test_rounds_of_xgboost_that_do_not_fit(field: str) -> None:
    pytest.importorskip("xgboost")
    given = json.loads(xgboost_text())
    given["learner"]["gradient_booster"]["model"][field][-1] = 99
    with pytest.raises(ValueError, match=field):
        LIBRARIES["xgboost"].from_text(json.dumps(given))


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('"num_nodes":"', '"num_nodes":"1_', "num_nodes"),
        ('"left_children":', '"left_children":[9],"left_children":', "twice"),
        ('"name":"gbtree"', '"name":"gblinear"', "gradient_booster"),
    ],
)
def test_what_xgboost_would_read_otherwise(old: str, new: str, field: str) -> None:
    pytest.importorskip("xgboost")
    assert old in xgboost_text()
    with pytest.raises(ValueError, match=field):
        LIBRARIES["xgboost"].from_text(xgboost_text().replace(old, new, 1))


@pytest.mark.parametrize("options", [{}, {"booster": "dart"}, {"num_parallel_tree": 2}])
def test_trees_that_xgboost_wrote_are_read(options) -> None:
    pytest.importorskip("xgboost")
    model, X = fitted(library="xgboost", library_params={"gamma": 0.5, **options})
    library = LIBRARIES["xgboost"]
    part, n_features, n_targets = library.from_text(library.to_text(model.booster_[0]))
    assert (n_features, n_targets) == (3, 2)
    np.testing.assert_array_equal(library.scores(part, X), library.scores(model.booster_[0], X))
