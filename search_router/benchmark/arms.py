"""Arms of a comparison: the configuration as it is, and what becomes of it when one part is switched off or left alone.

They are made from the configuration itself, whatever signals and experts it has, and are nothing but `--set` flags.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from search_router.benchmark.ask import environment
from search_router.benchmark.asking import Arm
from search_router.benchmark.questions import UnusableData
from search_router.config.experts import CodeSearchConfig
from search_router.config.loader import load_config
from search_router.config.schema import Config

SHIPPED: Final = "shipped"
ALONE: Final = "codesearch alone"
DAMPING: Final = "_damping"
VECTOR: Final = "vector"


class Weights:
    """The ranking weights in a configuration: signals by name, dampings by name, and the flags that set them."""

    def __init__(self, config: Config) -> None:
        found = [(name, expert) for name, expert in config.experts.items() if isinstance(expert, CodeSearchConfig) and expert.enabled]
        if not found:
            raise UnusableData("The configuration has no enabled expert of kind codesearch.", remedy="Enable it.")
        self.expert, settings = found[0]
        table: dict[str, float] = settings.weights.model_dump()
        self.signals = {name: value for name, value in table.items() if not name.endswith(DAMPING)}
        self.dampings = {name: value for name, value in table.items() if name.endswith(DAMPING)}
        self.stages = tuple(name for name, on in settings.stages.model_dump().items() if on is True)
        self.others = tuple(name for name, expert in config.experts.items() if name != self.expert and expert.enabled)

    def flag(self, name: str, value: float) -> str:
        return f"experts.{self.expert}.weights.{name}={value!r}"

    def without_stage(self, name: str) -> str:
        return f"experts.{self.expert}.stages.{name}=false"

    def others_off(self) -> tuple[str, ...]:
        return tuple(f"experts.{name}.enabled=false" for name in self.others)


def read_weights(home: Path, flags: Sequence[str]) -> Weights:
    """The weights of the packaged configuration with these flags.

    Raises:
        UnusableData: nothing in it ranks code.
        ConfigError: the flags are wrong.
    """
    loaded = load_config(roots=[home], environ=environment(home), flags=flags)
    return Weights(loaded.config)


def ablation_arms(weights: Weights) -> list[Arm]:
    """In the order of what matters, because time may end before them.

    Shipped, and without vectors; the code index without the other experts; each signal off, with vectors and without; each signal as the
    only one of the code index alone, and with vectors beside it; each stage off; each damping off, and all; the answer without each
    other expert.
    """
    on = {name: value for name, value in weights.signals.items() if value > 0}
    alone = weights.others_off()
    off = {name: weights.flag(name, 0.0) for name in (*on, *weights.dampings)}
    vector = on.get(VECTOR, 0.0)
    others = [name for name in on if name != VECTOR]

    def only(name: str, beside: float) -> tuple[str, ...]:
        kept = {VECTOR: beside, name: 1.0}
        return (*alone, *(weights.flag(other, kept.get(other, 0.0)) for other in weights.signals))

    arms = [Arm(SHIPPED), *([Arm(f"no {VECTOR}", (off[VECTOR],))] if vector else []), Arm(ALONE, alone)]
    arms += [Arm(f"no {name}", (off[name],)) for name in others]
    arms += [Arm(f"no {name}, no {VECTOR}", (off[name], off[VECTOR])) for name in others if vector]
    arms += [Arm(f"only {name}", only(name, 0.0)) for name in others]
    arms += [Arm(f"only {VECTOR}", only(VECTOR, 1.0))] if vector else []
    arms += [Arm(f"only {name} and {VECTOR}", only(name, vector)) for name in others if vector]
    arms += [Arm(f"stage {name} off", (weights.without_stage(name),)) for name in weights.stages]
    arms += [Arm(f"no {name}", (off[name],)) for name in weights.dampings]
    arms.append(Arm("no damping", tuple(off[name] for name in weights.dampings)))
    arms += [Arm(f"without {name}", (f"experts.{name}.enabled=false",)) for name in weights.others]
    return arms


def named_arms(names: Sequence[str], known: Sequence[Arm]) -> list[Arm]:
    """`NAME` of a known arm, or `NAME:KEY=VALUE;KEY=VALUE` for one of the caller's. Raises UnusableData for a name that is not known."""
    by_name = {arm.name: arm for arm in known}
    found: list[Arm] = []
    for given in names:
        name, colon, flags = given.partition(":")
        if colon:
            found.append(Arm(name, tuple(flag for flag in flags.split(";") if flag)))
        elif name in by_name:
            found.append(by_name[name])
        else:
            raise UnusableData(f"There is no arm {name!r}.", remedy=f"Known: {', '.join(by_name)}; or write NAME:KEY=VALUE;KEY=VALUE.")
    return found
