"""Problems and changes found in data: they stop a task or are counted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lupi.errors import LupiError

OnBad = Literal["stop", "skip"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem or a change in a file."""

    file: str
    kind: str
    """Kind of finding, such as `zero-area box`."""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.kind}" + (f" ({self.detail})" if self.detail else "")


@dataclass(slots=True)
class Findings:
    """All findings so far. With the policy `stop`, the first problem raises an error."""

    on_bad: OnBad
    bad: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    """Changes that are not problems and never stop a task."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about the data as a whole."""

    def add(self, file: str, kind: str, detail: str = "") -> None:
        """Report a problem."""
        self.bad.append(Finding(file, kind, detail))
        self.check()

    def note(self, file: str, kind: str, detail: str = "") -> None:
        """Report a change."""
        self.notes.append(Finding(file, kind, detail))

    def check(self) -> None:
        """Raise an error for the first problem if the policy is `stop`."""
        if self.bad and self.on_bad == "stop":
            raise LupiError(
                f"{self.bad[0]}. Fix or remove it, or set task.on_bad to skip, which skips "
                "and counts such cases"
            )

    def counts(self) -> dict[str, int]:
        """Return the number of findings of each kind."""
        return dict(Counter(finding.kind for finding in (*self.bad, *self.notes)))

    def lines(self) -> list[str]:
        """Return one line per kind: the count and the first file."""
        first: dict[str, Finding] = {}
        for finding in (*self.bad, *self.notes):
            first.setdefault(finding.kind, finding)
        return [
            f"{kind}: {n:,}, the first in {first[kind].file}"
            + (f": {first[kind].detail}" if first[kind].detail else "")
            for kind, n in self.counts().items()
        ]

    def described(self) -> dict[str, Any]:
        """Return all findings as JSON."""
        content = asdict(self)
        del content["on_bad"]
        return content

    def extend(self, described: Mapping[str, Any]) -> None:
        """Add findings that were described as JSON."""
        self.bad += [Finding(**finding) for finding in described["bad"]]
        self.notes += [Finding(**finding) for finding in described["notes"]]
        self.remarks += described["remarks"]
