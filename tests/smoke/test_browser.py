"""The page in a real browser: draws, sorts, fits a phone, and asks the network for nothing."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lupi.interface.result import Comparison
from made_records import make_records

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=20000",
    "--enable-logging=stderr",
]

WIDTHS = (1200, 360)

LISTEN = "<script>const errors = []; onerror = text => { errors.push(text); };</script>"
USE = """<script>
// Does what a reader does, and tells the page around what there was to see.
const all = selector => [...document.querySelectorAll(selector)];
const rows = () => [...document.querySelector("tbody").rows].slice(1);
const names = () => rows().map(row => row.cells[0].textContent.replace("\u200b", ""));
const drawn = node => node.querySelectorAll(".scatterlayer .trace path").length;
const head = all("[data-sort]")[1], sorted = [];  // the mean
const note = () => sorted.push([head.parentElement.getAttribute("aria-sort"), names()]);
function use() {
  note();
  for (let i = 0; i < 3; i++) { head.click(); note(); }
  head.focus();
  const focused = document.activeElement === head;
  const legend = document.querySelector("[data-arm=het-dropout]");
  const shown = () => document.querySelectorAll("#learning .scatterlayer .trace").length;
  const before = shown();
  const forest = drawn(document.querySelector("#forest"));  // het-dropout's alone, soon hidden
  legend.click();
  const end = () => document.querySelector(".end").textContent;
  const first = end(), seed = document.querySelector("[name=seed]");
  seed.value = "5";
  seed.dispatchEvent(new Event("change", {bubbles: true}));
  setTimeout(() => parent.postMessage(JSON.stringify({
    errors, sorted, focused, forest,
    plots: all(".plot:not([hidden])").map(node => [node.id, drawn(node)]),
    hidden: before - shown(), ends: [first, end()],
    frame: innerWidth, width: document.documentElement.scrollWidth,
  }), "*"), 500);
}
const wait = setInterval(() => {  // until the page has unpacked what it draws
  if (document.querySelector(".end").textContent) { clearInterval(wait); setTimeout(use, 1000); }
}, 100);
</script>"""


CONTROL = "https://control.example/asked-by-the-frame.png"
"""The frame around the pages asks for this, so that an empty list of requests means something."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """Open the page in frames of two widths, use it, and return what was seen in each."""
    folder = tmp_path_factory.mktemp("browser")
    page = Comparison(make_records(folder / "demo")).report()
    text = page.read_text(encoding="utf-8")
    text = text.replace("<body>", f"<body>{LISTEN}", 1).replace("</body>", f"{USE}</body>")
    page.write_text(text, encoding="utf-8")
    frames = "".join(
        f'<iframe src="demo/report.html" style="width: {width}px; height: 900px"></iframe>'
        for width in WIDTHS
    )
    (folder / "frame.html").write_text(
        f"<body>{frames}<img src={CONTROL}><script>const seen = [];\n"
        "onmessage = event => { seen.push(JSON.parse(event.data)); "
        "document.body.dataset.seen = JSON.stringify(seen); }</script></body>"
    )
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}"]
    command += [f"--log-net-log={folder / 'net.json'}", "--dump-dom"]
    command += [(folder / "frame.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert found, done.stderr
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    asked = requests(folder / "net.json")
    reports = json.loads(html.unescape(found[1]))
    return {each["frame"]: {**each, "console": console, "asked": asked} for each in reports}


def requests(log: Path) -> list[str]:
    """Return what pages asked the network for; what the browser itself asks has no origin."""
    events = json.loads(log.read_text())["events"]
    starts = [event["params"] for event in events if "initiator" in event.get("params", {})]
    pages = [start["url"] for start in starts if start["initiator"] != "not an origin"]
    return [url for url in pages if not url.startswith(("file:", "data:", "blob:"))]


@pytest.mark.parametrize("width", WIDTHS)
def test_everything_is_drawn_and_fits(seen: dict[int, dict[str, Any]], width: int) -> None:
    plots = dict(seen[width]["plots"])
    drawn = {"learning", "variance-1", "validation-3", "run-loss", "run-lr", "run-variance"}
    assert drawn <= set(plots)
    assert plots.pop("forest") == 0 < seen[width]["forest"]
    assert all(plots.values()), plots
    assert seen[width]["width"] <= width


def test_nothing_is_wrong_and_no_request_leaves_the_file(seen: dict[int, dict[str, Any]]) -> None:
    wide = seen[WIDTHS[0]]
    assert wide["errors"] == []
    assert [line for line in wide["console"] if "ERR_NAME_NOT_RESOLVED" not in line] == []
    assert wide["asked"] == [CONTROL]


def test_the_table_is_sorted_by_a_press_and_back(seen: dict[int, dict[str, Any]]) -> None:
    wide = seen[WIDTHS[0]]
    unsorted, falling, rising, undone = wide["sorted"]
    best = ["oracle", "het-dropout", "het-dropout/constant", "no-xstar", "het-dropout/shuffled"]
    assert falling == ["descending", [*best, "gaussian-dropout"]]  # golden/finished.txt, n = 75
    assert rising == ["ascending", falling[1][::-1]]
    assert undone == unsorted
    assert unsorted[0] is None
    assert wide["focused"]


def test_legend_and_run_can_be_chosen(seen: dict[int, dict[str, Any]]) -> None:
    wide = seen[WIDTHS[0]]
    assert wide["hidden"] == 1
    before, after = wide["ends"]
    assert "collapsed" not in before
    assert "collapsed" in after  # seed 5 of the made-up records
