"""Tiny ImageNet: x* is the box of the object."""

from typing import Literal

from lupi.loaders.images.layouts.tiny_imagenet import TinyImagenet
from lupi.tasks.images.image_files import AugmentSettings, ImageFilesSettings, load_image_files
from lupi.tasks.images.network import ImageNetworkSettings
from lupi.tasks.task import TaskKind


class TinyImagenetSettings(ImageFilesSettings):
    """The official layout; its validation images are the test set."""

    name: Literal["tiny-imagenet"] = "tiny-imagenet"
    augment: AugmentSettings = AugmentSettings(pad=4)
    """`flip` and `pad`."""

    def source(self) -> TinyImagenet:
        """Return the official layout."""
        return TinyImagenet()


TinyImagenetTask = TaskKind(TinyImagenetSettings, ImageNetworkSettings, load_image_files)
