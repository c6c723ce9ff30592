"""Write the tables of reproduction.md from the records of runs.

    python docs/make_reproduction.py collect FOLDER …    # records → results/
    python docs/make_reproduction.py starts              # unfair, fitted from zero → results/
    python docs/make_reproduction.py between             # unfair, on a finer grid → results/
    python docs/make_reproduction.py                     # results/ → reproduction.md

``FOLDER`` is the folder of ``fitzpatrick reproduce -o``. Text outside the markers stays as it is.
"""

import argparse
import functools
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

from reproduction_results import (
    DifferenceLine,
    FitLine,
    RunKey,
    compared_models,
    difference_lines,
    from_csv,
    load_runs,
    read_models,
    write_models,
)

from fitzpatrick.datasets import DATASETS, PAPER_LOSSES, load_dataset
from fitzpatrick.experiments.protocol import Experiment, FitPath, LossChoice, Protocol
from fitzpatrick.experiments.report import Line, fit_lines, number, signed, to_csv
from fitzpatrick.experiments.runner import run
from fitzpatrick.linear_model import DEFAULT_ALPHAS
from fitzpatrick.losses import ends as names_of_family

HERE = Path(__file__).parent
PAGE = HERE / "reproduction.md"
RESULTS = HERE / "results"
DIFFERENCES = RESULTS / "differences.csv"
STARTS = RESULTS / "unfair_from_zero.csv"
BETWEEN = RESULTS / "unfair_between.csv"
TITLES = ("sparsemax", "Fitzpatrick sparsemax", "logistic", "Fitzpatrick logistic")
LARGE = ("delicious", "tmc2007-500")  # fitted on a GPU, in limited time
MAX_DISTANCE = 0.01  # differences up to this count as agreement with the paper
ROWS = (
    ("emotions", "standardize"),
    ("flags", "standardize"),
    ("scene", "standardize"),
    ("yeast", "standardize"),
    ("delicious", "standardize"),
    ("unfair", "standardize"),
    ("unfair", "none"),
    ("tmc2007-500", "standardize"),
)

Row = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Results:
    """The committed lines, and the queries of the tables."""

    fits: list[FitLine]
    differences: list[DifferenceLine]
    starts: list[FitLine]
    between: list[FitLine]
    choices: dict[RunKey, dict[FitPath, float]]  # the α that dev chose

    @classmethod
    def read(cls) -> "Results":
        """Everything in the folder of results."""
        choices = {key: one.chosen for key, one in read_models(RESULTS).items()}
        names = sorted({name for name, _, _ in choices})
        return cls(
            [line for name in names for line in from_csv(RESULTS / f"{name}.csv", FitLine)],
            from_csv(DIFFERENCES, DifferenceLine),
            from_csv(STARTS, FitLine),
            from_csv(BETWEEN, FitLine),
            choices,
        )

    def rows(self) -> list[Row]:
        """Data sets with a record, in the page's order."""
        there = {(line.dataset, line.features) for line in self.fits}
        return [row for row in ROWS if row in there]

    def grid(self, row: Row, intercept: bool, loss: str, seed: int | None) -> list[FitLine]:
        """One path, from the strongest penalty to the weakest."""
        return self._by_path.get((*row, intercept, loss, seed), [])

    @functools.cached_property
    def _by_path(self) -> dict[tuple[str, str, bool, str, int | None], list[FitLine]]:
        found: dict[tuple[str, str, bool, str, int | None], list[FitLine]] = {}
        for line in self.fits:
            key = (line.dataset, line.features, line.intercept, line.loss, line.seed)
            found.setdefault(key, []).append(line)
        return found

    def seeds(self, row: Row, intercept: bool, loss: str) -> list[int]:
        """The seeds of the dev splits of a path."""
        wanted = (*row, intercept, loss)
        return sorted(
            seed for *path, seed in self._by_path if tuple(path) == wanted and seed is not None
        )

    def chosen(self, row: Row, intercept: bool, loss: str) -> list[FitLine]:
        """The fit with the smallest dev error, one per seed."""
        alphas = self.choices.get((*row, intercept), {})
        return [
            line
            for seed in self.seeds(row, intercept, loss)
            for line in self.grid(row, intercept, loss, seed)
            if line.alpha == alphas[FitPath(LossChoice(loss), seed)]
        ]

    def paths(self) -> Iterator[tuple[Row, bool, str, str]]:
        """Every data set, without and with an intercept, and every loss with its title."""
        for row in self.rows():
            for intercept in (False, True):
                for loss, title in zip(PAPER_LOSSES, TITLES, strict=True):
                    yield row, intercept, loss, title

    def errors(self, row: Row, intercept: bool, loss: str, rows: str) -> list[float]:
        """Test errors of the models to test, one per seed."""
        chosen = self.chosen(row, intercept, loss)
        if rows == "train":
            return [line.test_error for line in chosen]
        whole = {line.alpha: line for line in self.grid(row, intercept, loss, None)}
        return [whole[line.alpha].test_error for line in chosen if line.alpha in whole]

    def difference(
        self, row: Row, rows: str, comparison: str, loss: str, intercept: bool | None = None
    ) -> DifferenceLine | None:
        """One comparison, if it was made."""
        wanted = (*row, rows, comparison, intercept, loss)
        for line in self.differences:
            about = (line.dataset, line.features, line.rows, line.comparison, line.intercept)
            if (*about, line.loss) == wanted:
                return line
        return None

    def better(self, row: Row, rows: str, intercept: bool) -> set[str]:
        """The better loss of each pair whose interval excludes zero."""
        found = set()
        for loss in PAPER_LOSSES:
            line = self.difference(row, rows, "pair", loss, intercept)
            if line is not None and line.high < 0:
                found.add(loss)
            if line is not None and line.low > 0:
                found.add(names_of_family(loss)[0])
        return found


