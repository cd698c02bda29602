"""x* of sentences: a vector for some or all lines of a text, from arrays or from captions.

- `.npy`: (N, D), a row for each line.
- `.npz`: `S_features` (M, D), and `S_rows` (M,) if only some lines have one: their numbers from 0.
  S is the split's name; `features` and `rows` alone stand for training lines. Or `features` and
  `files`, with a text that names the image of each line (what `lupi features` writes).
- any other file: a line of text for each line, perhaps empty, which becomes a vector by TF-IDF and
  a truncated SVD, both learned from the training lines of a run.

Every dimension is then standardised by its mean and deviation over the training lines of a run.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.unpack import read_arrays
from lupi_paper.translation.text.parallel_text import is_blank, read_lines

Floats = NDArray[np.float32]
MIN_DEVIATION = 1e-6


class Vectors(NamedTuple):
    """x* of the lines of one text."""

    values: Floats
    """(N, D), zeros where there is none"""
    has: NDArray[np.bool_]
    """(N,)"""
    n_bad: int
    """Lines whose vector was not finite and counts as missing."""


class VectorFiles:
    """The files that vectors of lines come from; nothing is learned from them yet.

    Args:
        template: path of the file; `{split}` is replaced by the split's name.
        images: path of the file that names the image of each line, likewise; None: not needed.
        split: the training split's name.
        n_lines: how many lines the training text has.
        n_dims: dimensions that captions become.
        skip_bad: whether a vector that is not finite counts as missing, or stops.
    """

    def __init__(
        self,
        template: str,
        images: str | None,
        split: str,
        n_lines: int,
        n_dims: int,
        skip_bad: bool,
    ) -> None:
        self._template, self._images, self._skip_bad = template, images, skip_bad
        self._n_dims = n_dims
        self._path = file_of(template, split)
        self._captions: list[str] | None = None
        if self._path.suffix not in (".npy", ".npz"):
            self._captions = _lines_for(self._path, n_lines)
            self.has = np.array([not is_blank(line) for line in self._captions])
            self.n_bad = 0
        else:
            self._train = self._read(split, n_lines, alone=True)
            self.has, self.n_bad = self._train.has, self._train.n_bad
        if not self.has.any():
            raise LupiError(f"task.xstar: {self._path} has no vector for any training line")

    def fit(self, rows: NDArray[np.int64]) -> "FittedVectors":
        """Learn from the training lines of a run how lines become vectors."""
        if self._captions is None:
            return FittedVectors(
                self,
                None,
                self._train._replace(values=self._train.values[rows], has=self._train.has[rows]),
            )
        captions = [self._captions[row] for row in rows]
        encode = _learn_caption_encoder(captions, self._n_dims, self._path)
        return FittedVectors(self, encode, Vectors(encode(captions), self.has[rows], 0))

    def read(
        self, split: str, n_lines: int, encode: Callable[[list[str]], Floats] | None
    ) -> Vectors:
        """Return the vectors of another split, captions by an encoder."""
        if encode is None:
            return self._read(split, n_lines, alone=False)
        captions = _lines_for(file_of(self._template, split), n_lines)
        has = np.array([not is_blank(line) for line in captions])
        return Vectors(encode(captions), has, 0)

    def _read(self, split: str, n_lines: int, alone: bool) -> Vectors:
        path = file_of(self._template, split)
        arrays = _arrays(path)
        if "files" in arrays:
            features, rows = self._by_image(arrays, path, split, n_lines)
        else:
            features, rows = _by_line(arrays, path, split, alone)
        return _placed(features, rows, n_lines, path, self._skip_bad)

    def _by_image(
        self, arrays: Mapping[str, Any], path: Path, split: str, n_lines: int
    ) -> tuple[Any, Any]:
        if self._images is None:
            raise LupiError(
                f"task.images: {path} has vectors by the names of images; name the file that "
                "has the image of each line"
            )
        named = _lines_for(file_of(self._images, split), n_lines, "task.images")
        if "features" not in arrays or arrays["features"].shape[:1] != arrays["files"].shape:
            raise LupiError(f"task.xstar: {path} must have a row of `features` for each of `files`")
        place = {name: i for i, name in enumerate(arrays["files"].tolist())}
        rows = [row for row, name in enumerate(named) if name.strip() in place]
        features = arrays["features"][[place[named[row].strip()] for row in rows]]
        return features, np.array(rows, dtype=np.int64)


class FittedVectors:
    """Vectors of the training lines of a run, and of other lines in the same way.

    Args:
        files: what they are read from.
        encode: captions to vectors; None: the files hold vectors.
        train: vectors of the training lines as they were read.
    """

    def __init__(
        self, files: VectorFiles, encode: Callable[[list[str]], Floats] | None, train: Vectors
    ) -> None:
        self._files, self._encode = files, encode
        self.n_dims = train.values.shape[1]
        known = train.values[train.has] if train.has.any() else np.zeros_like(train.values[:1])
        self._mean = known.mean(0)
        self._deviation = np.maximum(known.std(0), MIN_DEVIATION)
        self.train = self._standardised(train)

    def of(self, split: str, n_lines: int) -> Vectors:
        """Return the vectors of another split: for an oracle only."""
        vectors = self._files.read(split, n_lines, self._encode)
        if (n_dims := vectors.values.shape[1]) != self.n_dims:
            raise LupiError(
                f"task.xstar: the file of {split} has vectors of {n_dims} dimensions, those of "
                f"training lines have {self.n_dims}"
            )
        return self._standardised(vectors)

    def _standardised(self, vectors: Vectors) -> Vectors:
        values = (vectors.values - self._mean) / self._deviation
        return vectors._replace(values=np.where(vectors.has[:, None], values, np.float32(0)))


def file_of(template: str, split: str) -> Path:
    """Return the path for a template."""
    return Path(template.replace("{split}", split))


def _lines_for(path: Path, n_lines: int, key: str = "task.xstar") -> list[str]:
    """Read a text that has a line for each line of another."""
    if not path.is_file():
        raise LupiError(f"{key}: {path} does not exist")
    lines = read_lines(path)
    if len(lines) != n_lines:
        raise LupiError(
            f"{key}: {path} has {len(lines)} lines for a text of {n_lines}; give one line for "
            "each, empty where there is none"
        )
    return lines


def _learn_caption_encoder(
    captions: list[str], n_dims: int, path: Path
) -> Callable[[list[str]], Floats]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    tfidf = TfidfVectorizer(sublinear_tf=True, min_df=min(2, len(captions)))
    try:
        counts = tfidf.fit_transform(captions)
    except ValueError:
        raise LupiError(f"task.xstar: {path} has no words that occur in two lines") from None
    svd = TruncatedSVD(min(n_dims, min(counts.shape) - 1) or 1, random_state=0)
    with np.errstate(invalid="ignore"):  # captions that are all the same vary in nothing
        svd.fit(counts)

    def encode(lines: list[str]) -> Floats:
        vectors: Floats = svd.transform(tfidf.transform(lines)).astype(np.float32)
        return vectors

    return encode


def _arrays(path: Path) -> Mapping[str, NDArray[Any]]:
    try:
        return read_arrays(path)
    except LupiError as error:
        raise LupiError(f"task.xstar: {error}") from None


def _by_line(
    arrays: Mapping[str, NDArray[Any]], path: Path, split: str, alone: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return features (M, D), and the lines (M,) that they are of; None: all."""
    is_npy = path.suffix == ".npy"
    prefix = "" if is_npy or (alone and "features" in arrays) else f"{split}_"
    if f"{prefix}features" not in arrays:
        raise LupiError(
            f"task.xstar: {path} has no array {prefix}features; it has {', '.join(arrays)}"
        )
    return arrays[f"{prefix}features"], arrays.get(f"{prefix}rows")


