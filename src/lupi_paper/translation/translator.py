"""A student with its vocabularies: it translates lines, without data or x*."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from lupi_paper.translation.networks.beam import beam_search
from lupi_paper.translation.networks.seq2seq import Seq2Seq
from lupi_paper.translation.settings import TranslationNetworkSettings, TranslationSettings
from lupi_paper.translation.text.sentences import Ids, to_translate
from lupi_paper.translation.text.vocabulary import END, PAD, START, Vocabulary

AT_ONCE = 64
"""Number of lines searched together. It is fixed because it changes the last digit of sums."""


class Translator:
    """Translates lines.

    Args:
        net: a `Seq2Seq`, or a network that encodes and decodes like one.
        source: vocabulary of what it reads.
        target: vocabulary of what it writes.
        settings: of the search.
    """

    def __init__(
        self,
        net: nn.Module,
        source: Vocabulary,
        target: Vocabulary,
        settings: TranslationSettings,
    ) -> None:
        self.net: Any = net.eval()
        self.source, self.target, self.settings = source, target, settings
        self.max_tokens = settings.max_tokens
        """A longer sentence is cut there."""

    def is_cut(self, line: str) -> bool:
        """Return whether a line is too long to be translated completely."""
        return len(self.source.encode(line)) > self.max_tokens

    def translate(self, lines: Sequence[str], *beside: Tensor) -> list[str]:
        """Translate lines; an empty one stays empty. Lines of similar length are searched together.

        Args:
            lines: one sentence each.
            beside: other inputs of the network, a row for each line (x* for an oracle).
        """
        encoded = [self.source.encode(line)[: self.max_tokens] for line in lines]
        filled = [i for i, ids in enumerate(encoded) if ids]
        filled.sort(key=lambda i: len(encoded[i]))
        translations = [""] * len(lines)
        for start in range(0, len(filled), AT_ONCE):
            some = filled[start : start + AT_ONCE]
            found = self._translate(
                [lines[i] for i in some],
                [encoded[i] for i in some],
                [rows[some] for rows in beside],
            )
            for i, translation in zip(some, found, strict=True):
                translations[i] = translation
        return translations

    def _translate(
        self, lines: Sequence[str], encoded: Sequence[Ids], beside: Sequence[Tensor]
    ) -> list[str]:
        x = (*to_translate(encoded), *beside)
        device = next(self.net.parameters()).device
        hypotheses = beam_search(
            self.net,
            tuple(tensor.to(device) for tensor in x),
            start=START,
            end=END,
            never=(PAD, START),
            width=self.settings.beam,
            length_norm=self.settings.length_norm,
        )
        translations = []
        for line, hypothesis in zip(lines, hypotheses, strict=True):
            instead = None
            if self.settings.replace_unknown:
                tokens = line.split()[: self.max_tokens]
                n_padding = x[0].shape[1] - len(tokens) - 1  # the last is the end
                instead = [tokens[place - n_padding] for place in hypothesis.seen]
            translations.append(self.target.decode(hypothesis.words, instead))
        return translations


def build_network(settings: TranslationNetworkSettings, n_source: int, n_target: int) -> Seq2Seq:
    """Build a student for vocabularies of these sizes."""
    return Seq2Seq(n_source, n_target, **settings.model_dump())
