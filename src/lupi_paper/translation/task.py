"""Translation of sentences, with a vector (of the image they describe) as x*.

Vocabularies, and how x* becomes vectors, are learned from the training lines of a run alone.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import (
    Bools,
    Control,
    Generated,
    Inputs,
    Outcome,
    OutputKind,
    RowNumbers,
    Rows,
    RunRows,
    Shown,
    Split,
    Task,
    TaskKind,
)
from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.loaders.content import fingerprint_of
from lupi.loaders.division import GivenParts
from lupi.loaders.xstar.controls import control_vectors
from lupi.records import Metric
from lupi.subsets import Part
from lupi_paper.translation.meteor import find_meteor, score_meteor
from lupi_paper.translation.scoring import score_lines
from lupi_paper.translation.settings import TranslationNetworkSettings, TranslationSettings
from lupi_paper.translation.text.parallel_text import Pairs, is_blank, read_pairs, split_name
from lupi_paper.translation.text.sentence_vectors import VectorFiles, Vectors
from lupi_paper.translation.text.sentences import Ids, SentenceSplit, to_learn
from lupi_paper.translation.text.vocabulary import PAD, Vocabulary
from lupi_paper.translation.translator import Translator, build_network


def load_translation(settings: TranslationSettings, network: TranslationNetworkSettings) -> Task:
    """Return the task of sentences and their translations."""
    if network.bidirectional and network.n_units % 2:
        raise LupiError("network.n_units: a bidirectional encoder needs an even number")
    lines = TranslationLines(settings)
    division = GivenParts(
        {part: len(lines.numbers(part)) for part in ("train", "val", "test")},
        lambda seed: np.zeros(len(lines.usable), dtype=np.int64),
    )
    return Task(
        lines,
        division,
        division.design,
        Tokens(),
        Metric("bleu", selected_by="accuracy"),
        network,
        xstar_kind="vector",
        finding_counts={kind: n for kind, n in lines.found.items() if n},
    )


TranslationTask = TaskKind(TranslationSettings, TranslationNetworkSettings, load_translation)


@dataclass(frozen=True)
class Tokens(Outcome):
    """A sequence of words or pieces."""

    target: Vocabulary | None = None
    """Words or pieces of translations; None before a run."""
    references: tuple[str, ...] = ()
    """Translations of the test lines."""
    smoothing: float = 0.0

    @property
    def output_kind(self) -> OutputKind:
        """Kind of output."""
        return "tokens"

    @property
    def n_outputs(self) -> int:
        """Words or pieces that a translation may consist of."""
        return len(self._known)

    @property
    def _known(self) -> Vocabulary:
        assert self.target is not None
        return self.target

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy of each row, (B,): the sum over its tokens."""
        return _token_losses(output, y, self.smoothing).sum(1)

    def condense(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of losses, the right tokens and how sure the first is; and all tokens."""
        is_token = y != PAD
        right = (output.argmax(2) == y) & is_token
        sure = output[:, 0].log_softmax(1).amax(1).exp()
        parts = [_token_losses(output, y).sum(1), right.sum(1), sure]
        return torch.stack(parts, 1), is_token.sum(1)  # (B, 3), (B,)

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        """Return accuracy, cross-entropy and perplexity per token, the words before it given."""
        loss, right = (output[:, :2].double().sum(0) / y.sum()).tolist()
        return {"accuracy": right, "loss": loss, "perplexity": float(np.exp(min(loss, 100.0)))}

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Score the most frequent training translation, whatever the sentence, and token."""
        targets = Counter(tuple(row) for b in train.batches(256) for row in _unpadded(b.y))
        sentence = max(targets, key=lambda ids: targets[ids])  # the first of the most frequent
        tokens = torch.cat([b.y.flatten() for b in train.batches(256)]).bincount()
        tokens[PAD] = 0
        truth = torch.cat([b.y.flatten() for b in test.batches(256)])
        truth = truth[truth != PAD]
        lines = [self._known.decode(sentence[:-1])] * len(self.references)
        scores, _ = score_lines(lines, list(self.references))
        return {"accuracy": (truth == tokens.argmax()).float().mean().item(), **scores}

    def is_uninformative(self, output: Tensor) -> bool:
        """Return whether the confidence in the first token is the same for all sentences."""
        return bool(output[:, 2].std() < 1e-3)


def _token_losses(output: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of each token (B, T), 0 on padding, from logits (B, T, V)."""
    logits, tokens = output.flatten(0, 1), y.flatten()
    losses = F.cross_entropy(
        logits, tokens, ignore_index=PAD, reduction="none", label_smoothing=smoothing
    )
    return losses.view_as(y)


class TranslationLines(Rows):
    """Sentences, their translations, and files with vectors."""

    def __init__(self, settings: TranslationSettings) -> None:
        self.settings = s = settings
        if s.content not in (None, fingerprint_of(s.files)):
            raise LupiError(
                f"texts in {s.root} have changed since this run was planned; plan it again"
            )
        if s.meteor:
            find_meteor(s.target)
        self.pairs: dict[Part, Pairs] = {
            "train": read_pairs(s.root, s.train, s.source, s.target),
            "val": read_pairs(s.root, s.val, s.source, s.target),
            "test": read_pairs(s.root, s.test, s.source, s.target),
        }
        self.found: Counter[str] = Counter()
        """Problems found in texts and x*, with their counts."""
        self.usable = self._usable_rows()
        self.vectors: VectorFiles | None = None
        if s.xstar is not None:
            train, skip = self.pairs["train"], s.on_bad == "skip"
            name = split_name(train.name)
            self.vectors = VectorFiles(s.xstar, s.images, name, len(train), s.xstar_dims, skip)
            self.found["training line without x*"] = int((~self.vectors.has).sum())
            self.found["x* that is not finite"] = self.vectors.n_bad

    def numbers(self, part: Part) -> RowNumbers:
        """Return the lines of a part that can be used."""
        return self.usable if part == "train" else np.arange(len(self.pairs[part]))

    def fit(
        self,
        parts: Mapping[Part, RowNumbers],
        seed: int,
        network: TranslationNetworkSettings,
    ) -> "TranslationRun":
        """Return the lines of a run, with vocabularies and vectors of its training lines."""
        return TranslationRun(self, self.usable[parts["train"]], network)

    def facts(self) -> tuple[Fact, ...]:
        """Return what was found in the files."""
        return tuple(Fact("found", f"{n:,} x {what}") for what, n in self.found.items() if n)

    def _usable_rows(self) -> RowNumbers:
        """Return the training lines that can be learned from; stop at a bad one, or count it."""
        good = np.ones(len(self.pairs["train"]), dtype=np.bool_)
        most = self.settings.max_tokens
        for part, pairs in self.pairs.items():
            for i, lines in enumerate(zip(pairs.source, pairs.target, strict=True)):
                if any(is_blank(line) for line in lines):
                    kind = "empty line"
                elif part == "train" and max(len(line.split()) for line in lines) > most:
                    kind = f"line with more than {most} words"
                else:
                    continue
                if self.settings.on_bad == "stop":
                    raise LupiError(
                        f"{pairs.name}, line {i + 1}: {kind}; correct it, or let such lines be "
                        "left out of training and counted: task.on_bad: skip"
                    )
                self.found[kind] += 1
                if part == "train":
                    good[i] = False
        if not good.any():
            raise LupiError(f"{self.pairs['train'].name} has no line that can be learned from")
        return good.nonzero()[0]


class TranslationRun(RunRows):
    """Lines as numbers of the words of the run's training lines, and their vectors."""

    def __init__(
        self, lines: TranslationLines, rows: RowNumbers, network: TranslationNetworkSettings
    ) -> None:
        self.settings, self.network_settings = lines.settings, network
        s = self.settings
        self._pairs = lines.pairs
        train = lines.pairs["train"]
        text = {part: (pairs.source, pairs.target) for part, pairs in lines.pairs.items()}
        text["train"] = [train.source[i] for i in rows], [train.target[i] for i in rows]
        self.source, self.target = (
            Vocabulary.learn(some, s.min_count, s.vocabulary_size) for some in text["train"]
        )
        self._ids: dict[Part, tuple[list[Ids], list[Ids]]] = {
            part: (
                [self.source.encode(line) for line in source],
                [self.target.encode(line) for line in target],
            )
            for part, (source, target) in text.items()
        }
        self._vectors = lines.vectors.fit(rows) if lines.vectors else None
        self.xstar_dim = self._vectors.n_dims if self._vectors else 0
        references = tuple(lines.pairs["test"].target)
        self.outcome = Tokens(
            target=self.target,
            references=references,
            smoothing=s.label_smoothing,
        )

    def _xstar(self, part: Part) -> Vectors:
        """Return the vectors of a part."""
        if self._vectors is None:
            n = len(self._ids[part][0])
            return Vectors(np.zeros((n, 1), np.float32), np.zeros(n, dtype=np.bool_), 0)
        if part == "train":
            return self._vectors.train
        return self._vectors.of(split_name(self._pairs[part].name), len(self._pairs[part]))

    def has_xstar(self, part: Part) -> Bools:
        """Return which lines of a part have a vector."""
        return self._xstar(part).has

    def split(self, part: Part, shown: Shown | None = None) -> SentenceSplit:
        """Return the lines of a part."""
        if shown is None:
            return SentenceSplit(*self._ids[part])
        vectors = _controlled(self._xstar(part), shown.control, shown.seed)
        return SentenceSplit(*self._ids[part], vectors, shown.has)

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        return build_network(self.network_settings, len(self.source), len(self.target))

    def example(self) -> Inputs:
        """Return two sentences with their translations."""
        source, target = self._ids["train"]
        return to_learn((source * 2)[:2], (target * 2)[:2])[0]

    def facts(self) -> tuple[Fact, ...]:
        """Return how many words are known."""
        s = self.settings
        return (
            Fact("x", f"sentences in {s.source}, {len(self.source):,} words known"),
            Fact("y", f"their translations into {s.target}, {len(self.target):,} words known"),
        )

    def generate(self, net: nn.Module, split: Split, part: Literal["val", "test"]) -> Generated:
        """Translate a split by beam search and score it by BLEU and chrF.

        The translator gets the lines as text, and x* where net is an oracle: no target.
        """
        shown = [batch.x[2:] for batch in split.batches(256)]
        beside = [torch.cat(columns) for columns in zip(*shown, strict=True)]
        pairs, s = self._pairs[part], self.settings
        translator = Translator(net, self.source, self.target, s)
        lines = translator.translate(pairs.source, *beside)
        scores, signatures = score_lines(lines, pairs.target)
        if s.meteor:
            scores["meteor"], signatures["meteor"] = score_meteor(lines, pairs.target, s.target)
        return Generated(lines, scores, signatures)

    def save(self, folder: Path) -> None:
        """Write the vocabularies."""
        self.source.save(folder, "source")
        self.target.save(folder, "target")


def _unpadded(y: Tensor) -> list[Ids]:
    return [[token for token in row if token != PAD] for row in y.tolist()]


def _controlled(vectors: Vectors, control: Control, seed: int) -> NDArray[np.float32]:
    """Return x* under a control among the lines that have it."""
    values = vectors.values.copy()
    if vectors.has.any():
        values[vectors.has] = control_vectors(values[vectors.has], control, seed)
    return values
