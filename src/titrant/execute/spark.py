"""A Spark DataFrame as a log: each partition's statistic is computed where its rows are.

Spark's `mapInArrow` hands the rows of one of its partitions to a Python worker as Arrow batches.
The worker returns the pickled statistic, and the driver adds the statistics in partition order: a
few hundred bytes travel for each partition, however many rows it has.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

from titrant import _check
from titrant.data import validate
from titrant.data.columns import Columns, check_present
from titrant.data.masses import checked_atoms
from titrant.data.source import SAMPLE, TableSource, read_from, root_of
from titrant.errors import DataError, ExecutionError, InvalidArgument, TitrantError
from titrant.execute.engine import Engine, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    import pyarrow as pa

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.masses import Atoms
    from titrant.data.validate import Bounds

    Frame = Any
    """A `pyspark.sql.DataFrame`, which is an extra."""

P = TypeVar("P")
S = TypeVar("S")

_RESULT = "partition int, result binary"
"""What a Spark worker returns of a partition: its number, and a pickled result or error."""


@dataclass(frozen=True, slots=True)
class SparkPartition:
    """Which partition of a DataFrame, and how many rows it has, not what they hold."""

    number: int
    n: int
    first_row: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n

    def batches(self, size: int) -> Iterator[LoggedData]:
        """Refuse, since the rows are in Spark."""
        raise ExecutionError(
            f"The rows of Spark partition {self.number} are in Spark and cannot be read {size:,} "
            "at a time elsewhere. Leave the `executor` out: a Spark source brings its own engine."
        )


@dataclass(frozen=True, slots=True)
class Streamed:
    """The rows of a partition where Spark has them: a stream that passes once."""

    stream: Iterator[pa.RecordBatch]
    place: SparkPartition
    columns: Columns
    limits: tuple[Array, Array]

    @property
    def first_row(self) -> int:
        """The number of its first row in the whole log."""
        return self.place.first_row

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.place.n

    def batches(self, size: int) -> Iterator[LoggedData]:
        """Yield the rows, ``size`` at a time, checked like any log."""
        import pyarrow as pa  # noqa: PLC0415

        from titrant.data.files.scan import cut  # noqa: PLC0415

        done = 0
        for table in cut((pa.Table.from_batches([batch]) for batch in self.stream), size):
            yield self._log(table, done)
            done += len(table)
        if done != self.place.n:
            raise DataError(
                f"A DataFrame must give the same rows on every pass; got {done:,} in Spark "
                f"partition {self.place.number}, which had {self.place.n:,} when it was scanned. "
                "Write it to Parquet, or cache it, and scan it again."
            )

    def _log(self, table: pa.Table, done: int) -> LoggedData:
        from titrant.data.files.scan import batch_of  # noqa: PLC0415

        try:
            return batch_of(table, self.columns, self.limits, self.first_row + done)
        except DataError as error:
            where = f"In Spark partition {self.place.number}, rows counted from its row {done:,}"
            raise DataError(f"{where}: {error}") from None


@dataclass(frozen=True, slots=True)
class Work(Generic[S]):
    """A task as Spark sends it to the workers, with what they need to read their rows."""

    task: Callable[[Any], S]
    places: dict[int, Any]
    """The partition, or what is selected from it, by the number of the partition."""
    columns: Columns
    limits: tuple[Array, Array]

    def __call__(self, stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the pickled result of the partition whose rows these are."""
        number = _number()
        if number in self.places:
            selected = self.places[number]
            rows = Streamed(stream, root_of(selected), self.columns, self.limits)
            yield _row(number, self._pickled(read_from(selected, rows)))

    def _pickled(self, rows: Any) -> bytes:  # noqa: ANN401  (a partition, or selected from one)
        try:
            return pickle.dumps(self.task(rows))
        except TitrantError as error:  # Spark would send its text alone, and try again
            return pickle.dumps(error)


@dataclass(frozen=True, eq=False, repr=False)
class SparkSource(TableSource):
    """A log in a Spark DataFrame; see `scan_spark`."""

    frame: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSpark(Engine):
    """The engine of a DataFrame: a task on all partitions is one Spark job.

    Spark retries what fails by its own settings; `timeout` is for the whole job.
    """

    source: SparkSource

    @classmethod
    def of(cls, source: SparkSource, given: Executor | Engine | None) -> OnSpark:
        """Return the engine of a source, with the timeout and progress of the one given."""
        if given is None:
            return cls(source=source)
        if not isinstance(given, Engine) or given.executor is not None:
            raise InvalidArgument(
                "A Spark DataFrame is worked on by Spark itself; got another executor "
                f"({type(given).__name__}). Leave `executor` out, or give Engine(timeout=…)."
            )
        return cls(source=source, timeout=given.timeout, progress=given.progress)

    def _results(self, task: Callable[[P], S], partitions: Sequence[P]) -> Iterator[S]:
        """Return the result of each partition, in order."""
        places: dict[int, Any] = {root_of(p).number: p for p in partitions}
        work = Work(Task(task, self.pin), places, self.source.columns, self.source.limits)
        results = _collected(self.source.frame, work, self.timeout)
        return (_opened(results, number) for number in places)


