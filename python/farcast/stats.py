"""Statistics of replications: intervals, comparisons, steady state. Samples are sequences of numbers."""

from ._native import (
    batch_means,
    benjamini_hochberg,
    bootstrap,
    holm,
    ks_two_sample,
    mser,
    one_way_anova,
    paired,
    t_interval,
    tukey_hsd,
    welch,
)

__all__ = [
    "batch_means",
    "benjamini_hochberg",
    "bootstrap",
    "holm",
    "ks_two_sample",
    "mser",
    "one_way_anova",
    "paired",
    "t_interval",
    "tukey_hsd",
    "welch",
]
