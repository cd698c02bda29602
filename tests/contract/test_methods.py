"""What every method promises on every task."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import nn

from conftest import VectorTask, digits_task
from lupi.core import Batch, Inputs, Method, Stage, Task
from lupi.errors import LupiError
from lupi.loaders.xstar.reveal import append_xstar
from lupi.methods.registry import build_method, check_kind, find_method, methods
from lupi.noise.layer import Draw
from lupi.train.run import splits_for
from made_reviews import text_task
from made_runs import run_from
from made_table import table_task
from made_text import translation_task
from reduced import losses_of

AT_HEAD = {"sites": ["head.*"]}
HAND_SET = {"noise": "fixed"}
REGION: dict[str, Any] = {"prior": {"inside": 0.1, "outside": 1.0}, "sites": ["trunk.site2"]}


@dataclass(frozen=True)
class Variant:
    """A method with settings, and the kinds of x* they are meant for."""

    method: str
    settings: dict[str, Any]
    kinds: tuple[str, ...] = ("region", "vector")

    def __str__(self) -> str:
        return f"{self.method}{self.settings or ''}"


VARIANTS = [
    *(Variant(name, {}, method.kinds) for name, method in methods().items()),
    Variant("distillation", {"temperature": 5.0, "imitation": 0.5}),
    Variant("gaussian-dropout", {"sites": ["trunk.*"], "variance": 0.3}, ("region",)),
    Variant("gaussian-dropout", {"draw": "example", "distribution": "bernoulli"}),
    Variant("het-dropout", AT_HEAD, ("region",)),
    Variant("het-dropout", REGION, ("region",)),
    Variant("het-dropout", {**REGION, **HAND_SET}, ("region",)),
    Variant("het-dropout", {"sites": ["trunk.*"], "prior": 0.5}, ("region",)),
    Variant("het-dropout", {**REGION, **HAND_SET, "distribution": "bernoulli"}, ("region",)),
    *(Variant("het-dropout", {**REGION, "draw": draw}, ("region",)) for draw in get_args(Draw)),
    Variant("het-dropout", {"draw": "example"}),
    Variant("het-dropout", {"budget": "batch", "penalty": "l2", "hstar_lr": 3.0}),
    Variant("het-dropout", {"sites": ["*"]}),
    Variant("het-dropout-official", {"beta": 0.1}),
    Variant("het-dropout", {"missing": "prior"}),
    Variant("het-dropout", {"missing": "none"}),
    Variant("info-dropout-official", {"sites": ["*"]}),
    Variant("multitask-box", {"site": "trunk.site2", "weight": 1.0}, ("region",)),
    Variant("multitask-box", {"site": "head.drop1"}, ("region",)),
    Variant("multitask-mask", {"n_convs": 1}, ("region",)),
    Variant("multitask-mask", {"site": "trunk.site1"}, ("region",)),
    Variant("gocnn", {"site": "trunk.site2", "foreground_frac": 0.5}, ("region",)),
    Variant("miml-fcn", {"weight": 0.1}),
    Variant("het-dropout", {"curriculum": True}),
    Variant("het-likelihood", {"steps": "joint"}, ("vector",)),
    Variant("tram", {"random_dim": 4}, ("vector",)),
    Variant("tram", {"head": "head"}, ("region",)),
    Variant("contrast", {"mu": 0.1}, ("region",)),
    Variant("right-reasons", {"weight": 100.0, "penalty": "sum"}, ("region",)),
    Variant("gocnn", {"form": "paper"}, ("region",)),
]


ON_ATTENTION = [
    Variant("guided-attention", {"weight": 3.0, "variance": 1.0}, ("region",)),
    Variant("het-dropout", {**HAND_SET, "draw": "place"}, ("region",)),
]
BETWEEN_LAYERS = {"sites": ["*.between.*"]}
FOR_SENTENCES = [
    *(Variant(name, {}) for name, method in methods().items() if "tokens" in method.output_kinds),
    Variant("gaussian-dropout", {**BETWEEN_LAYERS, "variance": 0.3}),
    Variant("het-dropout", BETWEEN_LAYERS),
    Variant("het-dropout-official", {"relu": False, "beta": 0.1}),
    Variant("het-dropout", {"missing": "prior"}),
    Variant("het-dropout", {"curriculum": True}),
]
TEXTS = tempfile.TemporaryDirectory()


def sentences() -> Any:
    return translation_task(Path(TEXTS.name), size=N_ROWS)


def sentences_word_by_word() -> Any:
    return translation_task(
        Path(TEXTS.name), {"input_feeding": True, "bidirectional": True}, N_ROWS
    )


def frozen_digits() -> Task:
    """Digits seen through a frozen network, which is pretrained for nobody's data."""
    task = digits_task(name="efficientnet-lite0", pooling="attention", n_channels=8)
    return task.for_run(N_ROWS, 0)


