"""Shards: the same rows and pixels as through the cache, whole or refused, killed or not."""

import functools
import http.server
import json
import tarfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lupi.core import Batch, Control, Split, Task
from lupi.errors import LupiError
from lupi.loaders.images.shards import stream
from lupi.permission import allow
from lupi.tasks.images.image import ImageRun
from lupi.tasks.images.image_files import ImageFilesSettings, open_images, shard_images
from lupi.tasks.images.image_folder import ImageFolderSettings
from lupi_paper.images.imagenet import ImagenetSettings, ImagenetTask
from made_images import image_folder, imagenet

N_IMAGES = 24


def settings_of(root: Path | str, **changes: Any) -> ImagenetSettings:
    small = {"image_size": 12, "stored_size": 16, "n_val": 2, "n_test": 2, "test_crops": "ten"}
    return ImagenetSettings(**{"root": root, **small, **changes})


def shard(settings: ImageFilesSettings, out: Path, size: int = 5) -> dict[str, Any]:
    return shard_images(settings, out, size, lambda done, total: None)


def task_of(settings: ImagenetSettings) -> Task:
    return ImagenetTask(settings, ImagenetTask.Network(width=2))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A source, and its shards; one image is bad."""
    folder = tmp_path_factory.mktemp("made")
    source = imagenet(folder / "source", n_images=N_IMAGES // 2)
    (source / "train/n00000000/n00000000_3.JPEG").write_bytes(b"no image")
    shard(settings_of(source, on_bad="skip"), folder / "shards")
    return source, folder / "shards"


@pytest.fixture
def both(made: tuple[Path, Path], tmp_path: Path) -> tuple[Task, Task]:
    """The task through the cache, and from shards."""
    cached = settings_of(made[0], on_bad="skip", cache=tmp_path)
    return task_of(cached), task_of(settings_of(made[1], on_bad="skip", decoders=2))


def whole(split: Split, shuffle: torch.Generator | None = None) -> Batch:
    columns: Any = zip(*(batch[:4] for batch in split.batches(4, shuffle)), strict=True)
    joined: Any = (None if column[0] is None else torch.cat(column) for column in columns)
    return Batch(*joined)


def rows_of(batch: Batch) -> list[bytes]:
    """Everything of each row, sorted: two equal lists hold the same rows."""
    tensors = [tensor for tensor in batch if isinstance(tensor, Tensor)]
    return sorted(b"".join(t.numpy().tobytes() for t in row) for row in zip(*tensors, strict=True))


@pytest.mark.parametrize("control", ["real", "shuffled", "constant", "random"])
def test_the_rows_of_the_cache_in_another_order(both: tuple[Task, Task], control: Control) -> None:
    size, seed, frac = 11, 3, 0.6
    cached, streamed = (task.splits(size, seed, control, frac, reveal=True) for task in both)
    for part in ("train", "val", "test"):
        expected, got = whole(getattr(cached, part)), whole(getattr(streamed, part))
        assert got.has_xstar is not None
        assert rows_of(got) == rows_of(expected)
        assert len(getattr(streamed, part)) == len(got.y)
    expected, got = (whole(splits.also["test_ten_crops"]) for splits in (cached, streamed))
    assert torch.equal(got.x, expected.x)


def statistics(task: Task) -> object:
    assert isinstance(task.run, ImageRun)
    return task.run.statistics


def test_everything_but_the_order_is_the_same(both: tuple[Task, Task]) -> None:
    cached, streamed = both
    streamed, cached = streamed.for_run(7, 0), cached.for_run(7, 0)
    known, other = statistics(cached), statistics(cached.for_run(13, 0))
    assert statistics(streamed) == known != other
    assert streamed.outcome.classes == cached.outcome.classes
    assert (
        streamed.finding_counts
        == cached.finding_counts
        == {"training image without x*": 2, "unreadable image": 1}
    )
    assert streamed.example().shape == cached.example().shape
    splits = streamed.splits(11, 0)
    assert whole(splits.val).xstar is None
    assert whole(splits.test).xstar is None
    assert streamed.outcome.trivial(splits.train, splits.test) == cached.outcome.trivial(
        splits.train, splits.test
    )


def test_an_order_is_a_function_of_the_generator(
    both: tuple[Task, Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BUFFER", 4)  # smaller than the rows, so that it overflows
    train = both[1].splits(13, 0).train
    first, again, other = (whole(train, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(first.x, again.x)
    assert not torch.equal(first.y, other.y)
    labels = whole(train).y
    assert not torch.equal(labels, first.y)
    assert labels.bincount().tolist() == first.y.bincount().tolist()


def test_no_more_than_the_buffer_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BUFFER", 4)
    read: list[int] = []

    def samples() -> Generator[tuple[int, bytes], None, None]:
        for i in range(50):
            read.append(i)
            yield i, b""

    order = []
    for row, _ in stream._shuffled(samples(), np.random.default_rng(0)):
        order.append(row)
        assert len(read) - len(order) <= 4
    assert sorted(order) == read != order


def test_a_pass_that_is_left_ends_its_threads(both: tuple[Task, Task]) -> None:
    before = threading.active_count()
    batches = both[1].splits(13, 0).train.batches(2, torch.Generator().manual_seed(0))
    next(batches)
    assert threading.active_count() > before
    del batches
    assert threading.active_count() == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it closes nothing
def test_others_can_read_them(made: tuple[Path, Path]) -> None:
    import webdataset

    urls = sorted(str(path) for path in made[1].glob("train-*.tar"))
    samples = list(webdataset.WebDataset(urls, shardshuffle=False))
    assert len(samples) == N_IMAGES - 8 - 1
    for sample in samples:
        told = json.loads(sample["json"])
        original = made[0] / told["name"]
        assert sample["jpeg"] == original.read_bytes()
        assert told["class"] == original.parent.name


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def address(made: tuple[Path, Path]) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(made[1]))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_from_a_url(both: tuple[Task, Task], address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = whole(both[1].splits(13, 0).train, torch.Generator().manual_seed(0))
    for root in (address, f"{address}/{{}}?signed=1"):
        with pytest.raises(LupiError, match=r"would be fetched.*--allow"):
            task_of(settings_of(root, on_bad="skip"))
        allow(root)
        train = task_of(settings_of(root, on_bad="skip")).splits(13, 0).train
        assert torch.equal(whole(train, torch.Generator().manual_seed(0)).x, expected.x)
    allow(f"{address}/nowhere")
    with pytest.raises(LupiError, match=r"nowhere/shards.json can't be read"):
        task_of(settings_of(f"{address}/nowhere"))


def test_a_command_runs_only_if_the_user_allows_it(made: tuple[Path, Path], tmp_path: Path) -> None:
    root = f"pipe:touch {tmp_path / 'ran'}; cat {made[1]}/{{}}"
    with pytest.raises(LupiError, match=r"is a shell command.*--allow"):
        task_of(settings_of(root, on_bad="skip"))
    assert not (tmp_path / "ran").exists()
    allow(root)
    assert len(whole(task_of(settings_of(root, on_bad="skip")).splits(13, 0).train).y) == 13


def test_a_url_of_another_kind() -> None:
    allow("gopher://x")
    with pytest.raises(LupiError, match=r"gopher://x can't be opened; webdataset supports .*https"):
        task_of(settings_of("gopher://x"))


class KilledError(BaseException):
    pass


def test_a_killed_sharding_goes_on(made: tuple[Path, Path], tmp_path: Path) -> None:
    settings, out = settings_of(made[0], on_bad="skip"), tmp_path / "out"
    decoded: list[int] = []

    def kill(done: int, total: int) -> None:
        assert total == N_IMAGES
        decoded.append(done)
        if len(decoded) in (7, 14):
            raise KilledError

    for n in (7, 14):
        with pytest.raises(KilledError):
            shard_images(settings, out, 5, kill)
        assert len(decoded) == n
        assert not (out / "shards.json").exists()
    shard_images(settings, out, 5, kill)
    assert len(decoded) < 2 * N_IMAGES  # what was whole is not done again
    names = sorted(path.name for path in made[1].iterdir())
    assert sorted(path.name for path in out.iterdir()) == names
    for name in names:
        assert (out / name).read_bytes() == (made[1] / name).read_bytes()
    before = len(decoded)
    shard_images(settings, out, 5, kill)
    assert len(decoded) == before  # all is there


def test_a_folder_with_other_shards_is_refused(made: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="contains tar files of other images or settings"):
        shard(settings_of(made[0], on_bad="skip"), made[1], size=6)
    with pytest.raises(LupiError, match="holds shards; give the files"):
        shard(settings_of(made[1], on_bad="skip"), tmp_path)
    (tmp_path / "mine.tar").write_bytes(b"")
    for content, message in (
        ("{", "can't be read as a record"),
        ("{}", "contains tar files of other"),
    ):
        (tmp_path / "shards.json").write_text(content)
        with pytest.raises(LupiError, match=message):
            shard(settings_of(made[0]), tmp_path)
    (tmp_path / "shards.json").unlink()
    with pytest.raises(LupiError, match="contains tar files of other images"):
        shard(settings_of(made[0]), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_val": 3}, "task.n_val: got 3, but the shards in .* were written with 2"),
        ({"classes": 2}, "task.classes: got 2"),
        ({"annotated_only": True}, "task.annotated_only"),
        ({"on_bad": "stop"}, "n00000000_3.JPEG: unreadable image"),
    ],
)
def test_shards_of_other_images_are_refused(
    made: tuple[Path, Path], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(LupiError, match=message):
        task_of(settings_of(made[1], **{"on_bad": "skip", **changes}))


def test_another_stored_size_needs_no_other_shards(made: tuple[Path, Path], tmp_path: Path) -> None:
    large = {"on_bad": "skip", "image_size": 20, "stored_size": 24}
    cached, streamed = (
        task_of(settings_of(root, cache=tmp_path, **large)).splits(13, 0) for root in made
    )
    assert rows_of(whole(streamed.train)) == rows_of(whole(cached.train))


def copied(made: tuple[Path, Path], out: Path) -> Path:
    out.mkdir()
    for path in made[1].iterdir():
        (out / path.name).write_bytes(path.read_bytes())
    return out


def read_all(root: Path) -> None:
    whole(task_of(settings_of(root, on_bad="skip")).splits(13, 0).train)


def test_damage_is_found(made: tuple[Path, Path], tmp_path: Path) -> None:
    root = copied(made, tmp_path / "copy")
    path = root / "train-000001.tar"
    data = path.read_bytes()
    with tarfile.open(path) as tar:
        start = tar.getmembers()[2].offset_data
    damaged = [
        data[: start + 900] + b"!" + data[start + 901 :],
        data[: start + 700],  # cut off
        b"\0" * 10240,
        (root / "train-000000.tar").read_bytes(),
    ]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(LupiError, match=r"train-000001.tar is damaged, incomplete or does"):
            read_all(root)
    path.unlink()
    with pytest.raises(LupiError, match=r"train-000001.tar can't be read"):
        read_all(root)


def test_a_shard_whose_only_image_is_bad_is_empty(made: tuple[Path, Path], tmp_path: Path) -> None:
    shard(settings_of(made[0], on_bad="skip"), tmp_path / "out", size=1)
    assert len(list((tmp_path / "out").glob("train-*.tar"))) == N_IMAGES - 8
    roots = (tmp_path / "out", made[1])
    one, several = (task_of(settings_of(root, on_bad="skip")) for root in roots)
    expected, got = (rows_of(whole(task.splits(13, 0).train)) for task in (several, one))
    assert got == expected


def test_an_index_that_is_not_ours(made: tuple[Path, Path], tmp_path: Path) -> None:
    root = copied(made, tmp_path / "copy")
    about = json.loads((root / "shards.json").read_text())
    (root / "rows.safetensors").write_bytes(b"other")
    with pytest.raises(LupiError, match=r"rows.safetensors does not belong to shards.json"):
        read_all(root)
    for content in ("{", "[]", "{}", json.dumps({**about, "format": 99})):
        (root / "shards.json").write_text(content)
        with pytest.raises(LupiError, match=r"shards.json (was not written|has format 99)"):
            read_all(root)


def test_masks_stay_in_files(tmp_path: Path) -> None:
    root = image_folder(tmp_path / "mine")
    (root / "masks/cats").mkdir(parents=True)
    (root / "masks/cats/0.png").write_bytes((root / "cats/0.png").read_bytes())
    settings = ImageFolderSettings(root=str(root), masks="masks", n_val=1, n_test=1)
    with pytest.raises(LupiError, match="shards support boxes"):
        shard(settings, tmp_path / "out")


def test_an_empty_region_is_none_that_is_missing(tmp_path: Path) -> None:
    root = image_folder(tmp_path / "mine")
    boxes = ["0 0.5 0.5 0.2 0.2", "", None]  # a box, nothing there, not annotated
    for kind in ("cats", "dogs"):
        (root / "labels" / kind).mkdir(parents=True)
        for path in sorted((root / kind).glob("*.png")):
            if (box := boxes[int(path.stem) % 3]) is not None:
                (root / f"labels/{kind}/{path.stem}.txt").write_text(box)
    cache = tmp_path / "cache"
    settings = ImageFolderSettings(
        root=str(root), boxes="labels", n_val=1, n_test=1, image_size=16, cache=cache
    )
    shard(settings, tmp_path / "out")
    streamed = open_images(settings.model_copy(update={"root": str(tmp_path / "out")}))
    for part, images in open_images(settings).parts.items():
        rows = np.arange(len(images.y))
        masks, has = images.regions(rows, "real", 0)
        others, has_others = streamed.parts[part].regions(rows, "real", 0)
        assert np.array_equal(has, has_others)
        assert torch.equal(masks.masks(rows), others.masks(rows))
        if part == "train":
            filled = masks.masks(rows).flatten(1).any(1).numpy()
            assert (has & filled).any()
            assert (has & ~filled).any()
            assert (~has).any()
