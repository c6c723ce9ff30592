"""Tables and figures of docs/study.md, from the records alone.

The page is written by hand but for its blocks between ``<!-- name -->`` and ``<!-- end -->``.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from . import figures, records
from .data import LDL
from .fits import BASE, COPIES, FACTORS, FIELDS
from .statistics import Ranks, bayesian_signed_rank, friedman, holm, resampled_t

DOCS = Path(__file__).parents[2] / "docs"
ROPE = 0.01  # relative differences within one percent do not matter
SPLITS = 10
CHOSEN = "chosen"
TITLES = {"logistic": "logistic", "sparsemax": "sparsemax", "entmax15": "entmax15",
          "tsallis13": "Tsallis 1.3", "poisson": "Poisson", COPIES: "copied rows"}  # fmt: skip
# the paper's Table 1
PAPER = {
    "emotions": (0.317, 0.318, 0.327, 0.320),
    "flags": (0.186, 0.188, 0.184, 0.187),
    "scene": (0.363, 0.355, 0.344, 0.368),
    "yeast": (0.186, 0.187, 0.183, 0.185),
}
PAPER_COLUMNS = [("sparsemax", "0"), ("sparsemax", "1"), ("logistic", "0"), ("logistic", "1")]
# ten folds of maximum-entropy models on yeast_alpha, from the literature
PUBLISHED = {"chebyshev": 0.0135, "clark": 0.210, "canberra": 0.68, "kullback_leibler": 0.0055,
             "cosine": 0.9946, "intersection": 0.962}  # fmt: skip
Candidate = tuple[str, str]  # loss and tightness


class Results:
    """The records of one part: sets × (loss, tightness) with all splits, in a frame."""

    def __init__(self, folder: Path, part: str, about: pd.DataFrame) -> None:
        rows = [
            (cell.data, cell.split, cell.loss, f"{cell.tightness:g}", *values.values())
            for cell, values in records.read(folder, part).items()
        ]
        frame = pd.DataFrame(rows, columns=[*records.KEYS, *FIELDS])
        self.n_cells = len(frame)
        whole = frame.groupby(["data", "loss", "tightness"])["split"].transform("size") >= SPLITS
        self.frame = self._with_choices(frame[whole])
        self.about = about

    @staticmethod
    def _with_choices(frame: pd.DataFrame) -> pd.DataFrame:
        """With the tightness, and the loss too, of the least error inside of the training part."""
        if frame.empty:
            return frame
        own = frame[frame["loss"] != COPIES]
        several = own.groupby(["data", "loss"])["tightness"].transform("nunique") > 2
        by_loss = own[several].sort_values(["inner", "tightness"])
        chosen = by_loss.groupby(["data", "split", "loss"]).head(1).assign(tightness=CHOSEN)
        of_all = by_loss.groupby(["data", "split"]).head(1).assign(tightness=CHOSEN, loss="any")
        return pd.concat([frame, chosen, of_all], ignore_index=True)

    def wide(self, metric: str = "squared_error") -> pd.DataFrame:
        """(set, split) × (loss, tightness)."""
        keys = {"index": ["data", "split"], "columns": ["loss", "tightness"]}
        return self.frame.pivot(values=metric, **keys)

    @property
    def losses(self) -> list[str]:
        return [loss for loss in TITLES if loss in set(self.frame["loss"]) and loss != COPIES]

    def tightnesses(self, loss: str) -> list[str]:
        """Those beyond 0, and the chosen one."""
        return sorted(set(self.frame.loc[self.frame["loss"] == loss, "tightness"]) - {"0"})

    def compare(
        self, candidate: Candidate, reference: Candidate, metric: str = "squared_error"
    ) -> pd.DataFrame:
        """Mean difference to the reference on each set, as a share of its error."""
        wide = self.wide(metric)
        columns = ["mean", "low", "high", "p", "verdict"]
        if candidate not in wide or reference not in wide:
            return pd.DataFrame(columns=columns)
        both = wide[[candidate, reference]].dropna()
        both = both[np.isfinite(both).all(axis=1)]
        found = {}
        for name, rows in both.groupby(level="data"):
            if len(rows) < SPLITS:
                continue
            scale = rows[reference].mean()
            one = self.about.loc[name] if name in self.about.index else None
            ratio = 0.0 if one is None else one["test"] / one["train"]
            interval = resampled_t((rows[candidate] - rows[reference]).to_numpy(), ratio)
            mean, low, high, p = astuple(interval)
            found[name] = (mean / scale, low / scale, high / scale, p, interval.verdict)
        return pd.DataFrame.from_dict(found, orient="index", columns=columns)

    def blocks(self, by_set: pd.Series) -> pd.Series:
        """Means over sets that share their rows: the label distributions of yeast are one."""
        kinds = self.about["kind"].reindex(by_set.index)
        same = (kinds == LDL) & by_set.index.str.startswith("yeast_")
        names = np.where(same, "yeast (label distributions)", by_set.index)
        return by_set.groupby(names).mean()

    def ranks(self, candidates: list[Candidate], metric: str = "squared_error") -> Ranks:
        wide = self.wide(metric)[candidates].dropna()
        means = wide.groupby(level="data").mean()
        relative = np.log(means).sub(np.log(means).mean(axis=1), axis=0)
        together = pd.concat({one: self.blocks(relative[one]) for one in candidates}, axis=1)
        return friedman(together.to_numpy())


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:+.{digits}f} %".replace("-", "−")


def name_of(candidate: Candidate) -> str:
    loss, tightness = candidate
    if loss == "any":
        return "loss and tightness chosen"
    return f"{TITLES[loss]}, {'chosen' if tightness == CHOSEN else 'c = ' + tightness}"


VERDICT_HEADER = ("", "sets", "better", "worse", "median", "from … to", "P(better, same, worse)")


def verdict_row(
    results: Results, candidate: Candidate, reference: Candidate, metric: str = "squared_error"
) -> list[str] | None:
    """Counts of clear differences, in brackets those left after Holm's correction."""
    found = results.compare(candidate, reference, metric)
    if len(found) < 3:
        return None
    strict = holm(found["p"].to_numpy()) < 0.05
    counts = [
        f"{(found['verdict'] == sign).sum()} ({((found['verdict'] == sign) & strict).sum()})"
        for sign in (-1, 1)
    ]
    least, most = found["mean"].idxmin(), found["mean"].idxmax()
    chances = bayesian_signed_rank(results.blocks(found["mean"]).to_numpy(), ROPE)
    return [
        name_of(candidate),
        str(len(found)),
        *counts,
        percent(found["mean"].median(), 2),
        f"{percent(found['mean'].min())} ({least}) … {percent(found['mean'].max())} ({most})",
        ", ".join(f"{chance:.2f}" for chance in chances),
    ]


