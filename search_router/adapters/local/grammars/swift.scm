(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @definition.struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @definition.enum
(class_declaration declaration_kind: ["class" "actor"] name: (type_identifier) @name) @definition.class
(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @name .)) @scope.type
(protocol_declaration name: (type_identifier) @name) @definition.interface
(enum_entry name: (simple_identifier) @name) @definition.constant
(typealias_declaration name: (type_identifier) @name) @definition.type
(function_declaration name: (simple_identifier) @name) @definition.function
(protocol_function_declaration name: (simple_identifier) @name) @definition.function
(init_declaration name: "init" @name) @definition.function
(macro_declaration (simple_identifier) @name) @definition.macro
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.variable)
(class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.field)
(enum_class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.field)
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.field

;; references
(simple_identifier) @reference.use
(type_identifier) @reference.type

;; edges
(call_expression . (simple_identifier) @called) @call
(call_expression . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @called))) @call
(import_declaration) @import
(inheritance_specifier inherits_from: (_) @base)
(parameter (simple_identifier) @bound . (user_type) @type)
(property_declaration name: (pattern bound_identifier: (simple_identifier) @bound) (type_annotation (user_type) @type))
(property_declaration name: (pattern bound_identifier: (simple_identifier) @bound) value: (call_expression . (simple_identifier) @value))
