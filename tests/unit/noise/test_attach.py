"""Networks as people write them, under noise whose variance x* sets."""

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import lupi
from conftest import VectorTask
from lupi.errors import LupiError
from lupi.methods.registry import build_method
from lupi.noise.attach import AttachedNet
from reduced import losses_of

ROWS, XSTAR = 6, 3


def vgg() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.Dropout2d(0.1),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 16),
        nn.ReLU(inplace=True),
        nn.Dropout(inplace=True),
        nn.Linear(16, 4),
    )


class Residual(nn.Module):
    """A ResNet without any dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.stem(x)
        return self.fc((h + self.block(h)).mean((2, 3)))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """PyTorch's own block, over tokens with a mask: two arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.fc = nn.Linear(8, 4)

    def forward(self, tokens: Tensor, padding: Tensor) -> Tensor:
        h = self.block(self.embed(tokens), src_key_padding_mask=padding)
        return self.fc(h.mean(1))  # type: ignore[no-any-return]


class Lstm(nn.Module):
    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 8, batch_first=batch_first)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.drop(self.lstm(x)[0])[:, -1])  # type: ignore[no-any-return]


class Reused(nn.Module):
    """One dropout layer for two places, as many write it."""

    def __init__(self, n_hidden: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, n_hidden), nn.Linear(n_hidden, 8)
        self.drop = nn.Dropout()

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.second(self.drop(self.first(x))))  # type: ignore[no-any-return]


class Detour(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop, self.unused = nn.Dropout(), nn.Dropout()

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(x)  # type: ignore[no-any-return]


def image() -> Tensor:
    return torch.randn(ROWS, 3, 8, 8)


def sentences() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 11, (ROWS, 5)), torch.zeros(ROWS, 5, dtype=torch.bool)


def series() -> Tensor:
    return torch.randn(ROWS, 7, 5)


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], list[str] | None]] = {
    "vgg": (vgg, image, None),
    "resnet": (Residual, image, ["block", "stem"]),
    "transformer": (Transformer, sentences, None),
    "lstm": (Lstm, series, None),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, Any, list[str] | None]:
    build, inputs, sites = CASES[request.param]
    return build(), inputs(), sites


def moved(net: AttachedNet) -> AttachedNet:
    """Move h* off its prior, where it does not depend on x*."""
    for weight in net.noise.parameters():
        weight.data.add_(0.3 * torch.randn_like(weight))
    return net


def output(net: AttachedNet, x: Any, xstar: Tensor, **options: Any) -> Tensor:
    torch.manual_seed(1)
    out: Tensor = net(x, xstar, **options).output
    return out


def test_every_kind_of_network_trains_under_the_noise_of_xstar(
    case: tuple[nn.Module, Any, list[str] | None],
) -> None:
    net, x, sites = case
    xstar, y = torch.randn(ROWS, XSTAR), torch.randint(0, 4, (ROWS,))
    attached = moved(lupi.attach(net, XSTAR, sites, example=(x, xstar)))
    assert not torch.equal(output(attached, x, xstar), output(attached, x, xstar.roll(1, 0)))
    loss = attached.loss(x, y, xstar)
    loss.backward()
    for name, weight in attached.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


def test_the_network_stays_plain(case: tuple[nn.Module, Any, list[str] | None]) -> None:
    net, x, sites = case
    plain = copy.deepcopy(net)
    attached = lupi.attach(net, XSTAR, sites)
    attached(x, torch.randn(ROWS, XSTAR))
    student = attached.student()
    assert list(student.state_dict()) == list(plain.state_dict())
    assert not any(module._forward_hooks for module in net.modules())
    plain.load_state_dict(student.state_dict())
    args = x if isinstance(x, tuple) else (x,)
    for train in (True, False):
        torch.manual_seed(1)
        expected = plain.train(train)(*args)
        torch.manual_seed(1)
        assert torch.equal(student.train(train)(*args), expected)


def test_a_prediction_has_no_noise_and_takes_no_xstar(
    case: tuple[nn.Module, Any, list[str] | None],
) -> None:
    net, x, sites = case
    attached = moved(lupi.attach(net, XSTAR, sites, example=(x, torch.randn(ROWS, XSTAR))))
    predicted = attached.predict(x)
    assert attached.training
    assert torch.equal(predicted, attached.predict(x))
    assert torch.allclose(predicted, attached.eval()(x).output, atol=1e-5)
    with pytest.raises(TypeError):
        attached.predict(x, torch.randn(ROWS, XSTAR))  # type: ignore[call-arg]


