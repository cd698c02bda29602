"""A user's own images; x* is a region given by boxes or masks."""

from dataclasses import replace
from typing import Literal

from pydantic import Field, model_validator

from lupi.loaders.images.cache import ImageSelection, Loaded
from lupi.loaders.images.layouts.image_folder import ImageFolder
from lupi.loaders.images.parts import DrawParts, divide_images, divided_parts
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
    groups: str | None = None
    """CSV below the root with columns file and group: images of one group, such as a patient's,
    stay in one part. With groups, n_val and n_test are maximum numbers."""
    group_column: str | None = None
    """Column with the groups; by default the only one besides file."""

    @model_validator(mode="after")
    def _has_one_xstar(self) -> "ImageFolderSettings":
        if (self.boxes is None) == (self.masks is None):
            raise ValueError("x* is needed: give either boxes or masks")
        if self.mask_values is not None and self.masks is None:
            raise ValueError("mask_values are for masks, and there are none")
        if self.group_column is not None and self.groups is None:
            raise ValueError("group_column has no effect without groups: set the CSV")
        return self

    def source(self) -> ImageFolder:
        """Return the layout."""
        return ImageFolder(self.labels, self.boxes, self.masks, self.mask_values)

    @property
    def n_held_out_for_test(self) -> int:
        """Test images per class."""
        return self.n_test

    def selection(self) -> ImageSelection:
        """Return the selection of images, with their groups."""
        return replace(super().selection(), groups=self.groups, group_column=self.group_column)


class ImageFolderTask(ImageFilesTask):
    """Images from a folder or a zip."""

    Settings = ImageFolderSettings

    def _replicates(
        self, settings: ImageFilesSettings, loaded: Loaded | Streamed
    ) -> tuple[DrawParts, Design]:
        """Return how each seed draws the parts that the folder does not have."""
        if isinstance(loaded, Streamed) or not loaded.held_out:
            return super()._replicates(settings, loaded)
        s = settings
        groups = s.selection().group_column or "groups"
        division = divide_images(loaded, s.n_val, s.n_held_out_for_test, s.annotated_only, groups)
        return divided_parts(loaded.every, division), division.design
