(namespace_definition name: [(namespace_identifier) @name (nested_namespace_specifier) @qualified]) @definition.module
(class_specifier name: [(type_identifier) @name (qualified_identifier) @qualified (template_type name: (type_identifier) @name)] body: (_)) @definition.class
(struct_specifier name: [(type_identifier) @name (qualified_identifier) @qualified (template_type name: (type_identifier) @name)] body: (_)) @definition.struct
(union_specifier name: (type_identifier) @name body: (_)) @definition.struct
(enum_specifier name: (type_identifier) @name body: (_)) @definition.enum
(enumerator name: (identifier) @name) @definition.constant
(function_definition declarator: (function_declarator declarator: [(identifier) (field_identifier) (destructor_name) (operator_name)] @name)) @definition.function
(function_definition declarator: (function_declarator declarator: (qualified_identifier) @qualified)) @definition.function
(function_definition declarator: (_ declarator: (function_declarator declarator: [(identifier) (field_identifier) (operator_name)] @name))) @definition.function
(function_definition declarator: (_ declarator: (function_declarator declarator: (qualified_identifier) @qualified))) @definition.function
(function_definition declarator: (reference_declarator (function_declarator declarator: [(identifier) (field_identifier) (operator_name)] @name))) @definition.function
(function_definition declarator: (reference_declarator (function_declarator declarator: (qualified_identifier) @qualified))) @definition.function
(declaration declarator: (function_declarator declarator: [(identifier) (destructor_name) (operator_name)] @name)) @definition.function
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @definition.function
(field_declaration declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name)) @definition.function
(field_declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))) @definition.function
(field_declaration declarator: (reference_declarator (function_declarator declarator: [(field_identifier) (operator_name)] @name))) @definition.function
(field_declaration declarator: (field_identifier) @name) @definition.field
(field_declaration declarator: (_ declarator: (field_identifier) @name)) @definition.field
(template_declaration [
  (class_specifier name: (type_identifier) @name)
  (struct_specifier name: (type_identifier) @name)
  (function_definition declarator: (function_declarator declarator: [(identifier) (field_identifier)] @name))
  (function_definition declarator: (function_declarator declarator: (qualified_identifier) @qualified))]) @range
(alias_declaration name: (type_identifier) @name) @definition.type
(type_definition declarator: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name) @definition.type
(preproc_def name: (identifier) @name) @definition.macro
(preproc_function_def name: (identifier) @name) @definition.macro
(translation_unit (declaration declarator: (identifier) @name) @definition.variable)
(translation_unit (declaration declarator: (init_declarator declarator: (identifier) @name)) @definition.variable)
(translation_unit (declaration declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))) @definition.variable)
(namespace_definition body: (declaration_list (declaration declarator: (identifier) @name) @definition.variable))
(namespace_definition body: (declaration_list (declaration declarator: (init_declarator declarator: (identifier) @name)) @definition.variable))

;; references
[(identifier) (field_identifier) (namespace_identifier)] @reference.use
(type_identifier) @reference.type

;; edges
(call_expression function: (identifier) @called) @call
(call_expression function: (field_expression field: (field_identifier) @called)) @call
(call_expression function: (qualified_identifier name: (identifier) @called)) @call
(call_expression function: (template_function name: (identifier) @called)) @call
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @called))) @call
(new_expression type: (type_identifier) @called) @call
(preproc_include) @import
(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @base)
(declaration type: (_) @type declarator: [(identifier) @bound (_ (identifier) @bound)])
(parameter_declaration type: (_) @type declarator: [(identifier) @bound (_ (identifier) @bound)])
(field_declaration type: (_) @type declarator: [(field_identifier) @bound (_ (field_identifier) @bound)])
(init_declarator declarator: (identifier) @bound value: (new_expression type: (_) @type))