def test_it_is_the_method_of_the_comparisons() -> None:
    """Same noise, same penalty, same loss as `het-dropout`."""
    task = VectorTask()
    batch = next(iter(task.splits(20, 0, xstar_frac=0.5).train.batches(20)))
    net = task.network()
    method = build_method("het-dropout", {"beta": 0.3}, copy.deepcopy(net), task)
    attached = lupi.attach(net, xstar=2, beta=0.3, example=(task.example(), torch.zeros(2, 2)))
    weights = {k: v for k, v in method.state_dict().items() if k[:6] == "noise."}
    missing, unexpected = attached.load_state_dict(weights, strict=False)
    assert all(key.startswith("net.") for key in missing)
    assert not unexpected
    moved(attached)
    method.load_state_dict({f"noise.{k}": v for k, v in attached.noise.state_dict().items()}, False)
    torch.manual_seed(1)
    expected = losses_of(method.train(), batch).total
    torch.manual_seed(1)
    assert batch.xstar is not None
    loss = attached.loss(batch.x, batch.y, batch.xstar, has_xstar=batch.has_xstar)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


def test_an_optimizer_may_be_made_before_the_first_batch() -> None:
    attached = lupi.attach(vgg(), XSTAR)
    optimizer = torch.optim.Adam(attached.parameters(), lr=0.1)
    attached.loss(image(), torch.zeros(ROWS, dtype=torch.long), torch.randn(ROWS, XSTAR)).backward()
    before = copy.deepcopy(attached.noise.state_dict())
    optimizer.step()
    for key, weight in attached.noise.state_dict().items():
        if key.endswith("2.bias"):
            assert not torch.equal(before[key], weight), key


def test_weights_load_before_the_first_batch() -> None:
    x, xstar = image(), torch.randn(ROWS, XSTAR)
    first = moved(lupi.attach(vgg(), XSTAR, example=(x, xstar)))
    second = lupi.attach(vgg(), XSTAR)
    second.load_state_dict(first.state_dict())
    assert torch.equal(output(first, x, xstar), output(second, x, xstar))


def test_one_encoder_for_all_sites_is_passed_once() -> None:
    passes = []
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.Tanh())
    encoder.register_forward_hook(lambda *_: passes.append(1))
    attached = lupi.attach(vgg(), encoder)
    x, xstar = image(), torch.randn(ROWS, 1, 4, 4)
    attached(x, xstar)
    assert len(passes) == 1
    moved(attached)
    assert not torch.equal(output(attached, x, xstar), output(attached, x, -xstar))
    attached.loss(x, torch.zeros(ROWS, dtype=torch.long), xstar).backward()
    assert all(weight.grad is not None for weight in encoder.parameters())


def test_an_encoder_may_take_tokens() -> None:
    encoder = nn.EmbeddingBag(9, 4)
    attached = lupi.attach(vgg(), encoder)
    has = torch.arange(ROWS) > 2
    tokens = torch.randint(0, 9, (ROWS, 5))
    loss = attached.loss(image(), torch.zeros(ROWS, dtype=torch.long), tokens, has_xstar=has)
    assert loss.isfinite()


def test_a_network_for_each_site() -> None:
    hstars = {
        "3": nn.Conv2d(1, 1, 3, padding=1),
        "8": nn.Sequential(nn.Flatten(), nn.LazyLinear(16)),
    }
    attached = lupi.attach(vgg(), hstars)
    x, mask = image(), torch.randn(ROWS, 1, 8, 8)
    attached.loss(x, torch.zeros(ROWS, dtype=torch.long), mask).backward()
    logvars = attached.logvars(mask)
    assert {site: tuple(logvar.shape) for site, logvar in logvars.items()} == {
        "3": (ROWS, 1, 8, 8),
        "8": (ROWS, 16),
    }


