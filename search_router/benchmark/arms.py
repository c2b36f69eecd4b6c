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
from search_router.config.loader import load_config
from search_router.config.schema import CodeSearchConfig, Config

SHIPPED: Final = "shipped"
ALONE: Final = "codesearch alone"
DAMPING: Final = "_damping"


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
        self.others = tuple(name for name, expert in config.experts.items() if name != self.expert and expert.enabled)

    def flag(self, name: str, value: float) -> str:
        return f"experts.{self.expert}.weights.{name}={value!r}"

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
    """Shipped; the code index without the other experts, and the answer without each of them; each signal off; each damping off, and all
    of them; each signal as the only one of the code index alone."""
    on = {name: value for name, value in weights.signals.items() if value > 0}
    alone = weights.others_off()
    arms = [Arm(SHIPPED), Arm(ALONE, alone)]
    arms += [Arm(f"without {name}", (f"experts.{name}.enabled=false",)) for name in weights.others]
    arms += [Arm(f"no {name}", (weights.flag(name, 0.0),)) for name in on]
    arms += [Arm(f"no {name}", (weights.flag(name, 0.0),)) for name in weights.dampings]
    arms.append(Arm("no damping", tuple(weights.flag(name, 0.0) for name in weights.dampings)))
    arms += [
        Arm(f"only {name}", (*alone, *(weights.flag(other, 1.0 if other == name else 0.0) for other in weights.signals))) for name in on
    ]
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