def texts(**changes: Any) -> Task:
    task = text_task(40, **changes)
    return task.for_run(task.n_rows, 0)  # it knows the words of every smaller run


def linear_task(target: str) -> Task:
    return table_task(target, network={"name": "linear"}).for_run(N_ROWS, 0)


STRONG_REASONS: dict[str, Any] = {"weight": 1000.0, "penalty": "sum"}
AT_WORDS = {"sites": ["trunk.words"]}
FOR_TEXTS = [
    *(
        Variant(name, STRONG_REASONS if name == "right-reasons" else {})  # gradients are small
        for name, method in methods().items()
        if "region" in method.kinds and "words" in method.places
    ),
    Variant("gaussian-dropout", {"sites": ["trunk.words"], "variance": 0.3}),
    Variant("het-dropout", {**AT_WORDS, **HAND_SET, "draw": "example"}),
    Variant("het-dropout", {**AT_WORDS, "prior": 1.0, "budget": "example"}),
    Variant("het-dropout", {**AT_WORDS, "sees_words": True}),
    Variant("het-dropout", {"sites": ["head.*"]}),
    Variant("multitask-mask", {"site": "trunk.words", "weight": 1.0}),
    Variant("het-dropout", {**AT_WORDS, "missing": "none"}),
]
TEACH_HIDDEN_LAYERS = ("hallucination", "hallucination-official", "multitask-box", "tram")
READ_A_LINEAR_LAYER = ("hallucination", "hallucination-official", "tram")
"""… which a bag of words has not."""

N_ROWS = 12
"""Training rows of every task here, on which tables and sentences are fitted."""
TASKS: dict[str, Callable[[], Task]] = {
    "digits": digits_task,
    "vector": VectorTask,
    "table-classes": lambda: table_task("late").for_run(N_ROWS, 0),
    "table-numbers": lambda: table_task("hours").for_run(N_ROWS, 0),
    "linear-classes": lambda: linear_task("late"),
    "linear-numbers": lambda: linear_task("hours"),
    "texts": texts,
    "texts-cnn": lambda: texts(network={"name": "cnn", "n_channels": 8, "dropout": 0.1}),
    "texts-numbers": lambda: texts(kind="regression"),
    "digits-attention": lambda: digits_task(pooling="both"),
    "maps-attention": frozen_digits,
    "texts-attention": lambda: texts(
        network={"name": "cnn", "n_channels": 8, "pooling": "attention"}
    ),
    "sentences": sentences,
    "sentences-word-by-word": sentences_word_by_word,
}
KINDS = {
    name: "region" if name.startswith(("digits", "maps", "texts")) else "vector" for name in TASKS
}

OUTPUTS = {
    name: "gaussian"
    if name.endswith("-numbers")
    else "tokens"
    if "sentences" in name
    else "classes"
    for name in TASKS
}


@cache
def task_of(name: str) -> Task:
    return TASKS[name]()


def variants_for(name: str) -> list[Variant]:
    if name.endswith("-attention"):
        known = FOR_TEXTS if name.startswith("texts") else VARIANTS
        usual = [v for v in known if not v.settings or v.method == "right-reasons"]
        return [*usual, *ON_ATTENTION]
    return [v for v in _without_attention(name) if v.method != "guided-attention"]


def _without_attention(name: str) -> list[Variant]:
    if name.startswith("linear"):
        return [v for v in VARIANTS if not v.settings and v.method not in TEACH_HIDDEN_LAYERS]
    if name.startswith("texts"):
        linear = name in ("texts", "texts-numbers")
        return [v for v in FOR_TEXTS if not (linear and v.method in READ_A_LINEAR_LAYER)]
    return FOR_SENTENCES if name.startswith("sentences") else VARIANTS


PAIRS = [
    (name, variant)
    for name in TASKS
    for variant in variants_for(name)
    if KINDS[name] in variant.kinds and OUTPUTS[name] in find_method(variant.method).output_kinds
]


EXTENDED = [
    (name, variant)
    for name, variant in PAIRS
    if find_method(variant.method).extends_student and variant.method != "oracle"
]
"""Where what predicts is more than the task's network; nobody ships an oracle."""


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def method(request: pytest.FixtureRequest) -> Method:
    """Every method on every task it supports, its weights moved off their initial values."""
    name, variant = request.param
    task = task_of(name)
    torch.manual_seed(1)
    method = build_method(variant.method, variant.settings, task.network(), task)
    for parameter in method.parameters():  # where h* is zero it does not depend on x*
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    return method