def test_a_region_of_an_image_gets_noise_outside_it_only() -> None:
    net = nn.Sequential(nn.Dropout2d(0.1))
    ones, region = torch.ones(4, 200, 8, 8), torch.zeros(4, 1, 8, 8)
    region[:, :, 2:5, 3:7] = 1
    noisy = lupi.attach(net, "region")(ones, region).output
    outside = noisy[(region == 0).expand_as(noisy)]
    assert torch.allclose(noisy[(region == 1).expand_as(noisy)], torch.tensor(1.0), atol=0.05)
    assert abs(outside.std().item() - 1) < 0.1
    assert noisy[:, :, 0, 0].equal(noisy[:, :, 7, 7])  # one draw for all places of a channel
    weak = lupi.attach(net, "region", prior=lupi.RegionPrior(inside=0, outside=0.01))
    assert weak(ones, region).output.std() < 0.12


def test_a_region_of_a_text_marks_words() -> None:
    reader = Transformer()
    reader.block.eval()  # without the block's own dropout
    net = lupi.attach(reader, "region", sites=["embed"])
    words, region = sentences(), torch.ones(ROWS, 1, 5)
    assert torch.allclose(net(words, region).output, net.predict(words), atol=0.05)
    region[:, :, 2:] = 0
    assert not torch.allclose(net(words, region).output, net.predict(words), atol=0.05)
    net.loss(words, torch.zeros(ROWS, dtype=torch.long), region).backward()


@pytest.mark.extra
def test_a_model_of_hugging_face(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="pip install 'lupi[examples]'")
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=11, intermediate_size=16, **small)
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    model = transformers.BertForSequenceClassification.from_pretrained(tmp_path)
    net = lupi.attach(model, "region", sites=["bert.embeddings"])
    tokens = {"input_ids": sentences()[0], "attention_mask": torch.ones(ROWS, 5, dtype=torch.long)}
    region, y = torch.zeros(ROWS, 5), torch.zeros(ROWS).long()
    with pytest.raises(LupiError, match=r"is in eval\(\) mode.* call .train\(\)"):
        net(tokens, region)
    F.cross_entropy(net.train()(tokens, region).output.logits, y).backward()
    net.loss(tokens, y, region).backward()
    student = net.student()
    student.save_pretrained(tmp_path)  # type: ignore[operator]
    again = transformers.BertForSequenceClassification.from_pretrained(tmp_path).eval()
    assert torch.equal(again(**tokens).logits, net.predict(tokens).logits)
    names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")  # new and old
    next(getattr(model, name) for name in names if hasattr(model, name))()
    inside = lupi.attach(model, "region", sites=["bert.encoder.layer.0.output.dropout"])
    with pytest.raises(LupiError, match="inside activation checkpointing"):
        inside(tokens, region)


def test_rows_without_xstar() -> None:
    attached = moved(lupi.attach(vgg(), XSTAR, example=(image(), torch.randn(ROWS, XSTAR))))
    x, xstar, has = image(), torch.randn(ROWS, XSTAR), torch.arange(ROWS) % 2 == 0
    expected = output(attached, x, xstar, has_xstar=has)
    by_nan = output(attached, x, xstar.where(has[:, None], torch.nan))
    assert torch.equal(by_nan, expected)
    assert len(attached.logvars(xstar, has)["8"]) == 3
    attached.loss(x, torch.zeros(ROWS, dtype=torch.long), xstar * torch.nan).backward()
    assert all(w.grad is None or w.grad.isfinite().all() for w in attached.parameters())


def test_time_steps_share_the_variance_and_may_share_the_draw() -> None:
    net = nn.Sequential(nn.Dropout(0.3))
    xstar, ones = torch.randn(4, XSTAR), torch.ones(4, 50, 8)
    apart = lupi.attach(net, XSTAR, draw="unit")(ones, xstar).output
    shared = lupi.attach(net, XSTAR)(ones, xstar).output
    assert apart.std(1).min() > 0.1
    assert shared.std(1).max() < 1e-6
    assert shared.std() > 0.1


def test_one_dropout_layer_may_serve_places_of_the_same_width() -> None:
    x, xstar = torch.randn(ROWS, 4), torch.randn(ROWS, XSTAR)
    attached = moved(lupi.attach(Reused(8), XSTAR, example=(x, xstar)))
    assert not torch.equal(output(attached, x, xstar), output(attached, x, -xstar))
    with pytest.raises(LupiError, match=r"site drop: a log-variance of shape \(6, 8\) can't"):
        lupi.attach(Reused(5), XSTAR)(x, xstar)


