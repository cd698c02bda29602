from pathlib import Path

import pytest
import torch

from conftest import VectorTask
from lupi.core import Batch, Method, Task
from lupi.methods.registry import build_method
from made_text import translation_task
from reduced import losses_of


def build(task: Task, **settings: float) -> Method:
    torch.manual_seed(0)
    return build_method("imagination", settings, task.network(), task).eval()


def batch_of(task: Task) -> Batch:
    return next(iter(task.splits(20, 0, "real", 1.0).train.batches(999)))


def test_the_loss_is_that_of_the_paper() -> None:
    """Row by row, with the encoder's features read at the last site."""
    task = VectorTask()
    method, batch = build(task, margin=0.3, weight=2.0), batch_of(task)
    assert batch.xstar is not None
    features = method.net[:2](batch.x)  # type: ignore[index]
    imagined = method.imagine(features)  # type: ignore[operator]
    total = 0.0
    cosine = torch.nn.functional.cosine_similarity
    for i, row in enumerate(imagined):
        for j, other in enumerate(batch.xstar):
            if i != j:
                near, far = cosine(row, batch.xstar[i], dim=0), cosine(row, other, dim=0)
                total += max(0.0, (0.3 - near + far).item())
    parts = losses_of(method, batch).parts
    assert parts["imagination"].item() == pytest.approx(2.0 * total / 20, rel=1e-4)


def test_padding_is_no_part_of_a_sentence(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    method, batch = build(task), batch_of(task)
    wide = torch.nn.functional.pad(batch.x.source, (4, 0))
    padded = batch._replace(x=batch.x._replace(source=wide))
    total, of_padded = (losses_of(method, rows).total for rows in (batch, padded))
    assert torch.allclose(total, of_padded, atol=1e-5)


def test_sentences_learn_to_find_their_vector(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    method, batch = build(task), batch_of(task)
    optimizer = torch.optim.Adam(method.parameters(), 0.02)
    first = losses_of(method, batch).parts["imagination"].item()
    for _ in range(60):
        optimizer.zero_grad()
        losses_of(method.train(), batch).total.backward()
        optimizer.step()
    assert losses_of(method.eval(), batch).parts["imagination"].item() < 0.5 * first


def test_one_row_with_xstar_has_nothing_to_be_told_from() -> None:
    task = VectorTask()
    batch = batch_of(task)
    alone = batch._replace(has_xstar=torch.arange(20) == 3)
    assert losses_of(build(task), alone).parts["imagination"] == 0
