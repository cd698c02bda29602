"""Files below a root: a folder, or a zip file read without unpacking it.

Names are relative to the root, with forward slashes, and the same for a folder and for the zip
of that folder.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

from lupi.errors import LupiError
from lupi.limits import read_regular
from lupi.unpack import read_member

MAX_DEPTH = 100
"""Maximum number of folders around a member of a zip."""
MAX_FILE_BYTES = 512 * 2**20
"""Maximum size of a file, which protects against zip bombs."""


class Tree(Protocol):
    """Some files, by name."""

    @property
    def root(self) -> Path:
        """The folder or the zip."""
        ...

    @property
    def fingerprint(self) -> str:
        """A text that changes when a file is added, removed, renamed or written."""
        ...

    @property
    def names(self) -> list[str]:
        """Of the files, sorted; hidden ones (.*) are left out."""
        ...

    @property
    def folders(self) -> list[str]:
        """Sorted, also those without files."""
        ...

    def read(self, name: str) -> bytes:
        """Return the content of a file; an OSError if that can't be had."""
        ...


def open_tree(root: Path) -> Tree:
    """Open a folder or a zip file."""
    if root.is_dir():
        try:
            return FolderTree(root)
        except OSError as error:
            raise LupiError(f"task.root: can't list {root}: {error}") from None
        except RecursionError:
            raise LupiError(f"task.root: folders in {root} are nested too deeply") from None
    if root.is_file() and zipfile.is_zipfile(root):
        return ZipTree(root)
    found = "is neither" if root.exists() else "does not exist"
    raise LupiError(f"task.root: expected a folder or a zip file; {root} {found}")


class FolderTree:
    """The files of a folder. Links are followed, but never in a circle."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.names: list[str] = []
        self.folders: list[str] = []
        self.fingerprint = _digest(self._walk(root, "", frozenset()))
        self.names.sort()
        self.folders.sort()

    def _walk(
        self, path: str | Path, prefix: str, above: frozenset[tuple[int, int]]
    ) -> Iterator[str]:
        """List a folder, and yield a line for each file and folder, in order of their names."""
        with os.scandir(path) as entries:
            visible = [entry for entry in entries if not entry.name.startswith(".")]
        for entry in sorted(visible, key=lambda entry: entry.name):
            name = prefix + entry.name
            if entry.is_dir():
                status = entry.stat()
                identity = (status.st_dev, status.st_ino)
                if identity not in above:
                    self.folders.append(name)
                    yield name
                    yield from self._walk(entry.path, f"{name}/", above | {identity})
            elif entry.is_file():
                status = entry.stat()
                self.names.append(name)
                yield f"{name}\0{status.st_size}\0{status.st_mtime_ns}"
            elif entry.is_symlink():  # a broken link; reading it reports the error
                self.names.append(name)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return read_regular(self.root / name, MAX_FILE_BYTES)


class ZipTree:
    """The files in a zip; a single folder around everything is not part of their names.

    Its directory is read when it is needed: to know whether the zip changed, it is not.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        status = root.stat()
        self.fingerprint = _digest([f"{root.name}\0{status.st_size}\0{status.st_mtime_ns}"])

    @cached_property
    def _file(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.root)
        except Exception as error:  # a hostile directory may raise anything
            raise LupiError(f"task.root: {self.root} can't be read as a zip: {error}") from None

    @cached_property
    def _members(self) -> dict[str, zipfile.ZipInfo]:
        members = self._file.infolist()
        for info in members:
            _refuse_escape(self.root, info.filename)
        tops = {info.filename.partition("/")[0] for info in members}
        in_folder = len(tops) == 1 and all("/" in info.filename for info in members)
        prefix = f"{tops.pop()}/" if in_folder else ""
        named = ((info.filename.removeprefix(prefix), info) for info in members)
        return {name: info for name, info in named if name and "/." not in name and name[0] != "."}

    @cached_property
    def names(self) -> list[str]:
        """Of the files, sorted."""
        return sorted(name for name in self._members if not name.endswith("/"))

    @cached_property
    def folders(self) -> list[str]:
        """Sorted; zips need not list them, so the files' own are added."""
        folders: set[str] = set()
        for name in self._members:
            folder = name.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        return sorted(folders)

    def read(self, name: str) -> bytes:
        """Return the content of a member."""
        if name not in self._members:
            raise FileNotFoundError(f"{name} is not in {self.root}")
        _check_size(name, self._members[name].file_size)
        return read_member(self._file, self._members[name])


class MountedTree:
    """A tree with files and folders from elsewhere, below the path by which they were given."""

    def __init__(self, base: Tree, outside: Sequence[str]) -> None:
        self.root = base.root
        self._base = base
        self._trees: dict[str, Tree] = {}
        self._files: dict[str, Path] = {}
        lines = [base.fingerprint]
        for given in outside:
            path = Path(given)
            if path.is_dir() or zipfile.is_zipfile(path):
                self._trees[given] = open_tree(path)
                lines.append(self._trees[given].fingerprint)
            else:
                self._files[given] = path
                status = path.stat()
                lines.append(f"{given}\0{status.st_size}\0{status.st_mtime_ns}")
        self.fingerprint = _digest(lines)
        mounted = [f"{at}/{name}" for at, tree in self._trees.items() for name in tree.names]
        self.names = sorted([*base.names, *mounted, *self._files])
        inner = [f"{at}/{name}" for at, tree in self._trees.items() for name in tree.folders]
        self.folders = sorted([*base.folders, *self._trees, *inner])

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        if name in self._files:
            _check_size(name, self._files[name].stat().st_size)
            return self._files[name].read_bytes()
        for at, tree in self._trees.items():
            if name.startswith(f"{at}/"):
                return tree.read(name.removeprefix(f"{at}/"))
        return self._base.read(name)


def with_outside(tree: Tree, given: Iterable[str | None]) -> Tree:
    """Return a tree with those of the given files and folders that are not below its root."""
    known = {*tree.names, *tree.folders, "."}
    outside = [path for path in given if path and path not in known and Path(path).exists()]
    return MountedTree(tree, outside) if outside else tree


def _refuse_escape(root: Path, name: str) -> None:
    parts = name.replace("\\", "/").split("/")
    if len(parts) > MAX_DEPTH:
        raise LupiError(f"{root} has a member that is {len(parts):,} folders deep: {name[:80]}…")
    if parts[0] == "" or ".." in parts or ":" in parts[0]:  # absolute, upwards, or a drive
        raise LupiError(
            f"{root} has a member named {name!r}, which points outside the zip; "
            "do not use this file"
        )


def _check_size(name: str, n_bytes: int) -> None:
    if n_bytes > MAX_FILE_BYTES:
        raise OSError(f"{name} has {n_bytes:,} bytes; at most {MAX_FILE_BYTES:,} are read")


def read_text(tree: Tree, name: str) -> str:
    """Return the content of a list that the task can't do without."""
    try:
        return tree.read(name).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LupiError(f"{name} can't be read from {tree.root}: {error}") from None


def subfolders(tree: Tree, folder: str) -> list[str]:
    """Return the names of the folders right inside a folder ("" is the root)."""
    prefix = f"{folder}/" if folder else ""
    inside = (name.removeprefix(prefix) for name in tree.folders if name.startswith(prefix))
    return [name for name in inside if "/" not in name]


def _digest(lines: Iterable[str]) -> str:
    hashed = hashlib.sha256()
    for line in lines:
        hashed.update(f"{line}\n".encode(errors="surrogateescape"))
    return hashed.hexdigest()
