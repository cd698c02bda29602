from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lupi.errors import LupiError
from lupi_paper.translation.text.sentence_vectors import FittedVectors, VectorFiles

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(3, 2, (6, 4)).astype(np.float16)


def load(
    template: Path, n_lines: int = 6, skip_bad: bool = False, images: Path | None = None
) -> FittedVectors:
    named = None if images is None else str(images)
    files = VectorFiles(str(template), named, "train", n_lines, 3, skip_bad)
    return files.fit(np.arange(n_lines))


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_every_dimension_is_standardised_by_training_lines(tmp_path: Path) -> None:
    path = save(tmp_path / "f.npz", train_features=FEATURES, val_features=FEATURES[:2])
    files = load(path)
    assert files.n_dims == 4
    assert np.allclose(files.train.values.mean(0), 0, atol=1e-5)
    assert np.allclose(files.train.values.std(0), 1, atol=1e-5)
    assert np.allclose(files.of("val", 2).values, files.train.values[:2])


def test_some_lines_may_have_none(tmp_path: Path) -> None:
    rows = np.array([7, 1, 4, 3, 0, 9])
    train = load(save(tmp_path / "f.npz", features=FEATURES, rows=rows), n_lines=10).train
    assert np.flatnonzero(train.has).tolist() == sorted(rows.tolist())
    assert not train.values[~train.has].any()
    order = np.argsort(FEATURES[:, 0])
    assert np.array_equal(np.argsort(train.values[rows, 0]), order)


def test_an_array_alone_has_a_row_for_each_line(tmp_path: Path) -> None:
    np.save(tmp_path / "train.npy", FEATURES)
    assert load(tmp_path / "{split}.npy").train.has.all()


def test_captions_become_vectors(tmp_path: Path) -> None:
    lines = ["a red dog runs", "a red dog sleeps", "two boats sail", "boats sail away", "", "a dog"]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "val.txt").write_text("a red dog\nunheard words\n")
    files = load(tmp_path / "{split}.txt")
    assert files.train.has.tolist() == [True] * 4 + [False, True]
    dog, _, boat = files.train.values[:3]
    val = files.of("val", 2).values
    assert val.shape == (2, files.n_dims)
    assert np.linalg.norm(val[0] - dog) < np.linalg.norm(val[0] - boat)


def test_vectors_by_image_go_to_the_lines_that_name_it(tmp_path: Path) -> None:
    files = np.array([f"{i}.jpg" for i in range(6)])
    path = save(tmp_path / "f.npz", files=files, features=FEATURES)
    (tmp_path / "train.names").write_text("5.jpg\nnone.jpg\n2.jpg\n5.jpg\n")
    train = load(path, n_lines=4, images=tmp_path / "{split}.names").train
    assert train.has.tolist() == [True, False, True, True]
    assert np.array_equal(train.values[0], train.values[3])
    with pytest.raises(LupiError, match=r"task.images: .* by the names of images"):
        load(path)


NAN = FEATURES.copy()
NAN[2, 1] = np.nan


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"train_features": FEATURES[:5]}, "has 5 vectors for a text of 6 lines"),
        ({"features": FEATURES[0]}, r"must be numbers \(lines, dimensions\), got float16 \(4,\)"),
        ({"features": FEATURES.astype(str)}, r"must be numbers \(lines, dimensions\)"),
        ({"val_features": FEATURES}, "has no array train_features; it has val_features"),
        ({"features": FEATURES, "rows": np.arange(5)}, "one line number for each of 6 vectors"),
        ({"features": FEATURES, "rows": np.arange(6) + 1}, "distinct line numbers from 0 to 5"),
        ({"features": FEATURES, "rows": np.zeros(6, int)}, "got 1 distinct ones from 0 to 0"),
        ({"features": NAN}, "1 vectors in .* are not finite, the first for line 3"),
    ],
)
def test_bad_arrays(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        load(save(tmp_path / "f.npz", **arrays))


def test_vectors_that_are_not_finite_may_count_as_missing(tmp_path: Path) -> None:
    train = load(save(tmp_path / "f.npz", features=NAN), skip_bad=True).train
    assert train.n_bad == 1
    assert train.has.tolist() == [True, True, False, True, True, True]
    assert np.isfinite(train.values).all()


def test_other_splits_have_the_same_dimensions(tmp_path: Path) -> None:
    path = save(tmp_path / "f.npz", train_features=FEATURES, val_features=FEATURES[:, :3])
    with pytest.raises(LupiError, match="vectors of 3 dimensions, those of training lines have 4"):
        load(path).of("val", 6)


@pytest.mark.parametrize("name", ["none.npz", "none.npy", "none.txt"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(LupiError, match=rf"task.xstar: .*{name} does not exist"):
        load(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"\x80\x04pickle"])
def test_a_file_that_is_no_array_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.npz").write_bytes(content)
    with pytest.raises(LupiError, match="can't be read as arrays"):
        load(tmp_path / "f.npz")


def test_captions_have_as_many_lines_as_the_text(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a dog\na dog\n")
    with pytest.raises(LupiError, match="has 2 lines for a text of 6"):
        load(tmp_path / "train.txt")
    (tmp_path / "train.txt").write_text("\n" * 6)
    with pytest.raises(LupiError, match="has no vector for any training line"):
        load(tmp_path / "train.txt")
    (tmp_path / "train.txt").write_text("one\ntwo\nthree\nfour\nfive\nsix\n")
    with pytest.raises(LupiError, match="no words that occur in two lines"):
        load(tmp_path / "train.txt")
