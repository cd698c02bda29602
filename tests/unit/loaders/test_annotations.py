"""Files as annotation tools write them, made small; each becomes the region it means."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.coco import decompress
from lupi.loaders.images.annotations.label_studio import plain_name, unpack
from lupi.loaders.images.annotations.shapes import BadShapeError, draw_shapes
from lupi.loaders.images.folder import ImageFolder
from lupi.loaders.images.index import Index, Item
from lupi.loaders.images.trees import open_tree
from made_images import annotation, save_image

SIZE = (40, 20)
SQUARE = [10, 4, 20, 4, 20, 12, 10, 12]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two classes of three images, 40 x 20 pixels."""
    for kind in ("cats", "dogs"):
        for i in range(3):
            save_image(tmp_path / f"{kind}/{kind[0]}{i}.jpg", SIZE)
    return tmp_path


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def index_of(root: Path, **given: Any) -> Index:
    return ImageFolder(**given).index(open_tree(root), Findings("stop"))


def items_of(root: Path, **given: Any) -> dict[str, Item]:
    return {item.name: item for item in index_of(root, **given).items}


def region(item: Item) -> NDArray[np.bool_]:
    return draw_shapes(item.shapes or (), item.shapes_size, SIZE)


def block(x0: int, y0: int, x1: int, y1: int) -> NDArray[np.bool_]:
    inside = np.zeros(SIZE[::-1], dtype=np.bool_)
    inside[y0:y1, x0:x1] = True
    return inside


def coco(*annotations: dict[str, Any], size: tuple[int, int] = SIZE) -> dict[str, Any]:
    names = [f"{kind}{i}.jpg" for kind in "cd" for i in range(3)]
    return {
        "images": [
            {"id": i, "file_name": name, "width": size[0], "height": size[1]}
            for i, name in enumerate(names)
        ],
        "annotations": [{"image_id": 0, **one} for one in annotations],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    }


def runs(mask: NDArray[np.bool_]) -> list[int]:
    """Return run lengths down the columns, starting outside."""
    flat = mask.T.flatten()
    edges = np.flatnonzero(np.diff(flat, prepend=False, append=False)).tolist()
    return np.diff([0, *edges, len(flat)]).tolist() if edges[-1] != len(flat) else []


def compressed(counts: list[int]) -> str:
    """Write run lengths as COCO's text: see decompress."""
    text = ""
    for i, count in enumerate(counts):
        value = count - counts[i - 2] if i > 2 else count
        more = True
        while more:
            low = value & 31
            value >>= 5
            more = value not in (0, -1) or (low & 16 != 0) == (value == 0)
            text += chr(48 + low + (32 if more else 0))
    return text


def test_coco_polygons_and_run_lengths(root: Path) -> None:
    mask = block(10, 4, 20, 12)
    counts = runs(mask)
    shapes: list[Any] = [
        [SQUARE],
        {"size": [20, 40], "counts": counts},
        {"size": [20, 40], "counts": compressed(counts)},
    ]
    for segmentation in shapes:
        write(root / "coco.json", coco({"segmentation": segmentation, "bbox": [0, 0, 1, 1]}))
        item = items_of(root)["cats/c0.jpg"]
        assert len(item.shapes or ()) == 1
        assert not item.boxes
        assert (region(item) == mask).all()
    assert items_of(root)["dogs/d2.jpg"].shapes == ()  # listed, without an annotation
    write(root / "coco.json", coco({"bbox": [20, 8, 20, 16]}, size=(80, 40)))  # twice as large
    assert (region(items_of(root)["cats/c0.jpg"]) == block(10, 4, 20, 12)).all()


def test_run_lengths_that_lie() -> None:
    assert decompress(compressed([5, 3, 1000, 2, 7])) == [5, 3, 1000, 2, 7]
    for text in ("!", "P" * 40, "o"):
        with pytest.raises(BadShapeError):
            decompress(text)


@pytest.mark.parametrize(
    "segmentation",
    [
        [[1, 2, 3]],
        [["a", 1, 2, 3, 4, 5]],
        {"size": [20, 40], "counts": [1, 2, 3]},
        {"size": [10**6, 10**6], "counts": [10**12]},
        {"size": [20], "counts": [800]},
        {"counts": [800]},
    ],
)
def test_coco_shapes_that_cannot_be_used(root: Path, segmentation: Any) -> None:
    write(root / "coco.json", coco({"segmentation": segmentation}))
    findings = Findings("skip")
    ImageFolder().index(open_tree(root), findings)
    assert [(f.kind, f.file) for f in findings.bad] == [
        ("unreadable box", "coco.json, annotation 0")
    ]