@pytest.fixture
def task(method: Method) -> Task:
    return method.task


BATCHES: dict[tuple[int, float], tuple[Task, Batch]] = {}
"""By the id of a task, which is kept, so that the id stays its own."""


def batch_of(task: Task, n: int = N_ROWS, xstar_frac: float = 1.0) -> Batch:
    if (id(task), xstar_frac) not in BATCHES:
        all_rows = 4 * N_ROWS  # sentences are counted by tokens
        train = task.splits(N_ROWS, 0, "real", xstar_frac).train
        BATCHES[id(task), xstar_frac] = task, next(iter(train.batches(all_rows)))
    return BATCHES[id(task), xstar_frac][1].select(slice(n))


def shown_to(method: Method, batch: Batch) -> Batch:
    return append_xstar(batch) if method.sees_xstar_at_test else batch


def inputs_of(method: Method) -> Inputs:
    return shown_to(method, batch_of(method.task)).x


def loss_of(method: Method, batch: Batch) -> torch.Tensor:
    torch.manual_seed(2)
    total: torch.Tensor = losses_of(method.train(), shown_to(method, batch)).total
    return total


@pytest.mark.parametrize(
    "method",
    [pair for pair in PAIRS if pair[0].startswith(("table", "linear"))],
    indirect=True,
    ids=lambda pair: f"{pair[0]}-{pair[1]}",
)
def test_weights_multiply_the_losses_of_rows(method: Method, task: Task) -> None:
    batch = shown_to(method, batch_of(task, xstar_frac=0.5))
    for _ in in_each_stage(method):
        found = []
        for weight in (1.0, 2.0):
            torch.manual_seed(2)
            weights = torch.full((len(batch.y),), weight)
            found.append(losses_of(method.train(), batch._replace(weights=weights)))
        torch.manual_seed(2)
        losses = method.train().loss(batch)
        for name in losses:
            assert found[1].parts[name] == pytest.approx(2 * found[0].parts[name].item(), rel=1e-5)


def in_each_stage(method: Method) -> Iterator[Stage]:
    for stage in method.stages():
        with method.during(stage):
            yield stage
            method.zero_grad()


def test_the_loss_is_a_number_and_every_weight_of_the_student_learns(
    method: Method, task: Task
) -> None:
    loss = loss_of(method, batch_of(task))
    loss.backward()
    assert loss.dim() == 0
    assert loss.isfinite()
    for name, weight in method.net.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


def test_each_stage_changes_the_weights_it_names_and_no_others(method: Method, task: Task) -> None:
    for stage in in_each_stage(method):
        loss_of(method, batch_of(task)).backward()
        named = [w for m in stage.learns or (method,) for w in m.parameters()]
        assert any(w.grad is not None for w in named)
        assert all(w.grad is None for w in method.parameters() if w not in set(named))
    assert all(w.requires_grad for w in method.parameters())


def test_the_last_stage_trains_the_student_and_is_the_loss_outside_of_training(
    method: Method, task: Task
) -> None:
    outside = loss_of(method, batch_of(task))
    last = method.stages()[-1]
    with method.during(last):
        assert torch.equal(loss_of(method, batch_of(task)), outside)
    assert last.validates
    assert last.name == "student"


def test_parts_add_up(method: Method, task: Task) -> None:
    for _ in in_each_stage(method):
        losses = losses_of(method.train(), shown_to(method, batch_of(task)))
        added = sum(part.item() for part in losses.parts.values())
        assert added == pytest.approx(losses.total.item(), rel=1e-5)
        assert not any(part.requires_grad for part in losses.parts.values())


def test_same_seed_same_loss(method: Method, task: Task) -> None:
    batch = batch_of(task)
    for _ in in_each_stage(method):
        assert torch.equal(loss_of(method, batch), loss_of(method, batch))


def test_permuting_xstar_changes_the_loss_of_a_method_that_uses_it(
    method: Method, task: Task
) -> None:
    batch = batch_of(task)
    assert batch.xstar is not None
    permuted = batch._replace(xstar=batch.xstar.roll(1, 0))
    changed = not torch.equal(loss_of(method, batch), loss_of(method, permuted))
    assert changed == method.uses_xstar


def test_predictions_have_no_noise_and_take_no_xstar(method: Method, task: Task) -> None:
    x = inputs_of(method)
    method.eval()
    torch.manual_seed(0)
    first = method.predict(x)
    torch.manual_seed(1)
    assert torch.equal(first, method.predict(x))
    with pytest.raises(TypeError):
        method.predict(x, batch_of(task).xstar)  # type: ignore[call-arg]


