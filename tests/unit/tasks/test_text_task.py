from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lupi.core import Batch, Control, Task
from lupi.errors import LupiError
from lupi.loaders.text.made_reviews import write_reviews
from lupi.tasks.registry import build_task, parse_network, parse_task
from lupi.tasks.text.network import TextNetworkSettings
from lupi.tasks.text.task import TextRows, TextTask
from made_reviews import COLUMNS, settings_of, text_task, write_csv


def whole(split: Any) -> Batch:
    (batch,) = split.batches(10_000)
    assert isinstance(batch, Batch)
    return batch


def test_what_a_task_says_of_itself() -> None:
    task = text_task(n=100)
    assert (task.output_kind, task.xstar_kind, task.places, task.xstar_dim) == (
        *("classes", "region", "words"),
        1,
    )
    assert (task.metric.name, task.metric.of_an_epoch.name) == ("accuracy", "log_likelihood")
    assert (task.design.n_pool, task.design.test) == (100, "per-seed")
    assert task.n_rows + len(task.splits(10, 0).val) + len(task.splits(10, 0).test) == 100
    facts = {fact.about: fact.text for fact in task.facts}
    assert facts["x"].startswith("100 texts with")
    assert "rationales of 100 texts (read as spans)" in facts["x*"]
    assert facts["y"].endswith("one of 2 classes: " + facts["y"].split(": ")[1])
    assert task.warnings == ()


def test_batches_are_padded_and_carry_regions_in_training_only() -> None:
    splits = text_task().splits(20, 0)
    for batch in splits.train.batches(7, torch.Generator().manual_seed(0)):
        assert batch.x.dtype == torch.long
        assert batch.xstar is not None
        assert batch.xstar.shape == (len(batch.y), 1, batch.x.shape[1])
        assert (batch.x[:, -1] > 0).any()  # no longer than the longest
        assert not batch.xstar[:, 0][batch.x == 0].any()
    assert whole(splits.val).xstar is whole(splits.test).xstar is None


def test_each_seed_draws_its_own_rows_and_sizes_are_nested() -> None:
    task = text_task(n=200)
    rows = {seed: list(task.draw(40, seed).values()) for seed in (0, 1)}
    for train, val, test in rows.values():
        assert not set(train) & set(val) | set(train) & set(test) | set(val) & set(test)
    for first, second in zip(*rows.values(), strict=True):
        assert 0 < len(set(first) & set(second)) < len(first)
    small = list(task.draw(20, 0).values())
    assert set(small[0]) < set(rows[0][0])
    assert all(np.array_equal(a, b) for a, b in zip(small[1:], rows[0][1:], strict=True))


def test_classes_are_as_frequent_everywhere() -> None:
    splits = text_task(n=200).splits(60, 0)
    shares = [whole(split).y.float().mean() for split in (splits.train, splits.val, splits.test)]
    assert max(shares) - min(shares) < 0.05


def test_the_vocabulary_is_that_of_the_training_rows(tmp_path: Path) -> None:
    task = text_task(n=100)
    words = task.for_run(10, 0).fitted.preprocessing()["texts"]["words"]
    assert isinstance(task.rows, TextRows)
    seen = {word for i in task.draw(10, 0)["train"] for word in task.rows.texts.words[i]}
    assert len(words) == len(seen) < len(task.rows.data.lexemes)
    train = whole(task.splits(10, 0).train).x
    assert train.unique().tolist() == list(range(len(words) + 1))  # 0 is padding
    assert (whole(task.splits(10, 0).test).x == 0).any()
    few = text_task(n=100, max_words=5)
    assert len(few.for_run(10, 0).fitted.preprocessing()["texts"]["words"]) == 5
    assert whole(few.splits(10, 0).train).x.max() == 5
    often = text_task(n=100, min_count=5).for_run(10, 0).fitted.preprocessing()["texts"]["words"]
    assert set(often) < set(words)


