"""The embedded task: cluttered digits, no download."""

from lupi.data.images.digits import DigitsSettings, make_digits
from lupi.tasks.image import ImageNetworkSettings, ImageTask


class DigitsTask(ImageTask):
    """Ten classes of digits in clutter; x* is the digit's box."""

    Settings = DigitsSettings
    Network = ImageNetworkSettings

    def __init__(self, settings: DigitsSettings, network: ImageNetworkSettings) -> None:
        super().__init__(*make_digits(settings), n_classes=10, network=network)
