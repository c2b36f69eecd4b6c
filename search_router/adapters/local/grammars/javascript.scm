(class_declaration name: (_) @name) @definition.class
(class name: (_) @name) @definition.class
(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @definition.method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @definition.method
(field_definition property: [(property_identifier) (private_property_identifier)] @name value: [(arrow_function) (function_expression)]) @definition.method
(field_definition property: [(property_identifier) (private_property_identifier)] @name) @definition.field
(assignment_expression left: (member_expression) @qualified right: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(program (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable)))
(export_statement decorator: (_) declaration: (class_declaration name: (_) @name)) @range

;; references
[(identifier) (property_identifier) (private_property_identifier) (shorthand_property_identifier)] @reference.use
(class_heritage (identifier) @reference.type)
(class_heritage (member_expression property: (property_identifier) @reference.type))
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
(class_heritage (_) @base)
(field_definition property: (_) @bound value: (new_expression constructor: (_) @value))