@pytest.mark.parametrize("control", ["shuffled", "constant", "random"])
def test_controls_change_regions_and_nothing_else(control: Control) -> None:
    task = text_task()
    real, other = (whole(task.splits(20, 0, c).train) for c in ("real", control))
    assert torch.equal(real.x, other.x)
    assert torch.equal(real.y, other.y)
    assert real.xstar is not None
    assert other.xstar is not None
    assert not torch.equal(real.xstar, other.xstar)


def test_a_lexicon_is_a_control(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("awful\ngreat\n")
    task = text_task(lexicon=str(path))
    batch = whole(task.splits(20, 0, "lexicon").train)
    words = ["", *task.for_run(20, 0).fitted.preprocessing()["texts"]["words"]]
    assert batch.xstar is not None
    marked = batch.x[batch.xstar[:, 0] > 0]
    assert {words[i] for i in marked} == {"awful", "great"}
    with pytest.raises(LupiError, match=r"task\.lexicon"):
        text_task().splits(20, 0, "lexicon")


def test_a_fraction_of_rows_keeps_its_rationale() -> None:
    task = text_task()
    half, all_rows = (whole(task.splits(20, 0, "real", frac).train) for frac in (0.5, 1.0))
    assert half.has_xstar is not None
    assert all_rows.has_xstar is not None
    assert half.xstar is not None
    assert half.has_xstar.sum() == 10
    assert all_rows.has_xstar.all()
    assert not half.xstar[~half.has_xstar].any()


def test_an_oracle_is_shown_the_rationales_of_held_out_rows() -> None:
    splits = text_task().splits(20, 0, reveal=True)
    assert whole(splits.test).xstar is not None


def test_numbers_are_standardised_and_scored_in_their_own_units() -> None:
    task = text_task(kind="regression")
    assert (task.output_kind, task.metric.name) == ("gaussian", "r2")
    y = whole(task.splits(40, 0).train).y
    perfect = torch.stack([y, torch.full_like(y, -6)], 1)
    assert task.outcome.metrics(perfect, y)["r2"] == pytest.approx(1)
    off = torch.stack([y + 1, torch.zeros_like(y)], 1)
    assert task.outcome.metrics(off, y)["rmse"] == pytest.approx(task.outcome.std, rel=1e-5)
    trivial = task.outcome.trivial(task.splits(40, 0).train, task.splits(40, 0).train)
    assert trivial["r2"] == pytest.approx(0, abs=1e-5)


def test_files_of_their_own_hold_rows_out(tmp_path: Path) -> None:
    for seed, name in enumerate(("train", "val", "test")):
        write_reviews(tmp_path / f"{name}.csv", 30 + seed, seed)
    files = {"val": tmp_path / "val.csv", "test": tmp_path / "test.csv"}
    task = TextTask(settings_of(tmp_path / "train.csv", **files), TextNetworkSettings())
    splits = task.splits(30, 0)
    assert (len(splits.train), len(splits.val), len(splits.test)) == (30, 31, 32)
    assert task.design.test == "fixed"
    assert torch.equal(whole(splits.test).y, whole(task.splits(30, 1).test).y)


def test_a_changed_file_is_another_run(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    write_reviews(path, 30)
    raw = {"name": "text", "path": str(path), **COLUMNS}
    before = parse_task(raw).with_content()
    network = parse_network(before, {})
    build_task(before, network)
    write_reviews(path, 31)
    after = parse_task(raw).with_content()
    assert after != before
    with pytest.raises(LupiError, match="has changed since this run was planned"):
        build_task(before, network)
    assert build_task(after, network).facts[0].text.startswith("31 texts")


def test_copies_and_findings_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    write_reviews(path, 40)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1], '"a film",good,"[[0, 99]]"']) + "\n")
    task = TextTask(settings_of(path, on_bad="skip"), TextNetworkSettings())
    finding, copies = task.warnings
    assert "rationale that does not fit the text: 1, the first in reviews.csv row 42" in finding
    assert "1 rows repeat the text of another" in copies
    assert task.finding_counts == {"rationale that does not fit the text": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "regression"}, "regression needs finite numbers, got 'good'"),
        ({"metric": "r2"}, "'r2' does not fit classification"),
        ({"val_frac": 0.6, "test_frac": 0.4}, "must leave rows for training"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, changes: Any, message: str) -> None:
    path = write_csv(
        tmp_path / "a.csv", [["review", "label", "spans"], ["x", "good", [[0, 1]]], ["y", "no", ""]]
    )
    with pytest.raises(LupiError, match=message):
        TextTask(settings_of(path, **changes), TextNetworkSettings())


