import torch

from lupi.noise.encoders import RegionEncoder, WordEncoder, feature_encoders, vector_encoder


def test_encoders_start_at_the_prior() -> None:
    assert vector_encoder(3, 5)(torch.randn(2, 3)).abs().max() == 0
    encoder = RegionEncoder(1, (4, 4))
    assert encoder(torch.rand(2, 1, 8, 8)).abs().max() == 0
    assert encoder(torch.rand(2, 1, 8, 8)).shape == (2, 1, 4, 4)


def test_words_keep_their_number() -> None:
    assert RegionEncoder(1, (9,))(torch.rand(2, 1, 5)).shape == (2, 1, 5)


def test_a_place_is_seen_alone() -> None:
    encoder = RegionEncoder(1, (6, 6))
    for parameter in encoder.parameters():
        parameter.data.normal_()
    mask = torch.zeros(1, 1, 6, 6)
    changed = mask.clone()
    changed[..., 3, 3] = 1
    assert (encoder(mask) != encoder(changed)).sum() == 1


def test_feature_encoders_build_on_one_another() -> None:
    first, second = feature_encoders(6, [5, 4])
    features = torch.randn(2, 6)
    assert first(features).shape == (2, 5)
    assert second(features).shape == (2, 4)
    assert next(first.parameters()) is next(second.parameters())


def test_a_word_has_an_offset_of_its_own_wherever_it_stands() -> None:
    encoder = WordEncoder()
    seen = torch.tensor([[[0.0, 1.0, 0.0], [5.0, 7.0, 5.0]]])  # flags, words
    assert encoder(seen).tolist() == [[[0.0, 0.0, 0.0]]]
    encoder.word.weight.data[5] = 2.0
    encoder.flag.weight.data.fill_(-1.0)
    assert encoder(seen).tolist() == [[[2.0, -1.0, 2.0]]]
