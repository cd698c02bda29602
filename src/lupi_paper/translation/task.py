"""Translation of sentences, with a vector (of the image they describe) as x*."""

import copy
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lupi.core import Control, Generated, Inputs, OutputKind, Places, Split, Splits, XstarKind
from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.loaders.content import fingerprint_of
from lupi.loaders.subsets import nested_rows, rows_with_xstar
from lupi.loaders.xstar.controls import control_vectors
from lupi.records import Design, Metric
from lupi_paper.translation.learned_lines import LearnedLines, Part, Rows, learn_lines
from lupi_paper.translation.meteor import find_meteor, score_meteor
from lupi_paper.translation.scoring import score_lines
from lupi_paper.translation.settings import TranslationNetworkSettings, TranslationSettings
from lupi_paper.translation.text.parallel_text import Pairs, is_blank, read_pairs, split_name
from lupi_paper.translation.text.sentence_vectors import VectorFiles, Vectors
from lupi_paper.translation.text.sentences import Ids, SentenceSplit, to_learn
from lupi_paper.translation.text.vocabulary import PAD, Vocabulary
from lupi_paper.translation.token_loss import token_loss
from lupi_paper.translation.translator import build_network, build_translator


class TranslationTask:
    """Sentences, their translations, and vectors."""

    Settings = TranslationSettings
    Network = TranslationNetworkSettings
    metric = Metric("bleu", selected_by="accuracy")
    xstar_kind: XstarKind = "vector"
    places: Places | None = None
    xstar_dim = 0
    output_kind: OutputKind = "tokens"
    warnings: tuple[str, ...] = ()

    def __init__(self, settings: TranslationSettings, network: TranslationNetworkSettings) -> None:
        self.settings, self.network_settings = settings, network
        s = settings
        if s.content not in (None, fingerprint_of(s.files)):
            raise LupiError(
                f"texts in {s.root} have changed since this run was planned; plan it again"
            )
        if s.meteor:
            find_meteor(s.target)
        if network.bidirectional and network.n_units % 2:
            raise LupiError("network.n_units: a bidirectional encoder needs an even number")
        self._pairs: dict[Part, Pairs] = {
            "train": read_pairs(s.root, s.train, s.source, s.target),
            "val": read_pairs(s.root, s.val, s.source, s.target),
            "test": read_pairs(s.root, s.test, s.source, s.target),
        }
        train = self._pairs["train"]
        self._found: Counter[str] = Counter()
        self._rows = self._usable_rows()
        self.design = Design(len(self._rows), "fixed", n_test=len(self._pairs["test"]))
        self._vector_files: VectorFiles | None = None
        if s.xstar is not None:
            skip = s.on_bad == "skip"
            name = split_name(train.name)
            self._vector_files = files = VectorFiles(
                s.xstar, s.images, name, len(train), s.xstar_dims, skip
            )
            self._found["training line without x*"] = int((~files.has).sum())
            self._found["x* that is not finite"] = files.n_bad
        # Shared by copies, as the arms of one size and seed follow one another.
        self._last: dict[tuple[int, int], LearnedLines] = {}
        self._run: LearnedLines | None = None

    def for_run(self, size: int, seed: int) -> Self:
        """Return the task with vocabularies and vectors learned from a run's training lines."""
        if (size, seed) not in self._last:
            rows = self._rows[nested_rows(np.zeros(len(self._rows), dtype=np.int64), size, seed)]
            learned = learn_lines(self._pairs, rows, self.settings, self._vector_files)
            self._last.clear()
            self._last[size, seed] = learned
        fitted = copy.copy(self)
        fitted._run = run = self._last[size, seed]
        fitted.xstar_dim = run.vectors.n_dims if run.vectors else 0
        return fitted

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What was read, for the user to check before training."""
        s = self.settings
        return (
            Fact("x", f"sentences in {s.source}, {len(self.source):,} words known"),
            Fact("y", f"their translations into {s.target}, {len(self.target):,} words known"),
            *(Fact("found", f"{n:,} x {what}") for what, n in self.finding_counts.items()),
        )

    @property
    def _fitted(self) -> LearnedLines:
        if self._run is None:
            raise RuntimeError("vocabularies are those of a run: call for_run(size, seed) first")
        return self._run

    @property
    def n_outputs(self) -> int:
        """Words or pieces that a translation may consist of."""
        return len(self.target)

    @property
    def n_rows(self) -> int:
        """Lines to choose training lines from."""
        return len(self._rows)

    @property
    def source(self) -> Vocabulary:
        """Words or pieces of the sentences."""
        return self._fitted.source

    @property
    def target(self) -> Vocabulary:
        """Words or pieces of their translations."""
        return self._fitted.target

    @property
    def finding_counts(self) -> Mapping[str, int]:
        """Return the problems found in texts and x*, with their counts."""
        return {kind: n for kind, n in self._found.items() if n}

    def _usable_rows(self) -> Rows:
        """Return the training lines that can be learned from; stop at a bad one, or count it."""
        good = np.ones(len(self._pairs["train"]), dtype=np.bool_)
        most = self.settings.max_tokens
        for part, pairs in self._pairs.items():
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
        run = self.for_run(size, seed)._fitted
        vectors = run.vectors.train if run.vectors else _no_vectors(size)
        has = vectors.has.copy()
        has[has] = rows_with_xstar(int(has.sum()), xstar_frac, seed)

        def held_out(part: Literal["val", "test"]) -> SentenceSplit:
            if not reveal or run.vectors is None:
                return SentenceSplit(*run.ids[part])
            pairs = self._pairs[part]
            shown = run.vectors.of(split_name(pairs.name), len(pairs))
            return SentenceSplit(*run.ids[part], _controlled(shown, control, seed), shown.has)

        train = SentenceSplit(*run.ids["train"], _controlled(vectors, control, seed), has)
        return Splits(train, held_out("val"), held_out("test"))

    def lines(self, part: Part) -> list[str]:
        """Return the sentences of a part as text."""
        return self._pairs[part].source

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        return build_network(self.network_settings, len(self.source), len(self.target))

    def example(self) -> Inputs:
        """Return two sentences with their translations."""
        source, target = self._fitted.ids["train"]
        return to_learn((source * 2)[:2], (target * 2)[:2])[0]

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy of each row, (B,): the sum over its tokens."""
        return token_loss(output, y, self.settings.label_smoothing).sum(1)

    def condense(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of losses, the right tokens and how sure the first is; and all tokens."""
        is_token = y != PAD
        right = (output.argmax(2) == y) & is_token
        sure = output[:, 0].log_softmax(1).amax(1).exp()
        parts = [token_loss(output, y).sum(1), right.sum(1), sure]
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
        line = self.target.decode(sentence[:-1])
        references = self._pairs["test"].target
        scores, _ = score_lines([line] * len(references), references, self.settings.tokenised)
        return {"accuracy": (truth == tokens.argmax()).float().mean().item(), **scores}

    def is_uninformative(self, output: Tensor) -> bool:
        """Return whether the confidence in the first token is the same for all sentences."""
        return bool(output[:, 2].std() < 1e-3)

    def generate(self, net: nn.Module, split: Split, part: Literal["val", "test"]) -> Generated:
        """Translate a split by beam search and score it by BLEU and chrF.

        The translator gets the lines as text, and x* where net is an oracle: no target.
        """
        shown = [batch.x[2:] for batch in split.batches(256)]
        beside = [torch.cat(columns) for columns in zip(*shown, strict=True)]
        pairs = self._pairs[part]
        translator = build_translator(net, self.source, self.target, self.settings)
        lines = translator.translate(pairs.source, *beside)
        return Generated(lines, *self._score(lines, pairs.target))

    def _score(
        self, lines: list[str], references: list[str]
    ) -> tuple[dict[str, float], dict[str, str]]:
        s = self.settings
        scores, signatures = score_lines(lines, references, s.tokenised)
        if s.meteor:
            scores["meteor"], signatures["meteor"] = score_meteor(
                lines, references, s.target, s.tokenised
            )
        return scores, signatures

    def preprocessing(self, size: int, seed: int) -> None:
        """Return nothing: `save` writes the vocabularies."""

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


def _no_vectors(n_lines: int) -> Vectors:
    values = np.zeros((n_lines, 1), dtype=np.float32)
    return Vectors(values, np.zeros(n_lines, dtype=np.bool_), 0)