def test_copies_and_pickles_are_whole() -> None:
    x, xstar = image(), torch.randn(ROWS, XSTAR)
    attached = moved(lupi.attach(vgg(), XSTAR, example=(x, xstar)))
    expected = output(attached, x, xstar)
    for other in (copy.deepcopy(attached), pickle.loads(pickle.dumps(attached))):
        moved(attached)
        assert torch.equal(output(other, x, xstar), expected)


def test_parts_that_are_frozen_stay_so_and_get_no_noise() -> None:
    net = vgg()
    x, xstar = image(), torch.randn(ROWS, XSTAR)
    attached = lupi.attach(net, XSTAR, example=(x, xstar))
    net[1].eval()
    net[3].eval()
    with attached.noise.on(net, dict.fromkeys(("3", "8"), xstar), torch.ones(ROWS) > 0) as passed:
        net(x)
    attached.predict(x)
    assert not net[1].training
    assert list(passed._variances) == ["8"]


def test_data_parallel_training_sees_every_weight(tmp_path: Path) -> None:
    x, xstar = image(), torch.randn(ROWS, XSTAR)
    attached = lupi.attach(vgg(), XSTAR, example=(x, xstar))
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
    try:
        ddp = nn.parallel.DistributedDataParallel(attached)
        for _ in range(2):  # the second pass fails if a weight was left out of the first
            output, penalty = ddp(x, xstar)
            loss = F.cross_entropy(output, torch.zeros(ROWS, dtype=torch.long)) + penalty.mean()
            loss.backward()
        del ddp, loss  # before the group: torch may wait for its threads for ever otherwise
    finally:
        torch.distributed.destroy_process_group()
    assert all(weight.grad is not None for weight in attached.parameters())


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # dynamo's own
def test_a_compiled_network_follows_xstar() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    x, xstar = torch.randn(ROWS, 3), torch.randn(ROWS, XSTAR)
    attached = moved(lupi.attach(net, XSTAR, example=(x, xstar)))
    compiled = torch.compile(attached, backend="aot_eager")
    for other in (xstar, 2 * xstar):
        expected = output(attached, x, other)
        torch.manual_seed(1)
        assert torch.allclose(compiled(x, other).output, expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lupi.attach(Residual(), 3), "Residual has no dropout layer"),
        (lambda: lupi.attach(vgg(), 0), "xstar is 0; expected the length"),
        (lambda: lupi.attach(vgg(), 3, ["fc"]), "no site of the network matches 'fc'"),
        (lambda: lupi.attach(vgg(), {"8": nn.Linear(3, 16)}, ["8"]), "omit `sites`"),
        (lambda: lupi.attach(vgg(), {"*": nn.Linear(3, 16)}), r"'\*' is a pattern"),
        (lambda: lupi.attach(vgg(), 3)(image()), "training needs x\\*"),
        (
            lambda: lupi.attach(vgg(), 3)(image(), torch.randn(ROWS, 4)),
            r"x\* is \(6, 4\); expected \(rows, 3\)",
        ),
        (
            lambda: lupi.attach(vgg(), "region", ["3"])(image(), torch.ones(ROWS, 8)),
            r"x\* is \(6, 1, 8\); expected a region \(rows, 1, height, width\)",
        ),
        (
            lambda: lupi.attach(vgg(), "region", ["3"])(image(), torch.ones(ROWS, 3, 8, 8)),
            r"x\* is \(6, 3, 8, 8\); expected a region: \(rows, 1, height, width\)",
        ),
        (
            lambda: lupi.attach(vgg(), "region", ["3"])(image(), 255 * torch.ones(ROWS, 1, 8, 8)),
            "values from 255 to 255; a region has 0 to 1",
        ),
        (
            lambda: lupi.attach(vgg(), "region")(image(), torch.ones(ROWS, 1, 8, 8)),
            "site 8: its activations are vectors",
        ),
        (lambda: lupi.attach(vgg(), "region", ["3"], beta=1), "beta has no effect on a region"),
        (lambda: lupi.attach(vgg(), "region", ["3"], prior=1.0), "prior is 1.0, the same at all"),
        (lambda: lupi.attach(vgg(), 3, prior=-1), "attach: prior: got -1, expected a finite"),
        (lambda: lupi.attach(vgg(), 3, prior="1"), "prior: got '1', expected a finite variance"),
        (lambda: lupi.attach(vgg(), 3, beta=float("nan")), "beta: got nan, expected a finite wei"),
        (
            lambda: lupi.attach(vgg(), {"8": nn.Linear(3, 5)})(image(), torch.randn(ROWS, 3)),
            r"site 8: a log-variance of shape \(6, 5\) can't be fitted to .* \(6, 16\)",
        ),
        (
            lambda: lupi.attach(Lstm(batch_first=False), 3)(
                torch.randn(7, ROWS, 5), torch.randn(ROWS, 3)
            ),
            r"site drop: activations of shape \(7, 6, 8\) for 6 rows of x\*; rows must be",
        ),
        (
            lambda: lupi.attach(Lstm(), 3, ["lstm"])(series(), torch.randn(ROWS, 3)),
            "site lstm: LSTM returns tuple, not a tensor",
        ),
        (
            lambda: lupi.attach(Detour(), 3, example=(torch.zeros(2, 4), torch.zeros(2, 3))),
            "site unused was not used",
        ),
    ],
)
def test_mistakes_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        make()


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))
        self.head = nn.Linear(8, 2)
        self.use_reentrant = use_reentrant

    def forward(self, x: Tensor) -> Tensor:
        h = checkpoint(self.body, x, use_reentrant=self.use_reentrant)
        return self.head(h)  # type: ignore[no-any-return]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpointing_around_a_site_is_refused(use_reentrant: bool) -> None:
    attached = lupi.attach(Checkpointed(use_reentrant), XSTAR)
    x = torch.randn(ROWS, 3, requires_grad=True)
    with pytest.raises(LupiError, match=r"site body\.1 is inside activation checkpointing"):
        attached(x, torch.randn(ROWS, XSTAR))


