((call target: (identifier) @_kind (arguments . (alias) @qualified)) @definition.module
  (#eq? @_kind "defmodule"))
((call target: (identifier) @_kind (arguments . (alias) @qualified)) @definition.interface
  (#eq? @_kind "defprotocol"))
((call target: (identifier) @_kind (arguments . (alias) @qualified)) @scope.module
  (#eq? @_kind "defimpl"))
((call target: (identifier) @_kind
  (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name) operator: "when")
    (binary_operator left: (identifier) @name operator: "when")])) @definition.function
  (#any-of? @_kind "def" "defp" "defdelegate" "defguard" "defguardp" "defn" "defnp"))
((call target: (identifier) @_kind
  (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name) operator: "when")])) @definition.macro
  (#any-of? @_kind "defmacro" "defmacrop"))
((unary_operator operator: "@" operand: (call target: (identifier) @_kind
  (arguments . (binary_operator left: [(identifier) @name (call target: (identifier) @name)] operator: "::")))) @definition.type
  (#any-of? @_kind "type" "typep" "opaque"))

;; references
(identifier) @reference.use
(alias) @reference.type

;; edges
(call target: (identifier) @called) @call
(call target: (dot right: (identifier) @called)) @call
(binary_operator operator: "|>" right: (identifier) @called) @call
((call target: (identifier) @_kind) @import (#any-of? @_kind "alias" "import" "use" "require"))
