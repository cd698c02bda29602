"""scikit-learn estimators for texts, trained with rationales."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lupi.core import Task
from lupi.errors import LupiError
from lupi.estimators.features import from_torch
from lupi.estimators.network import ONE_CYCLE, ClassEstimator, LupiEstimator, NumberEstimator
from lupi.estimators.task import GivenRows, split_task
from lupi.loaders.text.rationales import BadRationaleError, find_form, mark_words, read_cell
from lupi.loaders.text.text_rows import TextSplit
from lupi.loaders.text.tokens import locate_words, split_words
from lupi.loaders.text.word_vocabulary import WordVocabulary, choose_words
from lupi.networks.text_backbones import WordVectors
from lupi.permission import allow
from lupi.tasks.text.network import N_EXAMPLE_WORDS, TextNetworkSettings, build_network

Array = NDArray[Any]
MAX_LENGTH = 1_000_000
"""Words of a text that an exported student reads."""
NOISE_AT_WORDS = {
    "sites": ["trunk.words"],
    "draw": "example",
    "prior": {"inside": 0.0, "outside": 2.0},
    "noise": "fixed",
    "missing": "none",
}
"""Default settings of het-dropout: one draw for all words outside the rationale."""


class LupiTextEstimator(LupiEstimator):
    """Base of `LupiTextClassifier` and `LupiTextRegressor`.

    Some texts are held out, without rationales, to choose the epoch. The vocabulary comes from
    the training texts.

    Args:
        method: Any method that takes regions of words as x* (`lupi methods`), except the oracle.
        settings: Settings of the method. By default, het-dropout has one draw of variance 2 for
            all words outside the rationale; other methods have their own defaults.
        network: `bag-of-words`, `cnn`, `lstm`, or `package.module:function` for an encoder; with
            frozen pretrained word vectors: `minilm`, or a folder of a `transformers` model.
        pooling: `mean`, `attention` or `both` (not for bag-of-words and lstm).
        n_channels: Channels of cnn and lstm; None means 64.
        dropout: Bernoulli rate.
        max_words: Maximum size of the vocabulary.
        min_count: Minimum number of texts that contain a word of the vocabulary.
        epochs: Passes over the texts, of at least 20 steps each.
        batch_size: Texts per batch.
        lr: Largest learning rate of AdamW, which rises for a third of the epochs and then falls.
        weight_decay: Weight decay of AdamW.
        val_frac: Fraction of held-out texts. With 0, training texts are used instead.
        random_state: Seed of initial weights, held-out texts, batch order and noise.
        n_threads: Number of torch threads.
    """

    OPTIMIZER = ONE_CYCLE

    def __init__(
        self,
        method: str = "het-dropout",
        settings: dict[str, Any] | None = None,
        *,
        network: str = "bag-of-words",
        pooling: str = "mean",
        n_channels: int | None = None,
        dropout: float = 0.0,
        max_words: int = 30_000,
        min_count: int = 1,
        epochs: int = 10,
        batch_size: int = 32,
        lr: float = 0.1,
        weight_decay: float = 0.0,
        val_frac: float = 0.2,
        random_state: Any = None,
        n_threads: int = 1,
    ) -> None:
        self._store(locals())

    def _method_for(self, xstar: Any) -> tuple[str, dict[str, Any]]:
        method, settings = super()._method_for(xstar)
        if method == "het-dropout" and self.settings is None:
            return method, dict(NOISE_AT_WORDS)
        return method, settings

    def _task(self, X: Any, y: Array, n_classes: int | None, xstar: Any, seed: int) -> Task:
        """Build the vocabulary from the training texts, and hold texts out."""
        train, val = self._rows(y if n_classes else np.zeros(len(y), dtype=np.int64), seed)
        words = [split_words(text) for text in X]
        regions, has = read_rationales(X, xstar)
        self.vocabulary_ = self._vocabulary([words[i] for i in train])
        network, encoder = self._network(), None
        if network.is_frozen:
            vectors = network.backbone().encode(words)
            encoder = WordVectors(torch.cat(vectors).numpy(), vectors[0].shape[1])
            ends = np.cumsum([len(text) for text in words])
            numbers = [torch.arange(e - len(t), e) + 1 for t, e in zip(words, ends, strict=True)]
        else:
            numbers = [torch.from_numpy(self.vocabulary_.encode(text)) for text in words]
        targets = torch.from_numpy(y)
        n_words = len(self.vocabulary_) + 1
        given = GivenRows(
            TextSplit(
                [numbers[i] for i in train],
                targets[train],
                [regions[i] for i in train],
                torch.from_numpy(has[train]),
            ),
            TextSplit([numbers[i] for i in val], targets[val]),
            n_classes,
            lambda n_outputs: build_network(network, n_words, n_outputs, encoder),
            torch.ones(2, N_EXAMPLE_WORDS, dtype=torch.long),
            xstar_dim=1,
        )
        return split_task(given, "region", "words")

    def _network(self) -> TextNetworkSettings:
        network = {"name": self.network, **self._given("n_channels", "dropout", "pooling")}
        if ":" in self.network:
            network |= {"name": "custom", "encoder": self.network}
            allow(self.network)  # the caller names it in Python
        elif Path(self.network).is_dir():
            network |= {"name": "transformers", "model": self.network}
        return TextNetworkSettings.parse(network, "network")

    def _fit(self, X: Any, y: Array, n_classes: int | None, xstar: Any) -> None:
        super()._fit(X, y, n_classes, xstar)
        for module in self.student_.modules():
            if isinstance(module, WordVectors):
                module.forget()  # new texts come as vectors

    def _describe(self) -> dict[str, Any]:
        network = self._network()
        if network.is_frozen:
            raise LupiError(
                "an estimator on the word vectors of a pretrained encoder can't be exported: use "
                "`lupi compare` and `lupi export`"
            )
        texts = {"column": "text", "max_length": MAX_LENGTH, "words": self.vocabulary_.words}
        return {"network": network.resolved(), "texts": texts, "target": self._target()}

    def _random_inputs(self) -> Tensor:
        shape, generator = (64, N_EXAMPLE_WORDS), torch.Generator().manual_seed(0)
        return torch.randint(len(self.vocabulary_) + 1, shape, generator=generator)

    def _vocabulary(self, texts: list[list[str]]) -> WordVocabulary:
        lexemes = {word: i for i, word in enumerate(dict.fromkeys(w for t in texts for w in t))}
        numbered = [np.array([lexemes[word] for word in text], np.int32) for text in texts]
        chosen = choose_words(numbered, len(lexemes), self.min_count, self.max_words)
        names = list(lexemes)
        return WordVocabulary([names[i] for i in chosen])

    @torch.no_grad()
    def _outputs(self, X: Any) -> Tensor:
        """Return the student's output for each text."""
        check_is_fitted(self)
        texts, network = check_texts(X), self._network()
        outputs = []
        for start in range(0, len(texts), 256):
            words = [split_words(text) for text in texts[start : start + 256]]
            if network.is_frozen:
                encoded = network.backbone().encode(words)
            else:
                encoded = [torch.from_numpy(self.vocabulary_.encode(text)) for text in words]
            x = pad_sequence(encoded, batch_first=True)
            outputs.append(self.student_(x).double())
        return torch.cat(outputs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        return tags


class LupiTextClassifier(ClassEstimator, LupiTextEstimator):
    """Classifier of texts that trains with rationales and predicts without them."""

    def fit(self, X: Any, y: Any, rationales: Any = None) -> Self:
        """Train.

        Args:
            X: texts, a sequence of strings.
            y: classes, (N,).
            rationales: one per text, None for a text without: spans of characters
                `[(start, end), …]`, quoted snippets, or a number per word. None: the plain
                model, `no-xstar`.
        """
        texts, y = check_texts(X), column_or_1d(from_torch(y))
        check_consistent_length(texts, y)
        numbers = self._class_numbers(y)
        self._fit(texts, numbers, len(self.classes_), rationales)
        return self


class LupiTextRegressor(NumberEstimator, LupiTextEstimator):
    """Regressor of texts that trains with rationales and predicts without them."""

    def fit(self, X: Any, y: Any, rationales: Any = None) -> Self:
        """Train: as `LupiTextClassifier.fit`, with numbers as y."""
        texts, y = check_texts(X), column_or_1d(from_torch(y)).astype(np.float64)
        check_consistent_length(texts, y)
        if not np.isfinite(y).all():
            raise ValueError("y has values that are not finite; drop these texts")
        self._fit(texts, self._scaled(y), None, rationales)
        return self


def check_texts(X: Any) -> list[str]:
    """Return a sequence of texts as a list; raise an error for anything else."""
    if isinstance(X, str) or not hasattr(X, "__len__") or not len(X):
        raise ValueError(f"expected a sequence of texts, got {X!r}")
    texts = list(X)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"expected texts; entry {i} is {text!r}")  # noqa: TRY004
    return texts


