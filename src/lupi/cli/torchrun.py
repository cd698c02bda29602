"""One command in several processes: `torchrun --nproc-per-node 2 -m lupi train mine.yaml`."""

import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from datetime import timedelta

import typer

from lupi.errors import LupiError
from lupi.interface.console import print_message, stderr


def n_processes() -> int:
    """Return how many processes torchrun started; 1 where it is not at work."""
    return int(os.environ["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in os.environ else 1


@contextlib.contextmanager
def report_once() -> Iterator[None]:
    """Let the first process speak for all, and the first that fails say why they all end.

    All of them end with torchrun, even where it is killed and can't end them.
    """
    if n_processes() == 1:
        yield
        return
    stderr.quiet = stderr.quiet or os.environ["RANK"] != "0"
    # Read when torch is imported. It only warns about unused parameters.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        if _fails_first():
            stderr.quiet = False
            where = f"in process {os.environ['RANK']}"
            print_message(f"{where}: {_explained(error)}", "error", "bold red")
        sys.stderr.flush()
        os._exit(2)  # at once: the other processes would block forever; torchrun ends them


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _explained(error: Exception) -> str:
    return str(error) if isinstance(error, LupiError) else traceback.format_exc()


def _fails_first() -> bool:
    """Tell whether no other process has failed: one failure makes all others fail."""
    from torch.distributed import DistError, TCPStore  # type: ignore[attr-defined]

    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    try:
        store = TCPStore(address, port, is_master=False, timeout=timedelta(seconds=10))
        return store.add(f"lupi/failures/{attempt}", 1) == 1
    except DistError:  # nobody to ask: rather say it twice than never
        return True
