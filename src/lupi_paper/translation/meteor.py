"""METEOR 1.5 of lines, by its authors' program: a jar in the package pycocoevalcap, and Java.

Denkowski, Lavie: "Meteor Universal", WMT 2014. Only English has its table of paraphrases
there; in other languages words match exactly or by their stems, which gives other scores: the
signature tells.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from lupi.errors import LupiError

LANGUAGES = "cz da de en es fi fr hu it nl no pt ro ru se tr"
"""That the program knows; `cz` and `se` are its names for Czech and Swedish."""


def find_meteor(language: str) -> Path:
    """Return the path of the program; refuse what it can't do here, before anything is trained."""
    if language not in LANGUAGES.split():
        raise LupiError(f"task.meteor: METEOR knows no {language}, only {LANGUAGES}; leave it off")
    package = find_spec("pycocoevalcap")
    if package is None or not package.submodule_search_locations:
        raise LupiError("task.meteor: it is in another package: pip install 'lupi-paper[meteor]'")
    if shutil.which("java") is None:
        raise LupiError("task.meteor: METEOR is a Java program, and there is no `java`; install it")
    return Path(package.submodule_search_locations[0]) / "meteor/meteor-1.5.jar"


def score_meteor(
    lines: Sequence[str], references: Sequence[str], language: str
) -> tuple[float, str]:
    """Return the score, from 0 to 100, and the signature that says how it was computed."""
    modules = "exact stem synonym paraphrase" if language == "en" else "exact stem"
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("lines", "references")]
        for path, texts in zip(paths, (lines, references), strict=True):
            path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        command = ["java", "-Xmx2G", "-Dfile.encoding=UTF-8", "-jar", find_meteor(language), *paths]
        done = subprocess.run(
            [*map(str, command), "-l", language, "-m", modules, "-lower", "-q"],
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        score = 100 * float(done.stdout.split()[-1])
    except (IndexError, ValueError):
        raise LupiError(f"METEOR gave no score:\n{done.stderr[-2000:]}") from None
    return score, f"version:1.5|lang:{language}|modules:{modules}|lower"
