"""Batches in parts, in one process; several are in tests/contract."""

from itertools import chain

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lupi.core import Batch, Losses, RowLoss
from lupi.core.whole_batch import WHOLE, CutBatch, WholeBatch, cut
from lupi.nn.cut_layers import layers_of_the_whole_batch
from lupi.train.passes import reduce

N = 11
HAS = torch.tensor([1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0], dtype=torch.bool)


def own_rows(part: WholeBatch) -> slice:
    assert isinstance(part, CutBatch)
    return slice(part.rows.own.start, part.rows.own.stop)


@pytest.mark.parametrize("n_processes", [1, 2, 3, 20])
@pytest.mark.parametrize("n_passes", [1, 2, 4, 11, 30])
def test_parts_are_all_rows_once_in_passes_that_do_not_depend_on_processes(
    n_passes: int, n_processes: int
) -> None:
    of_process = [cut(N, None, n_passes, n_processes, rank) for rank in range(n_processes)]
    alone = cut(N, None, n_passes)
    by_pass = [
        [*chain(*(part.rows.own for part in parts))] for parts in zip(*of_process, strict=True)
    ]
    assert by_pass == [[*part.rows.own] for part in alone]
    assert [*chain(*by_pass)] == [*range(N)]
    sizes = [len(part.rows.own) for part in alone]
    assert max(sizes) - min(sizes) <= 1
    assert all(part.n_parts == len(alone) * n_processes for part in chain(*of_process))


def test_rows_with_xstar_are_counted_on_their_own() -> None:
    first, second = (part.with_xstar for part in cut(N, HAS, 2))
    assert first == (range(2), range(2), 3)
    assert second == (range(2, 3), range(2, 3), 3)


def test_losses_of_parts_add_up() -> None:
    values, of_xstar = torch.randn(N, 3), torch.randn(N)
    x, y, xstar = torch.zeros(N, 1), torch.zeros(N), torch.zeros(N, 1)

    def losses(part: WholeBatch, rows: slice) -> dict[str, torch.Tensor]:
        batch = Batch(x[rows], y[rows], xstar[rows], HAS[rows], n_targets=40, whole=part)
        own = {
            "all": RowLoss(values[rows], 2.0),
            "mean": RowLoss(values[rows].mean()),
            "xstar": RowLoss(of_xstar[rows][HAS[rows]], only_xstar=True),
            "words": RowLoss(of_xstar[rows], n_targets=batch.n_targets),
        }
        return reduce(Losses(own, {"sum": values[rows].sum()}), batch).parts

    parts = [losses(part, own_rows(part)) for part in cut(N, HAS, 3)]
    whole = losses(WHOLE, slice(N))
    expected = {
        "all": 2 * values.mean(),
        "mean": values.mean(),
        "xstar": of_xstar[HAS].mean(),
        "words": of_xstar.sum() / 40,
        "sum": values.sum(),
    }
    for name, value in expected.items():
        assert whole[name].item() == pytest.approx(value.item(), abs=1e-6)
        assert sum(part[name].item() for part in parts) == pytest.approx(value.item(), abs=1e-5)


def test_a_loss_that_concerns_no_row_is_zero() -> None:
    batch = Batch(torch.zeros(2, 1), torch.zeros(2))
    total = reduce(Losses({"xstar": RowLoss(torch.zeros(0), only_xstar=True)}), batch).total
    assert total.item() == 0
    assert total.requires_grad


def test_dropout_and_noise_of_a_row_do_not_depend_on_the_cut() -> None:
    x = torch.ones(N, 4, 3, 3).to(memory_format=torch.channels_last)
    dropout = nn.Dropout(0.5)

    def seeded(part: CutBatch | None) -> torch.Tensor:
        torch.manual_seed(0)
        if part is None:
            return F.dropout(x, 0.5) + torch.randn_like(x)
        own = x[own_rows(part)]
        with layers_of_the_whole_batch(dropout, part):
            dropped: torch.Tensor = dropout(own)
            return dropped + part.draw(torch.randn_like, own)

    assert torch.equal(torch.cat([seeded(part) for part in cut(N, None, 3)]), seeded(None))


def test_whole_words_are_dropped_whatever_the_cut() -> None:
    x, dropout = torch.ones(N, 6, 3), nn.Dropout1d(0.5)
    torch.manual_seed(0)
    expected = dropout(x)
    parts = []
    for part in cut(N, None, 3):
        torch.manual_seed(0)
        with layers_of_the_whole_batch(dropout, part):
            parts.append(dropout(x[own_rows(part)]))
    assert torch.equal(torch.cat(parts), expected)
    assert torch.equal((expected == 0).all(2), (expected == 0).any(2))


def test_rows_with_xstar_are_drawn_for_on_their_own() -> None:
    dropout, x = nn.Dropout(0.5), torch.ones(int(HAS.sum()), 4)

    def seeded(part: CutBatch | None) -> torch.Tensor:
        torch.manual_seed(0)
        if part is None:
            return F.dropout(x, 0.5)
        assert part.with_xstar is not None
        own = part.with_xstar.own
        with layers_of_the_whole_batch(dropout, part), part.only_xstar():
            dropped: torch.Tensor = dropout(x[own.start : own.stop])
        return dropped

    assert torch.equal(torch.cat([seeded(part) for part in cut(N, HAS, 3)]), seeded(None))


def test_repeated_rows_are_drawn_copy_by_copy() -> None:
    def drawn(part: WholeBatch, n: int) -> torch.Tensor:
        torch.manual_seed(0)
        return part.draw(torch.randn_like, torch.empty(2 * n, 5)).view(2, n, 5)

    parts = [drawn(part, len(part.rows.own)) for part in cut(N, None, 3)]
    assert torch.equal(torch.cat(parts, 1), drawn(WHOLE, N))


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_of_a_pass_is_pytorchs(momentum: float | None) -> None:
    x = torch.randn(N, 4, 3, 3)
    layers = [nn.BatchNorm2d(4, momentum=momentum), nn.BatchNorm2d(4, momentum=momentum)]
    nn.init.uniform_(layers[0].weight)
    layers[1].load_state_dict(layers[0].state_dict())
    (part,) = cut(N, None, 1)
    for _ in range(2):
        with layers_of_the_whole_batch(layers[0], part):
            output = layers[0](x)
        assert torch.allclose(output, layers[1](x), atol=1e-6)
        for ours, theirs in zip(layers[0].buffers(), layers[1].buffers(), strict=True):
            assert torch.allclose(ours, theirs)
    with layers_of_the_whole_batch(layers[1], part):  # statistics of the past, as in any other pass
        assert torch.equal(
            layers[1].eval()(x),
            F.batch_norm(
                x, layers[1].running_mean, layers[1].running_var, layers[1].weight, layers[1].bias
            ),
        )


def test_nothing_is_left_behind() -> None:
    (part,) = cut(N, HAS, 1)
    dropout = nn.Dropout(0.5)
    with layers_of_the_whole_batch(dropout, part), pytest.raises(KeyError), part.only_xstar():
        raise KeyError
    assert part.n_rows(3) == N
    assert "forward" not in vars(dropout)
