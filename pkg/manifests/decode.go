package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/origin-node/pkg/fileerror"
)

// An object is a decoded, defaulted and valid object with the place where it
// is written. It is shared by several loads and never changed.
type object struct {
	resource *resource
	apiObject
	doc  *document
	path string // of the object in its document: "", or "items[3]" in a list

	mirrored []*object // the EndpointSlices of an Endpoints object
}

// title names the object in messages.
func (o *object) title() string { return title(o.resource.kind, o.GetNamespace(), o.GetName()) }

func title(kind, namespace, name string) string {
	switch {
	case name == "":
		return kind
	case namespace == "":
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// where names the place of one of its fields, or of the object itself.
func (o *object) where(path string) string {
	return fileerror.Location(o.doc.file, o.doc.line(o.path, path, nil))
}

// errorf is an error about the field at path, or about the object itself.
func (o *object) errorf(path, format string, args ...any) *Error {
	return o.doc.error(o.path, o.title(), path, nil, fmt.Errorf(format, args...))
}

// decodeFile returns the objects of a file, each defaulted and valid, or what
// is wrong with it. The data must not be changed afterwards.
func decodeFile(file string, data []byte) ([]*object, []*Error) {
	if len(data) == 0 {
		// An editor truncates a file before it writes it anew. If that
		// moment counted, every object of the file would be gone for it.
		return nil, []*Error{{File: file, Err: errors.New("is empty; if it is meant to hold nothing, write a comment or remove it")}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var docs []*document
	var errs []*Error
	isJSON := filepath.Ext(file) == ".json"
	if isJSON {
		var err *Error
		if docs, err = splitJSON(file, data); err != nil {
			errs = append(errs, err)
		}
	} else {
		docs = splitYAML(file, data)
	}
	var objects []*object
	for _, doc := range docs {
		found, docErrs := decodeDocument(doc, isJSON)
		objects = append(objects, found...)
		errs = append(errs, docErrs...)
	}
	return objects, errs
}

// decodeDocument returns the objects of a document: one, or those of a list.
func decodeDocument(doc *document, isJSON bool) (objects []*object, errs []*Error) {
	defer func() {
		// Decoders, defaulters and validators of several modules read the
		// text. A panic in one of them must not end the node.
		if r := recover(); r != nil {
			objects, errs = nil, []*Error{doc.errorf(doc.start, "this document cannot be handled: %v", r)}
		}
	}()
	raw := doc.text
	if !isJSON {
		var err *Error
		if raw, err = doc.json(); err != nil {
			return nil, []*Error{err}
		}
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return nil, nil
	}
	return decodeValue(&value{doc: doc, raw: raw})
}

// A value is a JSON value that should be an object, and its place.
type value struct {
	doc  *document
	path string
	raw  []byte
	list *resource // of the typed list that it stands in, or nil
}

// head is what is read of an object before its kind is known.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

func (v *value) errorf(object, path, format string, args ...any) *Error {
	return v.doc.error(v.path, object, path, nil, fmt.Errorf(format, args...))
}

func decodeValue(v *value) ([]*object, []*Error) {
	var h head
	if err := kjson.UnmarshalCaseSensitivePreserveInts(v.raw, &h); err != nil {
		return nil, []*Error{v.decodeError(title(h.Kind, h.Metadata.Namespace, h.Metadata.Name), err)}
	}
	if v.list != nil && h.Kind == "" && h.APIVersion == "" {
		// The API server leaves these out of the items of a typed list.
		h.Kind, h.APIVersion = v.list.kind, v.list.GroupVersion().String()
	}
	name := title(h.Kind, h.Metadata.Namespace, h.Metadata.Name)
	if h.Kind == "" || h.APIVersion == "" {
		return nil, []*Error{v.errorf("", "", "apiVersion and kind are needed; accepted: %s", accepted)}
	}
	k, isList := kindOf(h.APIVersion, h.Kind)
	isList = isList || h.APIVersion == "v1" && h.Kind == "List"
	switch {
	case isList && v.path != "":
		return nil, []*Error{v.errorf("", "kind", "a %s inside of a list is not accepted", h.Kind)}
	case isList:
		return decodeList(v, k, h.Kind)
	case k == nil:
		return nil, []*Error{v.errorf(name, "kind", "kind %q of apiVersion %q is not accepted; accepted: %s", h.Kind, h.APIVersion, accepted)}
	case v.list != nil && k != v.list:
		return nil, []*Error{v.errorf(name, "kind", "a %sList holds only objects of kind %s", v.list.kind, v.list.kind)}
	}
	return decodeObject(v, k, name)
}

// decodeList decodes the items of a List, or of the typed list of k.
func decodeList(v *value, k *resource, name string) ([]*object, []*Error) {
	var list struct {
		metav1.TypeMeta
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if errs := v.strict(&list, name); len(errs) > 0 {
		return nil, errs
	}
	var objects []*object
	var errs []*Error
	for i, raw := range list.Items {
		item := &value{doc: v.doc, path: fmt.Sprintf("items[%d]", i), raw: raw, list: k}
		found, itemErrs := decodeValue(item)
		objects = append(objects, found...)
		errs = append(errs, itemErrs...)
	}
	return objects, errs
}

func decodeObject(v *value, k *resource, name string) ([]*object, []*Error) {
	o := &object{resource: k, apiObject: k.empty(), doc: v.doc, path: v.path}
	if errs := v.strict(o.apiObject, name); len(errs) > 0 {
		return nil, errs
	}
	fieldErrs := prepare(k, o.apiObject)
	errs := make([]*Error, 0, len(fieldErrs))
	for _, err := range fieldErrs {
		errs = append(errs, o.fieldError(err))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if endpoints, ok := o.apiObject.(*v1.Endpoints); ok {
		o.mirrored, errs = mirrorObject(o, endpoints)
	}
	return []*object{o}, errs
}

// fieldError is an error of a validator. It may be about one value of a map or
// list and name only the whole.
func (o *object) fieldError(err *field.Error) *Error {
	var narrow func(*yamlv3.Node) bool
	if bad, ok := err.BadValue.(string); ok {
		narrow = func(node *yamlv3.Node) bool { return node.Kind == yamlv3.ScalarNode && node.Value == bad }
	}
	return o.doc.error(o.path, o.title(), err.Field, narrow, errors.New(err.ErrorBody()))
}

// strict decodes into target and takes no unknown and no duplicate field.
func (v *value) strict(target any, name string) []*Error {
	unknown, err := kjson.UnmarshalStrict(v.raw, target)
	if err != nil {
		return []*Error{v.decodeError(name, err)}
	}
	errs := make([]*Error, 0, len(unknown))
	for _, err := range unknown {
		path := ""
		var fieldErr kjson.FieldError
		if errors.As(err, &fieldErr) {
			path = fieldErr.FieldPath()
		}
		errs = append(errs, &Error{
			File: v.doc.file, Line: v.doc.line(v.path, path, nil), Object: name, Err: err,
		})
	}
	return errs
}

// decodeError places what the JSON decoder found.
func (v *value) decodeError(name string, err error) *Error {
	var typeErr *json.UnmarshalTypeError
	if !errors.As(err, &typeErr) {
		return v.errorf(name, "", "%w", err)
	}
	written, _, _ := strings.Cut(typeErr.Value, " ")
	ok := func(node *yamlv3.Node) bool { return jsonType(node) == written }
	return v.doc.error(v.path, name, typeErr.Field, ok, fmt.Errorf("a value of type %s is written where %s is wanted", typeErr.Value, wanted(typeErr.Type)))
}

// wanted names a Go type for whoever writes a manifest.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object with fields"
	}
	return "a number (" + t.Kind().String() + ")"
}

// jsonType is the word of json.UnmarshalTypeError for what a node becomes.
func jsonType(node *yamlv3.Node) string {
	switch node.Kind {
	case yamlv3.MappingNode:
		return "object"
	case yamlv3.SequenceNode:
		return "array"
	}
	switch {
	case node.Tag == "!!int", node.Tag == "!!float":
		return "number"
	case node.Tag == "!!bool", node.Style == 0 && slices.Contains(yaml11Bools, strings.ToLower(node.Value)):
		return "bool"
	}
	return "string"
}

// yaml11Bools are booleans to the converter, but not to yaml.v3.
var yaml11Bools = []string{"y", "yes", "on", "n", "no", "off"}