def test_targets_that_never_change_and_too_few_rows_are_refused(tmp_path: Path) -> None:
    header = ["review", "label", "spans"]
    same = write_csv(tmp_path / "a.csv", [header, ["x", "good", [[0, 1]]]])
    with pytest.raises(LupiError, match="is 'good' in every row"):
        TextTask(settings_of(same), TextNetworkSettings())
    few = write_csv(tmp_path / "b.csv", [header, ["x", "good", [[0, 1]]], ["y", "bad", ""]])
    with pytest.raises(LupiError, match="2 rows are too few"):
        TextTask(settings_of(few), TextNetworkSettings()).splits(1, 0)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"n_channels": 8}, "has no effect on bag-of-words"),
        ({"name": "custom"}, "custom needs it"),
        ({"name": "cnn", "encoder": "a:b"}, "goes with name: custom"),
    ],
)
def test_settings_without_effect_are_refused(network: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        TextNetworkSettings.parse(network, "network")


def grouped(tmp_path: Path, **changes: Any) -> Task:
    rows = [
        {
            "text": f"word{i} and {'good' if i % 2 else 'bad'}",
            "label": str(i % 2),
            "id": f"{i // 2}",
        }
        for i in range(80)
    ]
    for i, row in enumerate(rows):
        row["part"] = ("train", "train", "dev", "test")[i // 2 % 4]
    path = tmp_path / "pairs.csv"
    names = list(rows[0])
    lines = [",".join(names), *(",".join(row[name] for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    raw = {"name": "text", "path": path, "text": "text", "target": "label", **changes}
    settings = parse_task(raw)
    task = build_task(settings, parse_network(settings, {}))
    assert isinstance(task, Task)
    return task


def test_groups_of_texts_are_in_one_part_only(tmp_path: Path) -> None:
    task = grouped(tmp_path, groups="id")
    drawn = set()
    for seed in range(4):
        parts = task.division.draw(seed)
        ids = [{row // 2 for row in rows.tolist()} for rows in parts.values()]
        assert sum(map(len, ids)) == len(set.union(*ids)) == 40
        drawn.add(tuple(sorted(ids[2])))
    assert len(drawn) == 4
    assert "new groups (id)" in task.design.scope(20)
    assert len(task.splits(20, 0).train) == 20


def test_an_official_split_of_texts(tmp_path: Path) -> None:
    task = grouped(tmp_path, split="part", groups="id")
    parts = task.division.draw(0)
    assert [len(rows) for rows in parts.values()] == [40, 20, 20]
    assert (task.design.test, task.n_rows) == ("fixed", 40)
    test = whole(task.splits(10, 0).test)
    assert len(test.y) == 20
    with pytest.raises(LupiError, match="'label' is also the text, the target or the rationale"):
        grouped(tmp_path, groups="label")
    with pytest.raises(LupiError, match="no column is called `ids`"):
        grouped(tmp_path, groups="ids")


def test_texts_in_order_of_time(tmp_path: Path) -> None:
    task = grouped(tmp_path, time="id")
    train, val, test = task.division.draw(0).values()
    assert train.max() < val.min() < val.max() < test.min()
    assert task.design.time == "id"
