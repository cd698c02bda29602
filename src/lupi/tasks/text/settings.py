"""Settings of a text task: which texts, what is predicted, and how rows are divided."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from lupi.core.outcomes import Kind
from lupi.loaders.content import fingerprint_of
from lupi.loaders.text.texts import TextFileSettings
from lupi.settings import TaskSettings


class TextSettings(TextFileSettings, TaskSettings):
    """Which texts, what is predicted, and how rows are divided."""

    name: Literal["text"] = "text"
    kind: Literal["auto"] | Kind = "auto"
    """auto: classification of names or two values, regression of other numbers."""
    metric: str | None = None
    """Metric that the comparison is judged by; by default accuracy or r2. All are recorded."""
    min_count: int = Field(1, ge=1)
    """Minimum number of training texts that contain a known word."""
    max_words: int = Field(30_000, ge=1, le=1_000_000)
    """Maximum number of known words: those in the most training texts."""
    lexicon: Path | None = None
    """A text file with one word per line: the rationale of the control `lexicon`."""
    cache: Path = Path(".lupi-cache")
    """Folder for vectors of a frozen pretrained encoder; may be deleted at any time."""
    content: str | None = None
    """Fingerprint of the files, filled in by lupi: changed texts are another run."""

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that the results of a run depend on."""
        return (*super().files, *([self.lexicon] if self.lexicon else []))

    def with_content(self) -> Self:
        """Return the settings with the fingerprint of the files as they are now."""
        return self.model_copy(update={"content": fingerprint_of(self.files)})
