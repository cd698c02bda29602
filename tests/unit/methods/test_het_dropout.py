import pytest
import torch
from torch import nn

from conftest import VectorTask, digits_task
from lupi.core import Batch
from lupi.errors import LupiError
from lupi.methods.noise.het_dropout import HetDropout, HetDropoutSettings, LearnedNoise
from lupi.methods.registry import build_method
from made_reviews import text_task
from reduced import losses_of


def build(**settings: object) -> HetDropout:
    task = digits_task()
    return HetDropout(task.network(), task, HetDropoutSettings.parse(settings, "settings"))


AT_HEAD = {"sites": ["head.*"]}
"""The paper's sites, behind shared convolutions."""


def a_batch(n: int = 8, xstar_frac: float = 1.0) -> Batch:
    return next(iter(digits_task().splits(n, 0, "real", xstar_frac).train.batches(n)))


def test_the_pass_of_blacked_out_images_has_no_graph() -> None:
    method = build(**AT_HEAD).train()
    inputs, _ = method._seen(a_batch())
    assert inputs["head.drop1"].shape == (8, 16)
    assert not inputs["head.drop1"].requires_grad


def test_blacked_out_images_do_not_touch_running_statistics() -> None:
    method = build(**AT_HEAD).train()
    before = {name: value.clone() for name, value in method.net.named_buffers()}
    method._seen(a_batch())
    assert all(torch.equal(before[name], value) for name, value in method.net.named_buffers())


def test_features_come_from_the_object_alone() -> None:
    """Outside the box nothing reaches h*."""
    method, batch = build(**AT_HEAD).train(), a_batch()
    assert batch.xstar is not None
    elsewhere = batch._replace(x=torch.where(batch.xstar > 0, batch.x, 1 - batch.x))
    seen, _ = method._seen(batch)
    same, _ = method._seen(elsewhere)
    assert torch.equal(seen["head.drop1"], same["head.drop1"])


def test_the_region_prior_is_at_its_place() -> None:
    method = build(sites=["trunk.site1"], prior={"inside": 0.01, "outside": 1.0}, noise="fixed")
    batch = a_batch()
    variance = method.logvars(batch)["trunk.site1"].exp()  # (8, 1, 12, 12): half the image's
    assert batch.xstar is not None
    inside = nn.functional.max_pool2d(-batch.xstar, 2) == -1  # cells that lie wholly inside
    outside = nn.functional.max_pool2d(batch.xstar, 2) == 0
    assert torch.allclose(variance[inside], torch.tensor(0.01))
    assert torch.allclose(variance[outside], torch.tensor(1.0))


def test_the_curriculum_is_the_papers() -> None:
    method = build(curriculum=True).train()
    plain, tower, student = method.stages()
    assert not plain.train
    assert dict(tower.train) == {"epochs": 8, "lr": 1e-3, "batch_size": 128}
    assert dict(student.train) == {"lr": 1e-7, "batch_size": 256}
    assert tower.learns == (method.noise,)
    assert student.learns == (method.net.get_submodule("head"),)
    assert [stage.validates for stage in (plain, tower, student)] == [True, False, True]
    spelt_out = HetDropoutSettings.parse({"curriculum": {"lr": 1e-7}}, "settings")
    assert spelt_out == HetDropoutSettings.parse({"curriculum": True}, "settings")


def test_the_plain_stage_has_bernoulli_dropout_and_no_noise() -> None:
    method, batch = build(curriculum=True), a_batch()
    with method.during(method.stages()[0]):
        torch.manual_seed(0)
        loss = losses_of(method.train(), batch).total
    torch.manual_seed(0)
    output = method.student().train()(batch.x)
    assert torch.equal(loss, nn.functional.cross_entropy(output, batch.y, reduction="none").mean())


def test_after_the_plain_stage_batch_norms_of_convolutions_rest_in_eval() -> None:
    method = build(curriculum=True)
    norms = [
        m for m in method.net.get_submodule("trunk").modules() if isinstance(m, nn.BatchNorm2d)
    ]
    training = []
    for stage in method.stages():
        with method.during(stage):
            method.train()
            training.append({norm.training for norm in norms})
            assert method.net.get_submodule("head").training
    assert training == [{True}, {False}, {False}]


def test_a_curriculum_needs_something_to_train() -> None:
    with pytest.raises(LupiError, match="curriculum: has no effect with noise: fixed"):
        build(curriculum=True, noise="fixed")
    with pytest.raises(LupiError, match=r"settings\.curriculum\.lrr: no such key"):
        build(curriculum={"lrr": 1})


def test_networks_without_dropout_or_trunk_say_what_to_do() -> None:
    class Plain(VectorTask):
        def network(self) -> nn.Module:
            return nn.Linear(6, 2)

    plain = Plain()
    with pytest.raises(LupiError, match="has no dropout layer; name the `sites`"):
        HetDropout(plain.network(), plain, LearnedNoise())
    task = digits_task()
    headless = nn.Sequential(nn.Flatten(), nn.Linear(576, 8), nn.Dropout(0.5), nn.Linear(8, 10))
    with pytest.raises(LupiError, match=r"noise at 2 passes blacked-out .* call its convolutions"):
        HetDropout(headless, task, LearnedNoise())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"sites": ["head.*"], "sees_words": True},
            "sees_words applies only at the words",
        ),
        ({"noise": "fixed", "sees_words": True}, "sees_words: has no effect with noise: fixed"),
    ],
)
def test_settings_without_effect_on_texts_are_refused(
    settings: dict[str, object], message: str
) -> None:
    task = text_task(40).for_run(20, 0)
    with pytest.raises(LupiError, match=message):
        build_method("het-dropout", settings, task.network(), task)
