"""Vectors of a folder of images, by name: `files` (N,) and `features` (N, D) in an npz file.

The file is written regularly, so that interrupted work can be resumed.
"""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lupi.errors import LupiError
from lupi.files import write_whole
from lupi.limits import read_regular
from lupi.loaders.images.decode import BadImageError, decode_image
from lupi.unpack import read_arrays

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")
AT_ONCE = 16
SAVED_EVERY = 1024


def list_images(folder: Path) -> list[str]:
    """Return the names of all images in a folder and below, relative to it."""
    if not folder.is_dir():
        raise LupiError(f"{folder} is not a folder")
    paths = (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    names = sorted(path.relative_to(folder).as_posix() for path in paths)
    if not names:
        raise LupiError(f"{folder} has no images in it; known: {', '.join(SUFFIXES)}")
    return names


def write_vectors(
    folder: Path,
    names: list[str],
    encode: Callable[[Tensor], Tensor],
    side: int,
    about: str,
    out: Path,
) -> Generator[str | None]:
    """Write the vectors of the images that `out` does not have yet.

    Args:
        folder: of the images.
        names: of the images, relative to the folder.
        encode: images (B, 3, side, side), bytes, to vectors (B, D).
        side: pixels.
        about: what `encode` is; vectors of something else are not mixed with it.
        out: npz file.

    Yields:
        For each image None, or what is wrong with it: it is left out.
    """
    done = _read(out, about)
    new = [name for name in names if name not in done]
    n_saved = len(done)
    for start in range(0, len(new), AT_ONCE):
        pixels: dict[str, NDArray[np.uint8]] = {}
        for name in new[start : start + AT_ONCE]:
            problem = None
            try:
                pixels[name] = decode_image(read_regular(folder / name), side, "crop").pixels
            except (BadImageError, OSError) as error:
                problem = f"{name}: unreadable image: {error}"
            yield problem
        if pixels:
            vectors = encode(torch.from_numpy(np.stack(list(pixels.values()))))
            done |= zip(pixels, vectors.half().numpy(), strict=True)
        if len(done) >= n_saved + SAVED_EVERY:
            _write(out, done, about)
            n_saved = len(done)
    if not done:
        raise LupiError(f"none of the images in {folder} can be read")
    _write(out, done, about)


def _read(path: Path, about: str) -> dict[str, NDArray[Any]]:
    if not path.exists():
        return {}
    try:
        arrays = read_arrays(path)
        if str(arrays["about"]) == about:
            return dict(zip(arrays["files"].tolist(), arrays["features"], strict=True))
        found = str(arrays["about"])
    except (LupiError, TypeError, ValueError, KeyError) as error:
        raise LupiError(f"{path} exists but was not written by `lupi features`: {error}") from None
    raise LupiError(f"{path} has vectors by {found}, not {about}; choose another --out")


def _write(path: Path, vectors: dict[str, NDArray[Any]], about: str) -> None:
    names = sorted(vectors)

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(
                file,
                files=np.array(names),
                features=np.stack([vectors[name] for name in names]),
                about=np.array(about),
            )

    write_whole(path, write)
