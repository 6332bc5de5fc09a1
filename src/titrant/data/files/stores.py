"""Paths in object stores, such as `s3://bucket/logs/*.parquet`, by the file systems of pyarrow.

`s3://`, `gs://` and `abfs://` paths are taken wherever a file is read. Who reads is told by the
environment, as to other programs (for S3: `AWS_PROFILE`, `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`,
…); options of a file system may stand behind a `?`, as in `?region=eu-west-1`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pyarrow as pa

from titrant.data.validate import first_line
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss")
_MARK = "://"
_MISSING = ("NO_SUCH_BUCKET", "bucket does not exist", "ContainerNotFound", "FilesystemNotFound")
_REFUSED = (
    *("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "HTTP status 403"),
    *("HTTP Response Code 403", "HTTP Response Code 401", "UNAUTHENTICATED", "PERMISSION_DENIED"),
    *("AuthorizationFailure", "AuthenticationFailed", "Permission denied"),
)
"""What stores say in their errors, for which pyarrow has no types."""


def in_store(path: str) -> bool:
    """Return whether a path is one of an object store."""
    return _MARK in path


@dataclass(frozen=True, slots=True)
class StorePath:
    """A path in a store: its bucket, the key of a file or folder in it, and options."""

    bucket: str
    """With the scheme before it, as in s3://bucket."""
    key: str
    """As it is in the store, without a slash at its ends."""
    options: str
    """From their question mark on; "" for none."""

    @classmethod
    def of(cls, path: str) -> StorePath:
        """Return the parts of a path, or refuse one that no file system knows."""
        scheme, _, rest = path.partition(_MARK)
        if scheme.lower() not in SCHEMES:
            raise DataError(
                f"No file system is known for `{path}`. Give a path on this machine, or one that "
                "begins with `s3://`, `gs://` or `abfs://`."
            )
        place, mark, options = rest.partition("?")
        bucket, _, key = place.partition("/")
        if not bucket:
            raise DataError(f"`{path}` names no bucket. Write it as `{scheme}://bucket/file`.")
        if ":" in bucket.rpartition("@")[0]:
            raise DataError(
                f"A path in a store must not hold a secret, which results and errors would show; "
                f"got one that begins with `{scheme}://`. Give it in the environment."
            )
        return cls(f"{scheme.lower()}://{bucket}", unquote(key).strip("/"), mark + options)

    def at(self, key: str) -> StorePath:
        """Return the path of another key in the same bucket."""
        return StorePath(self.bucket, key, self.options)

    def __str__(self) -> str:
        """Return the path as it is typed."""
        return f"{self.bucket}/{quote(self.key, safe='/=*,+@!')}{self.options}"

    def open(self) -> pa.NativeFile:
        """Return the file, to be read from any place in it."""
        with _reached(self):
            system, path = self._place()
            return system.open_input_file(path)

    def size(self) -> int | None:
        """Return the bytes of a file, None for a folder; refuse what is not there."""
        from pyarrow.fs import FileType  # noqa: PLC0415  (loads slowly)

        with _reached(self):
            system, path = self._place()
            info = system.get_file_info(path)
            if info.type == FileType.NotFound:
                bucket = system.get_file_info(path.partition("/")[0])
                raise _no_bucket(self) if bucket.type == info.type else FileNotFoundError(path)
        return None if info.type == FileType.Directory else int(info.size)

    def files(self) -> list[str]:
        """Return the keys of all files in a folder, at any depth, in order."""
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415

        with _reached(self):
            system, path = self._place()
            found = system.get_file_info(FileSelector(path, recursive=True))
        base = path[: len(path) - len(self.key)]
        paths = (one.path for one in found if one.type == FileType.File)
        return sorted(path.removeprefix(base).strip("/") for path in paths)

    def _place(self) -> tuple[Any, str]:
        """Return the file system, and the path in it."""
        system, base = _file_system(self.bucket + self.options)
        return system, "/".join(part for part in (base, self.key) if part)


@cache
def _file_system(uri: str) -> tuple[Any, str]:
    """Return the file system of a bucket, made once: it may ask where the bucket is."""
    from pyarrow.fs import FileSystem  # noqa: PLC0415

    system, base = FileSystem.from_uri(uri)
    return system, base.strip("/")


@contextmanager
def _reached(path: StorePath) -> Iterator[None]:
    """Say in a sentence why a store gives no answer."""
    try:
        yield
    except FileNotFoundError as reason:
        if _says(reason, _MISSING):
            raise _no_bucket(path) from None
        raise DataError(f"There is no file at `{path}`. Check the bucket and the name.") from None
    except (NotImplementedError, ImportError, pa.ArrowNotImplementedError) as reason:
        raise DataError(
            f"The installed pyarrow has no file system for `{path}` ({first_line(reason)}). "
            "Install pyarrow from PyPI or conda-forge, or copy the file to this machine."
        ) from None
    except (OSError, pa.ArrowException) as reason:
        if _says(reason, _MISSING):
            raise _no_bucket(path) from None
        if isinstance(reason, PermissionError) or _says(reason, _REFUSED):
            raise DataError(
                f"The store does not let you read `{path}` ({first_line(reason)}). Check the "
                "credentials of this environment and their rights."
            ) from None
        raise DataError(
            f"`{path}` cannot be read ({first_line(reason)}). Check the path, the network, and "
            "the region and endpoint of the store."
        ) from None


def _says(reason: BaseException, words: tuple[str, ...]) -> bool:
    return any(word in str(reason) for word in words)


def _no_bucket(path: StorePath) -> DataError:
    return DataError(f"There is no bucket `{path.bucket}`. Check its name and the endpoint.")


# Files, wherever they are


def name_of(path: str) -> str:
    """Return a path without the options of a store, so that it ends like the file's name."""
    return path.partition("?")[0] if in_store(path) else path


def source_of(path: str) -> str | pa.NativeFile:
    """Return what readers of pyarrow take for a file: its path, or in a store the open file."""
    return StorePath.of(path).open() if in_store(path) else path


def opened(path: str) -> pa.NativeFile:
    """Return a file, to be read from any place in it."""
    return StorePath.of(path).open() if in_store(path) else pa.OSFile(path)


def read_text(path: str) -> str:
    """Return the text of a small file in a store."""
    with StorePath.of(path).open() as file:
        return str(file.read().decode())