def verdicts(results: Results, metric: str = "squared_error") -> str:
    """Each tightness against 0, loss by loss."""
    losses = results.losses if metric == "squared_error" else ["logistic"]
    rows = [
        verdict_row(results, (loss, c), (loss, "0"), metric)
        for loss in losses
        for c in results.tightnesses(loss)
    ]
    return table(VERDICT_HEADER, [row for row in rows if row])


def between_losses(results: Results) -> str:
    """Each loss against the logistic one, both at tightness 0, and what was chosen inside."""
    candidates = [(loss, "0") for loss in results.losses if loss not in ("logistic", "poisson")]
    candidates += [("any", CHOSEN), (COPIES, "0")]
    rows = [verdict_row(results, one, ("logistic", "0")) for one in candidates]
    return table(VERDICT_HEADER, [row for row in rows if row])


def sets_table(results: Results) -> str:
    """The logistic error on each set, and relative differences to it."""
    candidates = [("logistic", "1"), ("logistic", CHOSEN), ("sparsemax", "0"), ("sparsemax", "1"),
                  ("entmax15", "0"), ("entmax15", "1"), ("tsallis13", "0")]  # fmt: skip
    found = {one: results.compare(one, ("logistic", "0")) for one in candidates}
    found = {one: table for one, table in found.items() if len(table)}
    errors = results.wide()[("logistic", "0")].groupby(level="data").mean().dropna()
    rows = []
    order = [name for name in results.about.index if name in errors.index]
    for name in sorted(order, key=lambda name: str(results.about.loc[name, "kind"])):
        one = results.about.loc[name]
        cells = []
        for verdicts_of in found.values():
            if name not in verdicts_of.index:
                cells.append("")
                continue
            star = "**" if verdicts_of.loc[name, "verdict"] else ""
            cells.append(f"{star}{percent(verdicts_of.loc[name, 'mean'])}{star}")
        size = f"{one['train']}, {one['classes']}, {100 * one['zeros']:.0f} %"
        rows.append([name, str(one["kind"]), size, f"{errors[name]:.4g}", *cells])
    header = ["set", "kind", "rows, classes, zeros", "logistic, c = 0", *map(name_of, found)]
    return table(header, rows)


