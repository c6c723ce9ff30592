"""Trees in the text of a library: checked, and written anew, before the library reads them."""

import json
import re
from functools import cache

import numpy as np
import pytest

from fitzpatrick.boosting import BoostedProportionRegressor, _trees
from fitzpatrick.boosting._libraries import LIBRARIES
from tests.helpers import seeded


def fitted(library: str = "lightgbm", **options) -> tuple[BoostedProportionRegressor, np.ndarray]:
    """Trees that split by numbers, missing ones included, and by categories."""
    pytest.importorskip(library)
    rng = seeded(8)
    X = rng.normal(size=(600, 3))
    X[:, 2] = rng.integers(0, 6, len(X))
    share = np.where(np.isin(X[:, 2], [1, 4]), 0.8, np.where(X[:, 0] > 0, 0.3, 0.1))
    share = np.where(X[:, 1] > 0, share, 0.9 * share + 0.02 * X[:, 1])
    X[:20, 0] = np.nan
    Y = np.stack([share, 1 - share], axis=1)
    given = {"n_jobs": 1, "n_estimators": 3, "num_leaves": 6, "categorical_features": [2]}
    given |= {"library": library, **options}
    return BoostedProportionRegressor("logistic", **given).fit(X, Y), X


@cache
def text(library: str = "lightgbm") -> str:
    return str(LIBRARIES[library].to_text(fitted(library)[0].booster_[0]))


LINEAR = {"library_params": {"linear_tree": True}, "categorical_features": None}


@pytest.mark.parametrize(
    ("library", "options", "holds"),
    [
        ("lightgbm", {}, "cat_boundaries"),
        ("lightgbm", LINEAR, r"leaf_coeff=-?\d"),
        ("lightgbm", {"library_params": {"monotone_constraints": [1, 0, 0]}}, ""),
        ("lightgbm", {"early_stopping_rounds": 1, "random_state": 0}, ""),
        ("lightgbm", {"min_child_samples": 301}, "num_leaves=1\n"),
        ("xgboost", {}, "categories_nodes"),
        ("xgboost", {"library_params": {"gamma": 0.5, "booster": "dart"}}, "weight_drop"),
        ("xgboost", {"library_params": {"num_parallel_tree": 2}}, ""),
    ],
)
def test_trees_are_what_the_library_wrote(library: str, options, holds: str) -> None:
    model, X = fitted(library, **options)
    api = LIBRARIES[library]
    written = api.to_text(model.booster_[0])
    assert re.search(holds, written)
    part, *shape = api.from_text(written)
    assert shape == [3, 2]
    np.testing.assert_array_equal(api.scores(part, X), api.scores(model.booster_[0], X))
    np.testing.assert_array_equal(api.gains(part), api.gains(model.booster_[0]))
    assert api.to_text(part) == written


