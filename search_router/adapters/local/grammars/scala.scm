(trait_definition name: (identifier) @name) @definition.trait
(class_definition name: (identifier) @name) @definition.class
(object_definition name: (identifier) @name) @definition.class
(enum_definition name: (identifier) @name) @definition.enum
(simple_enum_case name: (identifier) @name) @definition.constant
(full_enum_case name: (identifier) @name) @definition.constant
(type_definition name: (type_identifier) @name) @definition.type
(function_definition name: (identifier) @name) @definition.function
(function_declaration name: (identifier) @name) @definition.function
(template_body (val_definition pattern: (identifier) @name) @definition.field)
(template_body (var_definition pattern: (identifier) @name) @definition.field)
(template_body (val_declaration name: (identifier) @name) @definition.field)
(template_body (var_declaration name: (identifier) @name) @definition.field)
(compilation_unit (val_definition pattern: (identifier) @name) @definition.variable)
(compilation_unit (var_definition pattern: (identifier) @name) @definition.variable)
(given_definition name: (identifier) @name) @definition.variable

;; references
(identifier) @reference.use
(type_identifier) @reference.type
(import_declaration path: (identifier) @reference.import .)
(namespace_selectors (identifier) @reference.import)

;; edges
(call_expression function: (identifier) @called) @call
(call_expression function: (field_expression field: (identifier) @called)) @call
(call_expression function: (generic_function function: (identifier) @called)) @call
(call_expression function: (generic_function function: (field_expression field: (identifier) @called))) @call
(instance_expression (type_identifier) @called) @call
(import_declaration) @import
(extends_clause [(type_identifier) (generic_type) (stable_type_identifier)] @base)
(class_parameter name: (identifier) @bound type: (_) @type)
(parameter name: (identifier) @bound type: (_) @type)
(val_definition pattern: (identifier) @bound type: (_) @type)
(val_definition pattern: (identifier) @bound value: (instance_expression . (type_identifier) @type))