def class_table(results: Results) -> str:
    """Log loss, calibration error and accuracy on class labels."""
    kinds = results.about["kind"]
    frame = results.frame[results.frame["data"].map(kinds) == "classes"]
    metrics = ["squared_error", "kullback_leibler", "calibration_error", "accuracy"]
    means = frame.groupby(["loss", "tightness", "data"])[metrics].mean()
    rows = []
    for loss in (*results.losses, COPIES):
        for c in ["0", *results.tightnesses(loss)]:
            if (loss, c) not in means.index:
                continue
            of_sets = means.loc[(loss, c)]
            cells = [
                " / ".join(f"{of_sets.loc[name, metric]:.3f}" for name in of_sets.index)
                for metric in metrics
            ]
            rows.append([name_of((loss, c)), *cells])
    names = " / ".join(sorted(set(frame["data"])))
    return f"Sets, in this order: {names}.\n\n" + table(
        ["", "squared error", "log loss", "calibration error", "accuracy"], rows
    )


def metric_table(results: Results) -> str:
    """Mean ranks by each metric, over blocks of sets."""
    candidates = [(loss, c) for loss in ("logistic", "sparsemax", "entmax15") for c in "012"]
    wanted = ("squared_error", "jensen_shannon", "chebyshev", "clark", "canberra", "cosine",
              "intersection", "calibration_error")  # fmt: skip
    rows, header = [], [""]
    for metric in wanted:
        sign = -1 if metric in ("cosine", "intersection") else 1
        wide = results.wide(metric)
        if not set(candidates) <= set(wide.columns):
            return "Not measured yet."
        means = sign * wide[candidates].dropna().groupby(level="data").mean()
        ranks = pd.concat(
            {one: results.blocks(means.rank(axis=1)[one]) for one in candidates}, axis=1
        )
        rows.append(ranks.mean())
        header.append(metric.replace("_", " "))
    columns = pd.concat(rows, axis=1)
    return table(
        header,
        [[name_of(one), *(f"{value:.1f}" for value in columns.loc[one])] for one in candidates],
    )


def zeros_table(results: Results) -> str:
    """Mean share of exact zeros in the predictions, by kind of data."""
    kinds = results.frame["data"].map(results.about["kind"])
    means = results.frame.assign(kind=kinds).groupby(["loss", "tightness", "kind"])["zeros"].mean()
    wide = means.unstack("kind").drop(columns=["counts"], errors="ignore")
    shown = [
        (loss, c) for loss in results.losses for c in ("0", "1", "4") if (loss, c) in wide.index
    ]
    rows = [[name_of(one), *(f"{100 * x:.0f} %" for x in wide.loc[one])] for one in shown
            if one[0] != "poisson"]  # fmt: skip
    targets = results.about.loc[sorted(set(results.frame["data"]))].groupby("kind")["zeros"].mean()
    rows.append(["the targets", *(f"{100 * targets[kind]:.0f} %" for kind in wide.columns)])
    return table(["", *wide.columns], rows)


def grid_table(results: dict[str, Results]) -> str:
    """Verdicts of each tightness against 0 that coarser grids of penalties change."""
    rows = []
    for title, part in (("random splits", "linear"), ("the paper's protocol", "paper")):
        one = results[part]
        for grid, step in (("decade", "powers of ten"), ("quarter", "quarters of a power of ten")):
            changed, clear, n, gaps = 0, 0, 0, []
            for loss in one.losses:
                for c in one.tightnesses(loss):
                    if c == CHOSEN:
                        continue
                    fine = one.compare((loss, c), (loss, "0"))
                    coarse = one.compare((loss, c), (loss, "0"), grid)
                    n += len(fine)
                    changed += int((fine["verdict"] != coarse["verdict"]).sum())
                    clear += int((fine["verdict"] * coarse["verdict"] < 0).sum())
                    gaps += list((fine["mean"] - coarse["mean"]).abs())
            rows.append([title, step, str(n), str(changed), str(clear),
                         f"{100 * float(np.median(gaps)):.2f} %"])  # fmt: skip
    return table(
        ["", "grid", "comparisons", "other verdict", "of these reversed",
         "median change of the difference"],
        rows,
    )  # fmt: skip


