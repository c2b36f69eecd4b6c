(class_declaration "interface" name: (identifier) @name) @definition.interface
(class_declaration (modifiers (class_modifier "enum")) name: (identifier) @name) @definition.enum
(class_declaration name: (identifier) @name) @definition.class
(object_declaration name: (identifier) @name) @definition.class
(companion_object name: (identifier) @name) @definition.class
(enum_entry . (identifier) @name) @definition.constant
(type_alias type: (identifier) @name) @definition.type
(function_declaration (user_type (identifier) @container) name: (identifier) @name) @definition.function
(function_declaration name: (identifier) @name) @definition.function
(class_parameter ["val" "var"] . (identifier) @name) @definition.field
(source_file (property_declaration (variable_declaration (identifier) @name)) @definition.variable)
(class_body (property_declaration (variable_declaration (identifier) @name)) @definition.field)

;; references
(identifier) @reference.use
(user_type (identifier) @reference.type)
(import (qualified_identifier (identifier) @reference.import .))

;; edges
(call_expression . (identifier) @called) @call
(call_expression . (navigation_expression (identifier) @called .)) @call
(constructor_invocation (user_type (identifier) @called)) @call
(import) @import
(delegation_specifier [(user_type) @base (constructor_invocation (user_type) @base)])
(class_parameter (identifier) @bound (user_type) @type)
(parameter (identifier) @bound (user_type) @type)
(property_declaration (variable_declaration (identifier) @bound (user_type) @type))
(property_declaration (variable_declaration (identifier) @bound) (call_expression . (identifier) @value))
