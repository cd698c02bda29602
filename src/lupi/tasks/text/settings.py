"""What can be set of a text task: which texts, what is predicted, and how rows are divided."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from lupi.data.content import fingerprint_of
from lupi.data.text.texts import TextFileSettings
from lupi.tasks.outcomes import Kind


class TextSettings(TextFileSettings):
    """Which texts, what is predicted, and how rows are divided."""

    kind: Literal["auto"] | Kind = "auto"
    """auto: classification of names or two values, regression of other numbers."""
    metric: str | None = None
    """What the comparison is judged by; by default accuracy or r2. All are recorded."""
    val_frac: float = Field(0.2, gt=0, lt=1)
    """Fraction of the rows of `path` that a seed draws for validation."""
    test_frac: float = Field(0.3, gt=0, lt=1)
    """Fraction of the rows of `path` that a seed draws for test."""
    min_count: int = Field(1, ge=1)
    """Training texts that a word has to stand in to be known."""
    max_words: int = Field(30_000, ge=1, le=1_000_000)
    """Words that are known at most: those of the most training texts."""
    lexicon: Path | None = None
    """A text file with one word per line: the rationale of the control `lexicon`."""
    marks: Literal["places", "words"] = "places"
    """What a rationale marks: its own `places`, or its `words` wherever they stand in the text."""
    content: str | None = None
    """Fingerprint of the files, filled in by lupi: changed texts are another run."""

    @model_validator(mode="after")
    def _leaves_rows(self) -> "TextSettings":
        if self.val_frac + self.test_frac >= 1:
            raise ValueError("val_frac and test_frac together must leave rows for training")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that decide the numbers of a run."""
        return (*super().files, *([self.lexicon] if self.lexicon else []))

    def resolved(self) -> dict[str, Any]:
        """Return every setting, with the fingerprint of the files as they are now."""
        return {**super().resolved(), "content": fingerprint_of(self.files)}