def test_classes_from_coco_where_all_images_are_in_one_folder(tmp_path: Path) -> None:
    for name in [f"{kind}{i}.jpg" for kind in "cd" for i in range(3)]:
        save_image(tmp_path / "images" / name, SIZE)
    content = coco()
    content["annotations"] = [
        {"image_id": i, "bbox": [1, 1, 5, 5], "category_id": 1 + i // 3} for i in range(5)
    ]
    content["annotations"].append({"image_id": 0, "bbox": [9, 9, 2, 2], "category_id": 2})
    write(tmp_path / "annotations/instances.json", content)
    findings = Findings("skip")
    index = ImageFolder().index(open_tree(tmp_path), findings)
    labels = {item.name: item.label for item in index.items}
    assert labels == {
        "images/c1.jpg": "cat",
        "images/c2.jpg": "cat",
        "images/d0.jpg": "dog",
        "images/d1.jpg": "dog",
        "images/d2.jpg": "nothing",
    }
    assert findings.counts() == {"image of several classes": 1}
    (tmp_path / "annotations/instances.json").unlink()
    with pytest.raises(LupiError, match=r"6 images but no two classes: put them into a folder"):
        index_of(tmp_path)


def test_yolo_boxes_polygons_and_empty_files(root: Path) -> None:
    write(root / "labels/cats/c0.txt", "0 0.375 0.4 0.25 0.4\n")
    write(root / "labels/cats/c1.txt", "0 0.25 0.2 0.5 0.2 0.5 0.6 0.25 0.6\n")
    write(root / "labels/dogs/d0.txt", "")
    write(root / "labels/dogs/d1.txt", "1 0.5 0.5\n")
    write(root / "data.yaml", "names: [tabby, poodle]\n")
    findings = Findings("skip")
    index = ImageFolder().index(open_tree(root), findings)
    items = {item.name: item for item in index.items}
    assert index.classes == ["cats", "dogs"]  # `labels` is none
    for name in ("cats/c0.jpg", "cats/c1.jpg"):
        assert (region(items[name]) == block(10, 4, 20, 12)).all()
    assert items["dogs/d0.jpg"].shapes == ()
    assert not items["cats/c2.jpg"].has_region
    assert not findings.bad  # d1.txt does not look like YOLO's: it is left out
    assert any("labels/dogs/d1.txt" in fact.text for fact in index.layout)


def test_yolo_names_the_classes_of_a_single_folder(tmp_path: Path) -> None:
    for i in range(4):
        save_image(tmp_path / f"images/{i}.jpg", SIZE)
        write(tmp_path / f"labels/{i}.txt", f"{i % 2} 0.5 0.5 0.2 0.2\n")
    write(tmp_path / "classes.txt", "tabby\npoodle\n")
    index = index_of(tmp_path)
    assert [item.label for item in index.items] == ["tabby", "poodle"] * 2


def test_a_division_into_folders_that_is_not_used_is_said(tmp_path: Path) -> None:
    for i in range(4):
        part = "train" if i else "val"
        save_image(tmp_path / f"images/{part}/{i}.jpg", SIZE)
        write(tmp_path / f"labels/{part}/{i}.txt", f"{i % 2} 0.5 0.5 0.2 0.2\n")
    (unused,) = [fact.text for fact in index_of(tmp_path).layout if fact.about == "not used"]
    assert unused == "the division into train/ and val/: each seed draws its own"


def test_voc_is_found_in_a_folder_or_beside(root: Path) -> None:
    write(root / "Annotations/c0.xml", annotation((10, 4, 20, 12), size=SIZE))
    assert items_of(root)["cats/c0.jpg"].boxes == ((10, 4, 20, 12),)
    write(root / "dogs/d0.xml", annotation((1, 2, 3, 4), size=SIZE))
    assert items_of(root)["dogs/d0.jpg"].boxes == ((1, 2, 3, 4),)


def test_cvat(root: Path) -> None:
    write(
        root / "annotations.xml",
        """<annotations><version>1.1</version>
        <image id="0" name="cats/c0.jpg" width="40" height="20">
          <box label="cat" xtl="10" ytl="4" xbr="20" ybr="12"/></image>
        <image id="1" name="c1.jpg" width="40" height="20">
          <polygon label="cat" points="10,4;20,4;20,12;10,12"/></image>
        <image id="2" name="dogs/d0.jpg" width="40" height="20">
          <mask label="dog" rle="0, 80" left="10" top="4" width="10" height="8"/></image>
        <image id="3" name="dogs/d1.jpg" width="40" height="20"/></annotations>""",
    )
    items = items_of(root)
    for name in ("cats/c0.jpg", "cats/c1.jpg", "dogs/d0.jpg"):
        assert (region(items[name]) == block(10, 4, 20, 12)).all(), name
    assert items["dogs/d1.jpg"].shapes == ()


def packed(values: NDArray[np.uint8]) -> list[int]:
    """Pack bytes as a brush stroke: see unpack. Runs have lengths of up to 2**16."""
    bits = f"{len(values):032b}{7:05b}" + "".join(f"{n - 1:04b}" for n in (3, 4, 8, 16))
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    for start, end in itertools.pairwise(edges):
        if end - start < 3:  # single values
            bits += f"0{0:02b}{end - start - 1:03b}"
            bits += "".join(f"{value:08b}" for value in values[start:end])
        else:
            bits += f"1{3:02b}{end - start - 1:016b}{values[start]:08b}"
    bits += "0" * (-len(bits) % 8)
    return [int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)]


