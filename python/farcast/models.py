"""Closed forms: what a model says of a transfer. Times are in seconds, windows in packets; each result names its unit."""

from ._native import (
    model_cardwell as cardwell,
    model_mathis as mathis,
    model_mlppp as mlppp,
    model_pftk as pftk,
    model_pgmcc as pgmcc,
)

__all__ = ["cardwell", "mathis", "mlppp", "pftk", "pgmcc"]
