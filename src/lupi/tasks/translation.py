"""Translation of sentences, with a vector (of the picture they describe) as x*."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Control, Generated, Inputs, Split, Splits, XstarKind
from lupi.data.controls import control_vectors
from lupi.data.index import OnBad
from lupi.data.parallel_text import Pairs, is_blank, read_pairs
from lupi.data.sentences import Ids, SentenceSplit, to_learn
from lupi.data.subsets import nested_rows, rows_with_xstar
from lupi.data.sentence_vectors import VectorFiles, Vectors
from lupi.data.vocabulary import PAD, Vocabulary, learn_pieces, learn_words
from lupi.errors import LupiError
from lupi.nn.seq2seq import Seq2Seq
from lupi.records import Metric
from lupi.settings import Settings
from lupi.tasks.scoring import score_lines
from lupi.tasks.translator import Translator

Part = Literal["train", "val", "test"]


class TranslationSettings(Settings):
    """Which texts, their vocabularies, and how translations are searched for."""

    root: Path
    """Folder of the texts."""
    source: str
    """Language translated from: the end of the files' names, such as `en`."""
    target: str
    """Language translated into, such as `de`."""
    train: str = "train"
    """Name of the training texts without `.en`; also `val` and `test`. `.gz` may follow."""
    val: str = "val"
    test: str = "test"
    xstar: str | None = None
    """File with x* of the training lines: .npz, .npy, or captions. `{split}` in it stands for the
    text's name up to the first dot."""
    xstar_dims: int = Field(128, ge=1, le=4096)
    """Dimensions that captions become."""
    vocabulary: Literal["words", "pieces"] = "words"
    """`words` between spaces, or sentencepiece's `pieces`."""
    vocabulary_size: int = Field(30_000, ge=16)
    """Words, or pieces, of each language at most."""
    min_count: int = Field(2, ge=1)
    """A word that training lines have less often is unknown."""
    max_tokens: int = Field(100, ge=1, le=1000)
    """A longer training sentence is bad, and `lupi translate` cuts there."""
    tokenised: bool = True
    """The texts are tokenised: BLEU counts their tokens as they stand, lower-cased. Otherwise
    sacrebleu's own, cased."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    beam: int = Field(12, ge=1, le=100)
    """Hypotheses of each sentence."""
    length_norm: float = Field(1.0, ge=0, le=2)
    """A hypothesis's log-probability is divided by its length to this power."""
    replace_unknown: bool = True
    """Write the source word that attention saw most of in the place of an unknown word."""
    on_bad: OnBad = "stop"
    """What to do about empty and too long lines, and x* that is not finite: stop, or skip (in
    training) and count."""


class TranslationNetworkSettings(Settings):
    """The student for sentences."""

    n_units: int = Field(500, ge=2)
    """Units of embeddings, of encoder layers and of decoder layers."""
    n_layers: int = Field(2, ge=1, le=8)
    """Of the encoder and of the decoder."""
    bidirectional: bool = False
    """Half of the encoder's units read backwards."""
    input_feeding: bool = False
    """A decoder's step sees the attention's last output; slower, as words come one by one."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Bernoulli rate between layers and of the attention's output."""
    embedding_dropout: float = Field(0.0, ge=0, lt=1)
    """Bernoulli rate of embeddings."""
    tied: bool = False
    """The decoder's embeddings are also its output weights."""


