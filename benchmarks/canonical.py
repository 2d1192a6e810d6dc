"""What Python reads of a module: its syntax tree, whatever its local variables are called.

Two sources with the same text do the same. Comments, docstrings, empty lines and line breaks do not
count, nor do the names of variables that no other code can name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NOT_READ = {"ctx", "kind", "type_comment", "type_ignores"}
_HIDDEN_NAMES = {ast.ExceptHandler: "name", ast.MatchAs: "name", ast.MatchStar: "name"}
"""Bindings that a tree holds as text: the type of a node, and its field."""


@cache  # most files are part of the code of many benchmarks
def canonical_text(source: str) -> str:
    r"""Return a text of the syntax tree of a module, the same for Python 3.11 to 3.13.

    Numbers stand for the names of variables of functions and comprehensions, and of parameters of
    lambdas, of functions within functions and of those whose name begins with an underscore, unless
    the module has a keyword of that name.

    Examples
    --------
    >>> first = canonical_text("def total(rows):\n    n = len(rows)  # of rows\n    return n")
    >>> first == canonical_text("def total(rows):\n    count = len(rows)\n    return count")
    True
    >>> first == canonical_text("def total(table):\n    n = len(table)\n    return n")
    False
    """
    tree = ast.parse(source)
    keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    writer = _Writer(keywords)
    writer.write(tree, None)
    return " ".join(writer.parts)


class _Scope:
    """The names of a function, a class or a comprehension.

    Parameters
    ----------
    outer : _Scope, optional
        None where the module is around it.
    names : set of str
        Names that the scope binds.
    replaced : set of str
        Those of them for which numbers stand.
    is_class : bool
        The functions within it do not see its names.
    """

    def __init__(
        self, outer: _Scope | None, names: set[str], replaced: set[str], is_class: bool = False
    ) -> None:
        self.outer = outer
        self.names = names
        self.replaced = replaced
        self.is_class = is_class
        self.numbers: dict[str, int] = {}

    def of(self, name: str) -> _Scope | None:
        """Return the scope that binds a name which this one uses; None for the module."""
        scope: _Scope | None = self
        while scope is not None and (
            name not in scope.names or (scope.is_class and scope is not self)
        ):
            scope = scope.outer
        return scope


class _Writer:
    """Writes the parts of the text of a tree, in the order of the source."""

    def __init__(self, keywords: set[str]) -> None:
        self.parts: list[str] = []
        self._keywords = keywords
        self._numbers = 0

    def write(self, value: object, scope: _Scope | None) -> None:
        if isinstance(value, list):
            self.parts.append("[")
            for item in value:
                if not _is_docstring(item):
                    self.write(item, scope)
            self.parts.append("]")
        elif isinstance(value, ast.Name):
            self._write_name(value.id, scope)
        elif isinstance(value, ast.AST):
            self._write_node(value, scope)
        else:
            # As ASCII: which characters can be printed differs between versions of Python.
            self.parts.append(f"{type(value).__name__}:{value!a}")

    def _write_node(self, node: ast.AST, scope: _Scope | None) -> None:
        self.parts.append(f"({type(node).__name__}")
        within = self._scope_in(node, scope)
        for field, value in ast.iter_fields(node):
            if field in _NOT_READ or value is None or value == []:
                continue
            self.parts.append(field)
            if field == _HIDDEN_NAMES.get(type(node)):
                self._write_name(value, within)
            elif field == "names" and isinstance(node, ast.Global | ast.Nonlocal):
                for name in node.names:
                    self._write_name(name, scope)
            elif isinstance(value, ast.arguments):
                self._write_arguments(value, scope, within)
            elif field == "generators":
                self._write_generators(value, scope, within)
            elif isinstance(node, ast.JoinedStr):
                # Some versions of Python leave empty texts out.
                parts = [part for part in node.values if getattr(part, "value", None) != ""]
                self.write(parts, scope)
            else:
                # What stands before a body is read around it: decorators, bases, annotations.
                is_inside = isinstance(node, _COMPREHENSIONS) or field == "body"
                self.write(value, within if is_inside else scope)
        self.parts.append(")")

    def _write_arguments(
        self, arguments: ast.arguments, scope: _Scope | None, within: _Scope | None
    ) -> None:
        for field, value in ast.iter_fields(arguments):
            self.parts.append(field)
            if field.endswith("defaults"):
                self.write(value, scope)
                continue
            for parameter in value if isinstance(value, list) else [value]:
                if parameter is not None:
                    self._write_name(parameter.arg, within)
                    self.write(parameter.annotation, scope)

    def _write_generators(
        self, generators: list[ast.comprehension], scope: _Scope | None, within: _Scope | None
    ) -> None:
        for position, generator in enumerate(generators):
            # The first iterable is read around the comprehension, the others within it.
            self.write(generator.iter, within if position else scope)
            self.write([generator.target, generator.ifs, generator.is_async], within)

    def _write_name(self, name: str, scope: _Scope | None) -> None:
        binding = None if scope is None else scope.of(name)
        if binding is None or name not in binding.replaced:
            self.parts.append(name)
            return
        if name not in binding.numbers:
            binding.numbers[name] = self._numbers
            self._numbers += 1
        self.parts.append(f"%{binding.numbers[name]}")

    def _scope_in(self, node: ast.AST, scope: _Scope | None) -> _Scope | None:
        """Return the scope of the parts of a node: that around it, unless it has one of its own."""
        if isinstance(node, _COMPREHENSIONS):
            targets = set().union(*(_stored_names(part.target) for part in node.generators))
            return _Scope(scope, targets, targets)
        if isinstance(node, ast.ClassDef):
            bound, others = _bindings(node.body)
            return _Scope(scope, bound | others, set(), is_class=True)
        if not isinstance(node, _FUNCTIONS):
            return scope
        bound, others = _bindings(node.body if isinstance(node.body, list) else [node.body])
        parameters = {parameter.arg for parameter in _parameters(node.args)}
        name = getattr(node, "name", "_")
        is_called_by_position = (
            name.startswith("_") and not name.endswith("__")
        ) or _is_in_a_function(scope)
        replaced = bound - parameters
        if is_called_by_position:
            replaced |= parameters - others - self._keywords
        return _Scope(scope, bound | others | parameters, replaced)


def _is_in_a_function(scope: _Scope | None) -> bool:
    return scope is not None and not scope.is_class


def _is_docstring(node: object) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    starred = (arguments.vararg, arguments.kwarg)
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [parameter for parameter in starred if parameter is not None]


def _stored_names(target: ast.AST) -> set[str]:
    return {
        node.id
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }


def _bindings(body: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Return the variables that statements bind, and what else they bind or declare.

    The latter are functions, classes and imports, whose names can be seen from outside, and names
    of the module. Those of a function around this one are neither.
    """
    variables: set[str] = set()
    others: set[str] = set()
    nonlocal_names: set[str] = set()
    nodes = list(body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name):
            variables |= _stored_names(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            others |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Global):
            others |= set(node.names)
        elif isinstance(node, ast.Nonlocal):
            nonlocal_names |= set(node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            others.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            others.add(node.rest)
        elif type(node) in _HIDDEN_NAMES and (name := getattr(node, _HIDDEN_NAMES[type(node)])):
            variables.add(name)
        if isinstance(node, _COMPREHENSIONS):
            nodes += [part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            nodes += ast.iter_child_nodes(node)
    return variables - others - nonlocal_names, others
