"""Tables and figures of docs/study.md, from the records alone.

The page is written by hand, except for its blocks between ``<!-- name -->`` and ``<!-- end -->``.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from . import figures, records
from .data import LDL, LOSSES, ONCE, SETS
from .fits import BASE, COPIES, ENTROPY, FACTORS, FIELDS, FINER, GPU, PEERS
from .statistics import Ranks, bayesian_signed_rank, friedman, holm, resampled_t

DOCS = Path(__file__).parents[2] / "docs"
PARTS = ("linear", "boosted", "network", GPU, "simulation", "paper", "folds")
ROPE = 0.01  # relative differences within one percent are practically zero
SPLITS = 10
ERROR, DIVERGENCE = "squared_error", "kullback_leibler"
MAIN = ("logistic", "sparsemax", "entmax15")  # fitted to all data sets except counts
CHOSEN, ANY = "chosen", "any"
TITLES = {"logistic": "logistic", "sparsemax": "sparsemax", "entmax15": "entmax15",
          "tsallis13": "Tsallis 1.3", "poisson": "Poisson", COPIES: "copied rows",
          ENTROPY: "maximum entropy"}  # fmt: skip
# the paper's Table 1: sparsemax and logistic, each at c = 0 and 1
PAPER_LOSSES = ("sparsemax", "logistic")
PAPER_COLUMNS = [(loss, c) for loss in PAPER_LOSSES for c in "01"]
PAPER = {
    "delicious": (0.051, 0.052, 0.056, 0.055),
    "emotions": (0.317, 0.318, 0.327, 0.320),
    "flags": (0.186, 0.188, 0.184, 0.187),
    "scene": (0.363, 0.355, 0.344, 0.368),
    "yeast": (0.186, 0.187, 0.183, 0.185),
}
# ten folds of maximum-entropy models on yeast_alpha, from the literature
PUBLISHED = {"chebyshev": 0.0135, "clark": 0.210, "canberra": 0.68, DIVERGENCE: 0.0055,
             "cosine": 0.9946, "intersection": 0.962}  # fmt: skip
Candidate = tuple[str, str]  # loss and tightness
Pair = tuple[Candidate, Candidate]


class Results:
    """The records of one part: sets × (loss, tightness) with all splits, in a frame."""

    finer: Sequence["Results"] = ()  # of the same models, on finer grids of penalties

    def __init__(self, folder: Path, part: str, about: pd.DataFrame) -> None:
        rows = [
            (cell.data, cell.split, cell.loss, f"{cell.tightness:g}", *values.values())
            for cell, values in records.read(folder, part).items()
        ]
        frame = pd.DataFrame(rows, columns=[*records.KEYS, *FIELDS])
        splits = frame.groupby(["data", "loss", "tightness"])["split"].transform("size")
        whole = (splits >= SPLITS) | frame["data"].isin(ONCE)
        self.frame, self.about, self.n_cells = with_choices(frame[whole]), about, len(frame)
        self._wide: dict[str, pd.DataFrame] = {}

    def wide(self, metric: str = ERROR) -> pd.DataFrame:
        """(set, split) × (loss, tightness)."""
        if metric not in self._wide:
            keys = {"index": ["data", "split"], "columns": ["loss", "tightness"]}
            self._wide[metric] = self.frame.pivot(values=metric, **keys)
        return self._wide[metric]

    def means(self, metric: str = ERROR) -> pd.DataFrame:
        """Data sets × (loss, tightness)."""
        return self.wide(metric).groupby(level="data").mean()

    def candidates(self, *, beyond: bool = False) -> list[Candidate]:
        """All losses and tightnesses; with ``beyond``, only tightnesses other than 0."""
        found = self.frame[["loss", "tightness"]].drop_duplicates().itertuples(index=False)
        own = [(one.loss, one.tightness) for one in found if one.loss in TITLES]
        kept = [one for one in own if one[0] not in PEERS and (one[1] != "0" or not beyond)]
        return sorted(kept, key=lambda one: (list(TITLES).index(one[0]), one[1]))

    def compare(self, candidate: Candidate, other: Candidate, metric: str = ERROR) -> pd.DataFrame:
        """Differences to another candidate on each set.

        A verdict on the squared error stands only if other grids of penalties have it too.
        """
        found = self.differences(candidate, other, metric)
        if metric == ERROR:
            others = [self.differences(candidate, other, "quarter")]
            others += [one.differences(candidate, other) for one in self.finer]
            for frame in others:
                verdict = frame["verdict"].reindex(found.index)
                found["verdict"] *= verdict.isna() | (verdict == found["verdict"])
        return found

    def differences(
        self, candidate: Candidate, other: Candidate, metric: str = ERROR
    ) -> pd.DataFrame:
        """Mean difference to another candidate on each set, as a share of its error."""
        wide, found = self.wide(metric), {}
        if candidate in wide and other in wide:
            both = wide[[candidate, other]].dropna()
            both = both[np.isfinite(both).all(axis=1)]
            for name, rows in both.groupby(level="data"):
                known = name in self.about.index  # repetitions of simulations share no rows
                ratio = self.about.test[name] / self.about.train[name] if known else 0.0
                if len(rows) >= SPLITS:
                    one = resampled_t((rows[candidate] - rows[other]).to_numpy(), ratio)
                    *ends, p = astuple(one)
                    found[name] = *(np.asarray(ends) / rows[other].mean()), p, one.verdict
        columns = ["mean", "low", "high", "p", "verdict"]
        return pd.DataFrame.from_dict(found, orient="index", columns=columns)

    def blocks(self, by_set: pd.DataFrame) -> pd.DataFrame:
        """Means over sets that share their rows: the label distributions of yeast are one."""
        same = (self.about["kind"] == LDL) & self.about.index.str.startswith("yeast_")
        return by_set.groupby(np.where(same.reindex(by_set.index), LDL, by_set.index)).mean()

    def ranks(self, candidates: list[Candidate]) -> Ranks:
        """Ranks of candidates over blocks, by the mean logarithm of the error."""
        return friedman(self.blocks(np.log(self.means()[candidates].dropna())).to_numpy())


def with_choices(frame: pd.DataFrame) -> pd.DataFrame:
    """With the tightness, and the loss, of the smallest error within the training part."""
    own = frame[~frame["loss"].isin(PEERS)].sort_values(["inner", "tightness"])
    several = own[own.groupby(["data", "loss"])["tightness"].transform("nunique") > 2]
    by_loss = several.groupby(["data", "split", "loss"]).head(1).assign(tightness=CHOSEN)
    of_all = several.groupby(["data", "split"]).head(1).assign(tightness=CHOSEN, loss=ANY)
    return pd.concat([frame, by_loss, of_all], ignore_index=True)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(" nan % ", "  ")


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:+.{digits}f} %".replace("-", "−")


def name_of(candidate: Candidate) -> str:
    loss, tightness = candidate
    if loss == ANY:
        return "loss and tightness chosen"
    if loss in PEERS:
        return TITLES[loss]
    return f"{TITLES[loss]}, {'chosen' if tightness == CHOSEN else 'c = ' + tightness}"


def verdict_table(results: Results, pairs: list[Pair], metric: str = ERROR) -> str:
    """Counts of clear differences, and in brackets what remains after Holm's correction."""
    rows = []
    for candidate, other in pairs:
        found = results.compare(candidate, other, metric)
        if len(found) < 3:
            continue
        strict = holm(found["p"].to_numpy()) < 0.05
        signs = [found["verdict"] == sign for sign in (-1, 1)]
        ends = [f"{percent(found['mean'][name])} ({name})"
                for name in (found["mean"].idxmin(), found["mean"].idxmax())]  # fmt: skip
        chances = bayesian_signed_rank(results.blocks(found)["mean"].to_numpy(), ROPE)
        rows.append([
            name_of(candidate),
            str(len(found)),
            *(f"{sign.sum()} ({(sign & strict).sum()})" for sign in signs),
            percent(found["mean"].median(), 2),
            f"{100 * (found['high'] - found['low']).median() / 2:.1f} %",
            " … ".join(ends),
            ", ".join(f"{chance:.2f}" for chance in chances),
        ])  # fmt: skip
    header = ["", "sets", "better", "worse", "median", "±", "from … to", "P(better, same, worse)"]
    return table(header, rows)


