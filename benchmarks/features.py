"""The cost of frozen features: their extraction, and a comparison that uses them.

    python benchmarks/features.py                (rate of extraction, about a minute on one core)
    python benchmarks/features.py --compare      (6 arms x 2 sizes x 8 seeds on 300 images, too)

The rate of extraction (reading stored images, mirroring, conversion to half precision) is compared
with the forward pass of EfficientNet-Lite0 alone, in turns in one process. The comparison is timed
once with `lupi compare`, with its features, verdict and report.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import yaml
from PIL import Image

from lupi.loaders.images.batches import Images
from lupi.loaders.images.maps import AT_ONCE, cached_maps
from lupi.networks.backbones import load_backbone
from turns import Row, Timing, print_rows, time_in_turns

SIDE = 128
N_IMAGES, CLASSES = 300, ("dot", "bar", "ring")


def extraction(rounds: int) -> Row:
    """Time the extraction of maps against the backbone's own forward pass on the same pixels."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (2 * AT_ONCE, 3, SIDE, SIDE), dtype=np.uint8)
    images, backbone = (
        Images(x, np.zeros(len(x), dtype=np.int64), np.zeros((len(x), 4), dtype=np.int64)),
        load_backbone("efficientnet-lite0"),
    )
    pixels = torch.from_numpy(x).float() / 255

    def extract() -> None:
        cached_maps(images, backbone, "", mirrored=False, folder=None)

    @torch.inference_mode()
    def forward() -> None:
        for some in pixels.split(AT_ONCE):
            backbone(some)

    return time_in_turns(
        "extraction of maps", "efficientnet-lite0", extract, "forward", forward, rounds
    )


def write_images(folder: Path) -> None:
    """Write images with a small mark of one of three kinds on noise, and the boxes of the marks."""
    rng, lines = np.random.default_rng(0), ["file,x0,y0,x1,y1"]
    for i in range(N_IMAGES):
        kind = CLASSES[i % len(CLASSES)]
        pixels = rng.integers(60, 190, (SIDE, SIDE, 3), dtype=np.uint8)
        x, y, n = *rng.integers(4, SIDE - 24, 2), 16
        mark = np.zeros((n, n), dtype=bool)
        mark[4:12, 4:12] = kind != "bar"
        mark[6:10, 6:10] = kind == "dot"
        mark[7:9] |= kind == "bar"
        pixels[y : y + n, x : x + n][mark] = 255
        path = folder / "images" / kind / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
        lines.append(f"{kind}/{i}.png,{x},{y},{x + n},{y + n}")
    (folder / "boxes.csv").write_text("\n".join(lines) + "\n")


def comparison(workers: int) -> float:
    """Return the seconds of a comparison on new images, from their files to the report."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_images(folder / "data")
        sizes = {"n_val": 10, "n_test": 30, "image_size": SIDE}
        settings = {
            "name": "features",
            "task": {"name": "image-folder", "root": "data", "boxes": "boxes.csv", **sizes},
            "network": {"name": "efficientnet-lite0", "pooling": "both"},
            "train": {
                "epochs": 4,
                "steps_per_epoch": 25,
                "batch_size": 16,
                "optimizer": "adamw",
                "lr": 0.005,
                "schedule": "one-cycle",
            },
            "arms": {
                "no-xstar": {"method": "no-xstar"},
                "mean": {"method": "no-xstar", "network": {"pooling": "mean"}},
                "guided-attention": {"method": "guided-attention", "controls": ["shuffled"]},
                "het-dropout": {"method": "het-dropout", "controls": ["shuffled"]},
            },
            "sizes": [60, 120],
            "seeds": 8,
        }
        (folder / "features.yaml").write_text(yaml.safe_dump(settings))
        command = ["-m", "lupi", "compare", "features.yaml", "--workers", str(workers), "--quiet"]
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], cwd=folder, check=True)
        return time.perf_counter() - started


def main() -> None:
    """Measure what the command line asks for."""
    parser = Timing(__doc__, "not used")
    parser.add_argument("--compare", action="store_true", help="also time a comparison")
    parser.add_argument("--workers", type=int, default=2, help="workers of the comparison")
    given = parser.parse_args()
    row = extraction(given.rounds)
    print_rows([row], given.json)
    print(f"rate of extraction: {1 / row['ratio']:.0%} of the forward pass alone")
    if given.compare:
        print(f"6 arms x 2 sizes x 8 seeds: {comparison(given.workers):.1f} s")


if __name__ == "__main__":
    main()
