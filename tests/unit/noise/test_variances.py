import pytest
import torch

from lupi.noise.layer import fit_to
from lupi.noise.sites import CHANNELS_FIRST, MAP, SEQUENCE, VECTOR, Layout


@pytest.mark.parametrize(
    ("values", "h", "layout", "expected"),
    [
        ((2, 5), (2, 5), VECTOR, (2, 5)),
        ((2, 5), (2, 9, 5), SEQUENCE, (2, 1, 5)),
        ((2, 5), (2, 5, 9), CHANNELS_FIRST, (2, 5, 1)),
        ((2, 5), (2, 5, 8, 8), MAP, (2, 5, 1, 1)),
        ((2, 1, 9), (2, 9, 5), SEQUENCE, (2, 9, 1)),
        ((2, 1, 9), (2, 5, 9), CHANNELS_FIRST, (2, 1, 9)),
        ((2, 1, 18), (2, 9, 5), SEQUENCE, (2, 9, 1)),
        ((2, 1, 32, 32), (2, 5, 8, 8), MAP, (2, 1, 8, 8)),
        ((2, 5, 4, 4), (2, 5, 8, 8), MAP, (2, 5, 8, 8)),
    ],
)
def test_values_broadcast_to_the_activations(
    values: tuple[int, ...], h: tuple[int, ...], layout: Layout, expected: tuple[int, ...]
) -> None:
    assert fit_to(torch.zeros(values), torch.zeros(h), layout).shape == expected


def test_a_map_is_averaged_over_what_a_cell_covers() -> None:
    mask = torch.zeros(1, 1, 4, 4)
    mask[..., :2, :3] = 1
    fitted = fit_to(mask, torch.zeros(1, 8, 2, 2), MAP)
    assert fitted[0, 0].tolist() == [[1.0, 0.5], [0.0, 0.0]]


def test_a_word_keeps_its_own_flag() -> None:
    flags = torch.tensor([[[0.0, 1.0, 0.0]]])  # (1, 1, 3)
    assert fit_to(flags, torch.zeros(1, 3, 8), SEQUENCE)[0, :, 0].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("values", "h", "layout"),
    [((2, 1, 4, 4), (2, 5), VECTOR), ((2, 3), (2, 5), VECTOR), ((2, 1, 4, 4), (2, 4, 5), SEQUENCE)],
)
def test_what_does_not_fit_is_refused(
    values: tuple[int, ...], h: tuple[int, ...], layout: Layout
) -> None:
    with pytest.raises(ValueError, match="can't be fitted to activations of shape"):
        fit_to(torch.zeros(values), torch.zeros(h), layout)
