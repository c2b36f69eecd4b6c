(namespace_definition name: (namespace_name) @qualified body: (_)) @definition.module
(class_declaration name: (name) @name) @definition.class
(interface_declaration name: (name) @name) @definition.interface
(trait_declaration name: (name) @name) @definition.trait
(enum_declaration name: (name) @name) @definition.enum
(enum_case name: (name) @name) @definition.constant
(function_definition name: (name) @name) @definition.function
(method_declaration name: (name) @name) @definition.method
(const_declaration (const_element . (name) @name)) @definition.constant
(property_declaration (property_element name: (variable_name (name) @name))) @definition.field
(property_promotion_parameter name: (variable_name (name) @name)) @definition.field

;; references
(name) @reference.use
(base_clause (name) @reference.type)
(class_interface_clause (name) @reference.type)
(use_declaration (name) @reference.type)
(named_type (name) @reference.type)
(namespace_use_clause (qualified_name (name) @reference.import))

;; edges
(function_call_expression function: (name) @called) @call
(function_call_expression function: (qualified_name (name) @called)) @call
(member_call_expression name: (name) @called) @call
(nullsafe_member_call_expression name: (name) @called) @call
(scoped_call_expression name: (name) @called) @call
(object_creation_expression (name) @called) @call
(object_creation_expression (qualified_name (name) @called)) @call
(attribute (name) @called) @call
(namespace_use_declaration) @import
[(require_expression) (require_once_expression) (include_expression) (include_once_expression)] @import
(base_clause (_) @base)
(class_interface_clause (_) @base)
(declaration_list (use_declaration (_) @base))
(property_declaration type: (_) @type (property_element name: (_) @bound))
(property_promotion_parameter type: (_) @type name: (_) @bound)
(simple_parameter type: (_) @type name: (_) @bound)
(assignment_expression left: [(variable_name) (member_access_expression)] @bound right: (object_creation_expression (name) @type))
(method_declaration name: (name) @function return_type: (_) @type)
