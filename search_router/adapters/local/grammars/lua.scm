(function_declaration name: [(identifier) @name (dot_index_expression) @qualified (method_index_expression) @qualified]) @definition.function
(assignment_statement
  (variable_list . name: [(identifier) @name (dot_index_expression) @qualified])
  (expression_list . value: (function_definition))) @definition.function
(table_constructor (field name: (identifier) @name value: (function_definition)) @definition.function)
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @definition.variable)
(chunk (assignment_statement (variable_list name: (identifier) @name)) @definition.variable)

;; references
(identifier) @reference.use
(function_call name: (identifier) @reference.call)
(function_call name: (dot_index_expression field: (identifier) @reference.call))
(function_call name: (method_index_expression method: (identifier) @reference.call))
