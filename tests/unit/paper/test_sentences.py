import numpy as np
import torch
from torch import Tensor

from lupi.core import SortableSplit
from lupi_paper.translation.text.sentences import SentenceSplit, to_learn, to_translate
from lupi_paper.translation.text.vocabulary import END, PAD, START

N = 200


def make_split(with_xstar: bool = False) -> SentenceSplit:
    """Row i has i in each of its tokens and in x*."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 30, (N, 2)).tolist()
    source = [[10 + i] * n for i, (n, _) in enumerate(lengths)]
    target = [[10 + i] * m for i, (_, m) in enumerate(lengths)]
    if not with_xstar:
        return SentenceSplit(source, target)
    xstar = np.arange(N, dtype=np.float32)[:, None]
    return SentenceSplit(source, target, xstar, np.arange(N) % 2 == 0)


def shuffled(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_sources_are_padded_on_the_left_and_targets_on_the_right() -> None:
    x, y = to_learn([[7, 8], [9]], [[5], [6, 7, 8]])
    assert x.source.tolist() == [[7, 8, END], [PAD, 9, END]]
    assert x.before.tolist() == [[START, 5, PAD, PAD], [START, 6, 7, 8]]
    assert y.tolist() == [[5, END, PAD, PAD], [6, 7, 8, END]]
    alone = to_translate([[7, 8], []])
    assert alone.source.tolist() == [[7, 8, END], [PAD, PAD, END]]
    assert alone.before.tolist() == [[START], [START]]


def rows_of(y: Tensor, lengths: bool = False) -> list[int]:
    return [len([t for t in row if t != PAD]) if lengths else row[0] for row in y.tolist()]


def test_batches_hold_a_number_of_tokens() -> None:
    split = make_split()
    widest = [max(b.x.source.shape[1], b.y.shape[1]) * len(b.y) for b in split.batches(16)]
    mean = np.mean([max(len(s), len(t)) + 1 for s, t in zip(split.source, split.target)])  # noqa: B905
    assert max(widest) <= np.ceil(16 * mean)
    rows = torch.cat([torch.tensor(rows_of(b.y)) for b in split.batches(16)])
    expected = [target[0] if target else END for target in split.target]
    assert rows.tolist() == expected  # in their order


def test_sorted_rows_have_less_padding_and_known_places() -> None:
    split = make_split(with_xstar=True)
    rows, places = split.sort()
    assert isinstance(split, SortableSplit)
    assert [rows.source[i] for i in places] == split.source
    assert [rows.target[i] for i in places] == split.target
    assert rows.xstar is not None
    assert split.xstar is not None
    assert torch.equal(rows.xstar[places], split.xstar)
    assert rows.has_xstar is not None
    assert split.has_xstar is not None
    assert torch.equal(rows.has_xstar[places], split.has_xstar)
    n_padded, in_order = (sum(b.y.numel() for b in s.batches(16)) for s in (rows, split))
    assert n_padded < 0.8 * in_order


def test_shuffled_batches_have_rows_of_like_length_and_all_rows_once() -> None:
    split = make_split(with_xstar=True)
    batches = list(split.batches(16, shuffled(0)))
    seen = torch.cat([b.xstar for b in batches if b.xstar is not None])
    assert sorted(seen.flatten().tolist()) == list(range(N))
    padding = np.mean([(b.y == PAD).float().mean() for b in batches])
    in_order = np.mean([(b.y == PAD).float().mean() for b in split.batches(16)])
    assert padding < 0.8 * in_order
    sizes = [b.y.shape[1] for b in batches]
    assert sizes != sorted(sizes)


def test_xstar_stays_with_its_sentence() -> None:
    for batch in make_split(with_xstar=True).batches(16, shuffled(1)):
        assert batch.xstar is not None
        assert batch.has_xstar is not None
        assert torch.equal(batch.has_xstar, batch.xstar[:, 0] % 2 == 0)
        for source, number in zip(batch.x.source.tolist(), batch.xstar[:, 0].tolist(), strict=True):
            assert {t for t in source if t > END} <= {10 + number}


def test_the_order_is_the_generators() -> None:
    split = make_split()

    def first(seed: int) -> list[int]:
        return rows_of(next(iter(split.batches(16, shuffled(seed)))).y)

    assert first(0) == first(0)
    assert first(0) != first(1)


def test_a_row_longer_than_a_batch_is_a_batch() -> None:
    split = SentenceSplit([[5]] * 9 + [[6] * 500], [[5]] * 10)
    assert [len(b.y) for b in split.batches(1)][-1] == 1
