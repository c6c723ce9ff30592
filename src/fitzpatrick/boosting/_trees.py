"""Checks of trees in the text formats of the libraries, whose own readers trust what they read.

A child that is out of range, or a cycle of children, would end the process or never end.
"""

import json
import re
from typing import Any

import numpy as np

MAX_TREES, MAX_LEAVES = 1_000_000, 1 << 17  # the latter is LightGBM's own bound
# Objects that are parsed from text take up to 25 times its bytes.
MAX_TEXT_BYTES = 32 << 20
_INTEGERS = re.compile(r"(?:-?\d{1,10}(?: -?\d{1,10})*)?", re.ASCII)
_NUMBERS = re.compile(r"(?:[-+.e\d]+(?: [-+.e\d]+)*)?", re.ASCII)
_HEADER = {
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx",
    "feature_names", "feature_infos", "tree_sizes",
}  # fmt: skip
_OF_SPLITS = {
    "split_feature": int, "split_gain": float, "threshold": float, "decision_type": int,
    "left_child": int, "right_child": int, "internal_value": float, "internal_weight": float,
    "internal_count": int,
}  # fmt: skip
_OF_LEAVES = {"leaf_value": float, "leaf_count": int}
_CATEGORIES = {"cat_boundaries", "cat_threshold"}
_LINEAR = {"leaf_const", "num_features", "leaf_features", "leaf_coeff"}
_NUMBER_FIELDS = {"num_leaves", "num_cat", "is_linear", "shrinkage"}
_END = re.compile(
    r"end of trees\n\n(?:feature_importances:\n(?:[^\n]+=\d+\n)*\n)?"
    r"(?:parameters:\n(?:\[\w+: [^\n]*\]\n)*\nend of parameters\n\n)?(?:pandas_categorical:.*\n)?",
    re.ASCII,
)


def expect(condition: Any, problem: str) -> None:
    """Raise a ValueError that names the problem, unless the condition holds."""
    if not condition:
        raise ValueError(problem)


def check_lightgbm(text: str) -> None:
    """Raise a ValueError unless LightGBM's text is consistent, so that trees stay in bounds."""
    head, _, rest = text.partition("\n\n")
    expect(len(head.encode()) <= MAX_TEXT_BYTES, "the header is too long")
    expect(not set("\r\0") & set(head), "the header has other ends of lines")
    expect(head.startswith("tree\n"), "they do not begin with 'tree'")
    header = _fields(head.removeprefix("tree\n"))
    constraints = header.pop("monotone_constraints", None)
    expect(header.keys() == _HEADER, f"header: {sorted(header.keys() ^ _HEADER)} is not expected")
    expect(header["version"] == "v4", "version is not v4")
    k, last = (_one(header, name) for name in ("num_tree_per_iteration", "max_feature_idx"))
    n_features = last + 1
    expect(k >= 1 and _one(header, "num_class") == k, "num_class is not num_tree_per_iteration")
    expect(_one(header, "label_index") == 0, "label_index is not 0")
    for name in ("feature_names", "feature_infos"):
        expect(len(header[name].split(" ")) == n_features, f"{name} do not fit max_feature_idx")
    if constraints is not None:
        signs = _array({"monotone_constraints": constraints}, "monotone_constraints", n_features)
        expect((np.abs(signs) <= 1).all(), "monotone_constraints are not signs")
    sizes = _array(header, "tree_sizes", header["tree_sizes"].count(" ") + 1)
    expect(len(sizes) <= MAX_TREES, f"they are more than {MAX_TREES}")
    expect(len(sizes) % k == 0 and (sizes > 0).all(), "tree_sizes are not of whole rounds")
    at = 0
    for i, size in enumerate(sizes.tolist()):
        block = rest[at : at + size]
        body, _, blank = block.partition("\n\n")
        title = f"Tree={i}\n"
        is_whole = body.startswith(title) and block.isascii() and blank.strip("\n") == ""
        expect(is_whole and block.endswith("\n\n"), f"tree_sizes: no tree {i} is there")
        expect(body.count("\n") < 22 and "\r" not in body and "\0" not in body, f"{title}: lines")
        try:
            _check_tree(_fields(body.removeprefix(title)), n_features)
        except ValueError as error:
            raise ValueError(f"tree {i}: {error}") from error
        at += size
    end = rest[at:]
    expect(len(end.encode()) <= MAX_TEXT_BYTES, "what follows the trees is too long")
    is_end = _END.fullmatch(end.rstrip("\n") + "\n") and not set("\r\0") & set(end)
    expect(is_end, "what follows the trees is not expected")


