"""What is wrong with data or had to be changed: it stops a task, or is counted."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from lupi.errors import LupiError

OnBad = Literal["stop", "skip"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a file that its owner should know."""

    file: str
    kind: str
    """Counted by this, such as `zero-area box`."""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.kind}" + (f" ({self.detail})" if self.detail else "")


@dataclass(slots=True)
class Findings:
    """Everything found so far. Under the policy `stop`, the first bad thing raises."""

    on_bad: OnBad
    bad: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    """Not bad, and never a reason to stop, but it changed or left out something."""

    def add(self, file: str, kind: str, detail: str = "") -> None:
        """Report something bad."""
        self.bad.append(Finding(file, kind, detail))
        self.check()

    def note(self, file: str, kind: str, detail: str = "") -> None:
        """Report something that is not bad."""
        self.notes.append(Finding(file, kind, detail))

    def check(self) -> None:
        """Raise for the first bad thing if that is the policy."""
        if self.bad and self.on_bad == "stop":
            raise LupiError(
                f"{self.bad[0]}. Fix or remove it, or set task.on_bad to skip, which skips "
                "and counts such cases"
            )

    def counts(self) -> dict[str, int]:
        """Return how often each kind was found."""
        return dict(Counter(finding.kind for finding in (*self.bad, *self.notes)))

    def lines(self) -> list[str]:
        """Say each kind in a line: how often, and the first file."""
        first: dict[str, Finding] = {}
        for finding in (*self.bad, *self.notes):
            first.setdefault(finding.kind, finding)
        return [
            f"{n} x {kind}, the first in {first[kind].file}"
            + (f": {first[kind].detail}" if first[kind].detail else "")
            for kind, n in self.counts().items()
        ]