def test_checkpointing_the_whole_call_gives_the_same_gradients() -> None:
    x, xstar = torch.randn(ROWS, 3), torch.randn(ROWS, XSTAR)
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    attached = moved(lupi.attach(net, XSTAR, example=(x, xstar)))
    gradients: list[list[Tensor | None]] = []
    for whole in (False, True):
        torch.manual_seed(1)
        given = (x, xstar)
        noisy, penalty = (
            checkpoint(attached, *given, use_reentrant=False) if whole else attached(*given)
        )
        (noisy.square().sum() + penalty.sum()).backward()
        gradients.append([weight.grad for weight in attached.parameters()])
        attached.zero_grad()
    for own, again in zip(*gradients, strict=True):
        assert own is not None
        assert again is not None
        assert torch.allclose(own, again)


def test_a_network_in_eval_mode_is_told_to_train() -> None:
    attached = lupi.attach(vgg().eval(), XSTAR)
    with pytest.raises(LupiError, match=r"Sequential is in eval\(\) mode.* call .train\(\)"):
        attached(image(), torch.randn(ROWS, XSTAR))
    assert attached.train()(image(), torch.randn(ROWS, XSTAR)).output.isfinite().all()


@pytest.mark.parametrize("shape", [(ROWS,), (ROWS, 1)])
def test_one_output_and_targets_0_and_1_are_a_binary_cross_entropy(shape: tuple[int, ...]) -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    x, y, xstar = torch.randn(ROWS, 3), torch.arange(ROWS) % 2, torch.randn(ROWS, XSTAR)
    attached = lupi.attach(net, XSTAR, example=(x, xstar))
    logits = output(attached, x, xstar).flatten()
    torch.manual_seed(1)
    loss = attached.loss(x, y.view(shape), xstar)
    expected = F.binary_cross_entropy_with_logits(logits, y.float())
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    with pytest.raises(LupiError, match="one output per row, and targets from 0 to 4"):
        attached.loss(x, 4 * y.view(shape), xstar)
    assert attached.loss(x, torch.randn(ROWS, 1), xstar, F.mse_loss).isfinite()