def against_zero(results: Results, loss: str = "", *, chosen: bool = True) -> list[Pair]:
    """Each tightness with 0, loss by loss."""
    return [(one, (one[0], "0")) for one in results.candidates(beyond=True)
            if loss in ("", one[0]) and (chosen or one[1] != CHOSEN)]  # fmt: skip


def by_loss(results: Results) -> str:
    """Each loss, and what was chosen within the training part, against the logistic loss."""
    losses = dict.fromkeys(one[0] for one in results.candidates() if one[0] != "logistic")
    candidates = [*((loss, "0") for loss in losses), (ANY, CHOSEN), (COPIES, "0")]
    return verdict_table(results, [(one, ("logistic", "0")) for one in candidates])


def of_counts(results: Results) -> str:
    """The Poisson losses, on the only data set of counts."""
    rows = []
    for pair in against_zero(results, "poisson"):
        found = [results.compare(*pair, name).iloc[0] for name in (ERROR, DIVERGENCE)]
        rows.append([name_of(pair[0]), *map(interval_text, found)])
    return table(["digits_counts", "squared error", "half the deviance"], rows)


def interval_text(row: pd.Series) -> str:
    return f"{percent(row['mean'])} ({percent(row['low'])} … {percent(row['high'])})"


def by_set(results: Results) -> str:
    """The logistic error on each set, and relative differences to it."""
    shown = [("logistic", "1"), ("logistic", CHOSEN), ("sparsemax", "0"), ("sparsemax", "1"),
             ("entmax15", "0"), ("entmax15", "1"), ("tsallis13", "0")]  # fmt: skip
    found = {one: results.compare(one, ("logistic", "0")) for one in shown}
    errors = results.means()["logistic", "0"].dropna()
    rows = []
    for name, one in results.about.sort_values("kind", kind="stable").iterrows():
        if name not in errors.index:
            continue
        cells = []
        for of_sets in found.values():
            star = "**" if name in of_sets.index and of_sets.verdict[name] else ""
            text = percent(of_sets["mean"][name]) if name in of_sets.index else ""
            cells.append(f"{star}{text}{star}")
        size = f"{one['train']}, {one['classes']}, {100 * one['zeros']:.0f} %"
        rows.append([str(name), one["kind"], size, f"{errors[name]:.4g}", *cells])
    return table(
        ["set", "kind", "rows, classes, zeros", "logistic, c = 0", *map(name_of, found)], rows
    )


