"""How the default call does where dose and outcome share a cause, and nobody knows how.

`python -m benchmarks.confounding` draws logs and appends a record a log to `records.jsonl`; it goes
on where an earlier run stopped, on whatever machine. `python -m benchmarks.confounding.page` writes
`docs/explanation/confounding.md` from the records.
"""
