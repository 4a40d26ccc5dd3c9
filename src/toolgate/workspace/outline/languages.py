"""The languages that can be outlined: their files, their grammar, and which of its nodes define something."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from toolgate.core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    name: str
    package: str
    """The distribution that holds its grammar."""
    suffixes: tuple[str, ...]
    kinds: Mapping[str, str]
    function: str = "language"
    bodies: frozenset[str] = frozenset()
    """Nodes that define only with a body; without one they mention what is defined elsewhere."""
    programs: tuple[str, ...] = ()
    """Names in a `#!` line."""
    imports: tuple[str, ...] = ()
    """Nodes that bring in what is defined elsewhere."""
    exports: tuple[str, ...] = ()
    """Nodes that give away what is defined here, in languages that have a word for it."""


_SCRIPT = {
    "class_declaration": "class", "class": "class", "function_declaration": "function",
    "generator_function_declaration": "function", "method_definition": "method", "variable_declarator": "function",
    "field_definition": "method",
}  # fmt: skip
_TYPED = {
    **{node: kind for node, kind in _SCRIPT.items() if node != "field_definition"},
    "abstract_class_declaration": "class", "interface_declaration": "interface", "enum_declaration": "enum",
    "type_alias_declaration": "type", "internal_module": "namespace", "module": "namespace",
    "function_signature": "function", "abstract_method_signature": "method", "public_field_definition": "method",
}  # fmt: skip
_C = {
    "function_definition": "function", "struct_specifier": "struct", "union_specifier": "union",
    "enum_specifier": "enum", "type_definition": "type",
}  # fmt: skip
_BODIES = frozenset({"struct_specifier", "union_specifier", "enum_specifier", "class_specifier"})

LANGUAGES = (
    Language("python", "tree-sitter-python", (".py", ".pyi", ".pyw"),
             {"class_definition": "class", "function_definition": "function"}, programs=("python", "python3"), imports=("import_statement", "import_from_statement")),
    Language("javascript", "tree-sitter-javascript", (".js", ".mjs", ".cjs", ".jsx"), _SCRIPT, programs=("node",), imports=("import_statement",), exports=("export_statement",)),
    Language("typescript", "tree-sitter-typescript", (".ts", ".mts", ".cts"), _TYPED, "language_typescript", imports=("import_statement",), exports=("export_statement",)),
    Language("tsx", "tree-sitter-typescript", (".tsx",), _TYPED, "language_tsx", imports=("import_statement",), exports=("export_statement",)),
    Language("go", "tree-sitter-go", (".go",),
             {"function_declaration": "function", "method_declaration": "method", "type_spec": "type",
              "type_alias": "type"}, imports=("import_declaration",)),
    Language("rust", "tree-sitter-rust", (".rs",),
             {"function_item": "function", "function_signature_item": "function", "struct_item": "struct",
              "enum_item": "enum", "union_item": "union", "trait_item": "trait", "impl_item": "impl",
              "mod_item": "module", "macro_definition": "macro", "type_item": "type"}, imports=("use_declaration",)),
    Language("java", "tree-sitter-java", (".java",),
             {"class_declaration": "class", "interface_declaration": "interface", "enum_declaration": "enum",
              "record_declaration": "record", "annotation_type_declaration": "annotation",
              "method_declaration": "method", "constructor_declaration": "constructor"}, imports=("import_declaration",)),
    Language("c", "tree-sitter-c", (".c", ".h"), _C, bodies=_BODIES, imports=("preproc_include",)),
    Language("cpp", "tree-sitter-cpp", (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"),
             {**_C, "class_specifier": "class", "namespace_definition": "namespace"}, bodies=_BODIES, imports=("preproc_include", "using_declaration")),
    Language("ruby", "tree-sitter-ruby", (".rb", ".rake"),
             {"class": "class", "module": "module", "method": "method", "singleton_method": "method"},
             programs=("ruby",)),
    Language("c#", "tree-sitter-c-sharp", (".cs",),
             {"namespace_declaration": "namespace", "class_declaration": "class", "struct_declaration": "struct",
              "interface_declaration": "interface", "enum_declaration": "enum", "record_declaration": "record",
              "method_declaration": "method", "constructor_declaration": "constructor",
              "property_declaration": "property", "delegate_declaration": "delegate"}, imports=("using_directive",)),
    Language("php", "tree-sitter-php", (".php",),
             {"namespace_definition": "namespace", "class_declaration": "class", "interface_declaration": "interface",
              "trait_declaration": "trait", "enum_declaration": "enum", "function_definition": "function",
              "method_declaration": "method"}, "language_php", programs=("php",), imports=("namespace_use_declaration",)),
    Language("bash", "tree-sitter-bash", (".sh", ".bash"), {"function_definition": "function"},
             programs=("sh", "bash")),
)  # fmt: skip
_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}
_BY_PROGRAM = {program: language for language in LANGUAGES for program in language.programs}


def language_of(path: str, first_line: str = "") -> Language | None:
    """By the name's ending, else by the program that its first line names."""
    found = _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())
    if found is None and first_line.startswith("#!"):
        words = first_line[2:].split()
        names = [word.rpartition("/")[2] for word in words if not word.startswith("-")]
        found = next((_BY_PROGRAM[name] for name in names if name in _BY_PROGRAM), None)
    return found
