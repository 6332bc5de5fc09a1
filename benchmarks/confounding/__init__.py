"""How the default call does where dose and outcome share a cause, and nobody knows how.

`python -m benchmarks.confounding --plan` draws logs and adds a record of each to
`records.jsonl.gz`; `python -m benchmarks.confounding.safe` does so for safe deployments, to
`safe.jsonl.gz`. Both go on where an earlier run stopped, on whatever machine, as long as the code
finds the numbers that the records say.
`python -m benchmarks.confounding.page` writes `docs/explanation/confounding.md` from the records.
"""
