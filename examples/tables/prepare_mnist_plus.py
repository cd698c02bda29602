"""MNIST+: digits 5 and 8 at 10x10 pixels; x* are poetic descriptions of the 100 training ones.

From the folder with train_features.txt, train_labels.txt, train_PFfeatures.txt and so on (Vapnik
and Vashist 2009):

    python examples/tables/prepare_mnist_plus.py mnist_plus data/mnist-plus

writes train.csv (pixels `p0` … `p99`, poetic features `poetic0` … `poetic20`, `digit`), and
val.csv and test.csv, which have no descriptions.
"""

import sys
from pathlib import Path

import pandas as pd


def read(path: Path, prefix: str) -> pd.DataFrame:
    """Return a file without a header, its columns named prefix0, prefix1, …."""
    frame = pd.read_csv(path, header=None)
    return frame.rename(columns=lambda i: f"{prefix}{i}")


def prepare(source: Path, part: str) -> pd.DataFrame:
    """Return the table of one part."""
    tables = [read(source / f"{part}_features.txt", "p")]
    if part == "train":
        tables.append(read(source / "train_PFfeatures.txt", "poetic"))
    labels = read(source / f"{part}_labels.txt", "digit").rename(columns={"digit0": "digit"})
    return pd.concat([*tables, labels], axis=1)


if __name__ == "__main__":
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "val", "test"):
        prepare(source, part).to_csv(out / f"{part}.csv", index=False)
