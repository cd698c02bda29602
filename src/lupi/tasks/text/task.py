"""Classification or regression of texts; x* is a rationale, a region over the words of x.

Each seed draws its own training, validation and test rows unless the file says which are which.
The vocabulary is that of the run's training rows.
"""

import hashlib
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lupi.core import Bools, Control, Outcome, RowNumbers, Rows, RunRows, Shown, Task, TaskKind
from lupi.errors import LupiError
from lupi.facts import Fact, list_counts, list_names
from lupi.loaders.content import fingerprint_of
from lupi.loaders.files import resolve
from lupi.loaders.frozen import encode_once
from lupi.loaders.near_copies import divided, equal_texts, near_copy_warnings, near_texts
from lupi.loaders.split_columns import divide
from lupi.loaders.text.span_controls import control_regions, lexicon_regions, read_word_list
from lupi.loaders.text.text_rows import TextSplit
from lupi.loaders.text.texts import Loaded, TextFileSettings, load_texts
from lupi.loaders.text.word_vocabulary import choose_words
from lupi.networks.pooling import mean_of_places
from lupi.networks.text_backbones import WordVectors
from lupi.settings import fingerprint
from lupi.subsets import PARTS, Part
from lupi.tasks.text.network import N_EXAMPLE_WORDS, TextNetworkSettings, build_network
from lupi.tasks.text.settings import TextSettings

AT_ONCE = 128
"""Texts that a frozen encoder sees together."""


def load_text_task(settings: TextSettings, network: TextNetworkSettings) -> Task:
    """Return the task of texts in one file, or in files for training, validation and test."""
    rows = TextRows(settings)
    return Task(
        rows,
        rows.division,
        rows.division.design,
        rows.outcome,
        rows.metric,
        network,
        xstar_kind="region",
        places="words",
        xstar_dim=rows.xstar_dim,
        finding_counts=rows.data.findings.counts(),
    )


TextTask = TaskKind(TextSettings, TextNetworkSettings, load_text_task)


def frozen_texts(task: Task) -> "TextRows | None":
    """Return the texts of a task whose words are vectors of a frozen encoder; else None."""
    rows, settings = task.rows, task.network_settings
    is_frozen = isinstance(settings, TextNetworkSettings) and settings.is_frozen
    return rows if is_frozen and isinstance(rows, TextRows) else None


def pooled_words(task: Task, rows: "TextRows", x: Tensor) -> Tensor:
    """Return the mean vector of the words of each text, (B, C), for classical models."""
    assert isinstance(task.network_settings, TextNetworkSettings)
    encoder = rows.encoder(task.network_settings)
    return torch.cat([mean_of_places(encoder(some), some > 0) for some in x.split(64)])


