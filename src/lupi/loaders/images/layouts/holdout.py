"""Take validation and test images from train, if a source has none.

The choice depends only on the names of the images, so it is the same on every machine. An image
that is added later replaces at most one other.
"""

from collections import defaultdict
from collections.abc import Sequence

from lupi.errors import LupiError
from lupi.loaders.images.layouts.index import Item, Part


def hold_out(
    items: Sequence[Item],
    n_val: int,
    n_test: int,
    n_train: int | None = None,
    annotated_only: bool = False,
) -> dict[Part, list[Item]]:
    """Split items into train, val and test.

    Args:
        items: of all classes.
        n_val: validation images per class, held out if the source has none.
        n_test: test images per class, held out if the source has none.
        n_train: at most this many training images per class; None: all that are left.
        annotated_only: leave training images without x* out.
    """
    parts: dict[Part, list[Item]] = {"train": [], "val": [], "test": []}
    of_class: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.part == "train":
            of_class[item.label].append(item)
        else:
            parts[item.part].append(item)
    n_val = 0 if parts["val"] else n_val
    n_test = 0 if parts["test"] else n_test
    for label, members in of_class.items():
        order = sorted(members, key=lambda item: item.key)
        if len(order) <= n_val + n_test:
            raise LupiError(
                f"class {label} has {len(order)} training images; none is left after holding out "
                f"{n_val} for validation and {n_test} for test: lower task.n_val or task.n_test"
            )
        parts["test"] += order[:n_test]
        parts["val"] += order[n_test : n_test + n_val]
        rest = order[n_test + n_val :]
        if annotated_only:
            rest = [item for item in rest if item.has_region]
        parts["train"] += rest[:n_train]
    return parts
