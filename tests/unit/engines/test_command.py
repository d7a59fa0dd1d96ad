"""EngineSpec → argument list and environment: equal for both sides, nothing secret, nothing through a shell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specdemo.core.engine import EngineSpec
from specdemo.core.events import Side
from specdemo.engines.command import (
    ENTRY,
    PLUGIN_FOLDER,
    PLUGIN_NAME,
    TOKEN_VARIABLE,
    argv,
    display,
    environment,
    openmp_library,
)
from specdemo.engines.speculation import parse_speculation
from specdemo.errors import ConfigError

PYTHON = Path("/opt/engine/bin/python")
STANDARD = EngineSpec(Side.STANDARD, "owner/model", "demo", "cpu", dtype="float32", enforce_eager=True, cores="0")
SPECULATIVE = replace(STANDARD, side=Side.SPECULATIVE, cores="1", speculation=parse_speculation("ngram"))


def test_the_pair_differs_in_speculation_alone() -> None:
    """A38: parity by construction; the metrics flag goes to the speculative engine alone, since it stops the other."""
    one, other = argv(STANDARD, python=PYTHON, port=8001), argv(SPECULATIVE, python=PYTHON, port=8001)
    assert other[: len(one)] == one
    assert other[len(one) :] == [
        "--per-request-spec-decode-metrics=detailed",
        (
            '--speculative-config={"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, '
            '"prompt_lookup_min": 2}'
        ),
    ]
    assert one[:3] == [str(PYTHON), "-m", ENTRY]
    assert "--host=127.0.0.1" in one
    assert "--generation-config=vllm" in one
    assert "--no-enable-prefix-caching" in one


def test_everything_set_is_in_the_command() -> None:
    """Each field of a GPU spec reaches vLLM under its own flag; user flags come after ours."""
    spec = EngineSpec(
        Side.STANDARD, "owner/model", "demo", "cuda", dtype="bfloat16", max_model_len=32768, max_num_seqs=64, seed=7,
        memory_share=0.45, kv_cache_bytes=10**9, tensor_parallel=4, gpus="0,1,2,3", prefix_caching=True,
        flags=(("enable-chunked-prefill", ""), ("block-size", "32")),
    )  # fmt: skip
    words = argv(spec, python=PYTHON, port=8001)
    for word in (
        "--dtype=bfloat16", "--max-model-len=32768", "--max-num-seqs=64", "--seed=7", "--gpu-memory-utilization=0.45",
        "--kv-cache-memory-bytes=1000000000", "--tensor-parallel-size=4", "--enable-prefix-caching",
        "--enable-chunked-prefill", "--block-size=32",
    ):  # fmt: skip
        assert word in words
    assert "--enforce-eager" not in words
    assert environment(spec, python=PYTHON, inherited={})["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"


@pytest.mark.parametrize("name", ["x; touch /tmp/p", "$(id)", "a 'quoted' \"name\" with spaces", "`id`", "a=b"])
def test_names_are_one_argument(name: str) -> None:
    """C19: whatever the name, it is one argument joined to its flag; there is no shell that could read it."""
    words = argv(replace(STANDARD, model=name, served_name=name), python=PYTHON, port=8001)
    assert f"--model={name}" in words
    assert f"--served-model-name={name}" in words
    assert len(words) == len(argv(STANDARD, python=PYTHON, port=8001))


@pytest.mark.parametrize("name", ["", "--host", "-m", "a\nb", "a\x00b"])
def test_names_that_no_engine_has(name: str) -> None:
    """Empty names, names that look like flags, and control characters are refused."""
    for spec in (replace(STANDARD, model=name), replace(STANDARD, served_name=name)):
        with pytest.raises(ConfigError, match="is not a name that an engine can be started with"):
            argv(spec, python=PYTHON, port=8001)


def test_flags_are_checked_again() -> None:
    """A spec built by hand cannot smuggle a flag past the list."""
    with pytest.raises(ConfigError, match="cannot be passed through"):
        argv(replace(STANDARD, flags=(("host", "0.0.0.0"),)), python=PYTHON, port=8001)


def test_secrets_stay_out_of_the_arguments() -> None:
    """C21: keys go through the child's environment; the application's own settings and others' keys are not handed on."""
    inherited = {
        "PATH": "/usr/bin", "SPECDEMO_STANDARD__API_KEY": "sk-1", "OPENAI_API_KEY": "sk-2", "VLLM_API_KEY": "sk-3",
        "AWS_SECRET_ACCESS_KEY": "sk-4", "HF_TOKEN": "hf-5", "PYTHONPATH": "/evil", "LD_PRELOAD": "/evil.so",
    }  # fmt: skip
    child = environment(SPECULATIVE, python=PYTHON, inherited=inherited, token="word", api_key="sk-own")
    assert child["VLLM_API_KEY"] == "sk-own"
    assert child["HF_TOKEN"] == "hf-5"  # a hub id may be gated
    assert child[TOKEN_VARIABLE] == "word"
    assert child["PATH"] == "/opt/engine/bin:/usr/bin"
    assert not {"sk-1", "sk-2", "sk-3", "sk-4", "/evil", "/evil.so"} & set(child.values())
    assert "sk-own" not in " ".join(argv(SPECULATIVE, python=PYTHON, port=8001))
    assert "VLLM_API_KEY" not in environment(STANDARD, python=PYTHON, inherited=inherited)


