"""Postings of a set of files as arrays: which chunk holds which word how often. Built once, read many times; a file that changed is
marked dead in its segment and stands in a newer one."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.code_chunks import Chunk
from search_router.adapters.local.code_terms import FileTerms
from search_router.adapters.local.code_words import count_words, parts_of

Ints = npt.NDArray[np.int32]
Counts = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float32]
NOTHING: Final = slice(0, 0)


@dataclass(frozen=True, slots=True)
class Postings:
    """Compressed rows: the documents that hold word w are `docs[starts[w]:starts[w + 1]]`, with their counts."""

    starts: npt.NDArray[np.int32]
    docs: Ints
    counts: Counts

    @classmethod
    def build(cls, words: Ints, docs: Ints, counts: Counts, vocabulary: int) -> Postings:
        order = np.argsort(words, kind="stable")
        starts = np.zeros(vocabulary + 1, np.int32)
        np.cumsum(np.bincount(words, minlength=vocabulary), out=starts[1:])
        return cls(starts, docs[order], counts[order])

    def of(self, word: int | None) -> tuple[Ints, Counts]:
        """(documents, counts) of one word; empty for None."""
        part = NOTHING if word is None else slice(int(self.starts[word]), int(self.starts[word + 1]))
        return self.docs[part], self.counts[part]


class SegmentFile(NamedTuple):
    """What a segment takes of a file: `names` are those of its definitions."""

    path: str
    terms: FileTerms
    names: tuple[str, ...] = ()


class Segment:
    """Some files with their chunks. File, chunk and name numbers are its own, from 0.

    Attributes:
        paths, chunks: by file number; chunk c of file f is number `first_chunk[f] + c`.
        owner: file number by chunk number. chunk_words, file_words: length in words.
        name_owner, name_size: file number and length in words, by number of a definition's name.
        whole: by file number, whether the postings have every word of its text.
        imports, import_words: of what files import; only after `read_imports`, because only large projects need them.
    """

    def __init__(self, files: Iterable[SegmentFile]) -> None:
        """Take in the files one after the other: of each only numbers are kept, so that they need not be in memory all at once."""
        self.number: dict[str, int] = {}
        self.foreign: tuple[tuple[str, int], ...] | None = None
        self.roles: dict[str, npt.NDArray[np.bool_]] | None = None
        self.imports: Postings | None = None
        self.import_words: Floats = np.zeros(0, np.float32)
        number = self.number
        paths: list[str] = []
        chunks: list[tuple[Chunk, ...]] = []
        lines: list[int] = []
        whole: list[bool] = []
        names: list[tuple[int, tuple[str, ...]]] = []
        fields, counts = [np.zeros(0, np.uint16)], [np.zeros(0, np.uint16)]
        words, owners = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        for at, (path, terms, defined) in enumerate(files):
            paths.append(path)
            chunks.append(terms.chunks)
            lines.append(terms.line_count)
            whole.append(terms.whole)
            names += [(at, tuple(dict.fromkeys(parts_of(name)))) for name in dict.fromkeys(defined)]
            ids = np.fromiter((number.setdefault(w, len(number)) for w in terms.words), np.int32, len(terms.words))
            fields.append(np.frombuffer(terms.fields, np.uint16))
            words.append(ids[np.frombuffer(terms.places, np.uint32)] if len(ids) else ids)
            counts.append(np.frombuffer(terms.counts, np.uint16))
            owners.append(np.full(len(terms.fields), at, np.int32))
        self.paths, self.chunks = tuple(paths), tuple(chunks)
        self.line_count = np.array(lines, np.float32)
        self.whole = np.array(whole, np.bool_)
        self.alive = np.ones(len(paths), np.bool_)
        self.first_chunk = np.cumsum([0, *map(len, chunks)])
        self.owner: Ints = np.repeat(np.arange(len(paths), dtype=np.int32), np.diff(self.first_chunk))
        self._build(names, np.concatenate(fields), np.concatenate(words), np.concatenate(counts), np.concatenate(owners))

    def _build(self, names: list[tuple[int, tuple[str, ...]]], field: Counts, word: Ints, count: Counts, owner: Ints) -> None:
        number = self.number
        self.path_words = [count_words(path.rpartition(".")[0] or path) for path in self.paths]
        self.stem_words = [tuple(dict.fromkeys(count_words(stem_of(path)))) for path in self.paths]
        path_ids = [(number.setdefault(w, len(number)), at, n) for at, c in enumerate(self.path_words) for w, n in c.items()]
        stem_ids = [(number.setdefault(w, len(number)), at, 1) for at, c in enumerate(self.stem_words) for w in c]
        name_ids = [(number.setdefault(w, len(number)), at, 1) for at, (_, parts) in enumerate(names) for w in parts]
        vocabulary = len(number)
        body = field >= 2
        chunk = (self.first_chunk[owner[body]] + field[body].astype(np.int64) - 2).astype(np.int32)
        self.body = Postings.build(word[body], chunk, count[body], vocabulary)
        self.comments = Postings.build(word[field == 0], owner[field == 0], count[field == 0], vocabulary)
        self.names = Postings.build(word[field == 1], owner[field == 1], count[field == 1], vocabulary)
        self.in_path = _small(path_ids, vocabulary)
        self.in_stem = _small(stem_ids, vocabulary)
        self.in_name = _small(name_ids, vocabulary)
        self.name_owner: Ints = np.array([at for at, _ in names], np.int32)
        self.name_size = np.array([len(parts) for _, parts in names], np.float32)
        self.stem_size = np.array([len(c) for c in self.stem_words], np.float32)
        files_count = len(self.paths)
        self.chunk_words = np.bincount(chunk, count[body], len(self.owner)).astype(np.float32)
        self.file_words = np.bincount(self.owner, self.chunk_words, files_count).astype(np.float32)
        self.comment_words = np.bincount(owner[field == 0], count[field == 0], files_count).astype(np.float32)
        self.name_words = np.bincount(owner[field == 1], count[field == 1], files_count).astype(np.float32)
        self.path_size = np.array([sum(c.values()) for c in self.path_words], np.float32)

    def read_imports(self, names: Sequence[Sequence[str]]) -> None:
        """Take in what each file imports. Words that stand in no text here are left out."""
        number = self.number
        triples = [
            (number[word], at, min(count, 65_535))
            for at, imported in enumerate(names)
            for word, count in count_words(" ".join(imported)).items()
            if word in number
        ]
        self.imports = _small(triples, len(number))
        self.import_words = np.bincount([at for _, at, _ in triples], [n for _, _, n in triples], len(names)).astype(np.float32)

    def snapshot(self) -> Segment:
        """The same postings with a life of their own: marking files dead in one leaves the other as it is."""
        twin = copy.copy(self)
        twin.alive = self.alive.copy()
        return twin

    def holders(self, word: str, like: str) -> npt.NDArray[np.int64]:
        """Numbers of the living files whose text may have a name: it has this word, or a word beyond ASCII with `like` in it.

        What is beside a name may look like a part of it to us and not to others, as in `name²`.
        """
        if self.foreign is None:
            self.foreign = tuple((each, number) for each, number in self.number.items() if not each.isascii())
        numbers = [self.number.get(word), *(number for each, number in self.foreign if like in each)]
        found = self.alive & ~self.whole
        for number in numbers:
            found[self.owner[self.body.of(number)[0]]] = True
        return np.nonzero(found & self.alive)[0]

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def living(self) -> int:
        """How many of its files are alive."""
        return int(np.count_nonzero(self.alive))


def stem_of(path: str) -> str:
    """The file's name without folders and extension; for a name that only stands for its folder, such as `__init__.py`, it is that name."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _small(triples: list[tuple[int, int, int]], vocabulary: int) -> Postings:
    flat = np.array(triples, np.int32).reshape(-1, 3)
    return Postings.build(flat[:, 0], flat[:, 1], flat[:, 2].astype(np.uint16), vocabulary)
