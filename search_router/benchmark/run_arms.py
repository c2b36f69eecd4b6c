"""The arms of a run over a suite, made from the configuration itself: what is switched off, and what the question adds.

`fused` is the product as it is. `NAME alone` leaves one expert; `no-fusion` asks only the best expert of each question; `no-priors` gives
every expert that has a prior the same; `no-boosts` takes bonuses and penalties out of the fusion; `k=N` sets RRF's constant; `rotated`
declares the experts in another order, which must change nothing; `hinted` tells the true class and `scoped` the right project, so that it
can be seen what classification costs, and what searching every project at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from search_router.benchmark.questions import UnusableData
from search_router.config.schema import Config

FUSED: Final = "fused"
HINTED: Final = "hinted"
SCOPED: Final = "scoped"
KS: Final = (20, 40, 60, 80, 100)
ALONE: Final = " alone"
PATIENT_MS: Final = 60_000


class RunArm(NamedTuple):
    """`flags` are `--set` flags, `request` is added to every question, `rotate` turns the order in which experts are declared, `tells` is
    what the question says of its own labels: `intent` or `project`."""

    name: str
    flags: tuple[str, ...] = ()
    request: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple's default, never changed
    rotate: int = 0
    tells: str = ""

    def job(self, flags: Sequence[str]) -> dict[str, Any]:
        return {"name": self.name, "flags": [*flags, *self.flags], "request": self.request, "rotate": self.rotate}


def known_arms(config: Config) -> dict[str, RunArm]:
    """Every arm of this configuration by name, `fused` first, then in the order of what matters, because time may end before them."""
    enabled = [name for name, expert in config.experts.items() if expert.enabled]
    arms = [
        RunArm(FUSED),
        RunArm("no-fusion", request={"budget": {"max_experts": 1}}),
        RunArm("no-priors", tuple(_flat_priors(config))),
        RunArm("no-boosts", ("fusion.definition_bonus=0.0", "fusion.corroboration_bonus=0.0", "fusion.test_penalty=0.0")),
    ]
    arms += [RunArm(f"k={k}", (f"fusion.k={k}",)) for k in KS]
    arms += [RunArm(SCOPED, tells="project"), RunArm(HINTED, tells="intent"), RunArm("rotated", rotate=max(1, len(config.experts) // 2))]
    arms += [RunArm(f"{name}{ALONE}", tuple(f"experts.{other}.enabled=false" for other in enabled if other != name)) for name in enabled]
    return {arm.name: arm for arm in arms}


def patient_flags(config: Config) -> tuple[str, ...]:
    """Deadlines that nobody meets: a minute an expert, ten the request."""
    caps = (f"experts.{name}.cap_ms={PATIENT_MS}" for name, expert in config.experts.items() if expert.enabled)
    return (f"budget.latency_ms={10 * PATIENT_MS}", *caps)


def _flat_priors(config: Config) -> list[str]:
    return [
        f"priors.{intent.value}.{name}=1.0"
        for intent, priors in config.priors.items()
        for name, prior in priors.items()
        if prior >= config.gate.min_prior
    ]


def choose_arms(names: Sequence[str], config: Config) -> list[RunArm]:
    """The named arms, `fused` always among them and first; `all` is every arm. Raises UnusableData for a name that is not known."""
    known = known_arms(config)
    wanted = list(known) if "all" in names else [FUSED, *names]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UnusableData(f"There is no arm {unknown[0]!r}.", remedy=f"Known: all, {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(wanted)]