def _check_tree(fields: dict[str, str], n_features: int) -> None:
    n, n_categorical, is_linear = (_one(fields, s) for s in ("num_leaves", "num_cat", "is_linear"))
    expect(1 <= n <= MAX_LEAVES, "num_leaves is out of range")
    expect(n_categorical >= 0 and is_linear in (0, 1), "num_cat or is_linear is out of range")
    known = _NUMBER_FIELDS | _OF_SPLITS.keys() | _OF_LEAVES.keys() | {"leaf_weight"}
    known |= (_CATEGORIES if n_categorical else set()) | (_LINEAR if is_linear else set())
    expect(fields.keys() == known, f"{sorted(fields.keys() ^ known)} is not expected")
    _array(fields, "shrinkage", 1, float)
    split = {name: _array(fields, name, n - 1, kind) for name, kind in _OF_SPLITS.items()}
    for name, kind in _OF_LEAVES.items():
        _array(fields, name, n, kind)
    if n > 1 or fields["leaf_weight"]:  # a lone leaf may have none
        _array(fields, "leaf_weight", n, float)
    children = np.stack([split["left_child"], split["right_child"]])
    # each node but the root has one parent, which comes before it: there are no cycles
    nodes = np.concatenate([np.arange(-n, 0), np.arange(1, n - 1)]) if n > 1 else np.arange(0)
    expect(np.array_equal(np.sort(children, axis=None), nodes), "left_child, right_child: no tree")
    comes_after = (children < 0) | (children > np.arange(n - 1))
    expect(comes_after.all(), "left_child or right_child leads back")
    check_range(split["split_feature"], n_features, "split_feature")
    check_range(split["decision_type"], 12, "decision_type")
    is_categorical = split["decision_type"] % 2 == 1
    places = split["threshold"][is_categorical]
    expect((places == np.floor(places)).all(), "threshold of categories is not an integer")
    check_range(places, n_categorical, "threshold of categories")
    if n_categorical:
        expect(n_categorical < n, "num_cat is more than there are splits")
        bounds = _array(fields, "cat_boundaries", n_categorical + 1)
        expect(bounds[0] == 0 and (np.diff(bounds) > 0).all(), "cat_boundaries do not ascend")
        check_range(_array(fields, "cat_threshold", int(bounds[-1])), 1 << 32, "cat_threshold")
    if is_linear:
        _array(fields, "leaf_const", n, float)
        sizes = _array(fields, "num_features", n)
        check_range(sizes, n_features + 1, "num_features")
        for name in ("leaf_features", "leaf_coeff"):  # with further blanks between the leaves
            expect(len(fields[name]) <= MAX_TEXT_BYTES, f"{name} is too long")
            fields[name] = re.sub(" +", " ", fields[name]).strip(" ")
        total = int(sizes.sum())
        check_range(_array(fields, "leaf_features", total), n_features, "leaf_features")
        _array(fields, "leaf_coeff", total, float)


def check_xgboost(text: str) -> int:
    """The number of targets; raise a ValueError unless the trees in XGBoost's JSON stay in bounds.

    Children, features, targets and the sets of categories are checked, which XGBoost follows
    without a look; the rest, such as the names of categories, is left to XGBoost's own checks.
    """
    expect(len(text) <= 8 * MAX_TEXT_BYTES, f"they take more than {8 * MAX_TEXT_BYTES} bytes")
    try:
        learner = json.loads(text, object_pairs_hook=_object)["learner"]
        shape, booster = learner["learner_model_param"], learner["gradient_booster"]
        k = max(_one(shape, "num_class"), _one(shape, "num_target"), 1)
        expect(booster["name"] in ("gbtree", "dart"), "gradient_booster has no trees")
        model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
        trees, n_features = model["trees"], _one(shape, "num_feature")
        expect(len(trees) <= MAX_TREES, f"they are more than {MAX_TREES}")
        n_trees = _one(model["gbtree_model_param"], "num_trees")
        expect(n_trees == len(trees), "num_trees is another")
        check_range(_column(model, "tree_info", len(trees)), k, "tree_info")
        ends = _column(model, "iteration_indptr", len(model["iteration_indptr"]))
        is_whole = ends[0] == 0 and ends[-1] == len(trees) and (np.diff(ends) > 0).all()
        expect(is_whole, "iteration_indptr is not of these trees")
        if booster["name"] == "dart":
            _column(booster, "weight_drop", len(trees), "if")
        for tree in trees:
            _check_xgboost_tree(tree, n_features)
        return k
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"they are not trees of XGBoost: {error!r}") from error


