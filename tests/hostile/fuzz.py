"""Fuzz readers of text, guided by coverage: python tests/hostile/fuzz.py xml -max_total_time=180.

By hand, where atheris is installed. It ends with the first error that is no word to the user.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

try:
    import atheris  # type: ignore[import-untyped]
except ModuleNotFoundError:
    sys.exit("this needs atheris: pip install atheris")

with atheris.instrument_imports(include=["lupi", "yaml"]):
    from lupi.errors import LupiError
    from lupi.loaders.findings import Findings
    from lupi.loaders.images.annotations.read import find_annotations, read_annotations
    from lupi.loaders.images.annotations.voc import read_voc
    from lupi.loaders.images.annotations.xml import BadXmlError
    from lupi.loaders.images.names import ImageNames
    from lupi.loaders.images.trees import open_tree
    from lupi.settings import override, read_yaml

FOLDER = Path(tempfile.mkdtemp())
SEEDS = {
    "yaml": b"a: &a {b: [1, 2.5e-3, null]}\nc: {<<: *a}\nd: |\n  text\n",
    "xml": b"<annotation><size><width>9</width><height>9</height></size><object><bndbox>"
    b"<xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object></annotation>",
    "json": b'{"images": [{"id": 1, "file_name": "1.png", "width": 9, "height": 9}], '
    b'"annotations": [{"image_id": 1, "bbox": [1, 2, 3, 4]}]}',
    "csv": b"file,x0,y0,x1,y1\n1.png,1,2,3,4\n",
}


def read_as_boxes(path: Path) -> None:
    tree, names = open_tree(path.parent), ImageNames(["1.png"])
    for found in find_annotations(tree, names, path.name):
        read_annotations(tree, found, names, Findings("skip"))


READERS: dict[str, Callable[[Path], object]] = {
    "yaml": lambda path: override(read_yaml(path), []),
    "xml": lambda path: read_voc(path.read_bytes()),
    "json": read_as_boxes,
    "csv": read_as_boxes,
}


def main() -> None:
    kind = sys.argv.pop(1)
    path = FOLDER / f"fuzzed.{kind}"
    seeds = FOLDER / "seeds"
    seeds.mkdir()
    (seeds / "0").write_bytes(SEEDS[kind])

    def try_it(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(LupiError, BadXmlError):
            READERS[kind](path)

    atheris.Setup([*sys.argv, str(seeds)], try_it)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
