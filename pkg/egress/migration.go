package egress

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Migration is what keeps the egress IPs of a Service's pods when the field spec.externalIPs is gone.
type Migration struct {
	Service plan.Service `json:"service"`
	// EgressIPs are the value of EgressIPAnnotation, IPv4 first; empty if it is not decided.
	EgressIPs []netip.Addr `json:"egressIPs,omitempty"`
	// Undecided says for people what this program cannot decide, and what to do.
	Undecided []string `json:"undecided,omitempty"`
}

// Annotation returns the value of EgressIPAnnotation.
func (m Migration) Annotation() string {
	texts := make([]string, len(m.EgressIPs))
	for i, ip := range m.EgressIPs {
		texts[i] = ip.String()
	}
	return strings.Join(texts, ",")
}

// MigrationFrom returns a Migration for each Service that claims an external IP by the objects, sorted by Service. The others keep their
// egress IPs, if they have any. What of the objects cannot be read is in err.
func MigrationFrom(config Config, objects Objects) ([]Migration, error) {
	config.NodeName, config.Scope = "", placement.Node
	s, _, err := stateFor(config, objects)
	found := map[plan.Service]*Migration{}
	for _, family := range families {
		in, _ := s.input(family)
		refused := refusedClaims(plan.Build(in))
		for _, claim := range in.Claims {
			if !strings.HasPrefix(claim.Field, "spec.externalIPs") {
				continue
			}
			if found[claim.Service] == nil {
				found[claim.Service] = &Migration{Service: claim.Service}
			}
			if m, because := found[claim.Service], refused[claim.Service]; because != "" {
				m.Undecided = append(m.Undecided, "its claim is refused as it is: "+because)
			} else {
				m.EgressIPs = append(m.EgressIPs, claim.EgressIP)
			}
		}
	}
	migrations := make([]Migration, 0, len(found))
	for _, m := range found {
		migrations = append(migrations, *m)
	}
	slices.SortFunc(migrations, func(a, b Migration) int {
		return cmp.Or(cmp.Compare(a.Service.Namespace, b.Service.Namespace), cmp.Compare(a.Service.Name, b.Service.Name))
	})
	return migrations, errors.Join(err, foresee(migrations, config, objects))
}

// refusedClaims returns why claims are refused as a whole.
func refusedClaims(p plan.Plan) map[plan.Service]string {
	refused := map[plan.Service]string{}
	for _, r := range p.Refusals {
		if !r.Pod.IsValid() {
			refused[r.Service] = fmt.Sprintf("%s: %s", r.Reason, r.Message)
		}
	}
	return refused
}

// foresee notes which claims would be refused without external IPs: an address that the annotation alone names needs a permission.
func foresee(migrations []Migration, config Config, objects Objects) error {
	later, err := PlansAfter(config, objects, migrations, true)
	for _, p := range later {
		refused := refusedClaims(p)
		for i := range migrations {
			m := &migrations[i]
			if because := refused[m.Service]; because != "" && len(m.EgressIPs) > 0 {
				m.Undecided = append(m.Undecided, "without external IPs its claim would be refused: "+because)
			}
		}
	}
	return err
}

// PlansAfter returns the cluster's plans of both IP families, IPv4 first, for these objects with the annotations of migrations, and
// if bare without any external IPs.
func PlansAfter(config Config, objects Objects, migrations []Migration, bare bool) ([]plan.Plan, error) {
	config.NodeName, config.Scope = "", placement.Node
	annotations := map[plan.Service]string{}
	for _, m := range migrations {
		if len(m.EgressIPs) > 0 {
			annotations[m.Service] = m.Annotation()
		}
	}
	changed := make([]*v1.Service, len(objects.Services))
	for i, svc := range objects.Services {
		changed[i] = migrated(svc, annotations[planName(nameOf(svc))], bare)
	}
	objects.Services = changed
	s, _, err := stateFor(config, objects)
	var plans []plan.Plan
	for _, family := range families {
		in, _ := s.input(family)
		plans = append(plans, plan.Build(in))
	}
	return plans, err
}

func migrated(svc *v1.Service, annotation string, bare bool) *v1.Service {
	if annotation == "" && !bare {
		return svc
	}
	svc = svc.DeepCopy()
	if annotation != "" {
		if svc.Annotations == nil {
			svc.Annotations = map[string]string{}
		}
		svc.Annotations[EgressIPAnnotation] = annotation
	}
	if bare {
		svc.Spec.ExternalIPs = nil
	}
	return svc
}
