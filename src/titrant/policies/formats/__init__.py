"""A policy as it leaves: saved and loaded again as JSON, and written as SQL, Python or Excel."""
