"""Trees in the text formats of the libraries: parsed, checked, and written anew.

The libraries' own readers trust what they read: a child that is out of range, or a cycle of
children, would end the process or never end. They read only what was checked here.
"""

import json
import re
from collections import defaultdict
from typing import Any

import numpy as np

MAX_TREES = 1_000_000
# Objects that are parsed from text take up to 25 times its bytes.
MAX_TEXT_BYTES = 32 << 20
# Fields of a tree of LightGBM, by how many numbers they hold.
_FIELDS = {
    "one": "num_leaves num_cat is_linear shrinkage",
    "splits": "split_feature split_gain threshold decision_type left_child right_child "
    "internal_value internal_weight internal_count",
    "leaves": "leaf_value leaf_weight leaf_count",
    "linear leaves": "leaf_const num_features",
    "linear terms": "leaf_features leaf_coeff",
    "sets and one": "cat_boundaries",
    "words": "cat_threshold",
}
_INTEGERS = re.compile(r"num_|is_|left_child|right_child|split_f|dec|cat_|.*_count|leaf_features")


def expect(condition: Any, problem: str) -> None:
    """Raise a ValueError that names the problem, unless the condition holds."""
    if not condition:
        raise ValueError(problem)


def _check_range(values: np.ndarray, end: int, name: str) -> None:
    """Raise a ValueError unless all values are from 0 to below the end."""
    expect(((values >= 0) & (values < end)).all(), f"{name} is out of range")


def _check_tree(
    parents: np.ndarray, children: np.ndarray, features: np.ndarray, n_nodes: int, n_features: int
) -> None:
    """Raise unless each child comes after its parent, and has no other: there are no cycles."""
    comes_after = (children > parents) & (children < n_nodes)
    expect(comes_after.all(), "a child is out of range, or leads back")
    expect(np.unique(children).size == children.size, "a child has two parents")
    _check_range(features, n_features, "the feature of a split")


def checked_lightgbm(text: str) -> str:
    """LightGBM's text, written anew; a ValueError unless its trees stay in bounds."""
    expect("\r" not in text and "\0" not in text, "they have other ends of lines")
    body, mark, end = text.partition("\nend of trees\n")
    expect(body.count("\nTree=") <= MAX_TREES, f"they are more than {MAX_TREES}")
    head, *trees = body.split("\nTree=")
    categories = end[end.rfind("\npandas_categorical:") :].strip("\n") or "pandas_categorical:null"
    expect(mark, "they have no end")
    expect(len(head) + len(categories) <= MAX_TEXT_BYTES, "names of features are too long")
    header = _fields(head)
    expect(header["version"] == "v4", "version is not v4")
    names, infos = header["feature_names"], header["feature_infos"]
    k, n_features = int(_numbers(header, "num_tree_per_iteration", 1)[0]), len(names.split(" "))
    expect(len(infos.split(" ")) == n_features, "feature_infos do not fit feature_names")
    expect(k >= 1 and trees and len(trees) % k == 0, "they are not of whole rounds")
    for i, tree in enumerate(trees):
        try:
            expect(len(tree) <= MAX_TEXT_BYTES, f"it takes more than {MAX_TEXT_BYTES} bytes")
            found = _check_lightgbm_tree(_fields(tree), n_features)
        except ValueError as error:
            raise ValueError(f"tree {i}: {error}") from error
        lines = (f"{name}={' '.join(map(repr, row.tolist()))}" for name, row in found.items())
        trees[i] = "\n".join([f"Tree={i}", *lines, "\n\n"])
    head = (
        f"tree\nversion=v4\nnum_class={k}\nnum_tree_per_iteration={k}\nlabel_index=0\n"
        f"max_feature_idx={n_features - 1}\nfeature_names={names}\nfeature_infos={infos}\n"
        f"tree_sizes={' '.join(str(len(tree)) for tree in trees)}\n\n"
    )
    return "".join([head, *trees, "end of trees\n\n", categories, "\n"])


def _check_lightgbm_tree(fields: dict[str, str], n_features: int) -> dict[str, np.ndarray]:
    """The numbers in each field of a tree."""
    names = ("num_leaves", "num_cat", "is_linear")
    n, n_sets, is_linear = (int(_numbers(fields, name, 1)[0]) for name in names)
    is_valid = n >= 1 and n_sets >= 0 and is_linear in (0, 1)
    expect(is_valid, "num_leaves, num_cat or is_linear is out of range")
    sizes = {"one": 1, "splits": n - 1, "leaves": n}
    sizes |= {"sets and one": n_sets + 1} if n_sets else {}
    sizes |= {"linear leaves": n} if is_linear else {}
    if n == 1:  # a lone leaf has no weight, and no count in some versions of LightGBM
        fields["leaf_weight"] = fields["leaf_weight"] or "0.0"
        fields["leaf_count"] = fields["leaf_count"] or "0"
    tree = _fields_of_size(fields, sizes)
    if n_sets:
        bounds = tree["cat_boundaries"]
        expect(bounds[0] == 0 and (np.diff(bounds) > 0).all(), "cat_boundaries do not ascend")
        tree |= _fields_of_size(fields, {"words": bounds[-1]})
        _check_range(tree["cat_threshold"], 1 << 32, "cat_threshold")
    if is_linear:
        _check_range(tree["num_features"], n_features + 1, "num_features")
        tree |= _fields_of_size(fields, {"linear terms": tree["num_features"].sum()})
        _check_range(tree["leaf_features"], n_features, "leaf_features")
    children = np.stack([tree["left_child"], tree["right_child"]])
    _check_range(children + n, 2 * n - 1, "left_child or right_child")
    nodes = np.where(children < 0, n - 2 - children, children)  # leaves follow the splits
    _check_tree(np.arange(n - 1), nodes, tree["split_feature"], 2 * n - 1, n_features)
    _check_range(tree["decision_type"], 12, "decision_type")
    places = tree["threshold"][tree["decision_type"] % 2 == 1]  # of the sets of categories
    expect((places == np.floor(places)).all(), "threshold of categories is not an integer")
    _check_range(places, n_sets, "threshold of categories")
    return tree


