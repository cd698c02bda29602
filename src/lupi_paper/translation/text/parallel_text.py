"""Parallel text: two files, where line i of one is the translation of line i of the other."""

from dataclasses import dataclass
from pathlib import Path

from lupi.errors import LupiError
from lupi.limits import read_regular
from lupi.unpack import read_gzip


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sentences and their translations."""

    source: list[str]
    target: list[str]
    name: str
    """Of the files, without folder and language."""

    def __len__(self) -> int:
        return len(self.source)


def split_name(text: str) -> str:
    """Return the name of a text up to its first dot, such as `train` of `train.lc.norm.tok`."""
    return text.split(".", 1)[0]


def read_pairs(root: Path, name: str, source: str, target: str) -> Pairs:
    """Read `name.source` and `name.target` in a folder, plain or with `.gz` after it."""
    paths = [find_text(root, f"{name}.{language}") for language in (source, target)]
    pairs = Pairs(read_lines(paths[0]), read_lines(paths[1]), name)
    if len(pairs.source) != len(pairs.target):
        raise LupiError(
            f"{paths[0]} has {len(pairs.source)} lines, {paths[1]} has {len(pairs.target)}: line i "
            "of one must be the translation of line i of the other; pair them again"
        )
    if not pairs.source:
        raise LupiError(f"{paths[0]} is empty; give one sentence on each line")
    return pairs


def find_text(root: Path, name: str) -> Path:
    """Return the path of a text, plain or compressed."""
    for path in (root / name, root / f"{name}.gz"):
        if path.is_file():
            return path
    raise LupiError(
        f"{root / name} does not exist, nor does {name}.gz; a text is a file "
        "`<task.train>.<task.source>` in the folder task.root"
    )


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file; only a newline ends one, as in other tools."""
    try:
        raw = read_gzip(path) if path.suffix == ".gz" else read_regular(path)
    except OSError as error:
        raise LupiError(f"{path} can't be read: {error}") from None
    lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, str(path), number) for number, line in enumerate(lines, start=1)]


def decode_line(line: bytes, where: str, number: int) -> str:
    """Return a line as text, without its end; a byte that is not UTF-8 is an error."""
    try:
        return line.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError as error:
        raise LupiError(
            f"{where}, line {number}: byte {line[error.start]:#04x} at place {error.start + 1} is "
            "not UTF-8; convert the text, for instance with `iconv -f latin1 -t utf-8`"
        ) from None


def is_blank(line: str) -> bool:
    """Tell whether there is nothing to translate."""
    return not line.strip()