def _placed(
    features: NDArray[Any],
    rows: NDArray[Any] | None,
    n_lines: int,
    path: Path,
    skip_bad: bool,
) -> Vectors:
    """Put features (M, D) at the lines that they are of."""
    if features.ndim != 2 or not features.shape[1] or features.dtype.kind not in "fiu":
        raise LupiError(
            f"task.xstar: features in {path} must be numbers (lines, dimensions), got "
            f"{features.dtype} {features.shape}"
        )
    if rows is None:
        if len(features) != n_lines:
            raise LupiError(
                f"task.xstar: {path} has {len(features)} vectors for a text of {n_lines} lines; "
                "where some lines have none, say which have one: an .npz with `features` and `rows`"
            )
        rows = np.arange(n_lines)
    if rows.shape != (len(features),) or rows.dtype.kind not in "iu":
        raise LupiError(
            f"task.xstar: rows in {path} must be one line number for each of {len(features)} "
            f"vectors, got {rows.dtype} {rows.shape}"
        )
    if len(rows) and (rows.min() < 0 or rows.max() >= n_lines or len(np.unique(rows)) < len(rows)):
        raise LupiError(
            f"task.xstar: rows in {path} must be distinct line numbers from 0 to {n_lines - 1}, "
            f"got {len(np.unique(rows))} distinct ones from {rows.min()} to {rows.max()}"
        )
    with np.errstate(over="ignore"):  # too large for 32 bits: not finite
        good = np.isfinite(features.astype(np.float32)).all(1)
    if not (good.all() or skip_bad):
        raise LupiError(
            f"task.xstar: {(~good).sum()} vectors in {path} are not finite, the first for line "
            f"{rows[~good][0] + 1}; compute them again, or let them count as missing: on_bad: skip"
        )
    values = np.zeros((n_lines, features.shape[1]), dtype=np.float32)
    has = np.zeros(n_lines, dtype=np.bool_)
    values[rows[good]] = features[good]
    has[rows[good]] = True
    return Vectors(values, has, int((~good).sum()))
