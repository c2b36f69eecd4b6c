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
(call_expression . (identifier) @reference.call)
(call_expression . (navigation_expression (identifier) @reference.call .))
(constructor_invocation (user_type (identifier) @reference.call))
(import (qualified_identifier (identifier) @reference.import .))
