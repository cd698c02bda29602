"""The tables that `lupi.judge` reads: any frame, wide tables, exports of trackers, units."""

from typing import Any

import numpy as np
import pytest

import lupi
from lupi.errors import LupiError

LEAD = (0.04, 0.03, 0.05, 0.045, 0.035, 0.055, 0.04, 0.03)
PLAIN = (0.71, 0.70, 0.72, 0.69, 0.705, 0.70, 0.715, 0.69)


def long(scale: float = 1.0) -> dict[str, list[Any]]:
    ours = [plain + lead for plain, lead in zip(PLAIN, LEAD, strict=True)]
    return {
        "arm": ["plain"] * 8 + ["ours"] * 8,
        "seed": [*range(8), *range(8)],
        "score": [scale * score for score in (*PLAIN, *ours)],
    }


def judge(scores: Any, **options: Any) -> Any:
    return lupi.judge(
        scores, **{"method": "ours", "controls": ["plain"], "metric": "accuracy", **options}
    )


def difference(scores: Any, **options: Any) -> tuple[str, float]:
    judgement = judge(scores, **options)
    (found,) = judgement.arms[-1].cells[0].differences
    return judgement.verdicts["ours", 0], found.mean


EXPECTED = ("helps", float(np.mean(LEAD)))


def as_mlflow() -> dict[str, list[Any]]:
    table = long()
    return {
        "run_id": [f"r{i}" for i in range(16)],
        "params.arm": table["arm"],
        "params.seed": [str(seed) for seed in table["seed"]],
        "metrics.accuracy": table["score"],
    }


def as_optuna() -> dict[str, list[Any]]:
    table = long()
    return {
        "number": list(range(16)),
        "value": table["score"],
        "params_seed": table["seed"],
        "user_attrs_arm": table["arm"],
    }


def as_wandb() -> dict[str, list[Any]]:
    table = long()
    return {
        "config/arm": table["arm"],
        "config/seed": table["seed"],
        "summary/test accuracy": table["score"],
    }


def wide() -> dict[str, list[Any]]:
    table = long()
    return {"seed": list(range(8)), "plain": table["score"][:8], "ours": table["score"][8:]}


@pytest.mark.parametrize("table", [long, wide, as_mlflow, as_optuna, as_wandb])
def test_tables_of_many_kinds_mean_the_same(table: Any) -> None:
    verdict, mean = difference(table())
    assert verdict == EXPECTED[0]
    assert mean == pytest.approx(EXPECTED[1])


def test_rows_and_frames() -> None:
    table = long()
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    assert difference(rows)[1] == pytest.approx(EXPECTED[1])
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table).convert_dtypes()
    frame.loc[0, "score"] = pd.NA
    judgement = judge(frame)
    assert judgement.arms[0].cells[0].n_missing == 1
    pivot = pd.DataFrame(table).pivot(index="seed", columns="arm", values="score")
    assert judge(pivot).verdicts == {("ours", 0): "helps"}


@pytest.mark.parametrize("is_lazy", [False, True])
def test_polars(is_lazy: bool) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(long())
    assert difference(frame.lazy() if is_lazy else frame)[1] == pytest.approx(EXPECTED[1])


def test_columns_are_renamed() -> None:
    table = long()
    renamed = {"system": table["arm"], "run": table["seed"], "acc@1": table["score"]}
    names = {"arm": "system", "seed": "run", "score": "acc@1"}
    assert difference(renamed, columns=names)[1] == pytest.approx(EXPECTED[1])
    with pytest.raises(LupiError, match="no column 'systen'"):
        judge(renamed, columns={**names, "arm": "systen"})
    with pytest.raises(LupiError, match="'scores' is not one of arm, seed, score, size"):
        judge(renamed, columns={"scores": "acc@1"})