@pytest.mark.parametrize("xstar_frac", [0.0, 0.5])
def test_missing_xstar_trains_without_nan(method: Method, task: Task, xstar_frac: float) -> None:
    for _ in in_each_stage(method):
        loss = loss_of(method, batch_of(task, xstar_frac=xstar_frac))
        loss.backward()
        assert loss.isfinite()
        assert all(p.grad is None or p.grad.isfinite().all() for p in method.parameters())


def test_xstar_of_rows_without_it_does_not_matter(method: Method, task: Task) -> None:
    batch = batch_of(task, xstar_frac=0.5)
    assert batch.xstar is not None
    assert batch.has_xstar is not None
    has = batch.has_xstar.view(-1, *[1] * (batch.xstar.dim() - 1))
    junk = batch._replace(xstar=torch.where(has, batch.xstar, torch.nan))
    for _ in in_each_stage(method):
        assert torch.equal(loss_of(method, batch), loss_of(method, junk))


def test_passes_of_xstar_are_not_counted_in_the_students_statistics(
    method: Method, task: Task
) -> None:
    loss_of(method, batch_of(task))
    counts = [b for name, b in method.net.named_buffers() if name.endswith("batches_tracked")]
    if not counts:
        pytest.skip("the network has no batch norm")
    frozen = getattr(method.settings, "curriculum", False)
    assert all(count == (0 if frozen else 1) for count in counts)


def test_the_student_predicts_what_the_method_predicts(method: Method) -> None:
    x = inputs_of(method)
    assert torch.equal(method.student().eval()(x), method.eval().predict(x))


def test_the_student_is_a_plain_network(method: Method, task: Task) -> None:
    if method.extends_student:
        pytest.skip("what predicts is more than the task's network")
    method.eval()
    student, plain, x = method.student(), task.network(), batch_of(task).x
    assert list(student.state_dict()) == list(plain.state_dict())
    plain.load_state_dict(student.state_dict())
    assert torch.equal(plain.eval()(x), method.predict(x))
    torch.manual_seed(0)
    noisy = student.train()(x)
    torch.manual_seed(0)
    assert torch.equal(noisy, plain.train()(x))  # nothing is attached any more


@pytest.mark.filterwarnings("ignore:The tensor attributes .*_flat_weights")  # of nn.LSTM
@pytest.mark.parametrize("name", TASKS)
def test_the_exported_network_has_the_same_outputs(name: str) -> None:
    """… of a task: what a student is, as `test_the_student_is_a_plain_network` says."""
    assert_exported(task_of(name).network(), batch_of(task_of(name)).x)


@pytest.mark.filterwarnings("ignore:The tensor attributes .*_flat_weights")  # of nn.LSTM
@pytest.mark.parametrize("method", EXTENDED, indirect=True, ids=lambda p: f"{p[0]}-{p[1]}")
def test_an_exported_student_that_is_more_has_the_same_outputs(method: Method, task: Task) -> None:
    assert_exported(method.student(), batch_of(task).x)


def assert_exported(net: nn.Module, x: Inputs) -> None:
    exported = torch.export.export(net.eval(), (x,))
    assert set(exported.state_dict) == set(net.state_dict())
    assert torch.allclose(exported.module()(x), net(x), atol=1e-6)
    assert "xstar" not in str(exported.graph)


def test_logvars_are_of_the_rows_with_xstar(method: Method, task: Task) -> None:
    batch = batch_of(task, xstar_frac=0.5)
    logvars = method.logvars(batch)
    noisy = ("het-dropout", "het-dropout-official", "het-likelihood")
    assert bool(logvars) == (method.name in noisy)
    assert all(len(logvar) == 6 for logvar in logvars.values())
    if task.places == "words":
        of_words = [logvar for logvar in logvars.values() if logvar.dim() == 3]
        assert all(logvar.shape[1] == batch.x.shape[1] for logvar in of_words)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # dynamo's own
@pytest.mark.parametrize("name", TASKS)
def test_het_dropout_compiles(name: str) -> None:
    task = task_of(name)
    batch = batch_of(task)
    method = build_method("het-dropout", {}, task.network(), task)
    expected = loss_of(method, batch)
    method.compile(backend="aot_eager")
    assert loss_of(method, batch).item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize(
    "name",
    [n for n, m in methods().items() if "region" in m.kinds and "classes" in m.output_kinds],
)
def test_every_method_trains_a_resnet(name: str) -> None:
    task = digits_task(name="resnet18", pooling="attention")
    method = build_method(name, {}, task.network(), task)
    loss = loss_of(method, batch_of(task, n=4))
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is None or p.grad.isfinite().all() for p in method.parameters())
    if not method.extends_student:
        assert list(method.student().state_dict()) == list(task.network().state_dict())


