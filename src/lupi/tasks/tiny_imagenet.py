"""Tiny ImageNet: x* is the box of the object."""

from lupi.data.tiny_imagenet import TinyImagenet
from lupi.tasks.picture_files import AugmentSettings, PictureFilesSettings, PictureFilesTask


class TinyImagenetSettings(PictureFilesSettings):
    """The official layout; its validation pictures are the test set."""

    augment: AugmentSettings = AugmentSettings(pad=4)
    """`flip` and `pad`."""

    def source(self) -> TinyImagenet:
        """Return the official layout."""
        return TinyImagenet()


class TinyImagenetTask(PictureFilesTask):
    """Tiny ImageNet from a folder or straight from the zip."""

    Settings = TinyImagenetSettings
