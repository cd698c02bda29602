"""The embedded task, cluttered digits, which needs no download."""

from lupi.core import Task, TaskKind
from lupi.design import Design
from lupi.loaders.division import GivenParts
from lupi.loaders.images.digits import N_DIGITS, N_TEST, DigitsSettings, make_digits
from lupi.loaders.images.windows import Cropping
from lupi.subsets import PARTS
from lupi.tasks.images.image import ImageRows, image_task
from lupi.tasks.images.network import ImageNetworkSettings


def load_digits(settings: DigitsSettings, network: ImageNetworkSettings) -> Task:
    """Return ten classes of digits in clutter; x* is the digit's box. Each seed makes its own."""
    first = make_digits(settings, 0)
    side = first[0].shape[1]
    rows = ImageRows(
        lambda seed: dict(zip(PARTS, make_digits(settings, seed), strict=True)),
        tuple(str(i) for i in range(10)),
        Cropping(side, side),
    )
    sizes = {part: len(images.y) for part, images in zip(PARTS, first, strict=True)}
    division = GivenParts(sizes, lambda seed: make_digits(settings, seed)[0].y)
    design = Design(n_pool=N_DIGITS, test="per-seed", n_test=N_TEST)  # digits, not images
    return image_task(rows, division, design, network)


DigitsTask = TaskKind(DigitsSettings, ImageNetworkSettings, load_digits)
