import pytest
import torch

from conftest import digits_task
from lupi.core import Batch
from lupi.errors import LupiError
from lupi.methods.regions.contrast import Contrast, ContrastSettings, log_odds
from made_words import WordTask
from reduced import losses_of


def contrast_of(batch: Batch, **settings: object) -> float:
    task = WordTask([0.0, 1.0, 0.5, -0.25])
    parsed = ContrastSettings.parse(settings, "settings")
    return float(losses_of(Contrast(task.network(), task, parsed), batch).parts["contrast"])


def a_text(y: int, region: list[float]) -> Batch:
    """The scores of its words are 1, 0.5 and -0.25."""
    x, y_, has = torch.tensor([[1, 2, 3]]), torch.tensor([y]), torch.tensor([True])
    return Batch(x, y_, torch.tensor([[region]]), has)


@pytest.mark.parametrize(
    ("y", "mu", "expected"),
    [(1, 2.0, 1 - 0.5), (1, 1.0, 0.0), (0, 2.0, 1 + 0.5)],
)
def test_a_linear_student_has_the_hinge_loss_of_the_papers_pseudo_example(
    y: int, mu: float, expected: float
) -> None:
    # the rationale is the first word: w (x - v) = 1
    assert contrast_of(a_text(y, [1, 0, 0]), mu=mu) == pytest.approx(expected)


def test_the_whole_region_or_one_span_of_it_is_taken_out() -> None:
    batch = a_text(1, [1, 0, 1])
    assert contrast_of(batch, mu=2.0, remove="region") == pytest.approx(1 - 0.75 / 2)
    drawn = {round(contrast_of(batch, mu=2.0), 6) for _ in range(40)}
    assert drawn == {1 - 1 / 2, 1 + 0.25 / 2}


def test_rows_without_a_region_have_no_contrast() -> None:
    assert contrast_of(a_text(1, [0, 0, 0])) == 0
    assert contrast_of(a_text(1, [1, 0, 0])._replace(has_xstar=torch.tensor([False]))) == 0


def test_log_odds_are_against_all_other_classes() -> None:
    output = torch.randn(4, 3)
    y = torch.tensor([0, 1, 2, 1])
    p = output.softmax(1).gather(1, y[:, None])[:, 0]
    assert torch.allclose(log_odds(output, y), (p / (1 - p)).log(), atol=1e-5)


def test_images_have_no_spans() -> None:
    task = digits_task()
    with pytest.raises(LupiError, match="remove: span is for texts"):
        Contrast(task.network(), task, ContrastSettings(remove="span"))
