"""Label proportions of yeast genes: choose alpha, compare losses, read the predictions.

Run: python examples/sklearn_proportions.py
"""

from fitzpatrick import metrics
from fitzpatrick.datasets import load_dataset
from fitzpatrick.linear_model import ProportionRegressorCV
from fitzpatrick.preprocessing import label_proportions


def main() -> None:
    """Fit one model per loss and print its test errors."""
    yeast = load_dataset("yeast")
    y_train, y_test = label_proportions(yeast.train.Y), label_proportions(yeast.test.Y)
    print(f"{'loss':24s}{'alpha':>8s}{'squared error':>15s}{'Jensen-Shannon':>16s}{'zeros':>8s}")
    for loss in ("logistic", "fitzpatrick_logistic", "sparsemax", "fitzpatrick_sparsemax"):
        model = ProportionRegressorCV(loss, standardize=True, cv=3, tol=1e-5)
        model.fit(yeast.train.X, y_train)
        prediction = model.predict(yeast.test.X)
        print(
            f"{loss:24s}{model.alpha_:8g}{metrics.squared_error(y_test, prediction):15.4f}"
            f"{metrics.jensen_shannon(y_test, prediction):16.4f}"
            f"{metrics.sparsity(prediction):8.1%}"
        )


if __name__ == "__main__":
    main()
