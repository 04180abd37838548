package nodeconfig

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	legacyconfigv1 "github.com/openshift/api/legacyconfig/v1"
)

const (
	// maxValues limits the expansion of aliases: a short file with aliases of
	// lists can expand to billions of values.
	maxValues = 100_000

	// maxName limits a name in a path: the name of an argument is part of the
	// path of each of its values.
	maxName = 128
)

var (
	argumentsType = reflect.TypeFor[legacyconfigv1.ExtendedArguments]()
	quantityType  = reflect.TypeFor[resource.Quantity]()
)

// walker fills a Go value from a YAML tree according to the value's type and its
// json tags, and records the line of every field. Decoding by yaml.v3 or via
// JSON would lose the lines and paths of errors.
type walker struct {
	config   *Config
	problems []*Error
	values   int // noted so far
}

// decode fills c.NodeConfig, c.lines and c.set from the mapping root.
func (c *Config) decode(root *yaml.Node) []*Error {
	w := &walker{config: c}
	w.fields("", root, reflect.ValueOf(&c.NodeConfig).Elem())
	return w.problems
}

func (w *walker) errorf(path, format string, args ...any) {
	w.problems = append(w.problems, w.config.Errorf(path, format, args...))
}

// note records the line of path. It returns false if the file has too many
// values, which it reports once.
func (w *walker) note(path string, line int) bool {
	w.config.lines[path] = line
	w.values++
	if w.values == maxValues+1 {
		w.errorf(path, "the file holds more than %d values (those of an alias count at each use); is it a node config?", maxValues)
	}
	return w.values <= maxValues
}

// value fills v, which is zero, from n. A null leaves v zero: "field:" with
// nothing behind it means the same as no field, as in JSON.
func (w *walker) value(path string, n *yaml.Node, v reflect.Value) {
	n = dealias(n)
	switch {
	case isNull(n):
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		w.value(path, n, v.Elem())
	case v.Type() == argumentsType:
		w.arguments(path, n, v)
	case v.Type() == quantityType:
		w.scalar(path, n, v)
	case v.Kind() == reflect.Struct:
		w.fields(path, n, v)
	case v.Kind() == reflect.Slice:
		w.list(path, n, v)
	default:
		w.scalar(path, n, v)
	}
}

// fields fills the struct v from the mapping n.
func (w *walker) fields(path string, n *yaml.Node, v reflect.Value) {
	known := fieldsOf(v.Type())
	w.mapping(path, n, "a mapping of fields", func(at, name string, value *yaml.Node) {
		index, ok := known[name]
		if !ok {
			w.unknown(at, name, known)
			return
		}
		field := v.FieldByIndex(index)
		w.value(at, value, field)
		if isLeaf(field.Type()) && isSet(field) {
			w.config.set = append(w.config.set, at)
		}
	})
}

func (w *walker) unknown(path, name string, known map[string][]int) {
	if near := Nearest(name, slices.Sorted(maps.Keys(known))); near != "" {
		w.errorf(path, "unknown field; did you mean %q?", near)
		return
	}
	w.errorf(path, "unknown field; remove it or correct its name")
}

// arguments fills the ExtendedArguments v from the mapping n.
func (w *walker) arguments(path string, n *yaml.Node, v reflect.Value) {
	arguments := legacyconfigv1.ExtendedArguments{}
	w.mapping(path, n, "a mapping of arguments to lists of strings", func(at, name string, value *yaml.Node) {
		switch {
		case len(name) > maxName:
			w.errorf(at, "the argument's name has %d bytes; expected at most %d", len(name), maxName)
		case !w.isPrintable(at, name):
		default:
			arguments[name] = w.argument(at, dealias(value))
		}
	})
	if len(arguments) > 0 {
		v.Set(reflect.ValueOf(arguments))
	}
}

// argument returns the values of one argument: the literal text of the scalars
// in the list n, quoted or not (see the package's comment).
func (w *walker) argument(path string, n *yaml.Node) []string {
	if isNull(n) {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		w.errorf(path, "found %s; expected a list of strings, as in [%q]", describe(n), shorten(n.Value))
		return nil
	}
	var values []string
	w.elements(path, n, "a list of strings", func(at string, element *yaml.Node) {
		if !isLiteral(element) {
			w.errorf(at, "found %s; expected a string", describe(element))
		} else if w.isPrintable(at, element.Value) {
			values = append(values, element.Value)
		}
	})
	return values
}

// list fills the slice v from the sequence n. An empty list stays nil, as if
// it were absent, so that the two compare equal.
func (w *walker) list(path string, n *yaml.Node, v reflect.Value) {
	expected := "a list"
	if v.Type().Elem().Kind() == reflect.String {
		expected = "a list of strings"
	}
	w.elements(path, n, expected, func(at string, element *yaml.Node) {
		item := reflect.New(v.Type().Elem()).Elem()
		if isNull(element) {
			w.errorf(at, "found null; remove it from the list")
			return
		}
		w.value(at, element, item)
		v.Set(reflect.Append(v, item))
	})
}

// mapping calls entry for each key of n with the path of the key's value. Keys
// that cannot name a field are reported instead.
func (w *walker) mapping(path string, n *yaml.Node, expected string, entry func(at, key string, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode || n.Tag != "!!map" {
		w.errorf(path, "found %s; expected %s", describe(n), expected)
		return
	}
	first := map[string]int{} // line of each key
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, line := dealias(n.Content[i]), n.Content[i].Line
		at := child(path, key.Value)
		switch earlier := first[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			w.errorAt(line, path, "found %s in place of a field's name", describe(key))
		case key.Value == "":
			w.errorAt(line, path, "found a field without a name; remove it or name it")
		case key.Tag == "!!merge":
			w.errorAt(line, at, "merge keys are not supported; write the fields out")
		case earlier > 0:
			w.errorAt(line, at, "duplicate field; the first is on line %d", earlier)
		case !w.note(at, line):
			return
		default:
			first[key.Value] = line
			entry(at, key.Value, n.Content[i+1])
		}
	}
}

// errorAt is errorf for an error on another line than that of path.
func (w *walker) errorAt(line int, path, format string, args ...any) {
	e := w.config.Errorf(path, format, args...)
	e.Line = line
	w.problems = append(w.problems, e)
}

// elements calls element for each element of the sequence n with its path.
func (w *walker) elements(path string, n *yaml.Node, expected string, element func(at string, n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode || n.Tag != "!!seq" {
		w.errorf(path, "found %s; expected %s", describe(n), expected)
		return
	}
	for i, item := range n.Content {
		at := path + "[" + strconv.Itoa(i) + "]"
		if !w.note(at, item.Line) {
			return
		}
		element(at, dealias(item))
	}
}

// child returns the path of field name in the mapping at path.
func child(path, name string) string {
	if len(name) > maxName {
		name = shorten(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// fieldsOf returns the index of each field of t by its name in JSON. Inlined
// structs contribute their fields.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = f.Index
		}
	}
	return fields
}

// isLeaf returns whether t is not a mapping of named fields.
func isLeaf(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() != reflect.Struct || t == quantityType
}

// isSet returns whether v is set: origin wrote null, "", 0, false or an empty
// list for fields that were not.
func isSet(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer {
		return !v.IsNil() && isSet(v.Elem())
	}
	return !v.IsZero()
}