def name(row: Row) -> str:
    """A data set, with the reading of "normalized" for unfair."""
    dataset, features = row
    if dataset == "unfair":
        return f"unfair, {'standardized' if features == 'standardize' else 'as given'}"
    return dataset


def paper(row: Row, loss: str) -> float | None:
    """The paper's number, if it has one."""
    return (DATASETS[row[0]].paper or {}).get(loss)


def table(head: list[str], body: list[list[str]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def error_table(results: Results, intercept: bool, rows: str) -> str:
    """Mean ± spread, the paper's number in brackets, the better of a pair in bold."""
    body = []
    for row in results.rows():
        cells = []
        better = results.better(row, rows, intercept)
        for loss in PAPER_LOSSES:
            errors = results.errors(row, intercept, loss, rows)
            if not errors:
                cells.append("not run")
                continue
            text = number(mean(errors))
            if len(errors) > 1:
                text += f" ± {number(stdev(errors))}"
            if loss in better:
                text = f"**{text}**"
            said = paper(row, loss)
            cells.append(f"{text} ({number(said, 3)})" if said and not intercept else text)
        splits = sorted({len(results.seeds(row, intercept, loss)) for loss in PAPER_LOSSES} - {0})
        if set(cells) != {"not run"}:
            body.append([name(row), " to ".join(map(str, splits)), *cells])
    return table(["data set", "splits", *TITLES], body)


def far_from_the_paper(results: Results, rows: str) -> str:
    """A sentence that lists the cells that are not within MAX_DISTANCE."""
    far = []
    for row in results.rows():
        for loss, title in zip(PAPER_LOSSES, TITLES, strict=True):
            errors, said = results.errors(row, False, loss, rows), paper(row, loss)
            if errors and said is not None and abs(mean(errors) - said) > MAX_DISTANCE:
                far.append(f"{name(row)}, {title} ({signed(mean(errors) - said)})")
    if not far:
        return f"Every cell is within {number(MAX_DISTANCE, 2)} of the paper's number."
    distance, cells = number(MAX_DISTANCE, 2), "; ".join(far)
    return f"More than {distance} from the paper's numbers: {cells}. All other cells are closer."


def refit_distances(results: Results) -> str:
    """The numbers of cells that a refit brings closer to the paper, and further away."""
    counted = []
    for row in results.rows():
        nearer = further = 0
        for loss in PAPER_LOSSES:
            said = paper(row, loss)
            if said is not None:
                train, refit = (
                    abs(mean(results.errors(row, False, loss, rows)) - said)
                    for rows in ("train", "train+dev")
                )
                nearer += refit < train
                further += refit > train
        if nearer + further:
            counted.append(f"{name(row)} {nearer} and {further}")
    return f"Numbers of cells that a refit brings closer, and further away: {'; '.join(counted)}."


def difference_table(results: Results, rows: str, comparison: str) -> str:
    """One comparison of every data set and loss."""
    body = []
    for row in results.rows():
        found = [results.difference(row, rows, comparison, loss) for loss in PAPER_LOSSES]
        if any(found):
            body.append([name(row), *(difference_text(line) for line in found)])
    return table(["data set", *TITLES], body)


def difference_text(line: DifferenceLine | None) -> str:
    """A difference: bold if it is clearly below zero, italic if it is clearly above."""
    if line is None:
        return "not run"
    text = f"{signed(line.mean)} [{signed(line.low)}, {signed(line.high)}]"
    return f"**{text}**" if line.high < 0 else f"*{text}*" if line.low > 0 else text


def intercept_verdicts(results: Results) -> str:
    """Sentences on where the intercept helps, harms, or makes no clear difference."""
    sentences = []
    for rows, words in (("train", "The"), ("train+dev", "After a refit to train and dev, the")):
        better, worse, neither = by_sign(
            (f"{name(row)} ({title})", results.difference(row, rows, "intercept", loss))
            for row in results.rows()
            for loss, title in zip(PAPER_LOSSES, TITLES, strict=True)
        )
        cells = len(better + worse + neither)
        sentences.append(
            f"{words} intercept is better in {len(better)} of {cells} cells, and worse "
            f"in {listed(worse)}. There is no clear difference in {listed(neither)}."
        )
    return "\n\n".join(sentences)


def by_sign(lines: Iterable[tuple[str, DifferenceLine | None]]) -> tuple[list[str], ...]:
    """The names of differences clearly below zero, clearly above it, and of the others."""
    below: list[str] = []
    above: list[str] = []
    neither: list[str] = []
    for title, line in lines:
        if line is not None:
            (below if line.high < 0 else above if line.low > 0 else neither).append(title)
    return below, above, neither


def listed(names: list[str]) -> str:
    """The number of names, and the names."""
    return f"{len(names)}: {', '.join(names)}" if names else "none"


def alpha_table(results: Results) -> str:
    """The α that dev chose without and with the intercept."""
    body = []
    for row in results.rows():
        cells = []
        for loss in PAPER_LOSSES:
            both = [
                counts([line.alpha for line in results.chosen(row, intercept, loss)])
                for intercept in (False, True)
            ]
            cells.append(" → ".join(text or "not run" for text in both))
        body.append([name(row), *cells])
    return table(["data set", *TITLES], body)


def counts(alphas: list[float]) -> str:
    """The penalties, and how often each was chosen."""
    found = sorted(Counter(alphas).items(), reverse=True)
    return ", ".join(f"{alpha:g}" if len(found) == 1 else f"{alpha:g} ({n}×)" for alpha, n in found)


def nearest_table(results: Results) -> str:
    """Fits to train and dev: the α of the grid whose error is closest to the paper's."""
    body = []
    for row in results.rows():
        cells = []
        for loss in PAPER_LOSSES:
            said, whole = paper(row, loss), results.grid(row, False, loss, None)
            if said is None or not whole:
                break
            best = min(whole, key=lambda line: abs(line.test_error - said))
            chosen = counts([line.alpha for line in results.chosen(row, False, loss)])
            cells.append(
                f"{best.alpha:g} → {number(best.test_error)} ({number(said, 3)}); chosen: {chosen}"
            )
        else:
            body.append([name(row), *cells])
    return table(["data set", *TITLES], body)


def unfair_table(results: Results) -> str:
    """The lowest mean test error over the grid, which no choice on dev can improve."""
    body = []
    for row in (row for row in results.rows() if row[0] == "unfair"):
        cells = []
        for loss in PAPER_LOSSES:
            by_alpha: dict[float, list[float]] = {}
            for seed in results.seeds(row, False, loss):
                for line in results.grid(row, False, loss, seed):
                    by_alpha.setdefault(line.alpha, []).append(line.test_error)
            if not by_alpha:
                cells.append("not run")
                continue
            alpha, errors = min(by_alpha.items(), key=lambda item: mean(item[1]))
            said = paper(row, loss)
            cells.append(f"{number(mean(errors))} at α = {alpha:g} ({number(said or 0, 3)})")
        body.append([name(row), *cells])
    return table(["features", *TITLES], body)


def between_table(results: Results) -> str:
    """Penalties of a finer grid between which unfair, as given, has the paper's numbers."""
    row = ("unfair", "none")
    body = []
    for loss, title in zip(PAPER_LOSSES, TITLES, strict=True):
        said = paper(row, loss) or 0.0
        path = [line for line in results.between if line.loss == loss]
        chosen = counts([line.alpha for line in results.chosen(row, False, loss)])
        for one, two in pairwise(path):
            low, high = sorted((one.test_error, two.test_error))
            if low <= said <= high:
                alphas = f"{one.alpha:g} and {two.alpha:g}"
                errors = f"{number(one.test_error)} and {number(two.test_error)}"
                body.append([title, number(said, 3), alphas, errors, chosen])
    head = ["loss", "paper", "between α =", "test errors there", "chosen on dev, on the grid"]
    return table(head, body)


def starts_table(results: Results) -> str:
    """Fits to train and dev from two starts: along the grid, and from zero."""
    body = []
    for alpha in sorted({line.alpha for line in results.starts}, reverse=True):
        cells = []
        for loss in PAPER_LOSSES:
            grid = results.grid(("unfair", "standardize"), False, loss, None)
            along = [line.test_error for line in grid if line.alpha == alpha]
            zero = [
                line.test_error
                for line in results.starts
                if (line.loss, line.alpha) == (loss, alpha)
            ]
            pairs = zip(along, zero, strict=False)
            cells.append("".join(f"{a:.5f}, {b:.5f}".replace("0.", ".") for a, b in pairs) or "–")
        body.append([f"{alpha:g}", *cells])
    return table(["α", *TITLES], body)


def verdicts(results: Results) -> str:
    """Sentences on which loss of a pair is better."""
    sentences = []
    for intercept, words in ((False, "Without"), (True, "With")):
        fitzpatrick, fenchel_young, neither = by_sign(
            (
                f"{name(row)} ({loss})",
                results.difference(row, "train", "pair", names_of_family(loss)[-1], intercept),
            )
            for row in results.rows()
            for loss in ("sparsemax", "logistic")
        )
        sentences.append(
            f"{words} an intercept, the Fitzpatrick loss is better in {listed(fitzpatrick)}. The "
            f"Fenchel-Young loss is better in {listed(fenchel_young)}. There is no clear "
            f"difference in {listed(neither)}."
        )
    return "\n\n".join(sentences)


def runs_table(results: Results) -> str:
    """The fits, the device that computed them, and how many did not converge."""
    body = []
    for row in results.rows():
        for intercept in (False, True):
            for pair in (PAPER_LOSSES[:2], PAPER_LOSSES[2:]):
                lines = [
                    line
                    for line in results.fits
                    if (line.dataset, line.features, line.intercept) == (*row, intercept)
                    and line.loss in pair
                ]
                if not lines:
                    continue
                alphas = [line.alpha for line in lines]
                body.append(
                    [
                        name(row),
                        "yes" if intercept else "no",
                        f"{pair[0]}, and Fitzpatrick",
                        f"{max(alphas):g} to {min(alphas):g}",
                        str(len(lines)),
                        str(sum(not line.converged for line in lines)),
                        ", ".join(sorted({line.device for line in lines})),
                    ]
                )
    head = ["data set", "intercept", "losses", "α", "fits", "not converged", "computed by"]
    return table(head, merged(body))


def convergence(results: Results) -> str:
    """Whether all tested models converged, and how far the other fits are from being chosen."""
    tested, margins = [], []
    for row, intercept, loss, _ in results.paths():
        whole = {line.alpha: line for line in results.grid(row, intercept, loss, None)}
        for chosen in results.chosen(row, intercept, loss):
            tested += [chosen, whole[chosen.alpha]]
            grid = results.grid(row, intercept, loss, chosen.seed)
            margins += [
                line.dev_error / chosen.dev_error - 1 for line in grid if not line.converged
            ]
    missing = sum(not line.converged for line in tested)
    said = (
        f"All {len(tested) // 2} models that were chosen on dev, and the models with the same α on "
        "train and dev, converged."
        if not missing
        else f"Of {len(tested)} tested models, {missing} did not converge."
    )
    if margins and not missing:
        said += (
            f" {len(margins)} fits to train did not converge. Their dev errors are at least "
            f"{100 * min(margins):.2g} % above the smallest dev error of their path."
        )
    return said


def truncated(results: Results) -> str:
    """The paths that end before the weakest penalty, and their dev errors there."""
    body: dict[tuple[str, ...], list[str]] = {}
    complete = rising = 0
    for row, intercept, loss, title in results.paths():
        about = name(row), "yes" if intercept else "no", title
        for chosen in results.chosen(row, intercept, loss):
            grid = results.grid(row, intercept, loss, chosen.seed)
            if len(grid) < len(DEFAULT_ALPHAS):
                height = f"{chosen.seed}: {grid[-1].dev_error / chosen.dev_error:.2f}"
                body.setdefault((*about, f"{grid[-1].alpha:g}"), []).append(height)
            elif row[0] in LARGE:
                complete += 1
                errors = [line.dev_error for line in grid[grid.index(chosen) :]]
                rising += errors == sorted(errors)
        whole = results.grid(row, intercept, loss, None)
        if len(whole) < len(DEFAULT_ALPHAS):
            body.setdefault((*about, f"{whole[-1].alpha:g}"), []).append("train and dev")
    if not body:
        return "All paths were fitted over the whole grid."
    head = ["data set", "intercept", "loss", "weakest α", "split: dev error there / smallest"]
    rows = [[*key, ", ".join(heights)] for key, heights in body.items()]
    said = (
        f"{complete} paths of splits of {' and '.join(LARGE)} are complete. In {rising} of them, "
        "the dev error rises from the chosen penalty to the weakest."
    )
    return said + "\n\n" + table(head, rows)


def ends(results: Results) -> str:
    """The choices at the weakest or strongest penalty of the grid."""
    body, total, early = [], 0, 0
    for row, intercept, loss, title in results.paths():
        found: dict[float, list[str]] = {}
        for line in results.chosen(row, intercept, loss):
            total += 1
            if line.alpha in (DEFAULT_ALPHAS[0], DEFAULT_ALPHAS[-1]):
                found.setdefault(line.alpha, []).append(str(line.seed))
            early += line == results.grid(row, intercept, loss, line.seed)[-1]
        body += [
            [name(row), "yes" if intercept else "no", title, f"{alpha:g}", ", ".join(seeds)]
            for alpha, seeds in found.items()
        ]
    count = sum(len(line[-1].split(", ")) for line in body)
    weakest = sum(len(line[-1].split(", ")) for line in body if line[3] == f"{DEFAULT_ALPHAS[0]:g}")
    said = (
        f"Of the {total} choices on dev, {count} are at an end of the grid, so the smallest dev "
        f"error may lie beyond it. {early - weakest or 'None'} are at the last α of a path that "
        "ends early."
    )
    return said + "\n\n" + table(["data set", "intercept", "loss", "α", "splits"], body)


def iterations(results: Results) -> str:
    """Iterations for weak penalties on tmc2007-500, without → with an intercept."""
    row, alphas, body = ("tmc2007-500", "standardize"), (1.0, 0.1, 0.01), []
    for loss, title in zip(PAPER_LOSSES, TITLES, strict=True):
        cells = []
        for alpha in alphas:
            both = [
                [
                    line.n_iter
                    for seed in results.seeds(row, intercept, loss)
                    for line in results.grid(row, intercept, loss, seed)
                    if line.alpha == alpha
                ]
                for intercept in (False, True)
            ]
            cells.append(" → ".join(f"{mean(found):.0f}" for found in both))
        body.append([title, *cells])
    return table(["loss", *(f"α = {alpha:g}" for alpha in alphas)], body)


def merged(body: list[list[str]]) -> list[list[str]]:
    """Merge two lines that are equal for both pairs of losses."""
    out: list[list[str]] = []
    for line in body:
        last = out[-1] if out else None
        if last and last[:2] == line[:2] and last[3] == line[3] and last[5:] == line[5:]:
            out[-1] = [*line[:2], "all four", line[3], str(int(last[4]) + int(line[4])), *line[5:]]
        else:
            out.append(line)
    return out


def cost_table(results: Results) -> str:
    """Mean seconds of one path, if the whole grid was fitted with NumPy."""
    body = []
    for row in results.rows():
        cells = []
        for loss in PAPER_LOSSES:
            grids = [results.grid(row, False, loss, s) for s in results.seeds(row, False, loss)]
            full = [
                sum(line.seconds for line in grid)
                for grid in grids
                if len(grid) == len(DEFAULT_ALPHAS) and all(line.device == "NumPy" for line in grid)
            ]
            cells.append(f"{mean(full):.2g}" if full and len(full) == len(grids) else "–")
        if set(cells) != {"–"}:
            body.append([name(row), *cells])
    return table(["data set", *TITLES], body)


TABLES: dict[str, Callable[[Results], str]] = {
    "train": lambda r: error_table(r, False, "train"),
    "train-far": lambda r: far_from_the_paper(r, "train"),
    "refit": lambda r: error_table(r, False, "train+dev"),
    "refit-far": lambda r: far_from_the_paper(r, "train+dev"),
    "refit-distances": refit_distances,
    "nearest": nearest_table,
    "unfair": unfair_table,
    "between": between_table,
    "starts": starts_table,
    "intercept": lambda r: error_table(r, True, "train"),
    "intercept-difference": lambda r: difference_table(r, "train", "intercept"),
    "intercept-verdicts": intercept_verdicts,
    "intercept-same-alpha": lambda r: difference_table(r, "train", "intercept, same α"),
    "alphas": alpha_table,
    "verdicts": verdicts,
    "runs": runs_table,
    "convergence": convergence,
    "truncated": truncated,
    "ends": ends,
    "iterations": iterations,
    "cost": cost_table,
}
_MARKED = re.compile(r"(<!-- made: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, results: Results) -> str:
    """The page with every marked part replaced."""
    return _MARKED.sub(
        lambda found: f"{found[1]}{paragraphs_of(TABLES[found[2]](results))}\n{found[3]}",
        text,
    )


def paragraphs_of(text: str) -> str:
    """Wrapped sentences, and unchanged tables."""
    return "\n\n".join(
        part if part.startswith("|") else textwrap.fill(part, 100, break_on_hyphens=False)
        for part in text.split("\n\n")
    )


def collect(folders: list[Path]) -> None:
    """Write results/* from records."""
    runs = load_runs(*folders)
    by_dataset: dict[str, list[Line]] = {}
    for key, one in runs.items():
        by_dataset.setdefault(key[0], []).extend(fit_lines(*key, one.grids))
    RESULTS.mkdir(exist_ok=True)
    for dataset, lines in by_dataset.items():
        (RESULTS / f"{dataset}.csv").write_text(to_csv(lines), encoding="utf-8")
    write_models(RESULTS, compared_models(runs))
    differences = difference_lines(read_models(RESULTS))
    DIFFERENCES.write_text(to_csv([*map(vars, differences)]), encoding="utf-8")


def fit_unfair(loss: str, protocol: Protocol) -> list[Line]:
    """Fit unfair to train and dev."""
    experiment = Experiment.of_dataset(load_dataset("unfair"))
    path = FitPath(LossChoice(loss), None)
    with TemporaryDirectory() as folder:
        records = run(experiment, protocol, Path(folder), [path])
        return fit_lines("unfair", protocol.scaling, False, records)


def fit_from_zero() -> None:
    """Fit unfair, standardized, each penalty from zero."""
    lines = [
        line
        for alpha in (0.1, 0.001)
        for loss in PAPER_LOSSES
        for line in fit_unfair(loss, Protocol(alphas=(alpha,), max_iter=50_000))
    ]
    STARTS.write_text(to_csv(lines), encoding="utf-8")


def fit_between() -> None:
    """Fit unfair, as given, with twenty penalties for each power of ten from 1 to 0.01."""
    alphas = tuple(float(f"{10 ** (-step / 20):.3g}") for step in range(41))
    protocol = Protocol(scaling="none", alphas=alphas)
    lines = [line for loss in PAPER_LOSSES for line in fit_unfair(loss, protocol)]
    BETWEEN.write_text(to_csv(lines), encoding="utf-8")


FITS = {"starts": fit_from_zero, "between": fit_between}


def main() -> None:
    """Do the task, if any, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", choices=["collect", *FITS], help="before the page")
    parser.add_argument("folders", nargs="*", type=Path, help="of records, for collect")
    arguments = parser.parse_args()
    if (arguments.task == "collect") != bool(arguments.folders):
        parser.error("collect takes folders of records, and nothing else does")
    if arguments.task == "collect":
        collect(arguments.folders)
    if arguments.task in FITS:
        FITS[arguments.task]()
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), Results.read()), encoding="utf-8")


if __name__ == "__main__":
    main()
