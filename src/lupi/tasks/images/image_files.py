"""Tasks over images in files, whatever their layout: settings, and the way to cache or shards."""

from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from lupi.data.findings import OnBad
from lupi.data.images.cache import ImageSelection, Loaded, load
from lupi.data.images.decode import Fit
from lupi.data.images.layouts.index import Source
from lupi.data.images.layouts.trees import open_tree
from lupi.data.images.parts import DrawParts, fixed_parts
from lupi.data.images.shards.format import is_sharded, read_content
from lupi.data.images.shards.remote import is_url
from lupi.data.images.shards.stream import Streamed, open_stream
from lupi.data.images.shards.write import write_shards
from lupi.data.images.windows import Cropping
from lupi.data.images.writer import OnDecoded
from lupi.errors import LupiError
from lupi.records import Design
from lupi.settings import Settings
from lupi.tasks.images.image import ImageNetworkSettings, ImageTask


class AugmentSettings(Settings):
    """What happens to training images, and to their x* with them."""

    flip: bool = True
    """Mirror half of the images, drawn anew each time."""
    pad: int = Field(0, ge=0, le=256)
    """Crops lie anywhere in the stored image with a black border of so many pixels around."""


def _without_detours(root: Any) -> Any:
    """Write a path in one way only, as it is a part of a run's identity; leave a URL as it is."""
    is_path = isinstance(root, Path) or (isinstance(root, str) and not is_url(root))
    return str(Path(root)) if is_path else root


Root = Annotated[str, BeforeValidator(_without_detours)]


class ImageFilesSettings(Settings):
    """Which images, and how they are shown."""

    root: Root
    """A folder or a zip file; or where shards of one are, a folder or a URL."""
    image_size: int = Field(64, ge=8, le=1024)
    """Height and width in pixels that the network sees."""
    stored_size: int | None = Field(None, ge=8, le=1024)
    """Height and width in the cache, of which crops are taken. By default image_size."""
    fit: Fit = "crop"
    """How an image becomes a square: `crop` shows its middle, `squash` distorts it."""
    classes: Annotated[int, Field(ge=2)] | tuple[str, ...] | None = None
    """The first n, or a list of names. By default all."""
    n_train: int | None = Field(None, ge=1)
    """Training images per class to choose from, at most. By default all."""
    n_val: int = Field(50, ge=1)
    """Validation images per class, held out of train where the source has none."""
    annotated_only: bool = False
    """Leave training images without x* out."""
    augment: AugmentSettings = AugmentSettings()
    """`flip` and `pad`."""
    test_crops: Literal["centre", "ten"] = "centre"
    """Test on the middle; `ten`: also on corners and middle, each mirrored too, probabilities
    summed, as `test_ten_crops`."""
    on_bad: OnBad = "stop"
    """What to do about bad files and annotations: stop at the first, or skip and count."""
    other_modes: Literal["convert", "bad"] = "convert"
    """Greyscale, CMYK, 16-bit and other files: convert to 8-bit RGB and count, or call bad."""
    content: str | None = None
    """Fingerprint of names, sizes and times of change of the files, filled in by lupi: changed
    images are another run."""
    cache: Path = Path(".lupi-cache")
    """Folder for decoded images; may be deleted at any time."""
    decoders: int = Field(1, ge=1, le=256)
    """Threads that decode images streamed from shards."""

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

    def resolved(self) -> dict[str, Any]:
        """Return every setting, with the fingerprint of the files as they are now."""
        return {**super().resolved(), "content": self.content or find_content(self.root)}

    @abstractmethod
    def source(self) -> Source:
        """Return the layout that the files are in."""

    @property
    def n_held_out_for_test(self) -> int:
        """Test images per class, held out of train where the source has none."""
        return 0


def find_content(root: str) -> str:
    """Return 12 hex digits that change with the files; of shards, with the images in them."""
    if is_sharded(root):
        return read_content(root)[:12]
    return open_tree(Path(root)).fingerprint[:12]


def open_images(
    settings: ImageFilesSettings, on_decoded: OnDecoded = lambda done, total: None
) -> Loaded | Streamed:
    """Return the images that settings ask for: streamed if they are in shards, else cached."""
    if is_sharded(settings.root):
        wanted = wanted_images(settings)
        return open_stream(settings.root, wanted, settings.on_bad, settings.decoders)
    return load_images(settings, on_decoded)


def load_images(
    settings: ImageFilesSettings, on_decoded: OnDecoded = lambda done, total: None
) -> Loaded:
    """Return the images that settings ask for, decoding what the cache does not have."""
    s = settings
    return load(Path(s.root), s.source(), wanted_images(s), s.cache, s.on_bad, on_decoded)


def shard_images(
    settings: ImageFilesSettings, out: Path, shard_size: int, on_decoded: OnDecoded
) -> dict[str, Any]:
    """Write the images that settings ask for into shards; return what is said of them there."""
    s = settings
    if is_sharded(s.root):
        raise LupiError(f"task.root: {s.root} holds shards; give the files they were made of")
    wanted = wanted_images(s)
    return write_shards(Path(s.root), s.source(), wanted, out, s.on_bad, shard_size, on_decoded)


def wanted_images(settings: ImageFilesSettings) -> ImageSelection:
    """Return which images settings ask for, and in what form."""
    return ImageSelection(
        source=repr(settings.source()),
        side=settings.stored,
        fit=settings.fit,
        classes=settings.classes,
        n_train=settings.n_train,
        n_val=settings.n_val,
        n_test=settings.n_held_out_for_test,
        annotated_only=settings.annotated_only,
        convert_modes=settings.other_modes == "convert",
    )


class ImageFilesTask(ImageTask):
    """Classification of images in files; x* is the region of the object."""

    Settings: ClassVar[type[ImageFilesSettings]]
    Network = ImageNetworkSettings

    def __init__(self, settings: ImageFilesSettings, network: ImageNetworkSettings) -> None:
        if settings.content not in (None, find_content(settings.root)):
            raise LupiError(
                f"images in {settings.root} have changed since this run was planned; plan it again"
            )
        loaded = open_images(settings)
        draw, design = self._replicates(settings, loaded)
        super().__init__(
            draw,
            design,
            n_classes=len(loaded.classes),
            network=network,
            cropping=Cropping(
                settings.stored, settings.image_size, settings.augment.pad, settings.augment.flip
            ),
            ten_crops=settings.test_crops == "ten",
        )
        self.classes = tuple(loaded.classes)
        self.fit = settings.fit
        self.found = loaded.found()

    def _replicates(
        self, settings: ImageFilesSettings, loaded: Loaded | Streamed
    ) -> tuple[DrawParts, Design]:
        """Return how each seed draws its images: test images are the same for every seed."""
        design = Design(n_pool=len(loaded.train.y), test="fixed", n_test=len(loaded.test.y))
        return fixed_parts(loaded.train, loaded.val, loaded.test), design