def _check_xgboost_tree(tree: dict[str, Any], n_features: int) -> None:
    n, size = (_one(tree["tree_param"], name) for name in ("num_nodes", "size_leaf_vector"))
    expect(n >= 1 and size in (0, 1), "num_nodes or size_leaf_vector is out of range")
    expect(_one(tree["tree_param"], "num_feature") == n_features, "num_feature is another")
    for name in ("base_weights", "loss_changes", "split_conditions", "sum_hessian"):
        _column(tree, name, n, "if")
    kinds, _ = _column(tree, "split_type", n), _column(tree, "default_left", n, "ib")
    features, parents = (_column(tree, name, n) for name in ("split_indices", "parents"))
    check_range(features, n_features, "split_indices")
    check_range(kinds, 2, "split_type")
    left, right = (_column(tree, f"{side}_children", n) for side in ("left", "right"))
    expect(np.array_equal(left == -1, right == -1), "left_children do not fit right_children")
    nodes = np.flatnonzero(left != -1)
    for name, children in (("left_children", left[nodes]), ("right_children", right[nodes])):
        is_inside = (children > nodes) & (children < n)  # those after their parent have no cycles
        expect(is_inside.all() and (parents[children] == nodes).all(), f"{name} is out of range")
    categorical = _column(tree, "categories_nodes", int(np.sum(kinds[nodes])))
    expect(np.array_equal(categorical, nodes[kinds[nodes] == 1]), "categories_nodes do not fit")
    begins, sizes = (
        _column(tree, f"categories_{s}", len(categorical)) for s in ("segments", "sizes")
    )
    categories = _column(tree, "categories", len(tree["categories"]))
    check_range(categories, 1 << 24, "categories")  # beyond, float32 has no integers
    check_range(begins, len(categories) + 1, "categories_segments")
    expect((sizes > 0).all(), "categories_sizes is out of range")
    check_range(begins + sizes, len(categories) + 1, "categories_sizes")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are different: of two, XGBoost may read the other one."""
    expect(len(dict(pairs)) == len(pairs), "a name occurs twice")
    return dict(pairs)


def _column(fields: dict[str, Any], name: str, size: int, kinds: str = "i") -> np.ndarray:
    """A list of ``size`` numbers."""
    values = np.asarray(fields[name] or np.empty(0, int))
    is_valid = isinstance(fields[name], list) and values.dtype.kind in kinds
    expect(is_valid and values.shape == (size,), f"{name} does not hold {size} numbers")
    return values


def check_range(values: np.ndarray, end: int, name: str) -> None:
    """Raise a ValueError unless all values are from 0 to below the end."""
    expect(((values >= 0) & (values < end)).all(), f"{name} is out of range")


def _fields(text: str) -> dict[str, str]:
    """Values by name, from lines NAME=VALUE."""
    lines = [line.partition("=") for line in text.split("\n")]
    expect(all(sign for _, sign, _ in lines), "a line is not NAME=VALUE")
    fields = {name: value for name, _, value in lines}
    expect(len(fields) == len(lines), "a name occurs twice")
    return fields


def _one(fields: dict[str, str], name: str) -> int:
    return int(_array(fields, name, 1)[0])


def _array(fields: dict[str, str], name: str, size: int, kind: type = int) -> np.ndarray:
    """A field of ``size`` finite numbers with one blank between them."""
    expect(name in fields, f"{name} is missing")
    value = fields[name]
    expect(value.count(" ") + bool(value) == size, f"{name} does not hold {size} numbers")
    form = _INTEGERS if kind is int else _NUMBERS
    expect(form.fullmatch(value), f"{name} does not hold numbers")
    found = np.asarray(value.split(" ") if value else [], dtype=np.int64 if kind is int else float)
    expect(np.isfinite(found).all(), f"{name} is not finite")
    return found