def of_classes(results: Results) -> str:
    """Log loss, calibration error and accuracy on class labels."""
    names = [name for name in results.means().index if results.about.kind[name] == "classes"]
    metrics = [ERROR, DIVERGENCE, "calibration_error", "accuracy"]
    means = [results.means(metric).loc[names] for metric in metrics]
    rows = [
        [
            name_of(one),
            *(" / ".join(f"{x:.3f}" for x in mean[one]).replace("nan", "–") for mean in means),
        ]
        for one in results.candidates()
        if one[1] in ("0", "1", "4", CHOSEN) and means[0][one].notna().any()
    ]
    header = ["", "squared error", "log loss", "calibration error", "accuracy"]
    return f"Data sets, in this order: {' / '.join(names)}.\n\n{table(header, rows)}"


def by_metric(results: Results) -> str:
    """Mean ranks by each metric, over blocks of sets."""
    candidates = [(loss, c) for loss in MAIN for c in "012"]
    metrics = {ERROR: 1, "jensen_shannon": 1, "chebyshev": 1, "clark": 1, "canberra": 1,
               "cosine": -1, "intersection": -1, "calibration_error": 1}  # fmt: skip
    ranks = [
        results.blocks((sign * results.means(metric)[candidates].dropna()).rank(axis=1)).mean()
        for metric, sign in metrics.items()
    ]
    rows = [[name_of(one), *(f"{rank[one]:.1f}" for rank in ranks)] for one in candidates]
    return table(["", *(metric.replace("_", " ") for metric in metrics)], rows)