def penalty_table(results: Results) -> str:
    """How the chosen penalty falls with the tightness."""
    wide = np.log(results.wide("setting"))
    rows = []
    for loss in results.losses:
        cells = []
        for c in ("0.5", "1", "2", "4"):
            ratio = (wide[(loss, c)] - wide[(loss, "0")]).groupby(level="data").mean().dropna()
            cells.append(f"{np.exp(ratio.median()):.2f}")
        rows.append([TITLES[loss], *cells])
    rows.append(["1/(1 + c)", *(f"{1 / (1 + c):.2f}" for c in (0.5, 1, 2, 4))])
    return table(["", "c = 0.5", "c = 1", "c = 2", "c = 4"], rows)


def paper_table(results: Results) -> str:
    """The paper's Table 1 beside ours by its protocol, mean over ten dev splits."""
    rows = []
    fine, decade = (results.wide(name).groupby(level="data").mean() for name in
                    ("squared_error", "decade"))  # fmt: skip
    for name, published in PAPER.items():
        for title, values in (
            ("the paper", published),
            ("ours, powers of ten", decade.loc[name, PAPER_COLUMNS]),
            ("ours, fine grid", fine.loc[name, PAPER_COLUMNS]),
        ):
            rows.append([name, title, *(f"{value:.3f}" for value in values)])
    return table(["set", "", *map(name_of, PAPER_COLUMNS)], rows)


def folds_table(results: Results) -> str:
    rows = [["published, maximum entropy", *(f"{value:g}" for value in PUBLISHED.values())]]
    means = results.frame.groupby(["loss", "tightness"])[list(PUBLISHED)].mean()
    for one in means.index:
        if one[1] != CHOSEN:
            rows.append([name_of(one), *(f"{value:.4f}" for value in means.loc[one])])
    return table(["yeast_alpha", *(name.replace("_", " ") for name in PUBLISHED)], rows)


def effect(results: Results, loss: str, c: str, metric: str) -> pd.DataFrame:
    """Relative differences of c to 0 in each simulation."""
    found = results.compare((loss, c), (loss, "0"), metric)
    rows = [
        (factor, value, *found.loc[name, ["mean", "low", "high"]])
        for factor, values in FACTORS.items()
        for value in values
        if (name := "base" if value == BASE[factor] else f"{factor}={value:g}") in found.index
    ]
    return pd.DataFrame(rows, columns=["factor", "value", "mean", "low", "high"])


def simulation_table(results: Results) -> str:
    rows: dict[tuple[str, float], list[str]] = {}
    for loss in ("logistic", "sparsemax"):
        for c in ("1", "4"):
            for one in effect(results, loss, c, "squared_error").itertuples(index=False):
                text = f"{percent(one.mean)} ({percent(one.low)} … {percent(one.high)})"
                rows.setdefault((one.factor, one.value), []).append(text)
    header = ["", *(f"{loss}, c = {c}" for loss in ("logistic", "sparsemax") for c in "14")]
    return table(header, [[f"{key[0]} {key[1]:g}", *cells] for key, cells in rows.items()])


def when_table(results: Results) -> str:
    """Rank correlations between properties of the sets and the effect of tightness 1."""
    rows = []
    for loss in ("logistic", "sparsemax", "entmax15"):
        found = results.blocks(results.compare((loss, "1"), (loss, "0"))["mean"])
        about = results.about[results.about["kind"] != "counts"]
        numbers = about[["train", "features", "classes", "zeros"]].assign(
            **{"rows per feature": about["train"] / about["features"]}
        )
        cells = []
        for name in numbers:
            both = pd.concat([found, results.blocks(numbers[name])], axis=1).dropna().to_numpy()
            test = stats.spearmanr(*both.T)
            cells.append(f"{test.statistic:+.2f} (p = {test.pvalue:.2f})".replace("-", "−"))
        rows.append([TITLES[loss], *cells])
    return table(["", "rows", "features", "classes", "zeros", "rows per feature"], rows)


def time_table(results: Results) -> str:
    """Median ratio of processor seconds, search included, to the logistic loss at c = 0."""
    means = np.log(results.wide("seconds")).groupby(level="data").mean()
    reference = means[("logistic", "0")]
    rows = []
    for loss in results.losses:
        if loss == "poisson":
            continue
        ratios = [np.exp((means[(loss, c)] - reference).median()) for c in ("0", "1", "4")]
        rows.append([TITLES[loss], *(f"{ratio:.1f}" for ratio in ratios)])
    return table(["", "c = 0", "c = 1", "c = 4"], rows)


