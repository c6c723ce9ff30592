"""From a file as people have them to a model and its predictions, through the command line."""

import io
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from fitzpatrick import get_loss
from fitzpatrick.datasets import DataError, read_inputs
from fitzpatrick.experiments import load_model, model_files
from fitzpatrick.linear_model import ProportionRegressor

# decimal commas, other words for missing values, booleans, codes with leading zeros, an id
HEAD = "id;width;price;colour;sold;zone;genres;kind"
TRAINING = [
    "1;1,5;1.200,50 €;red;yes;007;rock;ant",
    "2;;900,00 €;blue;no;012;jazz|rock;bee",
    "3;2,25;NA;;yes;007;pop;cat",
    "4;-0,75;1.050,00 €;red;;012;rock|pop;ant",
    "5;k. A.;300,25 €;green;no;007;jazz;bee",
    "6;3,125;875,75 €;blue;yes;;pop|jazz;cat",
]
FIT = ("fit", "train.csv", "--targets", "kind", "--missing-values", "k. A.", "--tags", "genres")
FIT += ("--alpha", 0.1, "-o", "m.npz")
# columns in another order, one of them new; gaps where there were none; new words
NEW = """zone,genres,sold,colour,price,width,comment
7,metal,yes,pink,"€1,100.00",0.5,new
012,rock|metal,,red,,,gaps
,,no,,€20.25,k. A.,gaps
007,pop,no,blue,€640.00,2.25,-
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    lines = [
        line.replace(line.split(";")[0], str(10 * i + j), 1).replace(
            ";1,5;", f";{generator.normal():.4f};".replace(".", ",")
        )
        for i in range(8)
        for j, line in enumerate(TRAINING)
    ]
    (tmp_path / "train.csv").write_text("\n".join([HEAD, *lines]) + "\n", encoding="cp1252")
    (tmp_path / "new.csv").write_text(NEW, encoding="utf-8")
    return tmp_path


def predictions(text):
    frame = pd.read_csv(io.StringIO(text))
    return frame.drop(columns="class").to_numpy(), frame["class"].tolist()


def frame(path, **options):
    """The columns that become features, read by pandas."""
    raw = pd.read_csv(path, dtype=str, na_values=["k. A."], **options)
    price = raw["price"].str.replace("€", "").str.strip()
    if path.name == "train.csv":
        raw["width"] = raw["width"].str.replace(",", ".")
        price = price.str.replace(".", "").str.replace(",", ".")
    raw["width"], raw["price"] = (
        raw["width"].astype(float),
        price.str.replace(",", "").astype(float),
    )
    raw["sold"] = raw["sold"].map({"no": 0.0, "yes": 1.0})
    raw[["colour", "zone"]] = raw[["colour", "zone"]].fillna("~missing")
    genres = raw["genres"].fillna("").str.split("|")
    for tag in ("jazz", "pop", "rock"):
        raw[tag] = [float(tag in tags) for tags in genres]
    return raw


def test_saved_models_predict_what_a_pipeline_in_memory_does(run, ok, folder):
    """The pipeline is scikit-learn's, on what pandas reads."""
    out = ok(*FIT)
    assert "48 samples, 16 features, 3 targets (labels)" in out
    said = " ".join(out.split())
    for note in (
        "left out: id (a different number in every row, so probably an identifier)",
        "decimal commas: width, price",
        "marks between thousands are left out: price",
        "the sign € is left out: price",
        "no is 0 and yes is 1: sold",
        "tags, split at '|', a 0/1 feature for each of 3 tags: genres",
        "missing numbers are replaced by the median of the column and marked in a 0/1 feature: "
        "width (16 rows), price (8 rows), sold (8 rows)",
        "missing values become a separate category: colour (8 rows), zone (8 rows)",
    ):
        assert f"note: {note}" in said

    numbers = SimpleImputer(strategy="median", add_indicator=True)
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    pipeline = make_pipeline(
        make_column_transformer(
            (numbers, ["width"]),
            (numbers, ["price"]),
            (words, ["colour"]),
            (numbers, ["sold"]),
            (words, ["zone"]),
            (FunctionTransformer(), ["jazz", "pop", "rock"]),
        ),
        ProportionRegressor("fitzpatrick_logistic", 0.1, standardize=True),
    )
    train = frame(folder / "train.csv", sep=";", encoding="cp1252")
    pipeline.fit(train, pd.get_dummies(train["kind"]).to_numpy(float))
    for name, data in (("train.csv", train), ("new.csv", frame(folder / "new.csv"))):
        code, out, err = run("predict", "m.npz", name)
        assert code == 0
        assert all(line.startswith("note: ") for line in err.splitlines())
        found, classes = predictions(out)
        scores = pipeline[-1].predict_scores(pipeline[:-1].transform(data))
        expected = get_loss("fitzpatrick_logistic").probabilities(scores)
        # nine digits are written; the solver ends at a relative gradient norm of 1e-8 or less
        np.testing.assert_allclose(found, expected, atol=1e-7)
        assert classes == [["ant", "bee", "cat"][i] for i in expected.argmax(axis=1)]
    filled = "missing numbers are replaced by the median of the training file and marked in a 0/1 "
    assert f"{filled}feature: width (2 rows), price (1 row), sold (1 row)\n" in err
    for words in ("colour (1 row: pink)", "genres (2 rows: metal)"):
        assert f"note: values not seen in training are encoded as all zeros: {words}\n" in err


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("0.5,new", "wide,new"), r"line 2: column 'width': 'wide' is not a number"),
        (("sold,", "Sold,"), r"line 1: no column is called 'sold'; the columns are zone, "),
        ((",no,blue", ",maybe,blue"), r"line 5: column 'sold': 'maybe' is neither no nor yes"),
        (("€640.00", "640.00"), r"line 5: column 'price': '640\.00' has no €, as its numbers in"),
    ],
    ids=["word", "column", "boolean", "sign"],
)
def test_predict_names_no_option_that_it_does_not_have(ok, fails, folder, change, problem):
    ok(*FIT)
    assert NEW.count(change[0]) == 1
    (folder / "new.csv").write_text(NEW.replace(*change), encoding="utf-8")
    said = fails("predict", "m.npz", "new.csv")
    assert re.match(rf"new\.csv, {problem}", said)
    assert "--" not in said


