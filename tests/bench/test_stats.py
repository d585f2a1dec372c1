"""The statistics of the benchmark, against values worked out by hand or by definition."""

import itertools
import math
import random

import pytest

from moorbench import stats


def test_median_of_odd_and_even_samples():
    assert stats.median([5, 1, 3]) == 3
    assert stats.median([4, 1, 3, 2]) == 2.5


def test_median_of_nothing_is_refused():
    with pytest.raises(ValueError):
        stats.median([])


def test_percentile_interpolates_between_ranks():
    values = list(range(1, 102))
    assert stats.percentile(values, 0) == 1
    assert stats.percentile(values, 50) == 51
    assert stats.percentile(values, 99) == 100
    assert stats.percentile([10, 20], 25) == 12.5
    assert stats.percentile([7], 99) == 7


def test_ties_share_the_mean_of_their_ranks():
    assert stats.doubled_ranks([10, 20, 20, 30]) == [2, 5, 5, 8]
    assert stats.doubled_ranks([5, 5, 5]) == [4, 4, 4]


def test_separated_samples_of_five_reach_the_known_p():
    u, p = stats.mann_whitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])
    assert u == 0
    assert p == pytest.approx(2 / 252)
    u, p = stats.mann_whitney([6, 7, 8, 9, 10], [1, 2, 3, 4, 5])
    assert u == 25
    assert p == pytest.approx(2 / 252)


def test_table_value_for_five_against_five():
    # U = 2 is the two-sided 5 % critical value of 5 against 5: p = 8 / 252.
    u, p = stats.mann_whitney([1, 2, 3, 4, 7], [5, 6, 8, 9, 10])
    assert u == 2
    assert p == pytest.approx(8 / 252)


def test_equal_samples_show_no_difference():
    u, p = stats.mann_whitney([3, 3, 3], [3, 3, 3])
    assert u == 4.5
    assert p == 1
    assert stats.mann_whitney([3, 3, 3], [3, 3, 3], exact=False)[1] == 1


def brute_force_p(first, second):
    """The definition: every relabelling, and how many lie as far out as what was seen."""
    values = first + second
    size = len(first)

    def u_of(chosen):
        picked = [values[i] for i in chosen]
        others = [values[i] for i in range(len(values)) if i not in chosen]
        return sum((a > b) + 0.5 * (a == b) for a in picked for b in others)

    centre = size * len(second) / 2
    distance = abs(u_of(tuple(range(size))) - centre)
    far = total = 0
    for chosen in itertools.combinations(range(len(values)), size):
        total += 1
        far += abs(u_of(chosen) - centre) >= distance
    return far / total


@pytest.mark.parametrize("seed", range(12))
def test_exact_p_is_the_definition_with_and_without_ties(seed):
    rng = random.Random(seed)
    first = [rng.randint(0, 6 if seed % 2 else 1000) for _ in range(rng.randint(2, 5))]
    second = [rng.randint(0, 6 if seed % 2 else 1000) for _ in range(rng.randint(2, 6))]
    assert stats.mann_whitney(first, second)[1] == pytest.approx(brute_force_p(first, second))


def test_normal_approximation_agrees_with_the_exact_test():
    rng = random.Random(7)
    first = [rng.gauss(10, 1) for _ in range(14)]
    second = [rng.gauss(10.8, 1) for _ in range(14)]
    exact = stats.mann_whitney(first, second, exact=True)[1]
    normal = stats.mann_whitney(first, second, exact=False)[1]
    assert normal == pytest.approx(exact, rel=0.1)


def test_false_alarms_stay_below_alpha():
    rng = random.Random(3)
    alarms = 0
    for _ in range(600):
        first = [rng.random() for _ in range(7)]
        second = [rng.random() for _ in range(7)]
        alarms += stats.mann_whitney(first, second)[1] < 0.05
    assert alarms / 600 < 0.07


def test_smallest_p_tells_when_runs_are_too_few():
    assert stats.smallest_p(5, 5) == pytest.approx(2 / 252)
    assert stats.smallest_p(3, 3) == pytest.approx(0.1)
    assert stats.smallest_p(1, 1) == 1


def test_interval_of_a_ratio_covers_the_truth():
    rng = random.Random(11)
    covered = 0
    for seed in range(40):
        top = [rng.gauss(200, 20) for _ in range(9)]
        bottom = [rng.gauss(100, 10) for _ in range(9)]
        low, high = stats.ratio_interval(top, bottom, rounds=400, seed=seed)
        assert low <= high
        covered += low <= 2 <= high
    assert covered >= 34


def test_interval_of_constant_samples_is_a_point():
    assert stats.ratio_interval([6, 6, 6], [2, 2, 2]) == (3, 3)


def test_interval_without_a_denominator_is_no_number():
    assert all(math.isnan(end) for end in stats.ratio_interval([1, 2], [0, 0]))


def test_better_means_above_one_for_rates_and_for_times():
    fast_rate, slow_rate = [100, 101, 102, 103, 104], [50, 51, 52, 53, 54]
    seen = stats.compare(fast_rate, slow_rate, more_is_better=True)
    assert seen.verdict == "better" and seen.ratio == pytest.approx(102 / 52)
    seen = stats.compare(fast_rate, slow_rate, more_is_better=False)
    assert seen.verdict == "worse" and seen.ratio == pytest.approx(52 / 102)


def test_overlapping_samples_are_no_difference():
    seen = stats.compare([10, 12, 14, 16, 18], [11, 13, 15, 17, 19], more_is_better=True)
    assert seen.verdict == "no difference"
    assert seen.low < 1 < seen.high


def test_three_runs_never_claim_a_difference():
    seen = stats.compare([100, 101, 102], [1, 2, 3], more_is_better=True)
    assert seen.verdict == "too few runs" and not seen.reachable
