"""Tables: reading files, roles of columns, encoding rows as vectors."""
