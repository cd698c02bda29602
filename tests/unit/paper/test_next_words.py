import pytest
import torch
from torch import nn

from lupi_paper.translation.networks.next_words import GROUP, PART, NextWords


@torch.inference_mode()
@pytest.mark.parametrize("n_words", [4, GROUP, 5 * GROUP + 3, 2 * PART, 2 * PART + 1])
@pytest.mark.parametrize("width", [1, 3])
def test_the_best_of_all_words_are_found(n_words: int, width: int) -> None:
    torch.manual_seed(0)
    layer, o, scores = nn.Linear(5, n_words), torch.randn(2 * width, 5), torch.randn(2, width)
    logprobs = layer(o).log_softmax(1)
    logprobs[:, [0, 2]] = -torch.inf
    every = (logprobs.view(2, width, n_words) + scores[..., None]).flatten(1)
    expected, place = every.topk(min(6, every.shape[1]), dim=1)

    found, row, word = NextWords(layer, 0.5, never=(0, 2)).best(o / 2, scores, 6)

    n = expected.shape[1]  # of very few words, the rest is padding
    torch.testing.assert_close(found[:, :n], expected)
    assert not found[:, n:].isfinite().any()
    is_word = expected.isfinite()
    assert is_word.any()
    first = torch.arange(0, 2 * width, width)[:, None]
    assert torch.equal(row[:, :n][is_word], (first + place // n_words)[is_word])
    assert torch.equal(word[:, :n][is_word], (place % n_words)[is_word])
    assert word.max() < n_words
