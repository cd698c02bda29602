"""Students for texts: from word indices (B, T) to outputs. 0 is padding or a removed word.

Each has a `trunk` from words to one vector per text, and a `head`. The site `trunk.words` holds the
contribution of each word to the vector of the text, which is their sum.
"""

import importlib
from collections import OrderedDict
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.errors import LupiError
from lupi.networks.pooling import AttentionPooling, Pooling
from lupi.noise.sites import Site
from lupi.permission import require_permission


class TextNetwork(nn.Module):
    """A trunk from word numbers (B, T) to vectors (B, C), and a head."""

    def __init__(self, trunk: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        """Map word numbers (B, T) to outputs (B, n_outputs)."""
        output: Tensor = self.head(self.trunk(x))
        return output


def bag_of_words(n_words: int, n_outputs: int, dropout: float) -> TextNetwork:
    """Build a linear model on the set of words of a text, a strong baseline with few texts."""
    return TextNetwork(WordScores(n_words, n_outputs, dropout), _Bias(n_outputs))


class WordScores(nn.Module):
    """Sum the scores of the distinct words of a text, divided by the root of their number.

    A word that occurs k times in a text counts 1 / k at each place. So this is exactly a linear
    model on normalised presence features, and noise at `words` with one draw per text is noise at
    the outputs.
    """

    def __init__(self, n_words: int, n_outputs: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, n_outputs, padding_idx=0)
        nn.init.zeros_(self.embedding.weight)  # unseen words have no effect
        self.words = nn.Dropout1d(dropout)  # drops whole words

    def forward(self, x: Tensor) -> Tensor:
        """Map word numbers (B, T) to scores (B, n_outputs)."""
        # index_select is the embedding with a faster backward pass
        scores = self.embedding.weight.index_select(0, x.flatten()).unflatten(0, x.shape)
        scores = scores * self._weights(x)[..., None]  # (B, T, K)
        summed: Tensor = self.words(scores).sum(1)
        return summed

    def _weights(self, x: Tensor) -> Tensor:
        is_word = (x > 0).to(self.embedding.weight.dtype)
        counts = is_word.new_zeros(x.shape[0], self.embedding.num_embeddings)  # (B, V)
        counts.scatter_add_(1, x, is_word)
        share = is_word / counts.gather(1, x).clamp(min=1)  # (B, T): 1 / k
        return share / share.sum(1, keepdim=True).clamp(min=1).sqrt()


class _Bias(nn.Module):
    """Add one number per output; `pooled` is the site before it."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        self.pooled = Site()
        self.bias = nn.Parameter(torch.zeros(n_outputs))

    def forward(self, scores: Tensor) -> Tensor:
        """Map (B, n_outputs) to the same."""
        output: Tensor = self.pooled(scores) + self.bias
        return output


def encoder_network(
    encoder: nn.Module, n_outputs: int, dropout: float, pooling: Pooling = "mean"
) -> TextNetwork:
    """Build a student over an encoder from word numbers (B, T) to vectors (B, T, C)."""
    example = torch.ones(2, 3, dtype=torch.long)
    with torch.no_grad():
        states = encoder(example)
    if not isinstance(states, Tensor) or states.dim() != 3 or states.shape[:2] != example.shape:
        got = tuple(states.shape) if isinstance(states, Tensor) else type(states).__name__
        raise LupiError(
            f"encoder: for word indices of shape (2, 3) it returned {got}; expected a tensor "
            "(2, 3, channels), one vector per word"
        )
    n_channels: int = states.shape[-1]
    if pooling == "mean":
        return TextNetwork(MeanOfWords(encoder), _head(n_channels, n_outputs, dropout))
    trunk = AttendedWords(encoder, AttentionPooling(n_channels, beside_mean=pooling == "both"))
    return TextNetwork(trunk, _head(trunk.pool.n_outputs, n_outputs, dropout))


def words_of(x: Tensor) -> Tensor:
    """Return which places (B, T) hold a word, of numbers (B, T) or vectors (B, T, C)."""
    return (x != 0).any(-1) if x.is_floating_point() else x > 0


class MeanOfWords(nn.Module):
    """Encode words in their context, and average over the words of a text."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.words = Site()

    def forward(self, x: Tensor) -> Tensor:
        """Map word numbers (B, T) to vectors (B, C)."""
        states = self.encoder(x)
        is_word = words_of(x).to(states.dtype)[..., None]  # (B, T, 1)
        weight = is_word / is_word.sum(1, keepdim=True).clamp(min=1)
        mean: Tensor = self.words(states * weight).sum(1)
        return mean


class AttendedWords(nn.Module):
    """Encode words in their context, and pool them by attention."""

    def __init__(self, encoder: nn.Module, pool: AttentionPooling) -> None:
        super().__init__()
        self.encoder = encoder
        self.words = Site()
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        """Map word numbers (B, T) to vectors (B, C)."""
        is_word = words_of(x)
        pooled: Tensor = self.pool(self.words(self.encoder(x) * is_word[..., None]), is_word)
        return pooled


class ConvEncoder(nn.Module):
    """Embeddings and a convolution over neighbouring words (Kim, EMNLP 2014)."""

    def __init__(self, n_words: int, n_channels: int, kernel: int = 3) -> None:
        super().__init__()
        self.embedding = _embedding(n_words, n_channels)
        self.conv = nn.Conv1d(n_channels, n_channels, kernel, padding=kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        """Map word numbers (B, T) to (B, T, C)."""
        embedded = _embed(self.embedding, x)
        states: Tensor = F.relu(self.conv(embedded.transpose(1, 2)).transpose(1, 2))
        return states


def lstm(n_words: int, n_outputs: int, n_channels: int, dropout: float) -> TextNetwork:
    """Build a bidirectional LSTM with attention over its states."""
    trunk = AttendedLSTM(n_words, n_channels)
    return TextNetwork(trunk, _head(2 * n_channels, n_outputs, dropout))


class AttendedLSTM(nn.Module):
    """Read a text in both directions, and average its states with learned weights.

    Yang et al.: "Hierarchical Attention Networks for Document Classification", NAACL 2016 (its
    word level).
    """

    def __init__(self, n_words: int, n_channels: int) -> None:
        super().__init__()
        self.embedding = _embedding(n_words, n_channels)
        self.forwards = nn.LSTM(n_channels, n_channels, batch_first=True)
        self.backwards = nn.LSTM(n_channels, n_channels, batch_first=True)
        self.words = Site()
        self.attention = nn.Sequential(
            nn.Linear(2 * n_channels, n_channels), nn.Tanh(), nn.Linear(n_channels, 1, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map word numbers (B, T) to vectors (B, 2C)."""
        embedded = _embed(self.embedding, x)
        reverse = _reversal(x)[..., None].expand_as(embedded)  # (B, T, C)
        ahead = self.forwards(embedded)[0]
        back = self.backwards(embedded.gather(1, reverse))[0].gather(1, reverse)
        is_word = (x > 0)[..., None]
        states = torch.cat([ahead, back], -1) * is_word  # (B, T, 2C)
        score = self.attention(states).masked_fill(~is_word, -1e4)  # (B, T, 1)
        attended: Tensor = self.words(score.softmax(1) * states).sum(1)
        return attended


def import_encoder(name: str, n_words: int) -> nn.Module:
    """Return the encoder that `package.module:function` makes for word numbers below `n_words`.

    Nothing is imported unless the user allowed that name.
    """
    require_permission(name, "network.encoder", "would run code")
    module, _, function = name.partition(":")
    try:
        encoder = getattr(importlib.import_module(module), function)(n_words)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise LupiError(
            f"encoder: {name}: {error}; expected package.module:function for a function that "
            "takes the number of words and returns a torch module"
        ) from None
    if not isinstance(encoder, nn.Module):
        raise LupiError(f"encoder: {name} returned a {type(encoder).__name__}, not a torch module")
    return encoder


def _head(n_in: int, n_outputs: int, dropout: float) -> nn.Module:
    return nn.Sequential(OrderedDict(drop=nn.Dropout(dropout), out=nn.Linear(n_in, n_outputs)))


def _embedding(n_words: int, n_channels: int) -> nn.Embedding:
    embedding = nn.Embedding(n_words, n_channels, padding_idx=0)
    nn.init.normal_(embedding.weight, std=0.1)
    return embedding


def _embed(embedding: nn.Embedding, x: Tensor) -> Tensor:
    """Return (B, T, C); zeros where there is no word."""
    return cast(Tensor, embedding(x)) * (x > 0)[..., None]


def _reversal(x: Tensor) -> Tensor:
    """Return indices (B, T) that reverse each text and keep its padding in place."""
    places = torch.arange(x.shape[1], device=x.device)
    length = ((x > 0) * (places + 1)).amax(1, keepdim=True)  # up to the last word
    return torch.where(places < length, length - 1 - places, places)
