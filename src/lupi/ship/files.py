"""Convert image files and folders to x."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lupi.errors import LupiError
from lupi.limits import read_regular
from lupi.loaders.images.decode import BadImageError, decode_image
from lupi.loaders.images.index import has_image_suffix
from lupi.loaders.images.trees import MAX_FILE_BYTES
from lupi.loaders.images.windows import Cropping
from lupi.ship.description import ImageFiles


def find_images(inputs: Iterable[Path]) -> Iterator[Path]:
    """Yield the given files, and all images below the given folders, in order."""
    for path in inputs:
        if path.is_dir():
            found = [p for p in sorted(path.rglob("*")) if has_image_suffix(p.name)]
            if not found:
                raise LupiError(f"folder {path} contains no images")
            yield from found
        else:
            yield path


def encode_image(path: Path, how: ImageFiles) -> Tensor:
    """Return the pixels of a file, (C, size, size) in [0, 1]; raise BadImageError for bad files."""
    try:
        data = read_regular(path, MAX_FILE_BYTES)
    except OSError as error:
        raise BadImageError(error.strerror or str(error)) from None
    pixels = torch.from_numpy(decode_image(data, how.stored_size, how.fit).pixels.copy())
    if how.n_channels == 1:
        pixels = pixels.float().mean(0, keepdim=True).round().byte()  # (1, S, S)
    cropping = Cropping(how.stored_size, how.image_size)
    return cropping.cut(pixels[None], cropping.centre(1))[0].float() / 255


def encode_images(inputs: Any, how: ImageFiles) -> Tensor:
    """Return the pixels of files, (B, C, size, size)."""
    if isinstance(inputs, str | Path) or not isinstance(inputs, Sequence) or not len(inputs):
        raise LupiError(f"this student predicts images: expected a list of files, got {inputs!r}")
    encoded = []
    for path in inputs:
        try:
            encoded.append(encode_image(Path(path), how))
        except BadImageError as error:
            raise LupiError(f"{path}: {error}") from None
    return torch.stack(encoded)
