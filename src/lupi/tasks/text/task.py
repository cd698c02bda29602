"""Classification or regression of texts; x* is a rationale, a region over the words of x.

Each seed draws its own training, validation and test rows. The vocabulary is that of the run's
training rows.
"""

import copy
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lupi.core import (
    Control,
    OneOutputPerRow,
    OutputKind,
    Places,
    Splits,
    XstarKind,
)
from lupi.errors import LupiError
from lupi.facts import Fact, list_counts, list_names
from lupi.loaders.content import fingerprint_of
from lupi.loaders.division import PARTS, Division
from lupi.loaders.files import resolve
from lupi.loaders.split_columns import divide
from lupi.loaders.subsets import nested_rows, rows_with_xstar
from lupi.loaders.text.span_controls import control_regions, lexicon_regions, spread_over_words
from lupi.loaders.text.text_rows import TextSplit
from lupi.loaders.text.texts import Loaded, TextFileSettings, Texts, load_texts
from lupi.loaders.text.word_list import read_word_list
from lupi.loaders.text.word_vocabulary import choose_words
from lupi.records import Design
from lupi.tasks.outcomes import Outcome, ScoredByOutcome
from lupi.tasks.text.network import N_EXAMPLE_WORDS, TextNetworkSettings, build_network
from lupi.tasks.text.settings import TextSettings

Rows = NDArray[np.int64]


