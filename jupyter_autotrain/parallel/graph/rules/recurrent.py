"""Recurrent layers as one op: samples may be split; steps follow one another, and every gate reads the whole state."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import Call, Nest, Rule, nest


def recurrent(call: Call) -> Nest:
    """`out[t, n], state[n] = cell(x[t, n], state[n])` for one layer, in one or both directions.

    Arguments: `samples`, the dim of input and output that counts samples (0 or 1; -1 where there is none: one sample,
    or packed sequences of several lengths), and `states`, the number of states behind the input. States are
    (directions, samples, width); all other inputs are weights.
    """
    samples = call.integer("samples", -1)
    states = call.integer("states", 1)
    sequence = "".join("n" if d == samples else "." for d in range(len(call.inputs[0])))
    state = ".n." if samples >= 0 else ""
    weights = ["." * len(shape) for shape in call.inputs[1 + states :]]
    carried = [state or "." * len(shape) for shape in call.inputs[1 : 1 + states]]
    left = [state or "." * len(shape) for shape in call.outputs[1:]]
    return nest(call, Family.RECURRENT, [sequence, *carried, *weights], [sequence, *left])


RULES: Mapping[str, Rule] = dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), recurrent)
