"""Make large data, and measure what lupi takes to read it: seconds, and the most memory.

    python large.py table t.parquet --rows 10000000    # a table of 12 columns
    python large.py images tree --images 1281167       # ImageNet's layout in names: hard links
    python large.py index tree                         # list, choose classes and rows, hold out
    lupi ... ; the tables of docs/sizing.md name the commands

The images are real files of 32 x 32 pixels under many names, so that nothing is decoded for long
and the disk holds them. Half of them have an XML file with a box, as in ImageNet.
"""

import argparse
import os
import resource
import sys
import time
from pathlib import Path

N_FILES = 64
"""Different images and XML files that all names are links to."""
MOST_LINKS = 50_000
"""To one file; some file systems allow 65,000."""
ROWS_AT_ONCE = 1_000_000

XML = """<annotation><size><width>32</width><height>32</height></size><object><bndbox>
<xmin>{0}</xmin><ymin>{0}</ymin><xmax>{1}</xmax><ymax>{1}</ymax></bndbox></object></annotation>"""


def make_table(path: Path, n_rows: int) -> None:
    """Write a Parquet file: x0 … x8, two columns of x*, and a class y that depends on them."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, n_rows - start)
        columns = {f"x{i}": rng.standard_normal(n, dtype=np.float32) for i in range(9)}
        s0 = columns["x0"] + 0.5 * rng.standard_normal(n, dtype=np.float32)
        s1 = columns["x1"] * columns["x2"] + 0.5 * rng.standard_normal(n, dtype=np.float32)
        y = np.where(s0 + s1 + rng.standard_normal(n) > 0, "yes", "no")
        table = pa.table({**columns, "s0": s0, "s1": s1, "y": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def make_images(root: Path, n_images: int, n_classes: int) -> None:
    """Write train/<class>/*.JPEG and Annotation/<class>/*.xml, links to a few files."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(0)
    files = root / ".files"
    files.mkdir(parents=True)
    for part in range(-(-n_images // MOST_LINKS // N_FILES) or 1):
        for i in range(N_FILES):
            pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(files / f"{part}-{i}.JPEG")
            (files / f"{part}-{i}.xml").write_text(XML.format(i % 8, 16 + i % 16))
    for c in range(n_classes):
        wnid = f"n{c:08}"
        for folder in ("train", "Annotation"):
            (root / folder / wnid).mkdir(parents=True)
        for i in range(n_images * c // n_classes, n_images * (c + 1) // n_classes):
            source = f"{i // MOST_LINKS // N_FILES}-{i % N_FILES}"
            os.link(files / f"{source}.JPEG", root / f"train/{wnid}/{wnid}_{i}.JPEG")
            if i % 2:
                os.link(files / f"{source}.xml", root / f"Annotation/{wnid}/{wnid}_{i}.xml")


def index(root: Path) -> None:
    """List the files, read the annotations, and choose the images of the paper's smallest file."""
    from lupi.loaders.findings import Findings
    from lupi.loaders.images.index import hold_out, pick_classes
    from lupi.loaders.images.trees import open_tree
    from lupi_paper.images.imagenet import Imagenet

    tree = _said("list names, sizes and times", lambda: open_tree(root))
    findings = Findings("stop")
    found = _said("index images and annotations", lambda: Imagenet().index(tree, findings))
    _, items = _said("choose classes", lambda: pick_classes(found, None, findings))
    parts = _said("hold out 50 + 50, take 75", lambda: hold_out(items, 50, 50, 75))
    print({part: len(rows) for part, rows in parts.items()})


def _said(what, do):  # type: ignore[no-untyped-def]
    started = time.perf_counter(), time.process_time()
    result = do()
    seconds, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what:32} {seconds:7.1f} s, {cpu:7.1f} s of CPU, {peak:.2f} GB at most so far")
    return result


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    table = verbs.add_parser("table")
    table.add_argument("path", type=Path)
    table.add_argument("--rows", type=int, default=10_000_000)
    images = verbs.add_parser("images")
    images.add_argument("path", type=Path)
    images.add_argument("--images", type=int, default=1_281_167)
    images.add_argument("--classes", type=int, default=1000)
    verbs.add_parser("index").add_argument("path", type=Path)
    given = parser.parse_args(sys.argv[1:])
    if given.verb == "table":
        make_table(given.path, given.rows)
    elif given.verb == "images":
        make_images(given.path, given.images, given.classes)
    else:
        index(given.path)


if __name__ == "__main__":
    main()
