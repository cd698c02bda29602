"""The network of a text task and its settings."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from lupi.networks import Pooling
from lupi.settings import Settings

if TYPE_CHECKING:
    from torch import nn

    from lupi.networks.text_backbones import PretrainedWords

N_CHANNELS = 64
N_EXAMPLE_WORDS = 13
"""Length of an example text; unlikely to be the number of channels of a network."""


class TextNetworkSettings(Settings):
    """The student for texts. All have the site `trunk.words`: one vector per word."""

    name: Literal["bag-of-words", "cnn", "lstm", "custom", "minilm", "transformers"] = (
        "bag-of-words"
    )
    """bag-of-words: linear in which words a text has, its second site is `head.pooled`. cnn, lstm
    (in both directions, with attention) and the others: `head.drop` follows the pooling. minilm
    and transformers are frozen pretrained encoders."""
    model: str | None = None
    """Of transformers: a folder with config.json, model.safetensors and tokenizer.json, or a name
    of the local hub cache. Nothing is downloaded."""
    pooling: Pooling = "mean"
    """How words become one vector (not of bag-of-words and lstm): their `mean`, or by `attention`,
    with a place for nowhere; `both`: beside each other."""
    n_channels: int | None = Field(None, ge=1, le=4096)
    """Length of embeddings and states of cnn and lstm; by default 64."""
    encoder: str | None = None
    """Of `custom`: `package.module:function`, called with the number of words; returns a module
    from word numbers (B, T), 0 for none, to vectors (B, T, C)."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Bernoulli rate: of whole words in a bag of words, else at `head.drop`."""

    @model_validator(mode="after")
    def _has_effect(self) -> "TextNetworkSettings":
        if (self.encoder is not None) != (self.name == "custom"):
            raise ValueError("encoder: goes with name: custom, and custom needs it")
        if (self.model is not None) != (self.name == "transformers"):
            raise ValueError("model: goes with name: transformers, which needs it")
        if self.pooling != "mean" and self.name in ("bag-of-words", "lstm"):
            raise ValueError(f"pooling: {self.name} pools in its own way; leave it out")
        if self.n_channels is not None and self.name not in ("cnn", "lstm"):
            raise ValueError(f"n_channels: has no effect on {self.name}; leave it out")
        return self

    @property
    def is_frozen(self) -> bool:
        """Whether words are vectors of a frozen pretrained encoder."""
        return self.name in ("minilm", "transformers")

    def backbone(self) -> "PretrainedWords":
        """Return the frozen encoder, loaded once."""
        from lupi.networks.text_backbones import load_text_backbone

        return load_text_backbone(self.name, self.model)


def build_network(
    settings: TextNetworkSettings,
    n_words: int,
    n_outputs: int,
    encoder: "nn.Module | None" = None,
) -> "nn.Module":
    """Build a student for word numbers below `n_words`, over a given encoder if it is frozen."""
    from lupi.networks.text import ConvEncoder, bag_of_words, encoder_network, import_encoder, lstm

    n_channels = settings.n_channels or N_CHANNELS
    if settings.is_frozen:
        assert encoder is not None
        return encoder_network(encoder, n_outputs, settings.dropout, settings.pooling)
    if settings.name == "bag-of-words":
        return bag_of_words(n_words, n_outputs, settings.dropout)
    if settings.name == "lstm":
        return lstm(n_words, n_outputs, n_channels, settings.dropout)
    if settings.name == "cnn":
        convolution = ConvEncoder(n_words, n_channels)
        return encoder_network(convolution, n_outputs, settings.dropout, settings.pooling)
    assert settings.encoder is not None  # as settings were validated
    encoder = import_encoder(settings.encoder, n_words)
    return encoder_network(encoder, n_outputs, settings.dropout, settings.pooling)
