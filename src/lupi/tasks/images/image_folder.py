"""A user's own images; x* is a region given by boxes or masks."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from lupi.core import TaskKind
from lupi.errors import LupiError
from lupi.loaders.division import Division, check_groups, given_parts
from lupi.loaders.images.cache import Loaded
from lupi.loaders.images.folder import ImageFolder
from lupi.loaders.images.trees import Tree, with_outside
from lupi.loaders.split_columns import subgroups_of
from lupi.subsets import Part, Subgroups
from lupi.tasks.images.image_files import ImageFilesSettings, load_image_files
from lupi.tasks.images.network import ImageNetworkSettings


def _plain_path(path: Any) -> Any:
    """Return a path without a trailing slash and other detours."""
    return str(Path(path)) if isinstance(path, str | Path) else path


Given = Annotated[str | None, BeforeValidator(_plain_path)]
"""A path below the root, or of a file or folder elsewhere."""


class ImageFolderSettings(ImageFilesSettings):
    """Images of any layout: what is not given is found by the names of the files."""

    name: Literal["image-folder"] = "image-folder"
    labels: Given = None
    """CSV with columns file, label and perhaps part. By default folders are the classes, or what
    annotations say."""
    boxes: Given = None
    """Annotations: a file (COCO, Label Studio, CVAT, or CSV with file, x0, y0, x1, y1) or a folder
    of PASCAL VOC or YOLO files (`.`: beside the images). By default what is found."""
    masks: Given = None
    """Folder with masks, named as the images. By default where names say that they are masks."""
    mask_values: tuple[int, ...] | None = Field(None, min_length=1)
    """Pixel values of masks on the object, such as 1 in trimaps; by default all but 0."""
    n_val: int = Field(10, ge=1)
    """Validation images per class that each seed draws if the folder has none."""
    n_test: int = Field(20, ge=1)
    """Test images per class that each seed draws if the folder has none."""
    groups: Given = None
    """CSV with columns file and group: images of one group, such as a patient's, stay in one part.
    With groups, n_val and n_test are maximum numbers. By default groups.csv, if there is one."""
    group_column: str | None = None
    """Column with the groups; by default the only one besides file."""
    by: str | None = None
    """Column of the CSV with labels or groups whose values are subgroups: results are shown for
    each of them, too. Of a number with many values, subgroups are quarters of the images."""

    @model_validator(mode="after")
    def _has_one_xstar(self) -> "ImageFolderSettings":
        if self.boxes is not None and self.masks is not None:
            raise ValueError("give either boxes or masks, not both")
        if self.mask_values is not None and self.boxes is not None:
            raise ValueError("mask_values are for masks, and boxes are given")
        if self.group_column is not None and self.groups is None:
            raise ValueError("group_column has no effect without groups: set the CSV")
        return self

    def tree(self) -> Tree:
        """Return the files, also those that are given and not below the root."""
        return with_outside(super().tree(), (self.labels, self.boxes, self.masks, self.groups))

    def source(self) -> ImageFolder:
        """Return the layout."""
        return ImageFolder(
            self.labels, self.boxes, self.masks, self.mask_values, self.groups, self.group_column
        )

    def divide(self, loaded: Loaded) -> Division:
        """Return how each seed draws the parts that the folder does not have."""
        groups = self.group_column or "groups"
        division = (
            _drawn(loaded, self.n_val, self.n_test, self.annotated_only, groups)
            if loaded.held_out
            else super().divide(loaded)
        )
        return division if self.by is None else replace(division, by=self._subgroups(loaded))

    def _subgroups(self, loaded: Loaded) -> Subgroups:
        import pandas as pd

        cells = self.source().column(self.tree(), str(self.by))
        values = pd.Series([cells.get(int(key)) or None for key in loaded.keys])
        numbers = pd.to_numeric(values, errors="coerce")
        is_number = bool(numbers.notna().equals(values.notna()))
        return subgroups_of([numbers if is_number else values], str(self.by))

    @property
    def n_held_out_for_test(self) -> int:
        """Test images per class."""
        return self.n_test


def _drawn(loaded: Loaded, n_val: int, n_test: int, annotated_only: bool, groups: str) -> Division:
    """Let each seed draw the parts that the source does not have, class by class or by group."""
    images, y = loaded.every, loaded.every.y
    rows = given_parts(loaded.sizes)
    amounts: dict[Part, int] = {"val": n_val, "test": n_test}
    drawn = {part: amounts[part] for part in loaded.held_out}
    pool = np.concatenate([rows["train"], *(rows[part] for part in drawn)])
    given = {part: some for part, some in rows.items() if part not in drawn} | {"train": pool}
    counts, n_needed = np.bincount(y[pool]), sum(drawn.values()) + 1
    if counts.min() < n_needed:
        raise LupiError(
            f"class {loaded.classes[int(counts.argmin())]} has {counts.min()} images that can be "
            f"used; {n_needed} are needed: lower task.n_val or task.n_test"
        )
    if loaded.groups is not None:
        named = np.array(loaded.group_names, dtype=object)[loaded.groups]
        check_groups({part: named[some] for part, some in given.items()})
    return Division(
        y,
        given,
        drawn,
        loaded.groups,
        keys=loaded.keys,
        trainable=images.has_region if annotated_only and drawn else None,
        names={"groups": groups},
    )


ImageFolderTask = TaskKind(ImageFolderSettings, ImageNetworkSettings, load_image_files)
