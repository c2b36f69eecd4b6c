"""The `docs` expert: documentation of the libraries that a project uses, in the versions that lie on this disk.

A question is answered from the libraries that it names, else from those that the project's manifests name. Each answer says library and
version; where the lock file says another version than is installed, it is flagged, never substituted silently. No network is used.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.code_words import IDENTIFIER, parts_of, question_words
from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.docs_entries import Entry
from search_router.adapters.local.docs_installed import ENTRIES_VERSION, Library, find_libraries, pack_entries, read_entries, unpack_entries
from search_router.adapters.local.docs_locked import Locked, compare_name, read_locked
from search_router.adapters.local.knowledge_snippet import mark_snippet
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.adapters.local.symbol_store import Derived, DerivedKey, DerivedStore
from search_router.adapters.local.withheld import withholds
from search_router.config.experts import DocsConfig
from search_router.errors import EvidenceError, ExpertError, FailureClass
from search_router.schema import DocumentFacts, ExpertCall, ExpertResult, Health, Hit, Project

if TYPE_CHECKING:
    from search_router.adapters.local.docs_rank import LibraryText, RankedEntry

FRESH_SECONDS: Final = 30.0
"""So long a project's list of installed libraries holds."""
UNNAMED: Final = 12
"""So many of the project's own libraries are searched where the question names none."""
MAX_TEXTS: Final = 40
ANSWER_SHARE: Final = 0.8
OTHER_VERSION: Final = "version-mismatch"
NOT_OF_THE_PROJECT: Final = "environment-of-search-router"