def label_studio(*results: dict[str, Any], file: str = "c0.jpg") -> dict[str, Any]:
    sized = [{"original_width": 40, "original_height": 20, **one} for one in results]
    address = f"/data/upload/3/0a1b2c3d-{file}"
    return {"id": 1, "data": {"image": address}, "annotations": [{"result": sized}]}


def test_label_studio_shapes(root: Path) -> None:
    box = {"x": 25, "y": 20, "width": 25, "height": 40, "rotation": 0, "rectanglelabels": ["a"]}
    points = {"points": [[25, 20], [50, 20], [50, 60], [25, 60]], "polygonlabels": ["a"]}
    stroke = np.repeat(block(10, 4, 20, 12).flatten(), 4).astype(np.uint8) * 255
    brush = {"format": "rle", "rle": packed(stroke), "brushlabels": ["a"]}
    for kind, value in (("rectanglelabels", box), ("polygonlabels", points), ("brush", brush)):
        cancelled = {"was_cancelled": True, "result": []}
        task = label_studio({"type": kind, "value": value})
        task["annotations"].append(cancelled)
        nothing = label_studio(file="d0.jpg")
        open_task = {"data": {"image": "d1.jpg"}, "annotations": []}
        write(root / "export.json", [task, nothing, open_task])
        items = items_of(root)
        assert (region(items["cats/c0.jpg"]) == block(10, 4, 20, 12)).all(), kind
        assert items["dogs/d0.jpg"].shapes == ()
        assert not items["dogs/d1.jpg"].has_region  # nobody has looked at it yet
    row = {"image": "x/c0.jpg", "label": [{**box, "original_width": 40, "original_height": 20}]}
    write(root / "export.json", [row])  # JSON-MIN
    assert (region(items_of(root)["cats/c0.jpg"]) == block(10, 4, 20, 12)).all()


def test_label_studio_turned_boxes_keep_their_lengths(root: Path) -> None:
    turned = {"x": 50, "y": 20, "width": 20, "height": 20, "rotation": 90}
    write(root / "export.json", [label_studio({"type": "rectanglelabels", "value": turned})])
    # 8 x 4 pixels from (20, 4), turned around that corner: 4 to the left, 8 down
    assert (region(items_of(root)["cats/c0.jpg"]) == block(16, 4, 20, 12)).all()


def test_label_studio_choices_are_classes(tmp_path: Path) -> None:
    tasks = []
    for i, kind in enumerate(["ok", "bad", "ok", "bad"]):
        save_image(tmp_path / f"{i}.jpg", SIZE)
        choice = {"type": "choices", "value": {"choices": [kind]}}
        box = {"type": "rectangle", "value": {"x": 1, "y": 1, "width": 9, "height": 9}}
        tasks.append(label_studio(choice, box, file=f"{i}.jpg"))
    write(tmp_path / "export.json", tasks)
    index = index_of(tmp_path)
    assert [item.label for item in index.items] == ["ok", "bad", "ok", "bad"]
    assert all(len(item.boxes) == 1 for item in index.items)


def test_names_of_label_studio() -> None:
    assert plain_name("/data/upload/1/0a1b2c3d-my%20cat.jpg") == "my cat.jpg"
    assert plain_name("/data/local-files/?d=cats/1.jpg") == "cats/1.jpg"
    assert plain_name("s3://bucket/cats/1.jpg") == "cats/1.jpg"
    with pytest.raises(BadShapeError, match="cut off"):
        unpack([0, 0, 0, 9, 0b00111000], 9)


def test_a_file_that_is_named_and_not_understood(root: Path) -> None:
    write(root / "mine.json", {"boxes": []})
    with pytest.raises(LupiError, match="neither COCO JSON"):
        index_of(root, boxes="mine.json")
    with pytest.raises(LupiError, match="has no such file"):
        index_of(root, boxes="none.csv")
    write(root / "mine.tsv", "")
    with pytest.raises(LupiError, match="not a format that is read: COCO, Label Studio"):
        index_of(root, boxes="mine.tsv")
