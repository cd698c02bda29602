"""Tasks over pictures in files, whatever their layout: settings, and the way to the cache."""

from abc import abstractmethod
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from lupi.data.cache import Loaded, Wanted, load
from lupi.data.decode import Fit
from lupi.data.index import OnBad, Source
from lupi.data.windows import Cropping
from lupi.data.writer import OnDecoded
from lupi.settings import Settings
from lupi.tasks.image import ImageNetworkSettings, ImageTask


class AugmentSettings(Settings):
    """What happens to training pictures, and to their x* with them."""

    flip: bool = True
    """Mirror half of the pictures, drawn anew each time."""
    pad: int = Field(0, ge=0, le=256)
    """Crops lie anywhere in the stored picture with a black border of so many pixels around."""


class PictureFilesSettings(Settings):
    """Which pictures, and how they are shown."""

    root: Path
    """A folder or a zip file."""
    image_size: int = Field(64, ge=8, le=1024)
    """Height and width in pixels that the network sees."""
    stored_size: int | None = Field(None, ge=8, le=1024)
    """Height and width in the cache, of which crops are taken. By default image_size."""
    fit: Fit = "crop"
    """How a picture becomes a square: `crop` shows its middle, `squash` distorts it."""
    classes: Annotated[int, Field(ge=2)] | tuple[str, ...] | None = None
    """The first n, or a list of names. By default all."""
    n_train: int | None = Field(None, ge=1)
    """Training pictures per class to choose from, at most. By default all."""
    n_val: int = Field(50, ge=1)
    """Validation pictures per class, held out of train where the source has none."""
    annotated_only: bool = False
    """Leave training pictures without x* out."""
    augment: AugmentSettings = AugmentSettings()
    """`flip` and `pad`."""
    test_crops: Literal["centre", "ten"] = "centre"
    """Test on the middle; `ten`: also on corners and middle, each mirrored too, probabilities
    summed, as `test_ten_crops`."""
    on_bad: OnBad = "stop"
    """What to do about bad files and annotations: stop at the first, or skip and count."""
    other_modes: Literal["convert", "bad"] = "convert"
    """Greyscale, CMYK, 16-bit and other files: convert to 8-bit RGB and count, or call bad."""
    cache: Path = Path(".lupi-cache")
    """Folder for decoded pictures; may be deleted at any time."""

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

    @abstractmethod
    def source(self) -> Source:
        """Return the layout that the files are in."""

    @property
    def n_held_out_for_test(self) -> int:
        """Test pictures per class, held out of train where the source has none."""
        return 0


def load_pictures(
    settings: PictureFilesSettings, on_decoded: OnDecoded = lambda done, total: None
) -> Loaded:
    """Return the pictures that settings ask for, decoding what the cache does not have."""
    source = settings.source()
    wanted = Wanted(
        source=repr(source),
        side=settings.stored,
        fit=settings.fit,
        classes=settings.classes,
        n_train=settings.n_train,
        n_val=settings.n_val,
        n_test=settings.n_held_out_for_test,
        annotated_only=settings.annotated_only,
        convert_modes=settings.other_modes == "convert",
    )
    return load(settings.root, source, wanted, settings.cache, settings.on_bad, on_decoded)


class PictureFilesTask(ImageTask):
    """Classification of pictures in files; x* is the region of the object."""

    Settings: ClassVar[type[PictureFilesSettings]]
    Network = ImageNetworkSettings

    def __init__(self, settings: PictureFilesSettings, network: ImageNetworkSettings) -> None:
        loaded = load_pictures(settings)
        super().__init__(
            loaded.train,
            loaded.val,
            loaded.test,
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
