"""Distance between two trainings, and the greatest that it may be."""

LOSS = 1e-5
GRADIENT = 1e-4


def apart(one, other):
    """Largest differences of losses and of gradients."""
    assert [step.keys() for step in one.gradients] == [step.keys() for step in other.gradients]
    losses = [abs(a - b) for a, b in zip(one.losses, other.losses, strict=True)]
    gradients = [
        float((mine[name] - yours[name]).abs().max())
        for mine, yours in zip(one.gradients, other.gradients, strict=True)
        for name in mine
    ]
    return max(losses), max(gradients)
