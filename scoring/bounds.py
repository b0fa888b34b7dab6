"""`voxmeter.speech_bounds`: where the speech in a clip begins and ends, if there is any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from voxmeter.scoring.speech import Bounds


def speech_bounds(samples: NDArray[np.floating], rate: int) -> Bounds | None:
    """Return where the speech in a clip begins and ends.

    The rule is that of every time this project reports (docs/metrics.md); its first use in a clip
    with loud background loads a speech detector.

    Args:
        samples: Shape (n,), one channel, floats in [-1, 1].
        rate: Samples a second.

    Returns:
        Bounds with `onset_ms` and `end_ms`, or None where there is no speech.

    Raises:
        ValueError: If the samples are not finite floats of shape (n,), n > 0, or the rate is no
            rate.
    """
    from voxmeter.scoring.speech import speech_bounds as find

    bounds = find(samples, rate)
    return bounds if bounds is not None and bounds.kind == "speech" else None
