"""From scores to verdicts: the test, the rule, the words. `api.py` has `lupi.judge`."""
