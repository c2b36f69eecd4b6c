"""Evidence ids in, full text out, read from disk or git for this very answer and checked against the id's content hash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from search_router.adapters.base import KeepsEntries
from search_router.adapters.local.git import ENVIRONMENT, SAFE_DIFF, git_argv, git_failure, run_git
from search_router.adapters.local.grep_matches import for_system
from search_router.adapters.local.manifest import MAX_LISTING, is_visible
from search_router.adapters.local.sources import SourceReader
from search_router.adapters.local.textfile import decode_path
from search_router.adapters.local.withheld import withholds
from search_router.adapters.process import Finished, run_command
from search_router.answers import MAX_FETCH_CHARACTERS, FetchedItem, FetchProblem, FetchRequest
from search_router.errors import EvidenceError, ExpertError
from search_router.router.evidence import BIDI, CodeAddress, CommitAddress, LibraryAddress, code_id, parse_evidence_id, readable_path
from search_router.schema import Project

BYTES_OF_A_COMMIT = 2 * 2**20
RAISE = f"raise max_characters (at most {MAX_FETCH_CHARACTERS})"
MOST_PATHS = 2000
"""Withheld files of one commit; they are named to git one by one."""
MAGIC = ENVIRONMENT | {"GIT_LITERAL_PATHSPECS": "0"}
NO_TEXT = "the file has no text: it is empty or binary"
COMMIT_FORMAT = "--format=commit %H%nauthor %an%ndate %aI%nparents %P%n%n%B"


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Reads evidence for one workspace."""

    projects: Mapping[str, Project]
    sources: SourceReader
    docs: Callable[[], KeepsEntries | None] = lambda: None

    async def fetch(self, request: FetchRequest, budget: int) -> tuple[tuple[FetchedItem, ...], tuple[FetchProblem, ...]]:
        """Items in the order asked, and a problem for each id that gave none; within `budget` characters of text, or the request's own."""
        room = request.max_characters or budget
        items: list[FetchedItem] = []
        problems: list[FetchProblem] = []
        for evidence_id in dict.fromkeys(request.ids):
            try:
                item = await self._fetch_one(evidence_id, room)
            except EvidenceError as error:
                problems.append(FetchProblem(id=evidence_id[:300], code=error.code, message=error.message, remedy=error.remedy))
            except ExpertError as error:
                problems.append(FetchProblem(id=evidence_id[:300], code=error.code, message=error.message, remedy=error.remedy))
            else:
                items.append(item)
                room = max(0, room - len(item.text))
        return tuple(items), tuple(problems)

    async def _fetch_one(self, evidence_id: str, room: int) -> FetchedItem:
        address = parse_evidence_id(evidence_id)
        project = self.projects.get(address.project)
        if project is None:
            raise EvidenceError(
                f"There is no visible project {address.project!r}.", remedy="`expert_registry` lists the projects.", code="unknown-project"
            )
        if isinstance(address, CommitAddress):
            return await self._fetch_commit(evidence_id, project, address, room)
        if isinstance(address, LibraryAddress):
            return await self._fetch_entry(evidence_id, project, address, room)
        return await self._fetch_code(evidence_id, project, address, room)

    async def _fetch_entry(self, evidence_id: str, project: Project, address: LibraryAddress, room: int) -> FetchedItem:
        docs = self.docs()
        if docs is None:
            raise EvidenceError("The docs expert is switched off.", remedy="Enable it in the configuration.", code="evidence-gone")
        text = await docs.entry_text(project, address.library, address.version, address.entry)
        cut = f"{len(text) - room} characters left out by the budget; {RAISE}" if len(text) > room else None
        flags = ("bidi",) if BIDI.search(text) else ()
        return FetchedItem(id=evidence_id, project=project.id, text=text[:room], fresh=True, flags=flags, cut=cut)

    async def _fetch_code(self, evidence_id: str, project: Project, address: CodeAddress, room: int) -> FetchedItem:
        if not await is_visible(project, address.path):
            raise EvidenceError(
                f"{readable_path(address.path)} in {project.id} is ignored or not there, so it is not searchable.",
                code="evidence-not-visible",
            )
        facts = await self.sources.read_one(project, address.path)
        lines = facts.text.split("\n")
        total = facts.line_count
        start, end = min(address.start_line, total), min(address.end_line, total)
        numbered: list[str] = []
        used, last = 0, start - 1
        cut: str | None = None if total else NO_TEXT
        for number in range(max(1, start), end + 1):
            line = f"{number}\t{lines[number - 1]}"
            if used + len(line) + 1 > room:
                if number == start and room > 0:
                    numbered.append(line[:room])
                    last, cut = number, f"line {number} is longer than the budget: {len(line) - room} characters left out; {RAISE}"
                break
            numbered.append(line)
            used += len(line) + 1
            last = number
        if last < end and cut is None:
            rest = code_id(project.id, address.path, last + 1, end, facts.content_hash)
            cut = f"lines {last + 1}-{end} left out by the budget: fetch {rest}"
        text = "\n".join(numbered)
        return FetchedItem(
            id=evidence_id,
            project=project.id,
            path=readable_path(address.path),
            start_line=start if numbered else None,
            end_line=last if numbered else None,
            total_lines=total,
            text=text,
            language=facts.language,
            fresh=facts.content_hash.startswith(address.hash_prefix),
            content_hash=facts.content_hash,
            flags=tuple(sorted({*facts.flags, *(["bidi"] if BIDI.search(text) else [])})),
            cut=cut,
        )

    async def _fetch_commit(self, evidence_id: str, project: Project, address: CommitAddress, room: int) -> FetchedItem:
        """Message and changes below the project's root, without those of withheld files."""
        commit = f"{address.commit}^{{commit}}"
        changed = ("--stat", "--patch", "-M", *SAFE_DIFF, commit, "--", ".")
        # Of a commit that does nothing else below the root git would say nothing at all: so its message by itself.
        shown = await _show(project, COMMIT_FORMAT, *(("--no-patch", commit) if project.withheld else changed))
        if project.withheld and shown.returncode == 0:
            changes = await _show(project, "--format=", *changed, *await _withheld_in(project, commit))
            shown = replace(changes, stdout=shown.stdout.rstrip(b"\n") + b"\n\n" + changes.stdout.lstrip(b"\n"))
        if shown.returncode != 0:
            if "not a git repository" in shown.stderr or project.kind == "directory":
                raise git_failure(project.root, shown)
            raise EvidenceError(f"There is no commit {address.commit} in {project.id}.", code="evidence-gone")
        text = shown.stdout.decode("utf-8", "replace").rstrip("\n")
        cut = f"{len(text) - room + shown.cut} characters left out by the budget; {RAISE}" if len(text) > room or shown.cut else None
        return FetchedItem(
            id=evidence_id, project=project.id, text=text[:room], fresh=True, flags=("bidi",) if BIDI.search(text) else (), cut=cut
        )


async def _show(project: Project, *arguments: str) -> Finished:
    return await run_command(git_argv("show", *arguments), cwd=project.root, env=MAGIC, max_bytes=BYTES_OF_A_COMMIT)


async def _withheld_in(project: Project, commit: str) -> list[str]:
    """git's own words for leaving out what a commit does to withheld files."""
    # All parents of a merge, whatever the repository's own configuration makes of `-m`.
    listing = (
        "-c",
        "log.diffMerges=separate",
        "show",
        "--format=",
        "--name-only",
        "--no-renames",
        "--relative",
        "-z",
        "-m",
        commit,
        "--",
        ".",
    )
    touched = await run_git(project.root, *listing, max_bytes=MAX_LISTING)
    if touched.returncode != 0:
        raise git_failure(project.root, touched)
    names = dict.fromkeys(name.lstrip(b"\n") for name in touched.stdout.split(b"\0"))
    paths = [decode_path(name) for name in names if name]
    withheld = [path for path in paths if withholds(project, path)]
    if touched.cut or len(withheld) > MOST_PATHS:
        raise EvidenceError(f"The commit touches too many files in {project.id} to tell its withheld ones apart.", code="evidence-refused")
    return [for_system(f":(exclude,literal){path}") for path in withheld]
