"""Find images by the names that annotation files use for them."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

from lupi.loaders.findings import Findings

IMAGE_FOLDERS = re.compile(r"(images?|imgs?|jpegimages)", re.I)
"""Folders that hold images and say nothing about them."""
MASK_FOLDERS = re.compile(
    r"(masks?|annotations?|annots?|trimaps?|segmentations?|segs?|ground[ _-]?truths?|gts?)", re.I
)
"""Folders that hold masks, if their files have the names of images."""
ANNOTATION_FOLDERS = re.compile(
    rf"{IMAGE_FOLDERS.pattern}|{MASK_FOLDERS.pattern}|labels?|xmls?|box(es)?", re.I
)
"""Folders that hold annotations."""


def logical_path(name: str, drop: re.Pattern[str] = IMAGE_FOLDERS) -> str:
    """Return a path without its suffix and without folders that say nothing, such as images."""
    path = PurePosixPath(name)
    folders = [part for part in path.parts[:-1] if not drop.fullmatch(part)]
    return "/".join([*folders, path.stem])


class ImageNames:
    """Finds images by whole names, ends of names, and names without suffix."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        self._by_end: dict[str, list[str]] = defaultdict(list)
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        self._folders: set[str] = set()
        for name in sorted(self._names):
            parts = name.split("/")
            for start in range(len(parts)):
                self._by_end["/".join(parts[start:])].append(name)
            stem = logical_path(name).split("/")
            self._folders.update(stem[:-1])
            for start in range(len(stem)):  # cats/1 and 1 of images/cats/1.jpg
                self._by_stem["/".join(stem[start:])].append(name)

    def find(self, given: str, where: str, findings: Findings, folder: str = "") -> str | None:
        """Return the image of that name; report if there is none, or more than one.

        Args:
            given: a path below the root or below `folder`, or an end of one that is unique.
            where: position in the annotations, for messages.
            findings: collects problems.
            folder: folder of the annotations, below the root.
        """
        plain = given.replace("\\", "/").removeprefix("./")
        if folder and f"{folder}/{plain}" in self._names:
            return f"{folder}/{plain}"
        if plain in self._names:
            return plain
        parts = plain.split("/")
        for start in range(len(parts)):
            matches = self._by_end.get("/".join(parts[start:]), [])
            if folder and len(matches) > 1:
                matches = [m for m in matches if m.startswith(f"{folder}/")] or matches
            if len(matches) == 1:
                return matches[0]
            if matches:
                detail = f"{len(matches)} images are named {given}: use their path below the root"
                findings.add(where, "ambiguous image", detail)
                return None
        findings.add(where, "missing image", f"{given!r} does not exist below the root")
        return None

    def of_stem(self, given: str) -> list[str]:
        """Return the images for a path without suffix, by the longest end that matches.

        A folder that holds images is never left out: dogs/5 is not cats/5.
        """
        parts = given.split("/")
        for start in range(len(parts)):
            if matches := self._by_stem.get("/".join(parts[start:]), []):
                return matches
            if parts[start] in self._folders:
                return []
        return []

    def find_stem(self, given: str, where: str, findings: Findings) -> str | None:
        """Return the image for a path without suffix; report if there is none, or more."""
        matches = self.of_stem(given)
        last = given.rpartition("/")[2]
        if len(matches) == 1:
            return matches[0]
        if matches:
            findings.add(where, "ambiguous image", f"{len(matches)} images are named {last}")
        else:
            findings.add(where, "missing image", f"no image below the root is named {last}.*")
        return None
