"""Label proportions of yeast genes: choose penalty and tightness, and compare links.

Run: python examples/sklearn_proportions.py
"""

from fitzpatrick import metrics
from fitzpatrick.datasets import load_dataset
from fitzpatrick.linear_model import ProportionRegressorCV
from fitzpatrick.preprocessing import label_proportions


def main() -> None:
    """Fit one model per link, with alpha and tightness chosen by cross-validation."""
    yeast = load_dataset("yeast")
    y_train, y_test = label_proportions(yeast.train.Y), label_proportions(yeast.test.Y)
    print(
        f"{'loss':24s}{'alpha':>8s}{'tightness':>11s}{'squared error':>15s}"
        f"{'Jensen-Shannon':>16s}{'zeros':>8s}"
    )
    for loss in ("fitzpatrick_logistic", "fitzpatrick_sparsemax"):
        model = ProportionRegressorCV(
            loss,
            alphas=[10.0, 100.0, 1000.0],
            tightnesses=[0.0, 0.5, 1.0],  # from the Fenchel-Young loss to the Fitzpatrick loss
            standardize=True,
            cv=2,
            tol=1e-4,
        )
        model.fit(yeast.train.X, y_train)
        prediction = model.predict(yeast.test.X)
        print(
            f"{loss:24s}{model.alpha_:8g}{model.tightness_:11g}"
            f"{metrics.squared_error(y_test, prediction):15.4f}"
            f"{metrics.jensen_shannon(y_test, prediction):16.4f}"
            f"{metrics.sparsity(prediction):8.1%}"
        )


if __name__ == "__main__":
    main()
