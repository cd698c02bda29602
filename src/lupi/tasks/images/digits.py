"""The embedded task, cluttered digits, which needs no download."""

from functools import partial

from lupi.loaders.images.digits import N_DIGITS, N_TEST, TEST_REPEATS, DigitsSettings, make_digits
from lupi.loaders.images.parts import ImageParts, all_rows
from lupi.records import Design
from lupi.tasks.images.image import ImageTask
from lupi.tasks.images.network import ImageNetworkSettings


class DigitsTask(ImageTask):
    """Ten classes of digits in clutter; x* is the digit's box."""

    Settings = DigitsSettings
    Network = ImageNetworkSettings

    def __init__(self, settings: DigitsSettings, network: ImageNetworkSettings) -> None:
        design = Design(n_pool=N_DIGITS, test="per-seed", n_test=N_TEST * TEST_REPEATS)
        super().__init__(partial(_draw, settings), design, n_classes=10, network=network)


def _draw(settings: DigitsSettings, seed: int) -> ImageParts:
    return ImageParts(*(all_rows(images) for images in make_digits(settings, seed)))
