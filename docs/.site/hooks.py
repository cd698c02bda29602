"""Hooks of MkDocs: pages outside docs/, links to them, x* in prose, search without internet."""

import os
import re
from pathlib import Path, PurePosixPath
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.util import ETX, STX
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "ARCHITECTURE.md": "development/architecture.md",
    "CHANGELOG.md": "development/changelog.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "SECURITY.md": "development/security.md",
}
"""Files of the repository, and where they are in the site."""
LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?\)")
REMOTE_WORKER = "https://unpkg.com/iframe-worker/shim"
"""What the theme fetches so that search works in pages that were opened from a folder."""
LOCAL_WORKER = "assets/local_worker.js"


class Star(InlineProcessor):
    """x* and h* as they stand in docstrings: the star does not start emphasis."""

    def handleMatch(  # type: ignore[override]  # noqa: N802
        self, m: re.Match[str], data: str
    ) -> tuple[Element | str, int, int]:
        """Return the letter, and the star as Markdown keeps an escaped one."""
        return f"{m[1]}{STX}{ord('*')}{ETX}", m.start(0), m.end(0)


class Stars(Extension):
    """Register the pattern after code spans and before escapes."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Add it to a converter."""
        md.inlinePatterns.register(Star(r"\b([xh])\*(?!\*)", md), "privileged", 185)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read x* as two characters in pages and docstrings."""
    config.markdown_extensions.append(Stars())  # type: ignore[arg-type]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages at the top of the repository, and the example scripts."""
    for source, target in PAGES.items():
        content = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=content))
    for script in (ROOT / "examples").rglob("*.py"):
        target = script.relative_to(ROOT).as_posix()
        files.append(File.generated(config, target, abs_src_path=str(script)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Point links at where their targets are in the site; colour commands as shell."""
    here = page.file.src_uri
    in_repository = {target: source for source, target in PAGES.items()}.get(here, f"docs/{here}")

    def changed(link: re.Match[str]) -> str:
        target = os.path.normpath(PurePosixPath(in_repository).parent / link[2])
        in_site = PAGES.get(target, target.removeprefix("docs/"))
        relative = os.path.relpath(in_site, PurePosixPath(here).parent)
        return f"{link[1]}{relative}{link[3] or ''})"

    return LINK.sub(changed, markdown.replace("```console\n", "```sh\n"))


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Replace what the theme would fetch by a file of the site."""
    assert REMOTE_WORKER in output, "the theme no longer fetches it: delete this hook"
    local = os.path.relpath(LOCAL_WORKER, PurePosixPath(page.file.dest_uri).parent)
    return output.replace(REMOTE_WORKER, local)


def on_post_template(output_content: str, template_name: str, **_: object) -> str:
    """Do the same in the page for wrong addresses, which only a server shows."""
    return output_content.replace(REMOTE_WORKER, f"/{LOCAL_WORKER}")