def _fields(text: str) -> dict[str, str]:
    """Values by name, from lines NAME=VALUE; those that are not there are empty."""
    return defaultdict(str, (line.partition("=")[::2] for line in text.split("\n")))


def _fields_of_size(fields: dict[str, str], sizes: dict[str, Any]) -> dict[str, np.ndarray]:
    names = ((name, size) for of, size in sizes.items() for name in _FIELDS[of].split())
    return {name: _numbers(fields, name, int(size)) for name, size in names}


def _numbers(fields: dict[str, str], name: str, size: int) -> np.ndarray:
    """A field of ``size`` finite numbers."""
    try:
        found = np.asarray(fields[name].split(), dtype=np.int64 if _INTEGERS.match(name) else float)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} does not hold numbers") from error
    expect(found.size == size, f"{name} does not hold {size} numbers")
    expect(np.isfinite(found).all(), f"{name} is not finite")
    return found


def checked_xgboost(text: str) -> tuple[str, int]:
    """XGBoost's JSON, written anew, and its number of targets; a ValueError as for LightGBM.

    Children, features, targets and the sets of categories are checked, which XGBoost follows
    without a look; the rest, such as the names of categories, is left to XGBoost's own checks.
    """
    expect(len(text) <= 8 * MAX_TEXT_BYTES, f"they take more than {8 * MAX_TEXT_BYTES} bytes")
    try:
        given = json.loads(text)
        shape = given["learner"]["learner_model_param"]
        for name in ("num_class", "num_target", "num_feature"):
            shape[name] = str(int(shape[name]))
        k, n_features = max(int(shape["num_class"]), int(shape["num_target"]), 1), int(shape[name])
        booster = given["learner"]["gradient_booster"]
        expect(booster["name"] in ("gbtree", "dart"), "gradient_booster has no trees")
        model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
        n_trees = len(model["trees"])
        expect(n_trees <= MAX_TREES, f"they are more than {MAX_TREES}")
        model["gbtree_model_param"]["num_trees"] = str(n_trees)
        _check_range(_column(model, "tree_info", n_trees), k, "tree_info")
        ends = _column(model, "iteration_indptr", len(model["iteration_indptr"]))
        is_whole = ends[0] == 0 and ends[-1] == n_trees and (np.diff(ends) > 0).all()
        expect(is_whole, "iteration_indptr is not of these trees")
        if booster["name"] == "dart":
            _column(booster, "weight_drop", n_trees, "if")
        for tree in model["trees"]:
            _check_xgboost_tree(tree, n_features)
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"they are not trees of XGBoost: {error!r}") from error
    return json.dumps(given), k


def _check_xgboost_tree(tree: dict[str, Any], n_features: int) -> None:
    n = len(tree["left_children"])
    expect(tree["tree_param"]["size_leaf_vector"] in ("0", "1"), "size_leaf_vector is not 1")
    tree["tree_param"] |= {"num_nodes": str(n), "num_feature": str(n_features)}
    for name in ("base_weights", "loss_changes", "split_conditions", "sum_hessian", "default_left"):
        _column(tree, name, n, "ifb")
    both = np.stack([_column(tree, f"{side}_children", n) for side in ("left", "right")])
    nodes = np.flatnonzero((both != -1).any(axis=0))
    kinds, features = (_column(tree, name, n) for name in ("split_type", "split_indices"))
    _check_tree(nodes, both[:, nodes], features, n, n_features)
    expect((_column(tree, "parents", n)[both[:, nodes]] == nodes).all(), "parents do not fit")
    _check_range(kinds, 2, "split_type")
    categorical = nodes[kinds[nodes] == 1]
    found = _column(tree, "categories_nodes", len(categorical))
    expect(np.array_equal(found, categorical), "categories_nodes do not fit")
    names = ("categories_segments", "categories_sizes")
    begins, sizes = (_column(tree, name, len(categorical)) for name in names)
    categories = _column(tree, "categories", len(tree["categories"]))
    _check_range(categories, 1 << 24, "categories")  # beyond, float32 has no integers
    _check_range(begins, len(categories) + 1, "categories_segments")
    _check_range(begins + sizes, len(categories) + 1, "categories_sizes")
    expect((sizes > 0).all(), "categories_sizes is out of range")


def _column(fields: dict[str, Any], name: str, size: int, kinds: str = "i") -> np.ndarray:
    """A list of ``size`` numbers."""
    values = np.asarray(fields[name] or np.empty(0, int))
    is_valid = isinstance(fields[name], list) and values.dtype.kind in kinds
    is_valid = is_valid and values.shape == (size,) and np.isfinite(values).all()
    expect(is_valid, f"{name} does not hold {size} numbers")
    return values
