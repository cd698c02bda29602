"""Anyone's images in folders or a zip: classes, regions and groups are found by the files' names.

Classes  <class>/*, images/<class>/*, <class>/images/*, train/<class>/* with val and test;
         a CSV with columns file, label and perhaps part; or the labels of annotations
Regions  masks in folders or beside the images (masks.py); COCO, Label Studio, CVAT, PASCAL VOC,
         YOLO or a CSV with columns file, x0, y0, x1, y1 (annotations/)
Groups   groups.csv with columns file and group

What is given instead of found is a path below the root.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lupi.errors import LupiError
from lupi.facts import Fact, list_counts, list_names
from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.read import (
    Annotations,
    find_annotations,
    read_annotations,
)
from lupi.loaders.images.annotations.shapes import Annotation
from lupi.loaders.images.classes import (
    PART_FOLDERS,
    by_annotation,
    by_folder,
    by_table,
    column_of_images,
    count_labels,
    label_table,
    left_out,
    other_columns,
    with_groups,
)
from lupi.loaders.images.index import Index, Item, has_image_suffix
from lupi.loaders.images.masks import Pairs, pair_masks
from lupi.loaders.images.names import ImageNames
from lupi.loaders.images.trees import Tree
from lupi.settings import unknown_name

GROUPS = "groups.csv"


@dataclass(frozen=True)
class ImageFolder:
    """Locations of labels, regions and groups below the root; None: to be found."""

    labels: str | None = None
    """A CSV."""
    boxes: str | None = None
    """A file of annotations, or a folder of them; `.`: beside the images."""
    masks: str | None = None
    """A folder."""
    mask_values: tuple[int, ...] | None = None
    """Values of a mask on the object; None: all but black."""
    groups: str | None = None
    """A CSV."""
    group_column: str | None = None
    """Its column with the groups; None: the only one besides file."""

    def index(self, tree: Tree, findings: Findings) -> Index:
        """List the images with their regions."""
        pairs = self._pairs(tree)
        names = ImageNames(pairs.images)
        chosen, others = self._annotations(tree, names, pairs)
        found = {} if chosen is None else read_annotations(tree, chosen, names, findings)
        items, from_where = self._classes(tree, pairs.images, found, findings)
        uses_masks = bool(pairs.masks) and self.boxes is None
        if uses_masks:
            for mask in pairs.alone:
                findings.add(mask, "mask without an image", "no image has its name")
            items = [
                item._replace(masks=pairs.masks.get(item.name, ()), mask_values=self.mask_values)
                for item in items
            ]
            source = f"masks in {pairs.where}" if pairs.where[-1] == "/" else f"masks {pairs.where}"
            about = self._about_masks(source, items)
        elif chosen is not None:
            annotated = ((item, found.get(item.name)) for item in items)
            items = [
                item._replace(shapes=one.shapes, shapes_size=one.size) if one else item
                for item, one in annotated
            ]
            about = _about_annotations(chosen, items)
        else:
            about = "none found: images are compared without x*"
        facts = [
            Fact(
                "images",
                f"{len(items):,}, classes from {from_where}: {list_counts(count_labels(items))}",
            ),
            Fact("x*", about),
        ]
        path, column = self._groups(tree)
        if path is not None:
            items = with_groups(tree, path, column, items, findings)
            n_groups = len({item.group for item in items})
            of_column = f", column {column}" if column else ""
            facts.append(Fact("groups", f"{n_groups:,} in {path}{of_column}"))
        unused = [one.about for one in others if not (uses_masks and one is chosen)]
        if uses_masks and chosen is not None and from_where != chosen.about:
            unused.append(chosen.about)
        if from_where != "folders" and all(item.part == "train" for item in items):
            unused += [f"the division into {one}: each seed draws its own" for one in _parts(items)]
        if unused:
            facts.append(Fact("not used", ", ".join(unused)))
        facts += self._left_out(tree, pairs, (chosen, *others))
        return Index(items, sorted({item.label for item in items}), tuple(facts))

    def _groups(self, tree: Tree) -> tuple[str | None, str | None]:
        """Return the CSV with groups and its column; of a CSV that is found, the first one."""
        if self.groups is not None or GROUPS not in tree.names:
            return self.groups, self.group_column
        columns = other_columns(tree, GROUPS)
        return (GROUPS, columns[0]) if columns else (None, None)

    def column(self, tree: Tree, column: str) -> dict[int, str]:
        """Return a column of the CSV with labels or groups, by the keys of images."""
        tables = (self.labels or label_table(tree), self._groups(tree)[0])
        known = {path: other_columns(tree, path) for path in tables if path is not None}
        for path, columns in known.items():
            if column in columns:
                items = [Item(name, "") for name in self._pairs(tree).images]
                key_of = {item.name: item.key for item in items}
                cells = column_of_images(tree, path, column, items, Findings("skip"))
                return {key_of[name]: cell for _, name, cell in cells}
        every = [name for columns in known.values() for name in columns]
        raise LupiError(
            f"task.by: {unknown_name('column', column, every)}"
            if every
            else "task.by: images have columns in a CSV with labels or groups; there is none"
        )

    def _pairs(self, tree: Tree) -> Pairs:
        images = [name for name in tree.names if has_image_suffix(name)]
        if self.masks is not None and self.masks not in tree.folders:
            raise LupiError(f"task.masks: {tree.root} has no folder {self.masks}")
        pairs = pair_masks(images, self.masks)
        if not pairs.images:
            raise LupiError(f"task.root: {tree.root} has no images")
        return pairs

    def _annotations(
        self, tree: Tree, names: ImageNames, pairs: Pairs
    ) -> tuple[Annotations | None, list[Annotations]]:
        """Return the annotations to use, and others that were found."""
        if self.boxes is None:
            found = find_annotations(tree, names)
            return (found[0], found[1:]) if found else (None, [])
        if self.boxes != "." and self.boxes not in (*tree.names, *tree.folders):
            raise LupiError(f"task.boxes: {self.boxes} can't be read: {tree.root} has no such file")
        found = find_annotations(tree, names, self.boxes)
        if not found:
            raise LupiError(
                f"task.boxes: {self.boxes} below {tree.root} has no annotations that can be read: "
                "COCO, Label Studio, CVAT, PASCAL VOC (.xml), YOLO (.txt) or CSV"
            )
        return found[0], found[1:]

    def _classes(
        self,
        tree: Tree,
        images: Sequence[str],
        found: dict[str, Annotation],
        findings: Findings,
    ) -> tuple[list[Item], str]:
        """Return items with their classes, and where these come from."""
        if self.labels is not None:
            return by_table(tree, self.labels, images, findings), self.labels
        items = by_folder(images, findings)
        if items is not None:
            return items, "folders"
        table = label_table(tree)
        if table is not None:
            return by_table(tree, table, images, findings), table
        if any(one.labels for one in found.values()):
            return by_annotation(images, found, findings), "annotations"
        raise LupiError(
            f"{tree.root} has {len(images):,} images but no two classes: put them into a folder "
            "for each class, or add labels.csv with columns file and label"
        )

    def _about_masks(self, source: str, items: Sequence[Item]) -> str:
        n_with = sum(bool(item.masks) for item in items)
        n_several = sum(len(item.masks) > 1 for item in items)
        several = f", {n_several:,} with several" if n_several else ""
        values = f", where they are {list(self.mask_values)}" if self.mask_values else ""
        return f"{source}{values}: {n_with:,} of {len(items):,} images{several}"

    def _left_out(
        self, tree: Tree, pairs: Pairs, annotations: Sequence[Annotations | None]
    ) -> list[Fact]:
        used = {file for one in annotations if one is not None for file in one.files}
        used |= {name for name in tree.names if name.lower().endswith((".csv", ".yaml", ".names"))}
        used |= {name for name in tree.names if name.rpartition("/")[2].lower() == "classes.txt"}
        return [
            Fact("left out", f"{why} ({len(some):,}): {list_names(some[:3])}")
            for why, some in left_out(tree.names, used).items()
        ]


def _about_annotations(used: Annotations, items: Sequence[Item]) -> str:
    n_boxes = sum(len(item.boxes) for item in items)
    n_shapes = sum(len(item.shapes or ()) for item in items)
    counts = {"boxes": n_boxes, "outlines": n_shapes - n_boxes}
    shapes = " and ".join(f"{n:,} {what}" for what, n in counts.items() if n) or "no regions"
    n_with = sum(bool(item.shapes) for item in items)
    n_nothing = sum(item.shapes == () for item in items)
    nothing = f"; {n_nothing:,} are annotated as empty" if n_nothing else ""
    return f"{shapes} in {used.about} for {n_with:,} of {len(items):,} images{nothing}"


def _parts(items: Sequence[Item]) -> list[str]:
    """Return the folders of images that are called like parts, as one text; none without any."""
    folders = {folder for item in items for folder in item.name.split("/")[:-1]}
    named = sorted(name for name in folders if name.lower() in PART_FOLDERS)
    return [" and ".join(f"{name}/" for name in named)] if named else []
