(module name: [(constant) @name (scope_resolution) @qualified]) @definition.module
(class name: [(constant) @name (scope_resolution) @qualified]) @definition.class
(method name: (_) @name) @definition.function
(singleton_method name: (_) @name) @definition.function
(alias name: (_) @name) @definition.function
(assignment left: (constant) @name) @definition.constant
((call method: (identifier) @_attr arguments: (argument_list (simple_symbol) @name @definition.field))
  (#any-of? @_attr "attr_reader" "attr_writer" "attr_accessor"))

;; references
[(identifier) (constant)] @reference.use
(call method: [(identifier) (constant)] @reference.call)
(superclass (constant) @reference.type)
(superclass (scope_resolution name: (constant) @reference.type))
((call method: (identifier) @_mixin arguments: (argument_list (constant) @reference.type))
  (#any-of? @_mixin "include" "extend" "prepend"))
