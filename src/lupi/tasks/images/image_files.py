"""Tasks over images in files of any layout: settings, cache and shards."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from lupi.core import Task
from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.loaders.division import Division, GivenParts, given_parts
from lupi.loaders.findings import OnBad
from lupi.loaders.images.batches import StoredImages
from lupi.loaders.images.cache import Loaded, OnDecoded, OpenedImages, load
from lupi.loaders.images.decode import Fit
from lupi.loaders.images.index import ImageSelection, Source
from lupi.loaders.images.remarks import region_remarks
from lupi.loaders.images.shards.format import is_sharded, is_url, read_shards
from lupi.loaders.images.shards.stream import open_stream
from lupi.loaders.images.shards.write import write_shards
from lupi.loaders.images.trees import Tree, open_tree
from lupi.loaders.images.windows import Cropping
from lupi.settings import Settings, TaskSettings
from lupi.subsets import PARTS, Part
from lupi.tasks.images.image import ImageRows, image_task
from lupi.tasks.images.network import ImageNetworkSettings


class AugmentSettings(Settings):
    """Augmentation of training images and their x*."""

    flip: bool = True
    """Mirror a random half of the images, drawn anew in each epoch."""
    pad: int = Field(0, ge=0, le=256)
    """Width of a black border around stored images, from which random crops are taken."""


def _without_detours(root: Any) -> Any:
    """Normalise a path, which is part of a run's identity; leave a URL unchanged."""
    is_path = isinstance(root, Path) or (isinstance(root, str) and not is_url(root))
    return str(Path(root)) if is_path else root


Root = Annotated[str, BeforeValidator(_without_detours)]


