"""/metrics: exact series, summed over engines, models apart."""

from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.events import SpecCounters
from specdemo.engines.wire.exposition import parse
from tests.fakes.metrics_page import Counters, page
from tests.fakes.script import Step


def line(name: str, value: object, **labels: object) -> str:
    """One sample line."""
    inner = ",".join(f'{key}="{worth}"' for key, worth in {"engine": "0", "model_name": "m", **labels}.items())
    return f"vllm:{name}{{{inner}}} {value}\n"


def spec(drafts: float, drafted: float, accepted: float, **labels: object) -> str:
    """The three speculative totals."""
    return (
        line("spec_decode_num_drafts_total", drafts, **labels)
        + line("spec_decode_num_draft_tokens_total", drafted, **labels)
        + line("spec_decode_num_accepted_tokens_total", accepted, **labels)
    )


def test_created_timestamps_are_no_counters() -> None:
    """The ``_created`` gauges beside the counters never enter a sum (A09)."""
    text = spec(100, 300, 150) + "".join(
        line(f"spec_decode_num_{name}_created", 1.77e9) for name in ("drafts", "draft_tokens", "accepted_tokens")
    )
    found = parse(text).counters("m")
    assert found == SpecCounters(drafts=100, draft_tokens=300, accepted_tokens=150)


def test_engines_of_one_server_are_summed() -> None:
    """Data-parallel engines add up: 90 accepted of 120 drafted (A10)."""
    found = parse(spec(10, 30, 15, engine=0) + spec(30, 90, 75, engine=1)).counters("m")
    assert found is not None
    assert (found.accepted_tokens, found.draft_tokens) == (90, 120)


def test_models_on_one_port_are_kept_apart() -> None:
    """Another model's counters never mix in; an unknown name among several is ambiguous (A10)."""
    scrape = parse(spec(1, 4, 2) + spec(7, 28, 20, model_name="other"))
    assert scrape.models == ("m", "other")
    mine = scrape.counters("m")
    assert mine is not None
    assert mine.accepted_tokens == 2
    assert scrape.counters("alias") is None
    assert scrape.counters() is None
    assert (scrape.speculating("alias"), scrape.draft_limit("alias"), scrape.settings("alias")) == (None, None, {})


def test_an_alias_means_the_only_model() -> None:
    """Metrics carry the first served name; a request by another name still finds them."""
    found = parse(spec(1, 4, 2)).counters("alias")
    assert found is not None
    assert found.drafts == 1


def test_a_speculative_engine_shows_by_its_series() -> None:
    """Presence of the series tells speculation on, the positions tell k; a standard engine has neither."""
    counters = Counters(k=3)
    counters.step(Step([1, 2, 3], accepted=2, drafted=3))
    scrape = parse(page(counters, "m", filler=50))
    assert (scrape.speculating("m"), scrape.draft_limit("m")) == (True, 3)
    found = scrape.counters("m")
    assert found is not None
    assert list(found.accepted_per_position) == [1, 1, 0]
    assert found.epoch == counters.started
    assert scrape.settings("m")["enable_prefix_caching"] == "False"
    standard = parse(page(Counters(k=None), "m"))
    assert (standard.speculating("m"), standard.draft_limit("m")) == (False, None)
    assert parse("").speculating() is None
    assert parse("process_start_time_seconds 5\n").epoch == 5


def test_blanks_between_labels_keep_models_apart() -> None:
    """The format allows blanks around names, values and braces; models stay apart all the same (A10)."""
    name = "vllm:spec_decode_num_drafts_total"
    spaced = f'{name}{{ model_name = "a", engine = "0" }} 1\n  {name} {{model_name="b"}}\t2 1700000000\n{name}{{model_name="c"}}3\n'
    scrape = parse(spaced)
    assert scrape.models == ("a", "b", "c")
    assert [found.drafts if (found := scrape.counters(model)) else None for model in scrape.models] == [1, 2, 3]


def test_a_label_without_end_costs_linear_work() -> None:
    """Each letter of a hostile engine's label is looked at once, not once for every letter before it."""
    text = "vllm:num_requests_running{" + "a" * 300_000 + ',model_name="m"} 1\n'
    found = parse(text).counters("m")
    assert found is not None
    assert found.requests_running == 1


def test_older_servers_count_no_drafts() -> None:
    """Series of tokens alone tell that an engine speculates."""
    scrape = parse(line("spec_decode_num_draft_tokens_total", 300) + line("spec_decode_num_accepted_tokens_total", 150))
    assert scrape.speculating("m") is True
    assert scrape.counters("m") == SpecCounters(draft_tokens=300, accepted_tokens=150)


def test_nonsense_is_skipped() -> None:
    """Values that are no finite numbers, strange positions, labels with escapes and braces."""
    text = (
        line("num_requests_running", "NaN")
        + line("num_requests_waiting", "+Inf")
        + line("generation_tokens_total", "x1")
        + line("prefix_cache_hits_total", -3)
        + line("spec_decode_num_accepted_tokens_per_pos_total", 5, position="-1")
        + line("spec_decode_num_accepted_tokens_per_pos_total", 5, position="99999")
        + line("spec_decode_num_accepted_tokens_per_pos_total", 5, position="4000")
        + line("num_preemptions_total", 3, model_name='a\\"}b\\n\\\\')
        + "vllm:num_requests_running_extra 9\nxvllm:num_requests_running 9\n"
    )
    scrape = parse(text)
    assert scrape.models == ("m", 'a"}b\n\\')
    found = scrape.counters("m")
    assert found == SpecCounters()
    assert scrape.speculating("m") is None


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([spec(1, 2, 3), "{", '"', "}\n", "vllm:num_requests_running{"]), max_size=9).map("".join)
)
def test_any_text_is_read(text: str) -> None:
    """No text raises, and what is found is finite."""
    scrape = parse(text)
    for model in scrape.models:
        assert scrape.counters(model) is not None
