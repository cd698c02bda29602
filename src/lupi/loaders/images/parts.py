"""How the images of a source are divided into training, validation and test images."""

import numpy as np

from lupi.errors import LupiError
from lupi.loaders.division import Division, Part, check_groups, given_parts
from lupi.loaders.images.cache import Loaded


def fixed_division(loaded: Loaded) -> Division:
    """Return the parts of the source, the same for every seed."""
    return Division(loaded.every.y, given_parts(_sizes(loaded)), {})


def divide_images(
    loaded: Loaded, n_val: int, n_test: int, annotated_only: bool, groups: str = "groups"
) -> Division:
    """Let each seed draw the parts that the source does not have, class by class or by group."""
    if not loaded.held_out:
        return fixed_division(loaded)
    images, y = loaded.every, loaded.every.y
    rows = given_parts(_sizes(loaded))
    amounts: dict[Part, int] = {"val": n_val, "test": n_test}
    drawn = {part: amounts[part] for part in loaded.held_out}
    pool = np.concatenate([rows["train"], *(rows[part] for part in drawn)])
    given = {part: some for part, some in rows.items() if part not in drawn} | {"train": pool}
    counts, n_needed = np.bincount(y[pool]), sum(drawn.values()) + 1
    if counts.min() < n_needed:
        raise LupiError(
            f"class {loaded.classes[int(counts.argmin())]} has {counts.min()} images that can be "
            f"used; {n_needed} are needed: lower task.n_val or task.n_test"
        )
    if loaded.groups is not None:
        named = np.array(loaded.group_names, dtype=object)[loaded.groups]
        check_groups({part: named[some] for part, some in given.items()})
    return Division(
        y,
        given,
        drawn,
        loaded.groups,
        keys=loaded.keys,
        trainable=images.has_region if annotated_only and drawn else None,
        names={"groups": groups},
    )


def _sizes(loaded: Loaded) -> dict[Part, int]:
    return {"train": len(loaded.train.y), "val": len(loaded.val.y), "test": len(loaded.test.y)}
