(struct_item name: (type_identifier) @name) @definition.struct
(union_item name: (type_identifier) @name) @definition.struct
(enum_item name: (type_identifier) @name) @definition.enum
(enum_variant name: (identifier) @name) @definition.constant
(trait_item name: (type_identifier) @name) @definition.trait
(type_item name: (type_identifier) @name) @definition.type
(associated_type name: (type_identifier) @name) @definition.type
(mod_item name: (identifier) @name) @definition.module
(function_item name: (identifier) @name) @definition.function
(function_signature_item name: (identifier) @name) @definition.function
(macro_definition name: (identifier) @name) @definition.macro
(const_item name: (identifier) @name) @definition.constant
(static_item name: (identifier) @name) @definition.constant
(field_declaration name: (field_identifier) @name) @definition.field
(impl_item type: [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name))]) @scope.type

;; references
[(identifier) (field_identifier) (shorthand_field_identifier)] @reference.use
(type_identifier) @reference.type
(use_declaration argument: (identifier) @reference.import)
(use_declaration argument: (scoped_identifier name: (identifier) @reference.import))
(use_list (identifier) @reference.import)
(use_list (scoped_identifier name: (identifier) @reference.import))
(use_as_clause path: (scoped_identifier name: (identifier) @reference.import))

;; edges
(call_expression function: (identifier) @called) @call
(call_expression function: (field_expression field: (field_identifier) @called)) @call
(call_expression function: (scoped_identifier name: (identifier) @called)) @call
(call_expression function: (generic_function function: (identifier) @called)) @call
(call_expression function: (generic_function function: (scoped_identifier name: (identifier) @called))) @call
(call_expression function: (generic_function function: (field_expression field: (field_identifier) @called))) @call
(macro_invocation macro: (identifier) @called) @call
(macro_invocation macro: (scoped_identifier name: (identifier) @called)) @call
(struct_expression name: (type_identifier) @called) @call
[(use_declaration) (extern_crate_declaration)] @import
(mod_item !body) @import
(impl_item trait: (_) @base)
(trait_bounds (_) @base)
(parameter pattern: (identifier) @bound type: (_) @type)
(let_declaration pattern: (identifier) @bound type: (_) @type)
(let_declaration pattern: (identifier) @bound value: (call_expression function: (scoped_identifier) @value))
(let_declaration pattern: (identifier) @bound value: (struct_expression name: (_) @type))
(field_declaration name: (field_identifier) @bound type: (_) @type)
(function_item name: (identifier) @function return_type: (_) @type)
