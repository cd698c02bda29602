"""What the numbers of a metric are, which decides how people write them."""

import re


def is_share(metric: str) -> bool:
    """Whether it is a share of right answers: written in percent, differences in points."""
    return re.search(r"accuracy|^top[-_ ]?\d+", metric) is not None


def is_out_of_100(metric: str) -> bool:
    """Whether it goes up to a hundred already, as scores of translations do: one decimal."""
    return re.match(r"bleu|chrf|meteor", metric) is not None