ATTACKS = {  # what is changed in the text, to what, and what the error names
    "false number of leaves": (r"num_leaves=6", "num_leaves=7", "split_feature"),
    "endless leaves": (r"num_leaves=6", "num_leaves=999999999", "split_feature"),
    "no leaves": (r"num_leaves=6", "num_leaves=0", "num_leaves"),
    "number that is none": (r"num_leaves=6", "num_leaves=6x", "num_leaves"),
    "child out of range": (r"^left_child=-?\d+", "left_child=7", "left_child"),
    "leaf out of range": (r"^right_child=-?\d+", "right_child=-99", "right_child"),
    "cycle": (r"^left_child=\d+", "left_child=0", "leads back"),
    "cycle apart": (
        r"^left_child=.*\nright_child=.*",
        "left_child=-1 2 1 -2 -3\nright_child=3 -5 -6 4 -4",
        "leads back",
    ),
    "two parents": (r"^right_child=\d+(.*)\n", r"right_child=2\1\n", "two parents"),
    "feature out of range": (r"^split_feature=\d+", "split_feature=3", "feature of a split"),
    "negative feature": (r"^split_feature=\d+", "split_feature=-1", "feature of a split"),
    "threshold": (r"^threshold=\S+", "threshold=nan", "threshold"),
    "leaf": (r"^leaf_value=\S+", "leaf_value=1e999", "leaf_value"),
    "missing array": (r"^decision_type=.*\n", "", "decision_type"),
    "kind of split": (r"^decision_type=\d+", "decision_type=99", "decision_type"),
    "linear": (r"is_linear=0", "is_linear=1", "leaf_const"),
    "no categories": (r"^num_cat=1", "num_cat=0", "threshold of categories"),
    "place of categories": (r"^threshold=0\.0", "threshold=9", "threshold of categories"),
    "part of a place": (r"^threshold=0\.0", "threshold=0.5", "threshold of categories"),
    "bounds": (r"^cat_boundaries=0 \d+", "cat_boundaries=0 0", "cat_boundaries"),
    "beyond the categories": (r"^cat_threshold=", "cat_threshold=1 ", "cat_threshold"),
    "tree that is left out": (r"^Tree=1\n", "", "whole rounds"),
    "no rounds": (r"^num_tree_per_iteration=2", "num_tree_per_iteration=0", "whole rounds"),
    "more features": (r"^feature_names=", "feature_names=more ", "feature_infos"),
    "version": (r"^version=v4", "version=v9", "version"),
    "end of a line": (r"^version=v4", "version=v4\rx", "ends of lines"),
    "end": (r"^end of trees", "end of threes", "no end"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_trees_that_are_inconsistent(attack: str) -> None:
    pattern, replacement, problem = ATTACKS[attack]
    changed, count = re.subn(pattern, replacement, text(), count=1, flags=re.MULTILINE)
    assert count == 1
    with pytest.raises(ValueError, match=problem):
        LIBRARIES["lightgbm"].from_text(changed)


def test_a_tree_that_would_fill_the_memory(monkeypatch) -> None:
    monkeypatch.setattr(_trees, "MAX_TEXT_BYTES", 10_000)
    changed = text().replace("leaf_value=", "leaf_value=" + 5000 * "0 ", 1)
    with pytest.raises(ValueError, match="tree 0: it takes more than 10000 bytes"):
        LIBRARIES["lightgbm"].from_text(changed)


@pytest.mark.parametrize(
    "added", ["objective=lambdarank\nlabel_index", "label_index=7\nlabel_index"]
)
def test_what_is_not_known_is_not_handed_on(added: str) -> None:
    library = LIBRARIES["lightgbm"]
    changed = text().replace("label_index", added, 1).replace("shrinkage", "other=1\nshrinkage")
    assert library.to_text(library.from_text(changed)[0]) == text()


TREE = ("learner", "gradient_booster", "model", "trees", 0)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ((*TREE, "left_children", 0), 999, "out of range"),
        ((*TREE, "left_children", 0), -1, "out of range"),
        ((*TREE, "right_children", 1), 0, "leads back"),
        ((*TREE, "right_children", 0), 1, "two parents"),
        ((*TREE, "parents", 1), 5, "parents"),
        ((*TREE, "split_indices", 0), 77, "feature of a split"),
        ((*TREE, "split_indices", 0), 0.5, "split_indices"),
        ((*TREE, "split_type", 0), 2, "split_type"),
        ((*TREE, "split_conditions", 0), "x", "split_conditions"),
        ((*TREE, "split_conditions", 0), float("nan"), "split_conditions"),
        ((*TREE, "categories", 0), -1, "categories"),
        ((*TREE, "categories_nodes", 0), 99, "categories_nodes"),
        ((*TREE, "categories_segments", 0), 99, "categories_segments"),
        ((*TREE, "categories_sizes", 0), 99, "categories_sizes"),
        ((*TREE, "tree_param", "size_leaf_vector"), "2", "size_leaf_vector"),
        ((*TREE[:3], "tree_info", -1), 99, "tree_info"),
        ((*TREE[:3], "iteration_indptr", -1), 99, "iteration_indptr"),
        ((*TREE[:2], "name"), "gblinear", "gradient_booster"),
        (("learner",), [], "not trees of XGBoost"),
    ],
)
def test_trees_of_xgboost_that_are_inconsistent(path, value, problem: str) -> None:
    given = json.loads(text("xgboost"))
    *above, last = path
    inner = given
    for name in above:
        inner = inner[name]
    inner[last] = value
    with pytest.raises(ValueError, match=problem):
        LIBRARIES["xgboost"].from_text(json.dumps(given))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"num_nodes": "', '"num_nodes": "1_'),
        ('"num_trees": "', '"num_trees": "1'),
        ('"left_children": ', '"left_children": [9], "left_children": '),
    ],
)
def test_what_xgboost_would_read_otherwise(old: str, new: str) -> None:
    changed = text("xgboost").replace(old, new, 1)
    assert changed != text("xgboost")
    library = LIBRARIES["xgboost"]
    assert library.to_text(library.from_text(changed)[0]) == text("xgboost")


@pytest.mark.parametrize("library", LIBRARIES)
def test_numbers_at_random(library: str) -> None:
    """Whatever numbers a text holds, the library refuses it or predicts."""
    rng, api, X = seeded(9), LIBRARIES[library], fitted(library)[1]
    for _ in range(60):
        tokens = re.split(r"(-?\d+(?:\.\d+)?)", text(library))
        at = 1 + 2 * int(rng.integers(len(tokens) // 2))
        tokens[at] = str(rng.choice([-1, 0, 1, 2, 5, 77, 2**31, 0.5]))
        try:
            part = api.from_text("".join(tokens))[0]
        except Exception:  # of the library's own reader, too
            continue
        assert len(api.scores(part, X[:5])) == 5