def by_zeros(results: Results) -> str:
    """Mean share of exact zeros in the predictions, by kind of data."""
    shown = [one for one in results.candidates() if one[1] in "014" and one[0] != "poisson"]
    kinds = results.about["kind"].reindex(results.means().index)
    means = results.means("zeros")[shown].groupby(kinds).mean().dropna(how="all")
    rows = [[name_of(one), *(f"{100 * x:.0f} %" for x in means[one])] for one in shown]
    targets = results.about.loc[kinds.index].groupby("kind")["zeros"].mean()[means.index]
    return table(
        ["", *means.index], [*rows, ["the targets", *(f"{100 * x:.0f} %" for x in targets)]]
    )


def by_grid(results: dict[str, Results]) -> str:
    """Verdicts of each tightness against 0, and how many a finer grid of penalties removes."""
    rows = []
    steps = {"decade": "powers of ten", "quarter": "quarters", ERROR: "eighths"}
    for title, part in (("random splits", "linear"), ("the paper's protocol", "paper")):
        one = results[part]
        pairs = against_zero(one, chosen=False)
        grids = [on_grid(one, pairs, name) for name in steps]
        if one.finer:
            grids.append(on_grid(one.finer[0], pairs, ERROR).reindex(grids[-1].index))
        for i, step in enumerate(steps.values()):
            clear = grids[i]["verdict"] != 0
            lost = [str((clear & finer["verdict"].notna()
                         & (finer["verdict"] != grids[i]["verdict"])).sum())
                    for finer in grids[i + 1 :]]  # fmt: skip
            if i == 0:  # sixteenths were searched only where eighths are clear
                lost = lost[:2]
            cells = [*[""] * i, *lost, *[""] * (3 - i - len(lost))]
            rows.append([title, step, str(len(clear)), str(clear.sum()), *cells])
    header = ["", "grid", "comparisons", "clear", "not on quarters", "not on eighths",
              "not on sixteenths"]  # fmt: skip
    linear = results["linear"]
    verdicts = confirmed(linear, verdict_pairs(linear))
    return (
        f"{table(header, rows)}\n\nVerdicts that count, including those between losses at $c = 0$: "
        f"{len(verdicts)}. Also searched on thirty-seconds: "
        f"{(verdicts['finer'] == len(FINER)).sum()}. Would survive another step as large as the "
        f"last: {verdicts['settled'].sum()}."
    )


def on_grid(results: Results, pairs: list[Pair], grid: str) -> pd.DataFrame:
    """The differences of all pairs on one grid of penalties."""
    return pd.concat({pair: results.differences(*pair, grid) for pair in pairs})


def verdict_pairs(linear: Results) -> list[Pair]:
    """The pairs of the page: tightnesses against 0, and losses against the logistic loss."""
    losses = [((loss, "0"), ("logistic", "0")) for loss in LOSSES[1:]]
    return against_zero(linear, chosen=False) + losses


def clear_cells(folder: Path, part: str) -> set[tuple[str, str, str]]:
    """Set, loss and tightness of the verdicts that the grid of a part has to confirm.

    Sixteenths: all that are clear on eighths. Thirty-seconds: those that are not settled.
    """
    linear, found = with_finer(folder), set()
    for pair in verdict_pairs(linear):
        if part == next(iter(FINER)):
            differences = linear.differences(*pair)
            names = differences.index[differences["verdict"] != 0]
        else:
            verdicts = confirmed(linear, [pair])
            names = [name for *_, name in verdicts.index[~verdicts["settled"].astype(bool)]]
        found |= {(str(name), *candidate) for candidate in pair for name in names}
    return found


def with_finer(folder: Path) -> Results:
    about = pd.read_csv(folder / "sets.csv", index_col="name")
    linear = Results(folder, "linear", about)
    linear.finer = [Results(folder, part, about) for part in FINER]
    return linear


