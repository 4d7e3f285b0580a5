"""What counts as a change where both builds were measured in turn. Shares of base's time, unless something else is said."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """They are judgement, frozen before the runs that put them to the proof."""

    screen: float = 0.05  # rate of false discoveries among candidates, which fresh launches must confirm
    confirm: float = 0.01  # chance that any candidate of a stage is confirmed though nothing changed (Hochberg)
    point: float = (
        0.03  # smallest effect of a point that is called a change: where code lies moves it by a percent or two
    )
    family: float = 0.02  # and of a family of several
    again: float = 0.5  # share of that which the confirming launches must show
    same: float = 0.05  # an interval within this on both sides is the same
    power: float = 0.9  # with which the smallest change that would have been seen is seen
    alarm: float = 0.01  # chance below which a control is no coin any more (Hochberg)
    usual: float = 0.9  # share of a run's or a point's pairs whose involuntary switches are usual; more disturb one
    least_pairs: float = 0.5  # of a launch: with fewer left it does not count
    least_launches: float = 0.75  # of a stage: with fewer left a point is not judged


LIMITS = Limits()