def scan_spark(
    frame: Frame,
    columns: Columns,
    *,
    bounds: Bounds = None,
    atoms: Atoms = None,
    sample_rows: int = SAMPLE,
) -> SparkSource:
    """Return the log in a Spark DataFrame, to be used wherever a `LoggedData` can be used.

    The rows stay in Spark: its workers, which need titrant installed, compute the statistics of
    their partitions. Scanning counts the rows of each partition, in one job. The DataFrame must
    give the same rows in the same partitions every time: one read from files does, and so does
    one that is cached; after a shuffle, write it to Parquet first.

    Parameters
    ----------
    frame : a `pyspark.sql.DataFrame`
    columns : which column plays which role; all of them hold numbers
    bounds : None or a pair (lower, upper) of the range in which doses are possible
    atoms : as those of `LoggedData`: point masses of the doses; looked for unless given
    sample_rows : how many rows models are fitted on that cannot be fitted by adding up over rows
    """
    owner = "scan_spark"
    if not isinstance(columns, Columns):
        raise _check.invalid("columns", owner, "Columns(treatment=…, outcome=…, …)", columns)
    sample = _check.count(sample_rows, "sample_rows", owner)
    check_present(columns.roles, frame.columns)
    limits = validate.bound_arrays(bounds, 1, len(columns.doses))
    needed = frame.select(*(f"`{name}`" for name in columns.needed))
    places = _places(_collected(needed.select(f"`{columns.outcome}`"), _count, timeout=None))
    place, masses = f"{len(places):,} partitions", checked_atoms(atoms, len(columns.doses), owner)
    source = SparkSource(columns, limits, places, sample, place, needed, atoms=masses)
    validate.check_rows(len(source))
    return source


def _places(counts: dict[int, bytes]) -> tuple[SparkPartition, ...]:
    """Return the partitions that have rows, each with the place of its first row."""
    places: list[SparkPartition] = []
    first = 0
    for number in sorted(counts):
        n: int = _opened(counts, number)
        if n:
            places.append(SparkPartition(number, n, first))
        first += n
    return tuple(places)


# What runs in Spark's workers


def _count(stream: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield _row(_number(), pickle.dumps(sum(batch.num_rows for batch in stream)))


def _number() -> int:
    """Return the number of the partition that this Spark worker is at."""
    from pyspark import TaskContext  # noqa: PLC0415

    context: Any = TaskContext.get()
    return int(context.partitionId())


def _row(number: int, result: bytes) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415

    schema = pa.schema([("partition", pa.int32()), ("result", pa.binary())])
    return pa.RecordBatch.from_pydict({"partition": [number], "result": [result]}, schema=schema)


# What runs in the driver


def _collected(
    frame: Frame,
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    timeout: float | None,
) -> dict[int, bytes]:
    """Return the pickled result of each partition by its number."""
    try:
        if timeout is None:
            return _run(frame, work)
        return _run_within(timeout, frame, work)
    except TitrantError:
        raise
    except Exception as error:
        raise _failure(error) from error


def _run(frame: Frame, work: Callable[..., Any]) -> dict[int, bytes]:
    rows = frame.mapInArrow(work, _RESULT).collect()
    return {row["partition"]: bytes(row["result"]) for row in rows}


def _run_within(timeout: float, frame: Frame, work: Callable[..., Any]) -> dict[int, bytes]:
    """Return the results, or stop this one job when its time is up."""
    context, tag = frame.sparkSession.sparkContext, f"titrant-{uuid4().hex}"

    def tagged() -> dict[int, bytes]:
        context.addJobTag(tag)
        context.setInterruptOnCancel(True)
        return _run(frame, work)

    aside = ThreadPoolExecutor(1)
    try:
        return aside.submit(tagged).result(timeout)
    except TimeoutError:
        context.cancelJobsWithTag(tag)
        raise ExecutionError(
            f"Spark gave no result within {timeout:g} seconds. Give the engine a longer "
            "`timeout` or Spark more executors."
        ) from None
    finally:
        aside.shutdown(wait=False)


def _opened(results: dict[int, bytes], number: int) -> Any:  # noqa: ANN401  (of any task)
    """Return the result of a partition, or raise the error that its worker sent instead."""
    if number not in results:
        raise ExecutionError(
            f"Spark returned nothing for partition {number}. The DataFrame must have the same "
            "partitions on every pass: write it to Parquet, or cache it, and scan it again."
        )
    result = pickle.loads(results[number])  # noqa: S301  (what our own worker pickled)
    if isinstance(result, TitrantError):
        raise result
    return result


def _failure(error: Exception) -> ExecutionError:
    lines = [line for line in str(error).splitlines() if line.strip()] or ["no reason given"]
    return ExecutionError(
        f"Spark could not work on the DataFrame ({type(error).__name__}: {lines[-1].strip()}). "
        "Check the executors' logs, and that titrant is installed where they run."
    )
