from dataclasses import replace
from typing import Any

import pytest
import torch

from conftest import VectorTask, digits_task
from lupi.core import Batch, Task
from lupi.errors import LupiError
from lupi.loaders.xstar.reveal import append_xstar
from lupi.methods.oracle import Oracle, OracleSettings


@pytest.mark.parametrize("task", [digits_task(), VectorTask()])
def test_predictions_depend_on_xstar(task: Any) -> None:
    method = Oracle(task.network(), task, OracleSettings()).eval()
    batch: Batch = next(iter(task.splits(8, 0).train.batches(8)))
    assert batch.xstar is not None
    permuted = batch._replace(xstar=batch.xstar.roll(1, 0))
    assert not torch.equal(
        method.predict(append_xstar(batch).x), method.predict(append_xstar(permuted).x)
    )


@pytest.mark.parametrize("task", [digits_task(), VectorTask()])
def test_x_alone_is_refused(task: Task) -> None:
    method = Oracle(task.network(), task, OracleSettings())
    with pytest.raises(LupiError, match="from x and x\\* together"):
        method.predict(task.example())


def test_without_a_region_it_sees_the_whole_image() -> None:
    task = digits_task()
    method = Oracle(task.network(), task, OracleSettings()).eval()
    batch = next(iter(task.splits(8, 0, "real", 0.0).train.batches(8)))
    networks = [method.net.get_submodule(name) for name in ("net", "xstar_net")]
    whole = sum(network(batch.x) for network in networks)
    assert torch.allclose(method.predict(append_xstar(batch).x), whole)


def test_it_takes_a_vector_beside_images() -> None:
    task = replace(digits_task(), xstar_kind="vector", xstar_dim=3)
    method = Oracle(task.network(), task, OracleSettings()).eval()
    x, has = task.example(), torch.tensor([True, True])
    one, other = (append_xstar(Batch(x, has, v.expand(2, 3), has)).x for v in torch.eye(3)[:2])
    assert not torch.equal(method.predict(one), method.predict(other))