def confirmed(linear: Results, pairs: list[Pair]) -> pd.DataFrame:
    """Verdicts that count, with the number of finer grids on which they were searched.

    A verdict is settled if it survives another step like the last one: from eighths to sixteenths,
    or from these to thirty-seconds.
    """
    found = {}
    for pair in pairs:
        grids = [linear.differences(*pair), *(one.differences(*pair) for one in linear.finer)]
        verdicts = linear.compare(*pair)["verdict"]
        for name, verdict in verdicts[verdicts != 0].items():
            end = "low" if verdict > 0 else "high"
            ends = [grid[end][name] for grid in grids if name in grid.index]
            if len(ends) > 1:
                found[(*pair, name)] = abs(ends[-1] - ends[-2]) < abs(ends[-1]), len(ends) - 1
    return pd.DataFrame.from_dict(found, orient="index", columns=["settled", "finer"])


def by_penalty(results: Results) -> str:
    """How penalty and processor time change with the tightness."""
    penalties, seconds = (np.log(results.wide(name)).groupby(level="data").mean() for name in
                          ("setting", "seconds"))  # fmt: skip
    rows = []
    for loss in dict.fromkeys(one[0] for one in results.candidates()):
        if loss != "poisson":
            alphas = [penalties[loss, c] - penalties[loss, "0"] for c in ("0.5", "1", "2", "4")]
            times = [seconds[loss, c] - seconds["logistic", "0"] for c in "014"]
            rows.append([TITLES[loss], *(f"{np.exp(x.median()):.2f}" for x in alphas),
                         *(f"{np.exp(x.median()):.1f}" for x in times)])  # fmt: skip
    rows.append(["1/(1 + c)", *(f"{1 / (1 + c):.2f}" for c in (0.5, 1, 2, 4)), *3 * [""]])
    columns = [f"α, c = {c}" for c in ("0.5", "1", "2", "4")] + [f"time, c = {c}" for c in "014"]
    return table(["", *columns], rows)


def by_the_paper(results: Results) -> str:
    """The paper's Table 1 and ours by its protocol, mean over dev splits."""
    rows = []
    for name in sorted(set(PAPER) & set(results.means().index)):
        published = PAPER[name]
        grids = {"powers of ten": "decade"} | ({} if name in ONCE else {"fine": ERROR})
        ours = {grid: results.means(of).loc[name, PAPER_COLUMNS] for grid, of in grids.items()}
        for title, values in {"the paper": published, **ours}.items():
            rows.append([name, title, *(f"{value:.3f}" for value in values)])
    return table(["set", "grid", *map(name_of, PAPER_COLUMNS)], rows)


def by_the_paper_and_grid(results: Results) -> str:
    """The effect of tightness 1 by the paper's protocol: published, and ours on two grids."""
    rows = []
    for name in sorted(set(PAPER) - set(ONCE)):
        published = dict(zip(PAPER_COLUMNS, PAPER[name], strict=True))
        for loss in PAPER_LOSSES:
            pair = (loss, "1"), (loss, "0")
            share = published[pair[0]] / published[pair[1]] - 1
            found = [results.differences(*pair, grid) for grid in ("decade", ERROR)]
            cells = [interval_text(frame.loc[name]) for frame in found]
            rows.append([name, TITLES[loss], percent(share), *cells])
    return table(["set", "loss", "the paper", "powers of ten", "fine"], rows)


def by_folds(results: Results) -> str:
    """Published figures, their method and our losses on our folds, by data set."""
    metrics, shown = list(PUBLISHED), [(ENTROPY, "0"), *results.candidates()]
    means = results.frame.groupby(["data", "loss", "tightness"])[metrics].mean()
    published = [f"{value:g}" for value in PUBLISHED.values()]
    rows = [["yeast_alpha", "published, maximum entropy", *published]]
    rows += [["yeast_alpha", name_of(one), *(f"{x:.4f}" for x in means.loc["yeast_alpha", *one])]
             for one in shown]  # fmt: skip
    for name in [name for name in SETS if name in means.index and name != "yeast_alpha"]:
        peer = means.loc[name, *shown[0]]
        ours = means.loc[[(name, *one) for one in shown[1:]]]
        rows.append([name, name_of(shown[0]), *(f"{x:.4f}" for x in peer)])
        ends = ours.agg(["min", "max"]).map("{:.4f}".format)
        rows.append([name, "ours, from … to", *(" … ".join(dict.fromkeys(ends[metric]))
                                                for metric in metrics)])  # fmt: skip
    return table(["set", "", *(name.replace("_", " ") for name in metrics)], rows)


