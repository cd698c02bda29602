import os
import zipfile
from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi.loaders.images import trees
from lupi.loaders.images.trees import open_tree, subfolders
from made_images import zipped


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "top"
    (root / "a/b").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "list.txt").write_text("list")
    (root / "a/b/one.txt").write_text("one")
    (root / "a/.hidden").write_text("hidden")
    (root / ".cache").mkdir()
    (root / ".cache/x").write_text("x")
    return root


def test_a_zip_of_a_folder_looks_like_the_folder(folder: Path, tmp_path: Path) -> None:
    for root in (folder, zipped(folder, tmp_path / "x.zip")):
        tree = open_tree(root)
        assert tree.names == ["a/b/one.txt", "list.txt"]
        assert tree.folders == ["a", "a/b", "empty"]
        assert subfolders(tree, "") == ["a", "empty"]
        assert subfolders(tree, "a") == ["b"]
        assert tree.read("a/b/one.txt") == b"one"
        with pytest.raises(FileNotFoundError):
            tree.read("a/two.txt")


def test_a_zip_without_a_folder_around_everything(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr("a/one.txt", "one")
        file.writestr("list.txt", "list")
    assert open_tree(tmp_path / "x.zip").names == ["a/one.txt", "list.txt"]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "..\\x", "C:/x", "a/.."])
def test_members_that_point_outside_are_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr("good.txt", "")
        file.writestr(name, "")
    with pytest.raises(LupiError, match="points outside the zip"):
        _ = open_tree(tmp_path / "x.zip").names


def test_the_fingerprint_follows_names_sizes_and_times(folder: Path) -> None:
    seen = [open_tree(folder).fingerprint]
    assert open_tree(folder).fingerprint == seen[0]
    (folder / "new.txt").write_text("")
    seen.append(open_tree(folder).fingerprint)
    (folder / "new.txt").rename(folder / "newer.txt")
    seen.append(open_tree(folder).fingerprint)
    (folder / "newer.txt").write_text("longer")
    seen.append(open_tree(folder).fingerprint)
    os.utime(folder / "newer.txt", (1, 1))
    seen.append(open_tree(folder).fingerprint)
    (folder / "empty").rmdir()
    seen.append(open_tree(folder).fingerprint)
    assert len(set(seen)) == 6


def test_a_link_in_a_circle_ends(folder: Path) -> None:
    (folder / "a/loop").symlink_to(folder / "a")
    (folder / "linked").symlink_to(folder / "a/b")
    names = open_tree(folder).names
    assert "linked/one.txt" in names
    assert len(names) < 10


def test_files_that_are_too_large_or_damaged_are_not_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zipped(folder, tmp_path / "x.zip")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"one.txtone", b"one.txt0ne"))  # the stored content
    with pytest.raises(OSError, match="CRC"):
        open_tree(path).read("a/b/one.txt")
    monkeypatch.setattr(trees, "MAX_FILE_BYTES", 2)
    for root in (folder, path):
        with pytest.raises(OSError, match=r"3 bytes; at most 2"):
            open_tree(root).read("a/b/one.txt")


def test_no_such_root(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match=r"task.root: .* does not exist"):
        open_tree(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(LupiError, match="is neither"):
        open_tree(tmp_path / "file")
