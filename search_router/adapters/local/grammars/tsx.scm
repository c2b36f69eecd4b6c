(class_declaration name: (_) @name) @definition.class
(abstract_class_declaration name: (_) @name) @definition.class
(class name: (_) @name) @definition.class
(interface_declaration name: (type_identifier) @name) @definition.interface
(type_alias_declaration name: (type_identifier) @name) @definition.type
(enum_declaration name: (identifier) @name) @definition.enum
(enum_body [(property_identifier) @name (enum_assignment name: (property_identifier) @name)] @definition.constant)
(internal_module name: [(identifier) @name (nested_identifier) @qualified]) @definition.module
(module name: [(identifier) @name (nested_identifier) @qualified]) @definition.module
(module name: (string (string_fragment) @name)) @definition.module
(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(function_signature name: (identifier) @name) @definition.function
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @definition.method
(method_signature name: (property_identifier) @name) @definition.method
(abstract_method_signature name: (property_identifier) @name) @definition.method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @definition.method
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name value: [(arrow_function) (function_expression)]) @definition.method
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name) @definition.field
(interface_body (property_signature name: (property_identifier) @name) @definition.field)
(assignment_expression left: (member_expression) @qualified right: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(program (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable)))
(export_statement decorator: (_) declaration: (_ name: (_) @name)) @range

;; references
[(identifier) (property_identifier) (private_property_identifier) (shorthand_property_identifier)] @reference.use
(type_identifier) @reference.type
(extends_clause value: (identifier) @reference.type)
(extends_clause value: (member_expression property: (property_identifier) @reference.type))
(import_specifier name: (identifier) @reference.import)
(import_clause (identifier) @reference.import)
(export_specifier name: (identifier) @reference.import)

;; edges
(call_expression function: (identifier) @called) @call
(call_expression function: (member_expression property: [(property_identifier) (private_property_identifier)] @called)) @call
(new_expression constructor: (identifier) @called) @call
(new_expression constructor: (member_expression property: (property_identifier) @called)) @call
(jsx_opening_element name: (identifier) @called) @call
(jsx_self_closing_element name: (identifier) @called) @call
(import_statement) @import
(export_statement source: (_)) @import
(variable_declarator value: (call_expression function: (identifier) @_require arguments: (arguments . (string)))
  (#eq? @_require "require")) @import
(variable_declarator value: (member_expression object: (call_expression function: (identifier) @_require arguments: (arguments . (string))))
  (#eq? @_require "require")) @import
(expression_statement (call_expression function: (identifier) @_require arguments: (arguments . (string)))
  (#eq? @_require "require")) @import
(call_expression function: (import) arguments: (arguments . (string))) @import
(variable_declarator name: (identifier) @bound value: (new_expression constructor: (_) @value))
(variable_declarator name: (identifier) @bound value: (call_expression function: (_) @value))
(variable_declarator name: (identifier) @bound value: (await_expression (call_expression function: (_) @value)))
(assignment_expression left: (member_expression object: (this)) @bound right: (new_expression constructor: (_) @value))
(extends_clause value: (_) @base)
(implements_clause (_) @base)
(extends_type_clause type: (_) @base)
(variable_declarator name: (identifier) @bound type: (type_annotation (_) @type))
(required_parameter pattern: (identifier) @bound type: (type_annotation (_) @type))
(optional_parameter pattern: (identifier) @bound type: (type_annotation (_) @type))
(public_field_definition name: (_) @bound type: (type_annotation (_) @type))
(public_field_definition name: (_) @bound value: (new_expression constructor: (_) @value))
(property_signature name: (_) @bound type: (type_annotation (_) @type))
(function_declaration name: (_) @function return_type: (type_annotation (_) @type))
(method_definition name: (_) @function return_type: (type_annotation (_) @type))