@pytest.mark.parametrize(
    "name", [n for n, m in methods().items() if "tokens" not in m.output_kinds]
)
def test_other_methods_refuse_sentences(name: str) -> None:
    task = sentences()
    with pytest.raises(LupiError, match=r"can't train outputs of kind tokens|of kind vector"):
        build_method(name, {}, task.network(), task)


@pytest.mark.parametrize("name", [n for n, m in methods().items() if "words" not in m.places])
def test_methods_for_images_refuse_words(name: str) -> None:
    task = texts()
    with pytest.raises(LupiError, match=f"method {name} takes regions of pixels"):
        build_method(name, {}, task.network(), task)


@pytest.mark.parametrize("name", READ_A_LINEAR_LAYER)
def test_methods_that_read_a_linear_layer_refuse_a_bag_of_words(name: str) -> None:
    task = texts()
    with pytest.raises(LupiError, match="needs a linear layer"):
        build_method(name, {}, task.network(), task)


@pytest.mark.parametrize("name", [n for n, m in methods().items() if "vector" not in m.kinds])
def test_methods_for_images_refuse_vectors(name: str) -> None:
    task = VectorTask()
    with pytest.raises(LupiError, match=f"method {name} can't use x\\* of kind vector"):
        build_method(name, {}, task.network(), task)


@pytest.mark.parametrize(
    "name",
    [n for n, m in methods().items() if "vector" in m.kinds and m.output_kinds == ("classes",)],
)
def test_methods_for_classes_refuse_numbers(name: str) -> None:
    task = table_task("hours").for_run(N_ROWS, 0)
    with pytest.raises(LupiError, match=f"method {name} can't train outputs of kind gaussian"):
        build_method(name, {}, task.network(), task)


@pytest.mark.parametrize(
    "name", [n for n, m in methods().items() if m.output_kinds == ("gaussian",)]
)
def test_methods_for_numbers_refuse_classes(name: str) -> None:
    task = VectorTask()
    with pytest.raises(LupiError, match=f"method {name} can't train outputs of kind classes"):
        build_method(name, {}, task.network(), task)


def test_a_method_refuses_x_star_of_a_kind_it_cannot_use() -> None:
    class RegionsOnly(find_method("het-dropout")):  # type: ignore[misc]
        kinds = ("region",)

    task = VectorTask()
    with pytest.raises(LupiError, match="can't use x\\* of kind vector; it uses region"):
        check_kind(RegionsOnly, task)


def test_a_method_that_uses_xstar_trains_on_splits_with_xstar_only(
    method: Method, task: Task
) -> None:
    val = next(iter(task.splits(N_ROWS, 0, "real", 1.0).val.batches(10)))
    if not method.uses_xstar:
        assert losses_of(method, val).total.isfinite()
        return
    with pytest.raises(LupiError, match="this split carries none"):
        method.loss(shown_to(method, val))


@pytest.mark.parametrize("name", methods())
@pytest.mark.parametrize("task_name", TASKS)
def test_nobody_but_an_oracle_is_shown_xstar_outside_of_training(name: str, task_name: str) -> None:
    task, method = task_of(task_name), find_method(name)
    settings = run_from({"task": {"name": "digits"}, "method": name, "size": 20, "seed": 0})
    splits, plain = splits_for(method, task, settings), task.splits(20, 0, "real", 1.0)
    for split, same in ((splits.val, plain.val), (splits.test, plain.test)):
        batch, expected = next(iter(split.batches(50))), next(iter(same.batches(50)))
        if isinstance(batch.x, tuple):
            given = expected.x if isinstance(expected.x, tuple) else (expected.x,)
            shown, same_x = batch.x[0], given[0]
            revealed = batch.xstar is not None or len(batch.x) > len(given)
        else:
            shown, same_x = batch.x[:, : expected.x.shape[1]], expected.x
            revealed = batch.xstar is not None or batch.x.shape != expected.x.shape
        assert revealed == (name == "oracle") == method.sees_xstar_at_test
        assert torch.equal(shown, same_x)


@pytest.mark.parametrize("name", TEACH_HIDDEN_LAYERS)
def test_methods_for_hidden_layers_refuse_a_linear_student(name: str) -> None:
    task = linear_task("late")
    with pytest.raises(LupiError, match=f"{name} trains hidden layers by x\\*"):
        build_method(name, {}, task.network(), task)
