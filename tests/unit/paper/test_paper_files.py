"""The numbers of the CVPR 2018 paper, as its text and appendix give them, in the `paper/` files."""

from pathlib import Path
from typing import Any

import pytest

from lupi.comparison.settings import ArmSettings, ComparisonSettings
from lupi.configs import find_settings, settings_names
from lupi.methods.noise.het_dropout import LearnedNoise
from lupi.settings import merge, read_yaml
from lupi.tasks.images.network import ImageNetworkSettings
from lupi.train.learners import find_learner
from lupi.train.settings import TrainSettings
from lupi_paper.images.imagenet import ImagenetSettings

FILES = [name for name in settings_names() if name.startswith("paper/")]
SGD = {"optimizer": "sgd", "momentum": 0.9}
ADAM = {"optimizer": "adam", "lr": 0.001}

# Appendix, "Additional Implementation Details".
TRAINED: dict[str, dict[str, Any]] = {
    "no-xstar": {**SGD, "lr": 0.01, "batch_size": 256},
    "miml-fcn-resnet": {**SGD, "lr": 0.1, "batch_size": 256},
    "hallucination": {**SGD, "lr": 0.01, "batch_size": 128},
    "info-dropout": {**SGD, "lr": 0.01, "batch_size": 128},
    "gaussian": {**SGD, "lr": 0.01, "batch_size": 256},
    "miml-fcn": {**SGD, "lr": 0.01, "batch_size": 256},
    "multitask-box": {**SGD, "lr": 0.01, "batch_size": 200},
    "multitask-mask": {**SGD, "lr": 0.01, "batch_size": 128},
    "gocnn": {**ADAM, "batch_size": 256},
    "het-dropout": ADAM,
}
BATCHES = {75_000: 64, 200_000: 128, 600_000: 256}  # of het-dropout
METHODS: dict[str, dict[str, Any]] = {
    "miml-fcn-resnet": {"weight": 1e-8},
    "info-dropout": {"beta": 3, "alpha_max": 0.3},
    "gaussian": {"variance": 1},
    "miml-fcn": {"weight": 1e-8},
    "multitask-box": {"weight": 0.1},
    "multitask-mask": {"weight": 0.1, "n_convs": 3},  # five blocks: DeconvNet's 15 convolutions
    "gocnn": {"suppression": 1 / 320, "foreground_frac": 0.75},
    # lambda = 100 times a norm over 4096 units; lupi's norm is a root mean square
    "het-dropout": {"beta": 100 * 4096**0.5, "penalty": "l2", "prior": 1, "budget": "none"},
}

TOP_1: dict[str, dict[str, dict[int, float]]] = {
    "paper/sizes": {
        "no-xstar": {75_000: 37.85, 200_000: 55.99, 600_000: 66.66},
        "het-dropout": {75_000: 42.30, 200_000: 55.51, 600_000: 66.77},
    },
    "paper/curriculum": {"no-xstar": {600_000: 66.66}, "het-dropout": {600_000: 66.77}},
    "paper/baselines-75k": {
        name: {75_000: score}
        for name, score in {
            "no-xstar": 37.85,
            "miml-fcn-resnet": 35.61,
            "hallucination": 37.66,
            "info-dropout": 38.09,
            "gaussian": 38.80,
            "miml-fcn": 39.54,
            "multitask-box": 39.96,
            "multitask-mask": 40.48,
            "gocnn": 41.43,
            "het-dropout": 42.30,
        }.items()
    },
    "paper/baselines-200k": {
        name: {200_000: score}
        for name, score in {
            "no-xstar": 55.99,
            "miml-fcn-resnet": 56.00,
            "hallucination": 52.28,
            "info-dropout": 54.60,
            "gaussian": 55.48,
            "miml-fcn": 56.23,
            "multitask-box": 56.32,
            "multitask-mask": 56.22,
            "gocnn": 50.73,
            "het-dropout": 55.20,
        }.items()
    },
}


def read(name: str) -> ComparisonSettings:
    return ComparisonSettings.parse(read_yaml(find_settings(Path(name))), "")


def trained(settings: ComparisonSettings, arm: ArmSettings, size: int) -> TrainSettings:
    by_size = merge(settings.train, settings.train_by_size.get(size, {}))
    return TrainSettings.parse(merge(by_size, arm.train), "train")


def have(found: Any, wanted: dict[str, Any]) -> None:
    assert {key: getattr(found, key) for key in wanted} == pytest.approx(wanted)


@pytest.mark.parametrize("name", FILES)
def test_how_arms_are_trained(name: str) -> None:
    settings = read(name)
    for key in settings.arms.keys() & TRAINED.keys():
        for size in settings.sizes:
            train = trained(settings, settings.arms[key], size)
            have(train, TRAINED[key])
            shared = {"weight_decay": 1e-4, "schedule": "adaptive", "patience": 5}
            have(train, {**shared, "uniform_after": 30})
            if key == "het-dropout" and size in BATCHES:
                assert train.batch_size == BATCHES[size]


@pytest.mark.parametrize("name", FILES)
def test_what_methods_have(name: str) -> None:
    settings = read(name)
    for key in settings.arms.keys() & METHODS.keys():
        arm = settings.arms[key]
        have(find_learner(arm.method).Settings.parse(arm.settings, "settings"), METHODS[key])


@pytest.mark.parametrize("name", FILES)
def test_images_and_networks(name: str) -> None:
    settings = read(name)
    task = settings.task
    assert isinstance(task, ImagenetSettings)
    have(task, {"image_size": 224, "n_test": 50, "n_val": 50})  # of each of 1000 classes
    assert task.augment.flip
    assert task.stored > task.image_size  # random crops
    for key, arm in settings.arms.items():
        network = ImageNetworkSettings.parse(merge(settings.network, arm.network), "network")
        assert network.name == ("resnet50" if key == "miml-fcn-resnet" else "vgg16-bn")
        assert network.fc_activation == ("sigmoid" if key == "info-dropout" else "relu")
        assert network.dropout == (0 if network.name == "resnet50" else 0.5)


def test_the_curriculum() -> None:
    arm = read("paper/curriculum").arms["het-dropout"]
    curriculum = LearnedNoise.parse(arm.settings, "settings").curriculum
    have(curriculum, {"tower_epochs": 8, "tower_lr": 1e-3, "tower_batch_size": 128})
    have(curriculum, {"lr": 1e-7, "batch_size": 256})


def test_the_fixed_schedule() -> None:
    settings = read("paper/schedules")
    train = trained(settings, settings.arms["no-xstar-fixed"], 75_000)
    have(train, {"schedule": "fixed", "step_epochs": 30})


@pytest.mark.parametrize("name", TOP_1)
def test_published_scores(name: str) -> None:
    paper = read(name).paper
    assert paper is not None
    assert paper.scores.keys() == TOP_1[name].keys()
    for arm, scores in TOP_1[name].items():
        assert {size: 100 * score for size, score in paper.scores[arm].items()} == pytest.approx(
            scores
        )
