package manifests

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discover returns the document that tells a client which groups, versions and
// resources there are (k8s.io/apiserver/pkg/endpoints/discovery), or nil if the
// path names none. A group is there whether the folder has objects of it or not.
func discover(path, host string) any {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) == 1 && parts[0] == "api":
		return &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
				{ClientCIDR: "0.0.0.0/0", ServerAddress: host},
			},
		}
	case len(parts) == 2 && parts[0] == "api":
		return discoverResources(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 1 && parts[0] == "apis":
		return &metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups:   apiGroups(),
		}
	case len(parts) == 2 && parts[0] == "apis":
		return discoverGroup(parts[1])
	case len(parts) == 3 && parts[0] == "apis" && parts[1] != "":
		return discoverResources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return nil
}

// discoverResources returns a metav1.APIResourceList, or nil.
func discoverResources(gv schema.GroupVersion) any {
	var list []metav1.APIResource
	for _, r := range resources {
		if r.GroupVersion() == gv {
			list = append(list, metav1.APIResource{
				Name: r.Resource, SingularName: strings.ToLower(r.kind), Namespaced: r.namespaced, Kind: r.kind, Verbs: r.verbs,
			})
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	return &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
		APIResources: list,
	}
}

// discoverGroup returns a metav1.APIGroup, or nil.
func discoverGroup(name string) any {
	for _, group := range apiGroups() {
		if group.Name == name {
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return &group
		}
	}
	return nil
}

// apiGroups are the groups below /apis, sorted. Each has one version.
func apiGroups() []metav1.APIGroup {
	groups := map[string]metav1.APIGroup{}
	for _, r := range resources {
		if r.Group == "" {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: r.GroupVersion().String(), Version: r.Version}
		groups[r.Group] = metav1.APIGroup{
			Name: r.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		}
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b metav1.APIGroup) int { return cmp.Compare(a.Name, b.Name) })
}

func serveDocument(w http.ResponseWriter, r *http.Request, document any) {
	if r.Method != http.MethodGet {
		writeError(w, errMethod(r.Method))
		return
	}
	writeJSON(w, http.StatusOK, document)
}
