"""Settings: the order of sources, names, types, secrets."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from specdemo.errors import ConfigError
from specdemo.settings import described, load, markdown, parse_assignment


def test_nothing_set_is_all_defaults(tmp_path: Path) -> None:
    """Without any source every setting has its default and says so."""
    loaded = load(environ={}, folder=tmp_path)

    assert loaded.origins == {}
    assert {"default"} == {row["origin"] for row in loaded.rows()}
    assert loaded.settings.engine.model == "embedded"


def test_sources_in_order_of_force(tmp_path: Path) -> None:
    """SPECDEMO_* < .env < TOML < command line, and the winner is named as the origin."""
    environ = {"SPECDEMO_SERVER__PORT": "1", "SPECDEMO_ENGINE__MODEL": "env", "SPECDEMO_ENGINE__DTYPE": "env"}
    (tmp_path / ".env").write_text("SPECDEMO_SERVER__PORT=2\nSPECDEMO_ENGINE__MODEL=dotenv\nOTHER_NAME=x\n")
    (tmp_path / "specdemo.toml").write_text("[server]\nport = 3\n[engine]\nmax_model_len = 99\n")

    loaded = load({"server.port": 4, "engine.k": None}, environ=environ, folder=tmp_path)

    assert (
        loaded.settings.server.port,
        loaded.settings.engine.model,
        loaded.settings.engine.dtype,
        loaded.settings.engine.max_model_len,
    ) == (4, "dotenv", "env", 99)
    assert loaded.origins == {
        "server.port": "command line",
        "engine.model": ".env",
        "engine.dtype": "environment",
        "engine.max_model_len": "specdemo.toml",
    }


def test_named_toml_file(tmp_path: Path) -> None:
    """SPECDEMO_CONFIG names another TOML file, and --config yet another, which wins."""
    (tmp_path / "a.toml").write_text("[server]\nport = 11\n")
    (tmp_path / "b.toml").write_text("[server]\nport = 12\n")
    environ = {"SPECDEMO_CONFIG": "a.toml"}

    assert load(environ=environ, folder=tmp_path).settings.server.port == 11
    assert load(environ=environ, folder=tmp_path, config=Path("b.toml")).settings.server.port == 12
    with pytest.raises(ConfigError, match=r"c\.toml does not exist"):
        load(environ={"SPECDEMO_CONFIG": "c.toml"}, folder=tmp_path)


@pytest.mark.parametrize(
    "name,near",
    [
        ("SPECDEMO_SERVER__PROT", "SPECDEMO_SERVER__PORT"),
        ("SPECDEMO_PORT", "SPECDEMO_SERVER__PORT"),
        ("SPECDEMO_STANDARD__BASEURL", "SPECDEMO_STANDARD__BASE_URL"),
        ("SPECDEMO_ENGIN__MODEL", "SPECDEMO_ENGINE__MODEL"),
    ],
)
def test_unknown_variable(tmp_path: Path, name: str, near: str) -> None:
    """A SPECDEMO_* name that does not exist is an error with the nearest right one, in the environment and in .env."""
    with pytest.raises(ConfigError, match=f"{name} in the environment.*{near}"):
        load(environ={name: "x"}, folder=tmp_path)

    (tmp_path / ".env").write_text(f"{name}=x\n")
    with pytest.raises(ConfigError, match=f"{name} in .env.*{near}"):
        load(environ={}, folder=tmp_path)


def test_unknown_names_elsewhere(tmp_path: Path) -> None:
    """The same holds for the TOML file, for --set, and for a name that resembles nothing."""
    (tmp_path / "specdemo.toml").write_text("[engine]\nmax_model_length = 1\n")
    with pytest.raises(ConfigError, match=r"engine.max_model_length in specdemo.toml.*engine.max_model_len\?"):
        load(environ={}, folder=tmp_path)
    (tmp_path / "specdemo.toml").unlink()
    with pytest.raises(ConfigError, match=r"engine.modle in the command line.*engine.model\?"):
        load({"engine.modle": "x"}, environ={}, folder=tmp_path)
    with pytest.raises(ConfigError, match="`specdemo config` lists them all"):
        load(environ={"SPECDEMO_QQQQQQ": "x"}, folder=tmp_path)


@pytest.mark.parametrize(
    "name,value,sentence",
    [
        ("SERVER__PORT", "lots", 'server.port (environment) must be a whole number, not "lots".'),
        ("SERVER__PORT", "70000", 'server.port (environment) must be at most 65535, not "70000".'),
        ("LIMITS__RUN_S", "0", 'limits.run_s (environment) must be above 0.0, not "0".'),
        ("LIMITS__RUN_S", "inf", 'limits.run_s (environment) must be a finite number, not "inf".'),
        ("MODE", "demo", "mode (environment) must be one of 'auto', 'managed', 'attached' or 'replay', not \"demo\"."),
        ("ENGINE__CPU_REPAIR", "perhaps", 'engine.cpu_repair (environment) must be true or false, not "perhaps".'),
        ("ENGINE__FLAGS", "{x", 'engine.flags (the environment) must be JSON, not "{x".'),
        (
            "SERVER__ROOT_PATH",
            "demo",
            'server.root_path (environment) must be empty or a path that starts with /, not "demo".',
        ),
    ],
)
def test_wrong_value(tmp_path: Path, name: str, value: str, sentence: str) -> None:
    """A value of the wrong type or range is one sentence: the setting, its source, the rule, the value."""
    with pytest.raises(ConfigError) as caught:
        load(environ={f"SPECDEMO_{name}": value}, folder=tmp_path)

    assert sentence == str(caught.value)


def test_several_wrong_values(tmp_path: Path) -> None:
    """All faults are told at once, one line each."""
    environ = {"SPECDEMO_SERVER__PORT": "x", "SPECDEMO_LIMITS__MAX_TOKENS": "-1"}
    with pytest.raises(ConfigError) as caught:
        load(environ=environ, folder=tmp_path)

    assert len(str(caught.value).splitlines()) == 2


def test_secrets_are_masked(tmp_path: Path) -> None:
    """C21: neither rows nor errors nor the printed settings show a key, a password, or one inside an address."""
    environ = {
        "SPECDEMO_STANDARD__API_KEY": "sk-test-123",
        "SPECDEMO_STANDARD__BASE_URL": "http://user:pw-secret@host:1/v1",
        "SPECDEMO_SERVER__AUTH": "admin:hunter22",
    }
    loaded = load(environ=environ, folder=tmp_path)
    shown = json.dumps(loaded.rows()) + repr(loaded.settings.standard.api_key)

    for secret in ("sk-test-123", "pw-secret", "hunter22"):
        assert secret not in shown
    assert loaded.settings.standard.api_key is not None
    assert loaded.settings.standard.api_key.get_secret_value() == "sk-test-123"

    (tmp_path / "specdemo.toml").write_text("[standard]\napi_key = 987654\n")
    with pytest.raises(ConfigError) as caught:
        load(environ={}, folder=tmp_path)
    assert "987654" not in str(caught.value)


def test_structured_settings(tmp_path: Path) -> None:
    """Speculation may be a preset, JSON text or a TOML table; flags a table: each source ends in one frozen form."""
    config = {"method": "ngram", "num_speculative_tokens": 3}
    text = load(environ={"SPECDEMO_ENGINE__SPECULATION": json.dumps(config)}, folder=tmp_path).settings
    preset = load(environ={"SPECDEMO_ENGINE__SPECULATION": "ngram"}, folder=tmp_path).settings
    (tmp_path / "specdemo.toml").write_text(
        '[engine]\nspeculation = {method = "ngram", num_speculative_tokens = 3}\n'
        '[engine.flags]\n"--block-size" = 16\nenable-chunked-prefill = true\nno-thing = false\n'
    )
    table = load(environ={}, folder=tmp_path).settings

    assert config == json.loads(text.engine.speculation or "") == json.loads(table.engine.speculation or "")
    assert preset.engine.speculation == "ngram"
    assert table.engine.flags == (("block-size", "16"), ("enable-chunked-prefill", ""))
    assert hash(table) == hash(load(environ={}, folder=tmp_path).settings)


def test_one_underscore_is_enough(tmp_path: Path) -> None:
    """SPECDEMO_ENGINE_PYTHON means SPECDEMO_ENGINE__PYTHON; an empty variable is as good as none."""
    environ = {"SPECDEMO_ENGINE_PYTHON": "/opt/python", "SPECDEMO_ENGINE__MODEL": ""}
    settings = load(environ=environ, folder=tmp_path).settings

    assert (Path("/opt/python"), "embedded") == (settings.engine.python, settings.engine.model)


def test_frozen(tmp_path: Path) -> None:
    """Nobody changes settings after loading."""
    settings = load(environ={}, folder=tmp_path).settings

    with pytest.raises(ValueError, match="frozen"):
        settings.server.port = 1  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        settings.mode = "replay"


def test_hosted_space(tmp_path: Path) -> None:
    """C24: on a hosted Space the page listens where the host expects it and is public; a setting still wins."""
    environ = {"SPACE_ID": "who/what", "GRADIO_SERVER_PORT": "7861"}
    hosted = load(environ=environ, folder=tmp_path).settings.server
    chosen = load(environ={**environ, "SPECDEMO_SERVER__PORT": "9000"}, folder=tmp_path).settings.server

    assert (hosted.host, hosted.port, hosted.public) == ("0.0.0.0", 7861, True)
    assert chosen.port == 9000


def test_unreadable_files(tmp_path: Path) -> None:
    """Files that are not text or not TOML are one sentence, not a traceback."""
    (tmp_path / "specdemo.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read as text"):
        load(environ={}, folder=tmp_path)
    (tmp_path / "specdemo.toml").write_text("x =")
    with pytest.raises(ConfigError, match="is not TOML"):
        load(environ={}, folder=tmp_path)
    (tmp_path / "specdemo.toml").unlink()
    (tmp_path / ".env").write_bytes(b"SPECDEMO_MODE=\xff\n")
    with pytest.raises(ConfigError, match=r"\.env cannot be read"):
        load(environ={}, folder=tmp_path)


@pytest.mark.parametrize(
    "text,expected",
    [
        ("engine.model=a=b", ("engine.model", "a=b")),
        ('engine.flags={"x": 1}', ("engine.flags", {"x": 1})),
        ("server.port= 80", ("server.port", " 80")),
    ],
)
def test_assignment(text: str, expected: tuple[str, object]) -> None:
    """--set splits at the first equals sign and reads objects as JSON."""
    assert expected == parse_assignment(text)


@pytest.mark.parametrize("text", ["engine.model", "engine.flags={x"])
def test_bad_assignment(text: str) -> None:
    """A --set without a value, or with broken JSON, is one sentence."""
    with pytest.raises(ConfigError, match="--set"):
        parse_assignment(text)


def test_every_setting_is_described() -> None:
    """Each setting has a sentence, a variable of its own, and a row in the table for README."""
    entries = described()
    table = markdown()

    assert len(entries) == len({entry.variable for entry in entries})
    for entry in entries:
        assert entry.description.endswith("."), entry.name
        assert f"| `{entry.variable}` | `{entry.name}` |" in table


def test_every_variable_works(tmp_path: Path) -> None:
    """Each variable of the table is accepted: its own default, read back, changes nothing."""
    reference = load(environ={}, folder=tmp_path).settings
    for entry in described():
        if entry.default:
            assert reference == load(environ={entry.variable: entry.default}, folder=tmp_path).settings


def test_process_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without arguments the process's own environment and working folder are read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECDEMO_SERVER__PORT", "123")
    assert "SPECDEMO_SERVER__PORT" in os.environ

    assert load().settings.server.port == 123


def test_passwords_in_addresses_are_masked(tmp_path: Path) -> None:
    """C21: without a scheme, with "@" inside, as a query, in a flag; as text and as JSON."""
    environ = {
        "SPECDEMO_STANDARD__BASE_URL": "user:secret99@host:8000",
        "SPECDEMO_SPECULATIVE__BASE_URL": "http://user:p@secret99@host/v1?api_key=secret99",
        "SPECDEMO_ENGINE__FLAGS": '{"hf-token": "secret99", "tokenizer": "http://u:secret99@h", "block-size": 16}',
    }
    rows = {row["name"]: row for row in load(environ=environ, folder=tmp_path).rows()}
    assert "secret99" not in repr(rows)
    assert rows["standard.base_url"]["shown"] == "********@host:8000"
    assert rows["engine.flags"]["value"]["block-size"] == "16"


def test_text_files_as_they_stand(tmp_path: Path) -> None:
    """A "$" in a password is no variable; a byte order mark before the first name is none of its letters (E03)."""
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfSPECDEMO_STANDARD__API_KEY='pa${x}ss'\n")
    (tmp_path / "specdemo.toml").write_bytes(b'\xef\xbb\xbflog_level = "debug"\n')
    settings = load(environ={"x": "y"}, folder=tmp_path).settings
    assert settings.standard.api_key is not None
    assert settings.standard.api_key.get_secret_value() == "pa${x}ss"
    assert settings.log_level == "debug"


_DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "toml",
    ["a=" + "[" * 5000 + "]" * 5000, "a=" + "{a=" * 3000 + "1" + "}" * 3000, ".".join(["a"] * 3000) + "=1",
     f"server.port={_DIGITS}", f"engine.seed=0x{'f' * 9000}", f"standard.base_url=0x{'f' * 9000}",
     f"engine.flags={{a=0x{'f' * 9000}}}", f"engine.speculation={{a=0x{'f' * 9000}}}", 'data_dir="a\\u0000b"'],
)  # fmt: skip
def test_hostile_toml(tmp_path: Path, toml: str) -> None:
    """Depth and length beyond what can be read are one sentence, and a short one."""
    (tmp_path / "specdemo.toml").write_text(toml)
    with pytest.raises(ConfigError) as caught:
        load(environ={}, folder=tmp_path).rows()
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000, f'{{"a":{_DIGITS}}}'])
def test_hostile_variables(tmp_path: Path, text: str) -> None:
    """The same for JSON in a variable and after --set."""
    with pytest.raises(ConfigError, match="must be JSON"):
        load(environ={"SPECDEMO_ENGINE__FLAGS": text}, folder=tmp_path)
    with pytest.raises(ConfigError, match="looks like JSON"):
        parse_assignment(f"engine.flags={text}")


@pytest.mark.parametrize(("given", "port"), [("²", 7860), (_DIGITS, 7860), ("", 7860), ("8080", 8080)])
def test_port_of_a_space(tmp_path: Path, given: str, port: int) -> None:
    """C24: what is no number is no port."""
    assert load(environ={"SPACE_ID": "a/b", "GRADIO_SERVER_PORT": given}, folder=tmp_path).settings.server.port == port


@pytest.mark.parametrize("given", ["secret99", "secret99:", ":secret99"])
def test_sign_in_needs_name_and_password(tmp_path: Path, given: str) -> None:
    """A browser asks for both, so nobody could sign in; the sentence does not repeat the secret."""
    with pytest.raises(ConfigError) as caught:
        load(environ={"SPECDEMO_SERVER__AUTH": given}, folder=tmp_path)
    assert str(caught.value) == "server.auth (environment) must be name:password; a browser asks for both."
