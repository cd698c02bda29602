import pytest

from lupi.train.schedule import Schedule
from lupi.train.settings import TrainSettings


def learning_rates(settings: TrainSettings, scores: list[float]) -> list[float]:
    """The learning rate of each epoch until training ends."""
    schedule, rates = Schedule(settings), []
    for score in scores:
        if schedule.finished:
            break
        rates.append(schedule.lr)
        schedule.scores.append(score)
    return rates


def test_adaptive_decays_after_patience_and_stops() -> None:
    settings = TrainSettings(lr=1.0, patience=2, n_decays=1, epochs=100)
    rates = learning_rates(settings, [0.5, 0.4, 0.5, 0.6, 0.6, 0.6, 0.1, 0.1])
    # best at epoch 1; two without better -> 0.1; better at 4; two without better -> the end
    assert rates == pytest.approx([1, 1, 1, 0.1, 0.1, 0.1])


def test_adaptive_goes_on_while_it_improves() -> None:
    settings = TrainSettings(lr=1.0, patience=1, epochs=4)
    assert learning_rates(settings, [0.1, 0.2, 0.3, 0.4, 0.5]) == [1.0] * 4


def test_fixed_decays_every_step() -> None:
    settings = TrainSettings(lr=1.0, schedule="fixed", step_epochs=2, epochs=5)
    assert learning_rates(settings, [0.0] * 9) == pytest.approx([1, 1, 0.1, 0.1, 0.01])


def test_halving_starts_after_the_eighth_epoch() -> None:
    settings = TrainSettings(lr=1.0, schedule="halving", epochs=10)
    assert learning_rates(settings, [0.0] * 20) == [1.0] * 8 + [0.5, 0.25]


def test_constant() -> None:
    assert (
        learning_rates(TrainSettings(lr=0.5, schedule="constant", epochs=3), [0.0] * 9) == [0.5] * 3
    )


def test_one_cycle_rises_then_falls_to_nothing() -> None:
    settings = TrainSettings(lr=2.0, schedule="one-cycle", epochs=9)
    rates = learning_rates(settings, [0.0] * 20)
    assert rates[:3] == pytest.approx([2 / 3, 4 / 3, 2])
    assert rates[3:] == sorted(rates[3:], reverse=True)
    assert len(rates) == 9
    assert 0 < rates[-1] < 0.15
