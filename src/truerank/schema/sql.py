"""Load the .sql files of this package and check that each is what its name says."""

import hashlib
from dataclasses import dataclass
from importlib import resources

from truerank.errors import SchemaMismatch


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFile:
    """One file: `name` without its ending, `text`, and the SHA-256 of the text in hexadecimal."""

    name: str
    text: str
    sha256: str


def migrations() -> list[SqlFile]:
    """All migrations of this release, in order of their four-digit number."""
    return _load("migrations")


def functions() -> list[SqlFile]:
    """All SQL functions of this release, in order of their name.

    Raises:
        SchemaMismatch: a file does not open with `-- <its name>: <one sentence>`.
    """
    files = _load("functions")
    for file in files:
        if not file.text.startswith(f"-- {file.name}: "):
            raise SchemaMismatch(
                f"functions/{file.name}.sql must open with '-- {file.name}: <one sentence>'"
            )
    return files


def functions_digest() -> str:
    """One digest over all functions; a database that holds it needs no function replaced."""
    whole = hashlib.sha256()
    for file in functions():
        whole.update(file.name.encode() + b"\0" + file.sha256.encode() + b"\0")
    return whole.hexdigest()


def _load(folder: str) -> list[SqlFile]:
    files = [
        file
        for file in (resources.files("truerank.schema") / folder).iterdir()
        if file.name.endswith(".sql")
    ]
    return [
        SqlFile(
            name=file.name.removesuffix(".sql"),
            text=(text := file.read_text("utf-8")),
            sha256=hashlib.sha256(text.encode()).hexdigest(),
        )
        for file in sorted(files, key=lambda file: file.name)
    ]