def test_predict_without_missing_values(ok, fails, folder):
    """A model of a file that was read with --missing error refuses gaps, without naming options."""
    (folder / "a.csv").write_text("x,c,y\n" + "1,u,a\n2,v,b\n3,v,b\n" * 5)
    (folder / "gap.csv").write_text("x,c\n1,u\n,v\n")
    (folder / "word.csv").write_text("x,c\n1,u\n2,\n")
    fitting = ("--targets", "y", "--missing", "error", "--alpha", 1, "-o", "m.npz")
    ok("fit", "a.csv", *fitting)
    for name, column in (("gap", "x"), ("word", "c")):
        assert fails("predict", "m.npz", f"{name}.csv") == (
            f"{name}.csv, line 3: column '{column}': no value, and the training file was read "
            "without missing values"
        )


def test_compare_repeats_the_options(ok, folder):
    """The line to run next reads and fits the file in the same way, as a shell would take it."""
    text = (folder / "train.csv").read_text(encoding="cp1252").replace("NA", "1.200 €")
    (folder / "train.csv").write_text(text.replace("k. A.", "1,234"), encoding="cp1252")
    (folder / "train.csv").rename("my data.txt")
    given = ("--targets", "kind", "--format", "csv", "--ignore", "id", "--missing", "drop")
    given += ("--kinds", "zone=ignored,colour=category", "--tags", "genres")
    given += ("--missing-values", "k. A.,none", "--decimal", ",", "--no-intercept")
    given += ("--scaling", "none")
    quick = ("--losses", "logistic", "--seeds", 1, "-j", 1, "--model", "linear")
    out = ok("compare", "my data.txt", *given, *quick)
    _, *words = shlex.split(out.splitlines()[-1].removeprefix("next: "))
    assert words[:-4] == ["fit", "my data.txt", *given, "--loss", "logistic"]
    assert words[-4::2] == ["--alpha", "-o"]
    ok(*words)
    model = model_files.load(folder / "model.safetensors")
    assert model.estimator.standardize is False
    columns = model.columns
    assert columns.missing_values == ("k. A.", "none")
    kinds = {column.name: column.kind for column in columns.items}
    assert kinds == {
        "width": "number",
        "price": "number",
        "colour": "category",
        "sold": "boolean",
        "zone": "ignored",
        "genres": "tags",
    }


