"""What type a receiver has, as far as the syntax says: annotations, constructor calls, declared returns, fields, base types.

By name: two types of one name are one type here, except where an import tells them apart (see `callgraph_resolve`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from search_router.adapters.local.callgraph_modules import same_family
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
            known = self._ancestors[name] = _spread(name, lambda each: [b for e in self._graph.values() for b in sorted(e.bases.get(each, ()))])
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
        if call.receiver in ("", UNKNOWN):
            return ""
        head, *fields = call.receiver.split(".")
        made = self._head_type(project, file, call.line, head, around)
        for field in fields:
            if not made:
                return ""
            made = self.field_type(made, field)
        return made

    def _head_type(self, project: str, file: IndexedFile, line: int, head: str, around: Sequence[Definition]) -> str:
        if head.endswith("()"):
            return "" if head in SUPER_NAMES else self.returned(head[:-2])
        if head in SELF_NAMES:
            return type_around(around)
        bindings = self._graph[project].edges(file).bindings
        for scope in around:
            inside = [b for b in bindings if b.name == head and scope.start_line <= b.line <= scope.end_line]
            before = [b for b in inside if b.line <= line] or inside
            if before and scope.kind not in TYPE_KINDS:
                return self._made(before[-1])
        if file.language in IMPLICIT_THIS and (outer := type_around(around)):
            made = self.field_type(outer, head)
            if made:
                return made
        top = [b for b in bindings if b.name == head and file.enclosing(b.line) in (None, *_variables(file, b.line))]
        return self._made(top[-1]) if top else ""

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
                for b in self._graph[project].edges(file).bindings
                if b.name in wanted and definition.start_line <= b.line <= definition.end_line and _is_field(file, b, field)
            ]
            for binding in sorted(found, key=lambda b: b.type.endswith("()")):
                if made := self._made(binding):
                    return made
        return self.returned(field, container=name)

    def returned(self, function: str, container: str = "") -> str:
        """The type that every function of this name is declared to return; empty when they differ or say nothing."""
        if container and container not in self.owners(function):
            return ""
        if self.types(function):
            return function
        made = {each for e in self._graph.values() for each in e.returns.get(function, ())}
        return made.pop() if len(made) == 1 else ""

    def _made(self, binding: Binding) -> str:
        return self.returned(binding.type[:-2]) if binding.type.endswith("()") else binding.type

    def related(self, one: str, other: str) -> bool:
        """Whether one of two types extends the other."""
        return one == other or other in self.descendants(one) or one in self.descendants(other)

    def is_family(self, name: str, language: str) -> bool:
        """Whether a type of this name is defined in the searched projects, in a language that can be called from this one."""
        return any(same_family(file.language, language) for _, file, _ in self.types(name))


def definitions_around(file: IndexedFile, line: int) -> list[Definition]:
    """The definitions around a line, innermost first."""
    found = [d for d in file.syntax.definitions if d.start_line <= line <= d.end_line]
    return sorted(found, key=lambda d: (d.end_line - d.start_line, -d.start_line, -len(d.container)))


def type_around(around: Iterable[Definition]) -> str:
    """The name of the innermost type around, also where only a method's container tells (Go, Rust, C++)."""
    for definition in around:
        if definition.kind in TYPE_KINDS:
            return definition.name
        if definition.kind == "method" and definition.container:
            return definition.container.rpartition(".")[2]
    return ""


def _is_field(file: IndexedFile, binding: Binding, field: str) -> bool:
    """A plain name counts where it is declared in the type itself, not in one of its functions."""
    if binding.name != field:
        return True
    around = definitions_around(file, binding.line)
    return not around or around[0].kind in TYPE_KINDS or around[0].kind in ("field", "constant") or around[0].name in ("constructor", "__init__")


def _variables(file: IndexedFile, line: int) -> list[Definition]:
    return [d for d in file.syntax.definitions if d.start_line <= line <= d.end_line and d.kind in ("variable", "constant")]


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
