"""Pooling by attention, with a place for nowhere."""

import pytest
import torch
from torch import nn

from lupi.errors import LupiError
from lupi.networks.pooling import AttentionPooling, attention_of, find_pooling, join_maps
from lupi.networks.vgg import small_vgg


def test_without_scores_every_place_and_nowhere_count_the_same() -> None:
    pool = AttentionPooling(2)
    pool.nowhere.data = torch.tensor([6.0, 0.0])
    words = torch.tensor([[[3.0, 0.0], [0.0, 3.0]]])
    assert pool(words)[0].tolist() == pytest.approx([3.0, 1.0])  # two places and nowhere


def test_attention_finds_the_place_with_the_largest_score() -> None:
    pool = AttentionPooling(1)
    pool.scores.weight.data.fill_(100.0)
    maps = torch.zeros(1, 1, 2, 3)
    maps[0, 0, 1, 2] = 1.0
    found = attention_of(pool, maps)
    assert found is not None
    assert found.shape == (1, 2, 3)
    assert found[0, 1, 2] == pytest.approx(1.0)
    assert pool(maps).item() == pytest.approx(1.0)


def test_a_large_score_of_nowhere_hides_all_places() -> None:
    pool = AttentionPooling(1)
    pool.scores.nowhere.data.fill_(100.0)
    assert pool(torch.ones(1, 1, 2, 2)).item() == pytest.approx(0.0)


def test_padding_gets_no_attention_and_no_share_of_the_mean() -> None:
    pool = AttentionPooling(1, beside_mean=True)
    pool.scores.nowhere.data.fill_(-100.0)
    words, is_word = torch.tensor([[[2.0], [4.0], [99.0]]]), torch.tensor([[True, True, False]])
    assert pool(words, is_word)[0].tolist() == pytest.approx([3.0, 3.0])


def test_maps_are_joined_at_the_finest_resolution() -> None:
    fine, coarse = torch.zeros(1, 2, 4, 4), torch.arange(4.0).view(1, 1, 2, 2)
    joined = join_maps([fine, coarse])
    assert joined.shape == (1, 3, 4, 4)
    assert joined[0, 2, 3].tolist() == [2.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(("pooling", "n_features"), [("attention", 24), ("both", 48)])
def test_a_vgg_looks_at_its_last_two_blocks(pooling: str, n_features: int) -> None:
    net = small_vgg(3, 32, width=4, pooling=pooling)
    x = torch.rand(2, 1, 32, 32)
    assert net.trunk(x).shape == (2, n_features)
    found = attention_of(net, x)
    assert found is not None
    assert found.shape == (2, 8, 8)  # of stride 4


def test_a_network_that_does_not_look_is_refused() -> None:
    assert attention_of(small_vgg(3, 32), torch.rand(2, 1, 32, 32)) is None
    with pytest.raises(LupiError, match="pooling: attention"):
        find_pooling(nn.Linear(2, 2), "guided-attention")
