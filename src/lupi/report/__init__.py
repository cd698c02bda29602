"""Tables, figures and the HTML page of a comparison. Reads records and verdicts, no torch."""
