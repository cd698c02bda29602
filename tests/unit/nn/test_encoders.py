import torch
from torch import nn

from lupi.nn.encoders import MapEncoder, feature_encoders, vector_encoder


def shake(net: nn.Module) -> None:
    for parameter in net.parameters():
        parameter.data.normal_()


def test_encoders_start_at_the_prior() -> None:
    assert vector_encoder(3, 5)(torch.randn(2, 3)).abs().max() == 0
    assert MapEncoder(1, 2, (4, 4))(torch.rand(2, 1, 8, 8)).abs().max() == 0
    assert MapEncoder(1, 2, (4, 4), budget=True)(torch.rand(2, 1, 8, 8)).abs().max() < 1e-6


def test_a_budget_is_spent_whole_by_every_example() -> None:
    encoder = MapEncoder(1, 2, (4, 4), budget=True)
    shake(encoder)
    variances = encoder(torch.rand(3, 1, 8, 8)).exp()
    assert variances.std() > 0.1
    assert torch.allclose(variances.mean((1, 2, 3)), torch.ones(3), atol=1e-5)


def test_kernel_1_sees_the_place_alone() -> None:
    near, far = (MapEncoder(1, 1, (6, 6), kernel=kernel) for kernel in (1, 3))
    shake(near)
    shake(far)
    mask = torch.zeros(1, 1, 6, 6)
    changed = mask.clone()
    changed[..., 3, 3] = 1
    assert (near(mask) != near(changed)).sum() == 1
    assert (far(mask) != far(changed)).sum() > 9


def test_feature_encoders_build_on_one_another() -> None:
    first, second = feature_encoders(6, [5, 4])
    features = torch.randn(2, 6)
    assert first(features).shape == (2, 5)
    assert second(features).shape == (2, 4)
    assert next(first.parameters()) is next(second.parameters())
