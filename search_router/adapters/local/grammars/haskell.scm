(data_type name: (name) @name) @definition.struct
(newtype name: (name) @name) @definition.struct
(type_synonym name: (name) @name) @definition.type
(class name: (name) @name) @definition.class
(instance name: (name) @name) @scope.type
(data_constructor constructor: (_ name: (constructor) @name)) @definition.constant
(field name: (field_name (variable) @name)) @definition.field
(signature name: (variable) @name) @definition.signature
(function name: (variable) @name) @definition.function
(declarations (bind name: (variable) @name) @definition.variable)

;; references
(variable) @reference.use
[(name) (constructor)] @reference.type
(import_name variable: (variable) @reference.import)
(import_name type: (name) @reference.import)

;; edges
(apply function: (variable) @called) @call
(apply function: (constructor) @called) @call
(apply function: (qualified id: (variable) @called)) @call
(import) @import
