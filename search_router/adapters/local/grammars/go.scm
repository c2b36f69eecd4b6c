(function_declaration name: (identifier) @name) @definition.function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @container
    (pointer_type (type_identifier) @container)
    (generic_type type: (type_identifier) @container)
    (pointer_type (generic_type type: (type_identifier) @container))]))
  name: (field_identifier) @name) @definition.method
(type_spec name: (type_identifier) @name type: (struct_type)) @definition.struct
(type_spec name: (type_identifier) @name type: (interface_type)) @definition.interface
(type_spec name: (type_identifier) @name) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(type_declaration . (type_spec name: (type_identifier) @name) .) @range
(method_elem name: (field_identifier) @name) @definition.method
(field_declaration name: (field_identifier) @name) @definition.field
(source_file (const_declaration (const_spec name: (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @definition.variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @definition.variable)))

;; references
[(identifier) (field_identifier)] @reference.use
(type_identifier) @reference.type

;; edges
(call_expression function: (identifier) @called) @call
(call_expression function: (selector_expression field: (field_identifier) @called)) @call
(call_expression function: (parenthesized_expression (identifier) @called)) @call
(composite_literal type: (type_identifier) @called) @call
(import_spec) @import
(field_declaration !name type: (_) @base)
(parameter_declaration name: (identifier) @bound type: [(type_identifier) (pointer_type) (qualified_type)] @type)
(short_var_declaration left: (expression_list . (identifier) @bound) right: (expression_list . (composite_literal type: (_) @type)))
(short_var_declaration left: (expression_list . (identifier) @bound) right: (expression_list . (unary_expression operand: (composite_literal type: (_) @type))))
(short_var_declaration left: (expression_list . (identifier) @bound) right: (expression_list . (call_expression function: (_) @value)))
(var_spec name: (identifier) @bound type: [(type_identifier) (pointer_type) (qualified_type)] @type)
(field_declaration name: (field_identifier) @bound type: [(type_identifier) (pointer_type) (qualified_type)] @type)
(function_declaration name: (identifier) @function result: [(type_identifier) (pointer_type) (qualified_type)] @type)
(function_declaration name: (identifier) @function result: (parameter_list . (parameter_declaration !name type: (_) @type)))
(method_declaration name: (field_identifier) @function result: [(type_identifier) (pointer_type) (qualified_type)] @type)