def test_raw_units_of_xstar_are_warned_of_once() -> None:
    xstar = torch.randn(ROWS, XSTAR)
    xstar[:, 1] = 1400 + 300 * xstar[:, 1]
    attached = lupi.attach(vgg(), XSTAR)
    with pytest.warns(UserWarning, match=r"column 1 of x\* has mean .* Scale each column"):
        attached(image(), xstar)
    attached(image(), xstar)  # any other warning is an error


def test_weights_that_do_not_exist_yet_behave_as_those_of_torch() -> None:
    attached = lupi.attach(vgg(), XSTAR)
    assert any(isinstance(w, nn.UninitializedParameter) for w in attached.state_dict().values())
    again = copy.deepcopy(attached)
    again.load_state_dict(attached.state_dict())
    again(image(), torch.randn(ROWS, XSTAR))
    attached.load_state_dict(again.state_dict())
    assert all(w.isfinite().all() for w in attached.state_dict().values())


def test_regions_are_checked_in_every_batch() -> None:
    attached = lupi.attach(vgg(), "region", ["3"])
    region = torch.rand(ROWS, 1, 8, 8)
    attached(image(), region)
    with pytest.raises(LupiError, match="a region has 0 to 1"):
        attached(image(), 255 * region)
    region[0] = torch.nan  # a row without x*
    assert attached(image(), region).output.isfinite().all()


def test_a_region_may_come_without_its_channel() -> None:
    attached = lupi.attach(vgg(), "region", ["3"])
    x, region = image(), torch.rand(ROWS, 1, 8, 8)
    assert torch.equal(output(attached, x, region), output(attached, x, region[:, 0]))


def test_a_convolution_over_time_needs_no_network_of_its_own() -> None:
    net = nn.Sequential(nn.Conv1d(5, 8, 3, padding=1), nn.Dropout(0.3), nn.Flatten())
    attached = lupi.attach(net, XSTAR)
    attached(torch.randn(ROWS, 5, 7), torch.randn(ROWS, XSTAR))
    assert attached.logvars(torch.randn(ROWS, XSTAR))["1"].shape == (ROWS, 8, 1)


class Fails(nn.Module):
    """A network of one dropout layer, which multiplies its input."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(3, 2)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.drop(x)) * self.factor
        return out


def zeros_but(row: int, value: float) -> Tensor:
    x = torch.zeros(4, 3)
    x[row, 1] = value
    return x


@pytest.mark.parametrize(
    ("x", "y", "factor", "message"),
    [
        (zeros_but(2, float("nan")), [0, 1, 0, 1], 1, r"output .* x is not finite in 1 of 4 rows"),
        (zeros_but(2, float("inf")), [0, 1, 0, 1], 1, r"the first is 2\). Replace these values"),
        (torch.ones(4, 3), [0, 1, 0, 1], 1e39, r"output without noise, in 4 of 4 .* Scale x, or"),
        (torch.ones(4, 3), [0, 1, 0, float("nan")], 1, r"loss .* y is not finite in 1 of 4 rows"),
    ],
)
def test_a_loss_that_is_not_finite_is_explained_once(
    x: Tensor, y: list[float], factor: float, message: str, recwarn: pytest.WarningsRecorder
) -> None:
    net = lupi.attach(Fails(factor), 2)
    targets = F.one_hot(torch.tensor([0, 1, 0, 1])).float() * torch.tensor(y)[:, None]
    for _ in range(3):
        assert not net.loss(x, targets, torch.zeros(4, 2), F.cross_entropy).isfinite()
    (warned,) = recwarn.list
    assert re.search(message, str(warned.message)), warned.message


def test_weights_that_diverged_are_named(recwarn: pytest.WarningsRecorder) -> None:
    net = lupi.attach(Fails(), 2)
    with torch.no_grad():
        net.net.get_parameter("head.weight").fill_(float("inf"))
    net({"x": torch.ones(4, 3)}, torch.zeros(4, 2))
    (warned,) = recwarn.list
    assert "so are weights (net.head.weight), since an earlier step diverged" in str(warned.message)


def test_inputs_by_name_are_named(recwarn: pytest.WarningsRecorder) -> None:
    lupi.attach(Fails(), 2)({"x": zeros_but(0, float("nan"))}, torch.zeros(4, 2))
    (warned,) = recwarn.list
    assert "x['x'] is not finite in 1 of 4 rows (the first is 0)" in str(warned.message)
