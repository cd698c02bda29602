"""Read the inputs of `lupi predict` in batches."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.images.decode import BadImageError
from lupi.ship.description import Description, Encoded, ImageFiles
from lupi.ship.predictor import Predictor
from lupi.ship.rows import RowReader
from lupi.ship.texts import TextEncoder

STDIN = Path("-")


class Inputs(NamedTuple):
    """A batch of valid inputs, and the invalid ones."""

    names: list[dict[str, Any]]
    """For each row of x: its `input` (a file) and its `row` there, from 1."""
    x: NDArray[Any]
    bad: list[str]
    """The invalid inputs, with reasons."""
    n_before_bad: int
    """Number of rows of x before the first invalid input; all rows if none is invalid."""
    ignored: Sequence[str] = ()
    """Columns found so far that the student does not use."""


def read_inputs(
    student: Predictor,
    paths: Sequence[Path],
    stdin: Iterable[str],
    batch_size: int,
    texts: Sequence[str] = (),
) -> Iterator[Inputs]:
    """Yield batches of inputs.

    Args:
        student: The student that predicts them.
        paths: Files; `-` is stdin: rows as CSV, names of images, or one text per line.
        stdin: Lines of stdin.
        batch_size: Number of rows per batch.
        texts: Texts to predict before the paths.
    """
    description = student.description
    if description.texts is not None:
        encoder = TextEncoder(description.texts, student.pieces)
        return _read_texts(encoder, texts, paths, stdin, batch_size)
    if texts:
        raise LupiError("--input: this student does not predict texts")
    if description.images is not None:
        return _read_images(description.images, _listed(paths, stdin), batch_size)
    return _read_rows(description, paths or [STDIN], stdin, batch_size)


def default_batch_size(description: Description, paths: Sequence[Path]) -> int:
    """Return a number of inputs per batch: rows of files are many and small; streams wait."""
    reads_rows = description.texts is None and description.images is None
    return 4096 if reads_rows and paths and STDIN not in paths else 128


def _listed(paths: Sequence[Path], stdin: Iterable[str]) -> Iterator[Path]:
    if not paths:
        raise LupiError(
            "this student predicts images: give files or folders, or - for a list from stdin"
        )
    for path in paths:
        if path == STDIN:
            yield from (Path(line.rstrip("\r\n")) for line in stdin if line.strip())
        else:
            yield path


def _read_images(how: ImageFiles, paths: Iterable[Path], batch_size: int) -> Iterator[Inputs]:
    import torch

    from lupi.ship.files import encode_image, find_images

    files = find_images(paths)
    while chunk := list(islice(files, batch_size)):
        names, encoded, n_before = [], [], 0
        bad: list[str] = []
        for path in chunk:
            try:
                encoded.append(encode_image(path, how))
                names.append({"input": str(path)})
                n_before += not bad
            except BadImageError as error:
                bad.append(f"{path}: {error}")
        empty = torch.empty(0, how.n_channels, how.image_size, how.image_size)
        yield Inputs(names, (torch.stack(encoded) if encoded else empty).numpy(), bad, n_before)


def _read_rows(
    description: Description, paths: Sequence[Path], stdin: Iterable[str], batch_size: int
) -> Iterator[Inputs]:
    reader = RowReader(description.encoder(), description.csv, batch_size)
    for path in paths:
        where = "stdin" if path == STDIN else str(path)
        rows = reader.read_csv(stdin, where) if path == STDIN else reader.read(path)
        for batch in rows:
            yield _named_rows(where, batch, tuple(reader.ignored))


def _read_texts(
    encoder: TextEncoder,
    texts: Sequence[str],
    paths: Sequence[Path],
    stdin: Iterable[str],
    batch_size: int,
) -> Iterator[Inputs]:
    sources = {"--input": encoder.read_lines(texts, "--input", batch_size)} if texts else {}
    for path in paths or ([] if texts else [STDIN]):
        if path == STDIN:
            sources["stdin"] = encoder.read_lines(stdin, "stdin", batch_size)
        else:
            sources[str(path)] = encoder.read(path, batch_size)
    for where, batches in sources.items():
        for batch in batches:
            yield _named_rows(where, batch)


def _named_rows(where: str, batch: Encoded, ignored: Sequence[str] = ()) -> Inputs:
    numbers, x, bad = batch
    names = [{"input": where, "row": number} for number in numbers]
    reasons = [f"{where}, row {number}: {why}" for number, why in bad]
    n_before_bad = sum(not bad or number < bad[0][0] for number in numbers)
    return Inputs(names, x, reasons, n_before_bad, ignored)
