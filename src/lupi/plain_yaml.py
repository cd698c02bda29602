"""YAML to plain values, those that JSON has, and no more of them than anyone would write."""

import json
from typing import Any

import yaml

MAX_TEXT = 2**20
MAX_VALUES = 100_000
"""Aliases count as what they stand for: ten lines of them may stand for a billion values."""


def load_plain(text: str) -> Any:
    """Return the value that a text stands for; a ValueError says what is wrong with it."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"it is longer than {MAX_TEXT:,} characters")
    try:
        value = yaml.load(text, _Loader)  # a SafeLoader
        json.dumps(value)
    except yaml.YAMLError as error:
        raise ValueError(f"it is not valid YAML: {error}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except TypeError as error:
        raise ValueError(f"{error}: write it as a text, in quotes") from None
    return value


class _Loader(yaml.SafeLoader):
    """Counts values while it reads."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._n_values = 0
        self._sizes: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Read a value with all that is in it; an alias is as large as what it stands for."""
        before = self._n_values
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if node is None:
            return None
        if is_alias and node not in self._sizes:
            raise yaml.YAMLError("an alias contains itself")
        self._n_values += self._sizes[node] if is_alias else 1
        if self._n_values > MAX_VALUES:
            raise yaml.YAMLError(f"it expands to more than {MAX_VALUES:,} values")
        self._sizes.setdefault(node, self._n_values - before)
        return node
