"""The command line as a process: start-up, pipes, exit codes, interruption, completion."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import titrant as tt
from sweeps import long

# `titrant --help` may cost this many times the CPU of `import numpy` (a promise of the project).
HELP_RATIO = 1.5
TITRANT = (sys.executable, "-m", "titrant")
# The package under test, also from another folder.
HERE = {"PYTHONPATH": str(Path(tt.__file__).parents[1])}
LEARN = (
    *("--treatment", "dose", "--outcome", "loss", "--propensity", "propensity"),
    *("--context", "weight,age,carrier", "--models", "ridge", "--policy-class", "constant"),
)
# A shell's background jobs ignore Ctrl-C; a test started by one must not inherit that.
INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from titrant.cli import main
print("ready", flush=True)
main()
"""


def titrant(*arguments: object, **settings):
    """Return the finished process of `titrant ARGUMENTS`."""
    line = [*TITRANT, *map(str, arguments)]
    settings = {"capture_output": True, "encoding": "utf-8", **settings}
    settings["env"] = os.environ | HERE | settings.get("env", {})
    return subprocess.run(line, check=False, **settings)


def cpu_seconds(*line: str) -> float:
    """CPU time, user and system, of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(line, check=True, capture_output=True, env=os.environ | HERE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_starts_quickly():
    # Interleaved minimum: the smallest of several is the cost without the neighbors' noise.
    times = [
        (cpu_seconds(*TITRANT, "--help"), cpu_seconds(sys.executable, "-c", "import numpy"))
        for _ in range(5)
    ]
    ours, numpys = map(min, zip(*times, strict=True))
    assert ours <= HELP_RATIO * numpys


@pytest.mark.parametrize("arguments", [("--help",), ("evaluate", "--help")])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys; from titrant.cli import run; run(sys.argv[1:]);"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'rich', 'matplotlib'} & set(sys.modules);"
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    line = [sys.executable, "-c", code, *arguments]
    run = subprocess.run(line, check=False, capture_output=True, text=True, env=os.environ | HERE)
    assert run.returncode == 0, run.stderr


def test_a_log_from_a_pipe(csv_log, log, plain):
    content = csv_log.read_text(encoding="utf-8")
    run = titrant(
        "evaluate", "-", *plain, "--policy", "p=constant:35", "--json", "-", input=content
    )
    assert run.returncode == 0, run.stderr
    expected = tt.compare(log, {"p": tt.Constant(35.0)}, estimator=tt.SelfNormalized())["p"]
    assert json.loads(run.stdout) == expected.to_dict()


def test_one_command_feeds_another(tmp_path):
    drawn = titrant("simulate", "dosing", "-n", 300, "-o", "-", cwd=tmp_path)
    run = titrant(
        *("evaluate", "-", "--treatment", "dose", "--outcome", "loss", "--propensity"),
        *("propensity", "--estimator", "sn", "--policy", "logged-mean", "--json", "out.json"),
        cwd=tmp_path,
        input=drawn.stdout,
    )
    assert run.returncode == 0, run.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert "logged-mean" in run.stdout


def test_no_overlap_leaves_with_1_and_nothing_else(csv_log, plain, tmp_path):
    options = [*plain, "--policy", "constant:5", "--bandwidth", "1", "--html", "report.html"]
    run = titrant("evaluate", csv_log, *options, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.startswith("Refused: No logged dose lies within h = 1.0")
    assert run.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_bad_data_leaves_with_2_and_a_traceback_only_when_asked_for(csv_log):
    wrong = ("evaluate", csv_log, "--treatment", "doze", "--outcome", "loss", "--policy", "a.json")
    run = titrant(*wrong)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    debugged = titrant(*wrong, "--debug")
    assert debugged.returncode == 2
    assert "Traceback" in debugged.stderr
    assert debugged.stderr.endswith(run.stderr)


def test_a_folder_that_cannot_be_written_to(csv_log, plain, tmp_path):
    sealed = tmp_path / "sealed"
    sealed.mkdir(mode=0o500)
    if os.access(
        sealed, os.W_OK
    ):  # the superuser may write anywhere; the kernel's files not even he
        run = titrant("simulate", "dosing", "-n", "50", "-o", "/proc/log.csv")
    else:
        out = sealed / "report.html"
        run = titrant("evaluate", csv_log, *plain, "--policy", "constant:35", "--html", out)
    assert run.returncode == 2
    assert run.stderr.startswith("Error: ")
    assert "Traceback" not in run.stderr


def test_an_interrupted_run_leaves_nothing_half_written(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("what was there before")
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "demo", "-n", "50000"],
        cwd=tmp_path,
        env=os.environ | HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout.readline() == "ready\n"
    assert process.stdout.readline().startswith("A simulated log of 50,000 patients")
    time.sleep(1.0)  # in the midst of the evaluation, which takes many times as long
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.strip() == "Interrupted; no file was left half written."
    assert list(tmp_path.iterdir()) == [page]
    assert page.read_text() == "what was there before"


@pytest.mark.parametrize("number", [signal.SIGTERM, *long(signal.SIGHUP)])
def test_a_terminated_run_leaves_nothing_half_written(tmp_path, number):
    policy = tmp_path / "policy.json"
    tt.Constant(3.0).save(policy)
    source = tmp_path / "in.csv"
    source.write_text("a\n" + "1\n" * 12_000_000)  # in parts, which takes some seconds
    before = sorted(tmp_path.iterdir())
    line = [*TITRANT, "recommend", str(policy), str(source), "--context", "a", "-o", "out.csv"]
    settings = {"stderr": subprocess.PIPE, "encoding": "utf-8", "cwd": tmp_path}
    # Tests that were started by nohup ignore hangups, and so would what they start.
    settings["preexec_fn"] = partial(signal.signal, number, signal.SIG_DFL)
    process = subprocess.Popen(line, env=os.environ | HERE, **settings)
    while process.poll() is None and sorted(tmp_path.iterdir()) == before:
        time.sleep(0.01)
    (drafted,) = set(tmp_path.iterdir()) - set(before)
    assert drafted.name.startswith(".titrant-")
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert said.strip() == "Terminated; no file was left half written."
    assert sorted(tmp_path.iterdir()) == before


def closed(*arguments: object, streams: str, cwd: Path):
    """The finished process of a call by a shell that redirects some streams."""
    words = shlex.join([*TITRANT, *map(str, arguments)])
    line = ["bash", "-c", f"{words} {streams}"]
    env = os.environ | HERE
    return subprocess.run(line, check=False, cwd=cwd, env=env, capture_output=True, text=True)


# What a shell may do to standard output, and the reason that the system gives.
LOST = [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")]
LOST += [("| head -0; exit ${PIPESTATUS[0]}", "Broken pipe")]
TO_SCREEN = ("simulate", "dosing", "-o", "-")


@pytest.mark.long
@pytest.mark.parametrize(("streams", "reason"), LOST)
def test_files_are_written_where_nothing_can_be_printed(csv_log, plain, tmp_path, streams, reason):
    calls = [("evaluate", csv_log, *plain, "--policy", "constant:35", "--html", "a", "--json", "b")]
    calls += [("learn", csv_log, *LEARN)]
    for call in calls:
        run = closed(*call, streams=streams, cwd=tmp_path)
        assert run.returncode == 2, run.stderr
        assert f"Standard output could not be written to: {reason}." in run.stderr
        assert "The files that were asked for are written." in run.stderr
        assert "Traceback" not in run.stderr
        assert "Exception" not in run.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "policy.json"]
    assert json.loads((tmp_path / "b").read_text())["value"] > 0
    assert isinstance(tt.load_policy(tmp_path / "policy.json"), tt.Constant)


@pytest.mark.parametrize(
    ("call", "streams", "reason"),
    [
        *((("--help",), *lost) for lost in LOST),
        (TO_SCREEN, *LOST[0]),
        *long(*((TO_SCREEN, *lost) for lost in LOST[1:])),
        *long(*((("--version",), *lost) for lost in LOST)),
    ],
)
def test_what_cannot_be_printed_is_said(tmp_path, call, streams, reason):
    run = closed(*call, streams=streams, cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert reason in run.stderr
    assert "files" not in run.stderr


@pytest.mark.long
@pytest.mark.parametrize("streams", ["2>&- <&-", "2>&-", "2>/dev/full", "<&-"])
def test_notes_that_cannot_be_printed_change_nothing(csv_log, plain, tmp_path, streams):
    call = ("evaluate", csv_log, *plain, "--policy", "constant:35", "--json", "-")
    usual = closed(*call, streams="", cwd=tmp_path)
    run = closed(*call, streams=streams, cwd=tmp_path)
    assert run.returncode == 0
    assert run.stdout == usual.stdout
    wrong = closed("evaluate", "no.csv", *plain, "--policy", "a", streams=streams, cwd=tmp_path)
    assert wrong.returncode == 2


def test_a_file_never_becomes_a_standard_stream(csv_log, plain, tmp_path):
    # All are closed: the first file to be opened would get the number of standard output.
    call = ("evaluate", csv_log, *plain, "--policy", "constant:35", "--json", "b", "--html", "a")
    run = closed(*call, streams="<&- >&- 2>&-", cwd=tmp_path)
    assert run.returncode == 2
    assert json.loads((tmp_path / "b").read_text())["value"] > 0
    assert (tmp_path / "a").read_text().startswith("<!")


def test_a_closed_pipe_is_an_empty_log(plain, tmp_path):
    call = ("evaluate", "-", *plain, "--policy", "constant:35")
    run = closed(*call, streams="<&-", cwd=tmp_path)
    assert run.returncode == 2
    assert "is empty" in run.stderr


def test_completion_of_commands_and_options():
    def completed(words: str, place: int) -> list[str]:
        variables = {
            "_TITRANT_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(place),
        }
        return titrant(env=variables).stdout.split()

    assert completed("titrant ev", 1) == ["plain,evaluate"]
    assert "plain,--treatment" in completed("titrant evaluate --tr", 2)
    assert completed("titrant evaluate --kernel g", 3) == ["plain,gaussian"]
    assert completed("titrant evaluate --bandwidth rule", 3) == ["plain,rule-of-thumb"]