def test_a_saved_model_in_python(ok, folder):
    """One call; files, data frames and arrays of features give the same predictions."""
    ok(*FIT)
    model = load_model("m.npz")
    assert (model.target_names, model.kind) == (("ant", "bee", "cat"), "labels")
    expected, _ = predictions(ok("predict", "m.npz", "new.csv"))
    np.testing.assert_allclose(model.predict(folder / "new.csv"), expected, atol=1e-9)
    inputs = read_inputs(folder / "new.csv", model.columns)
    np.testing.assert_allclose(model.predict(inputs.X), expected, atol=1e-9)
    raw = pd.read_csv(folder / "new.csv", dtype={"zone": str, "genres": str})
    raw["price"] = [1100.0, np.nan, 20.25, 640.0]
    raw["sold"] = [True, None, False, "no"]
    np.testing.assert_allclose(model.predict(raw), expected, atol=1e-9)
    np.testing.assert_allclose(model.predict(raw.to_dict("list")), expected, atol=1e-9)
    with pytest.raises(ValueError, match="no column is called 'width'; there are zone, genres"):
        model.predict(raw.drop(columns="width"))
    with pytest.raises(ValueError, match="column 'sold', row 2: 'maybe' is neither no nor yes"):
        model.predict(raw.assign(sold=["yes", "maybe", "no", "no"]))
    with pytest.raises(DataError, match="not a model that fitzpatrick saved"):
        load_model("new.csv")


@pytest.mark.parametrize("form", ["csv", "arff"])
def test_columns_are_carried_over(ok, fails, folder, form):
    rows = [f"{i},{i / 7:.3f},'name {i}',{'uv'[i % 2]}" for i in range(20)]
    arff = "@relation r\n@attribute code numeric\n@attribute x numeric\n@attribute who string\n"
    arff += "@attribute y {u,v}\n@attribute on date\n@data\n"
    if form == "arff":
        (folder / "a.arff").write_text(arff + "\n".join(f"{row},2024-01-0{1}" for row in rows))
    else:
        (folder / "a.csv").write_text(
            "code,x,who,y,on\n" + "\n".join(f"{row},2024-01-01".replace("'", '"') for row in rows)
        )
    file = f"a.{form}"
    fitting = ("--targets", "y", "--ignore", "code,who,on", "--alpha", 1, "-o", "m.npz")
    ok("fit", file, *fitting)
    plain = ok("predict", "m.npz", file).splitlines()
    header, *lines = ok("predict", "m.npz", file, "--keep", "who,code,on,y").splitlines()
    assert header == "who,code,on,y,u,v,class"
    for i, line in enumerate(lines):
        assert line == f"name {i},{i},2024-01-01,{'uv'[i % 2]},{plain[i + 1]}"
    assert "is called 'nobody'; the " in fails("predict", "m.npz", file, "--keep", "nobody")


def test_a_sheet_of_a_workbook(run, ok, fails, folder):
    """Both commands read the one that is named; class names are no counts."""
    pd.DataFrame({"x": [1, 2] * 10, "y": ["u", "v"] * 10}).to_csv("a.csv", index=False)
    with pd.ExcelWriter("a.xlsx") as book:
        pd.DataFrame({"about": ["me"]}).to_excel(book, sheet_name="first")
        pd.read_csv("a.csv").to_excel(book, sheet_name="my data", index=False)
    fitting = ("--sheet", "my data", "--targets", "y", "-o", "m.npz", "--alpha", 1)
    ok("fit", "a.xlsx", *fitting)
    found = run("predict", "m.npz", "a.xlsx", "--sheet", "my data", "--keep", "x")
    assert found == run("predict", "m.npz", "a.csv", "--keep", "x")
    assert "; --sheet NAME reads another" in run("predict", "m.npz", "a.xlsx")[2]
    assert fails("fit", "a.xlsx", *fitting, "--loss", "poisson") == (
        "a.xlsx, line 2: target column 'y': 'u' is neither a number, nor no or yes; if these are "
        "class names: fitzpatrick fit --loss fitzpatrick_logistic"
    )


def test_scores_that_overflow_are_said(ok, fails, folder):
    """Coefficients of 1e100 are fine for the file that they come from."""
    (folder / "a.csv").write_text("x,y\n" + "1e-100,u\n-1e-100,v\n" * 20)
    ok("fit", "a.csv", "--targets", "y", "--alpha", 1e-3, "-o", "m.npz")
    ok("predict", "m.npz", "a.csv")
    (folder / "b.csv").write_text("x\n1e-100\n1e300\n")
    said = fails("predict", "m.npz", "b.csv")
    assert said.startswith("b.csv, line 3: the scores overflow: the features or the ")


def test_kept_columns_do_not_hide_predictions(ok, fails, folder):
    (folder / "a.csv").write_text("x,a,a_\n" + "1,0.25,0.75\n2,1,0\n" * 5)
    (folder / "a.svm").write_text("0 1:1\n1 1:2\n")
    ok("fit", "a.csv", "--targets", "a,a_", "--alpha", 1, "-o", "m.npz")
    assert ok("predict", "m.npz", "a.csv", "--keep", "a").startswith("a,a__,a_\n")
    said = fails("predict", "m.npz", "a.svm", "--keep", "a")
    assert said == "a.svm: LIBSVM files have no named columns to keep"