def scope_table(results: dict[str, Results]) -> str:
    rows = []
    for part, one in results.items():
        own = one.frame[~one.frame["tightness"].isin([CHOSEN])]
        pairs = own[own["loss"] != COPIES].groupby("data")[["loss", "tightness"]]
        sizes = pairs.apply(lambda group: len(group.drop_duplicates()))
        if len(sizes):
            spread = (
                f"{sizes.min()}"
                if sizes.min() == sizes.max()
                else f"{sizes.min()} to {sizes.max()}"
            )
            splits = own.groupby(["data", "loss", "tightness"]).size().min()
            rows.append([part, str(len(sizes)), spread, str(splits), str(one.n_cells)])
    return table(["part", "sets", "(loss, tightness)", "splits", "cells"], rows)


def ranks_text(results: Results) -> str:
    """Friedman's test of the tightnesses of each loss, and of all candidates."""
    rows = []
    for title, candidates in candidates_of(results):
        ranks = results.ranks(candidates)
        order = np.argsort(ranks.mean)
        listed = ", ".join(f"{name_of(candidates[i]).removeprefix(title + ', ')} {ranks.mean[i]:.2f}"
                           for i in order)  # fmt: skip
        rows.append([title, str(ranks.n), f"{ranks.p:.2g}", f"{ranks.critical:.2f}", listed])
    return table(["candidates", "blocks", "Friedman p", "critical difference", "mean ranks"], rows)


def candidates_of(results: Results) -> list[tuple[str, list[Candidate]]]:
    losses = [loss for loss in results.losses if loss in ("logistic", "sparsemax", "entmax15")]
    found = [(TITLES[loss], [(loss, c) for c in ("0", "0.5", "1", "2", "4", CHOSEN)])
             for loss in losses]  # fmt: skip
    return [*found, ("all", [(loss, c) for loss in losses for c in "012"])]


def fill(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    """A page with its blocks made anew; every block must be in it."""
    for name, make in blocks.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"docs/study.md has no block {name!r}")
        content = make()
        text = pattern.sub(lambda found, new=content: f"{found[1]}\n{new}\n\n{found[2]}", text)
    return text


def write(folder: Path, docs: Path = DOCS) -> None:
    about = pd.read_csv(folder / "sets.csv", index_col="name")
    parts = ("linear", "boosted", "network", "simulation", "paper", "folds")
    results = {part: Results(folder, part, about) for part in parts}
    linear = results["linear"]
    blocks: dict[str, Callable[[], str]] = {
        "scope": lambda: scope_table(results),
        "linear verdicts": lambda: verdicts(linear),
        "linear divergence": lambda: verdicts(linear, "kullback_leibler"),
        "boosted verdicts": lambda: verdicts(results["boosted"]),
        "network verdicts": lambda: verdicts(results["network"]),
        "losses": lambda: between_losses(linear),
        "boosted losses": lambda: between_losses(results["boosted"]),
        "network losses": lambda: between_losses(results["network"]),
        "sets": lambda: sets_table(linear),
        "ranks": lambda: ranks_text(linear),
        "metrics": lambda: metric_table(linear),
        "classes": lambda: class_table(linear),
        "network classes": lambda: class_table(results["network"]),
        "zeros": lambda: zeros_table(linear),
        "grid": lambda: grid_table(results),
        "penalties": lambda: penalty_table(linear),
        "paper": lambda: paper_table(results["paper"]),
        "folds": lambda: folds_table(results["folds"]),
        "simulation": lambda: simulation_table(results["simulation"]),
        "when": lambda: when_table(linear),
        "time": lambda: time_table(linear),
    }
    page = docs / "study.md"
    page.write_text(fill(page.read_text(encoding="utf-8"), blocks), encoding="utf-8")
    title, candidates = candidates_of(linear)[-1]
    own = [(TITLES[loss], linear, loss) for loss in ("logistic", "sparsemax", "entmax15")]
    figures.tightness(docs / "figures" / "study_tightness.svg", own)
    names = [name_of(one) for one in candidates]
    figures.ranks(docs / "figures" / "study_ranks.svg", names, linear.ranks(candidates))
    effects = {
        (loss, c): effect(results["simulation"], loss, c, "squared_error")
        for loss in ("logistic", "sparsemax")
        for c in ("1", "4")
    }
    figures.simulation(docs / "figures" / "study_simulation.svg", effects)
