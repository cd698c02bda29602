"""Small trees of images in the layouts that people have."""

import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

RED, BLUE = (220, 20, 20), (20, 20, 220)


def save_image(
    path: Path,
    size: tuple[int, int] = (64, 64),
    box: tuple[int, int, int, int] | None = None,
    seed: int = 0,
) -> None:
    """Save a blue image with some noise, red inside the box (end excluded)."""
    width, height = size
    pixels = np.empty((height, width, 3))
    pixels[:] = BLUE
    if box is not None:
        x0, y0, x1, y1 = box
        pixels[y0:y1, x0:x1] = RED
    pixels += np.random.default_rng(seed).normal(0, 5, pixels.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, quality=95)


def tiny_imagenet(root: Path, n_classes: int = 3, n_train: int = 6, n_val: int = 2) -> Path:
    """Make Tiny ImageNet in small: class i has its box at column 8 * i."""
    wnids = [f"n{i:08}" for i in range(n_classes)]
    val = []
    for i, wnid in enumerate(wnids):
        x0, y0, x1, y1 = 8 * i, 16, 8 * i + 20, 48
        lines = []
        for j in range(n_train):
            file = f"{wnid}_{j}.JPEG"
            save_image(
                root / "train" / wnid / "images" / file, box=(x0, y0, x1, y1), seed=100 * i + j
            )
            lines.append(f"{file}\t{x0}\t{y0}\t{x1 - 1}\t{y1 - 1}\n")
        (root / f"train/{wnid}/{wnid}_boxes.txt").write_text("".join(lines))
        for j in range(n_val):
            file = f"val_{i * n_val + j}.JPEG"
            save_image(root / "val/images" / file, box=(x0, y0, x1, y1), seed=900 + 10 * i + j)
            val.append(f"{file}\t{wnid}\t{x0}\t{y0}\t{x1 - 1}\t{y1 - 1}\n")
    (root / "wnids.txt").write_text("\n".join(wnids) + "\n")
    (root / "val/val_annotations.txt").write_text("".join(val))
    return root


def zipped(folder: Path, path: Path) -> Path:
    """Zip a folder, itself included."""
    with zipfile.ZipFile(path, "w") as file:
        for member in sorted(folder.rglob("*")):
            file.write(member, member.relative_to(folder.parent))
    return path


def annotation(*boxes: tuple[int, int, int, int], size: tuple[int, int] = (80, 60)) -> str:
    """Write boxes as ImageNet's localisation data do."""
    objects = "".join(
        f"<object><name>thing</name><bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin>"
        f"<xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox></object>"
        for x0, y0, x1, y1 in boxes
    )
    width, height = size
    return (
        f"<annotation><folder>x</folder><size><width>{width}</width><height>{height}</height>"
        f"<depth>3</depth></size>{objects}</annotation>"
    )


def imagenet(root: Path, n_classes: int = 2, n_images: int = 6) -> Path:
    """Make ImageNet CLS-LOC in small: of each class, image 0 has two boxes, the last has none."""
    for i in range(n_classes):
        wnid = f"n{i:08}"
        for j in range(n_images):
            name = f"{wnid}_{j}"
            save_image(root / f"train/{wnid}/{name}.JPEG", (80, 60), (20, 10, 50, 40), 10 * i + j)
            boxes = [(20, 10, 50, 40), (60, 40, 70, 60)][: 2 if j == 0 else 1]
            if j < n_images - 1:
                path = root / f"Annotation/{wnid}/{name}.xml"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(annotation(*boxes))
    return root


def image_folder(root: Path, n_classes: int = 2, n_images: int = 6) -> Path:
    """Make images by class, with boxes in boxes.csv: column 10 for cats, 30 for dogs."""
    lines = ["file,x0,y0,x1,y1"]
    for i, name in enumerate(["cats", "dogs", "emus"][:n_classes]):
        for j in range(n_images):
            x0 = 10 + 20 * i
            file = f"{name}/{j}.png"
            save_image(root / file, box=(x0, 20, x0 + 16, 52), seed=10 * i + j)
            lines.append(f"{file},{x0},20,{x0 + 16},52")
    (root / "boxes.csv").write_text("\n".join(lines) + "\n")
    return root