def test_the_environment_of_a_cpu_engine(tmp_path: Path) -> None:
    """Cores, no telemetry, no network for local models, proxies bypassed on loopback, and the plugin where it belongs."""
    model = tmp_path / "model"
    model.mkdir()
    inherited = {"HF_TOKEN": "hf", "HTTPS_PROXY": "http://proxy", "no_proxy": "intranet", "VLLM_CPU_KVCACHE_SPACE": "9"}
    local = replace(SPECULATIVE, model=str(model), kv_cache_bytes=10**9)
    child = environment(local, python=PYTHON, inherited=inherited)
    assert child["VLLM_CPU_OMP_THREADS_BIND"] == "1"
    assert child["NUMBA_NUM_THREADS"] == "1"
    free = environment(replace(local, cores="any:2"), python=PYTHON, inherited=inherited)
    assert (free["OMP_NUM_THREADS"], free["NUMBA_NUM_THREADS"]) == ("2", "2")
    assert "NUMBA_NUM_THREADS" not in environment(replace(local, cores=None), python=PYTHON, inherited=inherited)
    assert child["VLLM_NO_USAGE_STATS"] == "1"
    assert child["HF_HUB_OFFLINE"] == "1"
    assert "HF_TOKEN" not in child
    assert "VLLM_CPU_KVCACHE_SPACE" not in child
    assert child["NO_PROXY"] == child["no_proxy"] == "intranet,127.0.0.1,localhost,::1"
    assert child["PYTHONPATH"] == str(PLUGIN_FOLDER)
    assert environment(STANDARD, python=PYTHON, inherited=inherited)["PYTHONPATH"] == str(PLUGIN_FOLDER)
    assert "PYTHONPATH" not in environment(replace(STANDARD, device="cuda"), python=PYTHON, inherited=inherited)
    off = replace(local, environment=(("SPECDEMO_CPU_SAMPLING_REPAIR", "0"),))
    assert "PYTHONPATH" not in environment(off, python=PYTHON, inherited=inherited)
    only = environment(local, python=PYTHON, inherited={"VLLM_PLUGINS": "mine"})
    assert only["VLLM_PLUGINS"] == f"mine,{PLUGIN_NAME}"


def test_openmp_is_preloaded_where_it_is_installed(tmp_path: Path) -> None:
    """Intel's OpenMP beside the interpreter is preloaded into the CPU engine, and nothing is if it is absent."""
    python = tmp_path / "bin" / "python"
    assert openmp_library(python) is None
    assert "LD_PRELOAD" not in environment(STANDARD, python=python, inherited={})
    library = tmp_path / "lib" / "libiomp5.so"
    library.parent.mkdir()
    library.touch()
    assert environment(STANDARD, python=python, inherited={})["LD_PRELOAD"] == str(library)
    card = replace(STANDARD, device="cuda")
    assert "LD_PRELOAD" not in environment(card, python=python, inherited={})


def test_the_plugin_folder_holds_what_vllm_looks_for() -> None:
    """The module and its entry point are shipped together, under the name that the command uses."""
    assert (PLUGIN_FOLDER / f"{PLUGIN_NAME}.py").is_file()
    points = (PLUGIN_FOLDER / f"{PLUGIN_NAME}-0.1.dist-info" / "entry_points.txt").read_text()
    assert points == f"[vllm.general_plugins]\n{PLUGIN_NAME} = {PLUGIN_NAME}:apply\n"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["p", "--api-key", "sk-1", "--x=1"], "p --api-key ••• --x=1"),
        (["p", "--api-key=sk-1"], "p --api-key=•••"),
        (["p", "--hf-token=hf-1"], "p --hf-token=•••"),
        (["p", "--base-url=https://me:secret@host/v1"], "p --base-url=https://•••@host/v1"),
        (["p", "--x=http://me:p@ssw0rd@host"], "p --x=http://•••@host"),
        (["p", "--x=http://me:it's \"@host"], "p '--x=http://me:it'\"'\"'s \"@host'"),
        (["p", "--hf-overrides=me:pw@host"], "p --hf-overrides=•••@host"),
        (
            ["p", "--enable-prompt-tokens-details", "--tokenizer=a b"],
            "p --enable-prompt-tokens-details '--tokenizer=a b'",
        ),
    ],
)
def test_display_masks_secrets(words: list[str], shown: str) -> None:
    """C21: the shown command line can be typed again, but holds no key, token or login."""
    assert display(words) == shown
