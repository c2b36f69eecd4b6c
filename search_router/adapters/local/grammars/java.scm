(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.interface
(annotation_type_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(enum_constant name: (identifier) @name) @definition.constant
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(compact_constructor_declaration name: (identifier) @name) @definition.method
(annotation_type_element_declaration name: (identifier) @name) @definition.method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.field
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.constant

;; references
(identifier) @reference.use
(type_identifier) @reference.type
(import_declaration (scoped_identifier name: (identifier) @reference.import))

;; edges
(method_invocation name: (identifier) @called) @call
(method_reference (identifier) @called .) @call
(object_creation_expression type: (type_identifier) @called) @call
(object_creation_expression type: (generic_type (type_identifier) @called)) @call
(marker_annotation name: (identifier) @called) @call
(annotation name: (identifier) @called) @call
(import_declaration) @import
(superclass (_) @base)
(super_interfaces (type_list (_) @base))
(extends_interfaces (type_list (_) @base))
(local_variable_declaration type: [(type_identifier) (generic_type) (scoped_type_identifier)] @type declarator: (variable_declarator name: (identifier) @bound))
(formal_parameter type: [(type_identifier) (generic_type) (scoped_type_identifier)] @type name: (identifier) @bound)
(field_declaration type: [(type_identifier) (generic_type) (scoped_type_identifier)] @type declarator: (variable_declarator name: (identifier) @bound))
(resource type: (_) @type name: (identifier) @bound)
(method_declaration type: [(type_identifier) (generic_type)] @type name: (identifier) @function)