class TranslationTask:
    """Sentences, their translations, and vectors."""

    Settings = TranslationSettings
    Network = TranslationNetworkSettings
    metric = Metric("bleu", selected_by="accuracy")
    xstar_kind: XstarKind = "vector"
    xstar_dim = 0

    def __init__(self, settings: TranslationSettings, network: TranslationNetworkSettings) -> None:
        self.settings, self.network_settings = settings, network
        s = settings
        if network.bidirectional and network.n_units % 2:
            raise LupiError("network.n_units: a bidirectional encoder needs an even number")
        self._pairs: dict[Part, Pairs] = {
            "train": read_pairs(s.root, s.train, s.source, s.target),
            "val": read_pairs(s.root, s.val, s.source, s.target),
            "test": read_pairs(s.root, s.test, s.source, s.target),
        }
        train = self._pairs["train"]
        self.source, self.target = self._learn(train.source), self._learn(train.target)
        self._ids = {
            part: (
                [self.source.encode(line) for line in pairs.source],
                [self.target.encode(line) for line in pairs.target],
            )
            for part, pairs in self._pairs.items()
        }
        self._found: Counter[str] = Counter()
        self._rows = self._usable_rows()
        self._vectors: VectorFiles | None = None
        if s.xstar is not None:
            skip = s.on_bad == "skip"
            name = train.split_name
            self._vectors = VectorFiles(s.xstar, name, len(train), s.xstar_dims, skip)
            self.xstar_dim = self._vectors.n_dims
            self._found["training line without x*"] = int((~self._vectors.train.has).sum())
            self._found["x* that is not finite"] = self._vectors.train.n_bad

    @property
    def found(self) -> Mapping[str, int]:
        """What was wrong with the texts and x*, and how often."""
        return {kind: n for kind, n in self._found.items() if n}

    def _learn(self, lines: list[str]) -> Vocabulary:
        s = self.settings
        if s.vocabulary == "pieces":
            return learn_pieces(lines, s.vocabulary_size)
        return learn_words(lines, s.min_count, s.vocabulary_size)

    def _usable_rows(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the training lines that can be learned from; stop at a bad one, or count it."""
        good = np.ones(len(self._pairs["train"]), dtype=np.bool_)
        for part, pairs in self._pairs.items():
            lengths = zip(*self._ids[part], strict=True)
            for i, (source_ids, target_ids) in enumerate(lengths):
                longest = max(len(source_ids), len(target_ids))
                if is_blank(pairs.source[i]) or is_blank(pairs.target[i]):
                    kind = "empty line"
                elif part == "train" and longest > self.settings.max_tokens:
                    kind = f"line with more than {self.settings.max_tokens} tokens"
                else:
                    continue
                if self.settings.on_bad == "stop":
                    raise LupiError(
                        f"{pairs.name}, line {i + 1}: {kind}; correct it, or let such lines be "
                        "left out of training and counted: task.on_bad: skip"
                    )
                self._found[kind] += 1
                if part == "train":
                    good[i] = False
        if not good.any():
            raise LupiError(f"{self._pairs['train'].name} has no line that can be learned from")
        return good.nonzero()[0]

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return `size` training rows with x* under a control, and all of validation and test.

        The fraction is one of the training rows that have x* at all. With `reveal` (an oracle)
        validation and test rows have x* too, under the same control.
        """
        rows = self._rows[nested_rows(np.zeros(len(self._rows), dtype=np.int64), size, seed)]
        vectors = self._vectors.train if self._vectors else _no_vectors(len(self._pairs["train"]))
        has = vectors.has[rows]
        has[has] = rows_with_xstar(int(has.sum()), xstar_frac, seed)
        return Splits(
            self._split("train", rows, vectors, has, control, seed),
            self._held_out("val", control, seed, reveal),
            self._held_out("test", control, seed, reveal),
        )

    def _held_out(
        self, part: Literal["val", "test"], control: Control, seed: int, reveal: bool
    ) -> SentenceSplit:
        if not reveal or self._vectors is None:
            return SentenceSplit(*self._ids[part])
        pairs = self._pairs[part]
        vectors = self._vectors.of(pairs.split_name, len(pairs))
        return self._split(part, np.arange(len(pairs)), vectors, vectors.has, control, seed)

    def _split(
        self,
        part: Part,
        rows: np.ndarray[Any, np.dtype[np.int64]],
        vectors: Vectors,
        has: np.ndarray[Any, np.dtype[np.bool_]],
        control: Control,
        seed: int,
    ) -> SentenceSplit:
        """Return some rows, x* under a control among those of them that have it."""
        values = vectors.values[rows]
        known = vectors.has[rows]
        if known.any():
            values[known] = control_vectors(values[known], control, seed)
        source, target = self._ids[part]
        return SentenceSplit([source[i] for i in rows], [target[i] for i in rows], values, has)

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        return build_network(self.network_settings, len(self.source), len(self.target))

    def example(self) -> Inputs:
        """Return two sentences with their translations."""
        source, target = self._ids["train"]
        return to_learn([source[i] for i in self._rows[:2]], [target[i] for i in self._rows[:2]])[0]

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy of each row, (B,), scaled so that their mean is one per token."""
        each = _token_loss(output, y, self.settings.label_smoothing)  # (B, T)
        return each.sum(1) * len(y) / (y != PAD).sum()

    def condense(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of losses, the right tokens and how sure the first is; and all tokens."""
        is_token = y != PAD
        right = (output.argmax(2) == y) & is_token
        sure = output[:, 0].log_softmax(1).amax(1).exp()
        rows = torch.stack([_token_loss(output, y).sum(1), right.sum(1), sure], 1)  # (B, 3)
        return rows, is_token.sum(1)

    def metrics(self, output: Tensor, y: Tensor) -> dict[str, float]:
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
        line = self.target.decode(sentence[:-1])
        references = self._pairs["test"].target
        scores, _ = score_lines([line] * len(references), references, self.settings.tokenised)
        return {"accuracy": (truth == tokens.argmax()).float().mean().item(), **scores}

    def is_uninformative(self, output: Tensor) -> bool:
        """Tell whether the first token is as sure whatever the sentence."""
        return bool(output[:, 2].std() < 1e-3)

    def generate(self, net: nn.Module, split: Split, part: Literal["val", "test"]) -> Generated:
        """Translate a split by beam search and score it by BLEU and chrF.

        The translator gets the lines as text, and x* where net is an oracle: no target.
        """
        shown = [batch.x[2:] for batch in split.batches(256)]
        beside = [torch.cat(columns) for columns in zip(*shown, strict=True)]
        pairs = self._pairs[part]
        lines = self._translator(net).translate(pairs.source, *beside)
        return Generated(lines, *score_lines(lines, pairs.target, self.settings.tokenised))

    def _translator(self, net: nn.Module) -> Translator:
        s = self.settings
        return Translator(net, self.source, self.target, s.beam, s.length_norm, s.replace_unknown)

    def save(self, folder: Path) -> None:
        """Write the vocabularies."""
        self.source.save(folder, "source")
        self.target.save(folder, "target")


def build_network(
    settings: TranslationNetworkSettings, n_source: int, n_target: int
) -> Seq2Seq:
    """Build a student for vocabularies of these sizes."""
    return Seq2Seq(n_source, n_target, **settings.model_dump())


def _token_loss(output: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of each token (B, T), 0 on padding."""
    return F.cross_entropy(
        output.flatten(0, 1),
        y.flatten(),
        ignore_index=PAD,
        reduction="none",
        label_smoothing=smoothing,
    ).view_as(y)


def _unpadded(y: Tensor) -> list[Ids]:
    return [[token for token in row if token != PAD] for row in y.tolist()]


def _no_vectors(n_lines: int) -> Vectors:
    values = np.zeros((n_lines, 1), dtype=np.float32)
    return Vectors(values, np.zeros(n_lines, dtype=np.bool_), 0)
