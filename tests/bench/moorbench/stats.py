"""Medians, a bootstrap interval for a ratio, and the Mann-Whitney U test. Pure."""

import math
import random
from collections import Counter, namedtuple

# Below this size of the pooled sample the U test is exact, above it is the normal approximation.
EXACT_LIMIT = 30
BOOTSTRAP_ROUNDS = 2000

Comparison = namedtuple("Comparison", "ratio low high p reachable verdict")


def median(values):
    ordered = sorted(values)
    if not ordered:
        raise ValueError("the median of nothing")
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values, percent):
    """The value below which `percent` of the sample lies, between ranks linearly."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("a percentile of nothing")
    rank = (len(ordered) - 1) * percent / 100
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def ratio_interval(ours, theirs, confidence=0.95, rounds=BOOTSTRAP_ROUNDS, seed=1):
    """Percentile bootstrap of median(ours) / median(theirs): (low, high)."""
    rng = random.Random(seed)
    ratios = []
    for _ in range(rounds):
        bottom = median(rng.choices(theirs, k=len(theirs)))
        if bottom > 0:
            ratios.append(median(rng.choices(ours, k=len(ours))) / bottom)
    if not ratios:
        return (math.nan, math.nan)
    tail = 100 * (1 - confidence) / 2
    return (percentile(ratios, tail), percentile(ratios, 100 - tail))


def doubled_ranks(values):
    """Twice the mid-ranks (whole numbers even with ties), in the order of `values`."""
    counts = Counter(values)
    ranks, before = {}, 0
    for value in sorted(counts):
        ranks[value] = 2 * before + counts[value] + 1
        before += counts[value]
    return [ranks[value] for value in values]


def _rank_sum_distribution(ranks, size):
    """How many subsets of `size` ranks have each sum: {sum: count}."""
    ways = [Counter() for _ in range(size + 1)]
    ways[0][0] = 1
    for rank in ranks:
        for chosen in range(size, 0, -1):
            for total, count in ways[chosen - 1].items():
                ways[chosen][total + rank] += count
    return ways[size]


def _exact_p(ranks, size, observed):
    distribution = _rank_sum_distribution(ranks, size)
    # Compared in whole numbers: the expected sum times the pooled size is one.
    pooled = len(ranks)
    expected = size * sum(ranks)
    distance = abs(observed * pooled - expected)
    extreme = sum(
        count
        for total, count in distribution.items()
        if abs(total * pooled - expected) >= distance
    )
    return extreme / sum(distribution.values())


def _normal_p(first_size, second_size, u, values):
    pooled = first_size + second_size
    ties = sum(count**3 - count for count in Counter(values).values())
    variance = first_size * second_size / 12 * (pooled + 1 - ties / (pooled * (pooled - 1)))
    if variance <= 0:
        return 1.0
    distance = max(abs(u - first_size * second_size / 2) - 0.5, 0)
    return math.erfc(distance / math.sqrt(variance) / math.sqrt(2))


def mann_whitney(first, second, exact=None):
    """
    Two-sided test whether one sample tends to larger values: (U of `first`, p).
    `exact`: True, False, or None to choose by the size of the samples.
    """
    if not first or not second:
        raise ValueError("the U test of an empty sample")
    values = list(first) + list(second)
    ranks = doubled_ranks(values)
    observed = sum(ranks[: len(first)])
    u = observed / 2 - len(first) * (len(first) + 1) / 2
    if exact is None:
        exact = len(values) <= EXACT_LIMIT
    if exact:
        return u, _exact_p(ranks, len(first), observed)
    return u, _normal_p(len(first), len(second), u, values)


def smallest_p(first_size, second_size):
    """The p that two fully separated samples of these sizes reach: what can be shown at most."""
    return min(1.0, 2 / math.comb(first_size + second_size, first_size))


def compare(ours, theirs, more_is_better, alpha=0.01):
    """
    How many times better `ours` is (a ratio above 1 is better, whatever the unit), with its
    95 % interval, the p of the U test, whether these sample sizes can reach `alpha` at all, and
    the verdict: "better", "worse", "no difference" or "too few runs".
    """
    if more_is_better:
        top, bottom = ours, theirs
    else:
        top, bottom = theirs, ours
    bottom_median = median(bottom)
    ratio = median(top) / bottom_median if bottom_median > 0 else math.nan
    low, high = ratio_interval(top, bottom)
    _, p = mann_whitney(ours, theirs)
    reachable = smallest_p(len(ours), len(theirs)) < alpha
    if not reachable:
        verdict = "too few runs"
    elif p >= alpha:
        verdict = "no difference"
    else:
        verdict = "better" if ratio > 1 else "worse"
    return Comparison(ratio, low, high, p, reachable, verdict)