class DocsExpert:
    """Finds libraries, reads each once a version, and ranks their entries.

    Args:
        environ: where VIRTUAL_ENV, GOMODCACHE, GOPATH, CARGO_HOME and HOME are looked up.
    """

    def __init__(
        self,
        expert_id: str,
        config: DocsConfig,
        cache_dir: Path,
        environ: Mapping[str, str] | None = None,
        reserve: Reserve = DEFAULT_RESERVE,
    ) -> None:
        self._config = config
        self._environ = os.environ if environ is None else environ
        self._store = DerivedStore(cache_dir, reserve=reserve)
        self._known: dict[Path, tuple[float, Locked, list[Library]]] = {}
        self._worlds: dict[Path, tuple[list[Library], str]] = {}
        self._texts: dict[str, LibraryText] = {}
        self._reading: dict[str, asyncio.Task[LibraryText]] = {}
        self.card = embedded_card(expert_id, config)

    async def search(self, call: ExpertCall) -> ExpertResult:
        """The best entries of the libraries in question.

        Raises:
            ExpertError: `timeout` when no library was read in time (reading goes on); `unavailable` when no library is on this disk.
        """
        until = time.monotonic() + ANSWER_SHARE * call.budget_ms / 1000
        asked: list[tuple[Project, Locked, Library]] = []
        notes: list[str] = []
        for project in call.projects:
            locked, libraries = await self._libraries(project)
            notes += [f"{project.id}: {problem}" for problem in locked.problems]
            asked += [(project, locked, library) for library in choose_libraries(call.sub_query.text, locked, libraries)]
        if not asked:
            return ExpertResult((), notes=(*notes, "the question names no library that is on this disk, and neither do the manifests"))
        unique = {library.key: library for _, _, library in asked}
        texts, late = await self._read_all(unique, until)
        if not texts:
            raise ExpertError(FailureClass.TIMEOUT, "The libraries are being read; reading goes on.", remedy="Ask again.")
        hits, said = await asyncio.to_thread(_rank, call, asked, texts)
        return ExpertResult(
            hits=hits,
            partial=f"not read yet: {', '.join(sorted(late))}; ask again" if late else None,
            notes=(*notes, *said, *self._store.notes),
            server_name="docs",
        )

    async def entry_text(self, project: Project, label: str, version: str, name: str) -> str:
        """The whole documentation of one entry, for fetching.

        Raises:
            EvidenceError: the library is not here in this version, or has no such entry.
        """
        _, libraries = await self._libraries(project)
        library = next((each for each in libraries if (each.label, each.version) == (label, version)), None)
        if library is None:
            raise EvidenceError(f"{label} {version} is not installed here any more.", remedy="Search again.", code="evidence-gone")
        text = await self._text(library)
        entry = next((each for each in text.entries if each.name == name), None)
        if entry is None:
            raise EvidenceError(f"{label} {version} documents no {name[:120]!r}.", remedy="Search again.", code="evidence-gone")
        return entry_text(entry)

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Always there; what is installed is looked up when it is asked."""
        return Health(True, "reads what is installed, on demand")

    async def world(self, projects: tuple[Project, ...]) -> str | None:
        """See `KnowsItsWorld`: the libraries that are installed, as they were last looked up, and the locked versions."""
        told: list[str] = []
        for project in projects:
            locked, libraries = await self._libraries(project)
            known = self._worlds.get(project.root)
            if known is None or known[0] is not libraries:
                text = "\n".join([f"{locked.versions} {locked.problems} {sorted(locked.own)}", *(library.key for library in libraries)])
                known = self._worlds[project.root] = (libraries, hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest())
            told.append(known[1])
        return "\n".join(told)

    async def aclose(self) -> None:
        """Wait for what is being read, and release the store; safe to call twice."""
        tasks = [task for task in self._reading.values() if not task.done()]
        if tasks:
            await asyncio.wait(tasks)  # a thread cannot be stopped, and must not outlive its loop
        self._reading.clear()
        await asyncio.to_thread(self._store.close)

    async def _libraries(self, project: Project) -> tuple[Locked, list[Library]]:
        known = self._known.get(project.root)
        if known is None or time.monotonic() - known[0] > FRESH_SECONDS:

            def look() -> tuple[Locked, list[Library]]:
                locked = read_locked(project)
                found = find_libraries(project.root, locked, self._environ)
                return locked, [library for library in found if not _is_withheld(project, library)]

            locked, libraries = await asyncio.to_thread(look)
            known = self._known[project.root] = (time.monotonic(), locked, libraries)
        return known[1], known[2]

    async def _read_all(self, libraries: Mapping[str, Library], until: float) -> tuple[dict[str, LibraryText], list[str]]:
        """(texts by key, names of libraries that were not read in time)."""
        texts: dict[str, LibraryText] = {}
        late: list[str] = []
        tasks = {key: asyncio.ensure_future(self._text(library)) for key, library in libraries.items()}
        await asyncio.wait(tasks.values(), timeout=max(0.0, until - time.monotonic()))
        for key, task in tasks.items():
            if task.done():
                texts[key] = task.result()
            else:
                late.append(libraries[key].name)
        return texts, late

    async def _text(self, library: Library) -> LibraryText:
        key = library.key
        if key in self._texts:
            return self._texts[key]
        if key not in self._reading:
            self._reading[key] = asyncio.create_task(asyncio.to_thread(self._load, library))
        text = await asyncio.shield(self._reading[key])
        self._reading.pop(key, None)
        while len(self._texts) >= MAX_TEXTS:
            del self._texts[next(iter(self._texts))]
        self._texts[key] = text
        return text

    def _load(self, library: Library) -> LibraryText:
        from search_router.adapters.local.docs_rank import make_library_text  # numpy stays out of the start

        key = DerivedKey(f"docs/{library.ecosystem}", library.key, ENTRIES_VERSION)
        row = self._store.load([key]).get(key)
        if row is not None:
            try:
                return make_library_text(unpack_entries(row.payload))
            except DamagedPayload:
                self._store.note_damaged_row()
        entries = read_entries(library)
        self._store.keep({key: Derived("", pack_entries(entries))})
        return make_library_text(entries)


def choose_libraries(question: str, locked: Locked, libraries: Sequence[Library]) -> list[Library]:
    """The libraries that the question names; where it names none, the first of those that the manifests name."""
    spoken = {word.lower() for word in re.findall(r"[@\w][\w./@-]*\w|\w", question)}
    spoken |= {word.lower() for word in IDENTIFIER.findall(question)} | {word.split(".")[0] for word in spoken}
    libraries = [library for library in libraries if _is_used(library, locked)]
    named = [library for library in libraries if library.spoken & spoken and not (library.spoken & _COMMON and len(spoken) > 2)]
    if named:
        return named
    own = [library for library in libraries if _is_declared(library, locked)]
    return own[:UNNAMED]


_COMMON: Final = frozenset({"six", "main", "test", "tests", "setup", "build", "packaging", "docs"})
"""Names of libraries that are words of their own in any question."""


def _is_used(library: Library, locked: Locked) -> bool:
    """Not the project itself; and of our own environment only what the project declares, where it declares anything of the kind."""
    if (library.ecosystem, compare_name(library.ecosystem, library.name)) in locked.own:
        return False
    return not library.ours or library.ecosystem not in locked.versions or _is_declared(library, locked)


def _is_declared(library: Library, locked: Locked) -> bool:
    return compare_name(library.ecosystem, library.name) in locked.versions.get(library.ecosystem, {})


def entry_text(entry: Entry) -> str:
    """What is shown of an entry in full."""
    return "\n\n".join(part for part in (entry.signature, entry.doc, f"({entry.path}:{entry.line})") if part)


def _rank(
    call: ExpertCall, asked: Sequence[tuple[Project, Locked, Library]], texts: Mapping[str, LibraryText]
) -> tuple[tuple[Hit, ...], list[str]]:
    from search_router.adapters.local.docs_rank import code_names, rank_entries

    question = call.sub_query.text
    rows = [(project, locked, library) for project, locked, library in asked if library.key in texts]
    own = {word for _, _, library in rows for name in library.spoken for word in (*parts_of(name), name)}
    words = {word: weight for word, weight in question_words(question).items() if word not in own} or question_words(question)
    ranked = rank_entries([texts[library.key] for _, _, library in rows], words, code_names(question), call.limit)
    hits: list[Hit] = []
    notes: dict[str, None] = {}
    for rank, r in enumerate(ranked):
        project, locked, library = rows[r.library]
        wanted = locked.version_of(library.ecosystem, library.name)
        if wanted is not None and wanted != library.version:
            notes[f"{library.name}: {library.version} is installed, {wanted} is locked; this documentation is of {library.version}"] = None
        hits.append(_hit(project, library, texts[library.key].entries[r.number], r, words, wanted, with_snippet=rank < 12))
    return tuple(hits), list(notes)


def _hit(
    project: Project,
    library: Library,
    entry: Entry,
    ranked: RankedEntry,
    words: Mapping[str, float],
    wanted: str | None,
    *,
    with_snippet: bool,
) -> Hit:
    flags = [OTHER_VERSION] if wanted is not None and wanted != library.version else []
    text = entry_text(entry)
    return Hit(
        project=project.id,
        symbol=entry.name,
        kind=entry.kind,
        is_exact=ranked.exact or ranked.coverage >= 0.8,
        native_score=ranked.score,
        flags=(*flags, *([NOT_OF_THE_PROJECT] if library.ours else [])),
        about=DocumentFacts(
            title=entry.name,
            snippet=mark_snippet(text, words) if with_snippet else text[:240],
            signals=(f"bm25 {ranked.bm25:.4g}", f"coverage {ranked.coverage:.2f}", *(["exact name"] if ranked.exact else [])),
            library=library.label,
            version=library.version,
            entry=entry.name,
        ),
    )


def _is_withheld(project: Project, library: Library) -> bool:
    """Whether it is installed in a folder of the project that nobody is shown."""
    place = library.location
    return place.is_relative_to(project.root) and withholds(project, place.relative_to(project.root).as_posix())
