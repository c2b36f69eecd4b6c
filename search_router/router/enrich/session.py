"""The session bandit's memory: outcomes of a session as rows, read before the fan-out and written after the answer left.

What is drawn from them is `bandit`, which is pure. Nothing here can fail a request: where rows cannot be read, the configured priors stand.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from search_router.config.schema import BanditConfig
from search_router.router.enrich.bandit import MAX_STEPS, Draw, Observation, draw_weights, observe, seed_of
from search_router.router.enrich.outcomes import REWARD_PM, Outcome
from search_router.router.enrich.owner import Owner
from search_router.router.plan import Plan

MAX_ROWS = MAX_STEPS * 16
_READ = (
    "SELECT outcome_receipt_id || ' ' || receipt_id, expert, gained_pm, lost_pm FROM observations "
    "WHERE session = ? AND task_class = ? ORDER BY id DESC LIMIT ?"
)
_COUNT = "SELECT count(DISTINCT outcome_receipt_id || ' ' || receipt_id) FROM observations WHERE session = ? AND task_class = ?"
_WRITE = (
    "INSERT OR IGNORE INTO observations (time_us, session, task_class, receipt_id, outcome_receipt_id, expert, gained_pm, lost_pm) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


class SessionBandit:
    """Weighs plans for one router. Belongs to its event loop."""

    def __init__(self, rules: BanditConfig, owner: Owner) -> None:
        self._rules = rules
        self._owner = owner

    def draw(self, plan: Plan, session: str) -> Draw | None:
        """The weights of this session's next question of this class; None where the priors stand: switched off, or nothing was told yet."""
        if not self._rules.enabled or len(plan.weights) < 2:
            return None
        task_class = plan.intent.value
        steps, outcomes = self._told(session, task_class)
        if not steps:
            return None
        priors_pm = {name: round(weight * 1000) for name, weight in plan.weights.items()}
        seed = seed_of(session, task_class, outcomes)
        return Draw(seed, task_class, outcomes, priors_pm, draw_weights(priors_pm, steps, self._rules, seed))

    def learn(self, outcome: Outcome, receipt_id: str) -> None:
        """Remember what an outcome that has its receipt says of the experts. Returns at once; a repetition counts once."""
        answered = outcome.answered
        if not self._rules.enabled or answered.session is None or answered.task_class is None:
            return
        seen = observe(answered.items, outcome.evidence, REWARD_PM[outcome.outcome], answered.priors_pm)
        about = (self._owner.clock(), answered.session, answered.task_class, answered.receipt_id, receipt_id)
        rows = [(*about, each.expert, each.gained_pm, each.lost_pm) for each in seen]
        if rows:
            self._owner.submit(lambda database: database.executemany(_WRITE, rows))

    def _told(self, session: str, task_class: str) -> tuple[list[list[Observation]], int]:
        """The newest outcomes of a session and class, newest first, and how many there are in all."""
        database = self._owner.reader()
        if database is None:
            return [], 0
        try:
            rows = database.execute(_READ, (session, task_class, MAX_ROWS)).fetchall()
            count = int(database.execute(_COUNT, (session, task_class)).fetchone()[0])
        except sqlite3.Error as error:
            self._owner.read_failed(error)
            return [], 0
        except ValueError:  # a session's name that is no text
            return [], 0
        return [[Observation(*row[1:]) for row in step] for _, step in groupby(rows, key=lambda row: row[0])][:MAX_STEPS], count


def reweigh(plan: Plan, weights_pm: Mapping[str, int]) -> Plan:
    """The plan with these weights in the fusion. Who is asked, and with what, stays as the gate decided."""
    return replace(plan, weights={name: weights_pm[name] / 1000 if name in weights_pm else weight for name, weight in plan.weights.items()})