class ImageFilesSettings(TaskSettings):
    """Which images, and how they are prepared."""

    root: Root
    """A folder or a zip file of images; or a folder or URL with shards."""
    image_size: int = Field(64, ge=8, le=1024)
    """Height and width in pixels that the network sees."""
    stored_size: int | None = Field(None, ge=8, le=1024)
    """Height and width in the cache, from which crops are taken. By default image_size."""
    fit: Fit = "crop"
    """How an image becomes a square: `crop` keeps its middle, `squash` distorts it."""
    classes: Annotated[int, Field(ge=2)] | tuple[str, ...] | None = None
    """Number of classes (the first n), or a list of names. By default all."""
    n_train: int | None = Field(None, ge=1)
    """Maximum number of training images per class to draw from. By default all."""
    n_val: int = Field(50, ge=1)
    """Validation images per class, held out of the training images if the source has none."""
    annotated_only: bool = False
    """Leave out training images without x*."""
    augment: AugmentSettings = AugmentSettings()
    """`flip` and `pad`."""
    test_crops: Literal["centre", "ten"] = "centre"
    """Test on the middle; `ten`: also on corners and middle, each mirrored too, probabilities
    summed, as `test_ten_crops`."""
    on_bad: OnBad = "stop"
    """What to do about bad files and annotations: stop at the first, or skip and count."""
    content: str | None = None
    """Fingerprint of names, sizes and times of change of the files, filled in by lupi: changed
    images are another run."""
    cache: Path = Path(".lupi-cache")
    """Folder for decoded images; may be deleted at any time."""
    decoders: int = Field(1, ge=1, le=256)
    """Number of threads that decode images from shards."""

    @field_validator("stored_size")
    @classmethod
    def _holds_a_crop(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and value < info.data.get("image_size", 0):
            raise ValueError(f"it must be image_size ({info.data['image_size']}) or more")
        return value

    @field_validator("test_crops")
    @classmethod
    def _has_room(cls, value: str, info: ValidationInfo) -> str:
        size, stored = info.data.get("image_size", 0), info.data.get("stored_size")
        if value == "ten" and (stored or size) == size:
            raise ValueError("ten crops need a stored_size above image_size")
        return value

    @property
    def stored(self) -> int:
        """Height and width in the cache."""
        return self.stored_size or self.image_size

    def with_content(self) -> Self:
        """Return the settings with the fingerprint of the files as they are now."""
        return self.model_copy(update={"content": find_content(self)})

    def tree(self) -> Tree:
        """Return the files."""
        return open_tree(Path(self.root))

    @abstractmethod
    def source(self) -> Source:
        """Return the layout of the files."""

    @property
    def n_held_out_for_test(self) -> int:
        """Test images per class, held out of the training images if the source has none."""
        return 0

    def divide(self, loaded: Loaded) -> Division:
        """Return how seeds divide images: these parts are the same for every seed."""
        return Division(loaded.every.y, given_parts(loaded.sizes), {})

    def selection(self) -> ImageSelection:
        """Return the selection of images that the settings describe."""
        return ImageSelection(
            source=repr(self.source()),
            side=self.stored,
            fit=self.fit,
            classes=self.classes,
            n_train=self.n_train,
            n_val=self.n_val,
            n_test=self.n_held_out_for_test,
            annotated_only=self.annotated_only,
        )


def find_content(settings: ImageFilesSettings) -> str:
    """Return 12 hex digits that depend on the files, or on the images in shards."""
    if is_sharded(settings.root):
        return read_shards(settings.root).rows[:12]
    return settings.tree().fingerprint[:12]


def open_images(
    settings: ImageFilesSettings, on_decoded: OnDecoded = lambda done, total: None
) -> OpenedImages:
    """Return the selected images: streamed from shards, or cached."""
    if is_sharded(settings.root):
        _refuse_change(settings, find_content(settings))
        selection = settings.selection()
        return open_stream(settings.root, selection, settings.on_bad, settings.decoders)
    return load_images(settings, on_decoded)


def load_images(
    settings: ImageFilesSettings, on_decoded: OnDecoded = lambda done, total: None
) -> Loaded:
    """Return the selected images, decoding those that are not in the cache."""
    s, tree = settings, settings.tree()
    _refuse_change(s, tree.fingerprint[:12])
    return load(tree, s.source(), s.selection(), s.cache, s.on_bad, on_decoded)


def _refuse_change(settings: ImageFilesSettings, content: str) -> None:
    if settings.content not in (None, content):
        raise LupiError(
            f"images in {settings.root} have changed since this run was planned; plan it again"
        )


def shard_images(
    settings: ImageFilesSettings, out: Path, shard_size: int, on_decoded: OnDecoded
) -> dict[str, Any]:
    """Write the selected images to shards; return the description that is stored with them."""
    s = settings
    if is_sharded(s.root):
        raise LupiError(f"task.root: {s.root} holds shards; give the files they were made of")
    selection = s.selection()
    return write_shards(Path(s.root), s.source(), selection, out, s.on_bad, shard_size, on_decoded)


def load_image_files(settings: ImageFilesSettings, network: ImageNetworkSettings) -> Task:
    """Return the task of images in files; x* is the region of the object."""
    loaded = open_images(settings)
    sizes = {part: len(images.y) for part, images in loaded.parts.items()}
    division: Division | GivenParts = GivenParts(sizes, lambda seed: loaded.parts["train"].y)
    stores: Mapping[Part, StoredImages] = loaded.parts
    layout: Sequence[Fact] = ()
    folder = None
    remarks = loaded.findings.remarks
    if isinstance(loaded, Loaded):
        division = settings.divide(loaded)
        stores, layout, folder = dict.fromkeys(PARTS, loaded.every), loaded.layout, loaded.folder
        remarks = [*remarks, *region_remarks(loaded.every, loaded.classes)]
    counts, lines = loaded.finding_counts(), loaded.findings.lines()
    rows = ImageRows(
        lambda seed: stores,
        tuple(loaded.classes),
        Cropping(settings.stored, settings.image_size, settings.augment.pad, settings.augment.flip),
        settings.test_crops == "ten",
        settings.fit,
        folder,
        division.draw(0)["train"],
        layout,
        (
            *division.facts(),
            *(Fact("found", line) for line in lines),
            *([Fact("found", f"every file is named in {loaded.about}")] if lines else ()),
        ),
        tuple(remarks),
    )
    return image_task(rows, division, division.design, network, counts)
