"""Numbers that are none, too large or too few: a sentence, or a finite answer."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import lupi

BAD = [np.nan, np.inf, -np.inf, 1e300]


def rows(n: int = 60) -> "pd.DataFrame":
    a, b, late = np.random.default_rng(0).normal(size=(3, n))
    sign = np.where(a > 0, "p", "n")
    return pd.DataFrame({"a": a, "b": b, "late": late, "w": 1.0, "sign": sign, "sum": a + late})


def compared(frame: "pd.DataFrame", folder: Path, target: str = "sign", **options: Any) -> Any:
    unused = [name for name in ("sign", "sum", "w") if name not in (target, options.get("weights"))]
    few = {"sizes": options.pop("sizes", [20]), "seeds": 1, "processes": 1, "quiet": True}
    changes = {"train.epochs": 1, **options.pop("changes", {})}
    done = lupi.compare(
        frame,
        target=target,
        privileged="late",
        ignore=unused,
        arms=["no-xstar", "het-dropout"],
        folder=folder,
        changes=changes,
        **few,
        **options,
    )
    assert [run.failure for run in done.record.runs if run.failure] == []
    return done


def with_cell(column: str, value: float) -> "pd.DataFrame":
    frame = rows()
    frame.loc[3, column] = value
    return frame


@pytest.mark.parametrize("value", BAD)
def test_a_bad_target_or_weight_is_named(tmp_path: Path, value: float) -> None:
    with pytest.raises(
        lupi.LupiError, match=r"'sum' (is missing or not finite in 1|has numbers up to 1e\+300)"
    ):
        compared(with_cell("sum", value), tmp_path, "sum")
    with pytest.raises(lupi.LupiError, match=r"column 'w' is .* in row 4.*from 0 to 1e30"):
        compared(with_cell("w", value), tmp_path, weights="w")


@pytest.mark.parametrize("column", ["a", "late"])
def test_a_cell_that_is_too_large_is_named(tmp_path: Path, column: str) -> None:
    with pytest.raises(lupi.LupiError, match=rf"column '{column}' has numbers up to 1e\+300"):
        compared(with_cell(column, 1e300), tmp_path)


def test_bad_cells_of_x_and_xstar_are_missing(tmp_path: Path) -> None:
    frame = rows()
    for row, value in enumerate(BAD[:3]):
        frame.loc[row, "a"] = frame.loc[10 + row, "late"] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        done = compared(frame, tmp_path)
    scores = [run.result["metrics"]["test"]["accuracy"] for run in done.record.runs]
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sign": "p"}, "target 'sign' is 'p' in every row; there is nothing to learn"),
        ({"w": 0.0}, "column 'w' is 0 in all train rows"),
    ],
)
def test_nothing_to_learn_is_a_sentence(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(lupi.LupiError, match=message):
        compared(rows().assign(**change), tmp_path, weights="w")


def test_one_row_and_no_xstar_at_all(tmp_path: Path) -> None:
    with pytest.raises(lupi.LupiError, match="in every row; there is nothing to learn"):
        compared(rows(1), tmp_path)
    with pytest.raises(lupi.LupiError, match=r"there is no x\*"):
        compared(rows().assign(late=np.nan), tmp_path)


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true", "32-true"])
def test_precisions_that_exist(tmp_path: Path, precision: str) -> None:
    done = compared(rows(), tmp_path, changes={"train.precision": precision})
    scores = [run.result["metrics"]["test"]["accuracy"] for run in done.record.runs]
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("precision", ["bfloat16", "float64", "16-mixed", 16])
def test_precisions_that_do_not_exist(tmp_path: Path, precision: Any) -> None:
    with pytest.raises(lupi.LupiError, match=r"train.precision: got .*'32-true', '64-true' or 'bf"):
        compared(rows(), tmp_path, changes={"train.precision": precision})


X = np.random.default_rng(1).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
XSTAR = X[:, :1] + X[:, 1:2]


def put(values: Any, value: float) -> Any:
    changed = np.array(values, dtype=float)
    changed[0] = value
    return changed


@pytest.mark.parametrize("value", [1e39, 1e300, 1.7e308])
def test_estimators_answer_with_finite_numbers(value: float) -> None:
    classes = lupi.LupiClassifier(epochs=2).fit(X, Y, xstar=XSTAR)
    assert np.isfinite(classes.predict_proba(put(X, value))).all()
    numbers = lupi.LupiRegressor(epochs=2).fit(X, X[:, 0], xstar=XSTAR)
    assert all(np.isfinite(part).all() for part in numbers.predict(put(X, value), return_std=True))


def test_estimators_name_numbers_that_have_no_variance() -> None:
    for name, given in (
        ("X", (put(X, 1e300), X[:, 0], XSTAR)),
        ("y", (X, put(X[:, 0], 1e300), XSTAR)),
        ("xstar", (X, X[:, 0], put(XSTAR, 1e300))),
    ):
        with pytest.raises(ValueError, match=rf"^{name} has values up to 1e\+300"):
            lupi.LupiRegressor(epochs=2).fit(given[0], given[1], xstar=given[2])


def test_estimators_say_that_no_row_has_xstar() -> None:
    with pytest.warns(UserWarning, match=r"no row has x\*"):
        lupi.LupiClassifier(epochs=2).fit(X, Y, xstar=np.full((60, 2), np.nan))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_estimators_take_tensors_of_any_precision(dtype: torch.dtype) -> None:
    x, xstar = torch.tensor(X).to(dtype).requires_grad_(), torch.tensor(XSTAR).to(dtype)
    rounded, numbers = x.detach().double().numpy(), xstar.double().numpy()
    expected = lupi.LupiClassifier(epochs=2, random_state=0).fit(rounded, Y, xstar=numbers)
    fitted = lupi.LupiClassifier(epochs=2, random_state=0).fit(x, torch.tensor(Y), xstar=xstar)
    assert (fitted.predict_proba(x) == expected.predict_proba(rounded)).all()
    lupi.LupiRegressor(epochs=2).fit(x, x[:, 0], xstar=xstar.to_sparse())


def test_estimators_name_a_tensor_without_numbers() -> None:
    with pytest.raises(lupi.LupiError, match=r"a tensor of type torch.float64 on meta has no numb"):
        lupi.LupiClassifier().fit(torch.tensor(X).to("meta"), Y, xstar=XSTAR)


def test_estimators_of_images_and_texts_take_tensors_of_any_precision() -> None:
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    region = torch.ones(32, 32, dtype=torch.bfloat16)
    lupi.LupiImageClassifier(
        "multitask-mask", network="small-vgg", pooling="mean", image_size=32, epochs=1, val_frac=0
    ).fit([image] * 4, torch.tensor([0, 1, 0, 1]).bfloat16(), [region] * 4)
    texts, flags = ["good film", "a bad one"] * 2, [torch.eye(2)[0], torch.eye(3)[1].bfloat16()] * 2
    lupi.LupiTextClassifier(epochs=1).fit(texts, torch.tensor([0, 1, 0, 1]).bfloat16(), flags)


def test_a_negative_prior_is_a_sentence() -> None:
    with pytest.raises(lupi.LupiError, match=r"settings.prior: got -1; input should be greater"):
        lupi.LupiClassifier(settings={"prior": -1}).fit(X, Y, xstar=XSTAR)
