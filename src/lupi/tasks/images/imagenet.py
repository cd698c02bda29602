"""ImageNet CLS-LOC: x* is the region of the object's boxes."""

from typing import Literal

from pydantic import Field

from lupi.loaders.images.layouts.imagenet import Imagenet
from lupi.tasks.images.image_files import ImageFilesSettings, load_image_files
from lupi.tasks.images.network import ImageNetworkSettings
from lupi.tasks.task import TaskKind


class ImagenetSettings(ImageFilesSettings):
    """Class folders with PASCAL-style boxes; validation and test are held out of train."""

    name: Literal["imagenet"] = "imagenet"
    image_size: int = Field(224, ge=8, le=1024)
    """Height and width in pixels that the network sees."""
    stored_size: int | None = Field(256, ge=8, le=1024)
    """Height and width in the cache, of which crops are taken."""
    n_test: int = Field(50, ge=1)
    """Test images per class, held out of train: with 1000 classes the paper's 50,000."""
    annotations: str | None = None
    """Folder of `<wnid>/*.xml` below the root. By default one of the usual ones."""

    def source(self) -> Imagenet:
        """Return the layout of ImageNet."""
        return Imagenet(self.annotations)

    @property
    def n_held_out_for_test(self) -> int:
        """Test images per class."""
        return self.n_test


ImagenetTask = TaskKind(ImagenetSettings, ImageNetworkSettings, load_image_files)
