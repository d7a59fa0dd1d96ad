"""Samples → results."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from specdemo.bench.jsonable import jsonable, strict_json
from specdemo.bench.plan import BenchPlan
from specdemo.bench.summary import Summary, summarise, with_memory
from specdemo.core.prompt import Sampling
from tests.fakes.bench_samples import failed, prompts, session


def results(plan: BenchPlan, samples: object) -> Summary:
    return summarise(plan, samples, planned=100)  # type: ignore[arg-type]


def test_a_true_speedup_is_found_and_certified() -> None:
    """1.5x with 1 % noise over 12 prompts: inside the interval, faster, control passed."""
    plan = BenchPlan(prompts(12))
    summary = results(plan, session(plan, 1.5))
    assert summary.suite is not None
    assert summary.suite.speedup is not None
    assert summary.suite.speedup.holds(1.5)
    assert summary.suite.verdict.word == "faster"
    assert summary.control.passed is True
    assert summary.certified
    assert summary.why_not_certified == ()


def test_workloads_are_kept_apart_and_the_mix_is_warned_about() -> None:
    """2.5x on short prompts and 0.8x on long ones: two words, and headlines that depend on the mix."""
    plan = BenchPlan(prompts(8, "code") + prompts(8, "chat"))
    samples = [
        replace(s, decode_s=s.decode_s * 4, decode_tokens=s.decode_tokens * 4, output_tokens=401)  # type: ignore[operator]
        if s.place.prompt_id.startswith("chat")
        else s
        for s in session(plan, lambda name, level: 2.5 if name.startswith("code") else 0.8)
    ]
    summary = results(plan, samples)
    assert {r.name: r.verdict.word for r in summary.workloads} == {"code": "faster", "chat": "slower"}
    assert summary.suite is not None
    assert summary.suite.depends_on_mix


def test_null_test_comes_out_as_no_difference() -> None:
    """The standard engine against itself over the whole plan passes; a difference there fails it."""
    plan = BenchPlan(prompts(12), null=True)
    assert results(plan, session(plan, 1.0)).null_passed is True
    skewed = [replace(s, decode_s=(s.decode_s or 0) * (0.8 if s.place.arm == "B" else 1.0)) for s in session(plan, 1.0)]
    assert results(plan, skewed).null_passed is False
    assert results(BenchPlan(prompts(12)), []).null_passed is None


def test_forty_refused_requests_take_the_winner_away() -> None:
    """Failures are counted by reason beside the rate, latency is over successes, and nobody wins without a caveat (D12)."""
    plan = BenchPlan(prompts(20), control_prompts=0)
    samples = session(plan, 2.0)
    refused = [s for s in samples if s.place.arm == "B"][:16]
    summary = results(plan, [failed(s) if s in refused else s for s in samples])
    assert summary.suite is not None
    arm = summary.suite.arm_b
    assert (arm.requests, arm.finished, arm.failed, arm.failures) == (40, 24, 16, (("rejected", 16),))
    assert not summary.certified
    assert any("16 of 40 requests failed" in why for why in summary.why_not_certified)
    assert any("16 rejected" in caveat for caveat in summary.suite.caveats)
    assert arm.tpot[0].n == 24


def test_unequal_lengths_compare_time_per_token() -> None:
    """200 tokens in 4 s against 120 in 3 s is slower, not 1.33x faster, and the difference is flagged (D16)."""
    plan = BenchPlan(prompts(6), control_prompts=0)
    samples = []
    for s in session(plan, 1.0, noise=0.001):
        tokens, seconds = (200, 4.0) if s.place.arm == "A" else (120, 3.0)
        samples.append(replace(s, output_tokens=tokens, decode_tokens=tokens, decode_s=seconds))
    suite = results(plan, samples).suite
    assert suite is not None
    assert suite.speedup is not None
    assert suite.speedup.estimate == pytest.approx(0.8)
    assert suite.totals is not None
    assert suite.totals.estimate == pytest.approx(0.8)
    assert suite.verdict.word == "slower"
    assert suite.lengths_differ == 6


def test_levels_are_compared_on_the_same_prompts_and_show_the_break_even() -> None:
    """Gain that falls with load: 2.0x, 1.4x, 0.8x; the limit is the level where the interval reaches 1 (A34)."""
    plan = BenchPlan(prompts(20), levels=(1, 2, 8), load_prompts=8)
    gain = {1: 2.0, 2: 1.4, 8: 0.8}
    summary = results(plan, session(plan, lambda name, level: gain[level]))
    assert [r.level for r in summary.levels] == [1, 2, 8]
    assert [r.prompts for r in summary.levels] == [8, 8, 8]
    for result in summary.levels:
        assert result.speedup is not None
        assert result.speedup.estimate == pytest.approx(gain[result.level], rel=0.03)
    assert summary.break_even == 8
    assert summary.levels[-1].verdict.word == "slower"
    assert summary.suite is not None
    assert summary.suite.prompts == 20
    assert summary.steps_flat is True


def test_block_noise_under_load_widens_the_interval() -> None:
    """When whole blocks differ by a tenth, prompts inside them are no independent witnesses."""
    plan = BenchPlan(prompts(16), levels=(4,))
    quiet = session(plan, 1.3, noise=0.005)
    factor = {0: 1.1, 1: 0.95, 2: 1.05, 3: 0.9}
    shaken = [replace(s, decode_s=(s.decode_s or 0) * factor[s.place.slot]) for s in quiet]
    widths = []
    for samples in (quiet, shaken):
        suite = results(plan, samples).suite
        assert suite is not None
        assert suite.speedup is not None
        widths.append(suite.speedup.half_width or 0.0)
    assert widths[1] > 4 * widths[0]
    assert widths[1] > 0.1


def test_noise_and_missing_control_forbid_certification() -> None:
    """A host on which repeats differ by 30 % certifies nothing; nor does a run without a control."""
    plan = BenchPlan(prompts(12))
    noisy = results(plan, session(plan, 1.5, noise=0.3))
    assert noisy.control.noisy
    assert any("noisy host" in why for why in noisy.why_not_certified)
    bare = BenchPlan(prompts(12), control_prompts=0)
    assert results(bare, session(bare, 1.5)).why_not_certified == ("there was no A/A control",)


def test_early_stop_claims_nothing_beyond_the_data() -> None:
    """After 37 samples there are results for the prompts done; after none there is no suite."""
    plan = BenchPlan(prompts(20), control_prompts=0)
    partial = results(plan, session(plan, 1.5)[:37])
    assert partial.done == 37
    assert partial.suite is not None
    assert partial.suite.prompts in {9, 10}
    empty = results(plan, [])
    assert empty.suite is None
    assert empty.workloads == ()
    assert not empty.certified
    one = results(plan, session(plan, 1.5)[:4])
    assert one.suite is not None
    assert one.suite.verdict.word == "not_enough_data"


def test_the_newest_attempt_of_a_request_counts() -> None:
    """A re-run quad replaces its first attempt and is counted."""
    plan = BenchPlan(prompts(6), control_prompts=0)
    first = session(plan, 1.5)
    again = [replace(s, place=replace(s.place, attempt=1), decode_s=(s.decode_s or 0) * 3) for s in first[:4]]
    summary = results(plan, first + again)
    assert summary.reruns == 1
    assert summary.done == 24


def test_one_and_zero_token_replies_stay_out_of_rates() -> None:
    """Replies of 0 and 1 tokens have no time per token and cause no division by zero (D14)."""
    plan = BenchPlan(prompts(6), control_prompts=0)
    samples = session(plan, 1.5)
    odd = [
        replace(samples[0], output_tokens=0, decode_s=None, decode_tokens=None, tpot_s=None),
        replace(samples[1], output_tokens=1, decode_s=None, decode_tokens=None, tpot_s=None),
        replace(samples[2], decode_s=0.0),
    ]
    summary = results(plan, odd + samples[3:])
    assert summary.suite is not None
    assert summary.suite.arm_a.failures == (("empty", 1),) or summary.suite.arm_b.failures == (("empty", 1),)
    assert "NaN" not in strict_json(summary)


def test_throughput_and_the_steady_window() -> None:
    """Requests that overlap are counted once on the clock; the tail where workers idle is left out of the steady rate."""
    plan = BenchPlan(prompts(4), levels=(2,), load_prompts=None, per_worker=2)
    samples = []
    for s in session(plan, 1.0, noise=0.0):
        turn = int(s.place.prompt_id[-1])
        start = 100 * s.place.slot + (turn // 2) * 10.0
        length = 10.0 if turn != 3 else 20.0
        samples.append(replace(s, intended_at=start, started_at=start, ended_at=start + length, ttft_s=0.0))
    suite = results(plan, samples).suite
    assert suite is not None
    assert suite.arm_a.tokens_per_s == pytest.approx(4 * 101 / 30)
    assert suite.arm_a.steady_tokens_per_s == pytest.approx((3 * 101 + 101 / 2) / 20)


def test_acceptance_three_ways_and_predicted_speedup() -> None:
    """Rate, length and tokens per step are pooled with their own formulas; the corrected line uses step costs (D23)."""
    plan = BenchPlan(prompts(5), control_prompts=0)
    suite = results(plan, session(plan, 1.0, noise=0.0)).suite
    assert suite is not None
    pool = suite.acceptance
    assert pool.rate == pytest.approx(50 / 120)
    assert pool.mean_length == pytest.approx(1 + 50 / 40)
    assert pool.tokens_per_step == pytest.approx(100 / 50)
    assert pool.coverage == pytest.approx(40 / 50)
    assert pool.per_token == pytest.approx(50 / 80)
    assert pool.per_position == pytest.approx((30 / 40, 10 / 40, 5 / 40, 0.0))
    assert pool.predicted == pytest.approx(2.0 / (0.2 * 1.1 + 0.8 * 2.0))


def test_nothing_drafted_has_no_acceptance() -> None:
    """No drafts is said in words and never shown as 0 % or NaN (A07)."""
    plan = BenchPlan(prompts(3), control_prompts=0)
    samples = [
        replace(s, drafted=0, accepted=0, drafting_steps=0, histogram=()) if s.place.arm == "B" else s
        for s in session(plan, 1.0)
    ]
    summary = results(plan, samples)
    assert summary.suite is not None
    assert summary.suite.acceptance.rate is None
    assert summary.suite.acceptance.reason == "No drafts were proposed."
    assert summary.identity.word == "not_tested"


def test_sampling_has_no_identity_verdict() -> None:
    """Above temperature 0 no token identity is claimed (A31)."""
    plan = BenchPlan(prompts(3), sampling=Sampling(max_tokens=64, temperature=0.8))
    assert results(plan, session(plan, 1.0)).identity.word == "not_comparable"


def test_the_summary_is_strict_json() -> None:
    """Not-a-number and infinity become null, and what has no JSON form is refused."""
    plan = BenchPlan(prompts(3))
    summary = results(plan, session(plan, 1.5))
    document = json.loads(strict_json(summary))
    assert summary.suite is not None
    assert summary.suite.speedup is not None
    assert document["suite"]["speedup"]["estimate"] == summary.suite.speedup.estimate
    assert jsonable([math.nan, math.inf, 1.5, "é\ud800"]) == [None, None, 1.5, "é?"]
    with pytest.raises(TypeError):
        jsonable(object())


def test_memory_stands_beside_the_arm() -> None:
    """Both engines' memory is carried into a result."""
    plan = BenchPlan(prompts(3))
    suite = results(plan, session(plan, 1.5)).suite
    assert suite is not None
    assert with_memory(suite, 1, 2).arm_b.memory_bytes == 2
