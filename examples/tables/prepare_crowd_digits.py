"""Digits labelled by models: a crowd that is made up, whose mistakes nobody made up.

    python examples/tables/prepare_crowd_digits.py data/crowd-digits.csv

scikit-learn's 1,797 handwritten digits, labelled again by 60 classifiers of different quality. Each
annotator is a decision tree, a naive Bayes model or a nearest-neighbour model that saw 10 to 150
digits and a part of the pixels; so it errs where digits look alike to it. 600 digits are for
training annotators and do not stand in the table. Each of the others is shown to three annotators.

A row is an answer: the pixels `p0` … `p63`, the `answer`, the `annotator`, how sure they were
(`sureness`, the probability they gave to their answer), the `item` and the true `digit`.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

N_ANNOTATORS, N_TO_LEARN, N_ANSWERS = 60, 600, 3


def annotator(rng: np.random.Generator, pixels: Any, digits: Any) -> Any:
    """Return a function from pixels to probabilities: a model that saw some digits in part."""
    rows = rng.choice(len(pixels), int(np.exp(rng.uniform(np.log(10), np.log(150)))), replace=False)
    seen = rng.permutation(64)[: rng.integers(8, 65)]
    models = [
        DecisionTreeClassifier(max_depth=8, random_state=0),
        GaussianNB(var_smoothing=0.1),
        KNeighborsClassifier(min(3, len(rows))),
    ]
    model = models[rng.integers(3)].fit(pixels[rows][:, seen], digits[rows])

    def answer(shown: Any) -> tuple[Any, Any]:
        chances = model.predict_proba(shown[:, seen])
        return model.classes_[chances.argmax(1)], chances.max(1)

    return answer


def prepare(seed: int = 0) -> pd.DataFrame:
    """Return a row for each answer, three for each item."""
    rng = np.random.default_rng(seed)
    pixels, digits = load_digits(return_X_y=True)
    order = rng.permutation(len(digits))
    learn, items = order[:N_TO_LEARN], order[N_TO_LEARN:]
    crowd = [annotator(rng, pixels[learn], digits[learn]) for _ in range(N_ANNOTATORS)]
    who = np.stack([rng.permutation(N_ANNOTATORS)[:N_ANSWERS] for _ in items])
    parts = []
    for name, answer in enumerate(crowd):
        shown = np.flatnonzero((who == name).any(1))
        answers, sureness = answer(pixels[items[shown]])
        rows = pd.DataFrame(pixels[items[shown]].astype(int), columns=[f"p{i}" for i in range(64)])
        parts.append(
            rows.assign(
                item=shown,
                annotator=f"a{name:02d}",
                sureness=sureness.round(3),
                answer=answers,
                digit=digits[items[shown]],
            )
        )
    return pd.concat(parts).sort_values(["item", "annotator"], ignore_index=True)


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    prepare().to_csv(out, index=False)
