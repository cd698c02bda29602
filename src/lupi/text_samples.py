"""Sample texts of a run: words, rationale, and the variance of the noise at each word."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lupi.errors import LupiError
from lupi.files import read_json, write_json

MOST_TEXTS = 8
MOST_WORDS = 400
"""Maximum number of words of a sample."""
UNKNOWN = "▯"
"""A word that the training texts do not have, as the student sees it."""

Finite = Annotated[float, Field(allow_inf_nan=False)]


class TextSample(BaseModel):
    """One text, a value per word."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    words: tuple[str, ...] = Field(max_length=MOST_WORDS)
    region: tuple[Finite, ...]
    """Rationale weight of each word, in [0, 1]."""
    variances: dict[str, tuple[Finite, ...]]
    """Variance of the noise, by site."""
    label: str
    prediction: str

    @model_validator(mode="after")
    def _has_a_value_per_word(self) -> Self:
        for values in (self.region, *self.variances.values()):
            if len(values) != len(self.words):
                raise ValueError(f"{len(values)} values for {len(self.words)} words")
        return self


def write_text_samples(path: Path, samples: Sequence[TextSample]) -> None:
    """Write samples as JSON."""
    write_json(path, {"texts": [sample.model_dump() for sample in samples]})


def read_text_samples(path: Path) -> tuple[TextSample, ...]:
    """Read samples; an error names the file and the problem."""
    try:
        texts = read_json(path)["texts"]
        return tuple(TextSample.model_validate(text) for text in texts[:MOST_TEXTS])
    except (KeyError, TypeError) as error:
        raise LupiError(f"{path} can't be shown as texts: {error!r}") from None
    except ValidationError as error:
        raise LupiError(f"{path} can't be shown as texts: {error.errors()[0]['msg']}") from None
