"""Batches in parts, in one process; several are in tests/contract."""

from itertools import chain

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lupi.nn import rows
from lupi.nn.cut_layers import passing

Y = torch.arange(11)
HAS = torch.tensor([1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0], dtype=torch.bool)


@pytest.mark.parametrize("n_processes", [1, 2, 3, 20])
@pytest.mark.parametrize("n_passes", [1, 2, 4, 11, 30])
def test_parts_are_all_rows_once_in_passes_that_do_not_depend_on_processes(
    n_passes: int, n_processes: int
) -> None:
    of_process = [rows.cut(Y, n_passes, n_processes, rank) for rank in range(n_processes)]
    alone = rows.cut(Y, n_passes)
    by_pass = [[*chain(*(part.own for part in parts))] for parts in zip(*of_process, strict=True)]
    assert by_pass == [[*part.own] for part in alone]
    assert [*chain(*by_pass)] == [*range(11)]
    sizes = [len(part.own) for part in alone]
    assert max(sizes) - min(sizes) <= 1
    assert all(part.n_parts == len(alone) * n_processes for part in chain(*of_process))


def test_rows_with_xstar_are_counted_on_their_own() -> None:
    first, second = (part.among(HAS) for part in rows.cut(Y, 2))
    assert (first.own, second.own) == (range(2), range(2, 3))
    assert first.y.tolist() == second.y.tolist() == [0, 4, 5]


def test_means_of_parts_add_up() -> None:
    values = torch.randn(11, 3)
    added = torch.zeros(())
    for part in rows.cut(Y, 3):
        with passing(part):
            added += rows.mean(values[part.own.start : part.own.stop])
            added += rows.mean(values[:0])  # a part without rows adds nothing
    assert added.item() == pytest.approx(values.mean().item(), abs=1e-6)


def test_dropout_and_noise_of_a_row_do_not_depend_on_the_cut() -> None:
    x = torch.ones(11, 4, 3, 3).to(memory_format=torch.channels_last)

    def drawn(part: rows.Part | None) -> torch.Tensor:
        torch.manual_seed(0)
        own = x if part is None else x[part.own.start : part.own.stop]
        with passing(part):
            return F.dropout(own, 0.5) + rows.draw(torch.randn_like, own)

    assert torch.equal(torch.cat([drawn(part) for part in rows.cut(Y, 3)]), drawn(None))


def test_repeated_rows_are_drawn_copy_by_copy() -> None:
    def drawn(part: rows.Part | None, n: int) -> torch.Tensor:
        torch.manual_seed(0)
        with passing(part):
            return rows.draw(torch.randn_like, torch.empty(2 * n, 5)).view(2, n, 5)

    parts = [drawn(part, len(part.own)) for part in rows.cut(Y, 3)]
    assert torch.equal(torch.cat(parts, 1), drawn(None, 11))


def test_batch_norm_of_a_pass_is_pytorchs() -> None:
    x, layers = torch.randn(11, 4, 3, 3), [nn.BatchNorm2d(4), nn.BatchNorm2d(4)]
    nn.init.uniform_(layers[0].weight)
    layers[1].load_state_dict(layers[0].state_dict())
    (part,) = rows.cut(Y, 1)
    with passing(part):
        output = layers[0](x)
    assert torch.allclose(output, layers[1](x), atol=1e-6)
    for ours, theirs in zip(layers[0].buffers(), layers[1].buffers(), strict=True):
        assert torch.allclose(ours, theirs)
    with passing(part):  # statistics of the past, as in any other pass
        assert torch.equal(
            layers[1].eval()(x),
            F.batch_norm(
                x, layers[1].running_mean, layers[1].running_var, layers[1].weight, layers[1].bias
            ),
        )


def test_nothing_is_left_behind() -> None:
    (part,) = rows.cut(Y, 1)
    with passing(part), pytest.raises(KeyError), rows.with_xstar():
        raise KeyError
    assert rows.count(3) == 3
