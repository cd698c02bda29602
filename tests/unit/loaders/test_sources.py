"""Each layout as people have it, and everything that may be wrong with it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.folder import ImageFolder
from lupi.loaders.images.index import Index, Item, Source, pick_classes
from lupi.loaders.images.regions import with_annotation
from lupi.loaders.images.trees import open_tree
from lupi_paper.images.imagenet import Imagenet
from lupi_paper.images.tiny_imagenet import TinyImagenet
from made_images import annotation, image_folder, imagenet, save_image, tiny_imagenet, zipped


def read(source: Source, root: Path) -> tuple[Index, Findings]:
    findings = Findings("skip")
    return annotated(source, root, findings), findings


def annotated(source: Source, root: Path, findings: Findings) -> Index:
    tree = open_tree(root)
    index = source.index(tree, findings)
    items = [with_annotation(item, tree, findings) for item in index.items]
    return replace(index, items=items)


def by_name(index: Index) -> dict[str, Item]:
    return {item.name: item for item in index.items}


def check(source: Source, root: Path, kind: str, file: str) -> None:
    """A source reports one bad thing with its file, and stops at it when asked to."""
    _, findings = read(source, root)
    assert [(finding.kind, finding.file) for finding in findings.bad] == [(kind, file)]
    with pytest.raises(LupiError, match=r"set task.on_bad to skip") as raised:
        annotated(source, root, Findings("stop"))
    assert file in str(raised.value)
    assert kind in str(raised.value)


# Tiny ImageNet


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return tiny_imagenet(tmp_path / "tiny")


def test_tiny_imagenet_from_a_folder_and_from_a_zip(tiny: Path, tmp_path: Path) -> None:
    index, findings = read(TinyImagenet(), tiny)
    assert not findings.counts()
    assert index.classes == ["n00000000", "n00000001", "n00000002"]
    assert len(index.items) == 3 * (6 + 2)
    item = by_name(index)["train/n00000001/images/n00000001_4.JPEG"]
    assert item == Item(item.name, "n00000001", "train", ((8, 16, 28, 48),))  # end excluded
    test = by_name(index)["val/images/val_3.JPEG"]
    assert (test.label, test.part) == ("n00000001", "test")
    assert test.boxes == ((8, 16, 28, 48),)  # for an oracle
    assert read(TinyImagenet(), zipped(tiny, tmp_path / "tiny.zip"))[0] == index


def test_tiny_imagenet_image_without_a_box(tiny: Path) -> None:
    path = tiny / "train/n00000000/n00000000_boxes.txt"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    name = "train/n00000000/images/n00000000_0.JPEG"
    check(TinyImagenet(), tiny, "missing annotation", name)
    assert not by_name(read(TinyImagenet(), tiny)[0])[name].has_region  # kept, without x*


def test_tiny_imagenet_box_without_a_image(tiny: Path) -> None:
    name = "train/n00000000/images/n00000000_0.JPEG"
    (tiny / name).unlink()
    check(TinyImagenet(), tiny, "missing image", name)


def test_tiny_imagenet_unreadable_box(tiny: Path) -> None:
    path = tiny / "train/n00000000/n00000000_boxes.txt"
    path.write_text(path.read_text() + "n00000000_0.JPEG\t1\t2\tthree\t4\n")
    where = "train/n00000000/n00000000_boxes.txt, line 7"
    check(TinyImagenet(), tiny, "unreadable box", where)


def test_tiny_imagenet_unknown_class_folder(tiny: Path) -> None:
    save_image(tiny / "train/n99/images/n99_0.JPEG")
    check(TinyImagenet(), tiny, "unknown class folder", "train/n99")


def test_tiny_imagenet_test_images(tiny: Path) -> None:
    save_image(tiny / "val/images/extra.JPEG")
    check(TinyImagenet(), tiny, "missing annotation", "val/images/extra.JPEG")
    path = tiny / "val/val_annotations.txt"
    path.write_text(path.read_text() + "extra.JPEG\tn99\t0\t0\t1\t1\n")
    check(TinyImagenet(), tiny, "unknown class", "val/val_annotations.txt, line 7")


def test_another_folder_is_not_tiny_imagenet(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match=r"not laid out as Tiny ImageNet: it has no wnids.txt"):
        read(TinyImagenet(), tmp_path)


def test_an_empty_class(tiny: Path) -> None:
    for path in (tiny / "train/n00000002").rglob("*.*"):
        path.unlink()
    index, findings = read(TinyImagenet(), tiny)
    classes, items = pick_classes(index, None, findings)
    assert classes == ["n00000000", "n00000001"]
    assert {item.label for item in items} == set(classes)
    assert findings.counts() == {"empty class": 1}
    with pytest.raises(LupiError, match="n00000002: empty class"):
        pick_classes(index, None, Findings("stop"))


def test_classes_by_number_and_by_name(tiny: Path) -> None:
    index, findings = read(TinyImagenet(), tiny)
    assert pick_classes(index, 2, findings)[0] == ["n00000000", "n00000001"]
    chosen = ("n00000002", "n00000000")
    assert pick_classes(index, chosen, findings)[0] == list(chosen)
    with pytest.raises(LupiError, match="got 4, but there are 3 classes"):
        pick_classes(index, 4, findings)
    with pytest.raises(LupiError, match="duplicate class name"):
        pick_classes(index, ("n00000000", "n00000000"), findings)
    with pytest.raises(LupiError, match="'dog' is not a class"):
        pick_classes(index, ("n00000000", "dog"), findings)


# ImageNet


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return imagenet(tmp_path / "imagenet")


def test_imagenet_has_several_boxes_one_or_none(large: Path) -> None:
    index, findings = read(Imagenet(), large)
    assert not findings.counts()
    assert index.classes == ["n00000000", "n00000001"]
    items = by_name(index)
    first = items["train/n00000001/n00000001_0.JPEG"]
    assert first.boxes == ((20, 10, 50, 40), (60, 40, 70, 60))
    assert first.shapes_size == (80, 60)
    assert len(items["train/n00000001/n00000001_1.JPEG"].boxes) == 1
    assert not items["train/n00000001/n00000001_5.JPEG"].has_region


def test_imagenet_as_kaggle_has_it_and_with_annotations_elsewhere(large: Path) -> None:
    expected = [(item.label, item.boxes) for item in read(Imagenet(), large)[0].items]
    (large / "Data/CLS-LOC").mkdir(parents=True)
    (large / "Annotations/CLS-LOC").mkdir(parents=True)
    (large / "train").rename(large / "Data/CLS-LOC/train")
    (large / "Annotation").rename(large / "Annotations/CLS-LOC/train")
    assert [(i.label, i.boxes) for i in read(Imagenet(), large)[0].items] == expected
    (large / "Annotations/CLS-LOC/train").rename(large / "mine")
    with pytest.raises(LupiError, match=r"no boxes .* see task.annotations"):
        read(Imagenet(), large)
    assert [(i.label, i.boxes) for i in read(Imagenet("mine"), large)[0].items] == expected


def test_imagenet_unknown_class_folder(large: Path) -> None:
    (large / "LOC_synset_mapping.txt").write_text("n00000000 tench\nn00000001 goldfish\n")
    save_image(large / "train/n99/x.JPEG")
    check(Imagenet(), large, "unknown class folder", "train/n99")


def test_imagenet_empty_class_folder_is_seen(large: Path) -> None:
    (large / "train/n00000009").mkdir()
    index, findings = read(Imagenet(), large)
    pick_classes(index, None, findings)
    assert [finding.file for finding in findings.bad] == ["n00000009"]


ENTITIES = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "10">]>'
    "<annotation><object><bndbox><xmin>&x;</xmin></bndbox></object></annotation>"
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<annotation><object>", "not well-formed"),
        (ENTITIES, "declares a document type"),
        (annotation((1, 2, 3, 4)).replace("<xmin>1</xmin>", ""), "has no xmin"),
        (annotation((1, 2, 3, 4)).replace("<xmin>1<", "<xmin>nan<"), "must be a number, got 'nan'"),
    ],
)
def test_imagenet_unreadable_annotation(large: Path, text: str, reason: str) -> None:
    name = "Annotation/n00000000/n00000000_0.xml"
    for encoding in ("utf-8", "utf-16"):  # a search for bytes would miss the second
        (large / name).write_bytes(text.encode(encoding))
        check(Imagenet(), large, "unreadable annotation", name)
        assert reason in read(Imagenet(), large)[1].bad[0].detail


def test_imagenet_annotations_of_absent_images_are_counted_by_class(large: Path) -> None:
    (large / "train/n00000000/n00000000_0.JPEG").unlink()
    _, findings = read(Imagenet(), large)
    assert not findings.bad
    assert findings.counts() == {"class with boxes of absent images": 1}


# Anyone's folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return image_folder(tmp_path / "mine")


BOXES = ImageFolder(boxes="boxes.csv")


def append(path: Path, line: str) -> None:
    path.write_text(path.read_text() + line + "\n")


def test_class_folders_and_a_table_of_boxes(folder: Path, tmp_path: Path) -> None:
    append(folder / "boxes.csv", "cats/0.png,0,0,5,5")
    index, findings = read(BOXES, folder)
    assert not findings.counts()
    assert index.classes == ["cats", "dogs"]
    assert by_name(index)["cats/0.png"].boxes == ((10, 20, 26, 52), (0, 0, 5, 5))
    assert by_name(index)["dogs/3.png"].boxes == ((30, 20, 46, 52),)
    assert read(BOXES, zipped(folder, tmp_path / "x.zip"))[0] == index


def test_coco(folder: Path) -> None:
    content = {
        "images": [
            {"id": 7, "file_name": "cats/0.png", "width": 128, "height": 128},
            {"id": 8, "file_name": "dogs/1.png"},
        ],
        "annotations": [
            {"image_id": 7, "bbox": [20, 40, 32, 64], "category_id": 1},
            {"image_id": 8, "bbox": [1, 2, 3, 4]},
            {"image_id": 8, "bbox": [5, 6, 7, 8]},
        ],
    }
    (folder / "coco.json").write_text(json.dumps(content))
    source = ImageFolder(boxes="coco.json")
    index, findings = read(source, folder)
    assert not findings.counts()
    cat, dog = by_name(index)["cats/0.png"], by_name(index)["dogs/1.png"]
    assert (cat.boxes, cat.shapes_size) == (((20, 40, 52, 104),), (128, 128))
    assert (dog.boxes, dog.shapes_size) == (((1, 2, 4, 6), (5, 6, 12, 14)), None)
    assert not by_name(index)["cats/1.png"].has_region
    content["annotations"] = [{"image_id": 9, "bbox": [1, 2, 3, 4]}]
    (folder / "coco.json").write_text(json.dumps(content))
    check(source, folder, "missing image", "coco.json, annotation 0")
    content["annotations"] = [{"image_id": 8, "bbox": [1, 2, 3]}]
    (folder / "coco.json").write_text(json.dumps(content))
    check(source, folder, "unreadable box", "coco.json, annotation 0")
    for wrong in ("[]", "{", '{"images": []}'):
        (folder / "coco.json").write_text(wrong)
        with pytest.raises(LupiError, match=r"coco.json is (not JSON|neither COCO JSON)"):
            read(source, folder)


@pytest.mark.parametrize(
    ("boxes", "first", "second"),
    [
        ("Annotations", "Annotations/cats/0.xml", "Annotations/dogs/1.xml"),
        (".", "cats/0.xml", "dogs/1.xml"),
    ],
)
def test_voc_files_beside_images_or_in_a_folder(
    folder: Path, tmp_path: Path, boxes: str, first: str, second: str
) -> None:
    for name, text in ((first, annotation((1, 2, 3, 4), (5, 6, 9, 9))), (second, annotation())):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "boxes.csv").unlink()
    source = ImageFolder(boxes=boxes)
    index, findings = read(source, folder)
    assert not findings.counts()
    assert index.classes == ["cats", "dogs"]
    assert by_name(index)["cats/0.png"].boxes == ((1, 2, 3, 4), (5, 6, 9, 9))
    assert by_name(index)["cats/0.png"].shapes_size is not None
    assert by_name(index)["dogs/1.png"].shapes == ()  # annotated, with nothing in it
    assert read(source, zipped(folder, tmp_path / "x.zip"))[0] == index
    (folder / second).write_text("<annotation>")
    check(source, folder, "unreadable annotation", second)
    (folder / second).write_text(annotation())
    strange = str(Path(first).with_name("strange.xml"))
    (folder / strange).write_text(annotation())
    check(source, folder, "missing image", strange)


def test_voc_files_that_may_mean_two_images(folder: Path) -> None:
    (folder / "xml").mkdir()
    with pytest.raises(LupiError, match=r"task.boxes: xml below .* has no annotations"):
        read(ImageFolder(boxes="xml"), folder)
    (folder / "xml/0.xml").write_text(annotation((1, 2, 3, 4)))
    check(ImageFolder(boxes="xml"), folder, "ambiguous image", "xml/0.xml")


def test_a_folder_around_masks_is_no_class(folder: Path) -> None:
    save_image(folder / "annotations/trimaps/cats/0.png")
    index, findings = read(ImageFolder(masks="annotations/trimaps"), folder)
    assert index.classes == ["cats", "dogs"]
    assert not any(item.name.startswith("annotations") for item in index.items)
    assert not findings.bad
    index, findings = read(ImageFolder(boxes="boxes.csv"), folder)
    assert index.classes == ["cats", "dogs"]  # its file has the name of an image
    assert by_name(index)["cats/0.png"].masks == ()  # boxes were given
    save_image(folder / "annotations/a.png")
    save_image(folder / "annotations/b.png")
    index, _ = read(ImageFolder(boxes="boxes.csv"), folder)
    assert index.classes == ["annotations", "cats", "dogs"]  # most of its files have not


def test_images_and_masks_side_by_side(tmp_path: Path) -> None:
    for name in ("cats/1", "cats/2", "dogs/1"):
        save_image(tmp_path / f"images/{name}.jpg")
        save_image(tmp_path / f"masks/{name}.png")
    index, findings = read(ImageFolder(masks="masks"), tmp_path)
    assert index.classes == ["cats", "dogs"]
    assert by_name(index)["images/cats/2.jpg"].masks == ("masks/cats/2.png",)
    assert not findings.bad


def test_masks(folder: Path) -> None:
    for name in ("cats/0.png", "dogs/1.png", "dogs/none.png"):
        path = folder / "masks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (64, 64), 255).save(path)
    source = ImageFolder(masks="masks")
    check(source, folder, "mask without an image", "masks/dogs/none.png")
    index, _ = read(source, folder)
    assert index.classes == ["cats", "dogs"]  # masks is not one
    assert by_name(index)["cats/0.png"].masks == ("masks/cats/0.png",)
    assert by_name(index)["cats/1.png"].masks == ()
    with pytest.raises(LupiError, match="has no folder regions"):
        read(ImageFolder(masks="regions"), folder)


def test_labels_in_a_table(folder: Path) -> None:
    source = ImageFolder(labels="labels.csv", boxes="boxes.csv")
    names = [f"{kind}/{i}.png" for kind in ("cats", "dogs") for i in range(6)]
    lines = [f"{name},{name[0]},{'test' if '/0' in name else ''}" for name in names]
    (folder / "labels.csv").write_text("\n".join(["file,label,part", *lines]) + "\n")
    index, findings = read(source, folder)
    assert not findings.counts()
    assert index.classes == ["c", "d"]
    assert [item.name for item in index.items if item.part == "test"] == [
        "cats/0.png",
        "dogs/0.png",
    ]
    append(folder / "labels.csv", "cats/1.png,d,")
    check(source, folder, "contradicting label", "labels.csv, row 13")
    (folder / "labels.csv").write_text("\n".join(["file,label,part", *lines[1:]]) + "\n")
    _, findings = read(source, folder)
    assert [f.kind for f in findings.bad] == ["missing annotation"]
    assert findings.bad[0].file == "cats/0.png"
    (folder / "labels.csv").write_text("file,kind\n")
    with pytest.raises(LupiError, match=r"labels.csv: no column is called `label`"):
        read(source, folder)


def test_parts_in_folders(tmp_path: Path) -> None:
    image_folder(tmp_path / "train")
    (tmp_path / "train/boxes.csv").rename(tmp_path / "boxes.csv")
    save_image(tmp_path / "test/cats/t.png")
    (tmp_path / "boxes.csv").write_text("file,x0,y0,x1,y1\nt.png,1,2,3,4\n")  # unique last part
    index, findings = read(BOXES, tmp_path)
    assert not findings.counts()
    assert index.classes == ["cats", "dogs"]
    assert by_name(index)["test/cats/t.png"].part == "test"
    assert by_name(index)["test/cats/t.png"].boxes == ((1, 2, 3, 4),)
    save_image(tmp_path / "test/cows/t2.png")
    check(BOXES, tmp_path, "unknown class folder", "test/cows/t2.png")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("cats/nobody.png,1,2,3,4", "missing image"),
        ("0.png,1,2,3,4", "ambiguous image"),
        ("cats/0.png,1,2,x,4", "unreadable box"),
        ("cats/0.png,1,2,inf,4", "unreadable box"),
        ("cats/0.png,1,2", "unreadable box"),
    ],
)
def test_wrong_lines_of_a_table_of_boxes(folder: Path, line: str, kind: str) -> None:
    append(folder / "boxes.csv", line)
    check(BOXES, folder, kind, "boxes.csv, row 13")


def test_images_outside_the_class_folders(folder: Path) -> None:
    save_image(folder / "stray.png")
    index, findings = read(BOXES, folder)
    assert "stray.png" not in by_name(index)
    assert [(n.kind, n.file) for n in findings.notes] == [
        ("image outside the class folders", "stray.png")
    ]
    assert not findings.bad


def test_a_file_that_is_no_image(folder: Path) -> None:
    (folder / "cats/notes.txt").write_text("")
    (folder / "cats/scan.dcm").write_bytes(b"")
    index, _ = read(BOXES, folder)
    told = [fact.text for fact in index.layout if fact.about == "left out"]
    assert any("cats/notes.txt" in text for text in told)
    assert any("cats/scan.dcm" in text and "convert them to PNG" in text for text in told)


def test_a_table_that_is_not_there_or_not_text(folder: Path) -> None:
    with pytest.raises(LupiError, match=r"none.csv can't be read"):
        read(ImageFolder(boxes="none.csv"), folder)
    (folder / "boxes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LupiError, match=r"boxes.csv can't be read"):
        read(BOXES, folder)
