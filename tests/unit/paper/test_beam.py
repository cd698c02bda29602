import itertools

import pytest
import torch
from torch import Tensor

from lupi_paper.translation.networks.beam import beam_search
from lupi_paper.translation.networks.seq2seq import Seq2Seq

PAD, START, END = 0, 2, 3
SOURCE = torch.tensor([[0, 0, 0, 5, 3], [4, 5, 6, 7, 3], [0, 7, 7, 5, 3], [0, 0, 6, 4, 3]])


def make_net(n_words: int = 9, **options: bool) -> Seq2Seq:
    """Weights large enough that translations differ, and end."""
    torch.manual_seed(3)
    net = Seq2Seq(8, n_words, 12, **options).eval()
    for weight in net.parameters():
        weight.data.mul_(8)
    return net


def search(
    net: Seq2Seq, source: Tensor = SOURCE, width: int = 4, length_norm: float = 1.0
) -> list[list[int]]:
    found = beam_search(
        net,
        (source, torch.full((len(source), 1), START)),
        start=START,
        end=END,
        never=(PAD, START),
        width=width,
        length_norm=length_norm,
    )
    return [hypothesis.words for hypothesis in found]


def greedy(net: Seq2Seq, source: Tensor) -> list[int]:
    """The obvious loop: the best next word, by passes over all words so far."""
    words: list[int] = []
    for _ in range(2 * int((source != PAD).sum()) + 10):
        logits = net((source[None], torch.tensor([[START, *words]])))[0, -1]
        logits[[PAD, START]] = -torch.inf
        word = int(logits.argmax())
        if word == END:
            break
        words.append(word)
    return words


@pytest.mark.parametrize("input_feeding", [False, True])
def test_a_beam_of_one_is_greedy(input_feeding: bool) -> None:
    net = make_net(input_feeding=input_feeding)
    found = search(net, width=1)
    assert found == [greedy(net, row) for row in SOURCE]
    assert len({tuple(words) for words in found}) > 1


@pytest.mark.parametrize("input_feeding", [False, True])
@pytest.mark.parametrize("width", [1, 3, 12])
def test_neither_batch_nor_padding_changes_a_translation(input_feeding: bool, width: int) -> None:
    net = make_net(input_feeding=input_feeding)
    together = search(net, width=width)
    alone = [search(net, row[row != PAD][None], width)[0] for row in SOURCE]
    assert together == alone
    assert search(net, SOURCE.flip(0), width) == together[::-1]


@torch.no_grad()
def logprob(net: Seq2Seq, source: Tensor, words: tuple[int, ...]) -> float:
    logits = net((source[None], torch.tensor([[START, *words]])))[0].log_softmax(1)
    return sum(float(logits[t, word]) for t, word in enumerate((*words, END)))


@pytest.mark.parametrize("length_norm", [0.0, 1.0])
def test_a_wide_beam_finds_the_best_of_all_short_translations(length_norm: float) -> None:
    net = make_net(n_words=6)  # two words, unknown and END
    net.decoder.words.bias.data[END] += 6  # short ones are likely
    source = SOURCE[1]
    every = [words for n in range(5) for words in itertools.product((1, 4, 5), repeat=n)]
    best = max(
        every, key=lambda words: logprob(net, source, words) / (len(words) + 1) ** length_norm
    )
    assert search(net, source[None], width=100, length_norm=length_norm)[0] == list(best)


def test_scores_are_normalised_log_probabilities() -> None:
    net = make_net()
    x = (SOURCE, torch.full((4, 1), START))
    for row, found in zip(SOURCE, beam_search(net, x, start=START, end=END, width=4), strict=True):
        if len(found.words) < 2 * int((row != PAD).sum()) + 10:  # it ended by itself
            expected = logprob(net, row, tuple(found.words)) / (len(found.words) + 1)
            assert found.score == pytest.approx(expected, abs=1e-4)


def test_what_never_ends_is_cut() -> None:
    net = make_net()
    net.decoder.words.bias.data[END] = -1e9
    lengths = [len(words) for words in search(net)]
    assert lengths == [2 * n + 10 for n in (2, 5, 4, 3)]


def test_only_the_source_is_read() -> None:
    net = make_net()
    before = torch.randint(4, 9, (4, 6))
    found = beam_search(net, (SOURCE, before), start=START, end=END, never=(PAD, START), width=4)
    assert [hypothesis.words for hypothesis in found] == search(net)


def test_places_are_where_attention_was() -> None:
    net = make_net()
    x = (SOURCE, torch.full((4, 1), START))
    for i, found in enumerate(beam_search(net, x, start=START, end=END, width=3)):
        memory = net.encode((SOURCE[i : i + 1],))
        before = torch.tensor([[START, *found.words[:-1]]])
        _, attention, _ = net.decoder.run(before, memory, memory.start)
        assert found.seen == attention[0, :, :-1].argmax(1).tolist()[: len(found.words)]
