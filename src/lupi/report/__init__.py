"""Tables, figures and the HTML page of a comparison, without torch."""
