"""A classifier with a sparse link in a pipeline and a grid search, on scikit-learn's digits.

Run: python examples/sklearn_classifier.py
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from fitzpatrick.linear_model import FitzpatrickClassifier


def main() -> None:
    """Search over losses and penalties, then look at one prediction."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), FitzpatrickClassifier(tol=1e-5)),
        {
            "fitzpatrickclassifier__loss": ["logistic", "fitzpatrick_logistic", "sparsemax"],
            "fitzpatrickclassifier__alpha": [0.1, 1.0, 10.0],
        },
        cv=3,
    ).fit(X_train, y_train)
    print("best parameters:", search.best_params_)
    print(f"test accuracy:   {search.score(X_test, y_test):.3f}")
    sparse_link = FitzpatrickClassifier("sparsemax", alpha=10.0).fit(X_train, y_train)
    candidates = (sparse_link.predict_proba(X_test) > 0).sum(axis=1)
    print(f"sparsemax keeps {candidates.mean():.2f} of 10 digits as candidates on average")


if __name__ == "__main__":
    main()
