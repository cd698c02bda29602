"""Draw where the students of a comparison look, as one PNG: x, x*, and the attention of two arms.

    python tools/draw_looks.py runs/pcb-tiles --arms no-xstar guided-attention --out looks.png

A row is a test image that the first seed recorded (`attention.npz`); none of them is selected.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from lupi.records import read_comparison
from lupi.unpack import read_arrays

SIDE, GAP, HEAD = 150, 8, 22
OUTLINE = (255, 176, 0)


def over(image: NDArray[np.uint8], attention: NDArray[np.float32]) -> Image.Image:
    """Return an image, dark where the attention is low."""
    share = attention / max(float(attention.max()), 1e-9)
    heat = Image.fromarray((255 * share).astype(np.uint8)).resize((SIDE, SIDE), 1)
    weight = np.asarray(heat, dtype=np.float64)[..., None] / 255
    shown = np.asarray(_shown(image), dtype=np.float64)
    red = np.array([255.0, 60.0, 0.0])
    mixed = shown * 0.35 * (1 - weight) + (0.55 * shown + 0.45 * red) * weight
    return Image.fromarray(mixed.astype(np.uint8))


def outlined(image: NDArray[np.uint8], mask: NDArray[np.uint8]) -> Image.Image:
    """Return an image with a box around its region."""
    shown = _shown(image)
    rows, columns = np.nonzero(mask)
    scale = SIDE / mask.shape[0]
    ends = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    ImageDraw.Draw(shown).rectangle([int(end * scale) for end in ends], outline=OUTLINE, width=3)
    return shown


def _shown(image: NDArray[np.uint8]) -> Image.Image:
    return Image.fromarray(image).convert("RGB").resize((SIDE, SIDE), 1)


def main() -> None:
    """Draw the images of the first seed at the largest size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparison", type=Path)
    parser.add_argument("--arms", nargs=2, default=["no-xstar", "guided-attention"])
    parser.add_argument("--n", type=int, default=3, help="number of images")
    parser.add_argument("--out", type=Path, default=Path("looks.png"))
    given = parser.parse_args()
    record = read_comparison(given.comparison)
    size = max(run.plan.size for run in record.finished)
    arrays = []
    for arm in given.arms:
        run = next(r for r in record.finished if r.plan.arm == arm and r.plan.size == size)
        arrays.append(read_arrays(run.folder / "attention.npz"))
    first, second = arrays
    heads = ["x", "x*: the defect", "plain attention", "attention taught by x*"]
    n = min(given.n, len(first["x"]))
    step = len(first["x"]) // n
    width, height = 4 * (SIDE + GAP) - GAP, HEAD + n * (SIDE + GAP) - GAP
    sheet = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(sheet)
    for column, head in enumerate(heads):
        draw.text((column * (SIDE + GAP) + 4, 5), head, fill="black")
    for row in range(n):
        i = row * step
        panels = [
            _shown(first["x"][i]),
            outlined(first["x"][i], first["mask"][i]),
            over(first["x"][i], first["attention"][i]),
            over(second["x"][i], second["attention"][i]),
        ]
        for column, panel in enumerate(panels):
            sheet.paste(panel, (column * (SIDE + GAP), HEAD + row * (SIDE + GAP)))
    sheet.save(given.out, optimize=True)


if __name__ == "__main__":
    main()
