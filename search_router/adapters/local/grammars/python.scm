(class_definition name: (identifier) @name) @definition.class
(function_definition name: (identifier) @name) @definition.function
(decorated_definition definition: (_ name: (identifier) @name)) @range
(type_alias_statement left: (type (identifier) @name)) @definition.type
(type_alias_statement left: (type (generic_type (identifier) @name))) @definition.type
(module (expression_statement (assignment left: (identifier) @name)) @definition.variable)
(class_definition body: (block (expression_statement (assignment left: (identifier) @name)) @definition.field))

;; references
(identifier) @reference.use
(type (identifier) @reference.type)
(class_definition superclasses: (argument_list (identifier) @reference.type))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @reference.type)))
(import_statement name: (dotted_name (identifier) @reference.import))
(import_from_statement name: (dotted_name (identifier) @reference.import))
(aliased_import name: (dotted_name (identifier) @reference.import))

;; edges
(call function: (identifier) @called) @call
(call function: (attribute attribute: (identifier) @called)) @call
(decorator (identifier) @called) @call
(decorator (attribute attribute: (identifier) @called)) @call
[(import_statement) (import_from_statement)] @import
(class_definition superclasses: (argument_list [(identifier) (attribute) (subscript)] @base))
(assignment left: [(identifier) (attribute object: (identifier))] @bound right: (call function: (_) @value))
(assignment left: [(identifier) (attribute object: (identifier))] @bound right: (await (call function: (_) @value)))
(assignment left: [(identifier) (attribute object: (identifier))] @bound type: (type) @type)
(typed_parameter . (identifier) @bound type: (type) @type)
(typed_default_parameter name: (identifier) @bound type: (type) @type)
(as_pattern (call function: (_) @value) alias: (as_pattern_target (identifier) @bound))
(as_pattern (await (call function: (_) @value)) alias: (as_pattern_target (identifier) @bound))
(function_definition name: (identifier) @function return_type: (type) @type)
