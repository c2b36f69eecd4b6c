(function_definition name: (word) @name) @definition.function
(program (variable_assignment name: (variable_name) @name) @definition.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @definition.variable)

;; references
(variable_name) @reference.use

;; edges
(command_name (word) @called) @call
(command name: (command_name (word) @_source) (#any-of? @_source "source" ".")) @import
