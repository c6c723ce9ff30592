"""A classifier on digits: a pipeline, a grid search over the tightness, and a sparse link.

Run: python examples/sklearn_classifier.py
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from fitzpatrick.linear_model import FitzpatrickClassifier


def main() -> None:
    """Search tightness and penalty, then count the candidates of a sparse link."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), FitzpatrickClassifier(tol=1e-5)),
        {
            # 0 is cross-entropy, 1 the Fitzpatrick logistic loss
            "fitzpatrickclassifier__tightness": [0.0, 0.5, 1.0],
            "fitzpatrickclassifier__alpha": [0.1, 1.0],
        },
        cv=2,
    ).fit(X_train, y_train)
    print("best parameters:", search.best_params_)
    print(f"test accuracy:   {search.score(X_test, y_test):.3f}")
    sparse_link = FitzpatrickClassifier("sparsemax", alpha=10.0, tol=1e-5).fit(X_train, y_train)
    candidates = (sparse_link.predict_proba(X_test) > 0).sum(axis=1)
    print(f"sparsemax keeps {candidates.mean():.2f} of 10 digits as candidates on average")


if __name__ == "__main__":
    main()