class TextRows(Rows):
    """All texts of a task with their rationales."""

    def __init__(self, settings: TextSettings) -> None:
        self.settings = settings
        self.data = data = _load(settings)
        self.texts = data.every
        self.separator = resolve(settings.path, settings.dialect).separator
        where = f"{settings.path}: target {settings.target!r}"
        self.outcome = Outcome.of(data.parts["train"].targets, settings.kind, where)
        y = {
            part: self.outcome.encode(texts.targets, f"{settings.target!r} of the {part} rows")
            for part, texts in data.parts.items()
        }
        self.y = np.concatenate([y[part] for part in PARTS if part in y])
        self.xstar_dim = 1 if settings.rationale else 0
        self.lexicon = read_word_list(settings.lexicon, data.lexemes)
        self.metric = self.outcome.metric(settings.metric)
        self.division = divide(
            y,
            self.outcome.classes,
            lambda part, name: data.parts[part].column(name),
            settings,
            settings.target,
            order=("test", "val"),
        )

    def fit(
        self, parts: Mapping[Part, RowNumbers], seed: int, network: TextNetworkSettings
    ) -> "TextRun":
        """Return the rows of a run, with the vocabulary of its training rows."""
        return TextRun(self, parts, network)

    def warnings(self) -> tuple[str, ...]:
        """Return what in the texts may make a verdict misleading."""
        lines = [f"texts: {line}" for line in self.data.findings.lines()]
        lines += [*self.data.findings.remarks, *self._one_sided()]
        words = self.texts.words
        if n_copies := divided(equal_texts(words), self.division).n_rows:
            lines.append(
                f"{n_copies} rows repeat the text of another: training and test rows "
                "may share them; remove the copies"
            )
        numbers = self.texts.numbers
        lines += near_copy_warnings(near_texts(words), self.division, "texts", numbers)
        return tuple(lines)

    def _one_sided(self) -> list[str]:
        """Return what having a rationale says about the class, if only some classes have any."""
        if not self.xstar_dim or not self.outcome.classes:
            return []
        has = np.array([region is not None for region in self.data.parts["train"].regions])
        y, classes = self.y[: len(has)], self.outcome.classes
        never = [name for label, name in enumerate(classes) if not has[y == label].any()]
        if not never or len(never) == len(classes):
            return []
        others = [name for name in classes if name not in never]
        return [
            f"only texts of {list_names(others)} have a rationale, those of {list_names(never)} "
            "never: whether there is one tells the class. Noise that follows it (het-dropout) "
            "differs by class in training; trust a gain only if it also beats the shuffled control"
        ]

    @cached_property
    def starts(self) -> RowNumbers:
        """Number of words before each text."""
        lengths = [len(words) for words in self.texts.words]
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def words_in_order(self) -> list[str]:
        """Return all words of all texts, which vectors are numbered by."""
        names = list(self.data.lexemes)
        return [names[word] for words in self.texts.words for word in words]

    def encoder(self, network: TextNetworkSettings) -> WordVectors:
        """Return the vectors of all words by a frozen encoder, computed once and cached."""
        backbone, names = network.backbone(), list(self.data.lexemes)
        texts = [[names[word] for word in words] for words in self.texts.words]
        content = hashlib.sha256()
        for words in texts:
            content.update("\x1f".join(words).encode() + b"\x1e")
        key = {"network": backbone.source.checksum, "words": content.hexdigest()}

        def encoded(first: int) -> NDArray[np.float16]:
            vectors = backbone.encode(texts[first : first + AT_ONCE])
            return np.concatenate([found.half().numpy() for found in vectors])

        path = self.settings.cache / f"words-{fingerprint(key)}.npy"
        batches = range(0, len(texts), AT_ONCE)
        vectors = encode_once(path, int(self.starts[-1]), batches, encoded)
        return WordVectors(vectors, backbone.n_channels)

    def facts(self) -> tuple[Fact, ...]:
        """Return facts about the data, for the user to check before training."""
        texts = self.data.parts["train"]
        n_words = sum(map(len, texts.words))
        marked = [region for region in texts.regions if region is not None]
        target, y = self.settings.target, self.y[: len(texts)]
        about = f"{target}, a number"
        if self.outcome.classes:
            counts = dict(zip(self.outcome.classes, np.bincount(y).tolist(), strict=False))
            about = f"{target}, one of {len(counts)} classes: {list_counts(counts)}"
        facts = [
            Fact("x", f"{len(texts):,} texts with {n_words / len(texts):.0f} words on average"),
            Fact("y", about),
        ]
        if marked:
            inside = float(sum(region.sum() for region in marked)) / sum(map(len, marked))
            rationales = f"rationales of {len(marked):,} texts (read as {self.data.form})"
            facts.append(Fact("x*", f"{rationales}, which mark {inside:.1%} of their words"))
        return (*facts, *self.division.facts())


