package manifests

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// discover returns the document that tells a client which resources a group
// and version has (k8s.io/apiserver/pkg/endpoints/discovery), or nil if the
// path names none. A resource is there whether the folder has objects of it or not.
func discover(path string) *metav1.APIResourceList {
	document := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, r := range resources {
		if r.verbs != nil && r.root() == strings.Trim(path, "/") {
			document.GroupVersion = r.GroupVersion().String()
			document.APIResources = append(document.APIResources, metav1.APIResource{
				Name: r.Resource, SingularName: strings.ToLower(r.kind), Namespaced: r.namespaced, Kind: r.kind, Verbs: r.verbs,
			})
		}
	}
	if len(document.APIResources) == 0 {
		return nil
	}
	slices.SortFunc(document.APIResources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	return &document
}

// root is what the paths of its group and version begin with.
func (r *resource) root() string {
	if r.Group == "" {
		return "api/" + r.Version
	}
	return "apis/" + r.GroupVersion().String()
}

func serveDocument(w http.ResponseWriter, r *http.Request, document *metav1.APIResourceList) {
	if r.Method != http.MethodGet {
		writeError(w, errMethod(r.Method))
		return
	}
	writeJSON(w, http.StatusOK, document)
}
