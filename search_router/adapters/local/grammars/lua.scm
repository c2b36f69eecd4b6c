(function_declaration name: [(identifier) @name (dot_index_expression) @qualified (method_index_expression) @qualified]) @definition.function
(assignment_statement
  (variable_list . name: [(identifier) @name (dot_index_expression) @qualified])
  (expression_list . value: (function_definition))) @definition.function
(table_constructor (field name: (identifier) @name value: (function_definition)) @definition.function)
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @definition.variable)
(chunk (assignment_statement (variable_list name: (identifier) @name)) @definition.variable)

;; references
(identifier) @reference.use

;; edges
(function_call name: (identifier) @called) @call
(function_call name: (dot_index_expression field: (identifier) @called)) @call
(function_call name: (method_index_expression method: (identifier) @called)) @call
(variable_declaration (assignment_statement (expression_list value: (function_call name: (identifier) @_require)))
  (#eq? @_require "require")) @import
(variable_declaration (assignment_statement (expression_list value: (dot_index_expression table: (function_call name: (identifier) @_require))))
  (#eq? @_require "require")) @import
((function_call name: (identifier) @_require) @import (#eq? @_require "require"))
