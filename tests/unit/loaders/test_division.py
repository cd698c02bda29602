from typing import Any

import numpy as np
import pytest

from lupi.errors import LupiError
from lupi.loaders.division import Division, given_parts, number_groups

LABELS = np.repeat([0, 1, 2], [60, 30, 10])
GROUPS = np.arange(100) // 2


def division(**changes: Any) -> Division:
    of: dict[str, Any] = {"drawn": {"val": 2, "test": 4}, "groups": GROUPS, **changes}
    return Division(LABELS, given_parts({"train": 100}), **of)


@pytest.mark.parametrize("keys", [None, np.random.default_rng(0).integers(2**63, size=100)])
def test_groups_are_whole_and_classes_have_as_many_rows_as_fit(keys: Any) -> None:
    found = division(keys=None if keys is None else keys.astype(np.uint64))
    tests = set()
    for seed in range(5):
        parts = found.draw(seed)
        assert sorted(np.concatenate(list(parts.values()))) == list(range(100))
        groups = [set(GROUPS[rows]) for rows in parts.values()]
        assert sum(map(len, groups)) == len(set.union(*groups))
        assert np.bincount(LABELS[parts["val"]]).tolist() == [2, 2, 2]
        assert np.bincount(LABELS[parts["test"]]).tolist() == [4, 4, 4]
        assert len(parts["train"]) >= found.n_train == 100 - 18
        tests.add(tuple(parts["test"]))
    assert len(tests) == 5


def test_a_group_that_is_added_later_moves_few_others() -> None:
    keys = np.random.default_rng(0).integers(2**63, size=100).astype(np.uint64)
    every = division(keys=keys).draw(3)["test"]
    fewer = Division(
        LABELS[:98], given_parts({"train": 98}), {"val": 2, "test": 4}, GROUPS[:98], keys=keys[:98]
    ).draw(3)["test"]
    assert len(set(every) - set(fewer)) <= 2


def test_parts_that_are_given_stay() -> None:
    given = given_parts({"train": 80, "test": 20})
    found = Division(LABELS, given, {"val": 0.25})
    first, second = found.draw(0), found.draw(1)
    assert first["test"].tolist() == second["test"].tolist() == list(range(80, 100))
    assert first["val"].tolist() != second["val"].tolist()
    assert set(first["train"]) | set(first["val"]) == set(range(80))
    assert found.design.test == "fixed"


def test_rows_that_may_not_train_can_be_held_out() -> None:
    trainable = np.arange(100) % 2 == 0
    parts = division(groups=None, trainable=trainable).draw(0)
    assert trainable[parts["train"]].all()
    assert not trainable[parts["test"]].all()
    assert len(parts["train"]) <= 50


def test_groups_too_large_for_a_part() -> None:
    with pytest.raises(LupiError, match="no group fits into 1 rows of each class for val"):
        division(drawn={"val": 1, "test": 4}).draw(0)
    with pytest.raises(LupiError, match="groups: 'a' has rows in train and in test"):
        number_groups({"train": ["a", "b"], "test": ["c", "a"]}, "column 'person'")
