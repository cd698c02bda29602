"""Settings of the translation task and its network."""

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field

from lupi.loaders.content import fingerprint_of
from lupi.loaders.findings import OnBad
from lupi.settings import Settings, TaskSettings
from lupi_paper.translation.text.parallel_text import find_text, split_name
from lupi_paper.translation.text.sentence_vectors import file_of


class TranslationSettings(TaskSettings):
    """Settings of texts, vocabularies and beam search."""

    name: Literal["translation"] = "translation"
    student_command: ClassVar[str | None] = "lupi translate"
    root: Path
    """Folder of the texts."""
    source: str
    """Language translated from: the end of the files' names, such as `en`."""
    target: str
    """Language translated into, such as `de`."""
    train: str = "train"
    """Name of the training texts without `.en`; also `val` and `test`. `.gz` may follow."""
    val: str = "val"
    """Name of the validation texts."""
    test: str = "test"
    """Name of the test texts."""
    xstar: str | None = None
    """File with x* of the training lines: .npz, .npy, or captions. `{split}` in it stands for the
    text's name up to the first dot."""
    images: str | None = None
    """File that names the image of each line, where `xstar` has vectors by name."""
    xstar_dims: int = Field(128, ge=1, le=4096)
    """Dimensions that captions become."""
    vocabulary_size: int = Field(30_000, ge=16)
    """Maximum number of words of each language."""
    min_count: int = Field(2, ge=1)
    """Minimum number of occurrences of a word in training lines; rarer words are unknown."""
    max_tokens: int = Field(100, ge=1, le=1000)
    """Maximum number of words of a training sentence; `lupi translate` truncates longer ones."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Label smoothing in the training loss."""
    beam: int = Field(12, ge=1, le=100)
    """Hypotheses of each sentence."""
    length_norm: float = Field(1.0, ge=0, le=2)
    """A hypothesis's log-probability is divided by its length to this power."""
    replace_unknown: bool = True
    """Replace an unknown word by the source word with the most attention."""
    meteor: bool = False
    """Also compute METEOR 1.5; requires `lupi-paper[meteor]` and Java."""
    on_bad: OnBad = "stop"
    """What to do about empty and too long lines, and x* that is not finite: stop, or skip (in
    training) and count."""
    content: str | None = None
    """Fingerprint of the files, filled in by lupi: a changed text is another run."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The texts, and the files with x* of their lines."""
        texts = [
            find_text(self.root, f"{name}.{language}")
            for name in (self.train, self.val, self.test)
            for language in (self.source, self.target)
        ]
        beside = dict.fromkeys(
            file_of(template, split_name(text))
            for template in (self.xstar, self.images)
            if template is not None
            for text in (self.train, self.val, self.test)
        )
        return (*texts, *(path for path in beside if path.exists()))

    def with_content(self) -> Self:
        """Return the settings with the fingerprint of the files as they are now."""
        return self.model_copy(update={"content": fingerprint_of(self.files)})


class TranslationNetworkSettings(Settings):
    """The student for sentences."""

    n_units: int = Field(500, ge=2)
    """Units of embeddings, of encoder layers and of decoder layers."""
    n_layers: int = Field(2, ge=1, le=8)
    """Of the encoder and of the decoder."""
    bidirectional: bool = False
    """Half of the encoder's units read backwards."""
    input_feeding: bool = False
    """Whether a decoder step sees the last output of the attention, as in the paper."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Bernoulli rate between layers and of the attention's output."""
    embedding_dropout: float = Field(0.0, ge=0, lt=1)
    """Bernoulli rate of embeddings."""
    tied: bool = False
    """The decoder's embeddings are also its output weights."""
