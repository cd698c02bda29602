import torch
from torch import nn

from lupi.noise.batchnorm import reestimate, untracked


def statistics(norm: nn.BatchNorm1d) -> tuple[float, float]:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return norm.running_mean[0].item(), norm.running_var[0].item()


def test_untracked_uses_the_batch_and_records_nothing() -> None:
    norm = nn.BatchNorm1d(2)
    net = nn.Sequential(norm).train()
    x = torch.randn(64, 2) * 3 + 5
    before = {key: value.clone() for key, value in net.state_dict().items()}
    with untracked(net):
        z = net(x)
    assert z.mean(0).abs().max() < 1e-5
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
    net(x)
    assert statistics(norm)[0] > 0  # tracking is back


def test_reestimated_statistics_are_the_plain_average() -> None:
    norm = nn.BatchNorm1d(1)
    net = nn.Sequential(norm).train()
    batches = [torch.tensor([[0.0], [2.0]]), torch.tensor([[4.0], [8.0]])]
    net(torch.full((4, 1), 100.0) * torch.randn(4, 1))  # spoilt before
    reestimate(net, batches)
    assert statistics(norm)[0] == 3.5
    assert statistics(norm)[1] == 5.0  # mean of the unbiased variances 2 and 8
    assert norm.momentum == 0.1
    assert not net.training


def test_reestimation_has_no_dropout() -> None:
    norm = nn.BatchNorm1d(1)
    net = nn.Sequential(nn.Dropout(0.5), norm)
    reestimate(net, [torch.ones(1000, 1)])
    assert statistics(norm)[0] == 1.0
    assert statistics(norm)[1] == 0.0


def test_without_batchnorm_nothing_is_passed_through() -> None:
    def explode() -> torch.Tensor:
        raise AssertionError("not needed")

    reestimate(nn.Sequential(nn.Linear(1, 1)), (explode() for _ in range(1)))