class TextTask(ScoredByOutcome, OneOutputPerRow):
    """Texts of one file, or of files for training, validation and test."""

    Settings = TextSettings
    Network = TextNetworkSettings
    xstar_kind: XstarKind = "region"
    places: Places | None = "words"

    def __init__(self, settings: TextSettings, network: TextNetworkSettings) -> None:
        self._settings, self.network_settings = settings, network
        self._data = data = _load(settings)
        self._train = data.parts["train"]
        self._texts = data.every
        self._separator = resolve(settings.path, settings.dialect).separator
        where = f"{settings.path}: target {settings.target!r}"
        self.outcome = Outcome.of(self._train.targets, settings.kind, where)
        self._y = {
            part: self.outcome.encode(texts.targets, f"{settings.target!r} of the {part} rows")
            for part, texts in data.parts.items()
        }
        self.output_kind: OutputKind = self.outcome.output_kind
        self.metric = self.outcome.metric(settings.metric)
        self.xstar_dim = 1 if settings.rationale else 0
        self.n_words = min(settings.max_words, len(data.lexemes)) + 1
        """Number of known words and padding; before `for_run`, an upper bound."""
        self._lexicon = read_word_list(settings.lexicon, data.lexemes)
        self.finding_counts = data.findings.counts()

    def for_run(self, size: int, seed: int) -> Self:
        """Return the task with a network for the words of the run's training rows."""
        other = copy.copy(self)
        other.n_words = len(self._chosen(self._rows(size, seed)[0])) + 1
        return other

    @property
    def n_outputs(self) -> int:
        """Number of classes; 2 (mean and log-variance) for a number."""
        return self.outcome.n_outputs

    @property
    def n_rows(self) -> int:
        """Number of rows that training rows are drawn from."""
        return self.division.n_train

    @property
    def can_reveal(self) -> bool:
        """Whether held-out rows have rationales, which an oracle needs."""
        _, *held_out = self.division.draw(0).values()
        return all(any(self._texts.regions[i] is not None for i in rows) for rows in held_out)

    @property
    def design(self) -> Design:
        """How the rows of each seed are drawn."""
        return self.division.design

    @property
    def warnings(self) -> tuple[str, ...]:
        """What in the texts may make a verdict misleading."""
        lines = [f"texts: {line}" for line in self._data.findings.lines()]
        lines += [*self._data.findings.remarks, *self._one_sided()]
        distinct = {text.tobytes() for text in self._train.words}
        if n_copies := len(self._train) - len(distinct):
            lines.append(
                f"{n_copies} rows repeat the text of another: training and test rows "
                "may share them; remove the copies"
            )
        return tuple(lines)

    def _one_sided(self) -> list[str]:
        """Return what having a rationale says about the class, if only some classes have any."""
        if not self.xstar_dim or not self.outcome.classes:
            return []
        has = np.array([region is not None for region in self._train.regions])
        y, classes = self._y["train"], self.outcome.classes
        never = [name for label, name in enumerate(classes) if not has[y == label].any()]
        if not never or len(never) == len(classes):
            return []
        others = [name for name in classes if name not in never]
        return [
            f"only texts of {list_names(others)} have a rationale, those of {list_names(never)} "
            "never: whether there is one tells the class. Noise that follows it (het-dropout) "
            "differs by class in training; trust a gain only if it also beats the shuffled control"
        ]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts about the data, for the user to check before training."""
        texts = self._train
        n_words = sum(map(len, texts.words))
        marked = [region for region in texts.regions if region is not None]
        target, y = self._settings.target, self._y["train"]
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
            rationales = f"rationales of {len(marked):,} texts (read as {self._data.form})"
            facts.append(Fact("x*", f"{rationales}, which mark {inside:.1%} of their words"))
        return tuple(facts)

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return `size` training rows with x* under a control, and validation and test rows.

        The fraction is one of the training rows that have a rationale at all. With `reveal` (an
        oracle) validation and test rows carry theirs, under that control.
        """
        rows, val, test = self._rows(size, seed)
        numbers = self._numbers(rows)

        every = np.concatenate([self._y[part] for part in PARTS if part in self._y])

        def part(rows: Rows, frac: float | None) -> TextSplit:
            texts = self._texts
            words = [torch.from_numpy(numbers[texts.words[i]]) for i in rows]
            y = torch.from_numpy(every[rows])
            if frac is None:
                return TextSplit(words, y)
            has = np.array([texts.regions[i] is not None for i in rows], dtype=np.bool_)
            has[has] = rows_with_xstar(int(has.sum()), frac, seed)
            regions = self._regions(texts, rows, has, control, seed)
            return TextSplit(words, y, regions, torch.from_numpy(has))

        held_out = 1.0 if reveal else None
        return Splits(part(rows, xstar_frac), part(val, held_out), part(test, held_out))

    def preprocessing(self, size: int, seed: int) -> dict[str, Any]:
        """Return what a student needs to predict new texts, as plain values without x*."""
        rows, _, _ = self._rows(size, seed)
        names = list(self._data.lexemes)
        s = self._settings
        return {
            "texts": {
                "column": s.text,
                "tags": list(s.tags) if self._data.form == "tags" else [],
                "max_length": s.max_length,
                "separator": self._separator,
                "encoding": s.encoding,
                "words": [names[i] for i in self._chosen(rows)],
            },
            "target": self.outcome.describe(s.target),
        }

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        return build_network(self.network_settings, self.n_words, self.outcome.n_outputs)

    def example(self) -> Tensor:
        """Return two rows of words."""
        return torch.ones(2, N_EXAMPLE_WORDS, dtype=torch.long)

    def _rows(self, size: int, seed: int) -> tuple[Rows, Rows, Rows]:
        """Return training, validation and test rows of a run; held-out rows keep their order."""
        pool, val, test = self.division.draw(seed).values()
        chosen = nested_rows(self.division.labels[pool], size, seed, balanced=False)
        return pool[chosen], val, test

    @cached_property
    def division(self) -> Division:
        """How each seed divides the rows."""
        parts = self._data.parts
        return divide(
            self._y,
            self.outcome.classes,
            lambda part, name: parts[part].column(name),
            self._settings,
            self._settings.target,
            order=("test", "val"),
        )

    def _chosen(self, rows: Rows) -> Rows:
        s, texts = self._settings, [self._train.words[i] for i in rows]
        return choose_words(texts, len(self._data.lexemes), s.min_count, s.max_words)

    def _numbers(self, rows: Rows) -> Rows:
        """Return the number of every lexeme for a network that knows these rows' words."""
        chosen = self._chosen(rows)
        numbers = np.zeros(len(self._data.lexemes), dtype=np.int64)
        numbers[chosen] = np.arange(1, len(chosen) + 1)
        return numbers

    def _regions(
        self, texts: Texts, rows: Rows, has: NDArray[np.bool_], control: Control, seed: int
    ) -> list[Tensor]:
        """Return the rationale of each row under a control; zeros for rows without."""
        with_region = rows[has]
        if control == "lexicon":
            if self._lexicon is None:
                raise LupiError("control lexicon: name a file with a word list as task.lexicon")
            own = lexicon_regions([texts.words[i] for i in with_region], self._lexicon)
        else:
            given = [texts.regions[i] for i in with_region]
            lengths = [len(texts.words[i]) for i in with_region]
            own = control_regions([r for r in given if r is not None], lengths, control, seed)
        regions = [torch.zeros(len(texts.words[i])) for i in rows]
        for place, region in zip(np.flatnonzero(has), own, strict=True):
            if self._settings.marks == "words":
                region = spread_over_words(region, texts.words[rows[place]])
            regions[place] = torch.from_numpy(region)
        return regions


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