def by_device(cpu: Results, gpu: Results) -> str:
    """Networks on a GPU against those on a CPU: single cells, and verdicts."""
    both = cpu.frame.merge(gpu.frame, on=list(records.KEYS), suffixes=("", " gpu"))
    both = both[~both["tightness"].isin([CHOSEN])]
    by_pair = [{pair: one.differences(*pair)["verdict"] for pair in verdict_pairs(gpu)}
               for one in (cpu, gpu)]  # fmt: skip
    verdicts = pd.concat([pd.concat(one) for one in by_pair], axis=1, join="inner")
    rows = []
    for name, cells in both.groupby("data"):
        apart = (cells[f"{ERROR} gpu"] / cells[ERROR] - 1).abs()
        ours, theirs = verdicts.xs(name, level=-1).to_numpy().T
        rows.append([
            str(name),
            str(len(cells[["loss", "tightness"]].drop_duplicates())),
            str(len(cells)),
            f"{(cells['setting'] == cells['setting gpu']).sum()}",
            f"{(apart < 1e-3).sum()}",
            *(f"{x:.1g}" for x in (apart.median(), apart.max())),
            f"{(ours == theirs).sum()} of {len(ours)}",
            f"{(ours != 0).sum()}",
        ])  # fmt: skip
    header = ["set", "(loss, tightness)", "cells", "same epochs", "within 0.1 %", "median",
              "largest", "same verdicts", "clear"]  # fmt: skip
    return table(header, rows)


def effects(results: Results) -> dict[Candidate, pd.DataFrame]:
    """Relative differences to c = 0 at each value of each factor that was varied."""
    names = {(factor, value): "base" if value == BASE[factor] else f"{factor}={value:g}"
             for factor, values in FACTORS.items() for value in values}  # fmt: skip
    found = {}
    for one in [(loss, c) for loss in MAIN[:2] for c in "14"]:
        rows = results.compare(one, (one[0], "0")).reindex(list(names.values()))
        keys = pd.MultiIndex.from_tuples(list(names), names=["factor", "value"])
        found[one] = rows.set_axis(keys).reset_index()
    return found


def by_simulation(results: Results) -> str:
    found = effects(results)
    texts = [[interval_text(row) for _, row in frame.iterrows()] for frame in found.values()]
    keys = next(iter(found.values()))[["factor", "value"]].itertuples(index=False)
    rows = [
        [f"{key.factor} {key.value:g}", *cells] for key, *cells in zip(keys, *texts, strict=True)
    ]
    return table(["", *map(name_of, found)], rows)


def by_property(results: Results) -> str:
    """Rank correlations between properties of the data sets and the effect of tightness 1."""
    about = results.about[results.about["kind"] != "counts"]
    numbers = about[["train", "features", "classes", "zeros"]].rename(columns={"train": "rows"})
    numbers = results.blocks(numbers.assign(ratio=numbers["rows"] / numbers["features"]))
    rows = []
    for loss in MAIN:
        found = results.blocks(results.compare((loss, "1"), (loss, "0")))["mean"]
        tests = [stats.spearmanr(*pd.concat([found, numbers[name]], axis=1).dropna().to_numpy().T)
                 for name in numbers]  # fmt: skip
        cells = [f"{one.statistic:+.2f} (p = {one.pvalue:.2f})".replace("-", "−") for one in tests]
        rows.append([TITLES[loss], *cells])
    return table(["", *numbers.columns[:-1], "rows per feature"], rows)


def scope(results: dict[str, Results]) -> str:
    rows = []
    for part, one in results.items():
        own = one.frame[
            one.frame["loss"].isin(set(TITLES) - set(PEERS)) & (one.frame["tightness"] != CHOSEN)
        ]
        if len(own):
            sizes = own.drop_duplicates(["data", "loss", "tightness"]).groupby("data").size()
            ends = " to ".join(map(str, sorted({sizes.min(), sizes.max()})))
            splits = (
                own[~own["data"].isin(ONCE)].groupby(["data", "loss", "tightness"]).size().min()
            )
            rows.append([part, str(len(sizes)), ends, str(splits), str(one.n_cells)])
    return table(["part", "sets", "(loss, tightness)", "splits", "cells"], rows)


