"""Closed forms: what a model says of a transfer.

| argument | unit |
|---|---|
| ``loss`` | the probability that a packet is lost, 0 to 1 |
| ``rtt_s``, ``timeout_s``, ``delayed_ack_s``, ``time_between_drops_s`` | seconds, or a text with a unit: ``"560 ms"`` |
| ``window_packets``, ``initial_window``, ``segments`` | packets |
| ``packets_per_ack`` | packets that one acknowledgment answers |
| ``links`` | how many links a bundle has |

``timeout_s`` is three round trips, and a second at least, where nobody says. Each result is a dictionary whose keys end in
their unit: ``throughput_packets_per_s``, ``transfer_time_s``.
"""

from ._native import (
    model_cardwell as cardwell,
    model_mathis as mathis,
    model_mlppp as mlppp,
    model_pftk as pftk,
    model_pgmcc as pgmcc,
)

__all__ = ["cardwell", "mathis", "mlppp", "pftk", "pgmcc"]
