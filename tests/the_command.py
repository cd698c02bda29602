"""The real command: in a process of its own, or inside this one, which has torch imported."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lupi.cli import main

LUPI = [sys.executable, "-m", "lupi"]


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1", **changes}


def lupi(*arguments: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*LUPI, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        **{"env": environment(), **options},
    )


def started(*arguments: str, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    """Start the command so that it hears Ctrl-C, to which a shell makes background jobs deaf."""
    return subprocess.Popen(
        [*LUPI, *arguments],
        cwd=cwd,
        env=environment(),
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **{"stderr": subprocess.DEVNULL, **options},
    )


def inside(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run the command inside this process; return exit code, stdout and stderr."""
    given, out, err = (
        io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", write_through=True)
        for content in (stdin, b"", b"")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.setattr(sys, "argv", ["lupi", *arguments])
        for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as ended:
            main()
    code = ended.value.code
    out_text, err_text = (stream.buffer.getvalue().decode() for stream in (out, err))
    return (code if isinstance(code, int) else 0), out_text, err_text
