"""A user's own images; x* is a region given by boxes or masks."""

from typing import Literal

from pydantic import Field, model_validator

from lupi.loaders.images.cache import Loaded
from lupi.loaders.images.layouts.image_folder import ImageFolder
from lupi.loaders.images.parts import DrawParts, drawn_parts
from lupi.loaders.images.shards.stream import Streamed
from lupi.records import Design
from lupi.tasks.images.image_files import ImageFilesSettings, ImageFilesTask


class ImageFolderSettings(ImageFilesSettings):
    """Labels from folders or a CSV; x* from a CSV, COCO JSON, VOC XML or mask images."""

    name: Literal["image-folder"] = "image-folder"
    labels: str | None = None
    """CSV below the root with columns file, label, part. By default folders are the classes."""
    boxes: str | None = None
    """Below the root: CSV (file, x0, y0, x1, y1), COCO JSON, or a folder of PASCAL VOC XML files
    (`.`: beside the images)."""
    masks: str | None = None
    """Folder below the root with masks: each image's path, with .png."""
    mask_values: tuple[int, ...] | None = Field(None, min_length=1)
    """Pixel values of masks on the object, such as 1 in trimaps; by default all but 0."""
    n_val: int = Field(10, ge=1)
    """Validation images per class that each seed draws if the folder has none."""
    n_test: int = Field(20, ge=1)
    """Test images per class that each seed draws if the folder has none."""

    @model_validator(mode="after")
    def _has_one_xstar(self) -> "ImageFolderSettings":
        if (self.boxes is None) == (self.masks is None):
            raise ValueError("x* is needed: give either boxes or masks")
        if self.mask_values is not None and self.masks is None:
            raise ValueError("mask_values are for masks, and there are none")
        return self

    def source(self) -> ImageFolder:
        """Return the layout."""
        return ImageFolder(self.labels, self.boxes, self.masks, self.mask_values)

    @property
    def n_held_out_for_test(self) -> int:
        """Test images per class."""
        return self.n_test


class ImageFolderTask(ImageFilesTask):
    """Images from a folder or a zip."""

    Settings = ImageFolderSettings

    def _replicates(
        self, settings: ImageFilesSettings, loaded: Loaded | Streamed
    ) -> tuple[DrawParts, Design]:
        """Return how each seed draws the parts that the folder does not have."""
        if isinstance(loaded, Streamed) or not loaded.held_out:
            return super()._replicates(settings, loaded)
        n_test = settings.n_held_out_for_test
        draw = drawn_parts(loaded, settings.n_val, n_test, settings.annotated_only)
        pool = len(loaded.train.y) + len(loaded.val.y if "val" in loaded.held_out else ())
        if "test" not in loaded.held_out:
            return draw, Design(n_pool=pool, test="fixed", n_test=len(loaded.test.y))
        return draw, Design(len(loaded.every.y), "per-seed", n_test=len(loaded.test.y))
