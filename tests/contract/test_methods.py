"""What every method promises on every task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from conftest import VectorTask, digits_task
from lupi.core import Batch, Method, Task
from lupi.errors import LupiError
from lupi.methods.registry import build_method, check_kind, find_method, methods

REGION = {"prior": {"inside": 0.1, "outside": 1.0}, "sites": ["trunk.site2"]}


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
    Variant("gaussian-dropout", {"sites": ["trunk.*"], "variance": 0.3}, ("region",)),
    Variant("het-dropout", {"fc_input": "box"}, ("region",)),
    Variant("het-dropout", REGION, ("region",)),
    Variant("het-dropout", {**REGION, "learn": False}, ("region",)),
    Variant("het-dropout", {**REGION, "per_channel": True}, ("region",)),
    Variant("het-dropout", {"sites": ["trunk.*"], "budget": True, "kernel": 1}, ("region",)),
    Variant("het-dropout", {"sites": ["*"], "n_samples": 3}),
    Variant("het-dropout", {"reading": "official", "beta": 0.1}),
    Variant("het-dropout", {"missing": "prior"}),
    Variant("het-dropout", {"missing": "none"}),
    Variant("info-dropout", {"sites": ["*"], "reading": "official"}),
    Variant("multitask-box", {"site": "trunk.site2", "weight": 1.0}, ("region",)),
    Variant("multitask-box", {"site": "head.drop1"}, ("region",)),
    Variant("multitask-mask", {"target": "rgb", "n_convs": 1}, ("region",)),
    Variant("multitask-mask", {"site": "trunk.site1"}, ("region",)),
    Variant("gocnn", {"site": "trunk.site2", "foreground_frac": 0.5}, ("region",)),
    Variant("miml-fcn", {"weight": 0.1}),
]


TASKS: dict[str, Callable[[], Task]] = {"digits": digits_task, "vector": VectorTask}
KINDS = {"digits": "region", "vector": "vector"}
PAIRS = [(name, variant) for name in TASKS for variant in VARIANTS if KINDS[name] in variant.kinds]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def method(request: pytest.FixtureRequest) -> Method:
    """Every method on every task it supports, its weights moved off their initial values."""
    name, variant = request.param
    task = TASKS[name]()
    torch.manual_seed(1)
    method = build_method(variant.method, variant.settings, task.network(), task)
    for parameter in method.parameters():  # where h* is zero it does not depend on x*
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    return method


@pytest.fixture
def task(method: Method) -> Task:
    return method.task


def batch_of(task: Task, n: int = 12, xstar_frac: float = 1.0) -> Batch:
    return next(iter(task.splits(n, 0, "real", xstar_frac).train.batches(n)))


def loss_of(method: Method, batch: Batch) -> torch.Tensor:
    torch.manual_seed(2)
    total: torch.Tensor = method.train()(batch).total
    return total


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


def test_parts_add_up(method: Method, task: Task) -> None:
    torch.manual_seed(2)
    losses = method.train()(batch_of(task))
    assert sum(losses.parts.values()).item() == pytest.approx(losses.total.item(), rel=1e-5)
    assert not any(part.requires_grad for part in losses.parts.values())


def test_same_seed_same_loss(method: Method, task: Task) -> None:
    batch = batch_of(task)
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
    x = batch_of(task).x
    method.eval()
    torch.manual_seed(0)
    first = method.predict(x)
    torch.manual_seed(1)
    assert torch.equal(first, method.predict(x))
    with pytest.raises(TypeError):
        method.predict(x, batch_of(task).xstar)  # type: ignore[call-arg]


@pytest.mark.parametrize("xstar_frac", [0.0, 0.5])
def test_missing_xstar_trains_without_nan(method: Method, task: Task, xstar_frac: float) -> None:
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
    assert torch.equal(loss_of(method, batch), loss_of(method, junk))


def test_passes_of_xstar_are_not_counted_in_the_students_statistics(
    method: Method, task: Task
) -> None:
    loss_of(method, batch_of(task))
    counts = [b for name, b in method.net.named_buffers() if name.endswith("batches_tracked")]
    assert all(count == 1 for count in counts)


def test_the_student_is_a_plain_network(method: Method, task: Task) -> None:
    method.eval()
    student, plain, x = method.student(), task.network(), batch_of(task).x
    assert list(student.state_dict()) == list(plain.state_dict())
    plain.load_state_dict(student.state_dict())
    assert torch.equal(plain.eval()(x), method.predict(x))
    assert torch.equal(student.eval()(x), method.predict(x))
    torch.manual_seed(0)
    noisy = student.train()(x)
    torch.manual_seed(0)
    assert torch.equal(noisy, plain.train()(x))  # nothing is attached any more


def test_the_exported_student_has_the_same_outputs(method: Method, task: Task) -> None:
    x = batch_of(task).x
    method.eval()
    exported = torch.export.export(method.student().eval(), (x,))
    assert set(exported.state_dict) == set(task.network().state_dict())
    assert torch.allclose(exported.module()(x), method.predict(x), atol=1e-6)
    assert "xstar" not in str(exported.graph)


def test_logvars_are_of_the_rows_with_xstar(method: Method, task: Task) -> None:
    batch = batch_of(task, xstar_frac=0.5)
    logvars = method.logvars(batch)
    assert bool(logvars) == (method.name == "het-dropout")
    assert all(len(logvar) == 6 for logvar in logvars.values())


@pytest.mark.parametrize("name", TASKS)
def test_het_dropout_compiles(name: str) -> None:
    task = TASKS[name]()
    batch = batch_of(task)
    method = build_method("het-dropout", {}, task.network(), task)
    expected = loss_of(method, batch)
    method.compile(backend="aot_eager")
    assert loss_of(method, batch).item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize("name", methods())
def test_every_method_trains_a_resnet(name: str) -> None:
    task = digits_task(name="resnet18")
    method = build_method(name, {}, task.network(), task)
    loss = loss_of(method, batch_of(task, n=4))
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is None or p.grad.isfinite().all() for p in method.parameters())
    assert list(method.student().state_dict()) == list(task.network().state_dict())


@pytest.mark.parametrize("name", [n for n, m in methods().items() if "vector" not in m.kinds])
def test_methods_for_pictures_refuse_vectors(name: str) -> None:
    task = VectorTask()
    with pytest.raises(LupiError, match=f"method {name} can't use x\\* of kind vector"):
        build_method(name, {}, task.network(), task)


def test_a_method_refuses_x_star_of_a_kind_it_cannot_use() -> None:
    class RegionsOnly(find_method("het-dropout")):  # type: ignore[misc]
        kinds = ("region",)

    task = VectorTask()
    with pytest.raises(LupiError, match="can't use x\\* of kind vector; it uses region"):
        check_kind(RegionsOnly, task)


def test_het_dropout_trains_on_rows_with_xstar_only() -> None:
    task = VectorTask()
    method = build_method("het-dropout", {}, task.network(), task)
    val = next(iter(task.splits(20, 0).val.batches(10)))
    with pytest.raises(LupiError, match="this split carries none"):
        method(val)
