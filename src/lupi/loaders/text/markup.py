"""Markup in texts: HTML, which is noise, and other tags, which may give the label away."""

import re
from collections import Counter

from lupi.errors import LupiError

TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]{0,30})(?:\s[^<>]{0,200})?/?>")
ENTITY = re.compile(r"&(?:amp|lt|gt|quot|nbsp|#\d{1,5});")
HTML = re.compile(
    "a|abbr|article|b|blockquote|body|br|code|dd|del|div|dl|dt|em|font|footer|h[1-6]|head|header|"
    "hr|html|i|img|iframe|ins|li|link|mark|meta|nav|ol|p|pre|q|s|script|section|small|span|strong|"
    "style|sub|sup|table|tbody|td|tfoot|th|thead|title|tr|tt|u|ul|url|user",
    re.I,
)
N_TEXTS = 3
"""Texts with a pair of the same tag that are taken for a mark and not for chance."""


class Markup:
    """Counts tags in texts as they are read."""

    def __init__(self) -> None:
        self._html: Counter[str] = Counter()
        self._pairs: Counter[str] = Counter()
        self.n_html = 0

    def see(self, text: str) -> None:
        """Count the tags of a text, from which those of rationales have been removed."""
        if "<" not in text and "&" not in text:
            return
        opened = {name for closes, name in TAG.findall(text) if not closes}
        closed = {name for closes, name in TAG.findall(text) if closes}
        found = {name for name in opened | closed if HTML.fullmatch(name)}
        self._html.update(found)
        self._pairs.update(name for name in opened & closed if not HTML.fullmatch(name))
        self.n_html += bool(found or ENTITY.search(text))

    def refuse_tags(self, where: str) -> None:
        """Raise an error if texts have tags that look like marks of annotators."""
        names = [name for name, n in self._pairs.most_common() if n >= N_TEXTS]
        if not names:
            return
        listed = ", ".join(f"<{name}> in {self._pairs[name]:,} texts" for name in names[:5])
        raise LupiError(
            f"{where}: tags that are read as words of the text: {listed}. If they mark rationales, "
            f"name them in task.tags ([{', '.join(names[:5])}]) and give the text column as "
            "rationale; otherwise remove them: a student would learn the tags"
        )

    def remark(self, n_texts: int) -> str | None:
        """Return a sentence about HTML in the texts."""
        if not self.n_html:
            return None
        most = ", ".join(f"<{name}>" for name, _ in self._html.most_common(3)) or "&amp;"
        return (
            f"{self.n_html:,} of {n_texts:,} texts contain markup, such as {most}: its names are "
            "read as words; remove it if it carries no meaning"
        )
