"""How the default call does where dose and outcome share a cause, and nobody knows how.

This is the measurement of the very default call, its propensities estimated; `benchmarks.coverage`
holds beside it bandwidth selectors and forms of the interval against each other, with plain models
and, but for one design, known propensities. Its designs are here, too, with their propensities
estimated and known.

`python -m benchmarks.confounding --plan` draws logs and adds a record of each to
`records.jsonl.gz`; `python -m benchmarks.confounding.safe` does so for safe deployments, to
`safe.jsonl.gz`. Both go on where an earlier run stopped, on whatever machine, as long as the code
finds the numbers that the records say.
`python -m benchmarks.confounding.remedies` asks what a user can do where the default falls short.
`python -m benchmarks.confounding.page` writes `docs/explanation/confounding.md` from the records.
"""
