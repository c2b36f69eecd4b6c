(namespace_declaration name: [(identifier) @name (qualified_name) @qualified]) @definition.module
(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.interface
(struct_declaration name: (identifier) @name) @definition.struct
(enum_declaration name: (identifier) @name) @definition.enum
(enum_member_declaration name: (identifier) @name) @definition.constant
(delegate_declaration name: (identifier) @name) @definition.type
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(local_function_statement name: (identifier) @name) @definition.function
(property_declaration name: (identifier) @name) @definition.field
(event_declaration name: (identifier) @name) @definition.field
(field_declaration (modifier "const") (variable_declaration (variable_declarator name: (identifier) @name))) @definition.constant
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @definition.field
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @definition.field

;; references
(identifier) @reference.use
(base_list (identifier) @reference.type)
(base_list (generic_name (identifier) @reference.type))
(parameter type: (identifier) @reference.type)
(variable_declaration type: (identifier) @reference.type)
(method_declaration returns: (identifier) @reference.type)
(property_declaration type: (identifier) @reference.type)
(type_argument_list (identifier) @reference.type)

;; edges
(invocation_expression function: (identifier) @called) @call
(invocation_expression function: (generic_name (identifier) @called)) @call
(invocation_expression function: (member_access_expression name: (identifier) @called)) @call
(invocation_expression function: (member_access_expression name: (generic_name (identifier) @called))) @call
(invocation_expression function: (conditional_access_expression (member_binding_expression name: (identifier) @called))) @call
(object_creation_expression type: (identifier) @called) @call
(object_creation_expression type: (generic_name (identifier) @called)) @call
(attribute name: (identifier) @called) @call
(using_directive) @import
(base_list (_) @base)
(parameter type: (_) @type name: (identifier) @bound)
(variable_declaration type: [(identifier) (qualified_name) (generic_name) (nullable_type)] @type (variable_declarator name: (identifier) @bound))
(variable_declarator name: (identifier) @bound (object_creation_expression type: (_) @type))
(property_declaration type: (_) @type name: (identifier) @bound)
(method_declaration returns: (_) @type name: (identifier) @function)
