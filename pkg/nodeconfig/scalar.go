package nodeconfig

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
)

// scalar fills v, a string, boolean, number or quantity, from n.
func (w *walker) scalar(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		w.errorf(path, "found %s; expected %s", describe(n), expectation(v, n))
		return
	}
	if v.Kind() == reflect.String && isText(n) && !w.isPrintable(path, n.Value) {
		return
	}
	if !setScalar(n, v) {
		w.errorf(path, "found %s; expected %s", describe(n), expectation(v, n))
	}
}

// setScalar returns false, and leaves v alone, when n is not of v's type or out
// of its range.
func setScalar(n *yaml.Node, v reflect.Value) bool {
	if v.Type() == quantityType {
		return setQuantity(n, v)
	}
	switch v.Kind() {
	case reflect.String:
		return isText(n) && set(v.SetString, n.Value)
	case reflect.Bool:
		return setBool(n, v)
	case reflect.Int, reflect.Int32, reflect.Int64:
		var i int64
		return n.Tag == "!!int" && n.Decode(&i) == nil && !v.OverflowInt(i) && set(v.SetInt, i)
	case reflect.Uint32:
		var u uint64
		return n.Tag == "!!int" && n.Decode(&u) == nil && !v.OverflowUint(u) && set(v.SetUint, u)
	case reflect.Float32:
		var f float64
		isNumber := n.Tag == "!!int" || n.Tag == "!!float"
		return isNumber && n.Decode(&f) == nil && math.Abs(f) <= math.MaxFloat32 && set(v.SetFloat, f)
	}
	return false
}

func set[T any](setter func(T), value T) bool {
	setter(value)
	return true
}

// setBool also accepts the words that were booleans in YAML 1.1, which origin
// read.
func setBool(n *yaml.Node, v reflect.Value) bool {
	word := n.Value
	if n.Tag == "!!str" && n.Style == 0 {
		word = map[string]string{"yes": "true", "on": "true", "no": "false", "off": "false"}[strings.ToLower(word)]
	} else if n.Tag != "!!bool" {
		return false
	}
	truth := strings.EqualFold(word, "true")
	return (truth || strings.EqualFold(word, "false")) && set(v.SetBool, truth)
}

// reasonableQuantity bounds the exponent: resource.ParseQuantity takes forever
// on 1e-2147483647.
var reasonableQuantity = regexp.MustCompile(`^[-+]?[0-9.]{1,30}([a-zA-Z]{0,2}|[eE][-+]?[0-9]{1,2})$`)

func setQuantity(n *yaml.Node, v reflect.Value) bool {
	if !isLiteral(n) || !reasonableQuantity.MatchString(n.Value) {
		return false
	}
	q, err := resource.ParseQuantity(n.Value)
	return err == nil && set(v.Set, reflect.ValueOf(q))
}

// isPrintable reports characters that no value needs and that would corrupt a
// log or look like another character (a no-break space).
func (w *walker) isPrintable(path, text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			w.errorf(path, "found the character %U in %q; expected printable characters only", r, shorten(text))
			return false
		}
	}
	return true
}

// dealias returns the target of an alias. YAML has no alias of an alias.
func dealias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// isText returns whether n is a string. What YAML 1.1 reads as a date or as a
// merge key is a string here, where neither exists.
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp" || n.Tag == "!!merge")
}

// isLiteral returns whether n is a scalar whose source text can stand for it.
func isLiteral(n *yaml.Node) bool {
	return isText(n) || n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float" || n.Tag == "!!bool")
}

// describe describes a node of the file, after "found".
func describe(n *yaml.Node) string {
	value := shorten(n.Value)
	switch n.Tag {
	case "!!map":
		return "a mapping"
	case "!!seq":
		return "a list"
	case "!!null":
		return "null"
	case "!!bool":
		return "the boolean " + value
	case "!!int":
		return "the integer " + value
	case "!!float":
		return "the number " + value
	case "!!str", "!!timestamp", "!!merge":
		return fmt.Sprintf("the string %q", value)
	}
	return fmt.Sprintf("a value with the tag %q", shorten(n.Tag))
}

// expectation describes the values of v, after "expected". n is the value found.
func expectation(v reflect.Value, n *yaml.Node) string {
	if v.Type() == quantityType {
		return `a quantity such as "512Mi"`
	}
	switch v.Kind() {
	case reflect.String:
		if isLiteral(n) {
			return fmt.Sprintf("a string, as in %q", shorten(n.Value))
		}
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int32:
		return fmt.Sprintf("an integer from %d to %d", math.MinInt32, math.MaxInt32)
	case reflect.Uint32:
		return fmt.Sprintf("an integer from 0 to %d", uint32(math.MaxUint32))
	case reflect.Float32:
		return "a finite number"
	}
	return "an integer"
}
