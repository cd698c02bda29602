"""Statistics over records: paired tests, label-saving factor, verdicts. No torch."""
