"""What `evaluate` and `compare` share: read, call the library, print, write."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from titrant.cli import config, inputs, show
from titrant.cli.terminal import ESTIMATING, FITTING, READING, REPORTING, bar, note
from titrant.cli.terminal import show as to_terminal
from titrant.cli.writing import STDOUT, check_outputs, write_text
from titrant.evaluation.evaluation import Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from titrant.cli.options import (
        ClusterOptions,
        LogOptions,
        MethodOptions,
        OutputOptions,
        PolicyOptions,
        RunOptions,
    )
    from titrant.evaluation.evaluation import Comparison
    from titrant.policies import Policy


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of which log; the report repeats it."""

    evaluation: Evaluation
    rules: dict[str, Policy]
    """The policies as they were given."""
    how: dict[str, Any]
    columns: LogOptions
    settings: dict[str, object]
    config: str


@contextmanager
def compared(  # noqa: PLR0917  (one for each group of options)
    log_options: LogOptions,
    policy_options: PolicyOptions,
    method_options: MethodOptions,
    output: OutputOptions,
    workers: ClusterOptions,
    run: RunOptions,
) -> Iterator[tuple[Comparison, Asked]]:
    """Lend the comparison that the options ask for, while the log can still be read."""
    check_outputs(
        [("--html", output.html), ("--json", output.json), ("--save-config", run.save_config)],
        [("LOG", log_options.log), *inputs.files(policy_options.policy), ("--config", run.config)],
    )
    how = inputs.method(method_options, log_options)
    context = click.get_current_context()
    with ExitStack() as stack:
        with bar(READING, FITTING, ESTIMATING) as steps:
            steps.begin(READING)
            opened = stack.enter_context(inputs.opened(log_options, workers))
            log = opened.log
            rules = inputs.policies(policy_options.policy, log)
            config.save(context, run.save_config)
            steps.begin(FITTING)
            how_to = how["estimator"], how["propensity"], opened.executor
            evaluation = Evaluation.of(log, rules, *how_to)
            steps.begin(ESTIMATING)
            trusted = how["allow_untrusted"]
            comparison = evaluation.compare(how["bandwidth"], allow_untrusted=trusted)
        settings, text = config.settings(context), config.text(context)
        yield comparison, Asked(evaluation, rules, how, log_options, settings, text)


def finish(
    comparison: Comparison, result: dict[str, Any], output: OutputOptions, asked: Asked
) -> None:
    """Print the tables unless standard output is for a file, and write the files asked for."""
    show.cautions(comparison.estimates)
    refusals = show.refusals(comparison.refused)
    if STDOUT in (output.json, output.html):
        for sentence in refusals:
            note(sentence)
    else:
        estimates, refused = comparison.estimates, comparison.refused
        to_terminal(show.values(estimates, output.level, refused=refused))
        for sentence in refusals:
            to_terminal(f"{sentence}\n")
        if len(comparison.estimates) > 1:
            to_terminal(show.differences(comparison, output.level, maximize=output.maximize))
        to_terminal(show.reading(maximize=output.maximize))
    if output.json is not None:
        write_text(output.json, json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    if output.html is not None:
        write_page(output.html, comparison, output, asked)
        note_written(output.html)


def note_written(path: str) -> None:
    """Say which file was written, if it is one."""
    if path != STDOUT:
        note(f"Wrote {path}.")


def write_page(path: str, comparison: Comparison, output: OutputOptions, asked: Asked) -> None:
    """Write the report page."""
    from titrant.report import gather, render  # noqa: PLC0415

    with bar(REPORTING) as steps:
        steps.begin(REPORTING)
        report = gather(
            comparison,
            asked.evaluation,
            level=output.level,
            maximize=output.maximize,
            bandwidth=asked.how["bandwidth"],
            settings=asked.settings,
            config=asked.config,
            rules=asked.rules,
            treatments=inputs.columns(asked.columns.treatment),
            outcome=asked.columns.outcome,
            progress=steps.advance,
        )
        write_text(path, render(report))