def test_percent_is_not_taken_for_a_share() -> None:
    """An accuracy in percent was printed as "+311.8 points"."""
    judgement = judge(long(100.0))
    assert "from 70.4 % to 74.4 %" in judgement.headline
    assert "+4.1 points of accuracy" in judgement.statement.exact
    assert judgement.arms[1].cells[0].margin == 1.0
    assert judge(long()).arms[1].cells[0].margin == 0.01


def test_shares_and_percent_are_not_mixed() -> None:
    table = long()
    table["score"][8:] = [100 * score for score in table["score"][8:]]
    with pytest.raises(LupiError, match=r"accuracy of plain is at most 1, that of ours is larger"):
        judge(table)
    with pytest.raises(LupiError, match="accuracy up to 7"):
        judge(long(1000.0))
    with pytest.raises(LupiError, match="unit: got 'points'"):
        judge(long(), unit="points")


@pytest.mark.parametrize("name", ["AUC", "auc", "ROC AUC", "roc_auc", "AUROC"])
def test_a_metric_has_one_margin_by_any_name(name: str) -> None:
    """`AUC` and `auc` got different margins."""
    assert judge(long(), metric=name).arms[1].cells[0].margin == 0.01


@pytest.mark.parametrize("name", ["rmse", "MAE", "val_loss", "word error rate", "nll", "FID"])
def test_errors_and_losses_are_better_if_lower(name: str) -> None:
    """`rmse` without `higher_is_better` went unnoticed: an improvement was called worse."""
    assert judge(long(), metric=name).verdicts["ours", 0] == "hurts"
    odd = judge(long(), metric=name, higher_is_better=True)
    assert odd.verdicts["ours", 0] == "helps"
    assert any("usually better if it is lower" in warning for warning in odd.warnings)


def test_a_design_is_used_without_a_column_of_sizes() -> None:
    """It was ignored."""
    design = lupi.Design(n_pool=400, test="fixed")
    with pytest.raises(LupiError, match="pass it as `size=200`"):
        judge(long(), design=design)
    alone = judge(long(), size=200).arms[1].cells[0].deciding.interval
    shared = judge(long(), size=200, design=design).arms[1].cells[0].deciding.interval
    assert shared[1] - shared[0] > 1.5 * (alone[1] - alone[0])
    with pytest.raises(LupiError, match="500 training rows can't be drawn from a pool of 400"):
        judge(long(), size=500, design=design)


def test_each_lack_has_its_own_reason() -> None:
    """Duplicate controls, identical differences, no common seeds: all were "too few seeds"."""
    with pytest.raises(LupiError, match="plain is listed twice"):
        judge(long(), controls=["plain", "plain"])
    table = long()
    table["score"][8:] = [score + 0.25 for score in table["score"][:8]]
    cell = judge(table).arms[1].cells[0]
    assert cell.reason == "the difference from plain is identical for all seeds"
    table["seed"][8:] = range(8, 16)
    cell = judge(table).arms[1].cells[0]
    assert (cell.verdict, cell.reason) == ("not compared", "no common seed with plain")


def test_a_control_without_rows_at_a_size_is_not_beaten() -> None:
    table = long()
    table["size"] = [200] * 16
    for name in table:
        extra = {"arm": "shuffled", "seed": 0, "score": 0.7, "size": 100}[name]
        table[name].append(extra)
    judgement = judge(table, controls=["plain", "shuffled"])
    assert judgement.verdicts["ours", 200] == "better than plain only"
    assert "not compared with shuffled" in judgement.headline


def test_what_can_not_be_read_is_named() -> None:
    for wrong in (3, [1, 2], "abc"):
        with pytest.raises(LupiError, match="scores: "):
            judge(wrong)
    with pytest.raises(
        LupiError, match="no column 'seed', by which runs are paired; add it to the wide"
    ):
        judge({name: values for name, values in wide().items() if name != "seed"})
    with pytest.raises(LupiError, match="a score is a number; got 'good'"):
        judge({**long(), "score": ["good"] * 16})
