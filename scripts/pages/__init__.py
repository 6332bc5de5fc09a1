"""What makes the pages: blocks that run, the reference, schemas, figures, links."""
