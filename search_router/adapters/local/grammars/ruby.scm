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
(superclass (constant) @reference.type)
(superclass (scope_resolution name: (constant) @reference.type))
((call method: (identifier) @_mixin arguments: (argument_list (constant) @reference.type))
  (#any-of? @_mixin "include" "extend" "prepend"))

;; edges
(call method: [(identifier) (constant)] @called) @call
((call !receiver method: (identifier) @_require arguments: (argument_list (string))) @import
  (#any-of? @_require "require" "require_relative" "load" "autoload"))
(superclass (_) @base)
((call !receiver method: (identifier) @_mixin arguments: (argument_list [(constant) (scope_resolution)] @base))
  (#any-of? @_mixin "include" "extend" "prepend"))
(assignment left: [(identifier) (instance_variable)] @bound right: (call receiver: [(constant) (scope_resolution)] @type method: (identifier) @_new (#eq? @_new "new")))
