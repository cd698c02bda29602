"""Draw where two students look: the picture at the top of README.md.

    lupi compare images/pcb-tiles --set task.root=pcb-tiles.zip
    python tools/looks.py runs/pcb-tiles/RUN runs/pcb-tiles/RUN docs/images/inspection.png

The first run is a plain student, the second a taught one of the same seed. The images are those
that every run with attention keeps: evenly spaced over the test rows, not selected.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

matplotlib.use("Agg")


def draw(plain: Path, taught: Path, out: Path) -> None:
    """Write rows of images: x, x*, the attention of the plain student and of the taught one."""
    left, right = (np.load(run / "attention.npz", allow_pickle=False) for run in (plain, taught))
    images, n = left["x"], len(left["x"])
    assert (images == right["x"]).all(), "the runs have other test rows"
    pale = 0.55 + 0.45 * images.mean(3) / 255
    titles = ("x", "x*: the defect", "plain student", "taught by x*")
    figure, axes = plt.subplots(4, n, figsize=(1.5 * n + 0.3, 6.2), layout="constrained")
    for row, title in enumerate(titles):
        axes[row, 0].set_ylabel(title, fontsize=11)
    for i in range(n):
        for axis in axes[:, i]:
            axis.set(xticks=[], yticks=[])
        axes[0, i].imshow(images[i])
        axes[1, i].imshow(images[i])
        axes[1, i].contour(left["mask"][i] > 0, levels=[0.5], colors="#e67700", linewidths=2.5)
        for axis, run in ((axes[2, i], left), (axes[3, i], right)):
            side = images.shape[1]
            axis.imshow(pale[i], cmap="gray", vmin=0, vmax=1, extent=(0, side, side, 0))
            share = run["attention"][i] / run["attention"][i].max()
            axis.imshow(
                share,
                cmap="Reds",
                vmin=0,
                vmax=1,
                alpha=np.sqrt(share) * 0.9,
                extent=(0, side, side, 0),
                interpolation="bilinear",
            )
    figure.savefig(out, dpi=100)


if __name__ == "__main__":
    draw(*(Path(argument) for argument in sys.argv[1:]))