def unmeasured(linear: Results) -> str:
    """Data sets that the tables lack, and losses that were not fitted to a data set."""
    found = linear.frame[["data", "loss"]].drop_duplicates().groupby("data")["loss"].agg(set)
    absent = [name for name in SETS if name not in found.index and name not in ONCE]
    lines = [f"Not measured: {', '.join(absent) or 'none'}."]
    for loss in LOSSES:
        lacking = [name for name in SETS if name in found.index and loss not in found[name]
                   and "poisson" not in found[name]]  # fmt: skip
        if lacking:
            lines.append(f"Without {TITLES[loss]}: {', '.join(lacking)}.")
    return "\n".join(lines)


def rankings() -> list[tuple[str, list[Candidate]]]:
    """The candidates of each ranking: the tightnesses of a loss, or losses with tightnesses."""
    by_loss = [(TITLES[loss], [(loss, c) for c in ("0", "0.5", "1", "2", "4", CHOSEN)])
               for loss in MAIN]  # fmt: skip
    return [*by_loss, ("all", [(loss, c) for loss in MAIN for c in "012"])]


def by_rank(results: Results) -> str:
    """Friedman's test, and mean ranks in ascending order."""
    rows = []
    for title, candidates in rankings():
        ranks = results.ranks(candidates)
        names = [name_of(one).removeprefix(f"{title}, ") for one in candidates]
        listed = ", ".join(f"{names[i]} ({ranks.mean[i]:.2f})" for i in np.argsort(ranks.mean))
        rows.append([title, str(ranks.n), f"{ranks.p:.2g}", f"{ranks.critical:.2f}", listed])
    return table(["candidates", "blocks", "Friedman p", "critical difference", "mean ranks"], rows)


def write(folder: Path, docs: Path = DOCS) -> None:
    """Fill the blocks of the page and draw its figures; every block must be in the page."""
    about = pd.read_csv(folder / "sets.csv", index_col="name")
    results = {part: Results(folder, part, about) for part in PARTS}
    results["linear"] = linear = with_finer(folder)
    blocks = {
        "scope": scope(results),
        "unmeasured": unmeasured(linear),
        "grid": by_grid(results),
        "losses": by_loss(linear),
        "divergence": verdict_table(linear, against_zero(linear, "logistic"), DIVERGENCE),
        "sets": by_set(linear),
        "counts": of_counts(linear),
        "ranks": by_rank(linear),
        "metrics": by_metric(linear),
        "zeros": by_zeros(linear),
        "penalties": by_penalty(linear),
        "properties": by_property(linear),
        "boosted losses": by_loss(results["boosted"]),
        "network losses": by_loss(results["network"]),
        "paper": by_the_paper(results["paper"]),
        "paper tightness": by_the_paper_and_grid(results["paper"]),
        "folds": by_folds(results["folds"]),
        "devices": by_device(results["network"], results[GPU]),
        "simulation": by_simulation(results["simulation"]),
    }
    for part in PARTS[:3]:
        blocks[f"{part} tightness"] = verdict_table(results[part], against_zero(results[part]))
    for part in ("linear", "network"):
        blocks[f"{part} classes"] = of_classes(results[part])
    page = docs / "study.md"
    text = page.read_text(encoding="utf-8")
    for name, content in blocks.items():
        pattern = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"docs/study.md has no block {name!r}")
        text = pattern.sub(f"\n{content}\n\n".replace("\\", r"\\"), text, count=1)
    page.write_text(text, encoding="utf-8")
    found = {TITLES[loss]: {c: linear.compare((loss, c), (loss, "0")) for c in figures.COLORS}
             for loss in MAIN}  # fmt: skip
    figures.tightness(docs / "figures" / "study_tightness.svg", found)
    _, candidates = rankings()[-1]
    names = [name_of(one) for one in candidates]
    figures.ranks(docs / "figures" / "study_ranks.svg", names, linear.ranks(candidates))
    figures.simulation(docs / "figures" / "study_simulation.svg", effects(results["simulation"]))
