import pytest

from lupi.errors import LupiError
from lupi.loaders.images.index import Item, hold_out

ITEMS = [
    Item(f"{label}/{i}", label, shapes=((0, 0, 1, 1),) if i % 2 else None)
    for label in "ab"
    for i in range(20)
]


def test_parts_are_disjoint_and_of_the_sizes_asked_for() -> None:
    parts = hold_out(ITEMS, n_val=3, n_test=5)
    names = {part: {item.name for item in items} for part, items in parts.items()}
    assert {part: len(items) for part, items in names.items()} == {
        "train": 24,
        "val": 6,
        "test": 10,
    }
    assert len(set.union(*names.values())) == 40
    assert sum(name.startswith("a") for name in names["val"]) == 3


def test_a_new_image_takes_the_place_of_at_most_one() -> None:
    before = hold_out(ITEMS, n_val=3, n_test=5)
    tested = {item.name for item in before["test"]}
    n_taken = 0
    for i in range(20):
        new = Item(f"a/new{i}", "a")
        after = {item.name for item in hold_out([new, *reversed(ITEMS)], 3, 5)["test"]}
        n_taken += new.name in after
        assert len(tested - after) == (new.name in after)  # nothing moves unless it came in
    assert 0 < n_taken < 20


def test_fewer_training_images_leave_the_others_alone() -> None:
    before = hold_out(ITEMS, n_val=3, n_test=5)
    smaller = hold_out(ITEMS, n_val=3, n_test=5, n_train=4)
    assert smaller["test"] == before["test"]
    assert len(smaller["train"]) == 8
    assert {i.name for i in smaller["train"]} < {i.name for i in before["train"]}


def test_annotated_images_only_in_train_only() -> None:
    parts = hold_out(ITEMS, n_val=3, n_test=5, annotated_only=True)
    assert all(item.has_region for item in parts["train"])
    assert not all(item.has_region for item in parts["test"])


def test_a_source_with_parts_of_its_own_keeps_them() -> None:
    own = [*ITEMS, Item("t", "a", "test")]
    parts = hold_out(own, n_val=3, n_test=5)
    assert [item.name for item in parts["test"]] == ["t"]
    assert len(parts["val"]) == 6
    assert len(parts["train"]) == 34


def test_a_class_that_is_too_small() -> None:
    with pytest.raises(LupiError, match="class a has 20 training images; none is left"):
        hold_out(ITEMS, n_val=15, n_test=5)