def read_rationales(texts: Sequence[str], given: Any) -> tuple[list[Tensor], NDArray[np.bool_]]:
    """Return the rationale weight of each word of each text, and which texts have a rationale."""
    cells = [None] * len(texts) if given is None else list(given)
    if len(cells) != len(texts):
        raise LupiError(
            f"rationales: {len(cells)} for {len(texts)} texts; use None for a text without one"
        )
    values = list(_each(lambda cell: read_cell(from_torch(cell)), cells))
    form = find_form(values)

    def marked(given: tuple[str, Any]) -> Tensor:
        text, value = given
        words = locate_words(text)
        region = None
        if value is not None and form is not None:
            region = mark_words(value, form, text, words, "mean")
        nothing = np.zeros(max(1, len(words.words)), np.float32)
        return torch.from_numpy(nothing if region is None else region)

    regions = list(_each(marked, zip(texts, values, strict=True)))
    return regions, np.array([bool(region.any()) for region in regions], dtype=np.bool_)


def _each(read: Callable[[Any], Any], given: Iterable[Any]) -> Iterator[Any]:
    """Read the rationale of each text; the error for an invalid one names its text."""
    for place, one in enumerate(given):
        try:
            yield read(one)
        except BadRationaleError as error:
            raise LupiError(f"rationale of text {place}: {error}") from None
