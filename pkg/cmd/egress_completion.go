package cmd

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// completionTimeout limits how long the shell waits after Tab.
const completionTimeout = 2 * time.Second

// namespacesOf returns the namespaces of the Services that claim egress IPs.
func namespacesOf(s status.Snapshot) []cobra.Completion {
	var result []cobra.Completion
	for _, f := range s.Families {
		for _, claim := range f.Input.Claims {
			result = append(result, claim.Service.Namespace)
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// explainable returns the Services that claim egress IPs, and the addresses of their
// endpoints.
func explainable(s status.Snapshot) []cobra.Completion {
	var services []string
	var endpoints []plan.Endpoint
	for _, f := range s.Families {
		for _, claim := range f.Input.Claims {
			services = append(services, claim.Service.String())
			endpoints = append(endpoints, claim.Endpoints...)
		}
	}
	slices.Sort(services)
	slices.SortFunc(endpoints, plan.Endpoint.Compare)
	result := slices.Compact(services)
	for i, e := range endpoints {
		switch {
		case i > 0 && e.Addr == endpoints[i-1].Addr:
		case e.Pod == (plan.Pod{}):
			result = append(result, e.Addr.String())
		default:
			result = append(result, cobra.CompletionWithDesc(e.Addr.String(), kernel.Printable(e.Pod.String())))
		}
	}
	return result
}
