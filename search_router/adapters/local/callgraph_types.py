"""What type a receiver has, as far as the syntax says: annotations, constructor calls, declared returns, fields, base types.

By name: two types of one name are one type here, except where an import tells them apart (see `callgraph_resolve`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from search_router.adapters.local.callgraph_project import ProjectEdges
from search_router.adapters.local.edges import UNKNOWN, Binding, Call
from search_router.adapters.local.symbol_table import IndexedFile, SymbolTable
from search_router.schema import Definition

TYPE_KINDS: Final = frozenset({"class", "interface", "struct", "enum", "trait", "type"})
SELF_NAMES: Final = frozenset({"self", "this", "cls", "Self", "static", "super", "super()", "parent", "base", "__MODULE__"})
SUPER_NAMES: Final = frozenset({"super", "super()", "parent", "base"})
IMPLICIT_THIS: Final = frozenset({"java", "kotlin", "scala", "csharp", "cpp", "swift", "ruby"})
"""Languages where a member is named without a receiver inside its type."""
_DEPTH = 4
_MANY = 40
_REMEMBERED = 50_000


class TypeFacts:
    """Types by name, over all projects of one question. Remembers what it has looked up."""

    def __init__(self, graph: Sequence[ProjectEdges], tables: Sequence[tuple[str, SymbolTable]]) -> None:
        self._graph = {edges.project: edges for edges in graph}
        self._tables = tables
        self._types: dict[str, list[tuple[str, IndexedFile, Definition]]] = {}
        self._fields: dict[tuple[str, str], str] = {}
        self._ancestors: dict[str, list[str]] = {}
        self._descendants: dict[str, frozenset[str]] = {}
        self._owners: dict[str, frozenset[str]] = {}
        self._receivers: dict[tuple[str, str, int, str], str] = {}

    def types(self, name: str) -> list[tuple[str, IndexedFile, Definition]]:
        """The definitions of types of this name, with project and file."""
        known = self._types.get(name)
        if known is None:
            known = self._types[name] = [
                (project, found.file, found.definition)
                for project, table in self._tables
                for found in table.definitions_named(name)
                if found.definition.kind in TYPE_KINDS
            ]
        return known

    def ancestors(self, name: str) -> list[str]:
        """The type itself and what it extends, nearest first."""
        known = self._ancestors.get(name)
        if known is None:
            known = self._ancestors[name] = _spread(
                name, lambda each: [b for e in self._graph.values() for b in sorted(e.bases.get(each, ()))]
            )
        return known

    def descendants(self, name: str) -> frozenset[str]:
        """What extends the type, the type itself excluded."""
        known = self._descendants.get(name)
        if known is None:
            found = _spread(name, lambda each: [s for e in self._graph.values() for s in sorted(e.subtypes.get(each, ()))])
            known = self._descendants[name] = frozenset(found[1:])
        return known

    def owners(self, method: str) -> frozenset[str]:
        """The names of the types that define a member of this name."""
        known = self._owners.get(method)
        if known is None:
            found = [d.definition for _, table in self._tables for d in table.definitions_named(method)]
            known = self._owners[method] = frozenset(o for d in found if (o := d.container.rpartition(".")[2]) and o != method)
        return known

    def nearest_owner(self, name: str, method: str, *, above: bool = False) -> str | None:
        """The type that a member of `name` comes from: itself or the nearest base that defines it."""
        owners = self.owners(method)
        return next((each for each in self.ancestors(name)[above:] if each in owners), None)

    def receiver_type(self, project: str, file: IndexedFile, call: Call, around: Sequence[Definition]) -> str:
        """The name of the receiver's type, empty when nothing tells. `around` are the definitions around the call, innermost first."""
        key = (project, file.path, call.line, call.receiver)
        known = self._receivers.get(key)
        if known is None:
            if len(self._receivers) >= _REMEMBERED:
                self._receivers.clear()
            known = self._receivers[key] = self._chain_type(project, file, call.line, call.receiver, around, _DEPTH)
        return known

    def _chain_type(self, project: str, file: IndexedFile, line: int, chain: str, around: Sequence[Definition], depth: int) -> str:
        """The type of `a.b.c`, or of what `a.b.c()` returns."""
        if chain in ("", UNKNOWN) or depth <= 0:
            return ""
        if chain.endswith("()") and chain not in SUPER_NAMES:
            owner, _, function = chain[:-2].rpartition(".")
            if self.types(function):
                return function
            if not owner:
                held = self._local_type(project, file, line, function, around, depth - 1)
                if held is not None:  # a value that can be called hides a function of its name
                    return self.returned("__call__", held) if held else ""
            holder = self._chain_type(project, file, line, owner, around, depth - 1) if owner else ""
            return self.returned(function, holder)
        head, *fields = chain.split(".")
        made = self._head_type(project, file, line, head, around, depth)
        for field in fields:
            if not made:
                return ""
            made = self.field_type(made, field)
        return made

    def _head_type(self, project: str, file: IndexedFile, line: int, head: str, around: Sequence[Definition], depth: int) -> str:
        if head in SELF_NAMES:
            return type_around(around)
        local = self._local_type(project, file, line, head, around, depth)
        if local is not None:
            return local
        if file.language in IMPLICIT_THIS and (outer := type_around(around)):
            made = self.field_type(outer, head)
            if made:
                return made
        if self.types(head):
            return head
        edges = self._graph[project]
        top = [b for b in edges.bindings(file, head) if all(d.kind in ("variable", "constant") for d in edges.around(file, b.line))]
        return self._made(project, file, top[-1], (), depth) if top else ""

    def _local_type(self, project: str, file: IndexedFile, line: int, name: str, around: Sequence[Definition], depth: int) -> str | None:
        """The type of a name that a function around binds, empty when it cannot be told; None when no function binds it."""
        found = self._graph[project].bindings(file, name)
        for scope in around if found else ():
            if scope.kind in TYPE_KINDS:
                continue
            inside = [b for b in found if scope.start_line <= b.line <= scope.end_line]
            if inside:
                before = [b for b in inside if b.line <= line] or inside
                return self._made(project, file, before[-1], around, depth)
        return None

    def _made(self, project: str, file: IndexedFile, binding: Binding, around: Sequence[Definition], depth: int) -> str:
        """The type that a binding gives; what a call returns is looked up with the receiver's type, from the line before."""
        if not binding.type.endswith("()"):
            return binding.type
        return self._chain_type(project, file, binding.line - 1, binding.type, around, depth - 1)

    def field_type(self, name: str, field: str) -> str:
        """The type of a field, by its declaration or its first assignment in the type or one of its bases."""
        key = (name, field)
        if key not in self._fields:
            self._fields[key] = ""  # a field that is made from itself ends here
            self._fields[key] = next((made for each in self.ancestors(name) if (made := self._own_field(each, field))), "")
        return self._fields[key]

    def _own_field(self, name: str, field: str) -> str:
        wanted = (field, f"self.{field}", f"this.{field}")
        for project, file, definition in self.types(name)[:_DEPTH]:
            found = [
                b
                for spelled in wanted
                for b in self._graph[project].bindings(file, spelled)
                if definition.start_line <= b.line <= definition.end_line and self._is_field(project, file, b, field)
            ]
            for binding in sorted(found, key=lambda b: b.type.endswith("()")):
                if made := self._made(project, file, binding, self._graph[project].around(file, binding.line), 2):
                    return made
        return self.returned(field, name) if name in self.owners(field) else ""  # a property

    def _is_field(self, project: str, file: IndexedFile, binding: Binding, field: str) -> bool:
        """A plain name counts where it is declared in the type itself, not in one of its functions."""
        if binding.name != field:
            return True
        inner = next(iter(self._graph[project].around(file, binding.line)), None)
        return inner is None or inner.kind in TYPE_KINDS or inner.kind in ("field", "constant") or inner.name in ("constructor", "__init__")

    def is_open(self, name: str) -> bool:
        """Whether a type's name does not tell which members its values have: an alias, a structural interface, a type variable."""
        found = self.types(name)
        if not found:
            return any(table.definitions_named(name) for _, table in self._tables)
        if any(d.kind == "type" for _, _, d in found):
            return True
        structural = any(d.kind == "interface" and file.language in ("go", "typescript", "tsx") for _, file, d in found)
        return structural or "Protocol" in self.ancestors(name)

    def returned(self, function: str, holder: str = "") -> str:
        """The type that a function is declared to return: of the holder's own one, else of all of this name, if they agree."""
        found = {each for e in self._graph.values() for each in e.returns.get(function, ())}
        if holder:
            owner = self.nearest_owner(holder, function)
            found = {(o, made) for o, made in found if o == owner}
        made = {made for _, made in found}
        return made.pop() if len(made) == 1 and (holder or len(self.owners(function)) <= 1) else ""


def type_around(around: Iterable[Definition]) -> str:
    """The name of the innermost type around, also where only a method's container tells (Go, Rust, C++)."""
    for definition in around:
        if definition.kind in TYPE_KINDS:
            return definition.name
        if definition.kind == "method" and definition.container:
            return definition.container.rpartition(".")[2]
    return ""


def _spread(start: str, following: Callable[[str], Iterable[str]]) -> list[str]:
    """Breadth first from `start`, each once, up to a bound."""
    order: dict[str, None] = {start: None}
    queue = [start]
    while queue and len(order) < _MANY:
        nearest = queue.pop(0)
        for name in following(nearest):
            if name not in order:
                order[name] = None
                queue.append(name)
    return list(order)
