package source

import (
	"go/types"
	"iter"
	"strings"
)

// members yields what a type itself declares: its methods, and the fields of a struct or
// the methods of an interface, with those of structs and interfaces that are embedded left aside. An
// alias has none.
func members(declared *types.TypeName) iter.Seq[types.Object] {
	return func(yield func(types.Object) bool) {
		named, ok := declared.Type().(*types.Named)
		if !ok {
			return
		}
		for method := range named.Methods() {
			if !yield(method) {
				return
			}
		}
		switch underlying := named.Underlying().(type) {
		case *types.Struct:
			for field := range underlying.Fields() {
				if !yield(field) {
					return
				}
			}
		case *types.Interface:
			for method := range underlying.ExplicitMethods() {
				if !yield(method) {
					return
				}
			}
		}
	}
}

// shape tells declarations of a package what type-checking makes of them.
func shape(checked *types.Package, declarations map[string]*Declaration) {
	note := func(name string, object types.Object) {
		if d := declarations[name]; d != nil {
			d.shape = describe(object)
			if c, ok := object.(*types.Const); ok && c.Val() != nil {
				d.value = c.Val().ExactString()
			}
		}
	}
	for _, name := range checked.Scope().Names() {
		object := checked.Scope().Lookup(name)
		note(name, object)
		if declared, ok := object.(*types.TypeName); ok {
			for member := range members(declared) {
				note(name+"."+member.Name(), member)
			}
		}
	}
}

// describe returns what a user of the object compiles against, with import paths for the names of packages and
// without the names of parameters; "" if not all of it is known.
func describe(object types.Object) string {
	text := ""
	switch o := object.(type) {
	case *types.Func:
		text = signature(o.Signature())
	case *types.TypeName:
		text = describeType(o)
	default:
		text = typeText(o.Type())
	}
	if strings.Contains(text, types.Typ[types.Invalid].String()) {
		return ""
	}
	return text
}

func typeText(t types.Type) string { return types.TypeString(t, (*types.Package).Path) }

func signature(s *types.Signature) string {
	var text strings.Builder
	if receiver := s.Recv(); receiver != nil {
		if _, pointer := receiver.Type().(*types.Pointer); pointer {
			text.WriteString("*")
		}
	}
	text.WriteString("func")
	for parameter := range s.TypeParams().TypeParams() {
		text.WriteString("[" + parameter.Obj().Name() + " " + typeText(parameter.Constraint()) + "]")
	}
	for _, tuple := range []*types.Tuple{s.Params(), s.Results()} {
		text.WriteString("(")
		for v := range tuple.Variables() {
			text.WriteString(typeText(v.Type()) + ",")
		}
		text.WriteString(")")
	}
	if s.Variadic() {
		text.WriteString("...")
	}
	return text.String()
}

// describeType leaves the members of a struct or an interface aside: each is a declaration of its own.
func describeType(declared *types.TypeName) string {
	text := "type "
	switch t := declared.Type().(type) {
	case *types.Alias:
		return "alias " + typeText(t.Rhs())
	case *types.Named:
		for parameter := range t.TypeParams().TypeParams() {
			text += "[" + parameter.Obj().Name() + " " + typeText(parameter.Constraint()) + "]"
		}
	}
	switch underlying := declared.Type().Underlying().(type) {
	case *types.Struct:
		return text + "struct"
	case *types.Interface:
		return text + "interface"
	default:
		return text + typeText(underlying)
	}
}
