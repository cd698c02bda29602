import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.networks.text import (
    ConvEncoder,
    TextNetwork,
    bag_of_words,
    encoder_network,
    import_encoder,
    lstm,
)
from lupi.noise.sites import attached, find_sites, site_shapes
from lupi.permission import allow

X = torch.tensor([[1, 2, 3, 2, 0], [4, 0, 5, 6, 1]])


def moved(net: TextNetwork) -> TextNetwork:
    """Move weights off zero."""
    torch.manual_seed(0)
    for weight in net.parameters():
        weight.data.add_(0.3 * torch.randn_like(weight))
    return net.eval()


def students() -> dict[str, TextNetwork]:
    torch.manual_seed(0)
    return {
        "bag-of-words": moved(bag_of_words(7, 3, 0.0)),
        "cnn": moved(encoder_network(ConvEncoder(7, 4), 3, 0.0)),
        "lstm": moved(lstm(7, 3, 4, 0.0)),
    }


STUDENTS = students()


@pytest.mark.parametrize("name", STUDENTS)
def test_padding_changes_nothing(name: str) -> None:
    net = STUDENTS[name]
    longer = torch.cat([X, torch.zeros(2, 6, dtype=torch.long)], 1)
    torch.testing.assert_close(net(longer), net(X))
    torch.testing.assert_close(net(X[:1, :4]), net(X)[:1])


@pytest.mark.parametrize("name", STUDENTS)
def test_a_text_without_words_has_an_output(name: str) -> None:
    assert STUDENTS[name](torch.zeros(2, 3, dtype=torch.long)).isfinite().all()


@pytest.mark.parametrize("name", STUDENTS)
def test_there_is_a_vector_for_every_word_and_a_site_after_pooling(name: str) -> None:
    net = STUDENTS[name]
    shapes = site_shapes(net, find_sites(net, ["*"]), X)
    assert shapes["trunk.words"].places == (X.shape[1],)
    (pooled,) = [found for site, found in shapes.items() if site != "trunk.words"]
    assert not pooled.places


def test_a_bag_of_words_is_linear_in_which_words_there_are() -> None:
    texts = ["red blue green blue", "blue", "red red red"]
    vectorizer = CountVectorizer(binary=True)
    features = torch.from_numpy(normalize(vectorizer.fit_transform(texts)).toarray()).float()
    net = moved(bag_of_words(4, 2, 0.0))
    numbers = {word: i + 1 for word, i in vectorizer.vocabulary_.items()}
    x = torch.zeros(3, 4, dtype=torch.long)
    for row, text in enumerate(texts):
        for place, word in enumerate(text.split()):
            x[row, place] = numbers[word]
    weight = net.trunk.get_parameter("embedding.weight")
    expected = features @ weight[1:] + net.head.get_parameter("bias")
    torch.testing.assert_close(net(x), expected)


def test_a_removed_word_is_as_if_it_had_not_been_there() -> None:
    net = STUDENTS["bag-of-words"]
    removed, shorter = torch.tensor([[4, 0, 0, 6, 1]]), torch.tensor([[4, 6, 1]])
    torch.testing.assert_close(net(removed), net(shorter))


def test_one_draw_for_all_words_is_noise_at_the_outputs() -> None:
    net = moved(bag_of_words(7, 3, 0.0)).train()
    factor = torch.tensor([1.7, -0.4])[:, None, None]
    with attached(find_sites(net, ["trunk.words"]), {"trunk.words": lambda h: h * factor}):
        noisy = net(X)
    bias = net.head.get_parameter("bias")
    torch.testing.assert_close(noisy, (net(X) - bias) * factor[:, 0] + bias)


def test_a_bag_of_words_starts_without_an_opinion_and_drops_whole_words() -> None:
    assert (bag_of_words(7, 3, 0.0)(X) == 0).all()
    net = moved(bag_of_words(7, 3, 0.5)).train()
    dropped: list[Tensor] = []
    net.trunk.words.register_forward_hook(lambda module, inputs, output: dropped.append(output))  # type: ignore[union-attr]
    net(X)
    is_zero = dropped[0] == 0
    assert torch.equal(is_zero.all(2), is_zero.any(2))


def test_an_lstm_reads_both_directions() -> None:
    net = STUDENTS["lstm"]
    other_end, other_start = torch.tensor([[1, 2, 3, 5]]), torch.tensor([[5, 2, 3, 4]])
    text = torch.tensor([[1, 2, 3, 4]])
    states: list[Tensor] = []
    attention = net.trunk.get_submodule("attention")
    hook = attention.register_forward_pre_hook(lambda m, inputs: states.append(inputs[0]))
    for x in (text, other_end, other_start):
        net(x)
    hook.remove()
    ahead, back = (torch.stack(states)[:, 0, :, part] for part in (slice(4), slice(4, 8)))
    assert torch.equal(ahead[0, :3], ahead[1, :3])
    assert not torch.equal(back[0, 0], back[1, 0])
    assert torch.equal(back[0, 1:], back[2, 1:])


class Wrong(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.float()


def make_conv(n_words: int) -> nn.Module:
    return ConvEncoder(n_words, 5)


def make_nothing(n_words: int) -> int:
    return n_words


def test_own_encoders_are_imported_and_checked() -> None:
    allow(f"{__name__}:make_conv")
    encoder = import_encoder(f"{__name__}:make_conv", 7)
    assert encoder_network(encoder, 2, 0.1)(X).shape == (2, 2)
    with pytest.raises(LupiError, match=r"it returned \(2, 3\); expected a tensor"):
        encoder_network(Wrong(), 2, 0.0)
    for name, message in (
        (f"{__name__}:make_nothing", "returned a int, not a torch module"),
        (f"{__name__}:none", "has no attribute"),
        ("no_such_module:make", "No module named"),
        ("", "expected package.module:function"),
    ):
        with pytest.raises(LupiError, match="is named in a file and would run code"):
            import_encoder(name, 7)
        allow(name)
        with pytest.raises(LupiError, match=message):
            import_encoder(name, 7)


@pytest.mark.parametrize("name", STUDENTS)
def test_the_text_is_the_sum_of_its_words_and_draws_may_repeat_rows(name: str) -> None:
    net = STUDENTS[name].train()
    sites = find_sites(net, ["trunk.words"])
    with attached(sites, {"trunk.words": lambda h: torch.cat([h, 2 * h])}):
        pooled = net.trunk(X)
    torch.testing.assert_close(pooled[2:], 2 * pooled[:2])
    net.eval()