class TextRun(RunRows):
    """Texts of a run as numbers of the words of its training rows."""

    def __init__(
        self, rows: TextRows, parts: Mapping[Part, RowNumbers], network: TextNetworkSettings
    ) -> None:
        self._rows, self._parts, self._network = rows, parts, network
        self.outcome, self.xstar_dim = rows.outcome, rows.xstar_dim
        s, n_lexemes = rows.settings, len(rows.data.lexemes)
        train = [rows.texts.words[i] for i in parts["train"]]
        self._chosen = choose_words(train, n_lexemes, s.min_count, s.max_words)
        self._numbers = np.zeros(n_lexemes, dtype=np.int64)
        self._numbers[self._chosen] = np.arange(1, len(self._chosen) + 1)

    @property
    def n_words(self) -> int:
        """Number of known words and padding."""
        return len(self._chosen) + 1

    def has_xstar(self, part: Part) -> Bools:
        """Return which rows of a part have a rationale."""
        regions = self._rows.texts.regions
        return np.array([regions[i] is not None for i in self._parts[part]], dtype=np.bool_)

    def split(self, part: Part, shown: Shown | None = None) -> TextSplit:
        """Return the rows of a part."""
        rows = self._parts[part]
        words = [self._shown(int(i)) for i in rows]
        y = torch.from_numpy(self._rows.y[rows])
        if shown is None:
            return TextSplit(words, y)
        regions = self._regions(rows, shown.has, shown.control, shown.seed)
        return TextSplit(words, y, regions, torch.from_numpy(shown.has))

    def _shown(self, i: int) -> Tensor:
        """Return the numbers of the words of a text, or those of their vectors."""
        words = self._rows.texts.words[i]
        if not self._network.is_frozen:
            return torch.from_numpy(self._numbers[words])
        start = int(self._rows.starts[i])
        return torch.arange(start + 1, start + len(words) + 1)

    def _regions(self, rows: RowNumbers, has: Bools, control: Control, seed: int) -> list[Tensor]:
        """Return the rationale of each row under a control; zeros for rows without."""
        texts, with_region = self._rows.texts, rows[has]
        if control == "lexicon":
            if self._rows.lexicon is None:
                raise LupiError("control lexicon: name a file with a word list as task.lexicon")
            own = lexicon_regions([texts.words[i] for i in with_region], self._rows.lexicon)
        else:
            given = [texts.regions[i] for i in with_region]
            lengths = [len(texts.words[i]) for i in with_region]
            own = control_regions([r for r in given if r is not None], lengths, control, seed)
        regions = [torch.zeros(len(texts.words[i])) for i in rows]
        for place, region in zip(np.flatnonzero(has), own, strict=True):
            regions[place] = torch.from_numpy(region)
        return regions

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        encoder = self._rows.encoder(self._network) if self._network.is_frozen else None
        return build_network(self._network, self.n_words, self.outcome.n_outputs, encoder)

    def example(self) -> Tensor:
        """Return two rows of words."""
        return torch.ones(2, N_EXAMPLE_WORDS, dtype=torch.long)

    def preprocessing(self) -> dict[str, Any]:
        """Return what a student needs to predict new texts, as plain values without x*."""
        s, names = self._rows.settings, list(self._rows.data.lexemes)
        described: dict[str, Any] = {
            "texts": {
                "column": s.text,
                "tags": list(s.tags) if self._rows.data.form == "tags" else [],
                "max_length": s.max_length,
                "separator": self._rows.separator,
                "encoding": s.encoding,
                "words": [names[i] for i in self._chosen],
            },
            "target": self.outcome.describe(s.target),
        }
        if self._network.is_frozen:
            backbone = self._network.backbone()
            source = backbone.source._asdict()
            described["backbone"] = {**source, "n_channels": backbone.n_channels}
        return described


def _load(settings: TextSettings) -> Loaded:
    """Read the files of a task, once for all arms."""
    content = fingerprint_of(settings.files)
    if settings.content not in (None, content):
        raise LupiError(f"{settings.path} has changed since this run was planned; plan it again")
    own = settings.model_dump_json(include=set(TextFileSettings.model_fields))
    return _load_cached(own, content)


@lru_cache(maxsize=2)
def _load_cached(settings: str, content: str) -> Loaded:
    """Load texts; `content` is an argument for the cache, so that changed files are read again."""
    return load_texts(TextFileSettings.model_validate_json(settings))
