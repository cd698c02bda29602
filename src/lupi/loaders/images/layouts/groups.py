"""Groups of images that belong together, such as those of one patient, from a CSV.

The CSV has a column `file` and a column with the group of each image.
"""

from collections.abc import Sequence
from dataclasses import replace

from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.names import ImageNames
from lupi.loaders.images.annotations.read import read_table
from lupi.loaders.images.layouts.index import Item
from lupi.loaders.images.layouts.trees import Tree
from lupi.settings import unknown_name


def with_groups(
    tree: Tree, path: str, column: str | None, items: Sequence[Item], findings: Findings
) -> list[Item]:
    """Return items with their groups; an image without one is a group by itself.

    Args:
        tree: Files below the root.
        path: Name of the CSV.
        column: Column with the groups; None: the only one besides `file`.
        items: Images.
        findings: Collects images without a group and lines without an image.
    """
    names = ImageNames(item.name for item in items)
    group_of: dict[str, str] = {}
    for where, row in read_table(tree, path, ("file",)):
        column = column or _only_column(path, [name for name in row if name != "file"])
        if column not in row:
            known = [name for name in row if name != "file"]
            raise LupiError(f"task.group_column: {path}: {unknown_name('column', column, known)}")
        name = names.find(row["file"], where, findings)
        group = row[column].strip()
        if name is None:
            continue
        if not group or group_of.setdefault(name, group) != group:
            what = "it is empty" if not group else f"it is in {group_of[name]!r} above"
            findings.add(where, "unreadable group", f"{name}: {what}")
    for item in items:
        if item.name not in group_of:
            findings.add(item.name, "image without a group", f"{path} has no line for it")
    return [replace(item, group=group_of.get(item.name, item.name)) for item in items]


def _only_column(path: str, columns: Sequence[str]) -> str:
    if len(columns) != 1:
        found = ", ".join(columns) or "none"
        raise LupiError(
            f"task.group_column: {path} needs one column beside `file`, it has {found}; name the "
            "one whose images belong together"
        )
    return columns[0]
